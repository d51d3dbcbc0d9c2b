"""The stages of serving, shared by `serve`, `stop` and `up`: prepare, make ready, start and prove, stop."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime

from sparkctl.apply.images import pull_image
from sparkctl.apply.model_copy import copy_model
from sparkctl.apply.serving import LOG_DIR, start_ranks, stop_containers
from sparkctl.catalog.load import load_recipes
from sparkctl.catalog.model import choose_recipe
from sparkctl.cli.session import Session
from sparkctl.diff.serving import CopyModel, PullImage, RemoveRank, ServingChange, diff_serving
from sparkctl.errors import Interrupted, OperationFailed, SparkctlError
from sparkctl.facts.gather import gather_cluster
from sparkctl.facts.model import HostFacts
from sparkctl.facts.served import GroupState, RunningFacts, ServedGroup, assemble_group
from sparkctl.facts.serving import gather_running, gather_serving
from sparkctl.plan.layout import choose_layout, require_possible
from sparkctl.plan.model_location import locate_model
from sparkctl.plan.model_shape import parse_shape
from sparkctl.plan.rails import serving_rails
from sparkctl.plan.serving import ServingPlan, ServingRequest, plan_serving
from sparkctl.report.finding import Finding, Severity
from sparkctl.report.serving import StartFailure, StartReport
from sparkctl.tools.openai_api import Answer, Piece, plain_body
from sparkctl.transport.command import Transport
from sparkctl.transport.fanout import on_all
from sparkctl.verify.answers import ask_question
from sparkctl.verify.inference import Broken, RankProgress, StartVerdict, Waiting
from sparkctl.verify.serving import judge_before_start, judge_docker, judge_stopped
from sparkctl.verify.watch import answer_guarded, api_is_healthy, stream_answer, watch_start

# The proof of readiness: any language model continues it, and at temperature 0 always in the same way.
PROOF_PROMPT = "The capital of France is"
PROOF_TOKENS = 16
# Lines of every rank that are shown when a start fails; the whole logs stay on the hosts.
SHOWN_LINES = 15
_STOP_LIMIT_S = 10.0
# A serving engine ends within a second or two when asked; one that starts or has lost a rank does not listen.
_STOP_GRACE_S = 10
_ABORT_GRACE_S = 2
_LATE_CONTAINER_S = 1.0


@dataclass(frozen=True)
class Preparation:
    """What would be done. plan: None when findings say why there can be none. changes: empty when it runs already."""

    plan: ServingPlan | None
    changes: tuple[ServingChange, ...]
    findings: tuple[Finding, ...]

    @property
    def stands_in_the_way(self) -> bool:
        """Whether a finding forbids the start."""
        return any(finding.severity in (Severity.FAIL, Severity.UNKNOWN) for finding in self.findings)


def prepare(
    session: Session,
    request: ServingRequest,
    *,
    tp: int | None,
    pp: int | None,
    facts: Mapping[str, HostFacts] | None = None,
    compare: bool = True,
) -> Preparation:
    """Look, plan, judge and compare; changes nothing. facts: when the caller has just gathered them.

    compare: with what runs now; without it there are no changes and no findings, only a plan.

    Raises UsageError for an impossible layout or unknown model, OperationFailed and UnsafeRefused as the planners do.
    """
    cluster = session.cluster
    known = facts if facts is not None else gather_cluster(session.transports).require_all()
    layout = choose_layout(tp=tp, pp=pp, hosts=len(cluster.hosts))
    names = [host.name for host in cluster.hosts][: layout.nodes]
    taking_part = {name: known[name] for name in names}
    refused = judge_docker(taking_part)
    if refused:
        return Preparation(None, (), refused)
    recipe = choose_recipe(load_recipes(), request.model)
    image = cluster.serving.image or recipe.image
    serving = on_all(
        [transport for transport in session.transports if transport.host in taking_part],
        lambda t: gather_serving(t, model=request.model, models_dir=cluster.serving.models_dir, image=image),
    ).require_all()
    location = locate_model(request.model, serving)
    shape = parse_shape(location.reference.config, model=request.model, weights_bytes=location.reference.weights_bytes)
    require_possible(layout, shape, model=request.model, hosts=len(cluster.hosts))
    rails = serving_rails(list(taking_part.values())) if layout.nodes > 1 else {}
    plan = plan_serving(
        cluster, request, taking_part, serving, rails, layout=layout, shape=shape, location=location, recipe=recipe
    )
    changes = diff_serving(plan, serving) if compare else ()
    findings = judge_before_start(plan, taking_part, serving) if changes else ()
    return Preparation(plan, changes, findings)


def make_ready(session: Session, changes: Sequence[ServingChange], plan: ServingPlan) -> bool:
    """Remove broken ranks, pull images, copy the model; returns whether anything was done, so that plans are stale."""
    transports = by_host(session)
    removals = [change for change in changes if isinstance(change, RemoveRank)]
    if removals:
        names = {change.host: [item.name for item in removals if item.host == change.host] for change in removals}
        with session.phase("remove what is left of the former start"):
            _raise_first(stop_containers(names, transports, stamp=_stamp(), grace_s=_ABORT_GRACE_S))
    pulls = [change for change in changes if isinstance(change, PullImage)]
    if pulls:
        with session.phase(f"pull {plan.image}") as progress:
            pull_image(plan.image, [transports[change.host] for change in pulls], progress)
    copies = [change.copy for change in changes if isinstance(change, CopyModel)]
    for copy in copies:
        rails = {rank.host: rank.rails for rank in plan.ranks}
        with session.phase(f"copy the model {copy.source_host} → {copy.target_host}") as progress:
            copy_model(
                copy,
                source=transports[copy.source_host],
                source_address=str(rails[copy.source_host][0].address),
                target=transports[copy.target_host],
                target_address=str(rails[copy.target_host][0].address),
                progress=progress,
            )
    return bool(removals or pulls or copies)


def take_over(session: Session, plan: ServingPlan) -> StartReport | StartFailure | None:
    """A group that runs as planned: None when its API is up; else it is still starting, and is watched to its end."""
    if api_is_healthy(by_host(session)[plan.head.host], plan.port):
        return None
    return start_and_prove(session, plan, already_started=True)


def start_and_prove(
    session: Session, plan: ServingPlan, *, already_started: bool = False
) -> StartReport | StartFailure:
    """Start all ranks, watch them, and let the model answer. Whatever ends this early, no rank is left running.

    Raises Interrupted on Ctrl-C, and OperationFailed when a container could not be started at all.
    """
    with ExitStack() as undo:
        undo.callback(_stop_ranks, session, plan)
        try:
            outcome = _start_watched(session, plan, already_started=already_started)
        except KeyboardInterrupt as error:
            undo.pop_all()
            left = _stop_ranks(session, plan)
            state = "all ranks are stopped" if not left else f"NOT stopped: {', '.join(left)}"
            raise Interrupted(
                f"interrupted while the engine started; {state}",
                remedy="run it again when ready" if not left else "`sparkctl stop`",
            ) from error
        undo.pop_all()
        return outcome


def wished_layout(session: Session, tp: int | None, pp: int | None) -> tuple[int | None, int | None]:
    """(tp, pp) of the command line or, when it names neither, the inventory's."""
    wishes = session.cluster.serving
    return (wishes.tp, wishes.pp) if tp is None and pp is None else (tp, pp)


