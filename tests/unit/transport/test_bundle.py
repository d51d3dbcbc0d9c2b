import subprocess

import pytest

from sparkctl.errors import UnexpectedOutput
from sparkctl.transport.bundle import pack_commands, shell, unpack_results
from sparkctl.transport.command import Command, CommandResult


def run_here(command: Command) -> CommandResult:
    """Run a bundle with this machine's own sh: the script is what is under test, not the wire."""
    done = subprocess.run(["sh", "-c", command.shell_line()], capture_output=True, text=True, check=False)
    return CommandResult("here", command, done.returncode, done.stdout, done.stderr)


def test_each_member_keeps_its_own_output_and_exit_code():
    members = (
        Command(("printf", "one\ntwo")),
        shell("echo out; echo err >&2; exit 3"),
        Command(("no-such-program-here",)),
        Command(("printf", "[sparkctl 1 0 0 0]\nä; 'quoted' $HOME")),
    )

    results = unpack_results(run_here(pack_commands(members)), members)

    assert [(r.exit_code, r.stdout, r.stderr) for r in results if r.exit_code != 127] == [
        (0, "one\ntwo", ""),
        (3, "out\n", "err\n"),
        (0, "[sparkctl 1 0 0 0]\nä; 'quoted' $HOME", ""),
    ]
    assert results[2].exit_code == 127
    assert "no-such-program-here" in results[2].stderr


def test_a_member_that_hangs_is_ended_by_the_host_and_the_others_are_kept():
    members = (Command(("sleep", "60"), timeout_s=0.3), Command(("echo", "fine")))

    results = unpack_results(run_here(pack_commands(members)), members)

    assert results[0].timed_out
    assert results[1].stdout == "fine\n"


def test_members_run_side_by_side():
    members = tuple(shell("sleep 0.4; date +%s%N") for _ in range(4))

    results = unpack_results(run_here(pack_commands(members)), members)

    ends = [int(result.stdout) for result in results]
    assert max(ends) - min(ends) < 0.4e9  # one after the other they would end 1.2 s apart


def test_a_cut_off_answer_names_host_and_count():
    members = (Command(("echo", "a")), Command(("echo", "b")))
    whole = run_here(pack_commands(members))
    cut = CommandResult("spark-a", whole.command, 0, whole.stdout[: len(whole.stdout) // 2])

    with pytest.raises(UnexpectedOutput, match=r"spark-a: the host returned [01] of 2 results"):
        unpack_results(cut, members)


def test_nothing_in_gives_nothing_out():
    assert unpack_results(run_here(pack_commands(())), ()) == ()
