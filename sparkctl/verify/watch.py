"""Watches a group of ranks while it starts, and proves by a real answer that it serves."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack

from sparkctl.errors import HostError, OperationFailed, UnexpectedOutput
from sparkctl.facts.served import GROUP_LABEL
from sparkctl.plan.serving import RankPlan, ServingPlan
from sparkctl.tools.docker import (
    ContainerState,
    containers_command,
    cpu_seconds_command,
    logs_command,
    parse_containers,
    parse_cpu_seconds,
    parse_logs,
)
from sparkctl.tools.openai_api import (
    Answer,
    Piece,
    assemble_answer,
    health_command,
    parse_piece,
    parse_reply,
    parse_start,
    stream_command,
)
from sparkctl.transport.bundle import pack_commands, unpack_results
from sparkctl.transport.command import Transport
from sparkctl.transport.fanout import on_all
from sparkctl.verify.inference import Broken, RankProgress, RankSample, StartVerdict, Waiting, advance, judge_start

# A look costs about 0.2 s of one core per host. Once a second made a start on a lab of two shared cores a quarter
# longer than the same start by hand (benchmarks/serve.py); a failure is still named within seconds.
_LOOK_INTERVAL_S = 2.5
# After a first sign of failure, time for the other ranks to say what they know.
_LAST_WORDS_S = 2.0
_ANSWER_LIMIT_S = 600.0
_GUARD_INTERVAL_S = 2.0
_HTTP_OK = 200


def watch_start(
    plan: ServingPlan,
    transports: Mapping[str, Transport],
    on_look: Callable[[StartVerdict, Sequence[RankProgress]], None],
) -> tuple[StartVerdict, tuple[RankProgress, ...]]:
    """Look at all ranks every few seconds until they are ready or one has failed; never Waiting.

    on_look: called after every look. There is no limit on the whole: only a start that does not move is given up.
    """
    began = time.monotonic()
    ranks = tuple(RankProgress(rank.host, rank.rank, moved_s=began, cpu_seen_s=began) for rank in plan.ranks)
    while True:
        ranks = look(plan, transports, ranks)
        verdict = judge_start(ranks, time.monotonic())
        on_look(verdict, ranks)
        if isinstance(verdict, Broken):
            time.sleep(_LAST_WORDS_S)
            ranks = look(plan, transports, ranks)
            again = judge_start(ranks, time.monotonic())
            return (again if isinstance(again, Broken) else verdict), ranks
        if not isinstance(verdict, Waiting):
            return verdict, ranks
        time.sleep(_LOOK_INTERVAL_S)


def look(
    plan: ServingPlan, transports: Mapping[str, Transport], ranks: Sequence[RankProgress]
) -> tuple[RankProgress, ...]:
    """One look at every rank, all hosts at once; a lost host is part of the answer."""
    by_host = {rank.host: rank for rank in ranks}
    planned = {rank.host: rank for rank in plan.ranks}

    def sample(transport: Transport) -> RankSample:
        progress = by_host[transport.host]
        since = progress.lines[-1].time if progress.lines else ""
        try:
            return _sample(transport, plan, planned[transport.host], since)
        except HostError as error:
            return RankSample(progress.host, progress.rank, lost=error.message)

    samples = on_all([transports[rank.host] for rank in ranks], sample).require_all()
    now = time.monotonic()
    return tuple(advance(rank, samples[rank.host], now) for rank in ranks)


def stream_answer(
    transport: Transport,
    port: int,
    path: str,
    body: Mapping[str, object],
    on_piece: Callable[[Piece], None] = lambda _: None,
) -> Answer:
    """Ask on the host itself and hand over pieces as they come.

    Raises OperationFailed with the server's own words when it refuses or breaks off.
    """
    pieces: list[Piece] = []
    started: list[float] = []

    def on_line(line: str) -> None:
        start = parse_start(line)
        if start is not None:
            started.append(start)
            return
        piece = parse_piece(line)
        if piece is not None:
            pieces.append(piece)
            on_piece(piece)

    result = transport.stream(stream_command("127.0.0.1", port, path, body, timeout_s=_ANSWER_LIMIT_S), on_line)
    error = next((piece.error for piece in pieces if piece.error), "")
    if error or not result.ok:
        raise OperationFailed(
            f"the model did not answer: {error or result.last_words()}",
            where=transport.host,
            remedy="`sparkctl status` tells whether all ranks are there, `sparkctl logs` what they say",
        )
    return assemble_answer(started[0], pieces)


def answer_guarded(
    containers: Mapping[str, str], transports: Mapping[str, Transport], head: str, ask: Callable[[], Answer]
) -> Answer:
    """Call `ask` while looking at all ranks: an engine whose worker has died answers `/health` and then hangs.

    containers: name per host. Raises OperationFailed naming the rank that ended, HostUnreachable for a lost host, and
    what `ask` raises. Ctrl-C ends the question at once.
    """
    with ThreadPoolExecutor(max_workers=1) as pool, ExitStack() as undo:
        # The thread waits for a reply that may never come; without its connection it ends at once.
        undo.callback(transports[head].close)
        answer = pool.submit(ask)
        while not wait([answer], timeout=_GUARD_INTERVAL_S).done:
            _require_running(containers, transports)
        undo.pop_all()
        return answer.result()


def api_is_healthy(transport: Transport, port: int) -> bool:
    """Whether the API says that it is up."""
    return parse_reply(transport.run(health_command("127.0.0.1", port))).status == _HTTP_OK


def _require_running(containers: Mapping[str, str], transports: Mapping[str, Transport]) -> None:
    def is_running(transport: Transport) -> bool:
        found = parse_containers(transport.run(containers_command(GROUP_LABEL)))
        return any(item.name == containers[transport.host] and item.state is ContainerState.RUNNING for item in found)

    alive = on_all([transports[host] for host in containers], is_running).require_all()
    for host, name in containers.items():
        if not alive[host]:
            raise OperationFailed(
                f"{name} ended while the model was to answer",
                where=host,
                remedy="`sparkctl logs` for the reason, then `sparkctl stop` and serve again",
            )


def _sample(transport: Transport, plan: ServingPlan, rank: RankPlan, since: str) -> RankSample:
    name = rank.container.name
    commands = [
        containers_command(f"{GROUP_LABEL}={plan.group}"),
        logs_command(name, since=since),
        cpu_seconds_command(name),
    ]
    if rank.rank == 0:
        commands.append(health_command("127.0.0.1", plan.port))
    results = unpack_results(transport.run(pack_commands(commands)), commands)
    try:
        containers = parse_containers(results[0])
        healthy = rank.rank == 0 and parse_reply(results[3]).status == _HTTP_OK
    except UnexpectedOutput as error:
        return RankSample(rank.host, rank.rank, lost=error.message)
    lines = parse_logs(results[1].stdout, results[1].stderr) if results[1].ok else ()
    return RankSample(
        host=rank.host,
        rank=rank.rank,
        container=next((item for item in containers if item.name == name), None),
        lines=tuple(line for line in lines if line.time > since),
        cpu_s=parse_cpu_seconds(results[2].stdout) if results[2].ok else None,
        healthy=healthy,
    )
