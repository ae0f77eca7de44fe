"""Subscriptions that change while streams are matched against them.

A store is a directory of versions. Changes arrive as a table or a stream; each batch of them becomes one new
version, which streaming matches use from their next micro-batch on. A change carries a sequence number: for
each subscription the highest one wins, so late and repeated changes do no harm, and neither does a batch that
is applied again after a crash. A change that cannot be accepted goes to quarantine and stops nothing.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis.errors import ArgumentError
from tamis.spark.building.build_index import build, opened_on_executor
from tamis.spark.building.own_names import with_own_names
from tamis.spark.building.subscriptions import INTEGERS, bound_to_source, normalised
from tamis.spark.building.validity import valid_at
from tamis.spark.built_index import BuiltIndex
from tamis.spark.events.absent_attributes import EventColumns
from tamis.spark.release import own_release, refuse_other_release
from tamis.spark.session import collected, on_executor
from tamis.spark.store.change_data_feed import as_changes, read_feed
from tamis.spark.store.folding import folded_in_parallel, waiting_to_be_folded
from tamis.spark.store.iceberg import changes_since, is_iceberg, last_followed, note_followed
from tamis.store.apply_changes import Applied, apply_to_store, quarantined_changes
from tamis.store.changes import change_schema
from tamis.store.directory import open_directory
from tamis.store.garbage import collect
from tamis.store.versions import latest_number

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OF_CHANGES = ("op", "sequence", "id", "expression")
_QUARANTINE = "id string, op string, sequence bigint, expression string, error string, version bigint"


class SubscriptionStore:
    """A directory of subscriptions and their versions.

    >>> import tempfile
    >>> from pyspark.sql import SparkSession
    >>> import tamis.spark
    >>> spark = SparkSession.builder.getOrCreate()
    >>> store = tamis.spark.SubscriptionStore(tempfile.mkdtemp())
    >>> changes = [("add", 1, "a", "x > 1"), ("add", 2, "b", "x > 2"), ("remove", 3, "b", None)]
    >>> columns = "op string, sequence bigint, id string, expression string"
    >>> changes = spark.createDataFrame(changes, columns)
    >>> store.apply_changes(changes).version
    1
    >>> events = spark.createDataFrame([(1, 3)], "event_id int, x int")
    >>> [row.subscription for row in tamis.spark.match(events, store).collect()]
    ['a']

    All subscriptions can be replaced at once, and old versions can be removed:

    >>> rules = spark.createDataFrame([("c", "x > 2")], "id string, expression string")
    >>> store.replace_all(rules).version.number, store.built_index(spark).version.subscriptions
    (2, 1)
    >>> store.quarantined(spark).count(), store.collect_garbage(spark)
    (0, [])
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Set the directory: a path or URL that all executors reach. It is created on the first write.

        With the prefix `single-writer+`, the file system need not support put-if-absent. You promise that one
        process at a time changes the store; streams match in `foreachBatch`.
        """
        self.url = open_directory(path).url

    def __repr__(self) -> str:
        """Where it is."""
        return f"SubscriptionStore({self.url!r})"

    def replace_all(self, subscriptions: "DataFrame", **building: Any) -> BuiltIndex:
        """Publish a version with exactly these subscriptions; takes the arguments of `tamis.spark.build`.

        Changes that are applied while it builds are replaced too. Sequence numbers are remembered: a change
        that was stale before stays stale.
        """
        return build(subscriptions, directory=self.url, **building)

    def built_index(self, spark: "SparkSession") -> BuiltIndex:
        """The latest version; streaming matches follow to later ones.

        In `foreachBatch` it is the version of the micro-batch, even when that is replayed.
        """
        return opened_on_executor(spark, self.url)

    def pinned_index(self, spark: "SparkSession", query: str, batch: int) -> BuiltIndex:
        """The version of a micro-batch: the latest when it is first asked for, and the same from then on.

        In a classic session, `built_index`, or `match` with the store, is enough in `foreachBatch`. On Spark
        Connect, the function runs outside the query, so it must name its micro-batch here; `query` is any
        name that no other query of the store has.

        >>> import tempfile
        >>> from pyspark.sql import SparkSession
        >>> spark = SparkSession.builder.getOrCreate()
        >>> store = SubscriptionStore(tempfile.mkdtemp())
        >>> rules = spark.createDataFrame([("a", "x > 1")], "id string, expression string")
        >>> versions = [store.replace_all(rules).version.number]
        >>> versions.append(store.pinned_index(spark, "alerts", 7).version.number)
        >>> versions.append(store.replace_all(rules).version.number)
        >>> [*versions, store.pinned_index(spark, "alerts", 7).version.number]
        [1, 1, 2, 1]
        """
        return opened_on_executor(spark, self.url, (query, batch))

    def apply_changes(
        self,
        changes: "DataFrame",
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        trigger: dict[str, Any] | None = None,
        name: str | None = None,
        events: "DataFrame | None" = None,
    ) -> Any:
        """Turn changes into new versions: a table immediately, a stream by the returned `StreamingQuery`.

        For a table the result is an `Applied`: the latest version, and what became of the changes.

        The columns are `op` ("add" or "replace", which both store the subscription, or "remove"), `sequence`,
        and those of a subscription. A stream needs a `checkpoint`; `trigger` takes what
        `DataStreamWriter.trigger` takes, for example `{"processingTime": "1 second"}`, and bounds the delay.

        With `events`, a DataFrame or stream that is matched against the store, a rule that uses a column
        which these events lack goes to quarantine, because it would silently never be true.
        """
        changes = with_own_names(changes, _OF_CHANGES)
        ids = self._check(changes)
        columns = None if events is None else EventColumns.of(events)
        if not changes.isStreaming:
            return _apply(changes, self.url, ids, columns)
        if checkpoint is None:
            raise ArgumentError(
                "a stream of changes needs checkpoint=, the path where it remembers how far it got"
            )
        url = self.url

        def apply(batch: "DataFrame", _batch_id: int) -> None:
            _apply(batch, url, ids, columns)

        return _started(changes, apply, checkpoint, trigger or {"processingTime": "1 second"}, name)

    def follow(
        self,
        spark: "SparkSession",
        table: str,
        *,
        columns: Mapping[str, str] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        trigger: dict[str, Any] | None = None,
        name: str | None = None,
        events: "DataFrame | None" = None,
        event_time: str | None = None,
    ) -> Any:
        """Follow a Delta or Iceberg table of rules: as a stream or, without checkpoint, once.

        `table` is a name in the catalog, or the path of a Delta table. `columns` maps `id`, `expression` and
        the others to the names in the table, if they differ. Insertions and updates store a rule, deletions
        remove it; rules that cannot be accepted are in `quarantined`, with their error. `checkpoint`,
        `trigger`, `name` and `events` are those of `apply_changes`. With `event_time`, the attribute that
        says when an event happened, the columns `valid_from` and `valid_to` bound each rule: see `valid_at`.

        For a Delta table, once means the whole change data feed; reading it again is harmless, because
        applied changes are stale. For an Iceberg table, the store remembers the last snapshot, so once means
        the changes since then, or the whole table at first; a stream checks for a new snapshot at each
        trigger.
        """
        following = _Following(self.url, table, dict(columns or {}), event_time)
        if not is_iceberg(spark, table):
            feed = read_feed(spark, table, streaming=checkpoint is not None)
            changes = following.as_changes(feed)
            return self.apply_changes(
                changes, checkpoint=checkpoint, trigger=trigger, name=name, events=events
            )
        known = None if events is None else EventColumns.of(events)
        if checkpoint is None:
            return following.catch_up(spark, known)

        def look(batch: "DataFrame", _batch_id: int) -> None:
            following.catch_up(batch.sparkSession, known)

        # Rows that only say that it is time to look: Iceberg's own stream has insertions only.
        ticks = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
        return _started(ticks, look, checkpoint, trigger or {"processingTime": "10 seconds"}, name)

    @staticmethod
    def _check(changes: "DataFrame") -> str:
        types = dict(changes.dtypes)
        wanted = "op, sequence, id and expression"
        for column in _OF_CHANGES:
            if column not in types:
                raise ArgumentError(f"changes have the columns {wanted}; these have no {column!r}")
        if types["sequence"] not in INTEGERS:
            raise ArgumentError(f"the column 'sequence' must be an integer, not {types['sequence']}")
        return "int" if types["id"] in INTEGERS else "string"

    def quarantined(self, spark: "SparkSession") -> "DataFrame":
        """The changes that could not be applied, each with its error."""
        url = self.url

        def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for _ in batches:
                yield from quarantined_changes(open_directory(url)).to_batches()

        return spark.range(1).coalesce(1).mapInArrow(read, _QUARANTINE)

    def collect_garbage(self, spark: "SparkSession", *, keep: int = 3, grace: float = 3600.0) -> list[str]:
        """Remove unused files and return their names.

        The latest `keep` versions stay, and those that a streaming query has pinned or a batch query has
        leased; no file younger than `grace` seconds is removed.
        """
        url = self.url
        removed: list[str] = on_executor(spark, lambda: collect(open_directory(url), keep, grace))
        return removed


def _started(
    stream: "DataFrame",
    work: Any,
    checkpoint: str | os.PathLike[str],
    trigger: dict[str, Any],
    name: str | None,
) -> Any:
    """The streaming query that calls `work` for each micro-batch."""
    writer = stream.writeStream.foreachBatch(work).option("checkpointLocation", os.fspath(checkpoint))
    if name is not None:
        writer = writer.queryName(name)
    return writer.trigger(**trigger).start()


@dataclass(frozen=True)
class _Following:
    """A table of rules that a store follows, and what its columns mean."""

    url: str
    table: str
    columns: dict[str, str]
    event_time: str | None

    def as_changes(self, feed: "DataFrame") -> "DataFrame":
        changes = as_changes(feed, self.columns)
        return changes if self.event_time is None else valid_at(changes, self.event_time)

    def catch_up(self, spark: "SparkSession", known: EventColumns | None) -> Applied:
        """Apply what changed in an Iceberg table since the store last looked."""
        from tamis.spark.history.rules import rules  # noqa: PLC0415 - it reads stores

        store, url = SubscriptionStore(self.url), self.url
        last = last_followed(spark, url, self.table)
        feed = changes_since(
            spark, self.table, last, lambda: rules(spark, store), self.columns.get("id", "id")
        )
        if feed is None:
            return Applied(on_executor(spark, lambda: latest_number(open_directory(url)) or 0), 0, 0, 0)
        changes = self.as_changes(feed.changes)
        applied = _apply(changes, self.url, SubscriptionStore._check(changes), known)
        note_followed(spark, self.url, self.table, feed.reaches)
        return applied


def _apply(changes: "DataFrame", url: str, ids: str, columns: EventColumns | None = None) -> Applied:
    """Apply one batch of changes in one task: versions are made one after another."""
    rows = bound_to_source(normalised(changes, carried=("op", "sequence")))
    drivers = own_release()

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        refuse_other_release(drivers)
        schema = change_schema(ids)
        held = [pa.Table.from_batches([batch]) for batch in batches if batch.num_rows]
        given = pa.concat_tables(held) if held else schema.empty_table()
        directory = open_directory(url)
        applied = apply_to_store(directory, given, schema, columns, folds=False)
        due = waiting_to_be_folded(directory, applied.version) if applied.applied else None
        yield pa.record_batch({"told": [json.dumps([applied._asdict(), due])]})

    [row] = collected(rows.coalesce(1).mapInArrow(task, "told string"))
    told, due = json.loads(row["told"])
    if due is not None:
        told["version"] = folded_in_parallel(changes.sparkSession, url, due) or told["version"]
    return Applied(**told)
