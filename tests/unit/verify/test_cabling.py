from dataclasses import replace

import pytest

from sparkctl.plan.topology import assemble_cabling
from sparkctl.report.finding import Severity
from sparkctl.verify.cabling import judge_cabling
from tests.cabling_examples import P0, P1, STRANGER, A, B, C, Wire, sparks

CABLE = [[(A, P0), (B, P0)]]
TWIN = "enP2p1s0f0np0"


def judge(facts, expect=200.0):
    return judge_cabling(facts, assemble_cabling(facts, list(facts)), expect_gbit_per_s=expect)


def codes(findings):
    return [(finding.severity.value, finding.code, finding.subject) for finding in findings]


@pytest.mark.parametrize("style", list(Wire))
def test_a_whole_cable_has_no_findings(style):
    assert judge(sparks([A, B], CABLE, style=style)) == ()


def test_no_cable():
    findings = judge(sparks([A, B], []))
    assert codes(findings) == [("fail", "link.no-cable", A), ("fail", "link.no-cable", B)]
    assert "reseat" in findings[0].remedy


def test_a_single_spark_needs_no_cable():
    assert codes(judge(sparks([A], []))) == [("info", "link.no-cable", A)]


def test_a_nic_that_left_the_bus():
    facts = {name: replace(host, ports=()) for name, host in sparks([A, B], []).items()}
    assert codes(judge(facts)) == [("fail", "link.nic-absent", A), ("fail", "link.nic-absent", B)]


def test_hosts_that_are_no_sparks_are_passed_over():
    facts = sparks([A, B, C], CABLE)
    facts[C] = replace(facts[C], gpu=None, ports=())
    assert judge(facts) == ()


def test_one_twin_switched_off_on_a_shared_cable():
    (finding,) = judge(sparks([A, B], CABLE, off=[(B, TWIN)]))
    assert (finding.severity, finding.code) == (Severity.FAIL, "link.one-twin")
    assert finding.message == "1 of 2 rails of this cable are up"
    assert finding.found == f"{B}:{TWIN} is switched off"
    assert finding.remedy == f"on {B}: sudo ip link set {TWIN} up"


def test_one_twin_switched_off_on_a_veth_pair():
    (finding,) = judge(sparks([A, B], CABLE, style=Wire.PAIRED, off=[(B, TWIN)]))
    assert finding.found == f"{B}:{TWIN} is switched off, {A}:{TWIN} has no link"


def test_one_twin_without_a_link():
    facts = sparks([A, B], CABLE)
    ports = tuple(replace(port, carrier=port.carrier and port.netdev != TWIN) for port in facts[A].ports)
    facts[A] = replace(facts[A], ports=ports)
    (finding,) = judge(facts)
    assert finding.found == f"{A}:{TWIN} has no link"
    assert "reseat" in finding.remedy


def test_one_twin_missing_on_the_bus():
    facts = sparks([A, B], CABLE)
    gone = facts[A].port(TWIN)
    for name, host in facts.items():
        heard = tuple(neighbour for neighbour in host.neighbours if neighbour.mac != gone.mac)
        ports = tuple(port for port in host.ports if port != gone)
        facts[name] = replace(host, neighbours=heard, ports=ports)
    (finding,) = judge(facts)
    assert finding.found == f"{A} has only one port for this cage"


def test_all_ports_switched_off():
    off = [(A, port.netdev) for port in sparks([A], [])[A].ports]
    findings = judge(sparks([A, B], CABLE, style=Wire.PAIRED, off=off))
    assert codes(findings) == [("fail", "link.port-down", A), ("fail", "link.no-cable", B)]
    assert "sudo ip link set $d up" in findings[0].remedy


def test_a_cable_to_a_stranger():
    findings = judge(sparks([A, B], [[(A, P0), (STRANGER, P0)]]))
    assert codes(findings) == [("fail", "link.stranger", f"{A}:p0"), ("fail", "link.no-cable", B)]


def test_a_second_cable_to_a_stranger_is_a_warning():
    findings = judge(sparks([A, B], [*CABLE, [(A, P1), (STRANGER, P0)]]))
    assert codes(findings) == [("warn", "link.stranger", f"{A}:p1")]


def test_a_live_cable_on_which_nobody_answers():
    facts = {name: replace(host, neighbours=()) for name, host in sparks([A, B], CABLE).items()}
    findings = judge(facts)
    assert codes(findings) == [("fail", "link.silent", f"{A}:p0"), ("fail", "link.silent", f"{B}:p0")]
    assert findings[0].cause == "IPv6 is off on this port"


def test_a_second_cable_on_which_nobody_answers():
    facts = sparks([A, B], [*CABLE, [(A, P1), (STRANGER, P0)]])
    heard = tuple(neighbour for neighbour in facts[A].neighbours if neighbour.netdev.endswith("np0"))
    assert codes(judge({**facts, A: replace(facts[A], neighbours=heard)})) == [("warn", "link.silent", f"{A}:p1")]


def test_a_node_cabled_to_itself():
    findings = judge(sparks([A, B], [[(A, P0), (A, P1)]]))
    assert codes(findings) == [("fail", "link.self-cabled", A), ("fail", "link.no-cable", B)]


def test_a_slow_link():
    facts = sparks([A, B], CABLE)
    ports = tuple(replace(port, speed_mbit_per_s=100_000 if port.carrier else None) for port in facts[A].ports)
    facts[A] = replace(facts[A], ports=ports)
    (finding,) = judge(facts)
    assert (finding.severity, finding.code) == (Severity.DEGRADED, "link.speed")
    assert (finding.expected, finding.found) == ("200 Gbit/s", "100 Gbit/s")
    assert judge(facts, expect=100.0) == ()


def test_crossed_cages_are_worth_a_word():
    (finding,) = judge(sparks([A, B], [[(A, P1), (B, P0)]]))
    assert (finding.severity, finding.code) == (Severity.INFO, "link.crossed")


@pytest.mark.parametrize(
    ("wires", "severity", "code"),
    [
        ([*CABLE, [(A, P1), (B, P1)]], "info", "link.dual"),
        ([[(A, P0), (B, P0), (C, P0)]], "info", "link.switch"),
        ([[(A, P0), (B, P0)], [(B, P1), (C, P1)]], "warn", "link.mixed"),
    ],
)
def test_layouts(wires, severity, code):
    hosts = sorted({host for wire in wires for host, _ in wire})
    assert codes(judge(sparks(hosts, wires)))[-1] == (severity, code, "cabling")


def test_a_port_whose_cage_is_unknown():
    facts = sparks([A], [])
    facts[A] = replace(facts[A], ports=(replace(facts[A].ports[0], cage=None), *facts[A].ports[1:]))
    assert codes(judge(facts))[0] == ("unknown", "link.cage-unknown", f"{A}:enp1s0f0np0")
