import base64

import pytest

from sparkctl.apply.journal import JOURNAL, JournalState, LinkJournal, parse_journal
from sparkctl.errors import UnexpectedOutput
from sparkctl.transport.command import CommandResult

STATE = """\
state={state}
step=changed
reason=
token=260be41f0ac3ac64
path=/etc/netplan/60-sparkctl-links.yaml
holder=me@desk (pid 7)
since=2026-11-30T20:52:57Z
guard_s=90
"""
LOCK = "lock_token=1\nlock_holder=you@sofa (pid 8)\nlock_since=2026-11-30T21:00:00Z\nlock_expires={}\nuptime=1000\n"


def parsed(text: str) -> LinkJournal:
    return parse_journal(CommandResult("spark-a", JOURNAL, 0, text))


def test_a_node_without_a_journal():
    assert parsed("") == LinkJournal("spark-a")


def test_a_link_that_is_up_keeps_the_bytes_from_before():
    text = base64.b64encode(b"# mine, no line end").decode()

    assert parsed(STATE.format(state="applied") + f"before=absent\nbefore_text={text}\n") == LinkJournal(
        host="spark-a",
        state=JournalState.APPLIED,
        token="260be41f0ac3ac64",  # noqa: S106  # the name of a change, not a secret
        holder="me@desk (pid 7)",
        since="2026-11-30T20:52:57Z",
        guard_s=90,
        has_before=True,
        before_text="# mine, no line end",
    )


@pytest.mark.parametrize(
    ("rest", "locked", "timer", "interrupted", "holder"),
    [
        (LOCK.format(1001) + "timer=active\n", True, True, False, "you@sofa (pid 8)"),
        (LOCK.format(1000) + "timer=active\n", False, True, False, "me@desk (pid 7)"),
        (LOCK.format(1000), False, False, True, "me@desk (pid 7)"),
        ("", False, False, True, "me@desk (pid 7)"),
    ],
)
def test_an_armed_change_is_interrupted_only_when_nobody_is_left_to_end_it(rest, locked, timer, interrupted, holder):
    journal = parsed(STATE.format(state="armed") + rest)

    assert (journal.locked, journal.timer_running, journal.interrupted, journal.holder) == (
        locked,
        timer,
        interrupted,
        holder,
    )


@pytest.mark.parametrize("text", ["state=flying\n", "state=applied\nguard_s=soon\n", "before_text=%\n"])
def test_a_journal_of_another_version_is_an_error(text):
    with pytest.raises(UnexpectedOutput, match="spark-a: the journal in /var/lib/sparkctl/links is not readable"):
        parsed(text)
