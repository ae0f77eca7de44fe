"""Shared code of the experiments on algorithms: build one, match events, record time and memory."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from tamis_lab.costs import index_of
from tamis_lab.workloads import Workload
from tamis_lab.workloads.base import EventDict

ROUNDS = 3
Options = Mapping[str, bool | int | float | str]


@dataclass(frozen=True)
class Measured:
    """The figures of one algorithm on one workload; the refused expressions are not in them."""

    build_seconds: float
    """Processor time, which other work on the machine hardly changes."""
    microseconds: float
    """Mean time of an event in the kernel; of each event, the fastest of some rounds counts."""
    megabytes: float
    matches: int
    refused: int
    nodes: int


def measure(
    workload: Workload,
    algorithm: str,
    options: Options | None = None,
    *,
    events: Sequence[EventDict],
    order: Sequence[int] | None = None,
) -> Measured:
    """Index a workload with an algorithm, in the given order of arrival, and match the events one by one.

    >>> from tamis_lab.workloads import Equality
    >>> small = Equality(count=50)
    >>> measure(small, "a-tree", events=small.events_dicts(3)).refused
    0
    """
    table = workload.subscriptions_table()
    if order is not None:
        # Rows are added in the order of their ids: those who arrive in another order get other ids.
        table = table.take(list(order)).set_column(0, "id", table["id"])
    return measure_rows(table, algorithm, options, events=events)


def measure_rows(
    table: pa.Table, algorithm: str, options: Options | None = None, *, events: Sequence[EventDict]
) -> Measured:
    """The same for some subscriptions, given as a table with the columns `id` and `expression`.

    >>> from tamis_lab.workloads import Equality
    >>> small = Equality(count=50)
    >>> measure_rows(small.subscriptions_table()[:5], "boolean", events=small.events_dicts(3)).refused
    0
    """
    ids, texts = table["id"].to_pylist(), table["expression"].to_pylist()
    started = time.process_time()
    index, refused = index_of(ids, texts, algorithm, options)
    build_seconds = time.process_time() - started
    timed, learnt = events[::2], events[1::2]
    matches = sum(index.count(event) for event in learnt)
    index.optimize()  # The production index lays itself out for events it has seen; others stay as they are.
    matches += sum(index.count(event) for event in timed)
    nanoseconds = index.time_events(timed, repeats=1 if algorithm == "scan" else ROUNDS)
    stats = index.stats()
    return Measured(
        build_seconds=build_seconds,
        microseconds=float(nanoseconds.mean()) / 1_000,
        megabytes=stats["index_bytes"] / 1e6,
        matches=matches,
        refused=refused,
        nodes=int(stats.get("nodes", 0)),
    )


def refusals(measured: Measured, total: int) -> str:
    """A note on expressions that an algorithm did not take; empty where it took all.

    >>> refusals(Measured(1, 1, 1, 1, refused=5, nodes=0), 100)
    '5 of 100 refused as too large'
    """
    return f"{measured.refused:,} of {total:,} refused as too large" if measured.refused else ""
