"""What is true of a host right now, as typed values. Sizes are bytes, rates carry their unit in the name."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Interface, IPv4Network, IPv6Address


class DockerState(StrEnum):
    """Whether our user can use Docker on a host."""

    READY = "ready"
    NOT_PERMITTED = "not permitted"
    NOT_RUNNING = "not running"
    MISSING = "missing"


class Cage(StrEnum):
    """A QSFP cage by its `phys_port_name`; p0 is nearest the RJ45 socket (PB-CONN)."""

    P0 = "p0"
    P1 = "p1"


@dataclass(frozen=True)
class Port:
    """One network function of the ConnectX-7: one twin of one cage.

    pci_address: such as `0002:01:00.0`; its domain tells the twins of a cage apart.
    cage: None when the driver does not tell (`phys_port_name` unreadable and no npN suffix in the name).
    speed_mbit_per_s: negotiated, of the whole cage; None without a link.
    carrier: there is a live partner at the other end. admin_up: the operator wants it up.
    """

    netdev: str
    pci_address: str
    cage: Cage | None
    rdma_device: str | None
    mac: str
    mtu_bytes: int
    admin_up: bool
    carrier: bool
    speed_mbit_per_s: int | None
    addresses: tuple[IPv4Interface, ...] = ()
    link_local: IPv6Address | None = None

    @property
    def pci_domain(self) -> str:
        """Such as `0000` for the first twin and `0002` for the second."""
        return self.pci_address.partition(":")[0]


@dataclass(frozen=True)
class Neighbour:
    """Somebody heard on one of our netdevs, before any address was set (IPv6 link-local)."""

    netdev: str
    mac: str


@dataclass(frozen=True)
class Route:
    """One IPv4 route of a host; the default route is 0.0.0.0/0. source: preferred source address if any."""

    destination: IPv4Network
    netdev: str
    gateway: str | None = None


@dataclass(frozen=True)
class Docker:
    """Docker as our user sees it. version: of the engine; empty unless ready. detail: the daemon's own words if not."""

    state: DockerState
    version: str = ""
    runtimes: tuple[str, ...] = ()
    detail: str = ""


@dataclass(frozen=True)
class HostFacts:
    """Everything that one round trip tells about a host.

    product: from DMI, such as `NVIDIA_DGX_Spark`; gpu: name by nvidia-smi, None where there is none.
    memory_*_bytes: MemTotal and MemAvailable of /proc/meminfo, the only right source on unified memory.
    management_netdev: the interface our own SSH connection arrives on; never touched by any plan.
    ports: the ConnectX-7 functions in PCI order, empty when uncabled (hot-plug removes them) or not a Spark.
    netplan_files: path -> text; None when they could not be read (no sudo), which is not the same as empty.
    programs: those of PROGRAMS_ASKED_FOR that are installed.
    simulated: what a lab node only pretends to have; empty on real machines.
    gpu_complaint: nvidia-smi's own words where it is installed and fails, such as a broken driver; else empty.
    """

    host: str
    hostname: str
    machine_id: str
    user: str
    home: str
    sudo: bool
    product: str
    dgx_release: Mapping[str, str]
    gpu: str | None
    driver: str | None
    os_name: str
    kernel: str
    architecture: str
    cpu_count: int
    memory_total_bytes: int
    memory_available_bytes: int
    management_netdev: str | None
    management_address: str | None
    ports: tuple[Port, ...]
    other_netdevs: tuple[str, ...]
    neighbours: tuple[Neighbour, ...]
    routes: tuple[Route, ...]
    docker: Docker
    netplan_files: Mapping[str, str] | None
    programs: frozenset[str]
    infiniband_device_dir: bool
    simulated: tuple[str, ...] = ()
    gpu_complaint: str = ""

    @property
    def is_spark(self) -> bool:
        """A GB10 box of whatever maker. The release file is no gate: OEM machines carry other names."""
        return self.gpu is not None and "GB10" in self.gpu

    def port(self, netdev: str) -> Port:
        """The port of that name. Raises KeyError when the host has none."""
        for port in self.ports:
            if port.netdev == netdev:
                return port
        raise KeyError(netdev)
