"""Who and what a host is: names, user, kernel, processors, product by DMI, and how our connection arrived."""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address

from sparkctl.transport.bundle import shell
from sparkctl.transport.command import Command, CommandResult
from sparkctl.transport.printed import unexpected

_ASK = """\
get() { v=; { read -r v <"$1"; } 2>/dev/null; }
get /etc/machine-id; echo "machine_id=$v"
get /sys/class/dmi/id/product_name; echo "product=$v"
echo "hostname=$(uname -n)"
echo "user=$(id -un)"
echo "home=$HOME"
echo "kernel=$(uname -r)"
echo "architecture=$(uname -m)"
echo "cpu_count=$(getconf _NPROCESSORS_ONLN 2>/dev/null)"
echo "connection=$SSH_CONNECTION"
[ -d /dev/infiniband ] && echo infiniband_dir=yes || echo infiniband_dir=no
"""
IDENTITY = shell(_ASK, timeout_s=5)
SUDO = Command(("sudo", "-n", "true"), timeout_s=5)


@dataclass(frozen=True)
class Identity:
    """Empty text means that the host does not tell.

    server_address: the host's own end of our SSH connection; None outside of one.
    infiniband_dir: /dev/infiniband exists. cpu_count: processors online, 0 when unknown.
    """

    hostname: str
    machine_id: str
    user: str
    home: str
    product: str
    kernel: str
    architecture: str
    cpu_count: int
    server_address: IPv4Address | IPv6Address | None
    infiniband_dir: bool


def parse_identity(result: CommandResult) -> Identity | None:
    """None where not even the shell could be started as on Linux (no coreutils), which no Spark is.

    Raises UnexpectedOutput when a line is missing: then something else than a POSIX shell answered.

    Source: sshd(8) for SSH_CONNECTION (client address and port, server address and port);
    capture identity/<machine>--<case>.out.
    """
    if not result.ok:
        return None
    values = dict(line.split("=", 1) for line in result.stdout.splitlines() if "=" in line)
    count = values.get("cpu_count", "")
    try:
        return Identity(
            hostname=values["hostname"],
            machine_id=values["machine_id"],
            user=values["user"],
            home=values["home"],
            product=values["product"],
            kernel=values["kernel"],
            architecture=values["architecture"],
            cpu_count=int(count) if count.isdecimal() else 0,
            server_address=_server_address(values["connection"]),
            infiniband_dir=values["infiniband_dir"] == "yes",
        )
    except (KeyError, ValueError) as error:
        raise unexpected(result, "the shell") from error


def _server_address(connection: str) -> IPv4Address | IPv6Address | None:
    words = connection.split()
    if len(words) != 4:
        return None
    address = ip_address(words[2].partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
