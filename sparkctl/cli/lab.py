"""`sparkctl lab up|status|down|shell|fault`: virtual Sparks on this machine."""

import os
import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sparkctl.cli.options import JsonOption
from sparkctl.cli.session import Result, Session, run_command
from sparkctl.errors import UsageError
from sparkctl.lab.equipment import Equipment, build_equipment, equip_nodes
from sparkctl.lab.faults import cut_rail, mend_rail, power_off, power_on, set_rail_rate
from sparkctl.lab.host import install_programs, require_root
from sparkctl.lab.inventory_file import inventory_path, render_inventory, write_inventory
from sparkctl.lab.lifecycle import UpOutcome, lab_down, lab_up, purge_caches
from sparkctl.lab.model import DEFAULT_RAIL_MBIT_PER_S, LabSpec, plan_lab
from sparkctl.lab.node_files import USER
from sparkctl.lab.simulated import SIMULATED
from sparkctl.lab.status import LabHandle, LabState, NodeHandle, NodeState, lab_status
from sparkctl.report.finding import Status
from sparkctl.report.render import render_table

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, add_completion=False)

NameOption = Annotated[str, typer.Option("--name", help="Name of the lab.")]


class Fault(StrEnum):
    """What `lab fault` can do to a node."""

    CUT = "cut"
    MEND = "mend"
    RATE = "rate"
    OFF = "off"
    ON = "on"


@app.callback()
def group() -> None:
    """Virtual Sparks on this machine: containers with real sshd, netplan and Docker, joined by shaped links."""


