"""Which cage is cabled to which, from who hears whom before any address is set.

Both twins of a cage share one cable, so a twin may hear its own sibling and both twins of the far cage (real
hardware) or only the facing twin (veth pairs). Hearing is therefore joined per cage before anything is decided.
"""

from collections.abc import Iterable, Mapping, Sequence

from sparkctl.facts.model import Cage, HostFacts, Port
from sparkctl.plan.cabling import Cable, Cabling, CageEnd, Rail, RailEnd, Topology

# NVIDIA plans rings of three and nothing larger without a switch (PB-3, PB-SCS).
_RING_HOSTS = 3


def assemble_cabling(facts: Mapping[str, HostFacts], order: Sequence[str]) -> Cabling:
    """Cables, switches and strange neighbours of the hosts in `facts`.

    order: host names in inventory order; hosts without facts are left out. Cables are sorted by their ends in that
    order, rails by PCI domain. A cage that hears more than one other cage, or a stranger besides one of ours, is on a
    switch. A port whose cage is unknown takes no part.
    """
    hosts = [name for name in order if name in facts]
    ends = [CageEnd(name, cage) for name in hosts for cage in Cage if cage_ports(facts[name], cage)]
    heard, strange = _hearing(facts, hosts)
    cables: list[Cable] = []
    switches: list[tuple[CageEnd, ...]] = []
    self_cabled: list[str] = []
    for group in _groups(ends, heard):
        match group:
            case (a, b) if a.host == b.host and not strange & {a, b}:
                self_cabled.append(a.host)
            case (a, b) if a.host != b.host and not strange & {a, b}:
                cables.append(_cable(facts, a, b))
            case (_, _, *_):
                switches.append(group)
    alone = {end for group in _groups(ends, heard) if len(group) == 1 for end in group}
    return Cabling(
        topology=_topology(cables, switches),
        cables=tuple(cables),
        switches=tuple(switches),
        self_cabled=tuple(self_cabled),
        strangers=tuple(end for end in ends if end in strange and end in alone),
    )


def cage_ports(facts: HostFacts, cage: Cage) -> tuple[Port, ...]:
    """The functions of one cage in PCI order: two on a Spark; empty when there are none."""
    return tuple(port for port in facts.ports if port.cage is cage)


def _hearing(
    facts: Mapping[str, HostFacts], hosts: Iterable[str]
) -> tuple[Mapping[CageEnd, set[CageEnd]], set[CageEnd]]:
    """Who hears whom of ours (never itself), and which cages hear somebody who is not ours."""
    owner: dict[str, CageEnd] = {}
    ours: set[str] = set()
    for name in hosts:
        for port in facts[name].ports:
            ours.add(port.mac)
            if port.cage is not None:
                owner[port.mac] = CageEnd(name, port.cage)
    heard: dict[CageEnd, set[CageEnd]] = {}
    strange: set[CageEnd] = set()
    for name in hosts:
        cage_of = {port.netdev: port.cage for port in facts[name].ports}
        for neighbour in facts[name].neighbours:
            cage = cage_of.get(neighbour.netdev)
            if cage is None:
                continue
            end = CageEnd(name, cage)
            if neighbour.mac not in ours:
                strange.add(end)
            elif neighbour.mac in owner and owner[neighbour.mac] != end:
                heard.setdefault(end, set()).add(owner[neighbour.mac])
    return heard, strange


def _groups(ends: Sequence[CageEnd], heard: Mapping[CageEnd, set[CageEnd]]) -> tuple[tuple[CageEnd, ...], ...]:
    """The cages that are joined somehow, each group and the groups in the order of `ends`. One direction suffices:
    the other may have been lost.
    """
    joined: dict[CageEnd, set[CageEnd]] = {end: {end} for end in ends}
    for end, others in heard.items():
        for other in others:
            merged = joined[end] | joined[other]
            for member in merged:
                joined[member] = merged
    seen: set[CageEnd] = set()
    groups: list[tuple[CageEnd, ...]] = []
    for end in ends:
        if end not in seen:
            group = tuple(member for member in ends if member in joined[end])
            seen.update(group)
            groups.append(group)
    return tuple(groups)


def _cable(facts: Mapping[str, HostFacts], a: CageEnd, b: CageEnd) -> Cable:
    near = {port.pci_domain: port for port in cage_ports(facts[a.host], a.cage) if _lit(port)}
    far = {port.pci_domain: port for port in cage_ports(facts[b.host], b.cage) if _lit(port)}
    rails = tuple(
        Rail(domain, _rail_end(a.host, near[domain]), _rail_end(b.host, far[domain]))
        for domain in sorted(near.keys() & far.keys())
    )
    return Cable(a.host, a.cage, b.host, b.cage, rails)


def _lit(port: Port) -> bool:
    return port.admin_up and port.carrier


def _rail_end(host: str, port: Port) -> RailEnd:
    return RailEnd(host, port.netdev, port.rdma_device, port.mac)


def _topology(cables: Sequence[Cable], switches: Sequence[tuple[CageEnd, ...]]) -> Topology:
    if switches:
        return Topology.MIXED if cables else Topology.SWITCH
    pairs = {(cable.host_a, cable.host_b) for cable in cables}
    hosts = {name for pair in pairs for name in pair}
    match len(cables), len(pairs), len(hosts):
        case 0, _, _:
            return Topology.NONE
        case 1, 1, _:
            return Topology.DIRECT
        case 2, 1, _:
            return Topology.DUAL
        case 3, 3, count if count == _RING_HOSTS:
            return Topology.RING
    return Topology.MIXED
