"""`sparkctl serve|ask|status|logs|stop`."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from sparkctl.apply.serving import LOG_DIR
from sparkctl.cli.follow import follow_logs, last_logs
from sparkctl.cli.options import (
    CheckOption,
    HostOption,
    InventoryOption,
    JsonOption,
    PpOption,
    TpOption,
    VerboseOption,
    YesOption,
)
from sparkctl.cli.serving_stages import (
    ask_group,
    by_host,
    find_group,
    make_ready,
    prepare,
    prove_answer,
    start_and_prove,
    stop_group,
    take_over,
    unreachable_findings,
    wished_layout,
)
from sparkctl.cli.session import Result, Session, run_command
from sparkctl.errors import OperationFailed, UsageError
from sparkctl.facts.served import GroupState
from sparkctl.plan.serving import ServingRequest
from sparkctl.report.finding import Finding, Severity, Status
from sparkctl.report.render_serving import (
    failure_finding,
    render_changes,
    render_command_lines,
    render_failure,
    render_group,
    render_pace,
    render_plan,
    render_start,
)
from sparkctl.report.serving import StartFailure
from sparkctl.tools.openai_api import Piece
from sparkctl.verify.watch import api_is_healthy

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, add_completion=False)

MODEL_HELP = "Path on the hosts, name below serving.models_dir, or Hugging Face id in a host's cache."


@app.command()
def serve(
    model: Annotated[str | None, typer.Argument(help=MODEL_HELP, show_default="serving.model")] = None,
    pp: PpOption = None,
    tp: TpOption = None,
    port: Annotated[int | None, typer.Option("--port", min=1, max=65535, help="Port of the API.")] = None,
    engine_arg: Annotated[
        list[str] | None, typer.Option("--engine-arg", help="One more word for the engine; repeatable.")
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Print the exact command lines, run nothing.")] = False,
    check: CheckOption = False,
    yes: YesOption = False,
    inventory: InventoryOption = None,
    host: HostOption = None,
    json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Serve a model over the Sparks with vLLM, and prove it by a first answer."""
    session = Session(inventory=inventory, hosts=host, json=json, verbose=verbose)
    words = tuple(engine_arg or ())
    run_command(
        "serve",
        session,
        lambda s: _serve(
            s, _request(s, model, port, words), *wished_layout(s, tp, pp), show=show, check=check, yes=yes
        ),
    )


