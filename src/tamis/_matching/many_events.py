"""The same queries about many events at once: tables, lists of events, JSON lines in memory."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa

from tamis import _kernel
from tamis._kernel import Query
from tamis._matching import batch_details
from tamis._matching.answers import options_of, table_of
from tamis._matching.one_event import OneEvent, Score
from tamis.errors import ArgumentError, EventError
from tamis.rank import numbered, one_by_one
from tamis.subscription import Moment


class ManyEvents(OneEvent):
    """Answers about many events."""

    __slots__ = ()

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
        events, or JSON lines as text or bytes. For a `pyarrow.RecordBatchReader`, the result is one, too: it
        reads and matches batch by batch, each against the version that is current then, and numbers events
        consecutively across batches. String ids are dictionary-encoded. Columns named in `intervals` are
        structs of `low` and `high`. All cores are used unless `threads` says otherwise.

        With `lists`, the table has one row per event, with or without matches, and a list `subscriptions`.
        The threads that match JSON lines also parse them, and only the values that subscriptions use; the
        rest must be valid JSON, unless `validate` is False.

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

    def _batch(
        self, query: Query, events: Any, options: Any, *, key: str | None, payloads: bool, on_error: str
    ) -> Any:
        if key is None and not payloads and on_error == "raise":
            return self.ask_batch(query, events, **options)
        if on_error not in ("raise", "collect"):
            raise ArgumentError(f'on_error is "raise" or "collect", not {on_error!r}')
        if isinstance(events, pa.RecordBatchReader):
            raise ArgumentError("key, payloads and on_error are for tables and lists: ask batch by batch")
        refused: list[batch_details.RefusedEvent] = []
        listed = batch_details.as_list(events) if on_error == "collect" else None
        if listed is None:
            found = self.ask_batch(query, events, **options)
        else:
            rows, refused = batch_details.readable(listed, strict=self._kernel.strict)
            found = self.ask_batch(query, [listed[row] for row in rows], **options)
            found = batch_details.renumbered(found, rows)
        if payloads:
            found = batch_details.with_payloads(found, self)  # type: ignore[arg-type]
        if key is not None:
            found = batch_details.named(found, events, key)
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

        With `cells`, text columns are untyped, as in a CSV file: each predicate reads them as the kind of
        value that it expects, or as the schema declares them.

        They are those of `match_batch`, `top_k_batch` or `count_batch`; for "exists", a `pyarrow.Array` of
        booleans, and for "owners", a table of `event` and `owner`.

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
        options = options_of(intervals, threads, weights, lists=lists, validate=validate, cells=cells)
        self._warn_of_unknown_names(query)
        if query.ask in ("count", "exists"):
            parts = events if isinstance(events, pa.RecordBatchReader) else [events]
            answers = [_answer(self._ask_about(part, query, options)) for part in parts]
            chunks = [chunk for answer in answers for chunk in answer.column(0).chunks]
            kind = pa.int64() if query.ask == "count" else pa.bool_()
            return pa.chunked_array(chunks, kind).combine_chunks()
        if not isinstance(events, pa.RecordBatchReader):
            return _answer(self._ask_about(events, query, options))
        schema = self._answer_schema(query, lists=lists)
        return pa.RecordBatchReader.from_batches(
            schema,
            _numbered(
                events, lambda batch, first: _kernel.ask_batch(self._kernel, batch, query, first, options)
            ),
        )

    def _ask_about(self, events: Any, query: Query, options: dict[str, Any]) -> tuple[Any, int]:
        """Ask the kernel; a data frame that cannot be exported as Arrow data is an error of its events."""
        try:
            return _kernel.ask_batch(self._kernel, events, query, 0, options)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            said = "; ".join(str(part) for part in error.args)
            raise EventError(
                f"the table cannot be read: {said}\nhint: give each column one type, or match a list of "
                "records, such as frame.to_dict('records')"
            ) from error

    def _answer_schema(self, query: Query, *, lists: bool = False) -> pa.Schema:
        options = options_of((), None, lists=lists)
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
        """The number of subscriptions that each event satisfies: a `pyarrow.Array` of int64.

        >>> from tamis import Index
        >>> index = Index()
        >>> index.add("a", "age > 21")
        >>> index.count_batch(b'{"age": 25}\\n{"age": 18}\\n').to_pylist()
        [1, 0]
        """
        query = Query("count", tags=tags, tags_all=tags_all, tags_none=tags_none, now=now)
        return self.ask_batch(query, events, intervals=intervals, threads=threads)

    def count_by_subscription(
        self,
        events: Any,
        *,
        tags: Iterable[str] | None = None,
        tags_all: Iterable[str] | None = None,
        tags_none: Iterable[str] | None = None,
        now: Moment | None = None,
        intervals: Sequence[str] = (),
        threads: int | None = None,
    ) -> pa.Table:
        """The number of events that satisfy each subscription, for subscriptions with at least one.

        Returns a `pyarrow.Table` of `subscription` and `matches`, sorted by id. Matches are counted without
        listing them, so memory grows only with the number of subscriptions. A `RecordBatchReader` is read
        completely first.

        >>> from tamis import Index
        >>> index = Index()
        >>> index.add_many(["adult", "senior", "child"], ["age >= 18", "age >= 65", "age < 18"])
        []
        >>> index.count_by_subscription([{"age": 25}, {"age": 70}]).to_pylist()
        [{'subscription': 'adult', 'matches': 2}, {'subscription': 'senior', 'matches': 1}]
        """
        _refuse_one_event(events)
        query = Query("all", tags=tags, tags_all=tags_all, tags_none=tags_none, now=now)
        options = options_of(intervals, threads)
        self._warn_of_unknown_names(query)
        if isinstance(events, pa.RecordBatchReader):
            events = events.read_all()
        return table_of(_kernel.count_batch_by_subscription(self._kernel, events, query, options))


def ask_up_to(
    index: ManyEvents,
    query: Query,
    events: pa.RecordBatch,
    most: int,
    *,
    weights: Mapping[str, float] | str | None = None,
    intervals: Sequence[str] = (),
    threads: int | None = None,
) -> tuple[pa.Table, int]:
    """Like `ask_batch`, for the first events with at most `most` matches in total, at least one event.

    Also returns the number of these events. The query asks for all matches, or for the best.

    >>> from tamis import Index, Query
    >>> index = Index()
    >>> errors = index.add_many([1, 2], ["x > 1", "x > 2"])
    >>> table, answered = ask_up_to(index, Query("all"), pa.record_batch({"x": [0, 3, 3]}), most=2)
    >>> table.to_pydict(), answered
    ({'event': [1, 1], 'subscription': [1, 2]}, 2)
    """
    index._warn_of_unknown_names(query)
    options = options_of(intervals, threads, weights) | {"most": most}
    answer, answered = _kernel.ask_batch(index._kernel, events, query, 0, options)
    return table_of(answer), answered


def _refuse_one_event(events: Any) -> None:
    if isinstance(events, Mapping):
        raise TypeError(
            "a batch is a table, a list of events, or JSON lines, not a dict: write [event] for one event, "
            "and pyarrow.table(columns) for columns"
        )


def _answer(answer: tuple[Any, int]) -> pa.Table:
    """The kernel's answer for all events."""
    return table_of(answer[0])


def _numbered(reader: Any, match: Any) -> Iterator[Any]:
    """The results for each batch, with events numbered consecutively."""
    first = 0
    for batch in reader:
        yield from _answer(match(batch, first)).to_batches()
        first += batch.num_rows
