"""What a lab consists of: nodes, cables, rates, and the names and addresses that follow from them."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from sparkctl.errors import UsageError
from sparkctl.facts.model import Cage

MANAGEMENT_NETDEV = "enP7s7"
DEFAULT_RAIL_MBIT_PER_S = 1000
# A /24 is taken from here for each lab; 253 nodes are more than anybody joins.
LAB_NETWORKS = IPv4Network("10.213.0.0/16")
SWITCH = "switch"

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")
_FIRST_NODE_HOST = 11


@dataclass(frozen=True)
class LabPort:
    """One ConnectX-7 netdev of a node and the hardware identity it shows.

    half: 0 for the PCI domain 0000, 1 for its twin in domain 0002. Both halves of a cage share one cable.
    Source: PB-CONN; DAQ pull request 108 (naming map of the ConnectX-7 in a Spark).
    """

    netdev: str
    cage: Cage
    half: int
    pci_address: str
    rdma_device: str


PORTS = (
    LabPort("enp1s0f0np0", Cage.P0, 0, "0000:01:00.0", "rocep1s0f0"),
    LabPort("enP2p1s0f0np0", Cage.P0, 1, "0002:01:00.0", "roceP2p1s0f0"),
    LabPort("enp1s0f1np1", Cage.P1, 0, "0000:01:00.1", "rocep1s0f1"),
    LabPort("enP2p1s0f1np1", Cage.P1, 1, "0002:01:00.1", "roceP2p1s0f1"),
)


@dataclass(frozen=True)
class CableEnd:
    """One end of a cable: a cage of a node."""

    node: str
    cage: Cage

    def __str__(self) -> str:
        return f"{self.node}:{self.cage}"


@dataclass(frozen=True)
class Cable:
    """A cable between two cages; `b` is None when it leads to the lab's switch, which joins all such cables."""

    a: CableEnd
    b: CableEnd | None

    @property
    def ends(self) -> tuple[CableEnd, ...]:
        """The ends at nodes: two, or one if the other is at the switch."""
        return (self.a,) if self.b is None else (self.a, self.b)

    def __str__(self) -> str:
        return f"{self.a}={self.b or SWITCH}"


@dataclass(frozen=True)
class Bind:
    """A directory of this machine shown read-only at `node_path` in every node."""

    host_path: str
    node_path: str


@dataclass(frozen=True)
class LabSpec:
    """Everything a lab is made from. Two equal specs make interchangeable labs.

    nodes: host names, in order. rail_mbit_per_s: ceiling of each rail, in each direction.
    """

    name: str
    nodes: tuple[str, ...]
    cables: tuple[Cable, ...]
    rail_mbit_per_s: int = DEFAULT_RAIL_MBIT_PER_S
    binds: tuple[Bind, ...] = ()


