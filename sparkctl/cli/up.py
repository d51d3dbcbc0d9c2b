"""`sparkctl up` and `sparkctl down`: the whole path, stage by stage, and back."""

from typing import Annotated

import typer

from sparkctl.apply.links import DEFAULT_GUARD_S
from sparkctl.cli.options import (
    CheckOption,
    GuardOption,
    HostOption,
    InventoryOption,
    JsonOption,
    PpOption,
    TpOption,
    VerboseOption,
    YesOption,
)
from sparkctl.cli.session import Session, run_command
from sparkctl.cli.up_stages import Wish, walk_down, walk_up

app = typer.Typer(rich_markup_mode=None)

DEFAULT_QUESTION = "What is the capital of France?"


@app.callback()
def group() -> None:
    """The whole path."""


@app.command()
def up(
    model: Annotated[
        str | None, typer.Argument(help="Model to serve. Default: serving.model; without one only the links are made.")
    ] = None,
    pp: PpOption = None,
    tp: TpOption = None,
    question: Annotated[str, typer.Option("--question", help="What to ask the model at the end.")] = DEFAULT_QUESTION,
    guard_seconds: GuardOption = DEFAULT_GUARD_S,
    check: CheckOption = False,
    yes: YesOption = False,
    inventory: InventoryOption = None,
    host: HostOption = None,
    json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """From an inventory to a proven link and a served model; stops at the first thing that is not right."""
    session = Session(inventory=inventory, hosts=host, json=json, verbose=verbose)
    wish = Wish(model=model, tp=tp, pp=pp, question=question, guard_s=guard_seconds, check=check, yes=yes)
    run_command("up", session, lambda s: walk_up(s, wish))


@app.command()
def down(
    guard_seconds: GuardOption = DEFAULT_GUARD_S,
    check: CheckOption = False,
    yes: YesOption = False,
    inventory: InventoryOption = None,
    host: HostOption = None,
    json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Stop what is served and put the links back to what they were before sparkctl."""
    session = Session(inventory=inventory, hosts=host, json=json, verbose=verbose)
    run_command("down", session, lambda s: walk_down(s, guard_seconds, check=check, yes=yes))
