import pytest

from sparkctl.apply import links
from sparkctl.apply.links import Applied, NodeChange, apply_links
from sparkctl.apply.rollback import Guard, GuardedPort
from sparkctl.errors import HostUnreachable, Interrupted, OperationFailed, UnsafeRefused
from sparkctl.report.finding import Finding, Severity
from tests.scripted import ScriptedTransport

GUARD = Guard("#!/bin/sh\n", "t0ken", "me@desk (pid 7)", 20)
PATH = "/etc/netplan/60-sparkctl-links.yaml"
GOOD = (Finding(Severity.OK, "link.rail-ok", "a", "reaches b"),)
BAD = (Finding(Severity.FAIL, "link.jumbo", "a", "full packets get lost", remedy="raise the MTU"),)
LOST = HostUnreachable("contact lost", where="b", remedy="look at b")


def node(host: str, *, touch: bool = True) -> NodeChange:
    return NodeChange(host, PATH, (GuardedPort("enp1s0f0np0", 9000, "10.177.0.1/30"),), touch, "network: {}\n")


def nodes(**answers):
    """Two nodes whose script steps all succeed unless `answers` (by step, for node b) say otherwise."""
    steps = [(f" {step} ", "") for step in ("begin", "change", "commit", "revert", "close")]
    for_b = [(f" {step} ", answers.get(step, "")) for step in ("begin", "change", "commit", "revert", "close")]
    return ScriptedTransport("a", steps), ScriptedTransport("b", for_b)


def steps(transport):
    words = ("begin", "change", "commit", "revert", "close")
    return [next(word for word in words if f" {word} " in str(command)) for command in transport.commands]


def apply(transports, verify=lambda: GOOD, *, touch_b=True):
    return apply_links(transports, {"a": node("a"), "b": node("b", touch=touch_b)}, GUARD, verify, lambda _: None)


@pytest.fixture(autouse=True)
def no_patience(monkeypatch):
    monkeypatch.setattr(links, "PATIENCE_S", 0.0)
    monkeypatch.setattr(links, "_SETTLE_S", 0.0)


def test_a_change_that_verifies_is_confirmed_on_all_nodes():
    both = nodes()

    assert apply(both) == Applied(True, GOOD)
    assert [steps(transport) for transport in both] == [["begin", "change", "commit", "close"]] * 2
    assert both[0].commands[1].stdin == "network: {}\n"


def test_a_node_that_is_right_already_is_only_guarded():
    both = nodes()

    apply(both, touch_b=False)

    assert steps(both[1]) == ["begin", "commit", "close"]


def test_a_change_that_does_not_verify_is_reverted_on_all_nodes():
    both = nodes()

    ended = apply(both, lambda: BAD)

    assert (ended.kept, [finding.code for finding in ended.findings]) == (
        False,
        ["link.jumbo", "link.reverted", "link.reverted"],
    )
    assert [steps(transport) for transport in both] == [["begin", "change", "revert"]] * 2


def test_a_second_controller_is_refused_and_the_other_node_let_go():
    both = nodes(begin=(20, "holder=you@sofa (pid 8)\nsince=2026-11-30T21:00:00Z\n"))

    with pytest.raises(UnsafeRefused) as caught:
        apply(both)

    assert str(caught.value) == (
        "b: you@sofa (pid 8) has been changing the links since 2026-11-30T21:00:00Z; nothing was changed; "
        "a is as it was before"
    )
    assert [steps(transport) for transport in both] == [["begin", "revert"], ["begin"]]


def test_netplans_refusal_on_one_node_reverts_the_other():
    both = nodes(change=(23, "problem=60-sparkctl-links.yaml:3:1: Invalid YAML\n"))

    with pytest.raises(OperationFailed, match=r"netplan refuses the configuration: .*; a is as it was before; b is as"):
        apply(both)


def test_contact_lost_for_good_is_left_to_the_nodes_timer():
    both = nodes(change=LOST, revert=LOST)

    def verify():
        raise LOST

    ended = apply(both, verify)

    assert [(finding.code, finding.subject) for finding in ended.findings] == [
        ("link.contact-lost", "b"),
        ("link.reverted", "a"),
        ("link.revert-left-to-node", "b"),
    ]


def test_contact_lost_for_a_moment_is_forgiven():
    assert apply(nodes(change=LOST)).kept


def test_a_node_that_cannot_be_confirmed_takes_the_others_back():
    both = nodes(commit=(22, "problem=the change is already reverted (timer)\n"))

    with pytest.raises(
        OperationFailed, match=r"b: cannot confirm the change: the change is already reverted \(timer\)"
    ):
        apply(both)

    assert steps(both[0]) == ["begin", "change", "commit", "revert"]


def test_ctrl_c_reverts_and_says_so():
    both = nodes()

    def verify():
        raise KeyboardInterrupt

    with pytest.raises(Interrupted) as caught:
        apply(both, verify)

    assert str(caught.value) == "interrupted; a is as it was before; b is as it was before"
