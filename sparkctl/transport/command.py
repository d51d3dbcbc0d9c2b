"""The seam between sparkctl and a host: a command goes in, a result comes out."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

# coreutils timeout(1) exits with these when it had to end the program (SIGTERM, then SIGKILL).
TIMED_OUT_CODES = frozenset({124, 137})


@dataclass(frozen=True)
class Command:
    """One call of one program on one host.

    argv: program and arguments, unquoted; the transport quotes them.
    sudo: run through `sudo -n`; a password prompt is an error of class AccessRefused.
    timeout_s: seconds after which the host itself ends the program, so that nothing is left running there.
    stdin: text handed to standard input; the way for secrets, which must never stand in argv.
    """

    argv: tuple[str, ...]
    sudo: bool = False
    timeout_s: float = 30.0
    stdin: str | None = None

    def shell_line(self) -> str:
        """The exact line a POSIX shell on the host gets, with its own time limit in front."""
        limited = ("timeout", "--kill-after=5", f"{self.timeout_s:g}", *self.argv)
        return shlex.join(("sudo", "-n", *limited) if self.sudo else limited)

    def __str__(self) -> str:
        return shlex.join(("sudo", *self.argv) if self.sudo else self.argv)


@dataclass(frozen=True)
class CommandResult:
    """What a command did on a host. A non-zero exit code is a result, not an error.

    exit_code: of the program; 124 or 137 when its time was up (see `timed_out`), 127 when there is no such program.
    """

    host: str
    command: Command
    exit_code: int
    stdout: str
    stderr: str = ""

    @property
    def ok(self) -> bool:
        return self.exit_code == 0

    @property
    def timed_out(self) -> bool:
        return self.exit_code in TIMED_OUT_CODES

    def last_words(self) -> str:
        """The last line of stderr, else of stdout: what a person wants to read first after a failure."""
        lines = [line.strip() for line in (self.stderr or self.stdout).splitlines() if line.strip()]
        return lines[-1] if lines else f"exit code {self.exit_code}, no output"


class Transport(Protocol):
    """Touches one host.

    Every method raises HostUnreachable when contact is lost, HostKeyRefused when the host key is unknown or has
    changed, AccessRefused when no key is accepted or sudo asks for a password. Nothing else is raised.
    """

    @property
    def host(self) -> str:
        """The host's name in the inventory."""
        ...

    def run(self, command: Command) -> CommandResult:
        """Run to the end and return everything it printed."""
        ...

    def stream(self, command: Command, on_line: Callable[[str], None]) -> CommandResult:
        """Run and call `on_line` for each line of stdout as it comes; stderr is in the result."""
        ...

    def write_file(self, path: str, content: str, *, mode: int, sudo: bool = False) -> None:
        """Put `content` at `path` atomically with exactly `mode`; with sudo it belongs to root.

        Raises OperationFailed when the host has no room or right for it; the former file is then untouched.
        """
        ...

    def close(self) -> None:
        """End the connection; safe to call twice."""
        ...
