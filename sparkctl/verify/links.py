"""Judges whether each rail is as planned: addresses, MTU, route, and full-size packets both ways."""

from collections.abc import Mapping
from dataclasses import dataclass

from sparkctl.plan.links import LinkPlan, PlannedPort
from sparkctl.report.finding import Finding, Severity
from sparkctl.tools.iproute2 import Netdev
from sparkctl.tools.iproute2_route import ChosenRoute
from sparkctl.tools.ping import PingResult


@dataclass(frozen=True)
class EndObservation:
    """What was seen at one end of a rail.

    netdev: None when the port is gone. bound_route: the way for a program bound to the rail's address and netdev, as
    NCCL is; free_route: for one that binds nothing. Both None without a route. small, full: pings of 64 and of MTU
    bytes.
    """

    netdev: Netdev | None
    bound_route: ChosenRoute | None
    free_route: ChosenRoute | None
    small: PingResult
    full: PingResult


# Host and netdev of an end.
Observations = Mapping[tuple[str, str], EndObservation]


def judge_links(plan: LinkPlan, observed: Observations) -> tuple[Finding, ...]:
    """Findings in plan order: one OK per rail direction that is right, else what is wrong with it first.

    observed: of every port of the plan; a missing one is UNKNOWN. A link where no port has its address is one finding,
    link.not-set-up. Other codes: link.rail-ok, link.port-missing, link.no-carrier,
    link.address, link.mtu, link.mtu-mismatch, link.route, link.no-answer, link.jumbo, link.unknown.
    Source of the checks: NemoClaw's qualification (gateway-free route from the bound address, full-size ping).
    """
    if _nothing_set_up(plan, observed):
        hosts = ", ".join(links.host for links in plan.hosts)
        text = f"none of the {2 * len(plan.rails)} ports has its address"
        return (Finding(Severity.FAIL, "link.not-set-up", hosts, text, remedy="`sparkctl link up`"),)
    findings: list[Finding] = []
    for near, far in plan.rails:
        mismatch = _mtu_mismatch(near, far, observed)
        if mismatch is not None:
            findings.append(mismatch)
        for port in (near, far):
            findings.extend(_judge_end(port, observed.get((port.host, port.netdev)), mtu_named=mismatch is not None))
    return tuple(findings)


def _nothing_set_up(plan: LinkPlan, observed: Observations) -> bool:
    ends = [(port, observed.get((port.host, port.netdev))) for pair in plan.rails for port in pair]
    netdevs = [(port, seen.netdev) for port, seen in ends if seen is not None and seen.netdev is not None]
    return len(netdevs) == len(ends) and all(port.address not in netdev.ipv4 for port, netdev in netdevs)


def _judge_end(port: PlannedPort, seen: EndObservation | None, *, mtu_named: bool) -> list[Finding]:
    if seen is None:
        return [
            _finding(
                port, Severity.UNKNOWN, "link.unknown", "could not be looked at", remedy="run `sparkctl link status`"
            )
        ]
    state = _judge_state(port, seen.netdev, mtu_named=mtu_named)
    if state:
        return state
    route = _judge_route(port, seen)
    if route is not None:
        return [route]
    packets = _judge_packets(port, seen, mtu_named=mtu_named)
    if packets is not None:
        return [packets]
    if mtu_named:
        return []
    return [
        _finding(
            port,
            Severity.OK,
            "link.rail-ok",
            f"reaches {port.peer_host} ({port.peer_address}) with full packets of {port.mtu_bytes} bytes",
        )
    ]


