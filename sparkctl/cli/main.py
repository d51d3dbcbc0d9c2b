"""The `sparkctl` program: names and one-line helps of all commands; a command's code is loaded when it is called.

Everything a command needs (SSH, YAML, pydantic) costs start-up time, so this module knows commands only by name.
"""

import importlib
import sys
from dataclasses import dataclass
from typing import Any

import typer
from typer.core import CompletionItem, TyperGroup  # type: ignore[attr-defined]  # there, but not in its __all__
from typer.exceptions import TyperException

from sparkctl.errors import UsageError

_USAGE_CODE = UsageError.exit_code


@dataclass(frozen=True)
class _Entry:
    module: str
    help: str
    panel: str
    group: bool = False


_COMMANDS = {
    "up": _Entry("sparkctl.cli.up", "The whole path: discover, link, prove, serve, ask.", "The main job"),
    "down": _Entry("sparkctl.cli.up", "Stop what is served and put the links back.", "The main job"),
    "discover": _Entry("sparkctl.cli.discover", "Find the Sparks and how they are cabled.", "Machines"),
    "hosts": _Entry("sparkctl.cli.hosts", "Host keys and facts.", "Machines", group=True),
    "inventory": _Entry("sparkctl.cli.inventory", "Check an inventory file.", "Machines", group=True),
    "link": _Entry("sparkctl.cli.link", "Plan, set up, test and undo the links.", "Machines", group=True),
    "serve": _Entry("sparkctl.cli.serve", "Serve a model over the Sparks.", "Serving"),
    "ask": _Entry("sparkctl.cli.serve", "Ask the served model a question.", "Serving"),
    "status": _Entry("sparkctl.cli.serve", "What is served, where and how.", "Serving"),
    "logs": _Entry("sparkctl.cli.serve", "Logs of the served model's ranks.", "Serving"),
    "stop": _Entry("sparkctl.cli.serve", "Stop the served model and prove it is gone.", "Serving"),
    "lab": _Entry("sparkctl.cli.lab", "Virtual Sparks on this machine.", "Lab", group=True),
}


class LazyGroup(TyperGroup):
    """A group that imports the module of a command only when that command is called or asked for help."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]  # noqa: ARG002  # typer's base
        return list(_COMMANDS)

    # typer keeps the type of its commands private, hence Any.
    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # type: ignore[override]  # noqa: ARG002
        entry = _COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command = typer.main.get_command(importlib.import_module(entry.module).app)
        if not entry.group and isinstance(command, TyperGroup):
            return command.commands[cmd_name]
        command.name = cmd_name
        return command

    def shell_complete(self, ctx: typer.Context, incomplete: str) -> list[CompletionItem]:  # type: ignore[override]
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        # From the table: offering names must not cost the import of every command.
        matching = {name: entry for name, entry in _COMMANDS.items() if name.startswith(incomplete)}
        return [CompletionItem(name, help=entry.help) for name, entry in matching.items()]

    def format_commands(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]  # noqa: ARG002
        for panel in dict.fromkeys(entry.panel for entry in _COMMANDS.values()):
            with formatter.section(panel):
                formatter.write_dl([(name, entry.help) for name, entry in _COMMANDS.items() if entry.panel == panel])


app = typer.Typer(
    cls=LazyGroup,
    name="sparkctl",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(value: bool) -> None:
    if value:
        # Reading package metadata costs more than the rest of the start, so it is read only here.
        metadata = importlib.import_module("importlib.metadata")
        typer.echo(f"sparkctl {metadata.version('dgx-sparkctl')}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Show the version."),
) -> None:
    """From two DGX Sparks and a cable to a proven link and served tokens."""


def main(argv: list[str] | None = None) -> None:
    """Entry point of the `sparkctl` command. Exits with the codes of docs/exit-codes.md."""
    words = sys.argv[1:] if argv is None else argv
    command: Any = typer.main.get_command(app)
    try:
        code = command.main(args=words, prog_name="sparkctl", standalone_mode=False)
    except TyperException as error:
        code = _usage(error, as_json="--json" in words)
    except typer.Abort:
        typer.echo("interrupted", err=True)
        code = 130
    sys.exit(code or 0)


def _usage(error: TyperException, *, as_json: bool) -> int:
    """Report a wrong command line: usage and message, or the same envelope as any other error."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "sparkctl"
    if type(error).__name__ == "NoArgsIsHelpError":  # typer keeps this class private; its message is the help text
        typer.echo(error.format_message(), err=True)
        return _USAGE_CODE
    if not as_json:
        typer.echo(f"error: {error.format_message()}\n\nhint: `{path} --help`", err=True)
        return _USAGE_CODE
    envelope = importlib.import_module("sparkctl.report.envelope")
    finding = importlib.import_module("sparkctl.report.finding")
    wrong = UsageError(error.format_message(), remedy=f"`{path} --help`")
    name = path.removeprefix("sparkctl").strip()
    typer.echo(envelope.render_json(envelope.Envelope(name, finding.Status.USAGE, errors=(wrong,))))
    return _USAGE_CODE
