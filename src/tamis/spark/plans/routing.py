"""Sends events to shards and merges their answers: the plans in which no host has the whole index.

```text
events -> route: which shards might match? -> shuffle by shard -> match there -> shuffle by event -> merge
```

Only events that might match visit a shard, and no match is missed: the routing index holds expressions that
cover every subscription of the shard. A query for all matches needs no merging; the best k of an event are
the best among the best k of its shards; counts add up.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import functions as sf
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from tamis.index import Index
from tamis.spark.events.valid_strings import with_valid_strings
from tamis.spark.matching.answer import KEY_PREFIX, Answers, TableQuery, attribute_columns, split_keys
from tamis.spark.matching.bounded_batches import gather_rows
from tamis.spark.matching.pairs import best_rows, matched_prefixes, ranks_of
from tamis.spark.matching.task import Seen, Source, Task
from tamis.spark.plans.by_number import gather_by_number
from tamis.store.change_log import changes_after
from tamis.store.changes import UPSERT, latest
from tamis.store.directory import Directory
from tamis.store.host_cache import open_file
from tamis.store.open_shards import open_shard
from tamis.store.versions import Router, Version

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
        self.changed = version.changed
        self.knows_nothing = router is None
        router = router or Router()
        kept = {file.sha256 for file in (router.rules, router.advertisements) if file}
        kept |= {file.sha256 for files in version.shards for file in files}
        self.rules = None if router.rules is None else open_file(directory, router.rules, kept)
        promised = router.advertisements
        self.advertisements = None if promised is None else open_file(directory, promised, kept)
        self.sources = router.sources
        self.shards = len(version.shards)
        self.added = Index()
        """What came as changes, as it is: ids are `shard:` and the subscription's id in hexadecimal."""
        self._home: dict[str, str] = {}
        self._version = -1

    @classmethod
    def of(cls, directory: Directory, version: Version) -> "RouterIndexes":
        """The router of a version, opened once and brought from version to version."""
        files = (version.router.rules, version.router.advertisements) if version.router else ()
        key = (directory.url, version.base, *(file.name for file in files if file))
        held = _routers.get(key)
        if held is None or held._version > version.number:
            held = cls(directory, version)
        if not held.knows_nothing:
            for changes in changes_after(directory, version, held._version):
                held._learn(changes)
        held._version = version.number
        _routers.clear()
        _routers[key] = held
        return held

    def _learn(self, changes: pa.Table) -> None:
        """Learn where additions went."""
        for change in latest(changes):
            id = str(change["id"]).encode().hex()
            if (old := self._home.pop(id, None)) is not None:
                self.added.remove(old)
            if change["op"] == UPSERT:
                self._home[id] = f"{change.get('shard') or 0}:{id}"
                self.added.add(self._home[id], change["expression"])

    def visits(
        self, events: pa.RecordBatch, sources: pa.Array | None
    ) -> "np.ndarray[Any, np.dtype[np.bool_]]":
        """For each event and shard, whether the event must go there."""
        rows = events.num_rows
        wanted = np.full((rows, self.shards), self.knows_nothing)
        for rules in (self.rules, self.added):
            if rules is not None and len(rules):
                for event, shard in matched_prefixes(rules, events):
                    wanted[event, shard.astype(np.int64)] = True
        if self.sources:
            self._visit_by_source(wanted, events, sources)
        if self.changed:
            wanted[:, 0] = True
        return wanted

    def _visit_by_source(self, wanted: Any, events: pa.RecordBatch, sources: pa.Array | None) -> None:
        names = np.array([None] * events.num_rows if sources is None else sources.to_pylist(), dtype=object)
        kept_promise = np.zeros(events.num_rows, bool)
        if self.advertisements is not None:
            for event, source in matched_prefixes(self.advertisements, events):
                kept_promise[event[names[event] == source]] = True
        for name in {str(name) for name in names[kept_promise]}:
            rows = kept_promise & (names == name)
            wanted[np.ix_(rows, self.sources.get(name, []))] = True
        # Whoever breaks a promise, or made none, may match anything.
        wanted[~kept_promise, :] = True


