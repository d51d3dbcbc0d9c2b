"""Logs of all ranks on one screen, each line with its node in front."""

from contextlib import suppress

from sparkctl.cli.serving_stages import by_host
from sparkctl.cli.session import Session
from sparkctl.facts.served import ServedGroup
from sparkctl.tools.docker import LogLine, follow_command, logs_command, parse_log_line, parse_logs
from sparkctl.transport.command import Transport
from sparkctl.transport.fanout import on_all

# A day; whoever follows longer starts it again.
_FOLLOW_LIMIT_S = 86_400.0


def last_logs(session: Session, group: ServedGroup, *, tail: int) -> tuple[str, ...]:
    """The last `tail` lines of every rank, merged by the time the hosts stamped on them."""
    names = {rank.host: rank.container.name for rank in group.ranks}

    def read(transport: Transport) -> tuple[LogLine, ...]:
        result = transport.run(logs_command(names[transport.host], tail=tail))
        return parse_logs(result.stdout, result.stderr)

    found = on_all([by_host(session)[host] for host in names], read).require_all()
    width = max(len(host) for host in names)
    rows = [(line.time, f"{host:{width}} | {line.text}") for host, lines in found.items() for line in lines]
    return tuple(text for _, text in sorted(rows, key=lambda row: row[0]))


def follow_logs(session: Session, group: ServedGroup, *, tail: int) -> None:
    """Print lines as they come, until all containers end or Ctrl-C, which is the normal way out."""
    names = {rank.host: rank.container.name for rank in group.ranks}
    width = max(len(host) for host in names)

    def follow(transport: Transport) -> None:
        def on_line(text: str) -> None:
            line = parse_log_line(text)
            session.show((f"{transport.host:{width}} | {line.text if line else text}",))

        transport.stream(follow_command(names[transport.host], tail=tail, timeout_s=_FOLLOW_LIMIT_S), on_line)

    with suppress(KeyboardInterrupt):
        on_all([by_host(session)[host] for host in names], follow).require_all()
