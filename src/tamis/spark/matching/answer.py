"""What is asked of an index for a table of events, and the answer for one batch of them.

This is the part of the pipeline that runs inside tasks and knows nothing of Spark: Arrow batches in, Arrow
batches out. Columns of a batch that are keys are carried through; the others are the events' attributes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis._kernel import Query
from tamis.errors import ArgumentError
from tamis.index import Index
from tamis.rank import ScoreFunction

Mode = Literal["all", "top_k", "count", "exists", "unmatched", "by_subscription"]

KEY_PREFIX = "__tamis_key_"
"""How key columns are named on their way through a task, so that none is taken for an attribute."""

SPREAD_PREFIX = "__tamis_spread_"
"""How map columns are named whose keys are to become attributes."""

ENCODED_PREFIX = "__tamis_hex_"
"""How columns are named whose own name PySpark cannot hand to a task: those with a dot or a backquote."""

PAIRS_AT_ONCE = 1_000_000
"""Matches that are held in memory at once, unless a single event has more."""

ROWS_OUT = 65_536

FIRST_SLICE = 1_024
"""Events that are asked first; how many matches they have says how many may be asked at once."""


_ALL = Query("all")


@dataclass(frozen=True)
class Question:
    """What is asked for each event of a table: a query, and what the answer looks like.

    >>> Question("top_k", Query(k=3)).k
    3
    """

    mode: Mode
    query: Query = _ALL
    """Asks for "best" where the mode is "top_k"; otherwise the tags and the moment matter."""
    function: ScoreFunction | None = None
    """A score that is a Python function, and so is no part of the query."""
    payload: bool = False
    intervals: tuple[str, ...] = ()
    weights: Mapping[str, float] | str | None = None
    """The events' weights, as `Index.top_k_batch` takes them."""

    @property
    def k(self) -> int:
        """How many of the best are wanted."""
        return self.query.k or 0

    def at(self, now: datetime | int) -> "Question":
        """The same at a moment, unless it has one."""
        return self if self.query.now is not None else replace(self, query=self.query.at(now))

    def pairs(self, index: Index, events: pa.RecordBatch | pa.Table) -> pa.Table:
        """The matches in one index: columns `event` and `subscription`, for top-k also `score` and `rank`."""
        if self.function is not None:
            return index.top_k_batch(
                events, score=self.function, intervals=self.intervals, **_asked(self.query)
            )
        return index.ask_batch(self.query, events, weights=self.weights, intervals=self.intervals, threads=1)

    def counts(self, index: Index, events: pa.RecordBatch) -> "np.ndarray[Any, np.dtype[np.int64]]":
        """How many matches each event has in one index."""
        query = Query("count", **_selected(self.query))
        counted = index.ask_batch(query, events, intervals=self.intervals, threads=1)
        numbers: np.ndarray[Any, np.dtype[np.int64]] = counted.to_numpy()
        return numbers


def _selected(query: Query) -> dict[str, Any]:
    """Which subscriptions a query is about, as arguments."""
    tags = {"tags": query.tags, "tags_all": query.tags_all, "tags_none": query.tags_none}
    return {**tags, "now": query.now}


def _asked(query: Query) -> dict[str, Any]:
    """A query for the best as arguments of `Index.top_k_batch`, but for its score."""
    ranking = {"k": query.k or 0, "min_score": query.min_score, "dimensions": query.dimensions}
    return ranking | _selected(query)


def match_question(ranking: Mapping[str, Any], selection: Mapping[str, Any], **options: Any) -> Question:
    """Ask for all matches, or with a ranking for the best k. Both are arguments of a `tamis.Query`.

    >>> match_question({"score": "relevance"}, {})
    Traceback (most recent call last):
    tamis.errors.ArgumentError: score ranks the best k matches: pass k as well
    """
    given = {name: value for name, value in ranking.items() if value is not None}
    if options.get("weights") is not None:
        given["weights"] = options["weights"]
    if given and "k" not in given:
        verb = "ranks" if len(given) == 1 else "rank"
        raise ArgumentError(f"{', '.join(given)} {verb} the best k matches: pass k as well")
    given.pop("weights", None)
    score = given.get("score")
    function = score if callable(score) else None
    if function is not None:
        given["score"] = "relevance"
    query = Query(**given, **selection)
    return Question("top_k" if given else "all", query, function, **options)


