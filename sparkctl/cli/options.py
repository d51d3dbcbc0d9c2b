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
GuardOption = Annotated[
    int,
    typer.Option("--guard-seconds", help="A node that is not confirmed for this long takes the change back by itself."),
]
PpOption = Annotated[int | None, typer.Option("--pp", min=1, help="Deal the layers out over so many Sparks.")]
TpOption = Annotated[int | None, typer.Option("--tp", min=1, help="Split every layer over so many Sparks.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")]