def check_lab_name(name: str) -> str:
    """Return `name`; raises UsageError unless it can be part of paths, host names and namespaces."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"`{name}` cannot be the name of a lab or node",
            remedy="use up to 32 lower-case letters, digits and inner hyphens, such as `--name lab`",
        )
    return name


def plan_lab(
    name: str = "lab",
    *,
    nodes: int = 2,
    cables: tuple[str, ...] | None = None,
    rail_mbit_per_s: int = DEFAULT_RAIL_MBIT_PER_S,
    binds: tuple[tuple[str, str], ...] = (),
) -> LabSpec:
    """A checked lab with nodes spark-1, spark-2, ...

    cables: texts such as `spark-1:p0=spark-2:p1` or `spark-1:p0=switch`. None takes the usual cabling: two
    nodes back to back on p0, three in a ring, more on a switch; an empty tuple leaves every port dark.
    binds: (absolute path here, absolute path in the node), shown read-only.
    Raises UsageError for whatever cannot be built.
    """
    check_lab_name(name)
    if not 1 <= nodes <= 16:
        raise UsageError(f"a lab of {nodes} nodes cannot be built", remedy="use `--nodes` with 1 to 16")
    if not 1 <= rail_mbit_per_s <= 30_000:
        raise UsageError(
            f"a rail of {rail_mbit_per_s} Mbit/s cannot be built", remedy="use `--rail-rate` with 1 to 30000 Mbit/s"
        )
    for host_path, node_path in binds:
        if not (host_path.startswith("/") and node_path.startswith("/")) or ":" in host_path + node_path:
            raise UsageError(
                f"`{host_path}` cannot be shown at `{node_path}`", remedy="give two absolute paths without colons"
            )
    names = tuple(f"spark-{number}" for number in range(1, nodes + 1))
    joined = _default_cables(names) if cables is None else tuple(parse_cable(text) for text in cables)
    _check_cables(joined, names)
    return LabSpec(name, names, joined, rail_mbit_per_s, tuple(Bind(host, node) for host, node in binds))


def parse_cable(text: str) -> Cable:
    """A cable from `NODE:CAGE=NODE:CAGE` or `NODE:CAGE=switch`; raises UsageError for anything else."""
    first, _, second = text.partition("=")
    try:
        a = _parse_end(first)
        b = None if second == SWITCH else _parse_end(second)
    except ValueError as error:
        raise UsageError(f"`{text}` is not a cable", remedy="write it like `--cable spark-1:p0=spark-2:p1`") from error
    return Cable(a, b)


def cable_of(spec: LabSpec, node: str, cage: Cage) -> Cable | None:
    """The cable in this cage; None when the cage is empty."""
    return next((cable for cable in spec.cables if CableEnd(node, cage) in cable.ends), None)


def cable_serial(spec: LabSpec, cable: Cable) -> str:
    """The serial number both ends of a cable show: one number means one cable."""
    return "LAB" + _digest(spec.name, str(cable))[:10].upper()


def port_named(netdev: str) -> LabPort:
    """The port with this netdev name; raises UsageError if a Spark has none such."""
    for port in PORTS:
        if port.netdev == netdev:
            return port
    names = ", ".join(port.netdev for port in PORTS)
    raise UsageError(f"`{netdev}` is no rail of a Spark", remedy=f"use one of {names}")


def node_index(spec: LabSpec, node: str) -> int:
    """Position of a node in its lab, from 0; raises UsageError if the lab has no such node."""
    if node not in spec.nodes:
        raise UsageError(f"lab `{spec.name}` has no node `{node}`", remedy=f"use one of {', '.join(spec.nodes)}")
    return spec.nodes.index(node)


def choose_network(taken: Iterable[IPv4Network]) -> IPv4Network:
    """The first free /24 for management; raises UsageError if none is left.

    taken: networks that this machine routes to or that other labs use.
    """
    used = tuple(taken)
    for network in LAB_NETWORKS.subnets(new_prefix=24):
        if not any(network.overlaps(other) for other in used):
            return network
    raise UsageError(
        f"no free /24 is left in {LAB_NETWORKS} for the lab's management network",
        remedy="stop a lab you no longer need with `sparkctl lab down --name NAME`, or remove the route",
    )


def controller_address(network: IPv4Network) -> IPv4Address:
    """The address that this machine has on the management network."""
    return network[1]


def node_address(network: IPv4Network, index: int) -> IPv4Address:
    """The management address of the node at `index`, counted from 0."""
    return network[_FIRST_NODE_HOST + index]


def node_mac(spec: LabSpec, node: str, netdev: str) -> str:
    """A stable, locally administered hardware address, different for every netdev of every lab."""
    digest = _digest(spec.name, node, netdev)
    return ":".join(["02", *(digest[i : i + 2] for i in range(0, 10, 2))])


def node_namespace(lab: str, node: str) -> str:
    """Name of a node's network namespace, as `ip netns list` shows it."""
    return f"{namespace_prefix(lab)}{node}"


def cables_namespace(lab: str) -> str:
    """Name of the hidden namespace that holds the far ends of all ports; no node can be called so."""
    return f"{namespace_prefix(lab)}_cables"


def namespace_prefix(lab: str) -> str:
    """What the names of all network namespaces of a lab begin with, and of no other lab."""
    return f"sparklab.{lab}."


def controller_netdev(lab: str) -> str:
    """The one netdev of a lab in this machine's own namespace; within the 15 characters of IFNAMSIZ."""
    return f"sparklab{_digest(lab)[:6]}"


def machine_id(spec: LabSpec, node: str) -> str:
    """The systemd machine id of a node: 32 hexadecimal digits, see machine-id(5)."""
    return _digest("machine-id", spec.name, node)[:32]


def _default_cables(nodes: tuple[str, ...]) -> tuple[Cable, ...]:
    if len(nodes) == 1:
        return ()
    if len(nodes) == 2:
        return (Cable(CableEnd(nodes[0], Cage.P0), CableEnd(nodes[1], Cage.P0)),)
    if len(nodes) == 3:
        following = (*nodes[1:], nodes[0])
        return tuple(
            Cable(CableEnd(node, Cage.P0), CableEnd(after, Cage.P1))
            for node, after in zip(nodes, following, strict=True)
        )
    return tuple(Cable(CableEnd(node, Cage.P0), None) for node in nodes)


def _check_cables(cables: tuple[Cable, ...], nodes: tuple[str, ...]) -> None:
    used: set[CableEnd] = set()
    for cable in cables:
        for end in cable.ends:
            if end.node not in nodes:
                raise UsageError(
                    f"cable `{cable}` leads to `{end.node}`, which is not in the lab",
                    remedy=f"use one of {', '.join(nodes)}, or more `--nodes`",
                )
            if end in used:
                raise UsageError(
                    f"two cable ends are in {end}", remedy="give each cage one cable at most with `--cable`"
                )
            used.add(end)


def _parse_end(text: str) -> CableEnd:
    node, _, cage = text.partition(":")
    return CableEnd(node, Cage(cage))


def _digest(*parts: str) -> str:
    return hashlib.sha256("/".join(parts).encode()).hexdigest()
