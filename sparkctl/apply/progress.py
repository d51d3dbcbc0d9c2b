"""Where a long step reports how far it is; the command line shows it."""

from typing import Protocol


class Progress(Protocol):
    """One step on the screen."""

    def update(self, detail: str = "", *, done: float | None = None, total: float | None = None) -> None:
        """Say what is going on; done and total in the same unit draw a bar. May be called from any thread."""
        ...
