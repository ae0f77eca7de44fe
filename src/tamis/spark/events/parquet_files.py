"""Events that are Parquet files, read by the tasks themselves: only paths travel through Spark.

If few events match, moving rows from the JVM to Python costs more than matching them. If many match, their
paths on the way back cost more than that saves. A task reads the columns that subscriptions use with Arrow,
row group by row group; the key of an event is its file and row. For a Delta table, it reads the files of the
current version, if they alone define its contents.
"""

import heapq
import json
import uuid
import warnings
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq

from tamis.errors import ArgumentError
from tamis.expr import ALL_STRINGS
from tamis.spark.built_index import BuiltIndex, result_columns, with_report
from tamis.spark.events.absent_attributes import compared
from tamis.spark.events.delta_files import current_rows, file_paths, refuse_deleted
from tamis.spark.events.names import arrow_paths, ignores_case, spellings
from tamis.spark.matching.answer import KEY_PREFIX, Answers, TableQuery
from tamis.spark.matching.task import Seen, Source, refuse_relaxed_sources
from tamis.spark.plans.by_number import gather_by_number
from tamis.spark.session import cluster, on_executor, wants_reports
from tamis.store.open_shards import open_all

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FOOTERS_PER_TASK = 32
"""Files whose footers one task reads."""

BYTES_PER_TASK = 64 << 20
TASKS_PER_CORE = 2
"""Small row groups share tasks, of which each core gets so many: a task takes 0.1 s of a core by itself."""

MOST_TASKS = 10_000

KEYS = ["path", "row"]
KEY_TYPES = "path string, row bigint"


def match_parquet(spark: "SparkSession", path: str, index: BuiltIndex, query: TableQuery) -> "DataFrame":
    """Ask a query for the events in Parquet files: one file, or all below a folder.

    Called by a function that users call: a warning about misspelt attributes points to their line.
    """
    if index.version.plan != "replicated":
        raise ArgumentError("files are matched where they are read: only the replicated plan can do that")
    pieces, held = row_groups(spark, path)
    ignore_case = ignores_case(spark)
    absent = compared(index.version.attributes, held, ignore_case=ignore_case)
    if absent.meant:
        warnings.warn(absent.warning() or "", stacklevel=3)
    refuse_relaxed_sources(index.version, query)
    query = query.at(datetime.now(UTC) if index.moment is None else index.moment)
    run = uuid.uuid4().hex if index.keeps_reports else None
    source = Source(index.url, index.version, run, ignore_case=ignore_case, reports=wants_reports(spark))

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        directory, version, asked = source.resolve(query)
        indexes = open_all(directory, version)
        seen = Seen(version, ignore_case=ignore_case)
        seen.place(indexes)
        answers = Answers(asked, indexes, version.number, KEYS)
        pieces = (Piece(**piece) for batch in batches for piece in batch.drop_columns("task").to_pylist())
        events = (rows for piece in pieces for rows in read_piece(piece, version, ignore_case=ignore_case))
        yield from answers.to_batches(seen.watch(events))
        seen.report(directory, source.report_name, answers.matches)

    tasks, numbers = shared_out([piece.bytes for piece in pieces], cluster(spark).tasks)
    numbered = [(number, *piece) for number, piece in zip(numbers, pieces, strict=True)]
    columns = "task int, path string, row_group int, first bigint, rows bigint, bytes bigint"
    work = spark.createDataFrame(numbered, columns)
    result = gather_by_number(work, tasks, "task").mapInArrow(
        task, result_columns(query, KEY_TYPES, index.version.ids)
    )
    return with_report(result, index.report(spark, source.report_name, [*filter(None, [absent.warning()])]))


class Piece(NamedTuple):
    """A row group: its file, its number there, the row that it begins with, how many it has, and its size."""

    path: str
    row_group: int
    first: int
    rows: int
    bytes: int


