"""Which subscriptions an event satisfies, which of them matter most, and the same for many events at once."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from tamis import _batches, _kernel, _ndjson
from tamis._kernel import Event, Query
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
from tamis.xml import Xml

EventLike = Mapping[str, Any] | Event | str | bytes
Score = str | ScoreFunction

# Of more rankings it is asked each time whether their names are known.
_MOST_SEEN_RANKINGS = 256

_ALL, _COUNT, _EXISTS = Query("all"), Query("count"), Query("exists")
_TIMED = {"count": _COUNT, "match": _ALL, "top_k": Query("best")}


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
        self,
        event: EventLike,
        *,
        tags: Iterable[str] | None = None,
        tags_all: Iterable[str] | None = None,
        tags_none: Iterable[str] | None = None,
        now: Moment | None = None,
    ) -> list[Any]:
        """The ids of all subscriptions that the event satisfies, sorted.

        An event is a dict, a `tamis.Event`, or JSON text or bytes. Subscriptions are selected by their tags:
        at least one of `tags`, all of `tags_all`, none of `tags_none`. A tag that nobody has (`Index.tags`
        lists them) selects nothing. `now` decides what has expired; it is the current time unless given.

        >>> from tamis import Index
        >>> index = Index()
        >>> index.add(2, "age > 21", tags=["q4"])
        >>> index.add(1, "age > 25")
        >>> index.match({"age": 27}), index.match({"age": 27}, tags=["q4"]), index.match({})
        ([1, 2], [2], [])
        >>> index.match({"age": 27}, tags_none=["q4"])
        [1]
        """
        query = _ALL
        if tags is not None or tags_all is not None or tags_none is not None or now is not None:
            query = Query("all", tags=tags, tags_all=tags_all, tags_none=tags_none, now=now)
        found: list[Any] = self._kernel.ask(event, query)
        return found

    def match_xml(
        self,
        data: bytes | str,
        *,
        attribute: str = "doc",
        event: Mapping[str, Any] | None = None,
        strict: bool = False,
        tags: Iterable[str] | None = None,
        tags_all: Iterable[str] | None = None,
        tags_none: Iterable[str] | None = None,
        now: Moment | None = None,
    ) -> list[Any]:
        """The ids of all subscriptions that an event with this XML document satisfies, sorted.

        The document is the value of `attribute`, beside the attributes of `event`; the rest is as for
        `match`. With `strict`, a document that is not well-formed is a `tamis.XmlError`.

        >>> from tamis import Index
        >>> index = Index()
        >>> index.add("dear", "xpath(doc, '/news/item[price > 5]') AND source = 'reuters'")
        >>> index.match_xml(b"<news><item><price>7</price></item></news>", event={"source": "reuters"})
        ['dear']
        """
        whole = {**(event or {}), attribute: Xml(data, strict=strict)}
        return self.match(whole, tags=tags, tags_all=tags_all, tags_none=tags_none, now=now)

    def count(
        self,
        event: EventLike,
        *,
        tags: Iterable[str] | None = None,
        tags_all: Iterable[str] | None = None,
        tags_none: Iterable[str] | None = None,
        now: Moment | None = None,
    ) -> int:
        """How many subscriptions the event satisfies; faster than `match`.

        >>> from tamis import Index
        >>> index = Index()
        >>> index.add("a", "x > 1")
        >>> index.count({"x": 2}), index.count({"x": 1})
        (1, 0)
        """
        query = _COUNT
        if tags is not None or tags_all is not None or tags_none is not None or now is not None:
            query = Query("count", tags=tags, tags_all=tags_all, tags_none=tags_none, now=now)
        answer: int = self._kernel.ask(event, query)
        return answer

    def exists(
        self,
        event: EventLike,
        *,
        tags: Iterable[str] | None = None,
        tags_all: Iterable[str] | None = None,
        tags_none: Iterable[str] | None = None,
        now: Moment | None = None,
    ) -> bool:
        """Whether the event satisfies any subscription; stops at the first.

        >>> from tamis import Index
        >>> index = Index()
        >>> index.add("a", "x > 1")
        >>> index.exists({"x": 2}), index.exists({"x": 1})
        (True, False)
        """
        query = _EXISTS
        if tags is not None or tags_all is not None or tags_none is not None or now is not None:
            query = Query("exists", tags=tags, tags_all=tags_all, tags_none=tags_none, now=now)
        answer: bool = self._kernel.ask(event, query)
        return answer

    def owners(
        self,
        event: EventLike,
        *,
        tags: Iterable[str] | None = None,
        tags_all: Iterable[str] | None = None,
        tags_none: Iterable[str] | None = None,
        now: Moment | None = None,
    ) -> list[str]:
        """The owners of which at least one subscription matches, sorted.

        One match of each owner is enough: when all owners have one, the search stops. Subscriptions without
        an owner do not count.

        >>> from tamis import Index
        >>> index = Index()
        >>> index.add_many([1, 2, 3], ["x > 1", "x > 2", "x > 9"], owners=["ann", "ann", "bob"])
        []
        >>> index.owners({"x": 5}), index.owners({"x": 10})
        (['ann'], ['ann', 'bob'])
        """
        query = Query("owners", tags=tags, tags_all=tags_all, tags_none=tags_none, now=now)
        found: list[str] = self._kernel.ask(event, query)
        return found

    def top_k(
        self,
        event: EventLike,
        k: int = 10,
        score: Score = "priority",
        *,
        min_score: float | None = None,
        dimensions: Iterable[str] | None = None,
        tags: Iterable[str] | None = None,
        tags_all: Iterable[str] | None = None,
        tags_none: Iterable[str] | None = None,
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
        query = Query(
            k=k,
            score="relevance" if callable(score) else score,
            min_score=min_score,
            dimensions=dimensions,
            tags=tags,
            tags_all=tags_all,
            tags_none=tags_none,
            now=now,
        )
        self._warn_of_unknown_names(query)
        if callable(score):
            return self._best_by(score, query, event)
        return Matches(Match(*found) for found in self._kernel.ask(event, query))

    def ask(self, query: Query, event: EventLike) -> Any:
        """The answer to a `tamis.Query`: ids, a number, a bool, owners, or a list of `tamis.Match`.

        A query that is asked often is made once; `match`, `count`, `exists` and `top_k` make one each time.

        >>> from tamis import Index, Query
        >>> index = Index()
        >>> index.add("a", "x > 1", priority=1.0)
        >>> [index.ask(Query(asked), {"x": 2}) for asked in ("all", "count", "exists", "best")]
        [['a'], 1, True, [Match(id='a', score=1.0, rank=1)]]
        """
        answer = self._kernel.ask(event, query)
        if query.ask != "best":
            return answer
        self._warn_of_unknown_names(query)
        return Matches(Match(*found) for found in answer)

    def _best_by(self, score: ScoreFunction, query: Query, event: EventLike) -> list[Match]:
        """The best matches by a Python function."""
        table = _table(_kernel.contributions(self._kernel, event, query))
        best = best_of(Candidates.of(table), query.k or 0, score, query.min_score)
        return Matches(Match(id, value, rank) for rank, (id, value) in enumerate(best, 1))

    def _warn_of_unknown_names(self, query: Query) -> None:
        """Warn, the first time, of names in a ranking that no subscription has."""
        score, dimensions = query.score, query.dimensions
        if score is None or (dimensions is None and score in MODES):
            return
        ranking = (score, dimensions)
        if ranking not in self._seen_rankings and len(self._kernel):
            known = [name for name, _ in self._kernel.attributes()]
            for name in unknown_attributes(score, dimensions, known):
                warnings.warn(explain_unknown(name, known), UnknownAttributeWarning, stacklevel=3)
            if len(self._seen_rankings) < _MOST_SEEN_RANKINGS:
                self._seen_rankings.add(ranking)

    # --- many events -------------------------------------------------------------------------------

    def match_batch(
        self,
        events: Any,
        *,
        tags: Iterable[str] | None = None,
        tags_all: Iterable[str] | None = None,
        tags_none: Iterable[str] | None = None,
        now: Moment | None = None,
        intervals: Sequence[str] = (),
        threads: int | None = None,
        lists: bool = False,
        validate: bool = True,
        key: str | None = None,
        payloads: bool = False,
        on_error: Literal["raise", "collect"] = "raise",
    ) -> Any:
        """All matches of many events: a `pyarrow.Table` of `event` (row number) and `subscription` (id).

        Events are a table (pyarrow, pandas, Polars, DuckDB, anything that offers Arrow data), a list of
        events, or JSON lines as text or bytes. Given a `pyarrow.RecordBatchReader`, the result is one too: it
        reads and matches batch by batch, each against the version that is current then, and numbers go on
        from batch to batch. String ids are dictionary-encoded. Columns named in `intervals` are structs of
        `low` and `high`. All cores are used unless `threads` says otherwise.

        With `lists`, the table has a row for each event, with or without matches, and a list `subscriptions`.
        JSON lines are read by the threads that match them, and only where subscriptions ask for a value; the
        rest is checked to be JSON, unless `validate` is False.

        With `key`, events are named by this attribute of theirs instead of by row numbers; with `payloads`,
        there is a column `payload`. With `on_error="collect"`, events of a list or of JSON lines that
        cannot be read are left out, and the result is the table and a list of `RefusedEvent`.

        >>> from tamis import Index
        >>> import pyarrow as pa
        >>> index = Index()
        >>> index.add(1, "age > 21", payload=b"adults")
        >>> index.add(2, "age > 30")
        >>> index.match_batch(pa.table({"age": [25, 18, 40]})).to_pydict()
        {'event': [0, 2, 2], 'subscription': [1, 1, 2]}
        >>> index.match_batch(b'{"age": 25}\\n{"age": 18}\\n{"age": 40}\\n', lists=True).to_pydict()
        {'event': [0, 1, 2], 'subscriptions': [[1], [], [1, 2]]}
        >>> index.match_batch([{"id": "ann", "age": 25}], key="id", payloads=True).to_pylist()
        [{'event': 'ann', 'subscription': 1, 'payload': b'adults'}]
        """
        query = Query("all", tags=tags, tags_all=tags_all, tags_none=tags_none, now=now)
        if lists and (key is not None or payloads or on_error != "raise"):
            raise ArgumentError("lists goes with neither key, payloads nor on_error: ask for rows of pairs")
        options = {"intervals": intervals, "threads": threads, "lists": lists, "validate": validate}
        return self._batch(query, events, options, key=key, payloads=payloads, on_error=on_error)

    def match_ndjson(
        self,
        source: _ndjson.Source,
        *,
        query: Query | None = None,
        tags: Iterable[str] | None = None,
        tags_all: Iterable[str] | None = None,
        tags_none: Iterable[str] | None = None,
        now: Moment | None = None,
        threads: int | None = None,
        validate: bool = True,
        key: str | None = None,
        payloads: bool = False,
        on_error: Literal["raise", "collect"] = "raise",
        chunk_bytes: int = _ndjson.CHUNK_BYTES,
    ) -> Any:
        """All matches of JSON lines: a `pyarrow.Table` of `event` and `subscription`, as from `match_batch`.

        The lines are bytes, a memoryview, the path of a file, or a file that is open for reading bytes. They
        are read by the threads that match them, and only where subscriptions ask for a value; the rest is
        checked to be JSON, unless `validate` is False. Events are numbered by their lines that are not blank,
        from 0. A byte-order mark, carriage returns and a last line without an end are fine.

        A file is read in pieces of about `chunk_bytes`, each matched against the version of the index that is
        current then; only the matches of all pieces are held together. `stream_ndjson` gives them piece by
        piece. Another `query` than for all matches gives what `ask_batch` does: counts, booleans, the best
        matches with `score` and `rank`. Tags and `now` are given with the query or beside it, not both.

        A line that cannot be read is a `tamis.EventError` that names line and column. With
        `on_error="collect"` such lines are left out, and the result is a pair: the table and a list of
        `RefusedLine`. `key` and `payloads` are those of `match_batch`.

        >>> from tamis import Index, Query
        >>> index = Index()
        >>> index.add("adult", "age >= 18")
        >>> lines = b'{"age": 25, "name": "ann"}\\n\\n{"age": 7, "name": "bob"}\\n'
        >>> index.match_ndjson(lines).to_pydict()
        {'event': [0], 'subscription': ['adult']}
        >>> index.match_ndjson(lines, key="name").to_pydict()
        {'event': ['ann'], 'subscription': ['adult']}
        >>> index.match_ndjson(lines, query=Query("count")).to_pylist()
        [1, 0]
        >>> table, refused = index.match_ndjson(lines + b'{"age": }', on_error="collect")
        >>> refused[0].line, refused[0].row, str(refused[0].error)
        (4, 2, "attribute `age`: expected a value, found '}' (line 4, column 9, byte 8)")
        """
        asked = _ndjson.Asked(
            index=self,
            query=_one_query(query, tags=tags, tags_all=tags_all, tags_none=tags_none, now=now),
            options=_options((), threads, validate=validate),
            key=key,
            payloads=payloads,
            on_error=on_error,
            chunk_bytes=chunk_bytes,
        )
        return asked.together(source)

    def stream_ndjson(
        self,
        source: _ndjson.Source,
        *,
        query: Query | None = None,
        tags: Iterable[str] | None = None,
        tags_all: Iterable[str] | None = None,
        tags_none: Iterable[str] | None = None,
        now: Moment | None = None,
        threads: int | None = None,
        validate: bool = True,
        key: str | None = None,
        payloads: bool = False,
        on_error: Literal["raise", "collect"] = "raise",
        chunk_bytes: int = _ndjson.CHUNK_BYTES,
    ) -> Iterator[Any]:
        """What `match_ndjson` gives, piece by piece, so that any file takes little memory.

        Each piece is a table of its own, or an array; with `on_error="collect"`, a pair. Numbers of events go
        on from piece to piece.

        >>> from tamis import Index
        >>> index = Index()
        >>> index.add("adult", "age >= 18")
        >>> lines = b'{"age": 25}\\n{"age": 7}\\n{"age": 40}\\n'
        >>> [piece.to_pydict()["event"] for piece in index.stream_ndjson(lines, chunk_bytes=16)]
        [[0], [], [2]]
        """
        asked = _ndjson.Asked(
            index=self,
            query=_one_query(query, tags=tags, tags_all=tags_all, tags_none=tags_none, now=now),
            options=_options((), threads, validate=validate),
            key=key,
            payloads=payloads,
            on_error=on_error,
            chunk_bytes=chunk_bytes,
        )
        return asked.pieces(source)

    def _batch(
        self, query: Query, events: Any, options: Any, *, key: str | None, payloads: bool, on_error: str
    ) -> Any:
        if key is None and not payloads and on_error == "raise":
            return self.ask_batch(query, events, **options)
        if on_error not in ("raise", "collect"):
            raise ArgumentError(f'on_error is "raise" or "collect", not {on_error!r}')
        if isinstance(events, pa.RecordBatchReader):
            raise ArgumentError("key, payloads and on_error are for tables and lists: ask batch by batch")
        refused: list[_batches.RefusedEvent] = []
        listed = _batches.as_list(events) if on_error == "collect" else None
        if listed is None:
            found = self.ask_batch(query, events, **options)
        else:
            rows, refused = _batches.readable(listed, strict=self._kernel.strict)
            found = self.ask_batch(query, [listed[row] for row in rows], **options)
            found = _batches.renumbered(found, rows)
        if payloads:
            found = _batches.with_payloads(found, self)  # type: ignore[arg-type]
        if key is not None:
            found = _batches.named(found, events, key)
        return (found, refused) if on_error == "collect" else found

    def ask_batch(
        self,
        query: Query,
        events: Any,
        *,
        weights: Mapping[str, float] | str | None = None,
        intervals: Sequence[str] = (),
        threads: int | None = None,
        lists: bool = False,
        validate: bool = True,
        cells: bool = False,
    ) -> Any:
        """The answers to a `tamis.Query` about many events.

        With `cells`, columns of text are those of a CSV file, which says nothing of types: each predicate
        reads them as the kind of value that it is about, or as the schema declares them.

        They are what `match_batch`, `top_k_batch` or `count_batch` gives; for "exists" a `pyarrow.Array` of
        booleans, and for "owners" a table of `event` and `owner`.

        >>> from tamis import Index, Query
        >>> index = Index()
        >>> index.add("a", "age > 21", tags=["q4"])
        >>> index.ask_batch(Query("exists", tags=["q4"]), [{"age": 25}, {"age": 18}]).to_pylist()
        [True, False]
        >>> index.add("zip", "zip = '02134' AND zip > 5")
        >>> index.ask_batch(Query("count"), pa.table({"zip": ["02134", "2134"]}), cells=True).to_pylist()
        [1, 0]
        """
        _refuse_one_event(events)
        options = _options(intervals, threads, weights, lists=lists, validate=validate, cells=cells)
        self._warn_of_unknown_names(query)
        if query.ask in ("count", "exists"):
            parts = events if isinstance(events, pa.RecordBatchReader) else [events]
            answers = [_answer(_kernel.ask_batch(self._kernel, part, query, 0, options)) for part in parts]
            chunks = [chunk for answer in answers for chunk in answer.column(0).chunks]
            kind = pa.int64() if query.ask == "count" else pa.bool_()
            return pa.chunked_array(chunks, kind).combine_chunks()
        if not isinstance(events, pa.RecordBatchReader):
            return _answer(_kernel.ask_batch(self._kernel, events, query, 0, options))
        schema = self._answer_schema(query, lists=lists)
        return pa.RecordBatchReader.from_batches(
            schema,
            _numbered(
                events, lambda batch, first: _kernel.ask_batch(self._kernel, batch, query, first, options)
            ),
        )

    def _answer_schema(self, query: Query, *, lists: bool = False) -> pa.Schema:
        options = _options((), None, lists=lists)
        return _answer(_kernel.ask_batch(self._kernel, [], query, 0, options)).schema

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
        tags_all: Iterable[str] | None = None,
        tags_none: Iterable[str] | None = None,
        now: Moment | None = None,
        intervals: Sequence[str] = (),
        threads: int | None = None,
        key: str | None = None,
        payloads: bool = False,
        on_error: Literal["raise", "collect"] = "raise",
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
        query = Query(
            k=k,
            score="relevance" if callable(score) else score,
            min_score=min_score,
            dimensions=dimensions,
            tags=tags,
            tags_all=tags_all,
            tags_none=tags_none,
            now=now,
        )
        if not callable(score):
            options = {"weights": weights, "intervals": intervals, "threads": threads}
            return self._batch(query, events, options, key=key, payloads=payloads, on_error=on_error)
        if key is not None or payloads or on_error != "raise":
            raise ArgumentError("key, payloads and on_error do not go with a Python function as score")
        _refuse_one_event(events)
        self._warn_of_unknown_names(query)
        found = (
            self._best_by(score, query, event)
            for event in one_by_one(events, has_columns=bool(intervals) or weights is not None)
        )
        return numbered(found, self._answer_schema(query))

    def count_batch(
        self,
        events: Any,
        *,
        tags: Iterable[str] | None = None,
        tags_all: Iterable[str] | None = None,
        tags_none: Iterable[str] | None = None,
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
        query = Query("count", tags=tags, tags_all=tags_all, tags_none=tags_none, now=now)
        return self.ask_batch(query, events, intervals=intervals, threads=threads)

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
        if mode not in _TIMED:
            raise ArgumentError(f'the mode is "count", "match" or "top_k", not {mode!r}')
        query = Query(k=k, score=score) if mode == "top_k" else _TIMED[mode]
        timed = _table(_kernel.time_events(self._kernel, events, query, repeats, _options(intervals, 1)))
        times: np.ndarray[Any, np.dtype[np.int64]] = timed.column(0).to_numpy()
        return times


def ask_up_to(
    index: Matching,
    query: Query,
    events: pa.RecordBatch,
    most: int,
    *,
    weights: Mapping[str, float] | str | None = None,
    intervals: Sequence[str] = (),
    threads: int | None = None,
) -> tuple[pa.Table, int]:
    """As `ask_batch`, for the first events: all that have no more than `most` matches, and one at least.

    Also says how many events those are. The query asks for all matches, or for the best.

    >>> from tamis import Index, Query
    >>> index = Index()
    >>> errors = index.add_many([1, 2], ["x > 1", "x > 2"])
    >>> table, answered = ask_up_to(index, Query("all"), pa.record_batch({"x": [0, 3, 3]}), most=2)
    >>> table.to_pydict(), answered
    ({'event': [1, 1], 'subscription': [1, 2]}, 2)
    """
    index._warn_of_unknown_names(query)
    options = _options(intervals, threads, weights) | {"most": most}
    answer, answered = _kernel.ask_batch(index._kernel, events, query, 0, options)
    return _table(answer), answered


def _one_query(query: Query | None, **beside: Any) -> Query:
    """The query that was given, or one for all matches with what was given beside it."""
    if query is None:
        return Query("all", **beside)
    if given := [name for name, value in beside.items() if value is not None]:
        raise ArgumentError(f"give {given[0]} with the query, Query(..., {given[0]}=...), or without one")
    return query


def _refuse_one_event(events: Any) -> None:
    if isinstance(events, Mapping):
        raise TypeError(
            "a batch is a table, a list of events, or JSON lines, not a dict: write [event] for one event, "
            "and pyarrow.table(columns) for columns"
        )


def _table(answer: Any) -> pa.Table:
    """What the kernel answered. `pyarrow.table` would import pandas first, to ask whether it is its own."""
    return pa.RecordBatchReader.from_stream(answer).read_all()


def _answer(answer: tuple[Any, int]) -> pa.Table:
    """What the kernel answered for all events."""
    return _table(answer[0])


def _numbered(reader: Any, match: Any) -> Iterator[Any]:
    """The results for each batch, events numbered on from batch to batch."""
    first = 0
    for batch in reader:
        yield from _answer(match(batch, first)).to_batches()
        first += batch.num_rows


def _options(
    intervals: Sequence[str],
    threads: int | None,
    weights: Mapping[str, float] | str | None = None,
    *,
    lists: bool = False,
    validate: bool = True,
    cells: bool = False,
) -> dict[str, Any]:
    if isinstance(intervals, str):
        raise TypeError(f"intervals is a list of columns; write intervals=[{intervals!r}]")
    return {
        "intervals": list(intervals),
        "threads": threads,
        "weights": dict(weights) if isinstance(weights, Mapping) else weights,
        "most": None,
        "lists": lists,
        "validate": validate,
        "lines_before": 0,
        "cells": cells,
    }
