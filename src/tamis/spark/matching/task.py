"""What a task does: find its version, open the index, answer, and leave a report.

These functions run in Spark's Python workers. They find the version of the index that their query uses; all
tasks of a query, or of a micro-batch of a stream, use the same one.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pyarrow as pa
from pyspark import TaskContext

from tamis._kernel import wrong_values
from tamis.errors import ArgumentError, SnapshotError
from tamis.index import Index
from tamis.spark.events.absent_attributes import compared
from tamis.spark.events.names import arrow_paths
from tamis.spark.events.valid_strings import with_valid_strings
from tamis.spark.matching.answer import SPREAD_PREFIX, Answers, TableQuery, attribute_columns, split_keys
from tamis.spark.matching.gpu import failure, use_granted
from tamis.spark.release import own_release, refuse_other_release
from tamis.spark.store.pins import micro_batch, pinned
from tamis.store.directory import Directory, open_directory
from tamis.store.garbage import collect_now_and_then
from tamis.store.open_shards import open_all
from tamis.store.versions import IdKind, Version, read_version

BATCHES_REPORTED = 100
"""Micro-batches of a stream whose reports stay: older ones go as new ones come."""

ABSENT_REPORTED = 20
"""Attributes without a column that a report names."""

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class Source:
    """Where tasks find their index: a directory, and a version, or None for the one of their micro-batch."""

    url: str
    version: Version | None
    run: str | None
    """A name for the query, under which its tasks leave leases and reports; None for none."""
    ids: IdKind | None = None
    """The kind of ids that the query's columns were made for, where the version is still open."""
    ignore_case: bool = False
    """Whether names mean columns in any case, as `spark.sql.caseSensitive` says."""
    reports: bool = True
    """Whether tasks leave reports, each of which an object store may charge for."""
    release: str = field(default_factory=own_release)
    """That of the driver, which the executors must have, too."""
    follows: bool = False
    """Whether a micro-batch uses the latest version all the same: for what tables and streams use."""

    @property
    def report_name(self) -> str | None:
        """Under which name tasks leave their reports; None if they leave none."""
        return self.run if self.reports else None

    def resolve(self, query: TableQuery) -> tuple[Directory, Version, TableQuery]:
        """The version of this task, and the query with the moment that its query fixed."""
        refuse_other_release(self.release)
        directory = open_directory(self.url)
        if self.run is not None:
            collect_now_and_then(directory)
        streaming = micro_batch() is not None
        if self.version is not None and not (self.follows and streaming):
            lease(directory, self.run, self.version)
            if query.kernel.now is None and self.run is not None and streaming:
                query = query.at(pinned(directory, self.version.number).now)
            return directory, self.version, query.at(datetime.now(UTC))
        pin = pinned(directory)
        version = read_version(directory, pin.version)
        self._refuse_other_columns(version)
        refuse_relaxed_sources(version, query)
        return directory, version, query.at(pin.now)

    def _refuse_other_columns(self, version: Version) -> None:
        """A streaming query keeps the columns that it started with."""
        if self.ids is not None and version.ids != self.ids and version.subscriptions:
            raise SnapshotError(
                f"version {version.number} of {self.url} has ids of type {version.ids}, but this query was "
                f"started when they were of type {self.ids}: start it again, with a new sink for the new type"
            )


