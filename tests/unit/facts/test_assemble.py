from ipaddress import IPv4Interface, IPv6Address

import pytest

from sparkctl.errors import UnexpectedOutput
from sparkctl.facts.assemble import NEIGHBOURS, PROGRAMS, READINGS, assemble_facts, assemble_ports
from sparkctl.facts.model import Cage, DockerState, Neighbour
from sparkctl.tools.docker_info import ENGINE
from sparkctl.tools.identity import IDENTITY, SUDO
from sparkctl.tools.iproute2 import NETDEVS, ROUTES, Netdev
from sparkctl.tools.meminfo import MEMORY
from sparkctl.tools.netplan_files import FILES
from sparkctl.tools.nvidia_smi import GPUS
from sparkctl.tools.release import DGX_RELEASE, OS_RELEASE
from sparkctl.tools.simulated import SIMULATED
from sparkctl.tools.sysfs import DEVICES, Devices, NetDevice, RdmaDevice
from tests.capture_files import captured, printed

SPARK = {
    IDENTITY: "identity/doc--spark.out",
    OS_RELEASE: "os_release/doc--ubuntu.out",
    DGX_RELEASE: "dgx_release/doc--spark.out",
    GPUS: "nvidia_smi/doc--gb10.out",
    MEMORY: "meminfo/doc--spark.out",
    NETDEVS: "iproute2/doc--address.json",
    ROUTES: "iproute2/doc--route.json",
    DEVICES: "sysfs/doc--devices.out",
    NEIGHBOURS: "neighbours/doc--shared-cable.out",
    ENGINE: "docker_info/doc--spark.out",
    FILES: "netplan_files/doc--two.out",
    PROGRAMS: "programs/doc--laptop.out",
}
LAB = {
    IDENTITY: "identity/lab--spark.out",
    OS_RELEASE: "os_release/lab--debian.out",
    DGX_RELEASE: "dgx_release/lab--spark.out",
    GPUS: "nvidia_smi/lab--gb10.out",
    MEMORY: "meminfo/lab--idle.out",
    NETDEVS: "iproute2/lab--address.json",
    ROUTES: "iproute2/lab--route.json",
    DEVICES: "sysfs/lab--devices.out",
    NEIGHBOURS: "neighbours/lab--pair.out",
    ENGINE: "docker_info/lab--ready.out",
    FILES: "netplan_files/lab--management.out",
    PROGRAMS: "programs/lab--spark.out",
    SIMULATED: "simulated/lab--spark.json",
}


def assembled(captures, **changes):
    results = {command: printed("", command, exit_code=127) for command in READINGS}
    results[SUDO] = printed("", SUDO)
    results |= {command: captured(name, command) for command, name in captures.items()}
    return assemble_facts("spark-a", results | changes.get("results", {}))


def test_a_real_spark():
    facts = assembled(SPARK)
    assert facts.is_spark
    assert (facts.host, facts.hostname, facts.user, facts.sudo) == ("spark-a", "spark-5c2d", "nvidia", True)
    assert (facts.gpu, facts.driver, facts.product) == ("NVIDIA GB10", "580.126.09", "NVIDIA_DGX_Spark")
    assert (facts.management_netdev, facts.management_address) == ("enP7s7", "192.168.1.42")
    assert facts.memory_total_bytes == 127_600_748 * 1024
    assert (facts.docker.state, facts.docker.version) == (DockerState.READY, "28.3.3")
    assert [(port.netdev, port.cage, port.pci_domain, port.rdma_device) for port in facts.ports] == [
        ("enp1s0f0np0", Cage.P0, "0000", "rocep1s0f0"),
        ("enp1s0f1np1", Cage.P1, "0000", "rocep1s0f1"),
        ("enP2p1s0f0np0", Cage.P0, "0002", "roceP2p1s0f0"),
        ("enP2p1s0f1np1", Cage.P1, "0002", "roceP2p1s0f1"),
    ]
    port = facts.port("enp1s0f1np1")
    assert (port.carrier, port.speed_mbit_per_s, port.mtu_bytes) == (True, 200_000, 9000)
    assert port.addresses == (IPv4Interface("192.168.100.13/24"),)
    assert port.link_local == IPv6Address("fe80::4ebb:47ff:fe2d:5c2f")
    assert facts.other_netdevs == ("lo", "enP7s7", "wlP9s9", "docker0")
    assert Neighbour("enp1s0f1np1", "4c:bb:47:11:1b:3c") in facts.neighbours
    assert len(facts.routes) == 6
    assert next(iter(facts.netplan_files or {})) == "/etc/netplan/40-cx7.yaml"
    assert facts.simulated == ()


def test_a_lab_node():
    facts = assembled(LAB)
    assert facts.is_spark
    assert facts.management_netdev == "enP7s7"
    assert [port.cage for port in facts.ports] == [Cage.P0, Cage.P1, Cage.P0, Cage.P1]
    assert [port.carrier for port in facts.ports] == [True, False, True, False]
    assert [neighbour.netdev for neighbour in facts.neighbours] == ["enP2p1s0f0np0", "enp1s0f0np0"]
    assert "GPU (nvidia-smi)" in facts.simulated


def test_a_machine_with_nothing_of_it_yields_facts():
    facts = assembled({})
    assert not facts.is_spark
    assert (facts.hostname, facts.ports, facts.management_netdev) == ("", (), None)
    assert (facts.docker.state, facts.netplan_files) == (DockerState.MISSING, None)


def test_a_laptop_with_another_gpu():
    other = {GPUS: printed("NVIDIA GeForce RTX 4090, 570.1\n", GPUS)}
    facts = assembled({IDENTITY: SPARK[IDENTITY], NETDEVS: SPARK[NETDEVS], ROUTES: SPARK[ROUTES]}, results=other)
    assert (facts.is_spark, facts.gpu, facts.ports) == (False, "NVIDIA GeForce RTX 4090", ())


def test_what_cannot_be_read_is_an_error():
    with pytest.raises(UnexpectedOutput):
        assembled(SPARK, results={NETDEVS: printed("1: lo", NETDEVS)})


def netdev(name):
    return Netdev(name, "02:00:00:00:00:01", 1500, admin_up=True, carrier=True, kind="", ipv4=(), ipv6=())


def device(name, **fields):
    values = {"pci_address": "", "vendor": "", "driver": "", "phys_port_name": "", "phys_switch_id": ""} | fields
    return NetDevice(name, **values, speed_mbit_per_s=None)


@pytest.mark.parametrize(
    ("known", "rdma", "cage"),
    [
        (device("fabric0", vendor="0x15b3", phys_port_name="p1"), (), Cage.P1),
        (device("enp1s0f0np0", driver="mlx5_core"), (), Cage.P0),
        (device("fabric0", vendor="0x15b3"), (), None),
        (device("fabric0", phys_port_name="p0"), (RdmaDevice("rocep1s0f0", "0000:01:00.0", ("fabric0",)),), Cage.P0),
    ],
)
def test_a_port_is_known_by_vendor_driver_or_rdma_device(known, rdma, cage):
    (port,) = assemble_ports((netdev(known.netdev),), Devices((known,), rdma))
    assert port.cage is cage


def test_a_name_alone_makes_no_port():
    assert assemble_ports((netdev("enp1s0f0np0"),), Devices((device("enp1s0f0np0", vendor="0x8086"),), ())) == ()
