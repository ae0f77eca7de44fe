"""The index: holds subscriptions and finds, for each event, those that it satisfies.

Everything here is a thin layer over the compiled kernel: it gives arguments their names and defaults and
results their types. Matching runs on an immutable version of the index, so readers never wait for writers.
"""

import json
import math
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from tamis import _kernel
from tamis._columns import columns_of, details_batch, id_column, text_column
from tamis._kernel import Event, Expression
from tamis.errors import ArgumentError, UnknownAttributeWarning, UnknownIdError
from tamis.explain import Explanation, WhyNot
from tamis.expr import Column
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

Id = int | str
EventLike = Mapping[str, Any] | Event | str | bytes
ExpressionLike = str | Expression | Column | dict[str, Any]
Moment = datetime | date | int
Score = str | ScoreFunction
T = TypeVar("T")

# Of more rankings it is asked each time whether their names are known.
_MOST_SEEN_RANKINGS = 256

ALGORITHMS: tuple[str, ...] = tuple(_kernel.algorithms())
"""The names that `Index(algorithm=...)` takes. "auto" is the production index."""


class Match(NamedTuple):
    """A subscription that an event satisfies, with its score and its rank among the matches.

    >>> Match("ad-7", 3.5, 1).id
    'ad-7'
    """

    id: Id
    score: float
    rank: int


class RefusedRow(NamedTuple):
    """A row that `add_many` did not add: its number, its id if it has one, and what is wrong with it.

    >>> index = Index()
    >>> [bad] = index.add_many(["a", "b"], ["x > 1", "x >"], on_error="collect")
    >>> bad.row, bad.id, type(bad.error).__name__
    (1, 'b', 'ExpressionError')
    """

    row: int
    id: Id | None
    error: Exception


@dataclass(frozen=True)
class Subscription:
    """What an index holds under an id.

    >>> index = Index()
    >>> index.add("ad-7", "age > 21", priority=3.5, tags=["q4"])
    >>> index["ad-7"].expression, index["ad-7"].priority, index["ad-7"].tags
    (tamis.parse('age > 21'), 3.5, ('q4',))
    """

    id: Id
    expression: Expression
    priority: float = 0.0
    weights: dict[str, float] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    payload: bytes | None = None
    expires: datetime | None = None


