from sparkctl.facts.model import Cage
from sparkctl.plan.measurements import plan_measurements
from tests.link_examples import pair, plan


def test_each_rail_then_all_of_them_both_ways():
    planned = plan_measurements(plan(pair()), seconds=2)

    assert [(m.subject, m.floor_gbit_per_s, m.fail_gbit_per_s) for m in planned] == [
        ("spark-a → spark-b, enp1s0f0np0", 80.0, 25.0),
        ("spark-b → spark-a, enp1s0f0np0", 80.0, 25.0),
        ("spark-a → spark-b, enP2p1s0f0np0", 80.0, 25.0),
        ("spark-b → spark-a, enP2p1s0f0np0", 80.0, 25.0),
        ("spark-a → spark-b, all 2 rails", 160.0, 80.0),
        ("spark-b → spark-a, all 2 rails", 160.0, 80.0),
    ]
    assert [str(transfer.target) for transfer in planned[5].transfers] == ["10.177.0.1", "10.177.0.5"]


def test_no_two_transfers_share_a_server_port():
    planned = plan_measurements(plan(pair(cages=(Cage.P0, Cage.P1))))
    ports = [transfer.port for measurement in planned for transfer in measurement.transfers]

    assert len(set(ports)) == len(ports) == 16


def test_server_ports_are_none_that_a_client_could_be_given():
    # Linux hands out 32768-60999 to clients (ip-sysctl, ip_local_port_range); a server there fails now and then.
    ports = [transfer.port for measurement in plan_measurements(plan(pair())) for transfer in measurement.transfers]

    assert all(1024 < port < 32768 for port in ports)