def prove_answer(session: Session, plan: ServingPlan) -> Answer:
    """A real completion at temperature 0. Raises OperationFailed when it is empty, does not come, or a rank ends."""
    transports, head = by_host(session), plan.head.host
    body = plain_body(plan.model, PROOF_PROMPT, max_tokens=PROOF_TOKENS, stream=True)
    answer = answer_guarded(
        {rank.host: rank.container.name for rank in plan.ranks},
        transports,
        head,
        lambda: stream_answer(transports[head], plan.port, "/v1/completions", body),
    )
    if not answer.text or answer.tokens == 0:
        raise OperationFailed(
            "the model answered with nothing", where=head, remedy="look at `sparkctl logs` for the reason"
        )
    return answer


def ask_group(
    session: Session, question: str, max_tokens: int, on_piece: Callable[[Piece], None]
) -> tuple[ServedGroup, Answer]:
    """Ask what is served a question; its pieces come as they are written.

    Raises OperationFailed when nothing is served, a rank is missing or ends, or the server refuses.
    """
    group, _, errors = find_group(session)
    if group is None or group.state is GroupState.BROKEN:
        _raise_first(errors)
    if group is None:
        raise OperationFailed("nothing is served", remedy="`sparkctl serve MODEL`")
    if group.state is GroupState.BROKEN or group.head is None:
        raise OperationFailed(
            f"{group.model} is broken: a rank is missing or has ended",
            remedy="`sparkctl status` and `sparkctl logs`; `sparkctl serve` replaces what is left",
        )
    transports, head = by_host(session), group.head.host
    answer = answer_guarded(
        {rank.host: rank.container.name for rank in group.ranks},
        transports,
        head,
        lambda: ask_question(transports[head], group.port, group.model, question, max_tokens, on_piece),
    )
    return group, answer


