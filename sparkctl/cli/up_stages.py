"""The stages of the whole path. Each one is right, or it is the last."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sparkctl.cli.discover import public_facts
from sparkctl.cli.link_stages import (
    PlannedLinks,
    bandwidth_stage,
    down_stage,
    end_interrupted,
    missing_iperf3,
    new_guard,
    plan_down,
    plan_stage,
    up_stage,
)
from sparkctl.cli.serving_stages import (
    ask_group,
    find_group,
    make_ready,
    prepare,
    start_and_prove,
    stop_group,
    take_over,
    unreachable_findings,
    wished_layout,
)
from sparkctl.cli.session import Result, Session
from sparkctl.cli.walk import Walk
from sparkctl.diff.serving import ServingChange
from sparkctl.errors import Interrupted, SparkctlError
from sparkctl.facts.gather import gather_cluster
from sparkctl.facts.model import HostFacts
from sparkctl.plan.serving import ServingPlan, ServingRequest
from sparkctl.plan.topology import assemble_cabling
from sparkctl.report.finding import Finding, Severity, Status
from sparkctl.report.render_facts import render_cabling, render_hosts
from sparkctl.report.render_links import render_changes as render_link_changes
from sparkctl.report.render_links import render_link_plan, render_rates
from sparkctl.report.render_serving import failure_finding, render_failure, render_plan, render_start
from sparkctl.report.render_serving import render_changes as render_serving_changes
from sparkctl.report.render_up import render_answer
from sparkctl.report.serving import StartFailure, StartReport
from sparkctl.verify.bandwidth import bandwidth_findings
from sparkctl.verify.cabling import judge_cabling
from sparkctl.verify.hosts import judge_hosts

# Seconds per measurement: the first proof of a link takes its time, the proof that nothing has changed is quick.
_FIRST_PROOF_S, _REPEATED_PROOF_S = 2, 1
_ANSWER_TOKENS = 64


@dataclass(frozen=True)
class Wish:
    """What the command line asks `up` for. model, tp, pp: None takes the inventory's."""

    model: str | None
    tp: int | None
    pp: int | None
    question: str
    guard_s: int
    check: bool
    yes: bool


def walk_up(session: Session, wish: Wish) -> Result:
    """Discover, link, prove, serve, ask; findings that are not right end it early.

    An error or Ctrl-C becomes part of the result, so that the report of the stages before it is not lost.
    """
    # What is wrong with the command line or the inventory is said before anything is walked.
    new_guard(wish.guard_s)
    walk = Walk(session, {"cluster": session.cluster.name})
    try:
        _walk_up(walk, wish)
    except SparkctlError as error:
        return walk.result(error)
    except KeyboardInterrupt:
        state = "see the stages above; nothing is half done"
        return walk.result(
            Interrupted(f"interrupted; {state}", remedy="run `sparkctl up` again; it goes on from there")
        )
    return walk.result()


def _walk_up(walk: Walk, wish: Wish) -> None:
    facts = _discover(walk)
    if walk.stopped:
        return
    planned = _link(walk, facts, wish)
    if walk.stopped or (wish.check and planned.changes):
        return
    if not wish.check:
        facts = _prove(walk, planned)
        if walk.stopped:
            return
    model = wish.model or walk.session.cluster.serving.model
    if model is None:
        walk.found(Finding(Severity.INFO, "up.no-model", "serving", "no model named; `sparkctl up MODEL` serves one"))
        return
    plan = _serve(walk, wish, model, facts)
    if plan is not None and not walk.stopped and not walk.would_change:
        _ask(walk, wish)


def walk_down(session: Session, guard_s: int, *, check: bool, yes: bool) -> Result:
    """Stop what is served, then take the links back. Raises what the stages raise."""
    new_guard(guard_s)
    walk = Walk(session)
    group, running, errors = find_group(session)
    walk.found(*unreachable_findings(errors))
    if walk.stopped:
        return walk.result()
    if not check:
        walk.found(*end_interrupted(session.transports))
    facts, before, changes = plan_down(session.transports)
    ranks = [f"- {rank.host}: stop rank {rank.rank} of {group.model}" for rank in group.ranks] if group else []
    if not ranks and not changes:
        return Result(lines=("nothing of sparkctl is running or set up; no changes",), findings=tuple(walk.findings))
    lines = (*ranks, *(render_link_changes(changes) if changes else ()))
    if check:
        return Result({"ranks": ranks, "changes": changes}, lines, tuple(walk.findings), Status.CHANGES)
    session.show((*lines, ""))
    session.confirm(f"Do this on {', '.join(host.name for host in session.cluster.hosts)}?", yes=yes)
    if group is not None:
        with walk.stage("stop"):
            walk.found(*stop_group(session, group, running))
    if changes and not walk.stopped:
        with walk.stage("links"), session.phase("links down") as phase:
            walk.found(*down_stage(session.transports, facts, before, guard_s, phase.update).findings)
    if not walk.stopped:
        walk.lines.append("nothing is served, and the links are as before sparkctl")
    return walk.result()


def _discover(walk: Walk) -> Mapping[str, HostFacts]:
    session = walk.session
    with walk.stage("discover"), session.phase(f"reading {len(session.transports)} hosts"):
        facts = gather_cluster(session.transports).require_all()
    cabling = assemble_cabling(facts, [host.name for host in session.cluster.hosts])
    walk.data |= {"nodes": public_facts(facts), "cabling": cabling}
    walk.lines += [*render_hosts(facts, {}), "", *render_cabling(cabling), ""]
    expected = session.cluster.links.expect_gbit_per_s
    walk.found(*judge_hosts(facts, members=True), *judge_cabling(facts, cabling, expect_gbit_per_s=expected))
    return facts


