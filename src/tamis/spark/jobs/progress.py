"""The progress of a job: one line that is updated on a terminal, a log line from time to time elsewhere.

The figures of a stream come from Spark's reports on its micro-batches. A batch job has none before it ends,
but its tasks write reports next to the index; if this process can read them, it adds them up.
"""

import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TextIO

from tamis.spark.plans.choose import PlanReport
from tamis.store.directory import open_directory

OBSERVED = "tamis_result"
"""The name under which a query counts its result."""

SECONDS_BETWEEN_LINES = 5.0
SECONDS_BETWEEN_LOOKS = 0.5


@dataclass
class Figures:
    """What is known about a running job; None is unknown.

    >>> print(Figures(events=1200, matches=300, rate=400.0, lag=0, version=7))
    1,200 events, 300 matches, 400 events/s, lag 0, version 7
    """

    events: int | None = None
    matches: int | None = None
    rows: int | None = None
    """Rows that went to the sink."""
    rate: float | None = None
    lag: int | None = None
    """Messages that wait at the source."""
    version: int | None = None
    batches: int = 0

    def __str__(self) -> str:
        """One line."""
        parts = [
            None if self.events is None else f"{self.events:,} events",
            None if self.matches is None else f"{self.matches:,} matches",
            None if self.rate is None else f"{self.rate:,.0f} events/s",
            None if self.lag is None else f"lag {self.lag:,}",
            None if self.version is None else f"version {self.version}",
        ]
        return ", ".join(part for part in parts if part) or "starting"

    def add_micro_batch(self, progress: Any) -> None:
        """Add what Spark says about one micro-batch."""
        self.batches += 1
        self.events = (self.events or 0) + progress["numInputRows"]
        self.rate = progress["processedRowsPerSecond"]
        self.lag = lag_of(progress["sources"])
        # Spark 3.5 leaves them out of a micro-batch that has none.
        seen = progress["observedMetrics"].get(OBSERVED) if "observedMetrics" in progress else None
        if seen is not None:
            self.rows = (self.rows or 0) + seen["rows"]
            if seen["matches"] is not None:
                self.matches = (self.matches or 0) + seen["matches"]
            self.version = seen["version"] if seen["version"] is not None else self.version


def lag_of(sources: Any) -> int | None:
    """Messages that wait at the source, for sources that say so.

    >>> lag_of([{"metrics": {"maxOffsetsBehindLatest": "3"}}])
    3
    >>> lag_of([{"metrics": {}, "endOffset": {"sequence": 5}, "latestOffset": {"sequence": 9}}])
    4
    >>> lag_of([{"metrics": {}, "endOffset": {"logOffset": 1}, "latestOffset": None}]) is None
    True
    """
    waiting: list[int] = []
    for source in sources:
        behind = (source["metrics"] or {}).get("maxOffsetsBehindLatest")
        if behind is not None:
            waiting.append(int(behind))
            continue
        last, newest = _sequence(source["endOffset"]), _sequence(source["latestOffset"])
        if last is not None and newest is not None:
            waiting.append(max(0, newest - last))
    return max(waiting) if waiting else None


def _sequence(offset: Any) -> int | None:
    if isinstance(offset, str):
        try:
            offset = json.loads(offset)
        except ValueError:
            return None
    sequence = offset.get("sequence") if isinstance(offset, dict) else None
    return sequence if isinstance(sequence, int) else None


class Display(Protocol):
    """Where figures are shown."""

    def show(self, what: str, figures: Figures) -> None:
        """Show them."""

    def close(self) -> None:
        """Leave the screen as a reader wants it."""


class Lines:
    """A line now and then, for logs.

    >>> import sys
    >>> Lines(sys.stdout).show("ads", Figures(events=5))
    ads: 5 events
    """

    def __init__(self, stream: TextIO, seconds: float = SECONDS_BETWEEN_LINES) -> None:
        """Write to a stream, at most one line in this many seconds."""
        self._stream = stream
        self._seconds = seconds
        self._last = float("-inf")
        self._shown = ""

    def show(self, what: str, figures: Figures) -> None:
        """Write a line, unless nothing changed or one was written just now."""
        text = f"{what}: {figures}"
        if text != self._shown and time.monotonic() - self._last >= self._seconds:
            self._stream.write(text + "\n")
            self._stream.flush()
            self._last, self._shown = time.monotonic(), text

    def close(self) -> None:
        """Nothing is left to do."""


class LiveLine:
    """One line of a terminal that changes in place."""

    def __init__(self) -> None:
        """Start the line, on standard error."""
        from rich.console import Console  # noqa: PLC0415 - only terminals need it

        self._status = Console(stderr=True).status("starting")
        self._status.start()

    def show(self, what: str, figures: Figures) -> None:
        """Replace the line."""
        self._status.update(f"[bold]{what}[/bold] {figures}")

    def close(self) -> None:
        """Remove the line."""
        self._status.stop()


def display() -> Display:
    """What fits standard error: a live line on a terminal, log lines elsewhere."""
    return LiveLine() if sys.stderr.isatty() else Lines(sys.stderr)


@contextmanager
def watched(shown: Display, name: str, report: PlanReport) -> Iterator[None]:
    """Show, while a batch job runs, what its tasks report when they finish."""
    done = threading.Event()

    def look() -> None:
        started, seen = time.monotonic(), Figures(version=report.version.number)
        known: set[str] = set()
        while not done.wait(SECONDS_BETWEEN_LOOKS):
            try:
                _add_reports(report, known, seen)
            except Exception:  # a look at progress must never end a job, and another may succeed
                continue
            seen.rate = (seen.events or 0) / (time.monotonic() - started)
            shown.show(name, seen)

    watcher = threading.Thread(target=look, name="tamis-progress", daemon=True)
    if report.run is not None:
        watcher.start()
    try:
        yield
    finally:
        done.set()
        if report.run is not None:
            watcher.join()


def _add_reports(report: PlanReport, known: set[str], seen: Figures) -> None:
    directory = open_directory(report.url)
    folder = f"reports/{report.run}"
    for name in directory.list(folder):
        if name not in known:
            task = json.loads(directory.read(f"{folder}/{name}"))
            known.add(name)
            seen.events = (seen.events or 0) + (task["rows"] if task["step"] != "shard" else 0)
            seen.matches = (seen.matches or 0) + task["matches"]
