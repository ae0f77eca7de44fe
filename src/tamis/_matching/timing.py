"""The time that the kernel takes per event, for benchmarks."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from tamis import _kernel
from tamis._kernel import Query
from tamis._matching.answers import options_of, table_of
from tamis._matching.one_event import OneEvent
from tamis.errors import ArgumentError

_TIMED = {"count": Query("count"), "match": Query("all"), "top_k": Query("best")}


class Timing(OneEvent):
    """Measures the kernel alone."""

    __slots__ = ()

    def time_events(
        self,
        events: Any,
        mode: Literal["count", "match", "top_k"] = "count",
        *,
        k: int = 10,
        score: str = "priority",
        repeats: int = 1,
        intervals: Sequence[str] = (),
    ) -> "np.ndarray[Any, np.dtype[np.int64]]":
        """The time that the kernel takes per event, in nanoseconds, for benchmarks.

        Events are resolved beforehand and matched one by one on this thread; only the kernel is measured,
        without Python. With `repeats`, all events are matched that often, and the least time of each counts.
        Statistics do not change.

        >>> from tamis import Index
        >>> index = Index()
        >>> index.add("a", "age > 21")
        >>> times = index.time_events([{"age": 25}, {"age": 18}])
        >>> len(times), bool((times >= 0).all())
        (2, True)
        """
        if mode not in _TIMED:
            raise ArgumentError(f'the mode is "count", "match" or "top_k", not {mode!r}')
        query = Query(k=k, score=score) if mode == "top_k" else _TIMED[mode]
        timed = table_of(_kernel.time_events(self._kernel, events, query, repeats, options_of(intervals, 1)))
        times: np.ndarray[Any, np.dtype[np.int64]] = timed.column(0).to_numpy()
        return times
