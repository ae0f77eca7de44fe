"""Events on their way to shards, and answers on their way back: the plans in which not every host has all.

```text
events -> route: which shards might match? -> shuffle by shard -> match there -> shuffle by event -> merge
```

A shard is visited only by events that might match there, and no match is missed: the routing index holds
expressions that cover every subscription of the shard. All matches need no merging; the best k of an event
are the best of the bests of its shards; counts add up.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import functions as sf
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from tamis.index import Index
from tamis.spark.matching.answer import KEY_PREFIX, Answers, Question, attribute_columns, best, split_keys
from tamis.spark.matching.task import Seen, Source, Task
from tamis.spark.store.directory import Directory
from tamis.spark.store.host_cache import open_file, open_shard
from tamis.spark.store.versions import Router, Version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SHARD = "__tamis_shard"
EVENT = "__tamis_event"
NO_SHARD = -1
"""Where an event goes that no shard might match but that must be answered for all the same."""

ROWS_BEFORE_MERGE = 1 << 20

_routers: dict[tuple[object, ...], "RouterIndexes"] = {}


class RouterIndexes:
    """The opened indexes of a router; a worker process keeps those of the last version."""

    def __init__(self, directory: Directory, version: Version) -> None:
        """Map the router's files."""
        # A store may have become replicated since its stream was planned: then everybody visits all.
        router = version.router
        self.version = version
        self.knows_nothing = router is None
        router = router or Router()
        self.rules = None if router.rules is None else open_file(directory, router.rules)
        promised = router.advertisements
        self.advertisements = None if promised is None else open_file(directory, promised)
        self.sources = router.sources
        self.shards = len(version.shards)

    @classmethod
    def of(cls, directory: Directory, version: Version) -> "RouterIndexes":
        """The router of a version, opened once."""
        files = (version.router.rules, version.router.advertisements) if version.router else ()
        key = (directory.url, version.number, *(file.sha256 for file in files if file))
        if key not in _routers:
            _routers.clear()
            _routers[key] = cls(directory, version)
        return _routers[key]

    def visits(
        self, events: pa.RecordBatch, sources: pa.Array | None
    ) -> "np.ndarray[Any, np.dtype[np.bool_]]":
        """For each event and shard, whether the event must go there."""
        rows = events.num_rows
        wanted = np.full((rows, self.shards), self.knows_nothing)
        if self.rules is not None:
            event, shard = _prefixed_pairs(self.rules, events)
            wanted[event, shard.astype(np.int64)] = True
        if self.sources:
            self._visit_by_source(wanted, events, sources)
        if self.version.changed:
            wanted[:, 0] = True
        return wanted

    def _visit_by_source(self, wanted: Any, events: pa.RecordBatch, sources: pa.Array | None) -> None:
        names = np.array([None] * events.num_rows if sources is None else sources.to_pylist(), dtype=object)
        kept_promise = np.zeros(events.num_rows, bool)
        if self.advertisements is not None:
            event, source = _prefixed_pairs(self.advertisements, events)
            kept_promise[event[names[event] == source]] = True
        for name in {str(name) for name in names[kept_promise]}:
            rows = kept_promise & (names == name)
            wanted[np.ix_(rows, self.sources.get(name, []))] = True
        # Whoever breaks a promise, or made none, may match anything.
        wanted[~kept_promise, :] = True


def _prefixed_pairs(index: Index, events: pa.RecordBatch) -> tuple[Any, Any]:
    """Events and the part before the colon of the ids that they match."""
    found = index.match_batch(events, threads=1)
    ids = found.column("subscription").combine_chunks()
    if isinstance(ids, pa.ChunkedArray):
        ids = ids.chunk(0) if ids.num_chunks else pa.array([], pa.dictionary(pa.int32(), pa.string()))
    prefixes = [str(name).rsplit(":", 1)[0] for name in ids.dictionary.to_pylist()]
    names = np.array(prefixes or [""], dtype=object)
    return found.column("event").to_numpy(), names[ids.indices.to_numpy()]


def route_task(source: Source, question: Question, source_key: bool) -> Task:
    """Copy each event to the shards that might match it, numbered so that its answers find together again.

    With `source_key`, the last key column is the source of the event.
    """
    answers_all = question.mode in ("count", "exists", "unmatched")

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        directory, version, _ = source.resolve(question)
        router = RouterIndexes.of(directory, version)
        context = TaskContext.get()
        number = (context.partitionId() if context is not None else 0) << 33
        seen = Seen(version)
        for batch in batches:
            attributes, keys = split_keys(seen.note(batch))
            if question.query.score == "relaxed":
                # One true predicate is enough for a match: nobody can be left out.
                visits = np.ones((batch.num_rows, router.shards), bool)
            else:
                visits = router.visits(attributes, keys[-1] if source_key else None)
            if answers_all:
                lonely = ~visits.any(axis=1)
                visits = np.column_stack([lonely, visits])
            event, shard = np.nonzero(visits)
            shard = shard - 1 if answers_all else shard
            seen.visits += int((shard != NO_SHARD).sum())
            routed = batch.take(pa.array(event))
            if source_key:
                routed = routed.drop_columns([f"{KEY_PREFIX}{len(keys) - 1}"])
            columns = dict(zip(routed.schema.names, routed.columns, strict=True))
            columns[EVENT] = pa.array(number + event, pa.int64())
            columns[SHARD] = pa.array(shard.astype(np.int32))
            yield pa.record_batch(columns)
            number += batch.num_rows
        seen.report(directory, source.run, 0, step="route")

    return task


