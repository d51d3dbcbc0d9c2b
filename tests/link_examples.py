"""Two Sparks with one cable, as facts: the starting point of the tests of links."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from sparkctl.facts.model import Cage, HostFacts, Neighbour, Port
from sparkctl.inventory.model import Cluster, Host
from sparkctl.plan.cabling import Cabling
from sparkctl.plan.links import LinkPlan, plan_links
from sparkctl.plan.topology import assemble_cabling
from tests.spark_example import bare_spark, route

TEMPLATE = (Path(__file__).parents[1] / "templates" / "netplan.yaml.j2").read_text()
CLUSTER = Cluster("desk", (Host("spark-a", "192.0.2.11"), Host("spark-b", "192.0.2.12")))
A, B = "spark-a", "spark-b"
FIRST, TWIN = "enp1s0f0np0", "enP2p1s0f0np0"
_PORTS = (
    (FIRST, "0000:01:00.0", Cage.P0, "rocep1s0f0"),
    ("enp1s0f1np1", "0000:01:00.1", Cage.P1, "rocep1s0f1"),
    (TWIN, "0002:01:00.0", Cage.P0, "roceP2p1s0f0"),
    ("enP2p1s0f1np1", "0002:01:00.1", Cage.P1, "roceP2p1s0f1"),
)


def mac(number: int, index: int) -> str:
    return f"02:00:00:00:{number:02x}:{index:02x}"


def spark(name: str, number: int, *, peer: int, cages: tuple[Cage, ...] = (Cage.P0,)) -> HostFacts:
    """A Spark nobody has configured. number: its own; peer: of the one that its `cages` are cabled to, same cage."""
    ports = tuple(
        Port(netdev, pci, cage, rdma, mac(number, index), 1500, True, cage in cages, 200_000 if cage in cages else None)
        for index, (netdev, pci, cage, rdma) in enumerate(_PORTS)
    )
    heard = tuple(Neighbour(port.netdev, mac(peer, index)) for index, port in enumerate(ports) if port.carrier)
    return replace(bare_spark(name, number), ports=ports, neighbours=heard)


def pair(cages: tuple[Cage, ...] = (Cage.P0,)) -> dict[str, HostFacts]:
    return {A: spark(A, 1, peer=2, cages=cages), B: spark(B, 2, peer=1, cages=cages)}


def changed(facts: Mapping[str, HostFacts], host: str, **fields: object) -> dict[str, HostFacts]:
    """The same facts with fields of one host replaced."""
    return {**facts, host: replace(facts[host], **fields)}  # type: ignore[arg-type]  # the caller knows the types


def with_port(facts: Mapping[str, HostFacts], host: str, netdev: str, **fields: object) -> dict[str, HostFacts]:
    """The same facts with fields of one port replaced."""
    ports = tuple(
        replace(port, **fields) if port.netdev == netdev else port  # type: ignore[arg-type]  # as above
        for port in facts[host].ports
    )
    return changed(facts, host, ports=ports)


def cabling(facts: Mapping[str, HostFacts]) -> Cabling:
    return assemble_cabling(facts, [host.name for host in CLUSTER.hosts])


def plan(facts: Mapping[str, HostFacts], cluster: Cluster = CLUSTER) -> LinkPlan:
    return plan_links(cluster, facts, cabling(facts), TEMPLATE)


def applied(facts: Mapping[str, HostFacts], wanted: LinkPlan) -> dict[str, HostFacts]:
    """The facts after the plan was carried out: files, addresses, MTU and the routes that come with them."""
    result = dict(facts)
    for links in wanted.hosts:
        host = result[links.host]
        files = {**(host.netplan_files or {}), links.netplan_path: links.netplan_text}
        routes = (*host.routes, *(route(str(port.address), port.netdev) for port in links.ports))
        result = changed(result, links.host, netplan_files=files, routes=routes)
        for port in links.ports:
            result = with_port(result, links.host, port.netdev, addresses=(port.address,), mtu_bytes=port.mtu_bytes)
    return result
