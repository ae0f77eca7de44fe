"""The query for a table of events, and the answer for one batch of them.

This part of the pipeline runs inside tasks and does not depend on Spark: Arrow batches in, Arrow batches out.
Columns of a batch that are keys are carried through; the others are the events' attributes. Output is cut by
bytes and rows (`bounded_batches`) before it is created, so memory does not depend on the number of matches or
on the size of carried columns.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis._kernel import Query
from tamis._matching import ask_up_to
from tamis.errors import ArgumentError
from tamis.expr import ALL_STRINGS
from tamis.index import Index
from tamis.rank import ScoreFunction
from tamis.spark.events.names import named_as_asked
from tamis.spark.matching.bounded_batches import MOST_ROWS, Sizes, batch_bytes, cuts, row_bytes
from tamis.spark.matching.pairs import Pairs, plain_ids
from tamis.spark.matching.payloads import Payloads

Mode = Literal["all", "top_k", "count", "exists", "unmatched", "by_subscription"]

KEY_PREFIX = "__tamis_key_"
"""How key columns are named on their way through a task, so that none is taken for an attribute."""

SPREAD_PREFIX = "__tamis_spread_"
"""How map columns are named whose keys are to become attributes."""

STRINGS_PREFIX = "__tamis_strings_"
"""How columns are named that hold strings for keywords, and no attribute."""

ENCODED_PREFIX = "__tamis_hex_"
"""How columns are named whose own name PySpark cannot hand to a task: with a dot or a backquote, or `*`."""

OWN_BYTES = 32
"""The other columns of an answer, apart from keys, texts and payload: version, score, rank and an id."""

_ALL = Query("all")


@dataclass(frozen=True)
class TableQuery:
    """What is asked for each event of a table: a query, and what the answer looks like.

    >>> TableQuery("top_k", Query(k=3)).k
    3
    """

    mode: Mode
    kernel: Query = _ALL
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
        return self.kernel.k or 0

    def at(self, now: datetime | int) -> "TableQuery":
        """The same at a moment, unless it has one."""
        return self if self.kernel.now is not None else replace(self, kernel=self.kernel.at(now))

    def pairs_in(self, indexes: Sequence[Index]) -> Pairs:
        """The matches in several indexes, of batches of events, some at a time."""
        return Pairs(self._find, indexes, self.k if self.mode == "top_k" else None)

    def _find(self, index: Index, events: pa.RecordBatch, most: int) -> tuple[pa.Table, int]:
        """The matches of the first events in one index, `most` or those of one event, and how many events.

        The columns are `event` and `subscription`, for top-k also `score` and `rank`.
        """
        given: dict[str, Any] = {"intervals": self.intervals, "weights": self.weights}
        if self.function is None:
            return ask_up_to(index, self.kernel, events, most, threads=1, **given)
        some = events.slice(0, max(1, most // max(1, self.k)))
        return index.top_k_batch(some, score=self.function, **given, **_asked(self.kernel)), some.num_rows

    def counts(self, index: Index, events: pa.RecordBatch) -> "np.ndarray[Any, np.dtype[np.int64]]":
        """How many matches each event has in one index."""
        query = Query("count", **_selected(self.kernel))
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


def match_query(ranking: Mapping[str, Any], selection: Mapping[str, Any], **options: Any) -> TableQuery:
    """Ask for all matches, or with a ranking for the best k. Both are arguments of a `tamis.Query`.

    >>> match_query({"score": "relevance"}, {})
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
    return TableQuery("top_k" if given else "all", query, function, **options)


@dataclass(frozen=True)
class Carried:
    """The key columns of a batch of events, which every match repeats."""

    names: Sequence[str]
    columns: Sequence[pa.Array]
    events: int

    @cached_property
    def bytes(self) -> Sizes:
        """What they take, for each event."""
        return batch_bytes(self.columns, self.events)

    def take(self, events: pa.Array) -> dict[str, pa.Array]:
        """The keys of these events."""
        return {name: column.take(events) for name, column in zip(self.names, self.columns, strict=True)}


