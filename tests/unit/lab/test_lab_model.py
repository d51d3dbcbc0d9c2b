from ipaddress import IPv4Address, IPv4Network

import pytest

from sparkctl.errors import OperationFailed, UsageError
from sparkctl.lab.model import (
    PORTS,
    Cable,
    CableEnd,
    Cage,
    cable_of,
    cable_serial,
    cables_namespace,
    choose_network,
    controller_netdev,
    machine_id,
    namespace_prefix,
    node_address,
    node_mac,
    node_namespace,
    parse_cable,
    plan_lab,
)
from sparkctl.lab.record import LabRecord, parse_record, render_record


def test_two_nodes_are_joined_back_to_back_on_the_cage_nearest_the_rj45_socket():
    spec = plan_lab()
    assert spec.nodes == ("spark-1", "spark-2")
    assert [str(cable) for cable in spec.cables] == ["spark-1:p0=spark-2:p0"]


@pytest.mark.parametrize(
    ("nodes", "cables"),
    [
        (1, []),
        (3, ["spark-1:p0=spark-2:p1", "spark-2:p0=spark-3:p1", "spark-3:p0=spark-1:p1"]),
        (4, [f"spark-{n}:p0=switch" for n in range(1, 5)]),
    ],
)
def test_usual_cabling(nodes, cables):
    assert [str(cable) for cable in plan_lab(nodes=nodes).cables] == cables


def test_a_cable_is_read_as_it_is_written():
    cable = Cable(CableEnd("spark-1", Cage.P0), CableEnd("spark-2", Cage.P1))
    assert parse_cable("spark-1:p0=spark-2:p1") == cable
    assert parse_cable(str(cable)) == cable
    assert parse_cable("spark-1:p1=switch") == Cable(CableEnd("spark-1", Cage.P1), None)


@pytest.mark.parametrize("text", ["", "spark-1:p0", "spark-1:p0=spark-2", "spark-1:p2=spark-2:p0", "switch=spark-1:p0"])
def test_other_texts_are_no_cables(text):
    with pytest.raises(UsageError, match="is not a cable"):
        parse_cable(text)


@pytest.mark.parametrize(
    ("cables", "message"),
    [
        (("spark-1:p0=spark-9:p0",), "`spark-9`, which is not in the lab"),
        (("spark-1:p0=spark-2:p0", "spark-2:p0=spark-1:p1"), "two cable ends are in spark-2:p0"),
        (("spark-1:p0=spark-1:p0",), "two cable ends are in spark-1:p0"),
    ],
)
def test_impossible_cabling_is_refused(cables, message):
    with pytest.raises(UsageError, match=message):
        plan_lab(cables=cables)


def test_no_cables_can_be_asked_for():
    assert plan_lab(cables=()).cables == ()


@pytest.mark.parametrize("name", ["", "-a", "Lab", "a.b", "a/b", "a_b", "x" * 40])
def test_names_that_cannot_be_part_of_a_path_are_refused(name):
    with pytest.raises(UsageError, match="cannot be the name"):
        plan_lab(name)


@pytest.mark.parametrize("arguments", [{"nodes": 0}, {"nodes": 99}, {"rail_mbit_per_s": 0}, {"binds": (("a", "/b"),)}])
def test_other_impossible_labs_are_refused(arguments):
    with pytest.raises(UsageError) as caught:
        plan_lab(**arguments)
    assert caught.value.remedy


def test_kernel_names_fit_and_differ_between_labs():
    long = "x" * 32
    assert len(controller_netdev(long)) <= 15
    assert controller_netdev("lab") != controller_netdev("lab-2")
    assert not node_namespace("lab-2", "spark-1").startswith(namespace_prefix("lab"))
    assert cables_namespace("lab").startswith(namespace_prefix("lab"))
    assert all(len(port.netdev) <= 15 for port in PORTS)


def test_hardware_addresses_are_local_stable_and_all_different():
    specs = (plan_lab("a"), plan_lab("b"))
    macs = [node_mac(spec, node, port.netdev) for spec in specs for node in spec.nodes for port in PORTS]
    assert len(set(macs)) == 16
    assert all(mac.startswith("02:") and len(mac) == 17 for mac in macs)
    assert node_mac(specs[0], "spark-1", "enP7s7") == node_mac(specs[0], "spark-1", "enP7s7")
    assert len(machine_id(specs[0], "spark-1")) == 32


def test_both_ends_of_a_cable_have_one_serial_number_and_other_cables_another():
    spec = plan_lab(nodes=3)
    first = cable_of(spec, "spark-1", Cage.P0)
    assert first is not None
    assert first == cable_of(spec, "spark-2", Cage.P1)
    assert len({cable_serial(spec, cable) for cable in spec.cables}) == 3
    assert cable_of(plan_lab(), "spark-1", Cage.P1) is None


def test_the_first_network_that_nobody_uses_is_taken():
    taken = (IPv4Network("10.213.0.0/24"), IPv4Network("10.213.1.128/25"), IPv4Network("192.0.2.0/24"))
    network = choose_network(taken)
    assert network == IPv4Network("10.213.2.0/24")
    assert node_address(network, 1) == IPv4Address("10.213.2.12")


def test_a_machine_that_routes_the_whole_pool_is_told_so():
    with pytest.raises(UsageError, match="no free /24"):
        choose_network((IPv4Network("10.0.0.0/8"),))


def test_a_record_is_read_as_it_was_written():
    spec = plan_lab("x", nodes=3, rail_mbit_per_s=500, binds=(("/srv", "/opt/lab"),))
    record = LabRecord(spec, IPv4Network("10.213.7.0/24"), "/cache/base-1")
    assert parse_record(render_record(record), where="lab.json") == record


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": 1}', '{"format": 99}'])
def test_a_damaged_record_is_an_error_with_a_remedy(text):
    with pytest.raises(OperationFailed) as caught:
        parse_record(text, where="lab.json")
    assert "lab down" in caught.value.remedy or "stop it" in caught.value.remedy