def route_task(source: Source, query: TableQuery, source_key: bool) -> Task:
    """Copy each event to the shards that might match it, numbered so that its answers find together again.

    With `source_key`, the last key column is the source of the event.
    """
    answers_all = query.mode in ("count", "exists", "unmatched")

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        directory, version, _ = source.resolve(query)
        router = RouterIndexes.of(directory, version)
        context = TaskContext.get()
        number = (context.partitionId() if context is not None else 0) << 33
        seen = Seen(version, ignore_case=source.ignore_case)
        for batch in batches:
            attributes, keys = split_keys(seen.note(batch))
            if seen.repaired:
                batch = with_valid_strings(batch)  # noqa: PLW2901
            if query.kernel.score == "relaxed":
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
            if source_key:
                batch = batch.drop_columns([f"{KEY_PREFIX}{len(keys) - 1}"])  # noqa: PLW2901
            for first, end, routed in gather_rows([batch], event):
                columns = dict(zip(routed.schema.names, routed.columns, strict=True))
                columns[EVENT] = pa.array(number + event[first:end], pa.int64())
                columns[SHARD] = pa.array(shard[first:end].astype(np.int32))
                yield pa.record_batch(columns)
            number += batch.num_rows
        seen.report(directory, source.report_name, 0, step="route")

    return task


def shard_task(source: Source, query: TableQuery, keys: list[str]) -> Task:
    """Match the events of a partition against the shards that they were routed to."""
    counts = query.mode in ("count", "exists", "unmatched")
    asked = replace(query, mode="count") if counts else query
    carried = keys if query.mode in ("all", "by_subscription") else [*keys, EVENT]

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        directory, version, resolved = source.resolve(asked)
        seen = Seen(version, ignore_case=source.ignore_case)
        matches = 0
        for batch in batches:
            for shard, rows in _by_shard(batch, len(keys), keeps_event=EVENT in carried):
                seen.rows += rows.num_rows
                indexes = [] if shard == NO_SHARD else open_shard(directory, version, shard)
                if indexes:
                    seen.place(indexes)
                answers = Answers(resolved, indexes, version.number, carried)
                named = attribute_columns(rows, version.attributes, ignore_case=source.ignore_case)
                yield from answers.to_batches([named])
                matches += answers.matches
        seen.report(directory, source.report_name, matches, step="shard")

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


def merge_task(query: TableQuery, keys: list[str], *, ordered: bool) -> Task:
    """Bring the answers of an event's shards together, and give the keys, which come first, their own names.

    Where rows come ordered as `merge_order` says, an event is done when the next begins, and its best rows
    are its first. Where they do not, in a micro-batch, what was added up waits for more, one row or k rows
    for each event.
    """
    if not ordered:
        merge = _merge_in_any_order(query)
    else:
        merge = _first_of_each(query.k) if query.mode == "top_k" else _added_up_in_order(query)

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in merge(batches):
            yield batch.rename_columns([*keys, *batch.schema.names[len(keys) :]])

    return task


def merge_order(query: TableQuery) -> list[Any]:
    """The columns by which answers are sorted before they are merged, as Spark takes them."""
    best_first = [sf.desc("score"), sf.asc("subscription")] if query.mode == "top_k" else []
    return [sf.asc(EVENT), *best_first]