class Answers:
    """Answers a query batch by batch.

    Memory is bounded in matches (`pairs`) and in bytes (`bounded_batches`).
    """

    def __init__(
        self, query: TableQuery, indexes: Sequence[Index], version: int, keys: Sequence[str]
    ) -> None:
        """Ask `query` of `indexes`, which are `version`; `keys` are the key columns' own names."""
        self.query = query
        self.indexes = indexes
        self.version = version
        self.keys = keys
        self.matches = 0
        self._pairs = query.pairs_in(indexes)
        self._payloads = Payloads(indexes)

    def to_batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the answer."""
        if self.query.mode == "by_subscription":
            yield from self._by_subscription(batches)
            return
        for batch in batches:
            attributes, keys = split_keys(batch)
            if self.query.mode in ("count", "exists", "unmatched"):
                yield from self._per_event(attributes, keys)
                continue
            carried = Carried(self.keys, keys, batch.num_rows)
            for table in self._pairs.of(attributes):
                self.matches += table.num_rows
                found = table.to_batches()
                del table  # not held while the next is found
                while found:
                    yield from self._rows(found.pop(0), carried)

    def _rows(self, pairs: pa.RecordBatch, carried: Carried) -> Iterator[pa.RecordBatch]:
        ids = pairs.column("subscription")
        name_bytes = row_bytes(ids.dictionary) if pa.types.is_dictionary(ids.type) else None
        for start in range(0, pairs.num_rows, MOST_ROWS):
            rows = pairs.slice(start, MOST_ROWS)
            sizes = carried.bytes[rows.column("event").to_numpy()] + OWN_BYTES
            if name_bytes is not None:
                sizes += name_bytes[rows.column("subscription").indices.to_numpy()]
            for first, end in cuts(sizes):
                part = rows.slice(first, end - first)
                if self.query.payload:
                    yield from self._rows_with_payload(part, sizes[first:end], carried)
                else:
                    yield self._batch(part, carried)

    def _rows_with_payload(
        self, pairs: pa.RecordBatch, sizes: Sizes, carried: Carried
    ) -> Iterator[pa.RecordBatch]:
        """The same, cut again where payloads make the rows longer."""
        while pairs.num_rows:
            payloads, codes = self._payloads.of_first(pairs.column("subscription"))
            rows = len(codes)
            for first, end in cuts(sizes[:rows] + row_bytes(payloads)[codes]):
                payload = payloads.take(pa.array(codes[first:end]))
                yield self._batch(pairs.slice(first, end - first), carried, payload)
            pairs, sizes = pairs.slice(rows), sizes[rows:]

    def _batch(
        self, pairs: pa.RecordBatch, carried: Carried, payload: pa.Array | None = None
    ) -> pa.RecordBatch:
        columns = carried.take(pairs.column("event"))
        columns["subscription"] = plain_ids(pairs.column("subscription"))
        if self.query.mode == "top_k":
            columns["score"] = pairs.column("score")
            columns["rank"] = pairs.column("rank").cast(pa.int32())
        columns["version"] = pa.repeat(pa.scalar(self.version, pa.int64()), pairs.num_rows)
        if payload is not None:
            columns["payload"] = payload
        return pa.record_batch(columns)

    def _per_event(self, events: pa.RecordBatch, keys: list[pa.Array]) -> Iterator[pa.RecordBatch]:
        counts = np.zeros(events.num_rows, np.int64)
        for index in self.indexes:
            counts += self.query.counts(index, events)
        self.matches += int(counts.sum())
        columns = dict(zip(self.keys, keys, strict=True))
        version = pa.repeat(pa.scalar(self.version, pa.int64()), events.num_rows)
        if self.query.mode == "count":
            columns |= {"matches": pa.array(counts), "version": version}
        elif self.query.mode == "exists":
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
            for table in self._pairs.of(attributes):
                self.matches += table.num_rows
                for pairs in table.to_batches():
                    counted = _counted(pairs.column("subscription"))
                    total = counted if total is None else _summed(pa.concat_tables([total, counted]))
        if total is None:
            return
        for summed in total.to_batches():
            for first, end in cuts(batch_bytes(summed.columns, summed.num_rows) + OWN_BYTES):
                ids, matches = summed.slice(first, end - first).columns
                version = pa.repeat(pa.scalar(self.version, pa.int64()), end - first)
                ids = ids if pa.types.is_integer(ids.type) else ids.cast(pa.string())
                yield pa.record_batch({"subscription": ids, "matches": matches, "version": version})


def _counted(ids: pa.Array) -> pa.Table:
    """How often each id occurs; names have 64-bit offsets, for all of them may be in one column."""
    if pa.types.is_integer(ids.type):
        counted = pc.value_counts(ids)
        return pa.table({"subscription": counted.field("values"), "matches": counted.field("counts")})
    counted = pc.value_counts(ids.indices)
    names = ids.dictionary.cast(pa.large_string()).take(counted.field("values"))
    return pa.table({"subscription": names, "matches": counted.field("counts")})


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
    odd = "." in name or "`" in name or name in ("", "*")
    return f"{ENCODED_PREFIX}{name.encode().hex()}" if odd else name


def attribute_columns(
    batch: pa.RecordBatch, attributes: Collection[str], *, ignore_case: bool = False
) -> pa.RecordBatch:
    """The batch with columns named as their attributes, and wanted keys of spread maps as further columns.

    With `ignore_case`, attributes that are spelt otherwise than a column have columns of their own.

    >>> maps = pa.array([[("a", 1)], [("b", 2)]], pa.map_(pa.string(), pa.int64()))
    >>> given = pa.record_batch({f"{SPREAD_PREFIX}m": maps, column_alias("x.y"): [1, 2]})
    >>> attribute_columns(given, ["a", "c"]).to_pydict()
    {'x.y': [1, 2], 'a': [1, None], 'c': [None, None]}
    """
    if ignore_case:
        return named_as_asked(attribute_columns(batch, attributes), attributes)
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
            if ALL_STRINGS in attributes:
                columns[f"{STRINGS_PREFIX}{name}"] = entries
            for key in attributes:
                if key not in columns and key.split(".", 1)[0] not in columns:
                    columns[key] = pc.map_lookup(entries, pa.scalar(key, entries.type.key_type), "first")
    return pa.record_batch(columns)
