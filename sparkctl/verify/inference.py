"""What an engine's log says: how far a start has come, what went wrong first, and whether it still moves.

Source of the lines: captures vllm/*.log of vLLM 0.32 on the lab; vLLM's sources v1/engine/core.py, v1/worker/*.py.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from sparkctl.tools.docker import Container, ContainerState, LogLine


class StartPhase(StrEnum):
    """How far one rank has come, in the order of a start."""

    STARTING = "engine starts"
    JOINED = "ranks joined"
    LOADING = "loads weights"
    WARMING = "compiles and warms up"
    READY = "ready"


_PHASES = (
    (StartPhase.READY, re.compile(r"Application startup complete")),
    (
        StartPhase.WARMING,
        re.compile(
            r"Model loading took|Loading weights took|torch\.compile|Compiling|KV cache size|[Ww]arming up"
            r"|Capturing CUDA graph|init engine \(profile|Dynamo bytecode"
        ),
    ),
    (StartPhase.LOADING, re.compile(r"Starting to load model|Loading safetensors|Loading model weights")),
    (StartPhase.JOINED, re.compile(r"rank \d+ in world size \d+ is assigned")),
)
_ORDER = tuple(StartPhase)
_SHARDS = re.compile(r"checkpoint shards:\s+(\d+)% Completed")
_CACHE = re.compile(r"KV cache size: ([\d,]+) tokens")
# `(EngineCore_PP0 pid=123) ERROR 11-30 20:15:02 [core.py:700] text`; the process and the rest are optional.
_PREFIX = re.compile(
    r"^(?:\([^)]*pid=\d+\)\s*)?(?:(?P<level>[A-Z]{4,8}) \d\d-\d\d \d\d:\d\d:\d\d (?:\.\d+ )?\[[^\]]+\]\s?)?"
)
_EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit)(?::|$)")
_COMPLAINT = re.compile(r"^(?:vllm(?: serve)?: )?error:|: error: |Segmentation fault|Bus error|FATAL|core dumped", re.I)
# What a rank says because another one has gone; never the cause itself.
_CONSEQUENCE = re.compile(
    r"[Cc]onnection (?:reset|closed|refused)|by peer|[Bb]roken pipe|EngineDeadError|Engine core initialization failed"
    r"|EngineCore failed|died unexpectedly|DistNetworkError|DistStoreError"
    r"|[Ss]ocket [Tt]imeout|cancelled|remote process"
)
# vLLM's own words for "this cannot go on"; its processes may take another minute to end.
_FATAL = re.compile(r"WorkerProc (?:hit an exception|failed to start)|EngineCore (?:failed to start|encountered)")
# Lines an idle or stuck engine prints again and again.
_IDLE = re.compile(r"No available shared memory broadcast block|Avg prompt throughput|GET /health")

# No word and no CPU time for so long means stuck. JIT compilers are silent for minutes but keep a core busy.
STALL_S = 600.0
# Below this share of one core a process group is asleep; its timers alone cost about 0.1 %.
_BUSY_SHARE = 0.02
_KEPT_LINES = 4000
_KILLED_CODES = {137: "killed (SIGKILL; the kernel does that when memory runs out)", 139: "crashed (SIGSEGV)"}


@dataclass(frozen=True)
class RankSample:
    """One look at a rank. container: None when there is none of that name. lost: contact lost, in words, else empty.

    lines: new since the last look. cpu_s: CPU seconds of all its processes so far, None when not known.
    healthy: the API answered its health question; only asked of rank 0.
    """

    host: str
    rank: int
    container: Container | None = None
    lines: tuple[LogLine, ...] = ()
    cpu_s: int | None = None
    healthy: bool = False
    lost: str = ""


@dataclass(frozen=True)
class RankProgress:
    """What is known of a rank's start. Times are seconds of one monotonic clock of the watcher.

    reached: when each phase was first seen. moved_s: when it last printed or used the CPU. given_up: it has printed
    that it cannot go on. lost_looks: looks in a row without contact.
    """

    host: str
    rank: int
    moved_s: float
    phase: StartPhase = StartPhase.STARTING
    reached: tuple[tuple[StartPhase, float], ...] = ()
    lines: tuple[LogLine, ...] = ()
    shards_percent: int | None = None
    cache_tokens: int | None = None
    cpu_s: int = 0
    cpu_seen_s: float = 0.0
    container: Container | None = None
    healthy: bool = False
    given_up: bool = False
    lost: str = ""
    lost_looks: int = 0


@dataclass(frozen=True)
class Waiting:
    """It moves. percent: of the weights, of the slowest rank; None outside that phase."""

    phase: StartPhase
    percent: int | None = None


@dataclass(frozen=True)
class Ready:
    """The API says it is up; a completion has to prove it."""


@dataclass(frozen=True)
class Broken:
    """The start has failed. rank, host: whose fault. reason: one sentence. line: its first error, if it printed one."""

    rank: int
    host: str
    reason: str
    line: str = ""


StartVerdict = Waiting | Ready | Broken


def parse_phase(text: str) -> StartPhase | None:
    """The phase that a log line announces, or None."""
    return next((phase for phase, pattern in _PHASES if pattern.search(text)), None)


def find_first_error(lines: Sequence[LogLine]) -> LogLine | None:
    """The line that tells the cause, without the engine's prefix.

    Python prints the cause of a chain of exceptions first, so the first exception line is the cause; failing that, the
    first complaint of a program, then the first line logged as an error.
    """
    stripped = [(line, *_split(line.text)) for line in lines]
    for line, level, text in stripped:
        if level not in ("INFO", "WARNING", "DEBUG") and (_EXCEPTION.match(text) or _COMPLAINT.search(text)):
            return LogLine(line.time, text)
    return next((LogLine(line.time, text) for line, level, text in stripped if level in ("ERROR", "CRITICAL")), None)


def is_consequence(text: str) -> bool:
    """Whether an error line only says that another rank or process has gone."""
    return _CONSEQUENCE.search(text) is not None


def advance(progress: RankProgress, sample: RankSample, now_s: float) -> RankProgress:
    """What is known after one more look at a rank."""
    if sample.lost:
        return replace(progress, lost=sample.lost, lost_looks=progress.lost_looks + 1)
    phase, reached = progress.phase, progress.reached
    shards, cache = progress.shards_percent, progress.cache_tokens
    for line in sample.lines:
        seen = parse_phase(line.text)
        if seen is not None and _ORDER.index(seen) > _ORDER.index(phase):
            phase, reached = seen, (*reached, (seen, now_s))
        if found := _SHARDS.search(line.text):
            shards = int(found[1])
        if found := _CACHE.search(line.text):
            cache = int(found[1].replace(",", ""))
    cpu_s = progress.cpu_s if sample.cpu_s is None else sample.cpu_s
    busy = cpu_s - progress.cpu_s >= max(1.0, _BUSY_SHARE * (now_s - progress.cpu_seen_s))
    spoke = any(not _IDLE.search(line.text) for line in sample.lines)
    return replace(
        progress,
        moved_s=now_s if busy or spoke else progress.moved_s,
        phase=phase,
        reached=reached,
        lines=(*progress.lines, *sample.lines)[-_KEPT_LINES:],
        shards_percent=shards,
        cache_tokens=cache,
        cpu_s=cpu_s if busy else progress.cpu_s,
        cpu_seen_s=now_s if busy else progress.cpu_seen_s,
        container=sample.container,
        healthy=sample.healthy,
        given_up=progress.given_up or any(_FATAL.search(line.text) for line in sample.lines),
        lost="",
        lost_looks=0,
    )


def judge_start(ranks: Sequence[RankProgress], now_s: float) -> StartVerdict:
    """Whether a start goes on, is done or has failed. ranks: by rank."""
    gone = [rank for rank in ranks if _has_ended(rank) or rank.given_up or rank.lost_looks >= 2]
    if gone:
        return _blame(ranks, gone)
    if ranks[0].healthy or ranks[0].phase is StartPhase.READY:
        return Ready()
    still = [rank for rank in ranks if now_s - rank.moved_s > STALL_S]
    if len(still) == len(ranks):
        last = still[0].lines[-1].text if still[0].lines else "nothing"
        return Broken(
            still[0].rank,
            still[0].host,
            f"no rank has printed anything or used the CPU for {STALL_S / 60:.0f} minutes",
            _split(last)[1],
        )
    slowest = min(ranks, key=lambda rank: _ORDER.index(rank.phase))
    return Waiting(slowest.phase, slowest.shards_percent if slowest.phase is StartPhase.LOADING else None)


def _has_ended(rank: RankProgress) -> bool:
    if rank.lost:
        return False
    return rank.container is None or rank.container.state in (ContainerState.EXITED, ContainerState.DEAD)


def _blame(ranks: Sequence[RankProgress], gone: Sequence[RankProgress]) -> Broken:
    """The rank whose own error came first; a host that was lost or killed before errors that only follow from it."""
    errors = [(rank, find_first_error(rank.lines)) for rank in ranks]
    own = [(line.time, rank, line) for rank, line in errors if line is not None and not is_consequence(line.text)]
    silent = [rank for rank in gone if rank.lost or find_first_error(rank.lines) is None]
    if own and not (silent and silent[0].lost):
        _, rank, line = min(own, key=lambda item: item[0])
        return Broken(rank.rank, rank.host, _ending(rank), line.text)
    rank = silent[0] if silent else gone[0]
    line_or_none = find_first_error(rank.lines)
    return Broken(rank.rank, rank.host, _ending(rank), line_or_none.text if line_or_none else "")


def _ending(rank: RankProgress) -> str:
    if rank.lost:
        return f"contact with the host was lost ({rank.lost})"
    if rank.container is None:
        return "its container is gone; somebody removed it"
    if rank.container.state is ContainerState.RUNNING:
        return "it reported an error"
    if rank.container.out_of_memory:
        return "it was killed because memory ran out"
    code = rank.container.exit_code
    return f"it was {_KILLED_CODES[code]}" if code in _KILLED_CODES else f"it ended with exit code {code}"


def _split(text: str) -> tuple[str, str]:
    match = _PREFIX.match(text)
    level = (match["level"] or "") if match else ""
    return level, text[match.end() :].strip() if match else text.strip()
