"""Serving as lines of text: what would change, command lines, a start, a failure, the state of a group."""

import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import assert_never

from sparkctl.diff.serving import CopyModel, PullImage, RemoveRank, ServingChange, StartRank
from sparkctl.facts.served import RunningFacts, ServedGroup
from sparkctl.plan.serving import ServingPlan
from sparkctl.report.finding import Finding, Severity
from sparkctl.report.render import render_bytes, render_table
from sparkctl.report.serving import StartFailure, StartReport
from sparkctl.tools.docker import run_command
from sparkctl.tools.openai_api import Answer

# Docker prints nanoseconds; Python reads microseconds.
_SECONDS_LENGTH = len("2026-01-01T00:00:00")


def render_plan(plan: ServingPlan) -> tuple[str, ...]:
    """What is going to be served, over which hosts and rails."""
    shape = plan.shape
    lines = [
        f"{plan.model}: {shape.architecture}, {shape.layers} layers, {shape.heads} heads, "
        f"{render_bytes(shape.weights_bytes)} of weights",
        f"layout {plan.layout} over {', '.join(plan.hosts)}; image {plan.image}",
    ]
    for rank in plan.ranks:
        rails = ", ".join(f"{rail.netdev} {rail.address}" for rail in rank.rails) or "no rail needed"
        lines.append(f"  rank {rank.rank} on {rank.host}: {rails}")
    need = plan.need
    lines.append(
        f"  each needs about {render_bytes(need.need_bytes)} ({render_bytes(need.weights_bytes)} of weights, "
        f"{render_bytes(need.working_bytes)} for the engine: an estimate) plus its KV cache"
    )
    return tuple(lines)


def render_changes(changes: Sequence[ServingChange]) -> tuple[str, ...]:
    """One line per change, `+` for what comes and `-` for what goes; a sentence when there is none."""
    if not changes:
        return ("already serving, no changes",)
    return tuple(_change(change) for change in changes)


def render_command_lines(plan: ServingPlan) -> tuple[str, ...]:
    """The exact command line of every rank, one option per line, ready to be pasted on its host."""
    lines: list[str] = []
    for rank in plan.ranks:
        words = run_command(rank.container).argv
        lines.append(f"# rank {rank.rank} on {rank.host}")
        row = ""
        for word in words:
            quoted = shlex.quote(word)
            if row and (word.startswith("-") or word == rank.container.image):
                lines.append(f"{row} \\")
                row = f"  {quoted}"
            else:
                row = f"{row} {quoted}" if row else quoted
        lines.append(row)
        lines.append("")
    return tuple(lines[:-1])


def render_start(plan: ServingPlan, report: StartReport) -> tuple[str, ...]:
    """A start that worked: its phases, the proof, and what to type next."""
    phases = ", ".join(f"{name} {at_s:.0f} s" for name, at_s in report.phases)
    cache = f"; KV cache {report.cache_tokens:,} tokens" if report.cache_tokens else ""
    return (
        f"✓ {plan.model} serves with {plan.layout} on {', '.join(plan.hosts)} after {report.ready_s:.1f} s{cache}",
        *((f"  reached: {phases}",) if phases else ()),
        f"  proof: {report.prompt} → {_one_line(report.answer.text)}",
        f"  {_pace(report.answer)}",
        f"  API: port {plan.port} on {plan.head.host}; try `sparkctl ask 'What is a DGX Spark?'`",
    )


def failure_finding(failure: StartFailure) -> Finding:
    """The finding that names whose fault it was."""
    remedy = f"the whole logs are in {failure.log_dir} on each host; correct the cause and run it again"
    if failure.left_running:
        remedy = f"still running: {', '.join(failure.left_running)}; `sparkctl stop` once the host is back. {remedy}"
    return Finding(
        Severity.FAIL,
        "serve.start-failed",
        failure.host,
        f"rank {failure.rank} failed ({failure.phase}): {failure.reason}",
        found=failure.line,
        cause="the ranks on the other hosts have been stopped"
        if failure.left_running
        else "all ranks have been stopped",
        remedy=remedy,
    )


def render_failure(failure: StartFailure) -> tuple[str, ...]:
    """The last log lines of every rank, the one at fault last, so that it is nearest to the verdict."""
    hosts = sorted(failure.last_words, key=lambda host: host == failure.host)
    return tuple(
        line
        for host in hosts
        for line in (f"last lines of {host}:", *(f"  {text}" for text in failure.last_words[host]))
    )


def render_group(
    group: ServedGroup | None, running: Mapping[str, RunningFacts], *, healthy: bool, now: datetime
) -> tuple[str, ...]:
    """What is served, and per rank where, since when and in what state. now: with a time zone."""
    if group is None:
        return ("nothing is served",)
    answers = "answers" if healthy else "does not answer"
    rows = [
        (
            rank.rank,
            rank.host,
            rank.container.state,
            _age(rank.container.started_at, now),
            render_bytes(running[rank.host].memory_available_bytes),
        )
        for rank in group.ranks
    ]
    return (
        f"{group.model}: {group.layout}, {group.state}; the API on port {group.port} {answers}",
        f"image {group.image} ({group.image_id[:19]})",
        *render_table(("rank", "host", "state", "since", "memory available"), rows),
    )


def render_pace(answer: Answer) -> tuple[str, ...]:
    """Time to the first token and tokens per second of an answer."""
    return (_pace(answer),)


def _pace(answer: Answer) -> str:
    speed = f", {answer.tokens_per_s:.1f} tokens/s" if answer.tokens_per_s else ""
    return f"first token after {answer.first_token_s:.2f} s, {answer.tokens} tokens{speed}"


def _change(change: ServingChange) -> str:
    match change:
        case RemoveRank(host, name, state):
            return f"- {host}: remove container {name} ({state})"
        case PullImage(host, image):
            return f"+ {host}: pull {image}"
        case CopyModel(copy):
            size = render_bytes(copy.size_bytes)
            return f"+ {copy.target_host}: copy {copy.target_root} from {copy.source_host} over the rail, {size}"
        case StartRank(host, name, rank):
            return f"+ {host}: start rank {rank} ({name})"
        case _:
            assert_never(change)


def _one_line(text: str) -> str:
    return " ".join(text.split()) or repr(text)


def _age(started_at: str, now: datetime) -> str:
    if len(started_at) < _SECONDS_LENGTH or started_at.startswith("0001"):
        return "never started"
    started = datetime.fromisoformat(started_at[:_SECONDS_LENGTH] + "+00:00")
    minutes = int((now - started).total_seconds()) // 60
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
