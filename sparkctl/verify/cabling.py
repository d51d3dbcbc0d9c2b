"""Judges the cabling: cables that are missing, half lit, too slow or that lead to the wrong machine."""

from collections.abc import Iterator, Mapping

from sparkctl.facts.model import Cage, HostFacts, Port
from sparkctl.plan.cabling import Cable, Cabling, CageEnd, Topology
from sparkctl.plan.topology import cage_ports
from sparkctl.report.finding import Finding, Severity

# Approved by NVIDIA: QSFP112 DACs of the 200G/400G class.
_CABLE_WORDS = "a QSFP112 DAC cable"
_RAILS_PER_CABLE = 2
_LAYOUT_WORDS = {
    Topology.DUAL: "a second cable between two Sparks adds no speed: both cages share 200 Gbit/s (PB-CONN)",
    Topology.RING: "three Sparks in a ring",
    Topology.SWITCH: "the Sparks hear each other through a switch",
}


def judge_cabling(facts: Mapping[str, HostFacts], cabling: Cabling, *, expect_gbit_per_s: float) -> tuple[Finding, ...]:
    """What is wrong with the cables of these hosts; first hosts without a cable, then cable by cable, then the layout.

    Hosts without ConnectX ports that are no Sparks are passed over. A single Spark needs no cable.
    """
    sparks = {name: host for name, host in facts.items() if host.is_spark or host.ports}
    joined = {end for cable in cabling.cables for end in ends_of(cable)}
    joined |= {end for switch in cabling.switches for end in switch}
    findings: list[Finding] = []
    for host in sparks.values():
        findings += _judge_unknown_cages(host)
        has_cable = any(end.host == host.host for end in joined)
        if not has_cable:
            findings.append(_no_cable(host, cabling, alone=len(sparks) == 1))
        findings += _judge_other_cages(host, cabling, joined, has_cable=has_cable)
    for cable in cabling.cables:
        findings += _judge_cable(facts, cable, expect_gbit_per_s)
    findings += _judge_layout(cabling)
    return tuple(findings)


def ends_of(cable: Cable) -> tuple[CageEnd, CageEnd]:
    """Both ends of a cable, the earlier host first."""
    return CageEnd(cable.host_a, cable.cage_a), CageEnd(cable.host_b, cable.cage_b)


def _judge_unknown_cages(host: HostFacts) -> Iterator[Finding]:
    for port in host.ports:
        if port.cage is None:
            yield Finding(
                Severity.UNKNOWN,
                "link.cage-unknown",
                f"{host.host}:{port.netdev}",
                "cannot tell which cage this port belongs to",
                cause=f"/sys/class/net/{port.netdev}/phys_port_name is empty and the name does not end in np0 or np1",
                remedy="update the mlx5 driver, or give the port back its name by removing udev rules that rename it",
            )


def _no_cable(host: HostFacts, cabling: Cabling, *, alone: bool) -> Finding:
    """Why a host has no cable to another one; for a single Spark that is only information."""
    severity = Severity.INFO if alone else Severity.FAIL
    lit = [port for port in host.ports if port.carrier]
    off = [port for port in host.ports if not port.admin_up]
    if not host.ports:
        return Finding(
            severity,
            "link.nic-absent",
            host.host,
            "no ConnectX-7 on the PCI bus, so no cable to another Spark",
            cause="without a cable the NIC leaves the bus to save 12 W; a bug in firmware 28.45.4028 also does it",
            remedy=f"plug {_CABLE_WORDS} in and wait 20 s; if the NIC stays away: journalctl -b | grep -i mtk-hotplug",
        )
    if host.host in cabling.self_cabled:
        return Finding(
            Severity.FAIL,
            "link.self-cabled",
            host.host,
            "the cable joins the two cages of the same machine",
            expected="a cable to another Spark",
            remedy="move one end of the cable to the other Spark",
        )
    stranger = next((end for end in cabling.strangers if end.host == host.host), None)
    if stranger is not None:
        return _stranger(stranger, severity)
    if lit:
        return _silent(host, lit[0], severity)
    if off:
        names = " ".join(port.netdev for port in off)
        return Finding(
            severity,
            "link.port-down",
            host.host,
            f"no cable seen, because ports are switched off: {names}",
            remedy=f"on {host.host}: for d in {names}; do sudo ip link set $d up; done",
        )
    return Finding(
        severity,
        "link.no-cable",
        host.host,
        "no live cable in any cage",
        expected="a link on both ports of one cage",
        found="no carrier on " + ", ".join(port.netdev for port in host.ports),
        remedy=f"plug {_CABLE_WORDS} into the same cage of both Sparks; if it is plugged, reseat it and check that the "
        "other machine is on",
    )