@app.command()
def ask(
    question: Annotated[str, typer.Argument(help="What to ask the model.")],
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Longest answer.")] = 512,
    inventory: InventoryOption = None,
    host: HostOption = None,
    json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Ask the served model a question; its answer comes as it is written."""
    session = Session(inventory=inventory, hosts=host, json=json, verbose=verbose)
    run_command("ask", session, lambda s: _ask(s, question, max_tokens))


@app.command()
def status(
    inventory: InventoryOption = None,
    host: HostOption = None,
    json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """What is served, where and how. Exit 1 when a rank is missing or the API does not answer."""
    run_command("status", Session(inventory=inventory, hosts=host, json=json, verbose=verbose), _status)


@app.command()
def logs(
    node: Annotated[list[str] | None, typer.Option("--node", help="Only this node; repeatable.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")] = False,
    tail: Annotated[int, typer.Option("--tail", min=1, help="Last lines per node.")] = 100,
    inventory: InventoryOption = None,
    json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Logs of all ranks, merged by time, with the node in front."""
    session = Session(inventory=inventory, hosts=node, json=json, verbose=verbose)
    run_command("logs", session, lambda s: _logs(s, follow=follow, tail=tail))


@app.command()
def stop(
    check: CheckOption = False,
    yes: YesOption = False,
    inventory: InventoryOption = None,
    host: HostOption = None,
    json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Stop the served model and prove that its containers, ports and memory are free."""
    session = Session(inventory=inventory, hosts=host, json=json, verbose=verbose)
    run_command("stop", session, lambda s: _stop(s, check=check, yes=yes))


def _request(session: Session, model: str | None, port: int | None, words: tuple[str, ...]) -> ServingRequest:
    wishes = session.cluster.serving
    wanted = model or wishes.model
    if not wanted:
        raise UsageError("no model named", remedy="`sparkctl serve MODEL`, or set serving.model in the inventory")
    return ServingRequest(wanted, port or wishes.port, words)


def _serve(
    session: Session,
    request: ServingRequest,
    tp: int | None,
    pp: int | None,
    *,
    show: bool,
    check: bool,
    yes: bool,
) -> Result:
    with session.phase("look at hosts, model and image"):
        prepared = prepare(session, request, tp=tp, pp=pp, compare=not show)
    plan = prepared.plan
    if plan is None:
        return Result(findings=prepared.findings)
    data: dict[str, object] = {"plan": plan, "changes": prepared.changes}
    if show:
        return Result(data={"plan": plan}, lines=render_command_lines(plan))
    lines = (*render_plan(plan), *render_changes(prepared.changes))
    if prepared.stands_in_the_way:
        return Result(data=data, lines=lines, findings=prepared.findings)
    if check:
        return Result(data, lines, prepared.findings, Status.CHANGES if prepared.changes else Status.OK)
    if not prepared.changes:
        outcome = take_over(session, plan)
        if outcome is None:
            with session.phase("prove that it answers"):
                answer = prove_answer(session, plan)
            return Result(data={**data, "answer": answer}, lines=(*lines, *render_pace(answer)))
    else:
        session.show(lines)
        session.confirm(f"Serve {plan.model} on {', '.join(plan.hosts)}?", yes=yes)
        if make_ready(session, prepared.changes, plan):
            prepared = prepare(session, request, tp=tp, pp=pp)
            if prepared.plan is None or prepared.stands_in_the_way:
                return Result(data=data, findings=prepared.findings)
            plan = prepared.plan
        outcome = start_and_prove(session, plan)
    if isinstance(outcome, StartFailure):
        finding = failure_finding(outcome)
        return Result({**data, "failure": outcome}, render_failure(outcome), (*prepared.findings, finding))
    return Result({**data, "plan": plan, "start": outcome}, render_start(plan, outcome), prepared.findings)


def _ask(session: Session, question: str, max_tokens: int) -> Result:
    def on_piece(piece: Piece) -> None:
        if not session.json:
            session.terminal.write(piece.reasoning + piece.text)

    try:
        group, answer = ask_group(session, question, max_tokens, on_piece)
    finally:
        # An answer that breaks off leaves its line open, and an error must not be glued to it.
        if not session.json:
            session.terminal.write("\n")
    if not session.json:
        session.say(render_pace(answer)[0])
    return Result(data={"model": group.model, "question": question, "answer": answer})


def _status(session: Session) -> Result:
    group, running, errors = find_group(session)
    lost = unreachable_findings(errors)
    healthy = False
    findings: tuple[Finding, ...] = lost
    if group is not None:
        head = group.head
        healthy = head is not None and api_is_healthy(by_host(session)[head.host], group.port)
        if group.state is GroupState.BROKEN or not healthy:
            what = "a rank is missing or has ended" if group.state is GroupState.BROKEN else "the API does not answer"
            remedy = "`sparkctl logs` for the reason, `sparkctl stop`, then serve again; a start may also be under way"
            findings = (*lost, Finding(Severity.FAIL, "serve.broken", group.model, what, remedy=remedy))
    lines = render_group(group, running, healthy=healthy, now=datetime.now(UTC))
    data = {"group": group, "state": group.state if group else "nothing is served", "api_answers": healthy}
    return Result(data=data, lines=lines, findings=findings)


def _logs(session: Session, *, follow: bool, tail: int) -> Result:
    group, _, errors = find_group(session)
    if group is None:
        for error in errors.values():
            raise error
        raise OperationFailed(
            "nothing is served", remedy=f"`sparkctl serve MODEL`; old logs are in {LOG_DIR} on the hosts"
        )
    if follow:
        follow_logs(session, group, tail=tail)
        return Result()
    lines = last_logs(session, group, tail=tail)
    return Result(data={"lines": lines}, lines=lines)


def _stop(session: Session, *, check: bool, yes: bool) -> Result:
    group, running, errors = find_group(session)
    lost = unreachable_findings(errors)
    if group is None:
        return Result(data={"stopped": []}, lines=("nothing is served; no changes",), findings=lost)
    names = [f"{rank.host}: stop rank {rank.rank} ({rank.container.name})" for rank in group.ranks]
    lines = tuple(f"- {name}" for name in names)
    if check:
        return Result(data={"would_stop": names}, lines=lines, findings=lost, status=Status.CHANGES)
    session.show(lines)
    session.confirm(f"Stop {group.model}?", yes=yes)
    findings = (*stop_group(session, group, running), *lost)
    return Result(data={"stopped": names}, findings=findings)
