"""The table function `tamis_match` of Spark SQL, for releases of Spark whose table functions take tables.

Only columns that some rule uses leave the JVM. From Spark 4.1 on, a function receives Arrow batches
(`ArrowMatchTable`); Spark 4.0 passes rows one by one (`RowMatchTable`).

Spark's own `arrow_udtf` refuses functions whose columns depend on their arguments, as these do. That check is
the only obstacle, so `match_table` marks an ordinary function as one that takes Arrow.
"""

import json
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql.functions import udtf
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
from pyspark.util import PythonEvalType

from tamis.errors import ArgumentError
from tamis.expr import ALL_STRINGS
from tamis.spark.events.columns import asked_values, kind_of, quoted, refuse_taken, strings_of
from tamis.spark.events.names import named_as_asked, spark_paths, spellings
from tamis.spark.matching.answer import KEY_PREFIX, STRINGS_PREFIX, Answers, match_query
from tamis.spark.matching.bounded_batches import MOST_ROWS
from tamis.spark.matching.gpu import use_granted
from tamis.spark.matching.task import Seen, lease, refuse_relaxed_sources
from tamis.spark.sql import as_utc
from tamis.store.directory import open_directory
from tamis.store.open_shards import open_all
from tamis.store.versions import Version, read_version

ROWS_AT_ONCE = 4096


_RESULT = ("subscription", "score", "rank", "version")


@dataclass
class AnalyzedCall(AnalyzeResult):
    """What the table function was called with, resolved once for all tasks."""

    path: str = ""
    version: str = ""
    key: str = ""
    k: int | None = None
    score: str | None = None
    now: int | None = None
    """The moment of the query, in UTC microseconds: no task may see another."""
    columns: str = ""
    """For rows, the types of their columns as JSON: the key, then attributes; strings follow them."""
    run: str = ""
    """A name for the query, under which it leases its version."""


def _analyzed(
    events: AnalyzeArgument,
    path: AnalyzeArgument,
    key: AnalyzeArgument,
    k: AnalyzeArgument | None,
    score: AnalyzeArgument | None,
) -> tuple[AnalyzedCall, Version]:
    """Check the arguments and fix the version; the result's columns depend on them."""
    if not events.isTable:
        raise ArgumentError("the first argument of tamis_match is a table: TABLE(events)")
    for name, argument in (("path", path), ("key", key)):
        if not argument.isConstantExpression or not isinstance(argument.value, str):
            raise ArgumentError(f"the argument {name} of tamis_match is a constant string")
    url, key_column = str(path.value), str(key.value)
    types = _types(events)
    if key_column not in types:
        raise ArgumentError(f"the table has no column {key_column!r}; it has {', '.join(types)}")
    refuse_taken([key_column], _RESULT)
    directory, run = open_directory(url), uuid.uuid4().hex
    version = read_version(directory)
    lease(directory, run, version)
    best = None if k is None or k.value is None else int(k.value)
    fields = [
        StructField(key_column, types[key_column]),
        StructField("subscription", LongType() if version.ids == "int" else StringType()),
    ]
    if best is not None:
        fields += [StructField("score", DoubleType()), StructField("rank", IntegerType())]
    asked = AnalyzedCall(
        schema=StructType([*fields, StructField("version", LongType())]),
        path=url,
        version=version.to_json().decode(),
        key=key_column,
        k=best,
        score=None if score is None else score.value,
        now=time.time_ns() // 1000,
        run=run,
    )
    return asked, version


def _types(events: AnalyzeArgument) -> dict[str, DataType]:
    table: Any = events.dataType
    return {field.name: field.dataType for field in table.fields}


class _Opened:
    """The index that a task of the function asks."""

    ignore_case: ClassVar[bool] = True
    """Whether names mean columns in any case, as `spark.sql.caseSensitive` of the session says."""

    def __init__(self, asked: AnalyzedCall) -> None:
        """Open it; called once for each partition of the table."""
        self.asked = asked
        self.version = Version.from_json(asked.version.encode())
        directory = open_directory(asked.path)
        lease(directory, asked.run, self.version)
        self.indexes = open_all(directory, self.version)
        use_granted(self.indexes)
        query = match_query({"k": asked.k, "score": asked.score}, {})
        self.query = query if asked.now is None else query.at(asked.now)
        refuse_relaxed_sources(self.version, self.query)


