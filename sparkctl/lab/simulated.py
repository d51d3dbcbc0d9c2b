"""What a virtual Spark only pretends to have: the list shown to people, and the files behind it."""

import json
from dataclasses import dataclass

from sparkctl.lab.model import PORTS, LabPort, LabSpec, cable_of, cable_serial, machine_id, node_mac
from sparkctl.lab.node_files import PROGRAM_DIRECTORY, NodeFile
from sparkctl.lab.simulated_programs import (
    ETHTOOL,
    FOLLOW,
    FOLLOW_UNIT,
    HOOK,
    IBDEV2NETDEV,
    IBSTAT,
    MOUNT,
    MOUNT_UNIT,
    NVIDIA_SMI,
)

MARKER_FILE = "/etc/sparkctl/simulated.json"
GIDS = 8


@dataclass(frozen=True)
class Simulated:
    """One thing that is not real in the lab: what it is, and how it is made."""

    what: str
    how: str


SIMULATED = (
    Simulated("GPU (nvidia-smi)", "a program prints the answers of a GB10 with driver 580.95.05; there is no GPU"),
    Simulated("docker run --gpus", "a stub nvidia-container-runtime-hook accepts the option; no device appears"),
    Simulated("DGX OS (/etc/dgx-release)", "a file; the system is Debian 13 on this machine's kernel and processor"),
    Simulated("machine name (/sys/class/dmi/id)", "files mounted over /sys"),
    Simulated(
        "ConnectX-7 identity (phys_port_name, phys_switch_id, device, speed)",
        "files mounted over /sys/class/net of the rails; the rails themselves are real veth netdevs",
    ),
    Simulated("link speed in ethtool and sysfs", "twice the rail's rate limit, -1 without carrier"),
    Simulated("cable EEPROM (ethtool -m)", "a program prints one serial number per cable"),
    Simulated(
        "RDMA devices (/sys/class/infiniband, ibdev2netdev, ibstat)",
        "files that follow the netdevs' carrier and addresses; no RDMA traffic is possible",
    ),
    Simulated("memory settings (/proc/sys/vm)", "a copy per node; writing changes nothing in the kernel"),
    Simulated("udevadm", "does nothing and succeeds, because no udev runs in a container"),
)


def plan_simulated_files(spec: LabSpec, node: str) -> tuple[NodeFile, ...]:
    """All files on a node that stand in for hardware, and the marker file that lists them."""
    marker = json.dumps([{"what": thing.what, "how": thing.how} for thing in SIMULATED], indent=2)
    ports = tuple(file for port in PORTS for file in _port_files(spec, node, port))
    return (
        NodeFile(MARKER_FILE, marker + "\n"),
        NodeFile("/etc/dgx-release", _DGX_RELEASE.format(serial=_serial(spec, node))),
        NodeFile("/usr/local/bin/nvidia-smi", NVIDIA_SMI.replace("@UUID@", _uuid(spec, node)), mode=0o755),
        NodeFile("/usr/local/bin/nvidia-container-runtime-hook", HOOK, mode=0o755),
        NodeFile("/usr/local/sbin/ibdev2netdev", IBDEV2NETDEV, mode=0o755),
        NodeFile("/usr/local/sbin/ibstat", IBSTAT, mode=0o755),
        NodeFile("/usr/local/sbin/ethtool", ETHTOOL, mode=0o755),
        NodeFile(f"{PROGRAM_DIRECTORY}/mount-hardware", MOUNT, mode=0o755),
        NodeFile(f"{PROGRAM_DIRECTORY}/follow-links", FOLLOW, mode=0o755),
        NodeFile(f"{PROGRAM_DIRECTORY}/speed_mbit_per_s", f"{2 * spec.rail_mbit_per_s}\n"),
        *_unit("sparkctl-lab-hardware.service", MOUNT_UNIT, wanted_by="sysinit.target"),
        *_unit("sparkctl-lab-links.service", FOLLOW_UNIT, wanted_by="multi-user.target"),
        *(_tree(f"class/dmi/id/{name}", text) for name, text in _DMI.items()),
        _tree("class/dmi/id/product_serial", _serial(spec, node)),
        *ports,
    )


def rdma_guid(mac: str) -> str:
    """The node GUID that mlx5 derives from a hardware address, as sysfs prints it (EUI-64, four groups)."""
    octets = mac.split(":")
    digits = "".join((*octets[:3], "00", "00", *octets[3:]))
    return ":".join(digits[i : i + 4] for i in range(0, 16, 4))


