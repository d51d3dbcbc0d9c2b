from dataclasses import replace
from ipaddress import IPv4Address

import pytest

from sparkctl.report.finding import Severity
from sparkctl.report.render import render_findings
from sparkctl.tools.iproute2 import Netdev
from sparkctl.tools.iproute2_route import ChosenRoute
from sparkctl.tools.ping import PingResult
from sparkctl.verify.links import EndObservation, judge_links
from tests.link_examples import FIRST, TWIN, A, B, pair, plan

PLAN = plan(pair())
LOST = PingResult(2, 0)


def healthy():
    observed = {}
    for rail in PLAN.rails:
        for port in rail:
            route = ChosenRoute(port.netdev, port.address.ip, None)
            netdev = Netdev(port.netdev, "02:00:00:00:00:01", 9000, True, True, "", (port.address,), ())
            answered = PingResult(2, 2, None, 0.1)
            observed[(port.host, port.netdev)] = EndObservation(netdev, route, route, answered, answered)
    return observed


def seen(host, netdev, **fields):
    observed = healthy()
    end = observed[(host, netdev)]
    on_netdev = {name: fields.pop(name) for name in ("mtu_bytes", "carrier", "admin_up", "ipv4") if name in fields}
    observed[(host, netdev)] = replace(end, netdev=replace(end.netdev, **on_netdev), **fields)
    return observed


def test_a_healthy_link_is_one_ok_per_direction():
    assert render_findings(judge_links(PLAN, healthy())) == (
        "✓ spark-a:enp1s0f0np0: reaches spark-b (10.177.0.2) with full packets of 9000 bytes",
        "✓ spark-b:enp1s0f0np0: reaches spark-a (10.177.0.1) with full packets of 9000 bytes",
        "✓ spark-a:enP2p1s0f0np0: reaches spark-b (10.177.0.6) with full packets of 9000 bytes",
        "✓ spark-b:enP2p1s0f0np0: reaches spark-a (10.177.0.5) with full packets of 9000 bytes",
    )


VPN = ChosenRoute("tun0", IPv4Address("10.8.0.2"), IPv4Address("10.8.0.1"))


@pytest.mark.parametrize(
    ("observed", "lines"),
    [
        (
            seen(B, FIRST, mtu_bytes=1500, full=PingResult(2, 0, 1500)),
            (
                "✗ FAIL spark-a:enp1s0f0np0 to spark-b:enp1s0f0np0: the two ends have different MTUs; large packets "
                "vanish silently and programs hang",
                "    expected: 9000 bytes at both ends",
                "    found: 9000 bytes on spark-a, 1500 bytes on spark-b",
                "    cause: one side was changed",
                "    hint: `sparkctl link up`",
            ),
        ),
        (
            seen(A, TWIN, carrier=False, small=LOST, full=LOST),
            (
                "✗ FAIL spark-a:enP2p1s0f0np0: the rail to spark-b:enP2p1s0f0np0 is down",
                "    expected: carrier",
                "    found: no carrier",
                "    hint: reseat the cable; see that the far port is up",
            ),
        ),
        (
            seen(A, TWIN, ipv4=()),
            (
                "✗ FAIL spark-a:enP2p1s0f0np0: does not have its address",
                "    expected: 10.177.0.5/30",
                "    found: none",
                "    hint: `sparkctl link up`",
            ),
        ),
        (
            seen(A, FIRST, free_route=VPN),
            (
                "✗ FAIL spark-a:enp1s0f0np0: packets of any other program to 10.177.0.2 do not leave by this rail",
                "    expected: directly by enp1s0f0np0",
                "    found: by tun0 through 10.8.0.1",
                "    cause: another network or a VPN overlaps with the rail's subnet",
                "    hint: `ip route get 10.177.0.2` and `ip route show table all` on spark-a; remove the route or "
                "choose another `links: pool:`",
            ),
        ),
        (
            seen(B, FIRST, full=PingResult(2, 0, 1500)),
            (
                "✗ FAIL spark-b:enp1s0f0np0: small packets reach spark-a, full ones do not",
                "    expected: 9000 bytes unfragmented",
                "    found: no answer, an MTU of 1500 is in the way",
                "    cause: the MTU differs somewhere between the two ends",
                "    hint: `sparkctl link up`; with a switch, raise its MTU or set `links: mtu: 1500`",
            ),
        ),
    ],
)
def test_what_is_wrong_is_named_with_cause_and_remedy(observed, lines):
    findings = [finding for finding in judge_links(PLAN, observed) if finding.severity is not Severity.OK]

    assert render_findings(findings) == lines


def test_codes_of_the_rest():
    gone = {**healthy(), (A, FIRST): EndObservation(None, None, None, LOST, LOST)}
    silent = seen(A, FIRST, small=LOST, full=LOST)
    unseen = {end: value for end, value in healthy().items() if end != (A, FIRST)}
    both = seen(A, FIRST, mtu_bytes=1500)
    both[(B, FIRST)] = replace(both[(B, FIRST)], netdev=replace(both[(B, FIRST)].netdev, mtu_bytes=1500))

    def codes(observed):
        return [finding.code for finding in judge_links(PLAN, observed) if finding.severity is not Severity.OK]

    assert codes(gone) == ["link.port-missing"]
    assert codes(silent) == ["link.no-answer"]
    assert codes(unseen) == ["link.unknown"]
    assert codes(both) == ["link.mtu", "link.mtu"]


def test_a_link_that_nobody_set_up_is_one_finding():
    observed = {
        end: replace(value, netdev=replace(value.netdev, ipv4=(), mtu_bytes=1500)) for end, value in healthy().items()
    }

    assert [finding.code for finding in judge_links(PLAN, observed)] == ["link.not-set-up"]
