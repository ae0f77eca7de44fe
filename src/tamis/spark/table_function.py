"""The table function `tamis_match` of Spark SQL, for releases of Spark whose table functions take tables.

Spark hands it row after row. Only columns that some rule asks for are handed over: others stay in the JVM.
"""

import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    Row,
    StringType,
    StructField,
    StructType,
)
from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult, SelectedColumn

from tamis.errors import ArgumentError
from tamis.expr import ALL_STRINGS
from tamis.spark.events.columns import kind_of, quoted, strings_of
from tamis.spark.matching.answer import KEY_PREFIX, STRINGS_PREFIX, match_query
from tamis.spark.matching.bounded_batches import MOST_ROWS
from tamis.spark.matching.task import lease, refuse_relaxed_sources
from tamis.spark.sql import as_utc
from tamis.store.directory import open_directory
from tamis.store.open_shards import open_all
from tamis.store.versions import Version, read_version

ROWS_AT_ONCE = 4096


@dataclass
class Asked(AnalyzeResult):
    """What the table function was called with, resolved once for all tasks."""

    path: str = ""
    version: str = ""
    k: int | None = None
    score: str | None = None
    columns: str = ""
    """The types of the columns that are asked for, as JSON: the key, then attributes; strings follow them."""
    run: str = ""
    """A name for the query, under which it leases its version."""


class MatchTable:
    """The table function `tamis_match(TABLE(events), path, key [, k] [, score])`."""

    @staticmethod
    def analyze(
        events: AnalyzeArgument,
        path: AnalyzeArgument,
        key: AnalyzeArgument,
        k: AnalyzeArgument | None = None,
        score: AnalyzeArgument | None = None,
    ) -> AnalyzeResult:
        """Check the arguments and fix the version; the result's columns depend on them."""
        if not events.isTable:
            raise ArgumentError("the first argument of tamis_match is a table: TABLE(events)")
        for name, argument in (("path", path), ("key", key)):
            if not argument.isConstantExpression or not isinstance(argument.value, str):
                raise ArgumentError(f"the argument {name} of tamis_match is a constant string")
        url, key_column = str(path.value), str(key.value)
        table: Any = events.dataType
        columns = {field.name: field.dataType for field in table.fields}
        if key_column not in columns:
            raise ArgumentError(f"the table has no column {key_column!r}; it has {', '.join(columns)}")
        directory, run = open_directory(url), uuid.uuid4().hex
        version = read_version(directory)
        lease(directory, run, version)
        best = None if k is None or k.value is None else int(k.value)
        fields = [
            StructField(key_column, columns[key_column]),
            StructField("subscription", _id_type(version)),
        ]
        if best is not None:
            fields += [StructField("score", DoubleType()), StructField("rank", IntegerType())]
        asked = [name for name in columns if is_asked_for(name, columns[name], version.attributes)]
        selected = [key_column, *asked]
        texts = _string_columns(columns) if ALL_STRINGS in version.attributes else []
        taken = [*(quoted(name) for name in selected), *texts]
        return Asked(
            schema=StructType([*fields, StructField("version", LongType())]),
            # Others stay in the JVM: Spark has types that it cannot hand to a table function.
            select=[SelectedColumn(value, f"c{at}") for at, value in enumerate(taken)],
            path=url,
            version=version.to_json().decode(),
            k=best,
            score=None if score is None else score.value,
            columns=StructType([StructField(name, columns[name]) for name in selected]).json(),
            run=run,
        )

    def __init__(self, asked: Asked) -> None:
        """Open the index; called once for each partition of the table."""
        self.asked = asked
        self.version = Version.from_json(asked.version.encode())
        directory = open_directory(asked.path)
        lease(directory, asked.run, self.version)
        self.columns = StructType.fromJson(json.loads(asked.columns)).fields
        self.indexes = open_all(directory, self.version)
        self.query = match_query({"k": asked.k, "score": asked.score}, {})
        refuse_relaxed_sources(self.version, self.query)
        self.waiting: list[Row] = []

    def eval(self, events: Row, *_: Any) -> Iterator[tuple[Any, ...]]:
        """Take one event; answers come a few thousand events at a time."""
        self.waiting.append(events)
        if len(self.waiting) >= ROWS_AT_ONCE:
            yield from self._answers()

    def terminate(self) -> Iterator[tuple[Any, ...]]:
        """Answer the events that still wait."""
        yield from self._answers()

    def _answers(self) -> Iterator[tuple[Any, ...]]:
        events, self.waiting = self.waiting, []
        if not events:
            return
        keys, *values = zip(*events, strict=True)
        attributes = self.columns[1:]
        columns = {
            field.name: pa.array(_plain(column, field.dataType))
            for field, column in zip(attributes, values, strict=False)
        }
        if texts := values[len(attributes) :]:
            strings = [list(_strings(row)) for row in zip(*texts, strict=True)]
            columns[STRINGS_PREFIX] = pa.array(strings, pa.list_(pa.string()))
        batch = pa.record_batch(columns or {KEY_PREFIX: pa.nulls(len(events))})
        names = ["event", "subscription", *(["score", "rank"] if self.asked.k is not None else [])]
        version = self.version.number
        for found in self.query.pairs_in(self.indexes).of(batch):
            for rows in found.to_batches(max_chunksize=MOST_ROWS):
                for event, *rest in zip(*(rows.column(name).to_pylist() for name in names), strict=True):
                    yield (keys[event], *rest, version)


def is_asked_for(name: str, data_type: DataType, attributes: Iterable[str]) -> bool:
    """Whether some rule asks for a column, or for something in it, and can read it.

    >>> from pyspark.sql.types import BinaryType
    >>> [is_asked_for("x", kind, ["x.y"]) for kind in (StructType(), LongType(), BinaryType())]
    [True, False, False]
    """
    inside = any(attribute.startswith(f"{name}.") for attribute in attributes)
    if isinstance(data_type, StructType):
        return inside or name in attributes
    if isinstance(data_type, MapType):
        return isinstance(data_type.keyType, StringType) and (inside or name in attributes)
    element = data_type.elementType if isinstance(data_type, ArrayType) else data_type
    return name in attributes and (isinstance(element, StructType) or kind_of(element) is not None)


def _string_columns(columns: dict[str, DataType]) -> list[str]:
    """The strings of each column that can hold some, as SQL."""
    texts = (strings_of(quoted(name), data_type) for name, data_type in columns.items())
    return [text for text in texts if text is not None]


def _strings(value: Any) -> Iterator[str]:
    """Every string in records and arrays.

    >>> list(_strings((Row(a="x", b=["y", None]), None, "z")))
    ['x', 'y', 'z']
    """
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple | list):
        for inner in value:
            yield from _strings(inner)


def _plain(values: Sequence[Any], data_type: DataType) -> Sequence[Any]:
    """The values of a column as Arrow reads them: records as dicts, times as UTC."""
    if kind_of(data_type) not in (None, "timestamp"):
        return values
    dicts = (value.asDict(recursive=True) if isinstance(value, Row) else value for value in values)
    return [as_utc(value, data_type) for value in dicts]


def _id_type(version: Version) -> DataType:
    return LongType() if version.ids == "int" else StringType()
