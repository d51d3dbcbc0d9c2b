"""Joins what the tools printed on one host to HostFacts. Pure: the readings come in as results."""

import re
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address

from sparkctl.facts.model import Cage, Docker, DockerState, HostFacts, Neighbour, Port, Route
from sparkctl.tools.docker_info import ENGINE, Engine, EngineState, parse_engine
from sparkctl.tools.identity import IDENTITY, SUDO, Identity, parse_identity
from sparkctl.tools.iproute2 import NETDEVS, ROUTES, Netdev, parse_netdevs, parse_routes
from sparkctl.tools.meminfo import MEMORY, Memory, parse_memory
from sparkctl.tools.neighbours import parse_neighbours, ping_neighbours
from sparkctl.tools.netplan_files import FILES, parse_files
from sparkctl.tools.nvidia_smi import GPUS, GpuReading, parse_gpus
from sparkctl.tools.programs import look_for, parse_found
from sparkctl.tools.release import DGX_RELEASE, OS_RELEASE, parse_release
from sparkctl.tools.simulated import SIMULATED, parse_simulated
from sparkctl.tools.sysfs import DEVICES, Devices, NetDevice, parse_devices
from sparkctl.transport.command import Command, CommandResult

CONNECTX_VENDOR = "0x15b3"
CONNECTX_DRIVER = "mlx5_core"
# What the main path runs on a host, and what tells people how to look further.
PROGRAMS_ASKED_FOR = (
    "avahi-browse",
    "curl",
    "docker",
    "ethtool",
    "ib_write_bw",
    "iperf3",
    "lldpctl",
    "netplan",
    "nvidia-smi",
    "ping",
    "rsync",
    "systemd-run",
)
PROGRAMS = look_for(PROGRAMS_ASKED_FOR)
NEIGHBOURS = ping_neighbours(CONNECTX_VENDOR)
# Everything that is asked of a host, in one bundle.
READINGS: tuple[Command, ...] = (
    IDENTITY,
    SUDO,
    OS_RELEASE,
    DGX_RELEASE,
    GPUS,
    MEMORY,
    NETDEVS,
    ROUTES,
    DEVICES,
    NEIGHBOURS,
    ENGINE,
    FILES,
    PROGRAMS,
    SIMULATED,
)

_DOCKER_STATES = {
    EngineState.ANSWERS: DockerState.READY,
    EngineState.REFUSES: DockerState.NOT_PERMITTED,
    EngineState.SILENT: DockerState.NOT_RUNNING,
    EngineState.NOT_INSTALLED: DockerState.MISSING,
}
_NOT_LINUX = Identity("", "", "", "", "", "", "", 0, None, infiniband_dir=False)
_NAME_SUFFIX = re.compile(r"np([01])$")


def assemble_facts(host: str, results: Mapping[Command, CommandResult]) -> HostFacts:
    """Facts of one host from the results of READINGS.

    What a host does not have becomes empty or None, so any machine that lets us in yields facts.
    Raises UnexpectedOutput when a program that is there prints what its parser does not know.
    """
    identity = parse_identity(results[IDENTITY]) or _NOT_LINUX
    gpu = parse_gpus(results[GPUS]) or GpuReading(())
    memory = parse_memory(results[MEMORY]) or Memory(0, 0)
    netdevs = parse_netdevs(results[NETDEVS]) or ()
    ports = assemble_ports(netdevs, parse_devices(results[DEVICES]))
    port_names = {port.netdev for port in ports}
    management = _netdev_with(netdevs, identity.server_address)
    return HostFacts(
        host=host,
        hostname=identity.hostname,
        machine_id=identity.machine_id,
        user=identity.user,
        home=identity.home,
        sudo=results[SUDO].ok,
        product=identity.product,
        dgx_release=parse_release(results[DGX_RELEASE]) or {},
        gpu=gpu.gpus[0].name if gpu.gpus else None,
        driver=gpu.gpus[0].driver if gpu.gpus else None,
        os_name=(parse_release(results[OS_RELEASE]) or {}).get("PRETTY_NAME", ""),
        kernel=identity.kernel,
        architecture=identity.architecture,
        cpu_count=identity.cpu_count,
        memory_total_bytes=memory.total_bytes,
        memory_available_bytes=memory.available_bytes,
        management_netdev=management.name if management else None,
        management_address=str(identity.server_address) if identity.server_address else None,
        ports=ports,
        other_netdevs=tuple(netdev.name for netdev in netdevs if netdev.name not in port_names),
        neighbours=tuple(
            Neighbour(heard.netdev, heard.mac)
            for heard in parse_neighbours(results[NEIGHBOURS])
            if heard.netdev in port_names
        ),
        routes=tuple(
            Route(route.destination, route.netdev, str(route.gateway) if route.gateway else None)
            for route in parse_routes(results[ROUTES]) or ()
        ),
        docker=_docker(parse_engine(results[ENGINE])),
        netplan_files=parse_files(results[FILES]),
        programs=parse_found(results[PROGRAMS]),
        infiniband_device_dir=identity.infiniband_dir,
        simulated=parse_simulated(results[SIMULATED]),
        gpu_complaint=gpu.complaint,
    )


def assemble_ports(netdevs: tuple[Netdev, ...], devices: Devices) -> tuple[Port, ...]:
    """The ConnectX functions among the netdevs, in PCI order.

    A netdev is one by PCI vendor or driver or, failing those, by the RDMA device that belongs to it; never by its
    name, because virtual machines, OEM boxes and udev rules rename.
    """
    by_name = {device.netdev: device for device in devices.net}
    rdma_of = {netdev: rdma for rdma in devices.rdma for netdev in rdma.netdevs}
    ports = []
    for netdev in netdevs:
        device = by_name.get(netdev.name)
        rdma = rdma_of.get(netdev.name)
        if device is None or not (_is_connectx(device) or rdma is not None):
            continue
        ports.append(
            Port(
                netdev=netdev.name,
                pci_address=device.pci_address or (rdma.pci_address if rdma else ""),
                cage=_cage(device),
                rdma_device=rdma.name if rdma else None,
                mac=netdev.mac,
                mtu_bytes=netdev.mtu_bytes,
                admin_up=netdev.admin_up,
                carrier=netdev.carrier,
                speed_mbit_per_s=device.speed_mbit_per_s if netdev.carrier else None,
                addresses=netdev.ipv4,
                link_local=netdev.link_local,
            )
        )
    return tuple(sorted(ports, key=lambda port: (port.pci_address, port.netdev)))


def _is_connectx(device: NetDevice) -> bool:
    return device.vendor == CONNECTX_VENDOR or device.driver == CONNECTX_DRIVER


def _cage(device: NetDevice) -> Cage | None:
    if device.phys_port_name in (Cage.P0, Cage.P1):
        return Cage(device.phys_port_name)
    # systemd puts phys_port_name into the name as npN, so the name repeats what the driver said earlier.
    suffix = _NAME_SUFFIX.search(device.netdev)
    return Cage(f"p{suffix[1]}") if suffix else None


def _netdev_with(netdevs: tuple[Netdev, ...], address: IPv4Address | IPv6Address | None) -> Netdev | None:
    for netdev in netdevs:
        if address in [interface.ip for interface in netdev.ipv4] or address in [entry.ip for entry in netdev.ipv6]:
            return netdev
    return None


def _docker(engine: Engine) -> Docker:
    return Docker(_DOCKER_STATES[engine.state], engine.version, engine.runtimes, engine.complaint)
