"""What every command runs inside: options, terminal, error boundary, envelope and exit code.

A command body gets a Session and returns a Result; it prints nothing itself except through the session.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NoReturn

import typer

from sparkctl.cli.console import Phase, Terminal
from sparkctl.cli.wiring import cluster_of, transports_for
from sparkctl.errors import Interrupted, SparkctlError, UsageError
from sparkctl.inventory.model import Cluster
from sparkctl.report.envelope import Envelope, render_json
from sparkctl.report.finding import EXIT_CODES, Finding, Status, derived_status
from sparkctl.report.render import render_error, render_findings
from sparkctl.transport.command import Command, Transport


@dataclass(frozen=True)
class Result:
    """What a command body returns.

    data: the `data` object of the envelope. lines: the same for people. findings: printed after the lines.
    status: None means that it follows from the findings. error: what ended the command after part of its work; its
    exit code then counts.
    """

    data: Mapping[str, object] = field(default_factory=dict)
    lines: Sequence[str] = ()
    findings: tuple[Finding, ...] = ()
    status: Status | None = None
    error: SparkctlError | None = None


class Session:
    """One command's inventory, hosts and terminal."""

    def __init__(
        self,
        *,
        inventory: Path | None = None,
        hosts: Sequence[str] | None = None,
        json: bool = False,
        verbose: bool = False,
    ) -> None:
        self.inventory = inventory
        self.json = json
        self.terminal = Terminal(json=json)
        self._host_names = tuple(hosts or ())
        self._verbose = verbose
        self._opened: list[Transport] = []

    @cached_property
    def cluster(self) -> Cluster:
        """The inventory in force, narrowed by --host. Raises UsageError or InvalidInventory."""
        return cluster_of(self.inventory, self._host_names)

    @cached_property
    def transports(self) -> tuple[Transport, ...]:
        """One per host of the cluster, in inventory order."""
        return self.open_transports(self.cluster)

    def open_transports(self, cluster: Cluster) -> tuple[Transport, ...]:
        """Transports for a cluster that may not come from a file; closed with the session."""
        opened = transports_for(cluster.hosts, self._observe if self._verbose else None)
        self._opened.extend(opened)
        return opened

    def show(self, lines: Sequence[str]) -> None:
        """Show a part of the result at once, such as a diff before its question."""
        self.terminal.show(lines)

    def say(self, line: str) -> None:
        """Say something that is no result."""
        self.terminal.say(line)

    @contextmanager
    def phase(self, title: str) -> Iterator[Phase]:
        """Progress for a step."""
        with self.terminal.phase(title) as phase:
            yield phase

    def confirm(self, question: str, *, yes: bool) -> None:
        """Go on only if the user agrees. Raises UsageError when nobody can be asked, Interrupted on a no."""
        if yes:
            return
        if self.json or not sys.stdin.isatty():
            raise UsageError(f"cannot ask: {question}", remedy="add `--yes` to go on without a question, or `--check`")
        if not typer.confirm(question, err=True):
            raise Interrupted("stopped at your word; nothing was changed", remedy="run it again when ready")

    def close(self) -> None:
        """End all connections."""
        for transport in self._opened:
            transport.close()

    def _observe(self, host: str, command: Command) -> None:
        self.say(f"  {host}$ {command}")


def run_command(name: str, session: Session, body: Callable[[Session], Result]) -> NoReturn:
    """Run a command's body inside the error boundary, print its envelope or lines, and exit with its code."""
    envelope, lines = _envelope(name, session, body)
    if session.json:
        session.terminal.raw(render_json(envelope))
    else:
        session.terminal.show(lines)
        for error in envelope.errors:
            for line in render_error(error):
                session.say(line)
    raise typer.Exit(envelope.exit_code)


def _envelope(name: str, session: Session, body: Callable[[Session], Result]) -> tuple[Envelope, Sequence[str]]:
    try:
        result = body(session)
    except SparkctlError as error:
        return Envelope(name, status_of(error), errors=(error,)), ()
    except KeyboardInterrupt:
        stopped = Interrupted(f"`{name}` was interrupted", remedy=f"run `sparkctl {name}` again; it continues safely")
        return Envelope(name, Status.INTERRUPTED, errors=(stopped,)), ()
    finally:
        session.close()
    errors = (result.error,) if result.error is not None else ()
    status = status_of(result.error) if result.error is not None else result.status or derived_status(result.findings)
    return (
        Envelope(name, status, result.data, result.findings, errors),
        (*result.lines, *render_findings(result.findings)),
    )


def status_of(error: SparkctlError) -> Status:
    """The status whose exit code the error carries."""
    return next(status for status, code in EXIT_CODES.items() if code == error.exit_code)
