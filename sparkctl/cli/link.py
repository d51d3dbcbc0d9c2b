"""`sparkctl link plan|up|status|down|test`."""

from dataclasses import replace
from typing import Annotated

import typer

from sparkctl.apply.journal import read_journals
from sparkctl.apply.links import DEFAULT_GUARD_S, Applied
from sparkctl.cli.link_stages import (
    PlannedLinks,
    bandwidth_stage,
    down_stage,
    end_interrupted,
    journal_findings,
    missing_iperf3,
    new_guard,
    plan_down,
    plan_stage,
    up_stage,
)
from sparkctl.cli.options import (
    CheckOption,
    GuardOption,
    HostOption,
    InventoryOption,
    JsonOption,
    VerboseOption,
    YesOption,
)
from sparkctl.cli.session import Result, Session, run_command
from sparkctl.facts.gather import gather_cluster
from sparkctl.inventory.model import MAX_MTU_BYTES, MIN_MTU_BYTES, Cluster
from sparkctl.plan.measurements import DEFAULT_SECONDS
from sparkctl.report.finding import Finding, Status, derived_status
from sparkctl.report.render_links import render_changes, render_link_plan, render_rates
from sparkctl.verify.bandwidth import bandwidth_findings
from sparkctl.verify.links import judge_links
from sparkctl.verify.measure import observe_links

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, add_completion=False)

MtuOption = Annotated[
    int | None,
    typer.Option("--mtu", min=MIN_MTU_BYTES, max=MAX_MTU_BYTES, help="Layer-3 size in bytes; else the inventory's."),
]
SecondsOption = Annotated[int, typer.Option("--seconds", min=1, max=60, help="Duration of each measurement.")]


@app.callback()
def group() -> None:
    """Plan, set up, test and undo the links between the Sparks."""