class ArrowMatchTable(_Opened):
    """The table function `tamis_match(TABLE(events), path, key [, k] [, score])` over Arrow batches."""

    @classmethod
    def analyzed(
        cls,
        events: AnalyzeArgument,
        path: AnalyzeArgument,
        key: AnalyzeArgument,
        k: AnalyzeArgument | None,
        score: AnalyzeArgument | None,
    ) -> AnalyzeResult:
        """Check the arguments, and select what tasks need: the key and what rules ask for."""
        asked, version = _analyzed(events, path, key, k, score)
        table: Any = events.dataType
        values, _ = asked_values(table, version.attributes, ignore_case=cls.ignore_case)
        keys = {f"{KEY_PREFIX}0": quoted(asked.key)}
        asked.select = [SelectedColumn(value, alias) for alias, value in (keys | values).items()]
        return asked

    def __init__(self, asked: AnalyzedCall) -> None:
        """Open the index; called once for each partition of the table."""
        super().__init__(asked)
        self.answers = Answers(self.query, self.indexes, self.version.number, [asked.key])
        self.seen = Seen(self.version, ignore_case=self.ignore_case)

    def eval(
        self, events: pa.RecordBatch, path: Any = None, key: Any = None, k: Any = None, score: Any = None
    ) -> Iterator[pa.RecordBatch]:
        """Answer a batch of events with batches of matches; `analyze` has read the other arguments."""
        del path, key, k, score
        yield from self.answers.to_batches([self.seen.note(events)])


def match_table(*, ignore_case: bool) -> Any:
    """The function for a session, as `spark.udtf.register` takes it."""
    takes_arrow = getattr(PythonEvalType, "SQL_ARROW_UDTF", None)
    ignores = ignore_case
    base: Any = RowMatchTable if takes_arrow is None else ArrowMatchTable

    # A class of its own travels with its setting: Spark calls `analyze` where there is no session to ask.
    class MatchTable(base):  # type: ignore[misc]
        ignore_case: ClassVar[bool] = ignores

        @staticmethod
        def analyze(
            events: AnalyzeArgument,
            path: AnalyzeArgument,
            key: AnalyzeArgument,
            k: AnalyzeArgument | None = None,
            score: AnalyzeArgument | None = None,
        ) -> AnalyzeResult:
            asked: AnalyzeResult = MatchTable.analyzed(events, path, key, k, score)
            return asked

    function: Any = udtf(MatchTable)
    if takes_arrow is not None:
        function.evalType = takes_arrow
    return function


class RowMatchTable(_Opened):
    """The same over rows, which answers a few thousand of them at a time."""

    @classmethod
    def analyzed(
        cls,
        events: AnalyzeArgument,
        path: AnalyzeArgument,
        key: AnalyzeArgument,
        k: AnalyzeArgument | None,
        score: AnalyzeArgument | None,
    ) -> AnalyzeResult:
        """Check the arguments, and select what tasks need: the key and what rules ask for."""
        asked, version = _analyzed(events, path, key, k, score)
        types = _types(events)
        attributes = set(version.attributes)
        if cls.ignore_case:
            table: Any = events.dataType
            attributes |= set(spellings(attributes, spark_paths(table)).values())
        selected = [asked.key]
        selected += [name for name in types if is_asked_for(name, types[name], attributes)]
        texts = _string_columns(types) if ALL_STRINGS in version.attributes else []
        taken = [*(quoted(name) for name in selected), *texts]
        # Others stay in the JVM: Spark has types that it cannot hand to a table function.
        asked.select = [SelectedColumn(value, f"c{at}") for at, value in enumerate(taken)]
        asked.columns = StructType([StructField(name, types[name]) for name in selected]).json()
        return asked

    def __init__(self, asked: AnalyzedCall) -> None:
        """Open the index; called once for each partition of the table."""
        super().__init__(asked)
        self.columns = StructType.fromJson(json.loads(asked.columns)).fields
        self.waiting: list[Row] = []

    def eval(
        self, events: Row, path: Any = None, key: Any = None, k: Any = None, score: Any = None
    ) -> Iterator[tuple[Any, ...]]:
        """Take one event; answers come a few thousand events at a time."""
        del path, key, k, score
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
        if self.ignore_case:
            batch = named_as_asked(batch, self.version.attributes)
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
