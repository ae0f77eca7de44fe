"""Events that are Parquet files, read by the tasks themselves: only paths travel through Spark.

Moving rows from the JVM to Python costs more than matching them where few match. Here a task reads the
columns that subscriptions ask for with Arrow, row group by row group; the key of an event is its file and
row.
"""

import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq

from tamis.errors import ArgumentError
from tamis.spark.built_index import BuiltIndex, result_columns
from tamis.spark.opened import open_shard
from tamis.spark.question import KEY_PREFIX, Answers, Question
from tamis.spark.session import on_executor
from tamis.spark.task import Seen, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEYS = ["path", "row"]
KEY_TYPES = "path string, row bigint"


def match_parquet(spark: "SparkSession", path: str, index: BuiltIndex, question: Question) -> "DataFrame":
    """Ask a question for the events in Parquet files: one file, or all below a folder."""
    if index.version.plan != "replicated":
        raise ArgumentError("files are matched where they are read: only the replicated plan can do that")
    pieces = on_executor(spark, lambda: row_groups(path))
    if question.now is None:
        question = replace(question, now=datetime.now(UTC))
    source = Source(index.url, index.version, uuid.uuid4().hex if index.keeps_reports else None)

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        directory, version, asked = source.resolve(question)
        shards = range(len(version.shards))
        indexes = [held for shard in shards for held in open_shard(directory, version, shard)]
        seen = Seen(version)
        answers = Answers(asked, indexes, version.number, KEYS)
        pieces = (piece for batch in batches for piece in batch.to_pylist())
        events = (rows for piece in pieces for rows in read_piece(piece, version))
        yield from answers.to_batches(seen.watch(events))
        seen.report(directory, source.run, answers.matches)

    work = spark.createDataFrame(pieces, "path string, row_group int, first bigint")
    columns = result_columns(question, KEY_TYPES, index.version.ids)
    return work.repartition(max(1, len(pieces)), "path", "row_group").mapInArrow(task, columns)


def row_groups(path: str) -> list[tuple[str, int, int]]:
    """The row groups of all files: path, number of the group, row that it begins with."""
    files, root = _located(path)
    found = files.get_file_info(root)
    if found.type == pyarrow.fs.FileType.NotFound:
        raise ArgumentError(f"there is no file or folder {path}")
    if found.type == pyarrow.fs.FileType.File:
        paths = [root]
    else:
        inside = files.get_file_info(pyarrow.fs.FileSelector(root, recursive=True))
        if any(entry.base_name == "_delta_log" for entry in inside):
            raise ArgumentError(
                f"{path} is a Delta table: its folder also holds files of older versions. Read it with "
                'spark.read.format("delta") and use tamis.spark.match.'
            )
        paths = sorted(
            entry.path
            for entry in inside
            if entry.is_file and entry.path.endswith(".parquet") and entry.base_name[0] not in "_."
        )
    if not paths:
        raise ArgumentError(f"{path} holds no Parquet files")
    partitioned = [name for name in paths if "=" in name[len(root) :].rpartition("/")[0]]
    if partitioned:
        raise ArgumentError(
            f"{path} is partitioned by folders, and those columns are not in the files. "
            "Read it with spark.read.parquet and use tamis.spark.match."
        )
    pieces = []
    for name in paths:
        metadata = pq.ParquetFile(name, filesystem=files).metadata
        first = 0
        for group in range(metadata.num_row_groups):
            pieces.append((_shown(path, root, name), group, first))
            first += metadata.row_group(group).num_rows
    return pieces


def read_piece(piece: dict[str, Any], version: Any) -> Iterator[pa.RecordBatch]:
    """The events of a row group, with only the columns that are asked for, and their keys."""
    files, name = _located(piece["path"])
    # As Spark reads its own old timestamps; nanoseconds would not reach the year 9999.
    parquet = pq.ParquetFile(name, filesystem=files, coerce_int96_timestamp_unit="us")
    tops = {attribute.split(".", 1)[0] for attribute in version.attributes} | set(version.attributes)
    columns = [column for column in parquet.schema_arrow.names if column in tops]
    row = piece["first"]
    batches = parquet.iter_batches(batch_size=65_536, row_groups=[piece["row_group"]], columns=columns)
    for batch in batches:
        rows = pa.array(range(row, row + batch.num_rows), pa.int64())
        paths = pa.repeat(pa.scalar(piece["path"]), batch.num_rows)
        held = dict(zip(batch.schema.names, batch.columns, strict=True))
        yield pa.record_batch({f"{KEY_PREFIX}0": paths, f"{KEY_PREFIX}1": rows, **held})
        row += batch.num_rows


def _located(path: str) -> tuple[Any, str]:
    if "://" not in path:
        return pyarrow.fs.LocalFileSystem(), path
    located: tuple[Any, str] = pyarrow.fs.FileSystem.from_uri(path)
    return located


def _shown(asked: str, root: str, name: str) -> str:
    """The path of a file as the caller writes paths."""
    return asked.rstrip("/") + name[len(root.rstrip("/")) :] if name != root else asked
