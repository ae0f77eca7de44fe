"""Predicts the time of an event: counted operations, each times its measured cost on this machine.

Bittner 2008 models memory and suggests the same for time, so that a system could choose its own algorithm.
The time of an event is taken as a sum over its operations (see `operations`), each with a price. Prices are
not constants in this file: `calibrate` runs every algorithm on a few fixed small workloads and finds the
prices that explain the times best.

Some operations lead to another place in memory: from a true predicate to the list of what has it, from a
candidate to its tree, from a match to its row. They have a second price for the share of them that waits for
memory: 1 - C/F, with a cache of C bytes and a working set of F bytes. C is found like the prices.

The sum leaves out one gain of the production index: it evaluates shared subexpressions once.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from tamis.index import Index
from tamis_lab.costs.memory import index_of
from tamis_lab.costs.operations import Operations, count_operations
from tamis_lab.workloads import AbeGen, AdsLike, BookAuction, Dense, Equality, Workload
from tamis_lab.workloads.base import EventDict

TERMS: dict[str, tuple[str, ...]] = {
    "auto": ("attributes", "satisfied", "intervals", "entries", "unit_tests", "matches"),
    "boolean": ("attributes", "satisfied", "intervals", "subscriptions", "hits", "tests", "matches"),
    "counting": ("attributes", "satisfied", "intervals", "conjunctions", "translated_hits", "matches"),
    "cluster": ("attributes", "satisfied", "intervals", "clusters", "lines", "line_tests", "matches"),
}
"""The operations that the time of each algorithm is made of."""

FAR: dict[str, tuple[str, ...]] = {
    "auto": ("entries", "matches"),
    "boolean": ("satisfied", "evaluations", "matches"),
    "counting": ("satisfied", "matches"),
    "cluster": ("satisfied", "clusters", "matches"),
}
"""Those that lead to another place in memory."""

TIMED = tuple(TERMS)
"""The algorithms that the model knows, by the names that `Index(algorithm=...)` takes."""

CALIBRATION: tuple[Workload, ...] = (
    Equality(count=1_000, seed=11),
    Equality(count=8_000, seed=12),
    Equality(count=40_000, seed=13),
    Dense(count=500, seed=14),
    Dense(count=3_000, seed=15),
    Dense(count=10_000, seed=16),
    AbeGen(count=1_000, seed=17, attributes=30, depth=2),
    AbeGen(count=500, seed=18, attributes=30),
    AbeGen(count=2_000, seed=19, attributes=60),
    AbeGen(count=4_000, seed=20, attributes=300),
    BookAuction(count=1_000, seed=21),
    BookAuction(count=3_000, seed=22),
    BookAuction(count=12_000, seed=23),
    AdsLike(count=500, seed=24),
    AdsLike(count=3_000, seed=25),
)
"""Some whose counters fit into the nearest cache, and some whose do not."""
CACHES = tuple(2.0**power for power in range(16, 26))
"""The sizes of a cache, in bytes, among which the calibration looks for the one that explains best."""
EVENTS = 30
ROUNDS = 5
REFINEMENTS = 3


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
    far: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """The second price, for those that wait for memory."""
    cache: float = math.inf
    """Bytes."""

    def microseconds(self, algorithm: str, operations: Operations) -> float:
        """What an event should take."""
        if algorithm not in self.of:
            raise ValueError(f"the model has no prices for {algorithm!r}; it has {', '.join(self.of)}")
        near, far = self.of[algorithm], self.far.get(algorithm, {})
        waiting = missed(self.cache, operations.footprint(algorithm))
        prices = [*near.items(), *((name, waiting * price) for name, price in far.items())]
        return sum(price * float(getattr(operations, name)) for name, price in prices) / 1_000

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
    prepared: dict[str, list[tuple[Index, list[EventDict]]]] = {name: [] for name in TIMED}
    for workload in workloads:
        table = workload.subscriptions_table()
        ids, texts = table["id"].to_pylist(), table["expression"].to_pylist()
        events = workload.events_dicts(EVENTS)
        counted.append(count_operations(texts, events, sample=1_000))
        for algorithm in TIMED:
            prepared[algorithm].append((index_of(ids, texts, algorithm)[0], events))
    every = measured_in_turn([one for some in prepared.values() for one in some])
    taken = iter(every)
    return fit(counted, {name: [next(taken) for _ in some] for name, some in prepared.items()})


def fit(counted: Sequence[Operations], microseconds: Mapping[str, Sequence[float]]) -> Prices:
    """The prices, none below zero, with which the sums come closest to the times, in proportion.

    >>> small = count_operations(["a = 1"], [{"a": 1}])
    >>> fit([small], {"cluster": [3.0]}).microseconds("cluster", small)
    3.0
    """
    found = [_fit(counted, microseconds, cache) for cache in CACHES]
    return min(found, key=lambda one: one[1])[0]


def _fit(
    counted: Sequence[Operations], microseconds: Mapping[str, Sequence[float]], cache: float
) -> tuple[Prices, float]:
    """The prices if the cache has that size, and the sum of the squares of the logarithms of the factors."""
    prices, far, error = {}, {}, 0.0
    for algorithm, times in microseconds.items():
        waiting = [missed(cache, one.footprint(algorithm)) for one in counted]
        columns = [[float(getattr(one, name)) for one in counted] for name in TERMS[algorithm]]
        columns += [
            [share * float(getattr(one, name)) for one, share in zip(counted, waiting, strict=True)]
            for name in FAR[algorithm]
        ]
        found, squares = _closest(np.array(columns).T, np.asarray(times, dtype=np.float64))
        named = [1_000 * float(price) for price in found]
        prices[algorithm] = dict(zip(TERMS[algorithm], named, strict=False))
        far[algorithm] = dict(zip(FAR[algorithm], named[len(TERMS[algorithm]) :], strict=True))
        error += squares
    return Prices(prices, far, cache), error


def missed(cache: float, footprint: float) -> float:
    """The share of steps to any place of the footprint that the cache does not hold.

    >>> missed(1e6, 4e6), missed(1e6, 1e5)
    (0.75, 0.0)
    """
    return max(0.0, 1 - cache / footprint)


def _closest(rows: Any, times: Any) -> tuple[Any, float]:
    """Prices with which the sums are too small and too large by about the same factors, and their squares.

    Errors in proportion to the times alone would weigh twice as much as needed more than half of it.
    """
    expected = times
    for _ in range(REFINEMENTS):
        unit = np.sqrt(times * expected)
        found = _not_negative(rows / unit[:, None], times / unit)
        expected = np.maximum(rows @ found, times / 100)
    return found, float((np.log(expected / times) ** 2).sum())


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
    return measured_in_turn([(index, list(events))], rounds)[0]


def measured_in_turn(indexes: Sequence[tuple[Index, list[EventDict]]], rounds: int = ROUNDS) -> list[float]:
    """The same for several indexes, each with its events: every round goes through all of them.

    What slows a machine down for a while then does so for all indexes alike, and not for a few. Every other
    event is timed; the production index may lay itself out for the rest of them.

    >>> measured_in_turn([])
    []
    """
    for index, events in indexes:
        for event in events[1::2]:
            index.count(event)
        index.optimize()
    fastest = [[math.inf] * len(events[::2]) for _, events in indexes]
    for _ in range(rounds):
        for (index, events), so_far in zip(indexes, fastest, strict=True):
            for number, event in enumerate(events[::2]):
                index.reset_stats()
                index.count(event)
                taken = float(index.stats()["observed"]["microseconds_per_event"])
                so_far[number] = min(so_far[number], taken)
    return [sum(some) / len(some) for some in fastest]