def shared_out(sizes: Sequence[int], cores: int) -> tuple[int, list[int]]:
    """How many tasks read pieces of these sizes, and the task of each: the largest first, to who has least.

    >>> shared_out([5, 1, 1, 4], cores=1)
    (2, [0, 1, 0, 1])
    """
    wanted = max(cores * TASKS_PER_CORE, sum(sizes) // BYTES_PER_TASK)
    tasks = max(1, min(len(sizes), wanted, MOST_TASKS))
    loads = [(0, task) for task in range(tasks)]
    numbers = [0] * len(sizes)
    for piece in sorted(range(len(sizes)), key=lambda piece: (-sizes[piece], piece)):
        load, task = heapq.heappop(loads)
        numbers[piece] = task
        heapq.heappush(loads, (load + sizes[piece], task))
    return tasks, numbers


Columns = dict[str, bool]
"""The attributes that files can hold, by their dotted paths, and whether each is a map."""


def row_groups(spark: "SparkSession", path: str) -> tuple[list[Piece], Columns]:
    """The row groups of a Parquet file, of all below a folder, or of a Delta table's current version."""

    def look() -> list[str] | None:
        files, root = _located(path)
        log = files.get_file_info(f"{root.rstrip('/')}/_delta_log")
        if log.type == pyarrow.fs.FileType.Directory:
            return None
        return [_shown(path, root, name) for name in _parquet_files(path)]

    found = on_executor(spark, look)
    return _delta_row_groups(spark, path) if found is None else _look_into_all(spark, found)


def _look_into_all(spark: "SparkSession", names: list[str]) -> tuple[list[Piece], Columns]:
    """The row groups and the columns of files, whose footers are read side by side where there are many."""
    if len(names) <= FOOTERS_PER_TASK:
        pieces, columns = on_executor(spark, lambda: _look_into(names))
        return [Piece(*piece) for piece in pieces], columns

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.record_batch({"found": [json.dumps(_look_into(batch.column("path").to_pylist()))]})

    work = spark.createDataFrame([(name,) for name in names], "path string")
    parts = work.repartition(-(-len(names) // FOOTERS_PER_TASK)).mapInArrow(task, "found string").collect()
    all_pieces: list[Piece] = []
    all_columns: Columns = {}
    for part in parts:
        pieces, columns = json.loads(part["found"])
        all_pieces += [Piece(*piece) for piece in pieces]
        all_columns |= columns
    return sorted(all_pieces), all_columns


def _delta_row_groups(spark: "SparkSession", path: str) -> tuple[list[Piece], Columns]:
    """The row groups of a Delta table's current files, if the files alone say what the table holds."""
    rows = current_rows(spark, path)
    names = file_paths(rows)
    pieces, columns = _look_into_all(spark, names)
    refuse_deleted(rows, path, sum(piece.rows for piece in pieces))
    return pieces, columns


def _parquet_files(path: str) -> list[str]:
    files, root = _located(path)
    found = files.get_file_info(root)
    if found.type == pyarrow.fs.FileType.NotFound:
        raise ArgumentError(f"there is no file or folder {path}")
    if found.type == pyarrow.fs.FileType.File:
        return [root]
    inside = files.get_file_info(pyarrow.fs.FileSelector(root, recursive=True))
    paths = sorted(
        entry.path
        for entry in inside
        if entry.is_file and entry.path.endswith(".parquet") and entry.base_name[0] not in "_."
    )
    if not paths:
        raise ArgumentError(f"{path} holds no Parquet files")
    if any("=" in name[len(root) :].rpartition("/")[0] for name in paths):
        raise ArgumentError(
            f"{path} is partitioned by folders, and those columns are not in the files. "
            "Read it with spark.read.parquet and use tamis.spark.match."
        )
    return paths


def _look_into(names: Iterable[str]) -> tuple[list[Piece], Columns]:
    """The row groups and the columns of files, named as the caller writes paths."""
    pieces: list[Piece] = []
    columns: Columns = {}
    for shown in names:
        files, name = _located(shown)
        parquet = pq.ParquetFile(name, filesystem=files)
        columns |= arrow_paths(parquet.schema_arrow)
        first = 0
        for group in range(parquet.metadata.num_row_groups):
            found = parquet.metadata.row_group(group)
            pieces.append(Piece(shown, group, first, found.num_rows, found.total_byte_size))
            first += found.num_rows
    return pieces, columns


def read_piece(piece: Piece, version: Any, *, ignore_case: bool = False) -> Iterator[pa.RecordBatch]:
    """The events of a row group, with only the columns that are asked for, and their keys."""
    files, name = _located(piece.path)
    # As Spark reads its own old timestamps; nanoseconds would not reach the year 9999.
    parquet = pq.ParquetFile(name, filesystem=files, coerce_int96_timestamp_unit="us")
    tops = {attribute.split(".", 1)[0] for attribute in version.attributes} | set(version.attributes)
    if ignore_case:
        spelt = spellings(version.attributes, arrow_paths(parquet.schema_arrow)).values()
        tops |= {path.split(".", 1)[0] for path in spelt} | set(spelt)
    if ALL_STRINGS in version.attributes:
        tops |= {field.name for field in parquet.schema_arrow if _may_hold_strings(field.type)}
    columns = [column for column in parquet.schema_arrow.names if column in tops]
    row = piece.first
    groups = [piece.row_group]
    # Spark gives a task one core.
    for batch in parquet.iter_batches(65_536, row_groups=groups, columns=columns, use_threads=False):
        rows = pa.array(np.arange(row, row + batch.num_rows))
        paths = pa.repeat(pa.scalar(piece.path), batch.num_rows)
        held = dict(zip(batch.schema.names, batch.columns, strict=True))
        yield pa.record_batch({f"{KEY_PREFIX}0": paths, f"{KEY_PREFIX}1": rows, **held})
        row += batch.num_rows


def _may_hold_strings(of: pa.DataType) -> bool:
    return not (pa.types.is_primitive(of) or pa.types.is_boolean(of) or pa.types.is_binary(of))


def _located(path: str) -> tuple[Any, str]:
    """The file system of a path, and the path there.

    Spark takes addresses as they are, Arrow wants odd characters encoded. What follows a `?` is for Arrow,
    such as the region of a bucket.

    >>> _located("file:///data/my table/100%.parquet")[1]
    '/data/my table/100%.parquet'
    """
    if "://" not in path:
        return pyarrow.fs.LocalFileSystem(), path
    protocol, _, rest = path.partition("://")
    rest, mark, options = rest.partition("?")
    protocol = "s3" if protocol in ("s3a", "s3n") else protocol
    try:
        located: tuple[Any, str] = pyarrow.fs.FileSystem.from_uri(
            f"{protocol}://{quote(rest, safe='/@:')}{mark}{options}"
        )
    except pa.ArrowInvalid as unknown:
        raise ArgumentError(
            f"{path}: {unknown}. Files are read by path or from file://, hdfs://, s3://, gs:// and abfss://; "
            "for others, use spark.read.parquet and tamis.spark.match."
        ) from unknown
    return located


def _shown(asked: str, root: str, name: str) -> str:
    """The path of a file as the caller writes paths.

    >>> _shown("s3://bucket/events?region=eu-west-1", "bucket/events", "bucket/events/part 0.parquet")
    's3://bucket/events/part 0.parquet?region=eu-west-1'
    """
    if name == root:
        return asked
    base, mark, options = asked.partition("?") if "://" in asked else (asked, "", "")
    return base.rstrip("/") + name[len(root.rstrip("/")) :] + mark + options
