"""Turning what a program printed into checked values; what cannot be read becomes UnexpectedOutput, never a default."""

import json

from sparkctl.errors import UnexpectedOutput
from sparkctl.transport.command import CommandResult

_SHOWN_CHARACTERS = 120


def unexpected(result: CommandResult, program: str) -> UnexpectedOutput:
    """The error that names program, host and the first line that was printed."""
    lines = [line.strip() for line in result.stdout.splitlines() if line.strip()]
    first = lines[0][:_SHOWN_CHARACTERS] if lines else "nothing"
    return UnexpectedOutput(
        f"{program} printed what sparkctl does not know: {first}",
        where=result.host,
        remedy=f"run `{_shown(str(result.command))}` on {result.host} and report its output with your program versions",
    )


def json_value(result: CommandResult, program: str) -> object:
    """The JSON value on standard output. Raises UnexpectedOutput when it is none."""
    try:
        value: object = json.loads(result.stdout)
    except ValueError as error:
        raise unexpected(result, program) from error
    return value


def json_rows(result: CommandResult, program: str) -> list[dict[str, object]]:
    """The JSON list of objects on standard output. Raises UnexpectedOutput when it is anything else."""
    value = json_value(result, program)
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        raise unexpected(result, program)
    return value


def _shown(line: str) -> str:
    return line if len(line) <= _SHOWN_CHARACTERS else line[:_SHOWN_CHARACTERS] + " …"