def stop_group(session: Session, group: ServedGroup, before: Mapping[str, RunningFacts]) -> tuple[Finding, ...]:
    """End a group on all hosts and prove that containers, ports and memory are free again.

    before: what ran, per host that answered. Memory and ports get up to 10 s to come back.
    """
    transports = by_host(session)
    names: dict[str, list[str]] = {}
    for rank in group.ranks:
        names.setdefault(rank.host, []).append(rank.container.name)
    with session.phase("stop the ranks"):
        errors = stop_containers(names, transports, stamp=_stamp(), grace_s=_STOP_GRACE_S)
        failed = tuple(
            Finding(Severity.FAIL, "stop.failed", host, error.message, remedy=error.remedy)
            for host, error in errors.items()
        )
        reachable = [transports[host] for host in before if host not in errors]
        until = time.monotonic() + _STOP_LIMIT_S
        while True:
            after = on_all(reachable, gather_running).require_all()
            findings = judge_stopped(group, before, after)
            if all(finding.severity is Severity.OK for finding in findings) or time.monotonic() > until:
                return (*failed, *findings)
            time.sleep(1.0)


def find_group(session: Session) -> tuple[ServedGroup | None, Mapping[str, RunningFacts], Mapping[str, SparkctlError]]:
    """The group of this cluster as its hosts remember it; hosts that do not answer come as errors."""
    outcomes = on_all(session.transports, gather_running)
    return assemble_group(session.cluster.name, outcomes), dict(outcomes), outcomes.errors


def unreachable_findings(errors: Mapping[str, SparkctlError]) -> tuple[Finding, ...]:
    """Hosts that could not be asked: what runs there is not known."""
    return tuple(
        Finding(Severity.UNKNOWN, "serve.host-unknown", host, error.message, remedy=error.remedy)
        for host, error in errors.items()
    )


def by_host(session: Session) -> Mapping[str, Transport]:
    """Transports by host name."""
    return {transport.host: transport for transport in session.transports}


def _start_watched(session: Session, plan: ServingPlan, *, already_started: bool) -> StartReport | StartFailure:
    transports = by_host(session)
    began = time.monotonic()
    if not already_started:
        with session.phase("start the ranks"):
            start_ranks(plan, transports)
    with session.phase("start the engine") as progress:

        def on_look(verdict: StartVerdict, ranks: Sequence[RankProgress]) -> None:
            if isinstance(verdict, Waiting):
                each = ", ".join(f"rank {rank.rank} {rank.phase}" for rank in ranks)
                progress.update(each, done=verdict.percent, total=100 if verdict.percent is not None else None)

        verdict, ranks = watch_start(plan, transports, on_look)
    if isinstance(verdict, Broken):
        return _failure(verdict, ranks, _stop_ranks(session, plan))
    ready_s = time.monotonic() - began
    with session.phase("first answer"):
        answer = prove_answer(session, plan)
    return StartReport(
        ready_s=ready_s,
        total_s=time.monotonic() - began,
        phases=tuple((phase, at_s - began) for phase, at_s in _slowest(ranks)),
        cache_tokens=next((rank.cache_tokens for rank in ranks if rank.cache_tokens), None),
        prompt=PROOF_PROMPT,
        answer=answer,
    )


def _stop_ranks(session: Session, plan: ServingPlan) -> tuple[str, ...]:
    """End all ranks; returns those that could not be ended, as `rank 1 on spark-b`."""
    names = {rank.host: [rank.container.name] for rank in plan.ranks}
    transports = by_host(session)
    with session.phase("stop all ranks"):
        stop_containers(names, transports, stamp=_stamp(), grace_s=_ABORT_GRACE_S)
        # A `docker run` that was under way when we were interrupted may have made its container only now.
        time.sleep(_LATE_CONTAINER_S)
        errors = stop_containers(names, transports, stamp=_stamp(), grace_s=_ABORT_GRACE_S)
    return tuple(f"rank {rank.rank} on {rank.host}" for rank in plan.ranks if rank.host in errors)


def _failure(broken: Broken, ranks: Sequence[RankProgress], left: tuple[str, ...]) -> StartFailure:
    return StartFailure(
        host=broken.host,
        rank=broken.rank,
        phase=next((rank.phase.value for rank in ranks if rank.rank == broken.rank), ""),
        reason=broken.reason,
        line=broken.line,
        last_words={rank.host: tuple(line.text for line in rank.lines[-SHOWN_LINES:]) for rank in ranks},
        log_dir=LOG_DIR,
        left_running=left,
    )


def _slowest(ranks: Sequence[RankProgress]) -> list[tuple[str, float]]:
    latest: dict[str, float] = {}
    for rank in ranks:
        for phase, at_s in rank.reached:
            latest[phase.value] = max(at_s, latest.get(phase.value, 0.0))
    return sorted(latest.items(), key=lambda item: item[1])


def _raise_first(errors: Mapping[str, SparkctlError]) -> None:
    for error in errors.values():
        raise error


def _stamp() -> str:
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
