"""Changing a node so that it takes the change back by itself: begin arms a timer there, commit disarms it.

Every step is one call of templates/links_guard.sh on the node. A token, new for each change, keeps a late controller
from touching what the node has reverted or what another controller does by then.
"""

from dataclasses import dataclass

from sparkctl.apply.journal import JOURNAL_FOLDER, LinkJournal
from sparkctl.errors import OperationFailed, UnsafeRefused
from sparkctl.transport.command import Command, CommandResult, Transport

# Exit codes of templates/links_guard.sh.
_LOCKED, _STILL_ARMED, _TOO_LATE, _NETPLAN_REFUSED, _NETPLAN_FAILED, _NOT_PREPARED = 20, 21, 22, 23, 24, 30
# Longer than the script's own waits: 20 s for its turn, 60 s for netplan, 10 s for addresses to come back.
_STEP_TIMEOUT_S = 100.0
_REVERT_TIMEOUT_S = 200.0


@dataclass(frozen=True)
class Guard:
    """One guarded change on any number of nodes.

    script: the text of links_guard.sh. token: new for each change, letters and digits. holder: user@host (pid N).
    seconds: after which a node that hears nothing more reverts.
    """

    script: str
    token: str
    holder: str
    seconds: int


@dataclass(frozen=True)
class GuardedPort:
    """A port whose state is saved before the change. address: ours, taken away again by a revert."""

    netdev: str
    mtu_bytes: int
    address: str


def begin(transport: Transport, guard: Guard, path: str, ports: tuple[GuardedPort, ...]) -> None:
    """Lock the node, back up `path` and the ports, arm the revert timer. Changes nothing that runs.

    Raises UnsafeRefused when another controller holds the lock or an older change is still armed, OperationFailed when
    the node cannot prepare it; either way the node is as before.
    """
    install = 'umask 077; mkdir -p "$0" && cat >"$0/guard-$2.sh" && exec /bin/sh "$0/guard-$2.sh" "$@"'
    words = [f"{port.netdev},{port.mtu_bytes},{port.address}" for port in ports]
    argv = ("sh", "-c", install, JOURNAL_FOLDER, "begin", guard.token, str(guard.seconds), path, guard.holder, *words)
    result = transport.run(Command(argv, sudo=True, timeout_s=_STEP_TIMEOUT_S, stdin=guard.script))
    if not result.ok:
        raise _begin_error(result)


def change(transport: Transport, guard: Guard, text: str | None) -> None:
    """Write `text` to the file (None: restore what was there before sparkctl) and apply it.

    Raises OperationFailed when netplan refuses the text (the former bytes are back then) or the node has reverted
    already; HostUnreachable when contact is lost, in which case the change may go on.
    """
    result = _step(transport, guard, "change", "restore" if text is None else "write", stdin=text)
    if result.exit_code == _NETPLAN_REFUSED:
        raise OperationFailed(
            f"netplan refuses the configuration: {_problem(result)}; the former bytes are back and nothing was applied",
            where=transport.host,
            remedy=f"correct the file that netplan names; `sudo netplan generate` on {transport.host} shows it",
        )
    if not result.ok:
        raise _failed(transport.host, "apply the change", result)


def commit(transport: Transport, guard: Guard) -> None:
    """Disarm the timer. Raises OperationFailed when it was too late for that."""
    result = _step(transport, guard, "commit")
    if not result.ok:
        raise _failed(transport.host, "confirm the change", result)


def revert(transport: Transport, guard: Guard) -> None:
    """Put everything back now; fine when the node did it already. Raises OperationFailed when that did not work."""
    result = _step(transport, guard, "revert", "controller")
    if not result.ok or "state=revert-failed" in result.stdout:
        raise _failed(transport.host, "revert", result)


def close(transport: Transport, guard: Guard, *, down: bool) -> None:
    """Release the lock and forget what a revert would have needed; `down` forgets everything."""
    result = _step(transport, guard, "close", "down" if down else "up")
    if not result.ok:
        raise _failed(transport.host, "release the lock", result)


def revert_interrupted(transport: Transport, journal: LinkJournal) -> None:
    """End a change that neither a controller nor a timer is left to end. Raises OperationFailed if that fails."""
    revert(transport, Guard(script="", token=journal.token, holder=journal.holder, seconds=journal.guard_s))


def _step(transport: Transport, guard: Guard, *words: str, stdin: str | None = None) -> CommandResult:
    script = f"{JOURNAL_FOLDER}/guard-{guard.token}.sh"
    argv = ("sh", script, words[0], guard.token, *words[1:])
    limit = _REVERT_TIMEOUT_S if words[0] == "revert" else _STEP_TIMEOUT_S
    if words[0] == "revert":
        # In a unit of its own, so that it is finished also when our connection is lost meanwhile. The script is gone
        # once the node has reverted, which is what we want.
        run = 'if [ -e "$1" ]; then systemd-run --quiet --wait --collect --pipe /bin/sh "$@"; else echo state=gone; fi'
        argv = ("sh", "-c", run, "revert", *argv[1:])
    return transport.run(Command(argv, sudo=True, timeout_s=limit, stdin=stdin))


def _begin_error(result: CommandResult) -> UnsafeRefused | OperationFailed:
    pairs = dict(line.split("=", 1) for line in result.stdout.splitlines() if "=" in line)
    holder, since = pairs.get("holder", "another controller"), pairs.get("since", "an unknown time")
    if result.exit_code == _LOCKED:
        return UnsafeRefused(
            f"{holder} has been changing the links since {since}; nothing was changed",
            where=result.host,
            remedy="wait until that has ended; a controller that died frees the node after its guard time",
        )
    if result.exit_code == _STILL_ARMED:
        return UnsafeRefused(
            f"the change that {holder} began at {since} has not been ended yet; nothing was changed",
            where=result.host,
            remedy="`sparkctl link status` tells how far it is; it ends by itself or with the next `sparkctl link up`",
        )
    return _failed(result.host, "prepare the change", result)


def _failed(host: str, what: str, result: CommandResult) -> OperationFailed:
    return OperationFailed(
        f"cannot {what}: {_problem(result)}",
        where=host,
        remedy="`sparkctl link status` tells the state, its own words: sudo journalctl -u 'sparkctl-link-*'",
    )


def _problem(result: CommandResult) -> str:
    for line in result.stdout.splitlines():
        if line.startswith("problem="):
            return line.removeprefix("problem=").strip()
    return result.last_words()