class Index:
    """Subscriptions, and for each event those that it satisfies.

    A `schema` (attribute -> name of a type) makes the index refuse predicates that cannot fit; without one
    attributes are learnt from the subscriptions. `algorithm` is one of `tamis.ALGORITHMS`, and `options` are
    that algorithm's. Ids are strings or 64-bit integers; the first one fixes which.

    An index learns from the events it sees. With `optimize="auto"` one of 10,000 subscriptions or more is
    laid out anew in the background when events turn out to have many more candidates than it was laid out
    for, or when it knew of none; that takes at most a twentieth of the time, and never changes an answer.
    With `"manual"`, and for an index that was opened from a file, only `optimize()` does that.

    >>> import tamis
    >>> from tamis import col
    >>> index = tamis.Index()
    >>> index.add("ad-7", "age BETWEEN 22 AND 36 AND country IN ('CA', 'US')", priority=3.5, tags=["q4"])
    >>> index.add("ad-8", (col("age") > 20) & ~col("opted_out"))
    >>> index.match({"age": 27, "country": "CA", "opted_out": False})
    ['ad-7', 'ad-8']
    >>> index.match('{"age": 27, "country": "CA"}', tags=["q4"])
    ['ad-7']
    """

    __slots__ = ("__weakref__", "_kernel", "_seen_rankings")

    def __init__(
        self,
        schema: Mapping[str, Any] | None = None,
        algorithm: str = "auto",
        options: Mapping[str, bool | int | float | str] | None = None,
        *,
        optimize: Literal["auto", "manual"] = "auto",
    ) -> None:
        """Make an empty index."""
        declared = None if schema is None else json.dumps(_plain(schema))
        self._kernel = _kernel.Index(algorithm, declared, list((options or {}).items()), optimize)
        self._seen_rankings: set[tuple[Any, ...]] = set()

    @classmethod
    def _around(cls, kernel: _kernel.Index) -> "Index":
        index = cls.__new__(cls)
        index._kernel = kernel
        index._seen_rankings = set()
        return index

    # --- changes -----------------------------------------------------------------------------------

    def add(
        self,
        id: Id,
        expression: ExpressionLike,
        *,
        priority: float = 0.0,
        weights: Mapping[str, float] | None = None,
        tags: Iterable[str] | None = None,
        payload: bytes | None = None,
        expires: Moment | None = None,
    ) -> None:
        """Add a subscription under a new id.

        The expression is text, a `tamis.Expression`, a boolean column or the JSON form as a dict. `weights`
        are per attribute, for predicates without a boost of their own. From `expires` on (a datetime, or UTC
        microseconds) the subscription matches nothing.

        >>> index = Index()
        >>> index.add(1, "age > 21", priority=2.0, payload=b"campaign 1")
        >>> index.add(1, "age > 30")
        Traceback (most recent call last):
        ...
        tamis.errors.DuplicateIdError: subscription 1 is already in the index; ...
        """
        self._kernel.add(id, expression, (priority, weights, tags, payload, expires))

    def replace(
        self,
        id: Id,
        expression: ExpressionLike,
        *,
        priority: float = 0.0,
        weights: Mapping[str, float] | None = None,
        tags: Iterable[str] | None = None,
        payload: bytes | None = None,
        expires: Moment | None = None,
    ) -> None:
        """Put another subscription in the place of the one with this id; nothing of the old one is kept.

        >>> index = Index()
        >>> index.add("a", "x > 1", priority=5.0)
        >>> index.replace("a", "x > 2")
        >>> index["a"].priority
        0.0
        """
        self._kernel.replace(id, expression, (priority, weights, tags, payload, expires))

    def upsert(
        self,
        id: Id,
        expression: ExpressionLike,
        *,
        priority: float = 0.0,
        weights: Mapping[str, float] | None = None,
        tags: Iterable[str] | None = None,
        payload: bytes | None = None,
        expires: Moment | None = None,
    ) -> None:
        """Add a subscription, or replace the one with this id.

        >>> index = Index()
        >>> for bound in (1, 2):
        ...     index.upsert("a", f"x > {bound}")
        >>> len(index), index.count({"x": 2})
        (1, 0)
        """
        self._kernel.upsert(id, expression, (priority, weights, tags, payload, expires))

    def remove(self, id: Id) -> None:
        """Remove a subscription.

        >>> index = Index()
        >>> index.add("a", "x > 1")
        >>> index.remove("a")
        >>> len(index)
        0
        """
        self._kernel.remove(id)

    def set_priority(self, id: Id, priority: float) -> None:
        """Change the priority of a subscription, at once; its expression is not touched.

        >>> index = Index()
        >>> index.add("a", "x > 1", priority=1.0)
        >>> index.set_priority("a", 2.5)
        >>> index.top_k({"x": 2})
        [Match(id='a', score=2.5, rank=1)]
        """
        self._kernel.set_priority(id, priority)

    def set_weights(self, id: Id, weights: Mapping[str, float]) -> None:
        """Change the weights per attribute of a subscription, at once; its expression is not touched.

        >>> index = Index()
        >>> index.add("a", "x > 1 AND y > 1", weights={"x": 2.0})
        >>> index.set_weights("a", {"y": 0.5})
        >>> index.top_k({"x": 2, "y": 2}, score="relevance")
        [Match(id='a', score=1.5, rank=1)]
        """
        self._kernel.set_weights(id, weights)

    def add_many(
        self,
        ids: Iterable[Id],
        expressions: Iterable[ExpressionLike],
        *,
        priorities: Iterable[float | None] | None = None,
        weights: Iterable[Mapping[str, float] | None] | None = None,
        tags: Iterable[Iterable[str] | None] | None = None,
        payloads: Iterable[bytes | None] | None = None,
        expires: Iterable[Moment | None] | None = None,
        on_error: Literal["raise", "collect"] = "raise",
    ) -> list[RefusedRow]:
        """Add many subscriptions; all become visible together.

        Each argument is a list, or an Arrow, Polars, pandas or NumPy column, which is read where it lies.
        With `on_error="raise"` the first bad row raises and nothing is added; with "collect" the good rows
        are added and the bad ones returned.

        >>> index = Index()
        >>> index.add_many(range(3), [f"x > {bound}" for bound in range(3)], priorities=[1, 2, 3])
        []
        >>> index.match({"x": 2})
        [0, 1]
        """
        rows = id_column(ids)
        given = {
            "priority": priorities,
            "weights": weights,
            "tags": tags,
            "payload": payloads,
            "expires": expires,
        }
        details = details_batch(len(rows), given)
        failed = self._kernel.add_many(rows, text_column(expressions), details, on_error)
        return [RefusedRow(*row) for row in failed]

    def add_table(self, table: Any, *, on_error: Literal["raise", "collect"] = "raise") -> list[RefusedRow]:
        """Add the rows of a table: pyarrow, pandas, Polars, DuckDB, or anything that offers Arrow data.

        The columns `id` and `expression` are needed; `priority`, `weights`, `tags`, `payload` and `expires`
        may be there too. Others are ignored.

        >>> import pyarrow as pa
        >>> rules = {"id": ["a", "b"], "expression": ["x > 1", "x > 2"], "priority": [1.0, 2.0]}
        >>> index = Index()
        >>> index.add_table(pa.table(rules))
        []
        >>> index.top_k({"x": 3}, k=1)
        [Match(id='b', score=2.0, rank=1)]
        """
        columns = columns_of(table)
        return self.add_many(**columns, on_error=on_error)

    # --- looking up --------------------------------------------------------------------------------

    def __len__(self) -> int:
        """How many subscriptions there are."""
        return len(self._kernel)

    def __contains__(self, id: object) -> bool:
        """Whether there is a subscription with this id."""
        return self._kernel.contains(id)

    def __getitem__(self, id: Id) -> Subscription:
        """The subscription with this id; `tamis.UnknownIdError`, a `KeyError`, when there is none."""
        return Subscription(*self._kernel.get(id))

    def get(self, id: Id, default: T | None = None) -> Subscription | T | None:
        """The subscription with this id, or `default` when there is none.

        >>> Index().get("a") is None
        True
        """
        try:
            return self[id]
        except UnknownIdError:
            return default

    def __iter__(self) -> Iterator[Id]:
        """The ids, sorted, of the version that is current now; changes during the walk do not show."""
        return self._kernel.ids()

    def items(self) -> Iterator[tuple[Id, Subscription]]:
        """Ids and subscriptions, sorted by id; those removed during the walk are left out.

        >>> index = Index()
        >>> index.add("a", "x > 1")
        >>> [(id, str(subscription.expression)) for id, subscription in index.items()]
        [('a', 'x > 1')]
        """
        for id in self:
            if (subscription := self.get(id)) is not None:
                yield id, subscription

    def __repr__(self) -> str:
        """What it is and how many subscriptions it holds."""
        named = "" if self.algorithm == "auto" else f" algorithm={self.algorithm!r}"
        return f"<tamis.Index{named} with {len(self):,} subscriptions>"

    @property
    def generation(self) -> int:
        """The number of the current version: every published change raises it.

        >>> index = Index()
        >>> before = index.generation
        >>> index.add("a", "x > 1")
        >>> index.generation > before
        True
        """
        return self._kernel.generation

    @property
    def algorithm(self) -> str:
        """The algorithm that the index was made with.

        >>> Index(algorithm="scan").algorithm
        'scan'
        """
        return self._kernel.algorithm

    @property
    def options(self) -> dict[str, bool | int | float | str]:
        """The options of the algorithm that the index was made with.

        >>> Index(algorithm="a-tree", options={"zero_suppression": False}).options
        {'zero_suppression': False}
        """
        return dict(self._kernel.options)

    @property
    def schema(self) -> dict[str, str] | None:
        """The declared types by attribute, or None.

        >>> Index(schema={"age": "int"}).schema
        {'age': 'int'}
        """
        declared = self._kernel.schema
        return None if declared is None else json.loads(declared)

    @property
    def attributes(self) -> dict[str, tuple[str, ...]]:
        """The attributes that subscriptions ask for, with the kinds of values that predicates expect there.

        No kinds mean that any value will do, as for `IS NULL`.

        >>> index = Index()
        >>> index.add("a", "age > 21 AND (name LIKE 'A%' OR name IS NULL)")
        >>> index.attributes
        {'age': ('number',), 'name': ('string',)}
        """
        return {name: tuple(kinds) for name, kinds in self._kernel.attributes()}

    def payloads(self, ids: Iterable[Id]) -> list[bytes | None]:
        """The payloads of many subscriptions, in the order of the ids.

        >>> index = Index()
        >>> index.add("a", "x > 1", payload=b"campaign 1")
        >>> index.add("b", "x > 2")
        >>> index.payloads(["b", "a"])
        [None, b'campaign 1']
        """
        return self._kernel.payloads(list(ids))

    # --- one event ---------------------------------------------------------------------------------

    def match(
        self, event: EventLike, *, tags: Iterable[str] | None = None, now: Moment | None = None
    ) -> list[Any]:
        """The ids of all subscriptions that the event satisfies, sorted.

        An event is a dict, a `tamis.Event`, or JSON text or bytes. With `tags`, only subscriptions that have
        any of them. `now` decides what has expired; it is the current time unless given.

        >>> index = Index()
        >>> index.add(2, "age > 21", tags=["q4"])
        >>> index.add(1, "age > 25")
        >>> index.match({"age": 27}), index.match({"age": 27}, tags=["q4"]), index.match({})
        ([1, 2], [2], [])
        """
        return self._kernel.match(event, tags, now)

    def count(self, event: EventLike, *, tags: Iterable[str] | None = None, now: Moment | None = None) -> int:
        """How many subscriptions the event satisfies; faster than `match`.

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
            table = pa.table(_kernel.contributions(self._kernel, event, dimensions, tags, now))
            best = best_of(Candidates.of(table), k, score, min_score)
            return [Match(id, value, rank) for rank, (id, value) in enumerate(best, 1)]
        ranking = _ranking(k, score, min_score, dimensions)
        return [Match(*found) for found in self._kernel.top_k(event, ranking, tags, now)]

    def _known_dimensions(self, score: Score, dimensions: Iterable[str] | None) -> list[str] | None:
        """The dimensions as a list. Warns, the first time, of names that no subscription has."""
        if isinstance(dimensions, str):
            raise TypeError(f"dimensions is a list of attributes; write dimensions=[{dimensions!r}]")
        listed = None if dimensions is None else list(dimensions)
        if listed is None and (callable(score) or score in MODES):
            return None
        ranking = (score, *(listed or ()))
        if ranking not in self._seen_rankings and len(self):
            known = self.attributes
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

        >>> import pyarrow as pa
        >>> index = Index()
        >>> index.add(1, "age > 21")
        >>> index.add(2, "age > 30")
        >>> index.match_batch(pa.table({"age": [25, 18, 40]})).to_pydict()
        {'event': [0, 2, 2], 'subscription': [1, 1, 2]}
        """
        options = _options(tags, now, intervals, threads)
        if not isinstance(events, pa.RecordBatchReader):
            return pa.table(_kernel.match_batch(self._kernel, events, 0, options))
        schema = pa.table(_kernel.match_batch(self._kernel, [], 0, options)).schema
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

        >>> index = Index()
        >>> index.add("a", "age > 21", priority=1.0)
        >>> index.add("b", "age > 30", priority=2.0)
        >>> index.top_k_batch([{"age": 25}, {"age": 40}], k=1).select(["event", "score"]).to_pydict()
        {'event': [0, 1], 'score': [1.0, 2.0]}
        """
        options = _options(tags, now, intervals, threads, weights)
        dimensions = self._known_dimensions(score, dimensions)
        if callable(score):
            narrowed: dict[str, Any] = {"min_score": min_score, "dimensions": dimensions, "tags": tags}
            found = (
                self.top_k(event, k, score, now=now, **narrowed)
                for event in one_by_one(events, has_columns=bool(intervals) or weights is not None)
            )
            no_ranking, nothing = _ranking(0, "priority"), options | {"weights": None}
            empty = pa.table(_kernel.top_k_batch(self._kernel, [], no_ranking, 0, nothing))
            return numbered(found, empty.schema)
        ranking = _ranking(k, score, min_score, dimensions)
        if not isinstance(events, pa.RecordBatchReader):
            return pa.table(_kernel.top_k_batch(self._kernel, events, ranking, 0, options))
        no_events = options | {"weights": None}
        schema = pa.table(_kernel.top_k_batch(self._kernel, [], ranking, 0, no_events)).schema
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

        >>> index = Index()
        >>> index.add("a", "age > 21")
        >>> index.count_batch(b'{"age": 25}\\n{"age": 18}\\n').to_pylist()
        [1, 0]
        """
        options = _options(tags, now, intervals, threads)
        parts = events if isinstance(events, pa.RecordBatchReader) else [events]
        counts = [pa.table(_kernel.count_batch(self._kernel, part, options)).column(0) for part in parts]
        return pa.chunked_array(counts, pa.int64()).combine_chunks()

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

        >>> index = Index()
        >>> index.add("a", "age > 21")
        >>> times = index.time_events([{"age": 25}, {"age": 18}])
        >>> len(times), bool((times >= 0).all())
        (2, True)
        """
        options = _options(None, None, intervals, 1)
        ranking = _ranking(k, score)
        timed = pa.table(_kernel.time_events(self._kernel, events, mode, ranking, repeats, options))
        times: np.ndarray[Any, np.dtype[np.int64]] = timed.column(0).to_numpy()
        return times

    # --- reasons -----------------------------------------------------------------------------------

    def explain(self, id: Id, event: EventLike) -> Explanation:
        """Why a subscription matches an event or does not: its expression as written, with truths and values.

        >>> index = Index()
        >>> index.add("a", "age >= 22 AND country = 'CA'")
        >>> print(index.explain("a", {"age": 27}))
        ? AND
          ✓ age >= 22 (age is 27)
          ? country = 'CA' (country is absent)
        """
        return Explanation.from_json(_kernel.explain(self._kernel, id, event))

    def why_not(self, id: Id, event: EventLike) -> WhyNot:
        """The fewest predicates that would have to change for a subscription to match an event.

        >>> index = Index()
        >>> index.add("a", "age >= 22 AND country = 'CA'")
        >>> print(index.why_not("a", {"age": 20, "country": "CA"}))
        age is 20; needs to be >= 22
        """
        return WhyNot.from_json(_kernel.why_not(self._kernel, id, event))

    def diagram(
        self,
        id: Id,
        format: Literal["mermaid", "dot"] = "mermaid",
        *,
        event: EventLike | None = None,
        neighbours: int = 0,
    ) -> str:
        """The expression of a subscription as a Mermaid or Graphviz diagram, coloured by truth for an event.

        With `neighbours`, its place in the index instead: the normal form, each part once, and at most so
        many other subscriptions that share a subexpression, pointing at what they share. Subscriptions share
        with those that were added together with them, or that a merge has brought together since.

        >>> index = Index()
        >>> index.add("a", "age >= 22 AND country = 'CA'")
        >>> index.diagram("a").splitlines()[0]
        'flowchart TD'
        >>> index.add_many(["b", "c"], ["(x = 1 AND y = 2) OR vip = 1", "(y = 2 AND x = 1) OR z = 3"])
        []
        >>> index.diagram("b", "dot", neighbours=5).count("subscription") > 1
        True
        """
        return _kernel.diagram(self._kernel, id, format, event, neighbours)

    # --- how it is doing ---------------------------------------------------------------------------

    def stats(self) -> dict[str, Any]:
        """What the index is made of, and what matching has cost so far.

        >>> index = Index()
        >>> index.add("a", "x > 1")
        >>> index.count({"x": 2})
        1
        >>> index.stats()["subscriptions"], index.stats()["observed"]["events"]
        (1, 1)
        """
        stats: dict[str, Any] = json.loads(self._kernel.stats())
        return stats

    def reset_stats(self) -> None:
        """Forget what matching has cost so far.

        >>> index = Index()
        >>> index.reset_stats()
        >>> index.stats()["observed"]["events"]
        0
        """
        self._kernel.reset_stats()

    def optimize(self, *, background: bool = False) -> None:
        """Lay the index out anew for the events seen so far. Matching goes on meanwhile.

        An index does so by itself unless it was made with `optimize="manual"`; `stats()` tells how often.

        >>> index = Index(optimize="manual")
        >>> index.optimize()
        >>> index.stats()["optimize"], index.stats()["automatic_optimizations"]
        ('manual', 0)
        """
        self._kernel.optimize(background)

    @property
    def is_optimizing(self) -> bool:
        """Whether a background thread is rewriting parts of the index.

        >>> Index().is_optimizing
        False
        """
        return self._kernel.is_optimizing

    # --- keeping -----------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a snapshot file with everything the index holds. The file is replaced at once or not at all.

        >>> import tempfile
        >>> index = Index()
        >>> index.add("a", "x > 1")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     index.save(f"{folder}/rules.tamis")
        ...     Index.open(f"{folder}/rules.tamis").match({"x": 2})
        ['a']
        """
        self._kernel.save(path)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "Index":
        """Open a snapshot file by mapping it into memory: processes that open the same file share one copy.

        The index can be changed; changes stay in memory until the next `save`. A file that is truncated,
        corrupted, foreign or from a later version raises `tamis.SnapshotError`, here or at the first use.

        >>> Index.open("no-such-file.tamis")
        Traceback (most recent call last):
        ...
        FileNotFoundError: ...
        """
        return cls._around(_kernel.Index.open(path))

    def verify(self) -> None:
        """Check every byte of the snapshot file that the index was opened from.

        >>> Index().verify()
        """
        self._kernel.verify()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a snapshot, or, for algorithms that have none, as subscriptions."""
        if self.algorithm == "auto":
            return _from_bytes, (type(self), self._kernel.to_bytes())
        made_with = (self.schema, self.algorithm, self.options)
        return _from_subscriptions, (type(self), made_with, [self[id] for id in self])

    def __copy__(self) -> "Index":
        """An index of its own with the same subscriptions."""
        rebuild, arguments = self.__reduce__()
        copy: Index = rebuild(*arguments)
        return copy

    def __deepcopy__(self, memo: object) -> "Index":
        """An index of its own with the same subscriptions."""
        return self.__copy__()


def _from_bytes(cls: type[Index], snapshot: bytes) -> Index:
    return cls._around(_kernel.Index.from_bytes(snapshot))


def _from_subscriptions(
    cls: type[Index], made_with: tuple[Any, ...], subscriptions: list[Subscription]
) -> Index:
    index = cls(*made_with)
    for held in subscriptions:
        index.add(
            held.id,
            held.expression,
            priority=held.priority,
            weights=held.weights,
            tags=held.tags,
            payload=held.payload,
            expires=held.expires,
        )
    return index


def _numbered(reader: Any, match: Any) -> Iterator[Any]:
    """The results for each batch, events numbered on from batch to batch."""
    first = 0
    for batch in reader:
        yield from pa.table(match(batch, first)).to_batches()
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


_TYPE_NAMES = {bool: "bool", int: "int", float: "float", str: "string", datetime: "timestamp"}


def _plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with Python's types by the names that the kernel knows."""
    return {
        name: _plain(declared) if isinstance(declared, Mapping) else _TYPE_NAMES.get(declared, declared)
        for name, declared in schema.items()
    }


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_kernel.before_fork, after_in_parent=_kernel.after_fork, after_in_child=_kernel.after_fork
    )
