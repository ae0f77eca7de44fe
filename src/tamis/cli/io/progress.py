"""Progress with rates on standard error: shown after a second, and only on a terminal."""

import sys
import time
from types import TracebackType
from typing import Any

PATIENCE = 1.0


class Progress:
    """A progress bar that appears when the work takes longer than a second on a terminal.

    >>> with Progress("indexing", total=10, unit="rules") as progress:
    ...     progress.advance(10)
    """

    def __init__(self, what: str, total: float | None = None, unit: str = "rows") -> None:
        """Describe the work; without a total the bar only pulses."""
        self._what = what
        self._total = total
        self._unit = unit
        self._done = 0.0
        self._fraction: float | None = None
        self._started = time.monotonic()
        self._visible = sys.stderr.isatty()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> "Progress":
        """Start counting the second of patience."""
        self._started = time.monotonic()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()

    def advance(self, amount: float, fraction: float | None = None) -> None:
        """Say that this much more is done; the fraction of the whole is for work without a known total."""
        self._done += amount
        if fraction is not None:
            self._fraction = fraction
        if self._bar is not None:
            total, completed = self._extent()
            self._bar.update(self._task, total=total, completed=completed, rate=self._rate())
        elif self._visible and time.monotonic() - self._started > PATIENCE:
            self._show()

    def _rate(self) -> str:
        elapsed = max(time.monotonic() - self._started, 1e-9)
        return f"{self._done / elapsed:,.0f} {self._unit}/s"

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(bar_width=32),
            TextColumn("{task.fields[rate]}", style="cyan"),
            TimeRemainingColumn(compact=True),
            console=Console(stderr=True),
            transient=True,
        )
        self._bar.start()
        total, completed = self._extent()
        self._task = self._bar.add_task(self._what, total=total, completed=completed, rate=self._rate())

    def _extent(self) -> tuple[float | None, float]:
        if self._total is None and self._fraction is not None:
            return 1.0, self._fraction
        return self._total, self._done
