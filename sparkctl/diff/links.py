"""From what is and what should be to the changes of the links, and the refusal to overwrite other people's work."""

from collections.abc import Mapping
from ipaddress import IPv4Interface

from sparkctl.diff.change import AlignPort, Change, RestoreNetplan, WriteNetplan
from sparkctl.errors import AccessRefused, UnsafeRefused
from sparkctl.facts.model import HostFacts, Port
from sparkctl.plan.links import NETPLAN_PATH, HostLinks, LinkPlan, PlannedPort, our_addresses
from sparkctl.tools.netplan_yaml import parse_netplan

# Who writes which file (their own documentation); the remedy is theirs too.
_KNOWN_AUTHORS = {
    "40-cx7.yaml": "NVIDIA's playbook or setup script",
    "99-nvidia-sync-cluster.yaml": "NVIDIA Sync",
    "98-spark-vllm-docker.yaml": "spark-vllm-docker (undo with its `setup-cluster.sh --restore`)",
}


def diff_links(facts: Mapping[str, HostFacts], plan: LinkPlan) -> tuple[Change, ...]:
    """The changes that bring every host to plan, in plan order; empty when there is nothing to do.

    Not counted as a difference: ports without a rail, IPv6 addresses, the mode and owner of our file, comments in
    other people's files, files of others that give our ports no IPv4 address, the renderer, carrier and speed.

    Raises UnsafeRefused when somebody else configures one of our ports, AccessRefused when a host's netplan files
    cannot be read, UnexpectedOutput when one of them is not netplan YAML (netplan would then refuse all of them).
    """
    changes: list[Change] = []
    for links in plan.hosts:
        host = facts[links.host]
        _require_no_foreign(host, links)
        changes.extend(_host_changes(host, links))
    return tuple(changes)


def diff_links_down(facts: Mapping[str, HostFacts], before: Mapping[str, str | None]) -> tuple[Change, ...]:
    """The changes that put back what was there before sparkctl.

    before: per host with something of ours the former text of the file, None when there was no file. Hosts that are
    not in it are left alone. Not counted as a difference: everything but the bytes of the file.
    """
    changes: list[Change] = []
    for name, former in before.items():
        files = _readable_files(facts[name])
        present = files.get(NETPLAN_PATH)
        if present != former:
            changes.append(RestoreNetplan(name, NETPLAN_PATH, present, former))
    return tuple(changes)


def _host_changes(host: HostFacts, links: HostLinks) -> list[Change]:
    changes: list[Change] = []
    present = _readable_files(host).get(links.netplan_path)
    if present != links.netplan_text:
        changes.append(WriteNetplan(host.host, links.netplan_path, present, links.netplan_text))
    for planned in links.ports:
        port = host.port(planned.netdev)
        if port.addresses != (planned.address,) or port.mtu_bytes != planned.mtu_bytes or not port.admin_up:
            changes.append(_alignment(port, planned))
    return changes


def _alignment(port: Port, planned: PlannedPort) -> AlignPort:
    return AlignPort(
        host=planned.host,
        netdev=planned.netdev,
        old_addresses=port.addresses,
        new_addresses=(planned.address,),
        old_mtu_bytes=port.mtu_bytes,
        new_mtu_bytes=planned.mtu_bytes,
        old_admin_up=port.admin_up,
    )


def _require_no_foreign(host: HostFacts, links: HostLinks) -> None:
    ports = {planned.netdev: host.port(planned.netdev) for planned in links.ports}
    for path, text in sorted(_readable_files(host).items()):
        if path == links.netplan_path:
            continue
        for device in parse_netplan(text, path=path, host=host.host):
            taken = [
                name for name, port in ports.items() if device.addresses_something and device.covers(name, port.mac)
            ]
            if taken:
                _refuse_file(host.host, path, taken)
    ours = our_addresses(host)
    for planned in links.ports:
        foreign = _foreign_addresses(ports[planned.netdev], planned, ours.get(planned.netdev, ()))
        if foreign:
            _refuse_addresses(host.host, planned.netdev, foreign)


def _foreign_addresses(port: Port, planned: PlannedPort, ours: tuple[IPv4Interface, ...]) -> tuple[IPv4Interface, ...]:
    return tuple(address for address in port.addresses if address != planned.address and address not in ours)


def _refuse_file(host: str, path: str, netdevs: list[str]) -> None:
    author = _KNOWN_AUTHORS.get(path.rpartition("/")[2], "somebody else")
    raise UnsafeRefused(
        f"{path} by {author} already configures {' and '.join(netdevs)}; it is not overwritten",
        where=host,
        remedy=f"to let sparkctl take over, keep a copy and take the file away on {host}: "
        f"sudo mv {path} {path}.before-sparkctl && sudo netplan apply",
    )


def _refuse_addresses(host: str, netdev: str, addresses: tuple[IPv4Interface, ...]) -> None:
    words = ", ".join(str(address) for address in addresses)
    raise UnsafeRefused(
        f"{netdev} has {words}, which no netplan file explains; it was set by hand or by NetworkManager",
        where=host,
        remedy=f"if nothing needs it, on {host}: "
        + " && ".join(f"sudo ip addr del {address} dev {netdev}" for address in addresses),
    )


def _readable_files(host: HostFacts) -> Mapping[str, str]:
    if host.netplan_files is None:
        raise AccessRefused(
            "the netplan files cannot be read, so nobody can tell what would be overwritten",
            where=host.host,
            remedy=f"let {host.user} use sudo without a password on {host.host}",
        )
    return host.netplan_files
