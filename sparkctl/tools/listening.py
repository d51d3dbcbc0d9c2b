"""ss: which TCP ports somebody listens on."""

from dataclasses import dataclass

from sparkctl.errors import UnexpectedOutput
from sparkctl.transport.command import Command


@dataclass(frozen=True)
class Listener:
    """One listening TCP socket. address: without brackets; `*`, `0.0.0.0` and `::` mean every address."""

    address: str
    port: int


def listening_command() -> Command:
    """Listening TCP sockets, numeric, without a heading."""
    return Command(("ss", "-ltnH"))


def parse_listening(stdout: str) -> tuple[Listener, ...]:
    """Listeners in ss's order; empty when nobody listens.

    Raises UnexpectedOutput when a line has no local `address:port` in its fourth column. Source: ss(8).
    """
    return tuple(_listener(line) for line in stdout.splitlines() if line.strip())


def port_is_taken(listeners: tuple[Listener, ...], port: int) -> bool:
    """Whether a server that wants `port` on every address would fail."""
    return any(listener.port == port for listener in listeners)


def _listener(line: str) -> Listener:
    words = line.split()
    address, colon, port = words[3].rpartition(":") if len(words) > 3 else ("", "", "")
    if not colon or not port.isdigit():
        raise UnexpectedOutput(
            f"ss printed: {line}", remedy="run `ss -ltnH` on the host and report its output with your version of ss"
        )
    return Listener(address.strip("[]").partition("%")[0], int(port))