@app.command()
def plan(
    inventory: InventoryOption = None,
    host: HostOption = None,
    mtu: MtuOption = None,
    json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Show addresses, MTU and netplan files as `link up` would set them; changes nothing."""
    session = Session(inventory=inventory, hosts=host, json=json, verbose=verbose)
    run_command("link plan", session, lambda s: _plan(s, mtu))


@app.command()
def up(
    inventory: InventoryOption = None,
    host: HostOption = None,
    mtu: MtuOption = None,
    guard_seconds: GuardOption = DEFAULT_GUARD_S,
    check: CheckOption = False,
    yes: YesOption = False,
    json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Bring every rail to plan, verify it, and take everything back if that fails."""
    session = Session(inventory=inventory, hosts=host, json=json, verbose=verbose)
    run_command("link up", session, lambda s: _up(s, mtu, guard_seconds, check=check, yes=yes))


@app.command()
def status(
    inventory: InventoryOption = None,
    host: HostOption = None,
    mtu: MtuOption = None,
    json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Compare the links with their plan, prove each rail, and tell how the last change ended."""
    session = Session(inventory=inventory, hosts=host, json=json, verbose=verbose)
    run_command("link status", session, lambda s: _status(s, mtu))


@app.command()
def down(
    inventory: InventoryOption = None,
    host: HostOption = None,
    guard_seconds: GuardOption = DEFAULT_GUARD_S,
    check: CheckOption = False,
    yes: YesOption = False,
    json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Put back exactly what was there before the first `link up`."""
    session = Session(inventory=inventory, hosts=host, json=json, verbose=verbose)
    run_command("link down", session, lambda s: _down(s, guard_seconds, check=check, yes=yes))


@app.command("test")
def measure(
    inventory: InventoryOption = None,
    host: HostOption = None,
    mtu: MtuOption = None,
    seconds: SecondsOption = DEFAULT_SECONDS,
    json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Measure TCP bandwidth per rail and together, both ways, against the floor of the link."""
    session = Session(inventory=inventory, hosts=host, json=json, verbose=verbose)
    run_command("link test", session, lambda s: _test(s, mtu, seconds))


def _plan(session: Session, mtu: int | None) -> Result:
    planned = _planned(session, mtu)
    return Result(
        data={"plan": planned.plan}, lines=(*render_link_plan(planned.plan), "", *render_changes(planned.changes))
    )


def _up(session: Session, mtu: int | None, guard_s: int, *, check: bool, yes: bool) -> Result:
    new_guard(guard_s)  # says at once when the time is too short
    recovered = () if check else end_interrupted(session.transports)
    planned = _planned(session, mtu)
    data = {"plan": planned.plan, "changes": planned.changes}
    if check:
        changed = Status.CHANGES if planned.changes else Status.OK
        return Result(data=data, lines=render_changes(planned.changes), status=changed)
    if planned.changes:
        session.show((*render_link_plan(planned.plan), "", *render_changes(planned.changes), ""))
        hosts = ", ".join(dict.fromkeys(change.host for change in planned.changes))
        session.confirm(f"Apply this to {hosts}?", yes=yes)
    with session.phase("links up") as phase:
        applied = up_stage(session.transports, planned, guard_s, phase.update)
    lines = ("links are up" if applied.kept else "the change was taken back",) if planned.changes else ("no changes",)
    return _ended(data, lines, (*recovered, *applied.findings), applied)


def _status(session: Session, mtu: int | None) -> Result:
    journals = read_journals(session.transports).require_all()
    planned = _planned(session, mtu)
    findings = judge_links(planned.plan, observe_links(session.transports, planned.plan))
    data = {"plan": planned.plan, "changes": planned.changes, "journals": list(journals.values())}
    differing = dict.fromkeys(change.host for change in planned.changes)
    summary = f"{', '.join(differing)} would be changed by `sparkctl link up`" if differing else "no changes"
    lines = (*render_link_plan(planned.plan), "", summary, "")
    return Result(data=data, lines=lines, findings=(*journal_findings(journals), *findings))


def _down(session: Session, guard_s: int, *, check: bool, yes: bool) -> Result:
    new_guard(guard_s)
    recovered = () if check else end_interrupted(session.transports)
    facts, before, changes = plan_down(session.transports)
    if check or not changes:
        lines = render_changes(changes) if changes else ("nothing to do: nothing of sparkctl is there",)
        changed = Status.CHANGES if changes else Status.OK
        return Result(data={"changes": changes}, lines=lines, findings=recovered, status=changed)
    session.show((*render_changes(changes), ""))
    session.confirm(f"Apply this to {', '.join(before)}?", yes=yes)
    with session.phase("links down") as phase:
        applied = down_stage(session.transports, facts, before, guard_s, phase.update)
    lines = ("links are as before sparkctl" if applied.kept else "the change was taken back",)
    return _ended({"changes": changes}, lines, (*recovered, *applied.findings), applied)


def _test(session: Session, mtu: int | None, seconds: int) -> Result:
    planned = _planned(session, mtu)
    missing = missing_iperf3(planned.facts)
    if missing:
        return Result(findings=missing)
    broken = _worse_than_ok(judge_links(planned.plan, observe_links(session.transports, planned.plan)))
    if any(finding.code == "link.not-set-up" for finding in broken):
        return Result(findings=broken)
    with session.phase("bandwidth") as phase:
        verdicts = bandwidth_stage(
            session.transports,
            planned.facts,
            planned.plan,
            seconds,
            lambda item, index, total: phase.update(item.subject, done=index, total=total),
        )
    simulated = {name: host.simulated for name, host in planned.facts.items()}
    findings = (*broken, *bandwidth_findings(verdicts, simulated))
    table = render_rates([(v.subject, v.gbit_per_s, v.floor_gbit_per_s, v.verdict) for v in verdicts])
    return Result(
        data={
            "verdicts": verdicts,
            "simulated": simulated,
            "seconds": seconds,
            "expect_gbit_per_s": planned.plan.expect_gbit_per_s,
        },
        lines=(*table, ""),
        findings=findings,
    )


def _planned(session: Session, mtu: int | None) -> PlannedLinks:
    facts = gather_cluster(session.transports).require_all()
    return plan_stage(_with_mtu(session.cluster, mtu), facts)


def _with_mtu(cluster: Cluster, mtu: int | None) -> Cluster:
    return cluster if mtu is None else replace(cluster, links=replace(cluster.links, mtu_bytes=mtu))


def _ended(data: dict[str, object], lines: tuple[str, ...], findings: tuple[Finding, ...], applied: Applied) -> Result:
    status = derived_status(findings) if applied.kept else Status.FAILED
    return Result(data=data | {"kept": applied.kept}, lines=lines, findings=findings, status=status)


def _worse_than_ok(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    return tuple(finding for finding in findings if finding.remedy)