@app.command()
def up(
    name: NameOption = "lab",
    nodes: Annotated[int, typer.Option("--nodes", help="How many nodes: spark-1, spark-2, …")] = 2,
    cable: Annotated[
        list[str] | None,
        typer.Option("--cable", help="Such as `spark-1:p0=spark-2:p1` or `spark-1:p0=switch`; repeatable."),
    ] = None,
    rail_rate: Annotated[
        int, typer.Option("--rail-rate", help="Mbit/s of each rail; a cage has two rails.")
    ] = DEFAULT_RAIL_MBIT_PER_S,
    inventory_out: Annotated[
        Path | None, typer.Option("--inventory-out", help="Inventory file to write. Default: inventory/NAME.yaml.")
    ] = None,
    engine: Annotated[
        bool, typer.Option("--engine", help="Also vLLM for the CPU in every node's Docker, and small models.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Start a lab and write its inventory; a running one is left alone. Needs root."""

    def body(session: Session) -> Result:
        cables = tuple(cable) if cable else None
        spec = plan_lab(name, nodes=nodes, cables=cables, rail_mbit_per_s=rail_rate)
        require_root(_typed())
        inventory = inventory_path(name, inventory_out)
        if not engine:
            return _up(session, spec, inventory)
        with session.phase("engine") as phase:
            install_programs(phase.update)
            equipment = build_equipment(phase.update)
        spec = plan_lab(name, nodes=nodes, cables=cables, rail_mbit_per_s=rail_rate, binds=equipment.binds)
        return _up(session, spec, inventory, equipment)

    run_command("lab up", Session(json=json), body)


@app.command()
def status(name: NameOption = "lab", json: JsonOption = False) -> None:
    """Which nodes run, how they are cabled, and what of them is simulated."""
    run_command("lab status", Session(json=json), lambda _: _status(lab_status(name)))


@app.command()
def down(
    name: NameOption = "lab",
    purge: Annotated[bool, typer.Option("--purge", help="Also remove the cached root file systems.")] = False,
    json: JsonOption = False,
) -> None:
    """Stop a lab and remove all of it; the cached root file system stays. Needs root."""

    def body(session: Session) -> Result:
        require_root(_typed())
        with session.phase(f"lab {name}") as phase:
            removed = lab_down(name, phase.update)
            if purge:
                purge_caches()
        said = f"lab `{name}` is stopped and removed" if removed else f"nothing of a lab `{name}` was there"
        return Result(data={"lab": name, "removed": removed, "caches_removed": purge}, lines=(said,))

    run_command("lab down", Session(json=json), body)


@app.command()
def fault(
    kind: Annotated[Fault, typer.Argument(help="cut or mend a rail, change its rate, switch the node off or on.")],
    node: Annotated[str, typer.Argument(help="Node, such as spark-1.")],
    rail: Annotated[str, typer.Option("--rail", help="Netdev for cut, mend and rate.")] = "enp1s0f0np0",
    rate: Annotated[int, typer.Option("--rate", help="Mbit/s for rate.")] = 100,
    name: NameOption = "lab",
    json: JsonOption = False,
) -> None:
    """Break a running lab on purpose, or mend it. Needs root."""

    def body(_: Session) -> Result:
        require_root(_typed())
        _break(kind, name, node, rail, rate)
        # The lab is as it was asked to be, broken or not.
        return replace(_status(lab_status(name)), status=Status.OK)

    run_command("lab fault", Session(json=json), body)


@app.command()
def shell(
    node: Annotated[str, typer.Argument(help="Node, such as spark-1.")],
    command: Annotated[list[str] | None, typer.Argument(help="A command instead of a shell, after `--`.")] = None,
    name: NameOption = "lab",
) -> None:
    """Open a shell on a node as its user, over SSH."""
    session = Session()
    argv: list[str] = []

    def body(_: Session) -> Result:
        argv.extend(_ssh(lab_status(name), node))
        return Result()

    try:
        run_command("lab shell", session, body)
    except typer.Exit as ended:
        if ended.exit_code != 0:
            raise
    os.execvp("ssh", [*argv, *(command or ())])  # noqa: S606, S607  # a terminal's program takes our place


def _up(session: Session, spec: LabSpec, inventory: Path, equipment: Equipment | None = None) -> Result:
    with session.phase(f"lab {spec.name}") as phase:
        result = lab_up(spec, phase.update)
        if equipment is not None:
            equip_nodes(result.lab, equipment, phase.update)
    fresh = result.outcome is UpOutcome.STARTED
    if fresh or not inventory.exists():
        write_inventory(inventory, render_inventory(result.lab, equipment.serving if equipment else None))
    first = f"lab `{spec.name}` is up" if fresh else f"lab `{spec.name}` was up already; nothing was changed"
    return Result(
        data={**_data(result.lab), "outcome": result.outcome, "inventory": str(inventory)},
        lines=(
            first,
            *_node_table(result.lab),
            f"inventory: {inventory}",
            f"next: `sparkctl discover -i {inventory}`; what is simulated: `sparkctl lab status --name {spec.name}`",
        ),
    )


def _status(lab: LabHandle) -> Result:
    if lab.state is LabState.ABSENT:
        missing = f"there is no lab `{lab.name}`; start it with `sparkctl lab up --name {lab.name}`"
        return Result(data=_data(lab), lines=(missing,), status=Status.FAILED)
    healthy = lab.state is LabState.RUNNING
    cables = ", ".join(map(str, lab.spec.cables)) if lab.spec and lab.spec.cables else "none"
    rate = f", {lab.spec.rail_mbit_per_s} Mbit/s per rail" if lab.spec else ""
    lines = (
        f"lab `{lab.name}`: {lab.state}",
        *_node_table(lab),
        f"cables: {cables}{rate}",
        "simulated:",
        *(f"  {thing.what}: {thing.how}" for thing in SIMULATED),
        *(() if healthy else (f"mend it with `sparkctl lab up --name {lab.name}`, which starts it afresh",)),
    )
    return Result(data=_data(lab), lines=lines, status=Status.OK if healthy else Status.FAILED)


def _break(kind: Fault, lab: str, node: str, rail: str, rate: int) -> None:
    match kind:
        case Fault.CUT:
            cut_rail(lab, node, rail)
        case Fault.MEND:
            mend_rail(lab, node, rail)
        case Fault.RATE:
            set_rail_rate(lab, node, rail, rate)
        case Fault.OFF:
            power_off(lab, node)
        case Fault.ON:
            power_on(lab, node)


def _ssh(lab: LabHandle, node: str) -> list[str]:
    found = next((handle for handle in lab.nodes if handle.name == node), None)
    if found is None:
        raise UsageError(f"lab `{lab.name}` has no node `{node}`", remedy="see `sparkctl lab status`")
    if found.state is NodeState.OFF:
        raise UsageError(f"node {node} is off", remedy=f"switch it on with `sparkctl lab fault on {node}`")
    if found.state is NodeState.BOOTING:
        raise UsageError(f"node {node} is booting", remedy="try again in a few seconds")
    options = (f"UserKnownHostsFile={lab.known_hosts}", "StrictHostKeyChecking=yes", "LogLevel=ERROR")
    return ["ssh", "-i", str(lab.key), *(word for o in options for word in ("-o", o)), f"{USER}@{found.address}"]


def _node_table(lab: LabHandle) -> tuple[str, ...]:
    return render_table(
        ("node", "state", "address", "namespace", "init"),
        [(node.name, node.state, str(node.address), node.netns, str(node.leader_pid or "-")) for node in lab.nodes],
    )


def _data(lab: LabHandle) -> dict[str, object]:
    return {
        "lab": lab.name,
        "state": lab.state,
        "directory": str(lab.directory),
        "key": str(lab.key),
        "known_hosts": str(lab.known_hosts),
        "nodes": [_node_data(node) for node in lab.nodes],
        "cables": [str(cable) for cable in lab.spec.cables] if lab.spec else [],
        "rail_mbit_per_s": lab.spec.rail_mbit_per_s if lab.spec else None,
        "simulated": [{"what": thing.what, "how": thing.how} for thing in SIMULATED],
    }


def _node_data(node: NodeHandle) -> dict[str, object]:
    return {
        "name": node.name,
        "state": node.state,
        "address": str(node.address),
        "netns": node.netns,
        "leader_pid": node.leader_pid,
    }


def _typed() -> tuple[str, ...]:
    """The command line as it was typed, with a path that root's PATH does not need to know."""
    program = Path(sys.argv[0])
    if program.name == "__main__.py":
        return (sys.executable, "-m", "sparkctl", *sys.argv[1:])
    return (str(program.absolute()) if program.exists() else program.name, *sys.argv[1:])
