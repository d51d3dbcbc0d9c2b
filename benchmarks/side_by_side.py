"""Two commands in turn, A B A B …, so that both see the same noise; the answer is the median of the pairs' ratios."""

import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Contest:
    """ours_s, theirs_s: wall seconds of each counted run, in order. ratio: median of ours/theirs, pair by pair."""

    ours_s: tuple[float, ...]
    theirs_s: tuple[float, ...]

    @property
    def ratio(self) -> float:
        return statistics.median(a / b for a, b in zip(self.ours_s, self.theirs_s, strict=True))

    def __str__(self) -> str:
        ours, theirs = _spread(self.ours_s), _spread(self.theirs_s)
        return f"ratio {self.ratio:.2f} ({len(self.ours_s)} pairs; ours {ours}, theirs {theirs})"


def _spread(seconds: Sequence[float]) -> str:
    return f"{statistics.median(seconds):.2f} s [{min(seconds):.2f}-{max(seconds):.2f}]"


def contest(ours: Sequence[str], theirs: Sequence[str], *, pairs: int, warm_up: int = 1) -> Contest:
    """Run the two commands in turn. Exits with their words when one of them fails: a failed run is no figure."""
    for _ in range(warm_up):
        _seconds(ours)
        _seconds(theirs)
    timed = [(_seconds(ours), _seconds(theirs)) for _ in range(pairs)]
    return Contest(tuple(a for a, _ in timed), tuple(b for _, b in timed))


def _seconds(command: Sequence[str]) -> float:
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    elapsed = time.perf_counter() - start
    if done.returncode != 0:
        sys.exit(f"failed ({done.returncode}): {' '.join(command)}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return elapsed