def _port_files(spec: LabSpec, node: str, port: LabPort) -> tuple[NodeFile, ...]:
    mac = node_mac(spec, node, port.netdev)
    domain = port.pci_address.partition(":")[0]
    function = f"devices/pci{domain}:00/{domain}:00:00.0/{port.pci_address}"
    rdma = f"{function}/infiniband/{port.rdma_device}"
    first_mac = node_mac(spec, node, PORTS[0].netdev).replace(":", "")
    cable = cable_of(spec, node, port.cage)
    return (
        _tree(f"net/{port.netdev}/phys_port_name", port.cage),
        _tree(f"net/{port.netdev}/phys_switch_id", first_mac),
        _tree(f"net/{port.netdev}/speed", "-1"),
        _tree(f"net/{port.netdev}/device", link_to=f"../../../{function.removeprefix('devices/')}"),
        *(_tree(f"{function}/{name}", text) for name, text in _PCI.items()),
        _tree(f"{function}/uevent", _UEVENT.format(slot=port.pci_address)),
        _tree(f"{function}/driver", link_to="../../../../bus/pci/drivers/mlx5_core"),
        _tree(f"{function}/net/{port.netdev}", link_to=f"../../../../virtual/net/{port.netdev}"),
        _tree(f"class/infiniband/{port.rdma_device}", link_to=f"../../{rdma}"),
        _tree(f"{rdma}/device", link_to="../.."),
        _tree(f"{rdma}/node_guid", rdma_guid(mac)),
        _tree(f"{rdma}/sys_image_guid", rdma_guid(node_mac(spec, node, PORTS[0].netdev))),
        *(_tree(f"{rdma}/{name}", text) for name, text in _RDMA.items()),
        *(_tree(f"{rdma}/ports/1/{name}", text) for name, text in _RDMA_PORT.items()),
        *(_tree(f"{rdma}/ports/1/gids/{i}", _NO_GID) for i in range(GIDS)),
        *(_tree(f"{rdma}/ports/1/gid_attrs/types/{i}", "") for i in range(GIDS)),
        *(_tree(f"{rdma}/ports/1/gid_attrs/ndevs/{i}", "") for i in range(GIDS)),
        *(() if cable is None else (_cable_file(port, cable_serial(spec, cable)),)),
    )


def _cable_file(port: LabPort, serial: str) -> NodeFile:
    return NodeFile(f"{PROGRAM_DIRECTORY}/cables/{port.netdev}", f"{serial}\n")


def _tree(path: str, text: str = "", *, link_to: str = "") -> NodeFile:
    content = f"{text}\n" if text else ""
    return NodeFile(f"{PROGRAM_DIRECTORY}/sysfs/{path}", content, mode=0o444, link_to=link_to)


def _unit(name: str, text: str, *, wanted_by: str) -> tuple[NodeFile, NodeFile]:
    path = f"/etc/systemd/system/{name}"
    return NodeFile(path, text), NodeFile(f"/etc/systemd/system/{wanted_by}.wants/{name}", link_to=path)


def _serial(spec: LabSpec, node: str) -> str:
    return "LAB" + node_mac(spec, node, "serial").replace(":", "").upper()[2:]


def _uuid(spec: LabSpec, node: str) -> str:
    digits = machine_id(spec, f"{node}/gpu")
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:32]))


# Source: field names from PB-SCS and machines in the field (facts, section 1.5).
_DGX_RELEASE = """\
DGX_NAME="DGX Spark"
DGX_PRETTY_NAME="NVIDIA DGX Spark"
DGX_SWBUILD_DATE="2026-07-01-00-00-00"
DGX_SWBUILD_VERSION="7.5.0"
DGX_COMMIT_ID="lab"
DGX_PLATFORM="DGX Server for KVM"
DGX_SERIAL_NUMBER="{serial}"
"""

_DMI = {"sys_vendor": "NVIDIA", "product_name": "NVIDIA_DGX_Spark", "board_vendor": "NVIDIA", "board_name": "P4242"}

# Vendor and device: Mellanox, MT2910 [ConnectX-7]. Each half has four lanes of PCIe 5.
_PCI = {
    "vendor": "0x15b3",
    "device": "0x1021",
    "class": "0x020000",
    "numa_node": "-1",
    "current_link_speed": "32.0 GT/s PCIe",
    "current_link_width": "4",
    "max_link_speed": "32.0 GT/s PCIe",
    "max_link_width": "16",
}

_UEVENT = """\
DRIVER=mlx5_core
PCI_CLASS=20000
PCI_ID=15B3:1021
PCI_SLOT_NAME={slot}"""

_RDMA = {"fw_ver": "28.45.4028", "hca_type": "MT4129", "node_type": "1: CA", "board_id": "NVD0000000087"}

_RDMA_PORT = {
    "state": "1: DOWN",
    "phys_state": "3: Disabled",
    "rate": "40 Gb/sec (4X QDR)",
    "link_layer": "Ethernet",
    "lid": "0x0",
    "sm_lid": "0x0",
}

_NO_GID = "0000:0000:0000:0000:0000:0000:0000:0000"