def lease(directory: Directory, run: str | None, version: Version) -> None:
    """Keep a version from being collected while a query may still start tasks."""
    if run is not None:
        with suppress(OSError, ArgumentError):  # a disk that takes no files must not stop those who only read
            hour = int(time.time() // 3600)
            directory.create(f"leases/{run}-{hour}@{version.number}", b"")


def refuse_relaxed_sources(version: Version, query: TableQuery) -> None:
    """A relaxed match needs one true predicate, whichever: it would not keep to the source."""
    if version.bound and query.kernel.score == "relaxed":
        raise ArgumentError(
            'some subscriptions are bound to a source, and score="relaxed" counts any true predicate as a '
            "match: it would match events of other sources. Match each source with subscriptions of its own, "
            'or use score="relevance".'
        )


def match_task(source: Source, query: TableQuery, keys: list[str]) -> Task:
    """Match every event of a partition against all shards: the replicated plan."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        directory, version, asked = source.resolve(query)
        indexes = open_all(directory, version)
        seen = Seen(version, ignore_case=source.ignore_case)
        seen.place(indexes)
        answers = Answers(asked, indexes, version.number, keys)
        yield from answers.to_batches(seen.watch(batches))
        seen.report(directory, source.report_name, answers.matches)

    return task


class Seen:
    """Counts what passes through a task: rows, seconds, and values of a kind that no predicate expects."""

    def __init__(self, version: Version, *, ignore_case: bool = False) -> None:
        """Expect the kinds that the version's subscriptions ask for."""
        self.version = version
        self.ignore_case = ignore_case
        self.absent: list[str] | None = None
        """Attributes that no column holds: rules that came to a running stream may ask for any."""
        self.repaired = False
        """Whether the last batch had strings that are not UTF-8."""
        self.rows = 0
        self.visits = 0
        self.wrong: dict[str, int] = {}
        self.indexes: list[Index] = []
        self.device: str | None = None
        """Where batches are matched, if Spark gave the task a GPU."""
        self.started = time.monotonic()

    def place(self, indexes: list[Index]) -> None:
        """Match on the GPU that Spark gave this task, if it did."""
        self.indexes = indexes
        self.device = use_granted(indexes) or self.device

    def watch(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pass the batches on, with their columns named as the attributes."""
        for batch in batches:
            yield self.note(batch)

    def note(self, given: pa.RecordBatch) -> pa.RecordBatch:
        """Count one batch; it comes back with its columns named as the attributes."""
        batch = attribute_columns(given, self.version.attributes, ignore_case=self.ignore_case)
        if self.absent is None:
            self.absent = _absent(given, batch, self.version)
        self.rows += batch.num_rows
        asked = list(self.version.attributes.items())
        try:
            wrong, self.repaired = wrong_values(asked, split_keys(batch)[0]), False
        except ValueError:  # strings that are not UTF-8, most likely
            batch, self.repaired = with_valid_strings(batch), True
            wrong = wrong_values(asked, split_keys(batch)[0])
        for name, _, count in wrong:
            self.wrong[name] = self.wrong.get(name, 0) + count
        return batch

    def report(self, directory: Directory, run: str | None, matches: int, step: str = "match") -> None:
        """Leave a report for `tamis.spark.explain`; a task that is tried again replaces nothing.

        Of a stream, the reports of the last `BATCHES_REPORTED` micro-batches stay.
        """
        context = TaskContext.get()
        if context is None or run is None:
            return
        own, partition = micro_batch(), context.partitionId()
        batch = None if own is None else own[1]
        content = {
            "step": step,
            "version": self.version.number,
            "batch": batch,
            "partition": partition,
            "rows": self.rows,
            "matches": matches,
            "visits": self.visits,
            "wrong_types": self.wrong,
            "absent": self.absent or [],
            "device": failure(self.indexes) or self.device,
            "seconds": time.monotonic() - self.started,
        }
        folder = f"reports/{run}"
        with suppress(OSError, ArgumentError):
            if batch is None:  # each action on a DataFrame has stages of its own
                name = f"{step}-{context.stageId()}-{partition}.json"
            else:
                name = f"{step}-{batch:012d}-{partition}.json"
            directory.create(f"{folder}/{name}", json.dumps(content).encode())
            if batch is not None and batch >= BATCHES_REPORTED:
                directory.delete(f"{folder}/{step}-{batch - BATCHES_REPORTED:012d}-{partition}.json")


def _absent(given: pa.RecordBatch, batch: pa.RecordBatch, version: Version) -> list[str]:
    """Some attributes that no column of the events holds; where a map was spread, rows alone tell."""
    if any(name.startswith(SPREAD_PREFIX) for name in given.schema.names):
        return []
    return compared(version.attributes, arrow_paths(batch.schema)).names[:ABSENT_REPORTED]
