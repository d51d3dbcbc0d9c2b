"""What a node has written down about changes of its links: see templates/links_guard.sh, which writes it."""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sparkctl.errors import UnexpectedOutput
from sparkctl.transport.bundle import shell
from sparkctl.transport.command import Command, CommandResult, Transport
from sparkctl.transport.fanout import Outcomes, on_all

JOURNAL_FOLDER = "/var/lib/sparkctl/links"
LOCK_FILE = "/run/sparkctl/lock"

# `key=value` lines; the former file goes through base64, so that its bytes survive.
JOURNAL: Command = shell(
    f"""cd {JOURNAL_FOLDER} 2>/dev/null || exit 0
cat state 2>/dev/null
[ -e {LOCK_FILE} ] && sed 's/^/lock_/' {LOCK_FILE} && echo "uptime=$(cut -d. -f1 /proc/uptime)"
systemctl is-active --quiet sparkctl-link-revert.timer && echo timer=active
[ -e before.ports ] && echo before=absent
[ -e before.yaml ] && echo "before_text=$(base64 <before.yaml | tr -d '\\n')"
exit 0""",
    sudo=True,
    timeout_s=10,
)


class JournalState(StrEnum):
    """How the last change of a node ended, if it did. NONE: sparkctl never changed anything here."""

    NONE = "none"
    ARMED = "armed"
    COMMITTED = "committed"
    APPLIED = "applied"
    REVERTED = "reverted"
    REVERT_FAILED = "revert-failed"


@dataclass(frozen=True)
class LinkJournal:
    """The journal of one node.

    reason: why it was reverted: timer, restart, controller. holder, since: who made the last change and when (UTC).
    timer_running: the node will revert by itself. locked: a controller is at work; its lock has not grown too old.
    has_before: something of ours is in force, and `before_text` is the file's text from before (None: no file).
    """

    host: str
    state: JournalState = JournalState.NONE
    reason: str = ""
    token: str = ""
    holder: str = ""
    since: str = ""
    guard_s: int = 0
    timer_running: bool = False
    locked: bool = False
    has_before: bool = False
    before_text: str | None = None

    @property
    def interrupted(self) -> bool:
        """A change was begun and nobody, neither controller nor timer, is left to end it."""
        return self.state is JournalState.ARMED and not self.timer_running and not self.locked


def read_journals(transports: Sequence[Transport]) -> Outcomes[LinkJournal]:
    """The journals of all nodes, read side by side. Changes nothing."""
    return on_all(transports, lambda transport: parse_journal(transport.run(JOURNAL)))


def parse_journal(result: CommandResult) -> LinkJournal:
    """The journal from what JOURNAL printed; state NONE when it printed nothing.

    Raises UnexpectedOutput for a state or text that this version does not know.
    """
    pairs = dict(line.split("=", 1) for line in result.stdout.splitlines() if "=" in line)
    text = pairs.get("before_text")
    try:
        state = JournalState(pairs.get("state", JournalState.NONE))
        before = None if text is None else base64.b64decode(text, validate=True).decode("utf-8", "surrogateescape")
        locked = int(pairs.get("uptime", 0)) < int(pairs.get("lock_expires", 0))
        guard_s = int(pairs.get("guard_s", 0))
    except (ValueError, binascii.Error) as error:
        raise UnexpectedOutput(
            f"the journal in {JOURNAL_FOLDER} is not readable: {result.last_words()}",
            where=result.host,
            remedy=f"look at {JOURNAL_FOLDER}/state on {result.host}; a newer sparkctl may have written it",
        ) from error
    return LinkJournal(
        host=result.host,
        state=state,
        reason=pairs.get("reason", ""),
        token=pairs.get("token", ""),
        holder=pairs.get("lock_holder" if locked else "holder", ""),
        since=pairs.get("lock_since" if locked else "since", ""),
        guard_s=guard_s,
        timer_running=pairs.get("timer") == "active",
        locked=locked,
        has_before="before" in pairs,
        before_text=before,
    )