def _first_of_each(k: int) -> Task:
    """The first k rows of each event, which are its best; nothing waits."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        last, seen = None, 0
        for batch in batches:
            if not batch.num_rows:
                continue
            events = batch.column(EVENT).to_numpy()
            ranks = ranks_of(events)
            ranks[events == last] += seen
            last, seen = events[-1], ranks[-1]
            kept = ranks <= k
            if kept.any():
                yield _without_event(_with_column(batch, "rank", ranks)).filter(pa.array(kept))

    return task


def _added_up_in_order(query: TableQuery) -> Task:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        waiting: list[pa.RecordBatch] = []  # of one event
        for batch in batches:
            if not batch.num_rows:
                continue
            events = batch.column(EVENT).to_numpy()
            of_last = int(np.searchsorted(events, events[-1]))
            if of_last or (waiting and waiting[0].column(EVENT)[0].as_py() != events[-1]):
                yield from _finished([*waiting, batch.slice(0, of_last)], query)
                waiting = []
            waiting.append(batch.slice(of_last))
        yield from _finished(waiting, query)

    return task


def _merge_in_any_order(query: TableQuery) -> Task:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        waiting: list[pa.RecordBatch] = []
        rows, most = 0, ROWS_BEFORE_MERGE
        for batch in batches:
            waiting.append(batch)
            rows += batch.num_rows
            if rows > most:
                waiting = list(_added_up(waiting, query))
                rows = sum(part.num_rows for part in waiting)
                # What is left may be all different events: adding up for each batch would never end.
                most = max(ROWS_BEFORE_MERGE, 2 * rows)
        yield from _finished(waiting, query)

    return task


def _added_up(answers: list[pa.RecordBatch], query: TableQuery) -> Iterator[pa.RecordBatch]:
    """One row for each event with its count so far, or its best k rows so far."""
    answers = [batch for batch in answers if batch.num_rows]
    if not answers:
        return
    if query.mode == "top_k":
        narrow = pa.Table.from_batches([batch.select([EVENT, "score", "subscription"]) for batch in answers])
        rows, values = best_rows(narrow.rename_columns(["event", "score", "id"]), query.k)
        name = "rank"
    else:
        events, matches = (
            np.concatenate([batch.column(name).to_numpy() for batch in answers])
            for name in (EVENT, "matches")
        )
        order = np.argsort(events, kind="stable")
        first = np.flatnonzero(ranks_of(events[order]) == 1)
        rows, values = order[first], np.add.reduceat(matches[order], first)
        name = "matches"
    for start, end, part in gather_rows(answers, rows):
        yield _with_column(part, name, values[start:end])


def _finished(answers: list[pa.RecordBatch], query: TableQuery) -> Iterator[pa.RecordBatch]:
    """The rows of the answer for events whose rows are all there."""
    for added_up in _added_up(answers, query):
        part = _without_event(added_up)
        if query.mode in ("top_k", "count"):
            yield part
            continue
        totals = part.column("matches").to_numpy()
        if query.mode == "exists":
            names = ["matched" if name == "matches" else name for name in part.schema.names]
            columns = [pa.array(totals > 0) if name == "matched" else part.column(name) for name in names]
            yield pa.record_batch(columns, names=names)
        else:
            yield part.drop_columns(["matches"]).filter(pa.array(totals == 0))


def _with_column(batch: pa.RecordBatch, name: str, values: Any) -> pa.RecordBatch:
    """The batch with other values in a column of numbers."""
    at = batch.schema.get_field_index(name)
    columns = [*batch.columns]
    columns[at] = pa.array(values, batch.schema.field(at).type)
    return pa.record_batch(columns, schema=batch.schema)


def _without_event(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.drop_columns([EVENT])


def routed_schema(events: StructType, drops_last_key: str | None) -> StructType:
    """The columns of routed events: those that they had, and where they go."""
    kept = [field for field in events.fields if field.name != drops_last_key]
    return StructType([*kept, StructField(EVENT, LongType()), StructField(SHARD, IntegerType())])


def by_shard(routed: "DataFrame", shards: int) -> "DataFrame":
    """Bring the events of each shard together, one partition a shard."""
    # A later version of a store may have more shards than the one that the query was planned for.
    shard = sf.pmod(sf.greatest(sf.col(SHARD), sf.lit(0)), sf.lit(shards))
    return gather_by_number(routed, shards, shard)
