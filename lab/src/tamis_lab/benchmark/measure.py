"""All figures of one workload at one size, in the order in which they are taken."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

import tamis
from tamis_lab.workloads import Workload

Say = Callable[[str], None]


@dataclass(frozen=True)
class Effort:
    """How long to measure. Events are repeated until `seconds` have passed for a figure."""

    seconds: float = 3.0
    most_events: int = 4_096
    batch_events: int = 4_096
    updates: int = 20_000
    scan_sample: int = 10_000
    scan_events: int = 30

    @classmethod
    def quick(cls) -> "Effort":
        """Enough to see that everything works, in a few seconds.

        >>> Effort.quick().seconds < Effort().seconds
        True
        """
        return cls(
            seconds=0.3, most_events=512, batch_events=512, updates=2_000, scan_sample=2_000, scan_events=5
        )


@dataclass(frozen=True)
class Figures:
    """What was measured. Times in microseconds, rates per second, sizes in bytes per subscription."""

    matches_per_event: float
    build_seconds: float
    count_p50: float
    count_p99: float
    match_p50: float
    match_p99: float
    python_p50: float
    python_p99: float
    batch_events_per_second_1: float
    batch_events_per_second_2: float
    batch_match_events_per_second_2: float
    inserts_per_second: float
    deletes_per_second: float
    inserts_per_second_while_matching: float
    deletes_per_second_while_matching: float
    bytes_per_subscription: float
    scan_microseconds: float
    """Of a plain scan, scaled from its sample to all subscriptions."""

    @property
    def scan_ratio(self) -> float:
        """How many times longer a plain scan takes for an event."""
        return self.scan_microseconds / self.count_p50


def measure(workload: Workload, effort: Effort, say: Say = lambda step: None) -> Figures:
    """Index a workload and take every figure."""
    say("generating")
    subscriptions = workload.subscriptions_table().combine_chunks()
    events = workload.events_dicts(effort.most_events)
    batch = workload.events_table(effort.batch_events)

    say("building")
    # Figures are those of the index as it was built: it must not be rewritten while they are taken.
    index = tamis.Index(optimize="manual")
    started = time.perf_counter()
    index.add_many(subscriptions["id"], subscriptions["expression"], priorities=subscriptions["priority"])
    build_seconds = time.perf_counter() - started

    say("matching one by one")
    affordable = _affordable(index, events, effort)
    counts = _kernel_times(index, affordable, "count", effort)
    matches = _kernel_times(index, affordable, "match", effort)
    python = _python_times(index, affordable)

    say("matching in batches")
    one, two = (
        _batch_rate(partial(index.count_batch, batch, threads=threads), batch.num_rows, effort)
        for threads in (1, 2)
    )
    match_rate = _batch_rate(partial(index.match_batch, batch, threads=2), batch.num_rows, effort)

    say("inserting and deleting")
    size = index_bytes(index) / len(index)
    quiet = _update_rates(index, subscriptions, effort.updates)
    with _matching(index, affordable):
        busy = _update_rates(index, subscriptions, effort.updates)

    say("scanning a sample")
    scan = _scan_time(subscriptions, events, effort)
    return Figures(
        matches_per_event=float(np.mean([index.count(event) for event in affordable])),
        build_seconds=build_seconds,
        count_p50=_percentile(counts, 50),
        count_p99=_percentile(counts, 99),
        match_p50=_percentile(matches, 50),
        match_p99=_percentile(matches, 99),
        python_p50=_percentile(python, 50),
        python_p99=_percentile(python, 99),
        batch_events_per_second_1=one,
        batch_events_per_second_2=two,
        batch_match_events_per_second_2=match_rate,
        inserts_per_second=quiet[0],
        deletes_per_second=quiet[1],
        inserts_per_second_while_matching=busy[0],
        deletes_per_second_while_matching=busy[1],
        bytes_per_subscription=size,
        scan_microseconds=scan,
    )


def index_bytes(index: tamis.Index) -> int:
    """The memory of an index without ids and texts."""
    return int(index.stats()["index_bytes"])


def _affordable(index: tamis.Index, events: list[Any], effort: Effort) -> list[Any]:
    """As many events as can be matched in the time there is, at least 64. Also warms the index up."""
    started = time.perf_counter()
    for event in events[:32]:
        index.count(event)
    each = (time.perf_counter() - started) / 32
    return events[: max(64, min(len(events), int(effort.seconds / each)))]


def _kernel_times(
    index: tamis.Index, events: list[Any], mode: Literal["count", "match"], effort: Effort
) -> Any:
    """Nanoseconds per event, taken inside the kernel; several rounds where there is time."""
    rounds: list[Any] = []
    deadline = time.perf_counter() + effort.seconds
    while not rounds or time.perf_counter() < deadline:
        rounds.append(index.time_events(events, mode=mode))
    return np.concatenate(rounds)


def _python_times(index: tamis.Index, events: list[Any]) -> Any:
    """Nanoseconds that a Python caller waits for the count of a dict."""
    times = np.empty(len(events), dtype=np.int64)
    clock = time.perf_counter_ns
    for number, event in enumerate(events):
        started = clock()
        index.count(event)
        times[number] = clock() - started
    return times


def _batch_rate(call: Callable[[], Any], events: int, effort: Effort) -> float:
    """Events per second of the best call."""
    best = float("inf")
    deadline = time.perf_counter() + effort.seconds
    while best == float("inf") or time.perf_counter() < deadline:
        started = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - started)
    return events / best


def _update_rates(index: tamis.Index, subscriptions: Any, updates: int) -> tuple[float, float]:
    """Insertions and deletions per second, one call each: the last subscriptions leave and come back."""
    last = subscriptions.slice(max(0, subscriptions.num_rows - updates))
    ids, texts = last["id"].to_pylist(), last["expression"].to_pylist()
    started = time.perf_counter()
    for id_ in ids:
        index.remove(id_)
    deleted = time.perf_counter()
    for id_, text in zip(ids, texts, strict=True):
        index.add(id_, text)
    inserted = time.perf_counter()
    return len(ids) / (inserted - deleted), len(ids) / (deleted - started)


@contextmanager
def _matching(index: tamis.Index, events: list[Any]) -> Iterator[None]:
    """Match in another thread for as long as the block runs."""
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            index.time_events(events[:64], mode="count")

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _scan_time(subscriptions: Any, events: list[Any], effort: Effort) -> float:
    sample = subscriptions.slice(0, effort.scan_sample)
    scan = tamis.Index(algorithm="scan")
    scan.add_many(sample["id"], sample["expression"])
    times = scan.time_events(events[: effort.scan_events], mode="count")
    growth: float = subscriptions.num_rows / sample.num_rows
    return _percentile(times, 50) * growth


def _percentile(nanoseconds: Any, percent: float) -> float:
    """A percentile, in microseconds.

    >>> _percentile([1_000, 3_000, 2_000], 50)
    2.0
    """
    return float(np.percentile(nanoseconds, percent)) / 1_000