def _judge_other_cages(
    host: HostFacts, cabling: Cabling, joined: set[CageEnd], *, has_cable: bool
) -> Iterator[Finding]:
    """Cages with a live cable that leads to nobody of ours, on a host whose other cage is cabled right."""
    if not has_cable:
        return
    for end in (CageEnd(host.host, cage) for cage in Cage):
        lit = [port for port in cage_ports(host, end.cage) if port.carrier]
        if end in joined or not lit:
            continue
        yield _stranger(end, Severity.WARN) if end in cabling.strangers else _silent(host, lit[0], Severity.WARN)


def _stranger(end: CageEnd, severity: Severity) -> Finding:
    return Finding(
        severity,
        "link.stranger",
        str(end),
        "the cable leads to a machine that is not in this cluster",
        remedy="name that machine too (`sparkctl discover HOST…`, or `hosts:` in the inventory), or move the cable",
    )


def _silent(host: HostFacts, port: Port, severity: Severity) -> Finding:
    ours = "IPv6 is off on this port" if port.link_local is None else ""
    return Finding(
        severity,
        "link.silent",
        f"{host.host}:{port.cage or port.netdev}",
        "the cable is live, but nobody answers on it",
        cause=ours or "the far machine is not among the hosts, or its port is switched off or without IPv6",
        remedy=f"on {host.host}: sudo sysctl net.ipv6.conf.{port.netdev}.disable_ipv6=0"
        if ours
        else "name the far machine too, or look there: `ip -br link`, `sysctl net.ipv6.conf.all.disable_ipv6`",
    )


def _judge_cable(facts: Mapping[str, HostFacts], cable: Cable, expect_gbit_per_s: float) -> Iterator[Finding]:
    ports = [(end.host, port) for end in ends_of(cable) for port in cage_ports(facts[end.host], end.cage)]
    if len(cable.rails) < _RAILS_PER_CABLE:
        yield _dark_twin(cable, ports)
    speeds = [port.speed_mbit_per_s for _, port in ports if port.carrier and port.speed_mbit_per_s is not None]
    if speeds and min(speeds) < expect_gbit_per_s * 1000:
        yield Finding(
            Severity.DEGRADED,
            "link.speed",
            str(cable),
            "the link came up slower than it should",
            expected=f"{expect_gbit_per_s:g} Gbit/s",
            found=f"{min(speeds) / 1000:g} Gbit/s",
            cause="a cable for 100G, or a speed negotiated down",
            remedy=f"use {_CABLE_WORDS}; reseat both ends; a lower speed that is wanted goes into "
            "`links.expect_gbit_per_s` of the inventory",
        )
    if cable.cage_a is not cable.cage_b:
        yield Finding(
            Severity.INFO,
            "link.crossed",
            str(cable),
            "the cable joins different cages; sparkctl names the ports per host, other tools may not",
        )


def _dark_twin(cable: Cable, ports: list[tuple[str, Port]]) -> Finding:
    off = [(host, port.netdev) for host, port in ports if not port.admin_up]
    dark = [(host, port.netdev) for host, port in ports if port.admin_up and not port.carrier]
    words = [f"{host}:{netdev} is switched off" for host, netdev in off]
    words += [f"{host}:{netdev} has no link" for host, netdev in dark]
    missing = [end.host for end in ends_of(cable) if sum(host == end.host for host, _ in ports) < _RAILS_PER_CABLE]
    words += [f"{host} has only one port for this cage" for host in missing]
    if off:
        remedy = "; ".join(f"on {host}: sudo ip link set {netdev} up" for host, netdev in off)
    else:
        remedy = "reseat the cable at both ends; if a twin stays dark: dmesg | grep mlx5, then a cold restart"
    return Finding(
        Severity.FAIL,
        "link.one-twin",
        str(cable),
        f"{len(cable.rails)} of {_RAILS_PER_CABLE} rails of this cable are up",
        expected="both twins up at both ends: one alone carries half of the speed",
        found=", ".join(words),
        remedy=remedy,
    )


def _judge_layout(cabling: Cabling) -> Iterator[Finding]:
    if cabling.topology in _LAYOUT_WORDS:
        yield Finding(Severity.INFO, f"link.{cabling.topology}", "cabling", _LAYOUT_WORDS[cabling.topology])
    if cabling.topology is Topology.MIXED:
        yield Finding(
            Severity.WARN,
            "link.mixed",
            "cabling",
            "these cables make no layout that sparkctl plans",
            expected="one pair, three in a ring, or all on one switch",
            found=", ".join(str(cable) for cable in cabling.cables),
            remedy="recable, or name two hosts that are joined by a cable",
        )
