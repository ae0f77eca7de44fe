"""Which subscriptions an event satisfies, which of them matter most, and the same for many events at once."""

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from tamis import _kernel
from tamis._kernel import Event
from tamis._kernel import Index as Kernel
from tamis.errors import ArgumentError, UnknownAttributeWarning
from tamis.rank import (
    MODES,
    Candidates,
    ScoreFunction,
    best_of,
    explain_unknown,
    numbered,
    one_by_one,
    unknown_attributes,
)
from tamis.subscription import Id, Moment

EventLike = Mapping[str, Any] | Event | str | bytes
Score = str | ScoreFunction

# Of more rankings it is asked each time whether their names are known.
_MOST_SEEN_RANKINGS = 256


class Match(NamedTuple):
    """A subscription that an event satisfies, with its score and its rank among the matches.

    >>> Match("ad-7", 3.5, 1).id
    'ad-7'
    """

    id: Id
    score: float
    rank: int


class Matches(list[Match]):
    """The matches that `top_k` found, best first: a list that notebooks show as a table.

    >>> Matches([Match("ad-7", 3.5, 1)])
    [Match(id='ad-7', score=3.5, rank=1)]
    """

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Rank, id and score, for a notebook."""
        from tamis import notebook  # noqa: PLC0415

        return notebook.of_matches(self)


class Matching:
    """The part of `tamis.Index` that answers for events."""

    __slots__ = ()
    _kernel: Kernel
    _seen_rankings: set[tuple[Any, ...]]

    # --- one event ---------------------------------------------------------------------------------

    def match(
        self, event: EventLike, *, tags: Iterable[str] | None = None, now: Moment | None = None
    ) -> list[Any]:
        """The ids of all subscriptions that the event satisfies, sorted.

        An event is a dict, a `tamis.Event`, or JSON text or bytes. With `tags`, only subscriptions that have
        any of them; one that nobody has (`Index.tags` lists them) matches nothing. `now` decides what has
        expired; it is the current time unless given.

        >>> from tamis import Index
        >>> index = Index()
        >>> index.add(2, "age > 21", tags=["q4"])
        >>> index.add(1, "age > 25")
        >>> index.match({"age": 27}), index.match({"age": 27}, tags=["q4"]), index.match({})
        ([1, 2], [2], [])
        """
        return self._kernel.match(event, tags, now)

    def count(self, event: EventLike, *, tags: Iterable[str] | None = None, now: Moment | None = None) -> int:
        """How many subscriptions the event satisfies; faster than `match`.

        >>> from tamis import Index
        >>> index = Index()
        >>> index.add("a", "x > 1")
        >>> index.count({"x": 2}), index.count({"x": 1})
        (1, 0)
        """
        return self._kernel.count(event, tags, now)

    def exists(
        self, event: EventLike, *, tags: Iterable[str] | None = None, now: Moment | None = None
    ) -> bool:
        """Whether the event satisfies any subscription; stops at the first.

        >>> from tamis import Index
        >>> index = Index()
        >>> index.add("a", "x > 1")
        >>> index.exists({"x": 2}), index.exists({"x": 1})
        (True, False)
        """
        return self._kernel.exists(event, tags, now)

    def top_k(
        self,
        event: EventLike,
        k: int = 10,
        score: Score = "priority",
        *,
        min_score: float | None = None,
        dimensions: Iterable[str] | None = None,
        tags: Iterable[str] | None = None,
        now: Moment | None = None,
    ) -> list[Match]:
        """The k matches with the highest score, best first; ties go to the smaller id.

        A score is "priority"; "relevance", the sum of the weights of what is true in the expression, each
        times the event's weight for its attribute; "relaxed", the same over all true predicates of
        subscriptions of which at least one is true; a monotone function of what attributes contribute to the
        relevance, such as "min(price, distance) + 0.5 * age"; or a Python function of `tamis.Candidates`.
        What scores less than `min_score` is left out. With `dimensions`, only these attributes count. Names
        that no subscription has bring a `tamis.UnknownAttributeWarning`.

        >>> from tamis import Index
        >>> index = Index()
        >>> index.add("a", "x > 1", priority=1.0)
        >>> index.add("b", "x > 2 OR (y > 2)^0.5", priority=2.0)
        >>> index.top_k({"x": 3}, k=1)
        [Match(id='b', score=2.0, rank=1)]
        >>> index.top_k({"x": 3, "y": 3}, k=1, score="relevance")
        [Match(id='b', score=1.5, rank=1)]
        >>> index.top_k({"x": 0, "y": 3}, score="relaxed")
        [Match(id='b', score=0.5, rank=1)]
        >>> index.top_k({"x": 3, "y": 3}, k=1, score="max(x, 4 * y)")
        [Match(id='b', score=2.0, rank=1)]
        >>> index.top_k({"x": 3, "y": 3}, k=1, score=lambda block: block["x"] + block.priority)
        [Match(id='b', score=3.0, rank=1)]
        """
        dimensions = self._known_dimensions(score, dimensions)
        if callable(score):
            _check_k(k)
            table = _table(_kernel.contributions(self._kernel, event, dimensions, tags, now))
            best = best_of(Candidates.of(table), k, score, min_score)
            return Matches(Match(id, value, rank) for rank, (id, value) in enumerate(best, 1))
        ranking = _ranking(k, score, min_score, dimensions)
        return Matches(Match(*found) for found in self._kernel.top_k(event, ranking, tags, now))

    def _known_dimensions(self, score: Score, dimensions: Iterable[str] | None) -> list[str] | None:
        """The dimensions as a list. Warns, the first time, of names that no subscription has."""
        if isinstance(dimensions, str):
            raise TypeError(f"dimensions is a list of attributes; write dimensions=[{dimensions!r}]")
        listed = None if dimensions is None else list(dimensions)
        if listed is None and (callable(score) or score in MODES):
            return None
        ranking = (score, *(listed or ()))
        if ranking not in self._seen_rankings and len(self._kernel):
            known = [name for name, _ in self._kernel.attributes()]
            for name in unknown_attributes(score, listed, known):
                warnings.warn(explain_unknown(name, known), UnknownAttributeWarning, stacklevel=3)
            if len(self._seen_rankings) < _MOST_SEEN_RANKINGS:
                self._seen_rankings.add(ranking)
        return listed

    # --- many events -------------------------------------------------------------------------------

    def match_batch(
        self,
        events: Any,
        *,
        tags: Iterable[str] | None = None,
        now: Moment | None = None,
        intervals: Sequence[str] = (),
        threads: int | None = None,
    ) -> Any:
        """All matches of many events: a `pyarrow.Table` of `event` (row number) and `subscription` (id).

        Events are a table (pyarrow, pandas, Polars, DuckDB, anything that offers Arrow data), a list of
        events, or JSON lines as text or bytes. Given a `pyarrow.RecordBatchReader`, the result is one too: it
        reads and matches batch by batch, each against the version that is current then, and numbers go on
        from batch to batch. String ids are dictionary-encoded. Columns named in `intervals` are structs of
        `low` and `high`. All cores are used unless `threads` says otherwise.

        >>> from tamis import Index
        >>> import pyarrow as pa
        >>> index = Index()
        >>> index.add(1, "age > 21")
        >>> index.add(2, "age > 30")
        >>> index.match_batch(pa.table({"age": [25, 18, 40]})).to_pydict()
        {'event': [0, 2, 2], 'subscription': [1, 1, 2]}
        """
        _refuse_one_event(events)
        options = _options(tags, now, intervals, threads)
        if not isinstance(events, pa.RecordBatchReader):
            return _table(_kernel.match_batch(self._kernel, events, 0, options))
        schema = _table(_kernel.match_batch(self._kernel, [], 0, options)).schema
        return pa.RecordBatchReader.from_batches(
            schema,
            _numbered(events, lambda batch, first: _kernel.match_batch(self._kernel, batch, first, options)),
        )

    def top_k_batch(
        self,
        events: Any,
        k: int = 10,
        score: Score = "priority",
        *,
        min_score: float | None = None,
        dimensions: Iterable[str] | None = None,
        weights: Mapping[str, float] | str | None = None,
        tags: Iterable[str] | None = None,
        now: Moment | None = None,
        intervals: Sequence[str] = (),
        threads: int | None = None,
    ) -> Any:
        """The k best matches of many events: as `match_batch`, with the columns `score` and `rank`.

        Scores are those of `top_k`. `weights` are the events' weights: a dict of attribute -> weight for all
        of them, or the prefix of the columns that hold them ("weight_" for `weight_age`). A Python function
        as score is called once for each event, with all its matches, and without threads.

        >>> from tamis import Index
        >>> index = Index()
        >>> index.add("a", "age > 21", priority=1.0)
        >>> index.add("b", "age > 30", priority=2.0)
        >>> index.top_k_batch([{"age": 25}, {"age": 40}], k=1).select(["event", "score"]).to_pydict()
        {'event': [0, 1], 'score': [1.0, 2.0]}
        """
        _refuse_one_event(events)
        options = _options(tags, now, intervals, threads, weights)
        dimensions = self._known_dimensions(score, dimensions)
        if callable(score):
            narrowed: dict[str, Any] = {"min_score": min_score, "dimensions": dimensions, "tags": tags}
            found = (
                self.top_k(event, k, score, now=now, **narrowed)
                for event in one_by_one(events, has_columns=bool(intervals) or weights is not None)
            )
            no_ranking, nothing = _ranking(0, "priority"), options | {"weights": None}
            empty = _table(_kernel.top_k_batch(self._kernel, [], no_ranking, 0, nothing))
            return numbered(found, empty.schema)
        ranking = _ranking(k, score, min_score, dimensions)
        if not isinstance(events, pa.RecordBatchReader):
            return _table(_kernel.top_k_batch(self._kernel, events, ranking, 0, options))
        no_events = options | {"weights": None}
        schema = _table(_kernel.top_k_batch(self._kernel, [], ranking, 0, no_events)).schema
        return pa.RecordBatchReader.from_batches(
            schema,
            _numbered(
                events, lambda batch, first: _kernel.top_k_batch(self._kernel, batch, ranking, first, options)
            ),
        )

    def count_batch(
        self,
        events: Any,
        *,
        tags: Iterable[str] | None = None,
        now: Moment | None = None,
        intervals: Sequence[str] = (),
        threads: int | None = None,
    ) -> Any:
        """How many subscriptions each of many events satisfies: a `pyarrow.Array` of int64.

        >>> from tamis import Index
        >>> index = Index()
        >>> index.add("a", "age > 21")
        >>> index.count_batch(b'{"age": 25}\\n{"age": 18}\\n').to_pylist()
        [1, 0]
        """
        _refuse_one_event(events)
        options = _options(tags, now, intervals, threads)
        parts = events if isinstance(events, pa.RecordBatchReader) else [events]
        counted = (_table(_kernel.count_batch(self._kernel, part, options)).column(0) for part in parts)
        return pa.chunked_array(
            [chunk for counts in counted for chunk in counts.chunks], pa.int64()
        ).combine_chunks()

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
        """How long the kernel takes for each event, in nanoseconds: for benchmarks.

        Events are resolved beforehand and matched one by one on this thread; what is measured is the kernel
        alone, without Python. With `repeats`, all events are asked that often and the least time of each
        counts. Nothing is noted in the statistics.

        >>> from tamis import Index
        >>> index = Index()
        >>> index.add("a", "age > 21")
        >>> times = index.time_events([{"age": 25}, {"age": 18}])
        >>> len(times), bool((times >= 0).all())
        (2, True)
        """
        options = _options(None, None, intervals, 1)
        ranking = _ranking(k, score)
        timed = _table(_kernel.time_events(self._kernel, events, mode, ranking, repeats, options))
        times: np.ndarray[Any, np.dtype[np.int64]] = timed.column(0).to_numpy()
        return times


def _refuse_one_event(events: Any) -> None:
    if isinstance(events, Mapping):
        raise TypeError(
            "a batch is a table, a list of events, or JSON lines, not a dict: write [event] for one event, "
            "and pyarrow.table(columns) for columns"
        )


def _table(answer: Any) -> pa.Table:
    """What the kernel answered. `pyarrow.table` would import pandas first, to ask whether it is its own."""
    return pa.RecordBatchReader.from_stream(answer).read_all()


def _numbered(reader: Any, match: Any) -> Iterator[Any]:
    """The results for each batch, events numbered on from batch to batch."""
    first = 0
    for batch in reader:
        yield from _table(match(batch, first)).to_batches()
        first += batch.num_rows


def _options(
    tags: Iterable[str] | None,
    now: Moment | None,
    intervals: Sequence[str],
    threads: int | None,
    weights: Mapping[str, float] | str | None = None,
) -> dict[str, Any]:
    if isinstance(intervals, str):
        raise TypeError(f"intervals is a list of columns; write intervals=[{intervals!r}]")
    given = dict(weights) if isinstance(weights, Mapping) else weights
    return {"tags": tags, "now": now, "intervals": list(intervals), "threads": threads, "weights": given}


def _ranking(
    k: int, score: str, min_score: float | None = None, dimensions: Iterable[str] | None = None
) -> tuple[Any, ...]:
    """What the kernel needs to know of a ranking."""
    _check_k(k)
    if not isinstance(score, str):
        raise TypeError(f"a score is a string or a function, not {type(score).__name__}")
    if min_score is not None and math.isnan(min_score):
        raise ArgumentError("min_score is a number, not NaN")
    return k, score, min_score, None if dimensions is None else list(dimensions)


def _check_k(k: int) -> None:
    if k < 0:
        raise ArgumentError(f"k must not be negative, not {k}")