class Answers:
    """Answers a question batch by batch, with memory bounded by `PAIRS_AT_ONCE` matches."""

    def __init__(
        self, question: Question, indexes: Sequence[Index], version: int, keys: Sequence[str]
    ) -> None:
        """Ask `question` of `indexes`, which are `version`; `keys` are the key columns' own names."""
        self.question = question
        self.indexes = indexes
        self.version = version
        self.keys = keys
        self.matches = 0
        self._slice = FIRST_SLICE

    def to_batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the answer."""
        if self.question.mode == "by_subscription":
            yield from self._by_subscription(batches)
            return
        for batch in batches:
            attributes, keys = split_keys(batch)
            if self.question.mode in ("count", "exists", "unmatched"):
                yield from self._per_event(attributes, keys)
                continue
            for table in self._pairs(attributes):
                yield from self._rows(table, keys)

    def _pairs(self, events: pa.RecordBatch) -> Iterator[pa.Table]:
        """The pairs of all indexes, a slice of the events at a time."""
        done = 0
        while done < events.num_rows:
            part = events.slice(done, self._slice)
            found = merged([self.question.pairs(index, part) for index in self.indexes], self.question)
            if found.num_rows > PAIRS_AT_ONCE:
                self._slice = max(1, self._slice * PAIRS_AT_ONCE // (2 * found.num_rows))
            elif found.num_rows < PAIRS_AT_ONCE // 4:
                self._slice = min(ROWS_OUT, self._slice * 2)
            yield found.set_column(0, "event", pc.add(found.column("event"), done))
            self.matches += found.num_rows
            done += part.num_rows

    def _rows(self, pairs: pa.Table, keys: list[pa.Array]) -> Iterator[pa.RecordBatch]:
        event = pairs.column("event")
        columns = {name: key.take(event) for name, key in zip(self.keys, map(_chunked, keys), strict=True)}
        columns["subscription"] = plain_ids(pairs.column("subscription"))
        if self.question.mode == "top_k":
            columns["score"] = pairs.column("score")
            columns["rank"] = pairs.column("rank").cast(pa.int32())
        columns["version"] = pa.repeat(pa.scalar(self.version, pa.int64()), pairs.num_rows)
        if self.question.payload:
            columns["payload"] = self._payloads(columns["subscription"])
        yield from pa.table(columns).combine_chunks().to_batches(max_chunksize=ROWS_OUT)

    def _payloads(self, ids: pa.ChunkedArray) -> pa.Array:
        encoded = pc.dictionary_encode(ids.combine_chunks())
        wanted = encoded.dictionary.to_pylist()
        payloads: list[bytes | None] = [None] * len(wanted)
        for index in self.indexes:
            here = [(at, id) for at, id in enumerate(wanted) if id in index]
            for (at, _), payload in zip(here, index.payloads([id for _, id in here]), strict=True):
                payloads[at] = payload
        return pa.array(payloads, pa.binary()).take(encoded.indices)

    def _per_event(self, events: pa.RecordBatch, keys: list[pa.Array]) -> Iterator[pa.RecordBatch]:
        counts = np.zeros(events.num_rows, np.int64)
        for index in self.indexes:
            counts += self.question.counts(index, events)
        self.matches += int(counts.sum())
        columns = dict(zip(self.keys, keys, strict=True))
        version = pa.repeat(pa.scalar(self.version, pa.int64()), events.num_rows)
        if self.question.mode == "count":
            columns |= {"matches": pa.array(counts), "version": version}
        elif self.question.mode == "exists":
            columns |= {"matched": pa.array(counts > 0), "version": version}
        else:
            columns |= {"version": version}
            yield from pa.table(columns).filter(pa.array(counts == 0)).to_batches()
            return
        yield from pa.table(columns).to_batches()

    def _by_subscription(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Sums per subscription; the pairs of a slice are counted and forgotten."""
        total: pa.Table | None = None
        for batch in batches:
            attributes, _ = split_keys(batch)
            for pairs in self._pairs(attributes):
                counted = pc.value_counts(pairs.column("subscription"))
                ids, counts = counted.field("values"), counted.field("counts")
                part = pa.table({"subscription": plain_ids(pa.chunked_array([ids])), "matches": counts})
                total = part if total is None else _summed(pa.concat_tables([total, part]))
        if total is not None and total.num_rows:
            version = pa.repeat(pa.scalar(self.version, pa.int64()), total.num_rows)
            summed = total.append_column("version", version).combine_chunks()
            yield from summed.to_batches(max_chunksize=ROWS_OUT)


