"""`sparkctl inventory check`."""

from pathlib import Path
from typing import Annotated

import typer

from sparkctl.cli.options import JsonOption
from sparkctl.cli.session import Result, Session, run_command
from sparkctl.inventory.load import inventory_path, load_cluster
from sparkctl.report.render_inventory import render_host_table

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, add_completion=False)


@app.callback()
def group() -> None:
    """Check an inventory file."""


@app.command()
def check(
    file: Annotated[Path | None, typer.Argument(help="Default: the inventory in force.")] = None,
    json: JsonOption = False,
) -> None:
    """Say whether the file is right, with all mistakes at once, and what it means with its defaults filled in."""
    run_command("inventory check", Session(json=json), lambda _: _check(file))


def _check(file: Path | None) -> Result:
    cluster = load_cluster(inventory_path(file))
    return Result(
        data={"cluster": cluster},
        lines=(
            f"{cluster.source}: cluster {cluster.name}, {len(cluster.hosts)} hosts, no mistakes",
            *render_host_table(cluster.hosts),
        ),
    )
