"""What there is to tell about serving, as values; `render_serving` turns them into lines."""

from collections.abc import Mapping
from dataclasses import dataclass

from sparkctl.tools.openai_api import Answer


@dataclass(frozen=True)
class StartReport:
    """A start that worked. Times are seconds since its first container was started.

    ready_s: until the API was up. total_s: until the first answer was complete. phases: when the slowest rank reached
    each. cache_tokens: room of the KV cache, None when the engine did not tell. answer: to `prompt`, temperature 0.
    """

    ready_s: float
    total_s: float
    phases: tuple[tuple[str, float], ...]
    cache_tokens: int | None
    prompt: str
    answer: Answer


@dataclass(frozen=True)
class StartFailure:
    """A start that failed. rank, host: whose fault; line: its first error, empty if it printed none.

    last_words: last log lines per host. log_dir: where the whole logs are, on each host. left_running: ranks that
    could not be stopped, such as those on a lost host.
    """

    host: str
    rank: int
    phase: str
    reason: str
    line: str
    last_words: Mapping[str, tuple[str, ...]]
    log_dir: str
    left_running: tuple[str, ...]