def _link(walk: Walk, facts: Mapping[str, HostFacts], wish: Wish) -> PlannedLinks:
    session = walk.session
    with walk.stage("link"):
        if not wish.check:
            recovered = end_interrupted(session.transports)
            walk.found(*recovered)
            if recovered:
                facts = gather_cluster(session.transports).require_all()
        planned = plan_stage(session.cluster, facts)
        walk.data |= {"link_plan": planned.plan, "link_changes": planned.changes}
        walk.lines += [*render_link_plan(planned.plan), ""]
        if wish.check:
            walk.lines += [*render_link_changes(planned.changes), ""]
            walk.would_change = bool(planned.changes)
            return planned
        if planned.changes:
            session.show((*walk.lines, *render_link_changes(planned.changes), ""))
            walk.lines.clear()  # they are on the screen now
            hosts = ", ".join(dict.fromkeys(change.host for change in planned.changes))
            session.confirm(f"Apply this to {hosts} and go on?", yes=wish.yes)
        with session.phase("links up") as phase:
            applied = up_stage(session.transports, planned, wish.guard_s, phase.update)
        walk.found(*applied.findings)
        if not applied.kept:
            walk.lines.append("links: the change was taken back")
        else:
            walk.lines.append("links: up and verified" if planned.changes else "links: no changes, verified")
    return planned


def _prove(walk: Walk, planned: PlannedLinks) -> Mapping[str, HostFacts]:
    session = walk.session
    with walk.stage("prove"):
        walk.found(*missing_iperf3(planned.facts))
        if walk.stopped:
            return planned.facts
        # Addresses and MTU are new after a change, and the verdict looks at them.
        facts = gather_cluster(session.transports).require_all() if planned.changes else planned.facts
        with session.phase("bandwidth") as phase:
            verdicts = bandwidth_stage(
                session.transports,
                facts,
                planned.plan,
                _FIRST_PROOF_S if planned.changes else _REPEATED_PROOF_S,
                lambda item, index, total: phase.update(item.subject, done=index, total=total),
            )
    walk.data["bandwidth"] = verdicts
    rates = render_rates([(v.subject, v.gbit_per_s, v.floor_gbit_per_s, v.verdict) for v in verdicts])
    walk.lines += ["", *rates, ""]
    walk.found(*bandwidth_findings(verdicts, {name: host.simulated for name, host in facts.items()}))
    return facts


def _serve(walk: Walk, wish: Wish, model: str, facts: Mapping[str, HostFacts]) -> ServingPlan | None:
    session = walk.session
    tp, pp = wished_layout(session, wish.tp, wish.pp)
    request = ServingRequest(model, session.cluster.serving.port, ())
    with walk.stage("serve"):
        with session.phase("look at model and image"):
            prepared = prepare(session, request, tp=tp, pp=pp, facts=facts)
        walk.found(*prepared.findings)
        if prepared.plan is None or walk.stopped:
            return None
        if wish.check:
            walk.lines += [*render_plan(prepared.plan), *render_serving_changes(prepared.changes), ""]
            walk.would_change = bool(prepared.changes)
            return prepared.plan
        if not prepared.changes:
            return _taken_over(walk, prepared.plan)
        return _start(walk, prepared.plan, prepared.changes, request, tp=tp, pp=pp)


def _start(
    walk: Walk,
    plan: ServingPlan,
    changes: Sequence[ServingChange],
    request: ServingRequest,
    *,
    tp: int | None,
    pp: int | None,
) -> ServingPlan | None:
    session = walk.session
    if make_ready(session, changes, plan):
        again = prepare(session, request, tp=tp, pp=pp)
        walk.found(*again.findings)
        if again.plan is None or walk.stopped:
            return None
        plan = again.plan
    return _started(walk, plan, start_and_prove(session, plan))


def _taken_over(walk: Walk, plan: ServingPlan) -> ServingPlan | None:
    """What runs as planned stays; if it is still starting, its end is awaited."""
    outcome = take_over(walk.session, plan)
    if outcome is not None:
        return _started(walk, plan, outcome)
    walk.lines += [*render_plan(plan), "serving: already, no changes", ""]
    walk.data["serving"] = {"plan": plan, "start": None}
    return plan


def _started(walk: Walk, plan: ServingPlan, outcome: StartReport | StartFailure) -> ServingPlan | None:
    if isinstance(outcome, StartFailure):
        walk.data["serving"] = {"plan": plan, "failure": outcome}
        walk.lines += [*render_failure(outcome), ""]
        walk.found(failure_finding(outcome))
        return None
    walk.data["serving"] = {"plan": plan, "start": outcome}
    walk.lines += [*render_plan(plan), *render_start(plan, outcome), ""]
    return plan


def _ask(walk: Walk, wish: Wish) -> None:
    with walk.stage("ask"), walk.session.phase("one question"):
        _, answer = ask_group(walk.session, wish.question, _ANSWER_TOKENS, lambda _: None)
    walk.data |= {"question": wish.question, "answer": answer, "tokens_per_s": answer.tokens_per_s}
    walk.lines += [*render_answer(wish.question, answer), ""]
