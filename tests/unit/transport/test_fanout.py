import pytest

from sparkctl.errors import HostUnreachable
from sparkctl.transport.command import Command
from sparkctl.transport.fanout import on_all
from tests.scripted import ScriptedTransport


def cluster():
    lost = HostUnreachable("no answer", where="b", remedy="look")
    return [
        ScriptedTransport("a", [("hostname", "alpha")]),
        ScriptedTransport("b", [("hostname", lost)]),
        ScriptedTransport("c", [("hostname", "gamma")]),
    ]


def test_a_dead_host_is_an_outcome_and_the_others_are_kept_in_order():
    outcomes = on_all(cluster(), lambda transport: transport.run(Command(("hostname",))).stdout)

    assert dict(outcomes) == {"a": "alpha", "c": "gamma"}
    assert [(host, str(error)) for host, error in outcomes.errors.items()] == [("b", "b: no answer")]


def test_whoever_needs_all_hosts_gets_the_error():
    outcomes = on_all(cluster(), lambda transport: transport.run(Command(("hostname",))).stdout)

    with pytest.raises(HostUnreachable, match="b: no answer"):
        outcomes.require_all()


def test_a_call_may_return_nothing():
    assert dict(on_all(cluster()[:1], lambda _: None).require_all()) == {"a": None}


def test_an_interrupt_closes_every_connection_so_that_no_thread_waits_on():
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    transports = cluster()
    with pytest.raises(KeyboardInterrupt):
        on_all(transports, interrupted)

    assert all(transport.closed for transport in transports)
