"""`sparkctl hosts list|trust|facts`."""

from typing import Annotated

import typer

from sparkctl.cli.discover import list_hosts, show_facts
from sparkctl.cli.options import CheckOption, HostOption, InventoryOption, JsonOption, VerboseOption, YesOption
from sparkctl.cli.session import Result, Session, run_command
from sparkctl.errors import HostKeyRefused
from sparkctl.report.finding import Status
from sparkctl.report.render import render_table
from sparkctl.transport.hostkeys import OfferedKey, Trust, offered_key, pin_key

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, add_completion=False)


@app.callback()
def group() -> None:
    """Host keys and facts."""


@app.command("list")
def list_(
    inventory: InventoryOption = None,
    host: HostOption = None,
    json: JsonOption = False,
) -> None:
    """The inventory's hosts with defaults filled in, without contact to them."""
    run_command("hosts list", Session(inventory=inventory, hosts=host, json=json), list_hosts)


@app.command()
def facts(
    inventory: InventoryOption = None,
    host: HostOption = None,
    json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Everything known about each host, in one round trip each; changes nothing."""
    run_command("hosts facts", Session(inventory=inventory, hosts=host, json=json, verbose=verbose), show_facts)


@app.command()
def trust(
    inventory: InventoryOption = None,
    host: HostOption = None,
    replace: Annotated[bool, typer.Option("--replace", help="Pin a changed key in place of the old one.")] = False,
    check: CheckOption = False,
    yes: YesOption = False,
    json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Show the hosts' key fingerprints and pin them, after you have compared them."""
    session = Session(inventory=inventory, hosts=host, json=json, verbose=verbose)
    run_command("hosts trust", session, lambda s: _trust(s, replace=replace, check=check, yes=yes))


def _trust(session: Session, *, replace: bool, check: bool, yes: bool) -> Result:
    offered = [offered_key(host) for host in session.cluster.hosts]
    lines = render_table(
        ("host", "address", "key", "fingerprint", "state"),
        [(key.host.name, key.host.address, key.key_type, key.fingerprint, key.trust) for key in offered],
    )
    pending = [key for key in offered if key.trust is not Trust.PINNED]
    if not pending:
        return Result(data=_data(offered), lines=(*lines, "all keys are pinned; no changes"))
    if check:
        return Result(data=_data(offered), lines=lines, status=Status.CHANGES)
    changed = [key for key in pending if key.trust is Trust.CHANGED]
    if changed and not replace:
        raise HostKeyRefused(
            f"the host key has changed: pinned {changed[0].pinned_fingerprint}, offered {changed[0].fingerprint}",
            where=changed[0].host.name,
            remedy="on the machine, compare `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub`; if it is right, "
            f"`sparkctl hosts trust --host {changed[0].host.name} --replace`",
        )
    session.show(lines)
    session.say("Compare each with `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` on the machine itself.")
    session.confirm(f"Pin {len(pending)} key{'s' if len(pending) > 1 else ''}?", yes=yes)
    for key in pending:
        pin_key(key)
    return Result(data=_data(offered), lines=(f"pinned: {', '.join(key.host.name for key in pending)}",))


def _data(offered: list[OfferedKey]) -> dict[str, object]:
    return {
        "hosts": [
            {
                "host": key.host.name,
                "address": key.host.address,
                "key_type": key.key_type,
                "fingerprint": key.fingerprint,
                "trust": key.trust,
            }
            for key in offered
        ]
    }
