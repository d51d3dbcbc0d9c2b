"""The options that every command shares, spelled once."""

from pathlib import Path
from typing import Annotated

import typer

InventoryOption = Annotated[
    Path | None,
    typer.Option("-i", "--inventory", help="Inventory file. Default: $SPARKCTL_INVENTORY, ./cluster.yaml, …"),
]
HostOption = Annotated[list[str] | None, typer.Option("--host", help="Only this host; repeatable.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
VerboseOption = Annotated[bool, typer.Option("-v", "--verbose", help="Show the commands run on hosts.")]
CheckOption = Annotated[
    bool, typer.Option("--check", help="Show what would change, change nothing; exit 10 if something would.")
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")]
