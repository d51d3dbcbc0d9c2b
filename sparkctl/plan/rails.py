"""Which rails carry a group of ranks, read from the addresses that the hosts have: whoever put them there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from sparkctl.errors import OperationFailed
from sparkctl.facts.model import HostFacts, Port


@dataclass(frozen=True)
class RailAddress:
    """One host's end of a rail: netdev, RDMA device (None when the kernel shows none) and own address."""

    netdev: str
    rdma_device: str | None
    address: IPv4Address


def serving_rails(facts: Sequence[HostFacts]) -> Mapping[str, tuple[RailAddress, ...]]:
    """Per host its ends of the rails that reach all of `facts`; same order of rails on every host.

    A rail is a subnet in which every host has a ConnectX-7 port with a live partner. So a link that Sync, NVIDIA's
    guide or spark-vllm-docker configured serves as well as ours.
    Raises OperationFailed when no rail joins all hosts.
    """
    first, *others = facts
    chosen: dict[str, list[RailAddress]] = {host.host: [] for host in facts}
    used: set[tuple[str, str]] = set()
    for port, address, network in _ends(first):
        partners = [_end_in(host, network, used) for host in others]
        if any(partner is None for partner in partners):
            continue
        chosen[first.host].append(RailAddress(port.netdev, port.rdma_device, address))
        for host, partner in zip(others, partners, strict=True):
            if partner is not None:
                used.add((host.host, partner.netdev))
                chosen[host.host].append(partner)
    if not chosen[first.host]:
        names = ", ".join(host.host for host in facts)
        raise OperationFailed(
            f"no rail with addresses joins {names}", remedy="`sparkctl link up`, then `sparkctl link status`"
        )
    return {host: tuple(rails) for host, rails in chosen.items()}


def _ends(host: HostFacts) -> list[tuple[Port, IPv4Address, IPv4Network]]:
    return [
        (port, interface.ip, interface.network)
        for port in host.ports
        if port.carrier and port.admin_up
        for interface in port.addresses
    ]


def _end_in(host: HostFacts, network: IPv4Network, used: set[tuple[str, str]]) -> RailAddress | None:
    for port, address, own_network in _ends(host):
        # Both twins may share one /24 (NVIDIA's older setup program); then each pairs with the next one left.
        if own_network == network and (host.host, port.netdev) not in used:
            return RailAddress(port.netdev, port.rdma_device, address)
    return None
