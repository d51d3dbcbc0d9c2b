"""The terminal: data to stdout, words and progress to stderr, colour only where it is wanted."""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from sparkctl.report.finding import Severity
from sparkctl.report.render import MARKS

# On something that is no terminal, a line this often says that work goes on.
_PLAIN_INTERVAL_S = 10.0
_STYLES = {
    MARKS[Severity.OK]: "green",
    MARKS[Severity.WARN]: "yellow",
    MARKS[Severity.UNKNOWN]: "yellow",
    MARKS[Severity.DEGRADED]: "yellow",
    MARKS[Severity.FAIL]: "red",
    "error:": "bold red",
    "hint:": "cyan",
    "+": "green",
    "-": "red",
    "@@": "cyan",
}


class Phase:
    """One step that may take a while. `detail` can be set from any thread; the console shows it."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.detail = ""
        self.done: float | None = None
        self.total: float | None = None
        self.started = time.monotonic()

    def update(self, detail: str = "", *, done: float | None = None, total: float | None = None) -> None:
        """Say what is going on; done and total in the same unit draw a bar."""
        self.detail, self.done, self.total = detail, done, total

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self.started

    def line(self) -> str:
        """Title, detail and share as one plain line."""
        share = f" {100 * self.done / self.total:.0f} %" if self.total and self.done is not None else ""
        detail = f": {self.detail}" if self.detail else ""
        return f"{self.title}{detail}{share} ({self.elapsed_s:.0f} s)"


class Terminal:
    """Where a command's lines go. With `json`, stdout stays free for the envelope."""

    def __init__(self, *, json: bool) -> None:
        self._json = json
        self._out = Console(file=sys.stdout, highlight=False, soft_wrap=True)
        self._err = Console(file=sys.stderr, highlight=False, soft_wrap=True)

    def show(self, lines: Sequence[str]) -> None:
        """Print result lines: to stdout, or to stderr when stdout belongs to JSON."""
        for line in lines:
            (self._err if self._json else self._out).print(_styled(line))

    def say(self, line: str) -> None:
        """Print words that are no result: always to stderr."""
        self._err.print(_styled(line))

    def write(self, text: str) -> None:
        """Print a piece of a line at once, as a model's answer comes in."""
        (self._err if self._json else self._out).print(text, end="", markup=False)

    def raw(self, text: str) -> None:
        """Print to stdout exactly, as JSON wants it."""
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    @contextmanager
    def phase(self, title: str) -> Iterator[Phase]:
        """Progress for one step: spinner or bar on a terminal, else plain lines; a closing line if it took long."""
        phase = Phase(title)
        if self._err.is_terminal:
            columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(24), TimeElapsedColumn())
            with Progress(*columns, console=self._err, transient=True) as progress:
                task = progress.add_task(title, total=None)
                with _ticking(0.2, lambda: _redraw(progress, task, phase)):
                    yield phase
        else:
            with _ticking(_PLAIN_INTERVAL_S, lambda: self._err.print(Text(f"… {phase.line()}"))):
                yield phase
        if phase.elapsed_s > 2:
            self._err.print(Text(f"  {phase.title}: {phase.elapsed_s:.1f} s", style="dim"))


@contextmanager
def _ticking(interval_s: float, call: Callable[[], None]) -> Iterator[None]:
    stop = threading.Event()

    def tick() -> None:
        while not stop.wait(interval_s):
            call()

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _redraw(progress: Progress, task: TaskID, phase: Phase) -> None:
    detail = f"{phase.title}: {phase.detail}" if phase.detail else phase.title
    progress.update(task, description=escape(detail), total=phase.total, completed=phase.done or 0)


def _styled(line: str) -> Text:
    style = next((style for start, style in _STYLES.items() if line.lstrip().startswith(start)), "")
    return Text(line, style=style)
