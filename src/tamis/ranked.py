"""Intervals with scores: which of many boxes contain a point, the best first (Machanavajjhala et al. 2008).

`IntervalIndex` is the model of the paper: a subscription has an interval on some of the attributes, an event
a number for each, and one of eight structures finds the answers. For expressions, the same structures are
behind `tamis.Index(algorithm="interval")`.
"""

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from time import thread_time
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tamis import _kernel
from tamis._suggest import MISSPELT, closest, did_you_mean
from tamis.errors import ArgumentError, EventError, IdError, UnknownAttributeWarning
from tamis.index import Match

STRUCTURES: Mapping[str, bool] = dict(_kernel.interval_structures())
"""The structures by name, and whether each takes changes after it is built."""

Ends = tuple[float | None, float | None]
_FIRST_ANSWERS = 16


class IntervalIndex:
    """Finds the boxes that contain a point, the best first; ties go to the smaller id.

    A box has an interval, ends included, on some of `attributes`, and is unconstrained on the others. An end
    that is None is infinite. Ids are 64-bit integers; values are 64-bit floats. `structure` is one of
    `STRUCTURES`; static ones are built by `from_columns`. `branching` is the number of children of an R-tree
    node.

    >>> index = IntervalIndex(["age", "credit"])
    >>> index.add(7, {"age": (20, 35), "credit": (400, 500)}, priority=2.0)
    >>> index.add(8, {"age": (30, None)}, priority=3.0)
    >>> index.top_k({"age": 32, "credit": 450})
    [Match(id=8, score=3.0, rank=1), Match(id=7, score=2.0, rank=2)]
    """

    def __init__(self, attributes: Sequence[str], *, structure: str = "ir", branching: int = 50) -> None:
        """Create an empty index over these attributes."""
        self._attributes = tuple(attributes)
        columns: list[Any] = [([], [], []) for _ in self._attributes]
        self._hold(
            _kernel.BoxIndex([*self._attributes], structure, branching, [], [], columns), structure, branching
        )

    def _hold(self, kernel: _kernel.BoxIndex, structure: str, branching: int) -> None:
        self._kernel = kernel
        self._structure, self._branching = structure, branching
        self._changes = 0

    @classmethod
    def from_columns(
        cls,
        ids: ArrayLike,
        intervals: Mapping[str, tuple[ArrayLike, ArrayLike]],
        *,
        priorities: ArrayLike | None = None,
        weights: Mapping[str, ArrayLike] | None = None,
        structure: str = "ir",
        branching: int = 50,
    ) -> "IntervalIndex":
        """Build an index at once: `intervals` has the low and the high ends of every attribute.

        A low end that is NaN means no interval. Without `priorities` all are 0, without `weights` all are 1.

        >>> index = IntervalIndex.from_columns(
        ...     [1, 2, 3], {"x": ([0, 4, 2], [5, 9, 4])}, priorities=[0.5, 0.7, 0.9], structure="sopt-r"
        ... )
        >>> [match.id for match in index.top_k({"x": 4})]
        [3, 2, 1]
        """
        index = cls.__new__(cls)
        index._attributes = tuple(intervals)
        given = np.asarray(ids)
        if given.size and given.dtype.kind not in "iu":
            _integer_id(given.tolist()[0])
            raise IdError(f"ids are 64-bit integers, not a column of {given.dtype}")
        if given.size and given.dtype.kind == "u" and given.max() >= 2**63:
            raise IdError(f"ids are 64-bit integers, and {given.max()} is larger")
        given = given.astype(np.int64)
        ones = np.ones(len(given))
        unknown = set(weights or {}) - set(intervals)
        if unknown:
            raise ArgumentError(f"weights for {_names(sorted(unknown))}, which has no intervals")
        columns = [
            (_floats(low), _floats(high), _floats((weights or {}).get(name, ones)))
            for name, (low, high) in intervals.items()
        ]
        chosen = np.zeros(len(given)) if priorities is None else priorities
        kernel = _kernel.BoxIndex(
            [*intervals], structure, branching, given.tolist(), _floats(chosen), columns
        )
        index._hold(kernel, structure, branching)
        return index

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes, in the order in which weights are added up.

        >>> IntervalIndex(["x", "y"]).attributes
        ('x', 'y')
        """
        return self._attributes

    @property
    def structure(self) -> str:
        """The name of the structure.

        >>> IntervalIndex(["x"]).structure
        'ir'
        """
        return self._structure

    def add(
        self,
        id: int,
        intervals: Mapping[str, Ends],
        *,
        priority: float = 0.0,
        weights: Mapping[str, float] | None = None,
    ) -> None:
        """Add a box. Static structures refuse it.

        >>> index = IntervalIndex(["x"], structure="segment")
        >>> index.add(1, {"x": (0, 1)})
        Traceback (most recent call last):
        tamis.errors.ArgumentError: the structure "segment" is built at once and takes no changes, ...
        """
        for given in (intervals, weights or {}):
            unknown = [name for name in given if name not in self._attributes]
            if unknown:
                raise ArgumentError(
                    f"the subscription {id} has {_names(unknown)}; the index has {_names(self._attributes)}"
                )
        sides = [
            None
            if name not in intervals
            else (*_ends(intervals[name]), float((weights or {}).get(name, 1.0)))
            for name in self._attributes
        ]
        self._kernel.add(_integer_id(id), float(priority), sides)
        self._changes += 1

    def remove(self, id: int) -> None:
        """Remove a box.

        >>> index = IntervalIndex(["x"])
        >>> index.add(1, {"x": (0, 1)})
        >>> index.remove(1)
        >>> len(index), 1 in index
        (0, False)
        """
        self._kernel.remove(_integer_id(id))
        self._changes += 1

    def __len__(self) -> int:
        """How many boxes there are."""
        return len(self._kernel)

    def __contains__(self, id: int) -> bool:
        """Whether there is a box with that id."""
        return self._kernel.contains(_integer_id(id))

    def top_k(self, event: Mapping[str, float], k: int = 10, *, relaxed: bool = False) -> list[Match]:
        """The k best boxes that contain the point, by priority.

        With `relaxed`, one interval that contains its value is enough, and the score is the sum of the
        weights of those that do (by Fagin's Threshold Algorithm, which stops as soon as nothing better can
        follow). An attribute that the event lacks matches no interval.

        >>> index = IntervalIndex(["x", "y"])
        >>> index.add(1, {"x": (0, 1), "y": (0, 1)}, weights={"x": 0.3, "y": 0.9})
        >>> index.add(2, {"x": (0, 9)}, weights={"x": 0.5})
        >>> index.top_k({"x": 0.5, "y": 7}, relaxed=True)
        [Match(id=2, score=0.5, rank=1), Match(id=1, score=0.3, rank=2)]
        >>> index.top_k({"x": 0.5, "y": 7})
        [Match(id=2, score=0.0, rank=1)]
        """
        if isinstance(k, bool) or not isinstance(k, int) or k < 0:
            raise ArgumentError(f"k must be an integer of at least 0, not {k!r}")
        found = self._kernel.top_k(self._point(event), k, relaxed)
        return [Match(id, score, rank) for rank, (id, score) in enumerate(found, 1)]

    def iterate(self, event: Mapping[str, float], *, relaxed: bool = False) -> Iterator[Match]:
        """The same one by one, the best first, for an unknown number of results.

        Fetches twice as many whenever the results are used up. The index must not change meanwhile.

        >>> index = IntervalIndex.from_columns([1, 2], {"x": ([0, 0], [1, 1])}, priorities=[1, 2])
        >>> next(index.iterate({"x": 1})).id
        2
        """
        point, changes = self._point(event), self._changes
        given, wanted = 0, _FIRST_ANSWERS
        while True:
            if changes != self._changes:
                raise RuntimeError("the index was changed while its answers were iterated over")
            found = self._kernel.top_k(point, wanted, relaxed)
            for id, score in found[given:]:
                given += 1
                yield Match(id, score, given)
            if len(found) < wanted:
                return
            wanted *= 2

    @property
    def memory(self) -> dict[str, int]:
        """Bytes by part. The structures of a mode are built by its first query, and take no memory before.

        >>> index = IntervalIndex(["x"])
        >>> index.add(1, {"x": (0, 1)})
        >>> before = index.memory["exact"]
        >>> before, index.top_k({"x": 1})[0].id, index.memory["exact"] > 0
        (0, 1, True)
        """
        return dict(self._kernel.bytes())

    def check(self) -> None:
        """Verify the invariants of the structures that the paper states; raises AssertionError otherwise.

        >>> IntervalIndex(["x"]).check()
        """
        self._kernel.check()

    def time(
        self, events: Sequence[Sequence[float]], k: int, *, relaxed: bool = False, rounds: int = 5
    ) -> tuple[float, float]:
        """Mean microseconds per query, and intervals read; events are rows of values.

        Every event is queried `rounds` times. Measures processor time, which other programs do not affect.

        >>> index = IntervalIndex.from_columns([1], {"x": ([0], [1])})
        >>> microseconds, reads = index.time([[0.5], [0.7]], k=5)
        >>> microseconds > 0, reads
        (True, 1.0)
        """
        started = thread_time()
        reads = self._kernel.ask(events, k, relaxed, rounds)
        return (thread_time() - started) * 1e6 / (rounds * len(events)), reads

    def _point(self, event: Mapping[str, float]) -> list[float | None]:
        """The values of an event; other attributes are ignored, with a warning if one looks misspelt."""
        point: list[float | None] = []
        absent = [name for name in self._attributes if name not in event]
        for name in event if absent else ():
            if name in self._attributes:
                continue
            if meant := closest(name, absent, similarity=MISSPELT):
                warnings.warn(
                    f"the index has no attribute `{name}`, and the event no `{meant}`; {did_you_mean(meant)}",
                    UnknownAttributeWarning,
                    stacklevel=3,
                )
        for name in self._attributes:
            value = event.get(name)
            if isinstance(value, bool) or not isinstance(value, (int, float, np.number, type(None))):
                raise EventError(f"the value of `{name}` must be a number, not {value!r}")
            if value is not None and math.isnan(value):
                raise EventError(f"the value of `{name}` must be a number, not NaN")
            point.append(None if value is None else float(value))
        return point

    def __repr__(self) -> str:
        """A short description."""
        return f"IntervalIndex({list(self._attributes)}, structure={self._structure!r}), {len(self)} boxes"


def _ends(given: Ends) -> tuple[float, float]:
    low, high = given
    return -math.inf if low is None else float(low), math.inf if high is None else float(high)


def _integer_id(id: Any) -> int:
    if isinstance(id, bool) or not isinstance(id, (int, np.integer)) or not -(2**63) <= id < 2**63:
        raise IdError(
            f"an IntervalIndex has 64-bit integers as ids, not {id!r}; for other ids use tamis.Index"
        )
    return int(id)


def _floats(column: ArrayLike) -> list[float]:
    numbers: list[float] = np.asarray(column, dtype=np.float64).tolist()
    return numbers


def _names(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
