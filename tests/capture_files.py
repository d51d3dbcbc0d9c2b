"""Captured output of programs, as results of the command that printed it."""

from pathlib import Path

from sparkctl.transport.command import Command, CommandResult

_FOLDER = Path(__file__).parent / "captures"


def captured(name: str, command: Command, *, host: str = "spark-a", exit_code: int = 0) -> CommandResult:
    """name: path below tests/captures, `<tool>/<machine>--<case>.<out|json>`."""
    return CommandResult(host, command, exit_code, (_FOLDER / name).read_text(encoding="utf-8"))


def printed(text: str, command: Command, *, exit_code: int = 0, stderr: str = "") -> CommandResult:
    """A result that no capture is needed for, such as a missing program."""
    return CommandResult("spark-a", command, exit_code, text, stderr)
