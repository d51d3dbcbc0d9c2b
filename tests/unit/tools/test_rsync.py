from sparkctl.tools.rsync import Progress, daemon_config, fetch_command, parse_complaint, parse_progress
from tests.serving_examples import CAPTURES


def test_progress_lines():
    lines = (CAPTURES / "rsync" / "lab--progress2.out").read_text().replace("\r", "\n").splitlines()
    steps = [step for step in map(parse_progress, lines) if step is not None]
    assert steps[-1].percent == 100
    assert steps[-1].done_bytes > 200_000_000
    assert all(step.bytes_per_s >= 0 for step in steps)


def test_units():
    assert parse_progress("  1,024  50%  2.00kB/s    0:00:12") == Progress(1024, 50, 2048.0)
    assert parse_progress("@ERROR: auth failed on module model") is None


def test_the_secret_is_never_in_the_command_line():
    command = fetch_command(address="10.0.0.1", port=1, target="/t", secret="s3cr3t", timeout_s=1)  # noqa: S106
    assert "s3cr3t" not in command.shell_line()
    assert command.stdin == "s3cr3t\n"


def test_the_daemon_listens_on_the_rail_only():
    text = daemon_config(source="/m", address="10.0.0.1", client_address="10.0.0.2", port=1, directory="/d")
    assert "address = 10.0.0.1\n" in text
    assert "hosts allow = 10.0.0.2\n" in text
    assert "read only = yes\n" in text
    assert "lock file = /d/lock\n" in text


def test_the_daemons_complaint_comes_before_rsyncs_own():
    words = "@ERROR: failed to open lock file\nrsync error: error starting client-server protocol (code 5)\n"
    assert parse_complaint(words) == "@ERROR: failed to open lock file"
    assert parse_complaint("") == ""