def shard_task(source: Source, question: Question, keys: list[str]) -> Task:
    """Match the events of a partition against the shards that they were routed to."""
    counts = question.mode in ("count", "exists", "unmatched")
    asked = replace(question, mode="count") if counts else question
    carried = keys if question.mode in ("all", "by_subscription") else [*keys, EVENT]

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        directory, version, resolved = source.resolve(asked)
        seen = Seen(version)
        matches = 0
        for batch in batches:
            for shard, rows in _by_shard(batch, len(keys), keeps_event=EVENT in carried):
                seen.rows += rows.num_rows
                indexes = [] if shard == NO_SHARD else open_shard(directory, version, shard)
                answers = Answers(resolved, indexes, version.number, carried)
                yield from answers.to_batches([attribute_columns(rows, version.attributes)])
                matches += answers.matches
        seen.report(directory, source.run, matches, step="shard")

    return task


def _by_shard(batch: pa.RecordBatch, keys: int, keeps_event: bool) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of each shard, with the event's number as the last key if it is to be kept."""
    shards = batch.column(SHARD).to_numpy()
    number = f"{KEY_PREFIX}{keys}"
    plain = batch.drop_columns([SHARD])
    plain = plain.rename_columns([number if name == EVENT else name for name in plain.schema.names])
    if not keeps_event:
        plain = plain.drop_columns([number])
    for shard in np.unique(shards):
        chosen = plain.take(pa.array(np.flatnonzero(shards == shard)))
        yield int(shard), chosen


def merge_task(question: Question, *, ordered: bool) -> Task:
    """Bring the answers of an event's shards together.

    Where rows come ordered by event, an event is done when the next begins: only the last one waits. Where
    they do not, in a micro-batch, what was added up waits for more, one row or k rows for each event.
    """

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        waiting: pa.Table | None = None
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            waiting = rows if waiting is None else pa.concat_tables([waiting, rows])
            if ordered and waiting.num_rows:
                last = waiting.column(EVENT)[-1]
                done = pc.not_equal(waiting.column(EVENT), last)
                yield from _finished(waiting.filter(done), question).to_batches()
                waiting = waiting.filter(pc.invert(done))
            elif waiting.num_rows > ROWS_BEFORE_MERGE:
                waiting = _added_up(waiting, question)
        if waiting is not None:
            yield from _finished(waiting, question).to_batches()

    return task


def _added_up(answers: pa.Table, question: Question) -> pa.Table:
    """One row for each event with its count so far, or its best k rows so far."""
    if question.mode == "top_k":
        return best(answers, [EVENT], question.k)
    if not answers.num_rows:
        return answers
    ordered = answers.take(pc.sort_indices(answers, sort_keys=[(EVENT, "ascending")]))
    events = ordered.column(EVENT).to_numpy()
    first = np.flatnonzero(np.r_[True, events[1:] != events[:-1]])
    totals = np.add.reduceat(ordered.column("matches").to_numpy(), first)
    one_each = ordered.take(pa.array(first))
    return one_each.set_column(one_each.schema.get_field_index("matches"), "matches", pa.array(totals))


def _finished(answers: pa.Table, question: Question) -> pa.Table:
    """The rows of the answer for events whose rows are all there."""
    one_each = _added_up(answers, question).drop_columns([EVENT])
    if question.mode in ("top_k", "count"):
        return one_each
    totals = one_each.column("matches").to_numpy()
    at = one_each.schema.get_field_index("matches")
    if question.mode == "exists":
        return one_each.set_column(at, "matched", pa.array(totals > 0))
    return one_each.drop_columns(["matches"]).filter(pa.array(totals == 0))


def routed_schema(events: StructType, drops_last_key: str | None) -> StructType:
    """The columns of routed events: those that they had, and where they go."""
    kept = [field for field in events.fields if field.name != drops_last_key]
    return StructType([*kept, StructField(EVENT, LongType()), StructField(SHARD, IntegerType())])


def by_shard(routed: "DataFrame", shards: int) -> "DataFrame":
    """Bring the events of each shard together, one partition a shard where Spark can."""
    if hasattr(routed, "repartitionById"):
        # A later version of a store may have more shards than the one that the query was planned for.
        return routed.repartitionById(shards, sf.pmod(sf.greatest(sf.col(SHARD), sf.lit(0)), sf.lit(shards)))
    return routed.repartition(shards, SHARD)
