"""Changes the links on all nodes or on none: arm, change, verify, disarm; or back to what was."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sparkctl.apply import rollback
from sparkctl.apply.rollback import Guard, GuardedPort
from sparkctl.errors import HostUnreachable, Interrupted, OperationFailed, SparkctlError
from sparkctl.report.finding import Finding, Severity
from sparkctl.transport.command import Transport
from sparkctl.transport.fanout import Outcomes, on_all

# `netplan apply` takes the management address away for about a second (FujitsuPolycom/sparkring#168): nothing is
# judged lost before this.
PATIENCE_S = 5.0
# Rails of real ports need a few seconds for their carrier; longer than this means that something is wrong.
_SETTLE_S = 30.0
_POLL_S = 0.5
# What is kept of the guard time for disarming or reverting in order.
_MARGIN_S = 5.0
DEFAULT_GUARD_S = 90
# Arming, netplan apply, patience and margin must fit.
SMALLEST_GUARD_S = 15

_BAD = frozenset({Severity.FAIL, Severity.DEGRADED, Severity.UNKNOWN})

Say = Callable[[str], None]
Verify = Callable[[], tuple[Finding, ...]]


@dataclass(frozen=True)
class NodeChange:
    """What happens on one node.

    path: of the netplan file. ports: saved before, and put back by a revert. touch: False for a node that is right
    already and is only locked and guarded while the others change. text: new file text; None restores the file from
    before sparkctl.
    """

    host: str
    path: str
    ports: tuple[GuardedPort, ...]
    touch: bool
    text: str | None


@dataclass(frozen=True)
class Applied:
    """How it ended. kept: the change is in force on all nodes; False: every node is, or will be, as before."""

    kept: bool
    findings: tuple[Finding, ...]


def apply_links(
    transports: Sequence[Transport], changes: Mapping[str, NodeChange], guard: Guard, verify: Verify, say: Say
) -> Applied:
    """Carry out `changes` (by host, one for every transport) and keep them only if `verify` finds nothing wrong.

    verify: called again and again until it is content or the time for settling is over; may raise HostUnreachable,
    which counts as not content. say: gets one word per step.

    Raises UnsafeRefused when another controller is at work, HostError when a node cannot be reached at the start,
    OperationFailed when a node cannot carry it out, Interrupted on Ctrl-C. Whatever is raised, nodes that could be
    reached are as before and the others revert by their own timer; the message says which.
    """
    started = time.monotonic()
    with rollback_armed(transports, guard) as armed:
        say("arming the revert timers")
        begun = on_all(transports, lambda t: rollback.begin(t, guard, changes[t.host].path, changes[t.host].ports))
        armed.transports = tuple(transport for transport in transports if transport.host in begun)
        begun.require_all()
        say("applying")
        touched = [transport for transport in transports if changes[transport.host].touch]
        applied = on_all(touched, lambda t: rollback.change(t, guard, changes[t.host].text))
        _require_carried_out(applied)
        say("verifying")
        deadline = started + max(PATIENCE_S, min(_SETTLE_S, guard.seconds - _MARGIN_S))
        findings = _settled(verify, deadline)
        if any(finding.severity in _BAD for finding in findings):
            return Applied(kept=False, findings=(*findings, *armed.revert()))
        say("confirming")
        on_all(transports, lambda t: rollback.commit(t, guard)).require_all()
    down = all(change.text is None for change in changes.values())
    closed = on_all(transports, lambda t: rollback.close(t, guard, down=down))
    return Applied(kept=True, findings=(*findings, *(_left_lock(host, guard) for host in closed.errors)))


class Armed:
    """The nodes that would have to be reverted."""

    def __init__(self, transports: Sequence[Transport], guard: Guard) -> None:
        self.transports = tuple(transports)
        self._guard = guard

    def revert(self) -> tuple[Finding, ...]:
        """Put them all back, as far as they can be reached; one finding each: done, failed, or left to its timer."""
        outcomes = on_all(self.transports, lambda transport: rollback.revert(transport, self._guard))
        return tuple(_reverted(t.host, outcomes.errors.get(t.host), self._guard) for t in self.transports)


@contextmanager
def rollback_armed(transports: Sequence[Transport], guard: Guard) -> Iterator[Armed]:
    """Reverts the nodes of its value when its body ends by an error or Ctrl-C; otherwise leaves them alone.

    Until the body says otherwise all `transports` count as armed. Errors leave with the outcome of the revert added to
    their message.
    """
    armed = Armed(transports, guard)
    try:
        yield armed
    except KeyboardInterrupt:
        raise Interrupted(
            f"interrupted; {_words(armed.revert())}",
            remedy="`sparkctl link status` shows the state, `sparkctl link up` tries again",
        ) from None
    except SparkctlError as error:
        if armed.transports:
            error.message = f"{error.message}; {_words(armed.revert())}"
        raise


def _reverted(host: str, error: SparkctlError | None, guard: Guard) -> Finding:
    if error is None:
        return Finding(Severity.OK, "link.reverted", host, "is as it was before")
    if isinstance(error, OperationFailed):
        return Finding(
            Severity.FAIL, "link.revert-failed", host, f"could not be put back: {error.message}", remedy=error.remedy
        )
    return Finding(
        Severity.FAIL,
        "link.revert-left-to-node",
        host,
        f"cannot be reached; its own timer takes the change back within {guard.seconds} s of the start",
        cause=error.message,
        remedy=f"wait {guard.seconds} s, then `sparkctl link status`",
    )


def _require_carried_out(outcomes: Outcomes[None]) -> None:
    for error in outcomes.errors.values():
        # Contact may be lost for a moment while the node goes on; verification decides.
        if not isinstance(error, HostUnreachable):
            raise error


def _settled(verify: Verify, deadline: float) -> tuple[Finding, ...]:
    while True:
        findings = _attempt(verify)
        if not any(finding.severity in _BAD for finding in findings) or time.monotonic() > deadline:
            return findings
        time.sleep(_POLL_S)


def _attempt(verify: Verify) -> tuple[Finding, ...]:
    try:
        return verify()
    except HostUnreachable as error:
        return (
            Finding(
                Severity.FAIL,
                "link.contact-lost",
                error.where,
                "lost on the management network after the change",
                cause=error.message,
                remedy=error.remedy,
            ),
        )


def _left_lock(host: str, guard: Guard) -> Finding:
    return Finding(
        Severity.WARN,
        "link.lock-left",
        host,
        "the change is in force, but its lock could not be released",
        remedy=f"nothing to do: it is void after {guard.seconds} s",
    )


def _words(findings: Sequence[Finding]) -> str:
    return "; ".join(f"{finding.subject} {finding.message}" for finding in findings)