def _judge_state(port: PlannedPort, netdev: Netdev | None, *, mtu_named: bool) -> list[Finding]:
    if netdev is None:
        return [
            _finding(
                port,
                Severity.FAIL,
                "link.port-missing",
                "the port is gone",
                cause="without a cable the ConnectX-7 leaves the PCI bus",
                remedy="plug the cable in, wait 20 s, then `sparkctl discover`",
            )
        ]
    if not netdev.admin_up or not netdev.carrier:
        state = "no carrier" if netdev.admin_up else "down"
        return [
            _finding(
                port,
                Severity.FAIL,
                "link.no-carrier",
                f"the rail to {port.peer_host}:{port.peer_netdev} is down",
                expected="carrier",
                found=state,
                cause="" if netdev.admin_up else "somebody set the port down",
                remedy="reseat the cable; see that the far port is up"
                if netdev.admin_up
                else f"`sudo ip link set {port.netdev} up` on {port.host}",
            )
        ]
    findings: list[Finding] = []
    if port.address not in netdev.ipv4:
        findings.append(
            _finding(
                port,
                Severity.FAIL,
                "link.address",
                "does not have its address",
                expected=str(port.address),
                found=", ".join(str(address) for address in netdev.ipv4) or "none",
                remedy="`sparkctl link up`",
            )
        )
    if netdev.mtu_bytes != port.mtu_bytes and not mtu_named:
        findings.append(
            _finding(
                port,
                Severity.FAIL,
                "link.mtu",
                "runs with another MTU than planned",
                expected=f"{port.mtu_bytes} bytes",
                found=f"{netdev.mtu_bytes} bytes",
                cause="an update or NetworkManager may have put it back" if netdev.mtu_bytes < port.mtu_bytes else "",
                remedy="`sparkctl link up`",
            )
        )
    return findings


def _mtu_mismatch(near: PlannedPort, far: PlannedPort, observed: Observations) -> Finding | None:
    ends = [observed.get((port.host, port.netdev)) for port in (near, far)]
    sizes = [end.netdev.mtu_bytes for end in ends if end is not None and end.netdev is not None]
    if len(sizes) < 2 or sizes[0] == sizes[1]:
        return None
    return Finding(
        Severity.FAIL,
        "link.mtu-mismatch",
        f"{near.host}:{near.netdev} to {far.host}:{far.netdev}",
        "the two ends have different MTUs; large packets vanish silently and programs hang",
        expected=f"{near.mtu_bytes} bytes at both ends",
        found=f"{sizes[0]} bytes on {near.host}, {sizes[1]} bytes on {far.host}",
        cause="one side was changed",
        remedy="`sparkctl link up`",
    )


def _judge_route(port: PlannedPort, seen: EndObservation) -> Finding | None:
    for route, who in ((seen.bound_route, "a program bound to the rail"), (seen.free_route, "any other program")):
        if route is None or route.netdev != port.netdev or route.gateway is not None:
            gateway = f" through {route.gateway}" if route is not None and route.gateway else ""
            return _finding(
                port,
                Severity.FAIL,
                "link.route",
                f"packets of {who} to {port.peer_address} do not leave by this rail",
                expected=f"directly by {port.netdev}",
                found="no route" if route is None else f"by {route.netdev}{gateway}",
                cause="another network or a VPN overlaps with the rail's subnet",
                remedy=f"`ip route get {port.peer_address}` and `ip route show table all` on {port.host}; "
                "remove the route or choose another `links: pool:`",
            )
    return None


def _judge_packets(port: PlannedPort, seen: EndObservation, *, mtu_named: bool) -> Finding | None:
    if seen.small.received == 0 and seen.full.received == 0:
        return _finding(
            port,
            Severity.FAIL,
            "link.no-answer",
            f"{port.peer_host} ({port.peer_address}) does not answer on this rail",
            expected="2 of 2 answers",
            found="0 of 2",
            cause="the far end lacks its address, a firewall drops ICMP, or the cable goes elsewhere",
            remedy=f"`sparkctl link status`; look at {port.peer_host}:{port.peer_netdev}",
        )
    if seen.full.received == 0 and not mtu_named:
        limit = f", an MTU of {seen.full.mtu_limit_bytes} is in the way" if seen.full.mtu_limit_bytes else ""
        return _finding(
            port,
            Severity.FAIL,
            "link.jumbo",
            f"small packets reach {port.peer_host}, full ones do not",
            expected=f"{port.mtu_bytes} bytes unfragmented",
            found=f"no answer{limit}",
            cause="the MTU differs somewhere between the two ends",
            remedy="`sparkctl link up`; with a switch, raise its MTU or set `links: mtu: 1500`",
        )
    return None


def _finding(
    port: PlannedPort,
    severity: Severity,
    code: str,
    message: str,
    *,
    expected: str = "",
    found: str = "",
    cause: str = "",
    remedy: str = "",
) -> Finding:
    return Finding(severity, code, f"{port.host}:{port.netdev}", message, expected, found, cause, remedy)
