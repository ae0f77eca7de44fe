"""How long would an event take? Operations, counted, times what one takes on this machine, measured.

The thesis of Bittner 2008 models memory and wishes for the same for time, so that a system could pick its own
algorithm. The time of an event is taken as a sum over its operations (see `operations`), each with a price.
Prices are no constants of this file: `calibrate` runs every algorithm on a few small workloads, always the
same, and finds the prices that explain its times best.

What the sum leaves out: a hit costs more once the vectors it falls into outgrow the processor's cache, which
the small workloads of the calibration do not show; and what the production index gains by evaluating shared
subexpressions once.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from tamis.costs.memory import index_of
from tamis.costs.operations import Operations, count_operations
from tamis.index import Index
from tamis.workloads import AbeGen, AdsLike, BookAuction, Dense, Equality, Workload
from tamis.workloads.base import EventDict

TERMS: dict[str, tuple[str, ...]] = {
    "auto": ("attributes", "satisfied", "intervals", "entries", "unit_tests", "matches"),
    "boolean": ("attributes", "satisfied", "intervals", "subscriptions", "hits", "tests"),
    "counting": ("attributes", "satisfied", "intervals", "conjunctions", "translated_hits"),
    "cluster": ("attributes", "satisfied", "intervals", "lines", "line_tests"),
}
"""The operations that the time of each algorithm is made of."""

TIMED = tuple(TERMS)
"""The algorithms that the model knows, by the names that `Index(algorithm=...)` takes."""

CALIBRATION: tuple[Workload, ...] = (
    Equality(count=1_000, seed=11),
    Equality(count=8_000, seed=12),
    Dense(count=500, seed=13),
    Dense(count=3_000, seed=14),
    AbeGen(count=1_000, seed=15, attributes=30, depth=2),
    AbeGen(count=1_000, seed=16, attributes=60),
    BookAuction(count=1_000, seed=17),
    BookAuction(count=3_000, seed=18),
    AdsLike(count=2_000, seed=19),
)
EVENTS = 30
ROUNDS = 5


@dataclass(frozen=True)
class Prices:
    """Nanoseconds for each operation of each algorithm.

    >>> prices = Prices({"boolean": {"hits": 2.0, "tests": 5.0}, "cluster": {"lines": 4.0}})
    >>> counted = count_operations(["a = 1 AND b = 2", "a = 1 OR b = 2"], [{"a": 1}])
    >>> prices.microseconds("boolean", counted)
    0.009
    >>> prices.fastest(counted)
    'cluster'
    """

    of: Mapping[str, Mapping[str, float]]

    def microseconds(self, algorithm: str, operations: Operations) -> float:
        """What an event should take."""
        if algorithm not in self.of:
            raise ValueError(f"the model has no prices for {algorithm!r}; it has {', '.join(self.of)}")
        counts: dict[str, float] = vars(operations)
        return sum(price * counts[name] for name, price in self.of[algorithm].items()) / 1_000

    def fastest(self, operations: Operations) -> str:
        """The algorithm that should take the least time, of those that hold every subscription."""
        complete = [name for name in self.of if not refused(name, operations)]
        return min(complete, key=lambda name: self.microseconds(name, operations))


def refused(algorithm: str, operations: Operations) -> int:
    """How many subscriptions the algorithm should refuse as too large.

    >>> either = " AND ".join(f"(a{n} = 1 OR b{n} = 1)" for n in range(20))
    >>> counted = count_operations([either, "c = 3"], [{"c": 3}])
    >>> refused("counting", counted), refused("boolean", counted)
    (1, 0)
    """
    if algorithm == "boolean":
        return operations.uncounted
    return operations.untranslated if algorithm in ("counting", "cluster") else 0


def calibrate(workloads: Sequence[Workload] = CALIBRATION) -> Prices:
    """Measure what operations take here: some seconds, and the same work each time."""
    counted: list[Operations] = []
    times: dict[str, list[float]] = {name: [] for name in TIMED}
    for workload in workloads:
        table = workload.subscriptions_table()
        ids, texts = table["id"].to_pylist(), table["expression"].to_pylist()
        events = workload.events_dicts(EVENTS)
        counted.append(count_operations(texts, events, sample=1_000))
        for algorithm, found in times.items():
            index, _ = index_of(ids, texts, algorithm)
            found.append(measured_microseconds(index, events))
    return fit(counted, times)


def fit(counted: Sequence[Operations], microseconds: Mapping[str, Sequence[float]]) -> Prices:
    """The prices, none below zero, with which the sums come closest to the times, in proportion.

    >>> small = count_operations(["a = 1"], [{"a": 1}])
    >>> fit([small], {"cluster": [3.0]}).microseconds("cluster", small)
    3.0
    """
    prices: dict[str, dict[str, float]] = {}
    for algorithm, times in microseconds.items():
        names = TERMS[algorithm]
        rows = np.array([[vars(one)[name] for name in names] for one in counted], dtype=np.float64)
        relative = rows / np.asarray(times, dtype=np.float64)[:, None]
        found = _not_negative(relative, np.ones(len(counted)))
        prices[algorithm] = {name: 1_000 * float(price) for name, price in zip(names, found, strict=True)}
    return Prices(prices)


def _not_negative(rows: Any, wanted: Any) -> Any:
    """Least squares without negative coefficients: the best of all subsets of columns, which are few."""
    columns = rows.shape[1]
    best, least = np.zeros(columns), np.inf
    for size in range(1, columns + 1):
        for chosen in map(list, combinations(range(columns), size)):
            found = np.linalg.lstsq(rows[:, chosen], wanted, rcond=None)[0]
            error = float(((rows[:, chosen] @ found - wanted) ** 2).sum())
            if (found >= 0).all() and error < least - 1e-12:
                best, least = np.zeros(columns), error
                best[chosen] = found
    return best


def measured_microseconds(index: Index, events: Iterable[EventDict], rounds: int = ROUNDS) -> float:
    """What an event takes in an index, on average; of each event, the fastest of some rounds counts.

    The production index is laid out for the events before. Turning a dict into an event is not in it.

    >>> index = Index(algorithm="boolean")
    >>> index.add(1, "a = 1")
    >>> measured_microseconds(index, [{"a": 1}]) > 0
    True
    """
    some = list(events)
    for event in some:
        index.count(event)
    index.optimize()
    fastest = [float("inf")] * len(some)
    for _ in range(rounds):
        for number, event in enumerate(some):
            index.reset_stats()
            index.count(event)
            taken = float(index.stats()["observed"]["microseconds_per_event"])
            fastest[number] = min(fastest[number], taken)
    return sum(fastest) / len(fastest)