def _summed(table: pa.Table) -> pa.Table:
    return (
        table.group_by("subscription")
        .aggregate([("matches", "sum")])
        .rename_columns(["subscription", "matches"])
    )


def split_keys(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, list[pa.Array]]:
    """The attributes of a batch of events, and its key columns."""
    names = batch.schema.names
    keys = [batch.column(at) for at, name in enumerate(names) if name.startswith(KEY_PREFIX)]
    kept = [at for at, name in enumerate(names) if not name.startswith(KEY_PREFIX)]
    if kept:
        return batch.select(kept), keys
    # Without a column, Arrow would forget how many events there are.
    absent = pa.record_batch({KEY_PREFIX: pa.nulls(batch.num_rows)})
    return absent, keys


def column_alias(name: str) -> str:
    """The name of an attribute's column on its way to a task.

    >>> column_alias("age"), column_alias("a.b")
    ('age', '__tamis_hex_612e62')
    """
    return f"{ENCODED_PREFIX}{name.encode().hex()}" if "." in name or "`" in name else name


def attribute_columns(batch: pa.RecordBatch, attributes: Iterable[str]) -> pa.RecordBatch:
    """The batch with columns named as their attributes, and wanted keys of spread maps as further columns.

    >>> maps = pa.array([[("a", 1)], [("b", 2)]], pa.map_(pa.string(), pa.int64()))
    >>> given = pa.record_batch({f"{SPREAD_PREFIX}m": maps, column_alias("x.y"): [1, 2]})
    >>> attribute_columns(given, ["a", "c"]).to_pydict()
    {'x.y': [1, 2], 'a': [1, None], 'c': [None, None]}
    """
    names = batch.schema.names
    if not any(name.startswith((SPREAD_PREFIX, ENCODED_PREFIX)) for name in names):
        return batch
    columns = {
        bytes.fromhex(name.removeprefix(ENCODED_PREFIX)).decode()
        if name.startswith(ENCODED_PREFIX)
        else name: batch.column(name)
        for name in names
        if not name.startswith(SPREAD_PREFIX)
    }
    for name in names:
        if name.startswith(SPREAD_PREFIX):
            entries = batch.column(name)
            for key in attributes:
                if key not in columns and key.split(".", 1)[0] not in columns:
                    columns[key] = pc.map_lookup(entries, pa.scalar(key, entries.type.key_type), "first")
    return pa.record_batch(columns)


def merged(found: list[pa.Table], question: Question) -> pa.Table:
    """The answers of several indexes as one; for top-k the best k of each event, ties to the smaller id."""
    if len(found) == 1:
        return found[0]
    plain = [table.set_column(1, "subscription", plain_ids(table.column("subscription"))) for table in found]
    filled = [table for table in plain if table.num_rows] or plain[:1]
    joined = pa.concat_tables(filled)
    return joined if question.mode != "top_k" else best(joined, ["event"], question.k)


def best(scored: pa.Table, event: list[str], k: int) -> pa.Table:
    """The k rows of each event with the highest score, ranked from 1; ties go to the smaller id.

    >>> found = {"event": [0, 0, 1], "subscription": ["b", "a", "c"]}
    >>> scores = {"score": [1.0, 1.0, 2.0], "rank": [1, 1, 1]}
    >>> best(pa.table(found | scores), ["event"], 1).to_pydict()["subscription"]
    ['a', 'c']
    """
    order = [(name, "ascending") for name in event] + [("score", "descending"), ("subscription", "ascending")]
    ordered = scored.take(pc.sort_indices(scored, sort_keys=order)).combine_chunks()
    if not ordered.num_rows:
        return ordered
    starts = np.zeros(ordered.num_rows, bool)
    starts[0] = True
    for name in event:
        values = ordered.column(name).to_numpy()
        starts[1:] |= values[1:] != values[:-1]
    first = np.maximum.accumulate(np.where(starts, np.arange(len(starts)), 0))
    rank = np.arange(len(starts)) - first + 1
    at = ordered.schema.get_field_index("rank")
    ranked = ordered.set_column(at, "rank", pa.array(rank, ordered.schema.field(at).type))
    return ranked.filter(pa.array(rank <= k))


def plain_ids(ids: pa.ChunkedArray) -> pa.ChunkedArray:
    """Ids without a dictionary: Spark takes plain columns."""
    return ids.cast(ids.type.value_type) if pa.types.is_dictionary(ids.type) else ids


def _chunked(array: pa.Array) -> pa.ChunkedArray:
    return pa.chunked_array([array])
