"""The wanted state of the links: which port gets which address, and the netplan text of each host."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv4Network

from jinja2 import Environment, StrictUndefined

from sparkctl.errors import OperationFailed, UnsafeRefused, UsageError
from sparkctl.facts.model import HostFacts
from sparkctl.inventory.model import Cluster
from sparkctl.plan.cabling import Cable, Cabling, Rail, RailEnd, Topology
from sparkctl.tools.netplan_yaml import parse_netplan

# After NVIDIA's 40-cx7.yaml, so that ours wins where both name a port, and before Sync's 99-… and
# spark-vllm-docker's 98-…, which are recognised and never overwritten.
NETPLAN_PATH = "/etc/netplan/60-sparkctl-links.yaml"
# How our file begins (templates/netplan.yaml.j2); a file of somebody else at this path does not.
_MARK = "# Written by sparkctl"
# NemoClaw wants one private /30 per rail between two nodes.
RAIL_PREFIX_LENGTH = 30
# Both twins of a cage (SYNC): one PCIe 5.0 x4 function alone cannot fill the port.
RAILS_PER_CABLE = 2
# A VPN that takes all traffic announces 0.0.0.0/1 and 128.0.0.0/1: default routes in disguise, not neighbours.
_LONGEST_DEFAULT_PREFIX = 1
_PLANNED_TOPOLOGIES = frozenset({Topology.DIRECT, Topology.DUAL})


@dataclass(frozen=True)
class PlannedPort:
    """How one end of a rail should be. peer_*: the far end of the same rail, in the same subnet."""

    host: str
    netdev: str
    rdma_device: str | None
    address: IPv4Interface
    mtu_bytes: int
    peer_host: str
    peer_netdev: str
    peer_address: IPv4Address


@dataclass(frozen=True)
class HostLinks:
    """All planned ports of one host, in the order of cables and PCI domains, and the netplan file that makes them so.

    netplan_text: the whole file, mode 0600, ends with a newline.
    """

    host: str
    ports: tuple[PlannedPort, ...]
    netplan_path: str
    netplan_text: str


@dataclass(frozen=True)
class LinkPlan:
    """The wanted state of all links of a cluster; hosts in inventory order, only those with a cable.

    rails: (end of the earlier host, end of the later host) in the order of cables and PCI domains.
    expect_gbit_per_s: what all rails between two hosts carry together: a second cable adds no speed (PB-CONN).
    """

    topology: Topology
    hosts: tuple[HostLinks, ...]
    rails: tuple[tuple[PlannedPort, PlannedPort], ...]
    mtu_bytes: int
    expect_gbit_per_s: float

    def of(self, host: str) -> HostLinks:
        """The part of one host. Raises KeyError when the plan does not concern it."""
        for links in self.hosts:
            if links.host == host:
                return links
        raise KeyError(host)


def plan_links(cluster: Cluster, facts: Mapping[str, HostFacts], cabling: Cabling, template_text: str) -> LinkPlan:
    """One subnet per rail, both twins addressed, the earlier host of the inventory gets the lower address.

    facts: of every host of the cluster, by name. template_text: Jinja source of the netplan file, gets `host` and
    `ports`. A rail keeps the subnet that its ports have already, so a second plan equals the first.

    Raises OperationFailed without a usable cable, UsageError for a layout that is not planned yet or a pool that is
    too small, UnsafeRefused when a rail would be the management connection or the pool is in use elsewhere.
    """
    _require_plannable(cluster, facts, cabling)
    rails = [(cable, rail) for cable in cabling.cables for rail in cable.rails]
    ends = [end for _, rail in rails for end in (rail.a, rail.b)]
    for end in ends:
        _require_not_management(facts[end.host], end.netdev)
    subnets = _choose_subnets(cluster.links.pool, facts, [rail for _, rail in rails])
    pairs = tuple(
        _planned_pair(cable, rail, subnet, cluster.links.mtu_bytes)
        for (cable, rail), subnet in zip(rails, subnets, strict=True)
    )
    hosts = tuple(
        _host_links(host.name, tuple(port for pair in pairs for port in pair if port.host == host.name), template_text)
        for host in cluster.hosts
        if any(end.host == host.name for end in ends)
    )
    return LinkPlan(cabling.topology, hosts, pairs, cluster.links.mtu_bytes, cluster.links.expect_gbit_per_s)


def bears_our_mark(text: str) -> bool:
    """Whether a netplan file was written by sparkctl."""
    return text.startswith(_MARK)


def our_addresses(facts: HostFacts) -> Mapping[str, tuple[IPv4Interface, ...]]:
    """The addresses in our netplan file on this host, per netdev; empty without such a file.

    Raises UnexpectedOutput when the file is there but is not netplan YAML.
    """
    text = (facts.netplan_files or {}).get(NETPLAN_PATH)
    if text is None:
        return {}
    return {device.name: device.addresses for device in parse_netplan(text, path=NETPLAN_PATH, host=facts.host)}


def _require_plannable(cluster: Cluster, facts: Mapping[str, HostFacts], cabling: Cabling) -> None:
    names = " and ".join(host.name for host in cluster.hosts)
    if len(cluster.hosts) < 2:
        raise UsageError(
            f"a link needs two hosts, this is about {names or 'none'}", remedy="name two hosts in the inventory"
        )
    if cabling.topology is Topology.NONE or not cabling.cables:
        raise OperationFailed(
            f"no cable found between {names}",
            remedy="plug a QSFP112 cable into the same cage of both machines, wait 20 s, then `sparkctl discover`",
        )
    if cabling.topology not in _PLANNED_TOPOLOGIES:
        raise UsageError(
            f"the cabling is `{cabling.topology}`, which is not planned yet; planned are: "
            + ", ".join(sorted(_PLANNED_TOPOLOGIES)),
            remedy="name two hosts that are joined by a cable: `--host NAME --host NAME`",
        )
    for cable in cabling.cables:
        if len(cable.rails) != RAILS_PER_CABLE:
            _refuse_dark_twin(cable, facts)


def _refuse_dark_twin(cable: Cable, facts: Mapping[str, HostFacts]) -> None:
    dark = [
        f"{host}:{port.netdev} ({'no carrier' if port.admin_up else 'set down'})"
        for host, cage in ((cable.host_a, cable.cage_a), (cable.host_b, cable.cage_b))
        for port in facts[host].ports
        if port.cage is cage and not (port.admin_up and port.carrier)
    ]
    raise OperationFailed(
        f"only {len(cable.rails)} of {RAILS_PER_CABLE} rails of the cable {cable} is up; dark: "
        f"{', '.join(dark) or 'unknown'}. Half of the speed would be lost",
        remedy="`sudo ip link set NETDEV up` for a port that is set down, else reseat the cable at both ends; "
        "`sparkctl discover` shows the ports",
    )


def _require_not_management(facts: HostFacts, netdev: str) -> None:
    if facts.management_netdev is None:
        raise UnsafeRefused(
            "cannot tell which interface the management connection arrives on, so nothing may be changed",
            where=facts.host,
            remedy=f"reach {facts.host} by an address of its own management network (`address:` in the inventory)",
        )
    if netdev == facts.management_netdev:
        raise UnsafeRefused(
            f"the management connection arrives on {netdev}, which is a rail; changing it could lose the machine",
            where=facts.host,
            remedy="put an address on enP7s7 or Wi-Fi into the inventory (`address:`), not one of a rail",
        )
    if any(route.netdev == netdev and _is_default(route.destination) for route in facts.routes):
        raise UnsafeRefused(
            f"the default route leaves by {netdev}, which is a rail; changing it could cut the machine off",
            where=facts.host,
            remedy=f"move the default route of {facts.host} to its management network first",
        )


def _choose_subnets(
    pool: IPv4Network, facts: Mapping[str, HostFacts], rails: Sequence[Rail]
) -> tuple[IPv4Network, ...]:
    kept = [_present_subnet(pool, facts, rail) for rail in rails]
    # Two rails that claim one subnet (twins in one subnet) cannot both keep it.
    chosen = [
        subnet if subnet is not None and kept.index(subnet) == index else None for index, subnet in enumerate(kept)
    ]
    free = _free_subnets(pool, facts, taken=[subnet for subnet in chosen if subnet is not None])
    filled: list[IPv4Network] = []
    for subnet in chosen:
        choice = subnet or next(free, None)
        if choice is None:
            raise UnsafeRefused(
                f"the pool {pool} has no {len(rails)} subnets that are free on every node{_occupant(pool, facts)}",
                remedy="choose another private network: `links: {pool: 10.201.0.0/16}` in the inventory",
            )
        filled.append(choice)
    return tuple(filled)


def _present_subnet(pool: IPv4Network, facts: Mapping[str, HostFacts], rail: Rail) -> IPv4Network | None:
    """The subnet that this rail has already by our file or by running addresses, if it is still fit for use."""
    claims: list[IPv4Network] = []
    for end in (rail.a, rail.b):
        host = facts[end.host]
        running = next((port.addresses for port in host.ports if port.netdev == end.netdev), ())
        claims.extend(address.network for address in (*our_addresses(host).get(end.netdev, ()), *running))
    for subnet in claims:
        if subnet.prefixlen != RAIL_PREFIX_LENGTH or not subnet.subnet_of(pool):
            continue
        ends = {(rail.a.host, rail.a.netdev), (rail.b.host, rail.b.netdev)}
        if not any(
            network.overlaps(subnet) and (name, netdev) not in ends for name, netdev, network in _occupied(facts)
        ):
            return subnet
    return None


def _free_subnets(
    pool: IPv4Network, facts: Mapping[str, HostFacts], taken: Sequence[IPv4Network]
) -> Iterator[IPv4Network]:
    if pool.prefixlen > RAIL_PREFIX_LENGTH:
        return
    occupied = [network for _, _, network in _occupied(facts)]
    if any(pool.subnet_of(network) for network in occupied):
        return
    blocked = [network for network in (*occupied, *taken) if network.overlaps(pool)]
    for subnet in pool.subnets(new_prefix=RAIL_PREFIX_LENGTH):
        if not any(subnet.overlaps(network) for network in blocked):
            yield subnet


def _occupied(facts: Mapping[str, HostFacts]) -> Iterator[tuple[str, str, IPv4Network]]:
    """(host, netdev, network) of every route and address of every node, default routes left out."""
    for host in facts.values():
        for route in host.routes:
            if not _is_default(route.destination):
                yield host.host, route.netdev, route.destination
        for port in host.ports:
            for address in port.addresses:
                yield host.host, port.netdev, address.network


def _occupant(pool: IPv4Network, facts: Mapping[str, HostFacts]) -> str:
    for name, netdev, network in _occupied(facts):
        if network.overlaps(pool):
            return f"; {name} has {network} on {netdev}"
    return ""


def _is_default(destination: IPv4Network) -> bool:
    return destination.prefixlen <= _LONGEST_DEFAULT_PREFIX


def _planned_pair(cable: Cable, rail: Rail, subnet: IPv4Network, mtu_bytes: int) -> tuple[PlannedPort, PlannedPort]:
    near, far = rail.end(cable.host_a), rail.peer(cable.host_a)
    low, high = list(subnet.hosts())[:2]
    return (
        _planned_port(near, far, low, high, subnet, mtu_bytes),
        _planned_port(far, near, high, low, subnet, mtu_bytes),
    )


def _planned_port(
    end: RailEnd, peer: RailEnd, own: IPv4Address, other: IPv4Address, subnet: IPv4Network, mtu_bytes: int
) -> PlannedPort:
    return PlannedPort(
        host=end.host,
        netdev=end.netdev,
        rdma_device=end.rdma_device,
        address=IPv4Interface((own, subnet.prefixlen)),
        mtu_bytes=mtu_bytes,
        peer_host=peer.host,
        peer_netdev=peer.netdev,
        peer_address=other,
    )


def _host_links(host: str, ports: tuple[PlannedPort, ...], template_text: str) -> HostLinks:
    # The text becomes YAML, not HTML; escaping would damage it.
    environment = Environment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)  # noqa: S701
    text = environment.from_string(template_text).render(host=host, ports=ports)
    return HostLinks(host, ports, NETPLAN_PATH, text)
