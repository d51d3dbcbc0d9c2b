"""Sparks on wires, as facts: every way to cable them, on real cages and on the lab's veth pairs."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import Enum

from sparkctl.facts.model import Cage, HostFacts, Neighbour, Port
from tests.link_examples import mac, spark

End = tuple[str, Cage]
P0, P1 = Cage.P0, Cage.P1
A, B, C = "spark-a", "spark-b", "spark-c"
STRANGER = "stranger"


class Wire(Enum):
    """Who hears whom. SHARED: both twins of a cage share the cable. PAIRED: each twin has a cable of its own."""

    SHARED = "real cage"
    PAIRED = "veth"


def sparks(
    names: Sequence[str],
    wires: Iterable[Sequence[End]],
    *,
    style: Wire = Wire.SHARED,
    off: Iterable[tuple[str, str]] = (),
) -> dict[str, HostFacts]:
    """Facts of the named hosts. wires: ends that are joined, two for a cable, more for a switch.

    An end of the host `stranger` exists, but is not among the facts. off: (host, netdev) switched off by hand.
    """
    everybody = {name: spark(name, number, peer=0, cages=()) for number, name in enumerate((*names, STRANGER), 1)}
    switched_off = set(off)
    result = everybody
    for wire in wires:
        lit = {
            (name, port.netdev)
            for name, cage in wire
            for port in everybody[name].ports
            if port.cage is cage and _lit(everybody, wire, style, name, port, switched_off)
        }
        result = {name: _on_wire(facts, wire, lit, everybody, style) for name, facts in result.items()}
    for host, netdev in switched_off:
        ports = tuple(replace(port, admin_up=port.netdev != netdev) for port in result[host].ports)
        result[host] = replace(result[host], ports=ports)
    return {name: result[name] for name in names}


def _lit(
    everybody: dict[str, HostFacts],
    wire: Sequence[End],
    style: Wire,
    name: str,
    port: Port,
    switched_off: set[tuple[str, str]],
) -> bool:
    if style is Wire.SHARED:
        return (name, port.netdev) not in switched_off
    # A veth loses its carrier when either end is switched off.
    facing = [
        (other, candidate.netdev)
        for other, cage in wire
        for candidate in everybody[other].ports
        if candidate.cage is cage and candidate.pci_domain == port.pci_domain
    ]
    return switched_off.isdisjoint(facing)


def _on_wire(
    facts: HostFacts, wire: Sequence[End], lit: set[tuple[str, str]], everybody: dict[str, HostFacts], style: Wire
) -> HostFacts:
    ports, heard = [], list(facts.neighbours)
    for port in facts.ports:
        if (facts.host, port.netdev) not in lit:
            ports.append(port)
            continue
        ports.append(replace(port, carrier=True, speed_mbit_per_s=200_000))
        heard += [
            Neighbour(port.netdev, other.mac)
            for name, cage in wire
            for other in everybody[name].ports
            if other.cage is cage
            and (name, other.netdev) in lit
            and other.mac != port.mac
            and (style is Wire.SHARED or other.pci_domain == port.pci_domain)
        ]
    return replace(facts, ports=tuple(ports), neighbours=tuple(heard))


__all__ = ["P0", "P1", "STRANGER", "A", "B", "C", "End", "Wire", "mac", "sparks"]
