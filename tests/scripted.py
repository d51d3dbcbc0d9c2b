"""A Transport that answers from a script: the only fake in the tests, and it stands at the seam.

Load it with (predicate or text, result) pairs; it records every command and file it was given. The first pair whose
text occurs in the command's line answers; a command that no pair answers is a failed test.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from sparkctl.errors import SparkctlError
from sparkctl.transport.command import Command, CommandResult

Answer = str | tuple[int, str] | SparkctlError


@dataclass
class ScriptedTransport:
    """answers: (text that occurs in the command, stdout or (exit code, stdout) or an error to raise), in order."""

    host: str
    answers: list[tuple[str, Answer]] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    files: dict[str, tuple[str, int]] = field(default_factory=dict)
    closed: bool = False

    def run(self, command: Command) -> CommandResult:
        self.commands.append(command)
        for text, answer in self.answers:
            if text in str(command):
                if isinstance(answer, SparkctlError):
                    raise answer
                exit_code, stdout = answer if isinstance(answer, tuple) else (0, answer)
                return CommandResult(self.host, command, exit_code, stdout)
        raise AssertionError(f"no answer scripted for: {command}")

    def stream(self, command: Command, on_line: Callable[[str], None]) -> CommandResult:
        result = self.run(command)
        for line in result.stdout.splitlines():
            on_line(line)
        return CommandResult(self.host, command, result.exit_code, "", result.stderr)

    def write_file(self, path: str, content: str, *, mode: int, sudo: bool = False) -> None:  # noqa: ARG002
        self.files[path] = (content, mode)

    def close(self) -> None:
        self.closed = True
