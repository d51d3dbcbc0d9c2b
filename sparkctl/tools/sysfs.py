"""/sys: which device and driver stand behind each netdev, and the RDMA devices beside them."""

from dataclasses import dataclass

from sparkctl.transport.bundle import shell
from sparkctl.transport.command import CommandResult
from sparkctl.transport.printed import unexpected

# Shell builtins where possible: a `cat` per value would cost more than all other readings together. The slot comes from
# uevent or, where a device has none (simulated hardware), from the name of the folder that `device` leads to.
_READ = """\
get() { v=; { read -r v <"$1"; } 2>/dev/null; }
slot() {
  p= d= v=; [ -e "$1" ] || return
  { while IFS== read -r k w; do
    case $k in PCI_SLOT_NAME) p=$w;; DRIVER) d=$w;; esac
  done <"$1/uevent"; } 2>/dev/null
  [ "$p" ] || { p=$(readlink -f "$1"); p=${p##*/}; }
  [ "$d" ] || { d=$(readlink "$1/driver"); d=${d##*/}; }
  case $p in *:*:*.*) ;; *) p=;; esac
}
for n in /sys/class/net/*; do
  [ -e "$n" ] || continue
  slot "$n/device"
  get "$n/device/vendor"; vendor=$v
  get "$n/phys_port_name"; port=$v
  get "$n/phys_switch_id"; switch=$v
  get "$n/speed"; speed=$v
  echo "net|${n##*/}|$p|$vendor|$d|$port|$switch|$speed"
done
for r in /sys/class/infiniband/*; do
  [ -e "$r" ] || continue
  slot "$r/device"
  devs=; for n in "$r"/device/net/*; do [ -e "$n" ] || [ -L "$n" ] && devs="$devs ${n##*/}"; done
  [ "$devs" ] || { get "$r/ports/1/gid_attrs/ndevs/0"; devs=$v; }
  echo "rdma|${r##*/}|$p|$devs"
done
"""
DEVICES = shell(_READ, timeout_s=5)


@dataclass(frozen=True)
class NetDevice:
    """The hardware behind a netdev. Empty text means that the driver does not tell, or that there is no hardware.

    vendor: PCI vendor such as `0x15b3`. phys_port_name: such as `p0`. phys_switch_id: the same for all ports of one
    chip. speed_mbit_per_s: negotiated; None without a link or where the driver does not know.
    """

    netdev: str
    pci_address: str
    vendor: str
    driver: str
    phys_port_name: str
    phys_switch_id: str
    speed_mbit_per_s: int | None


@dataclass(frozen=True)
class RdmaDevice:
    """An RDMA device such as `rocep1s0f0` and the netdevs it belongs to."""

    name: str
    pci_address: str
    netdevs: tuple[str, ...]


@dataclass(frozen=True)
class Devices:
    """What /sys says; both empty on a host without /sys."""

    net: tuple[NetDevice, ...]
    rdma: tuple[RdmaDevice, ...]


def parse_devices(result: CommandResult) -> Devices:
    """Devices behind netdevs and RDMA devices, in the order of their names.

    Raises UnexpectedOutput for a line that is not ours.
    Source: Documentation/ABI/testing/sysfs-class-net and sysfs-class-infiniband; capture sysfs/<machine>--devices.out.
    """
    net: list[NetDevice] = []
    rdma: list[RdmaDevice] = []
    for line in result.stdout.splitlines():
        match line.split("|"):
            case ["net", name, pci_address, vendor, driver, port, switch, speed]:
                net.append(NetDevice(name, pci_address, vendor, driver, port, switch, _speed(speed)))
            case ["rdma", name, pci_address, netdevs]:
                rdma.append(RdmaDevice(name, pci_address, tuple(netdevs.split())))
            case _:
                raise unexpected(result, "the reading of /sys")
    return Devices(tuple(net), tuple(rdma))


def _speed(text: str) -> int | None:
    # -1 (also as unsigned) is the kernel's "unknown".
    return int(text) if text.isdecimal() and 0 < int(text) < 2**31 else None
