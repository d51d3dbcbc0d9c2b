import pytest

from sparkctl.errors import UnexpectedOutput
from sparkctl.tools.sysfs import DEVICES, Devices, RdmaDevice, parse_devices
from tests.capture_files import captured, printed


@pytest.mark.parametrize(("machine", "speed", "lit", "dark"), [("doc", 200_000, "p1", "p0"), ("lab", 2000, "p0", "p1")])
def test_ports_of_a_spark(machine, speed, lit, dark):
    devices = parse_devices(captured(f"sysfs/{machine}--devices.out", DEVICES))
    ports = {device.netdev: device for device in devices.net if device.driver == "mlx5_core"}
    assert sorted(ports) == ["enP2p1s0f0np0", "enP2p1s0f1np1", "enp1s0f0np0", "enp1s0f1np1"]
    assert {port.vendor for port in ports.values()} == {"0x15b3"}
    assert len({port.phys_switch_id for port in ports.values()}) == 1
    assert {port.speed_mbit_per_s for port in ports.values() if port.phys_port_name == lit} == {speed}
    assert {port.speed_mbit_per_s for port in ports.values() if port.phys_port_name == dark} == {None}
    assert RdmaDevice("roceP2p1s0f0", "0002:01:00.0", ("enP2p1s0f0np0",)) in devices.rdma


def test_a_host_without_sys():
    assert parse_devices(printed("", DEVICES, exit_code=127)) == Devices((), ())


def test_a_line_that_is_not_ours():
    with pytest.raises(UnexpectedOutput):
        parse_devices(printed("ls: cannot access\n", DEVICES))
