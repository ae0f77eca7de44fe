"""Matching from Spark SQL: one scalar function and one table function.

```sql
SELECT * FROM rules CROSS JOIN events WHERE tamis_matches(rules.expression, to_json(struct(events.*)));
SELECT * FROM tamis_match(TABLE(events), '/data/rules-index', 'event_id');
SELECT * FROM tamis_match(TABLE(events), '/data/rules-index', 'event_id', k => 10, score => 'priority');
```

The scalar function evaluates one expression, for rules that are a column; the table function uses an index
that `tamis.spark.build` or a `SubscriptionStore` has written, in batches.
"""

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.types import (
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    Row,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
)
from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult

from tamis.errors import ArgumentError
from tamis.expr import parse
from tamis.spark.matching.answer import match_query
from tamis.spark.matching.slices import MOST_ROWS
from tamis.spark.matching.task import lease, refuse_relaxed_sources
from tamis.spark.store.directory import open_directory
from tamis.spark.store.open_shards import open_all
from tamis.spark.store.versions import Version, read_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS_AT_ONCE = 4096


def register(spark: "SparkSession") -> None:
    '''Give a session the SQL functions `tamis_matches` and `tamis_match`.

    >>> from pyspark.sql import SparkSession
    >>> spark = SparkSession.builder.getOrCreate()
    >>> register(spark)
    >>> spark.sql("""SELECT tamis_matches('age > 21', '{"age": 27}') AS matched""").first().matched
    True
    '''
    from pyspark.sql.functions import udf, udtf  # noqa: PLC0415 - they need a session

    spark.udf.register("tamis_matches", udf(_matches, "boolean"))
    spark.udtf.register("tamis_match", udtf(MatchTable))  # type: ignore[arg-type]


def matches(expression: str | None, event: Any) -> bool | None:
    """Whether an event, as JSON text or as a struct, makes an expression true.

    False when it is false or undefined, null when either argument is.

    >>> matches("age > 21", '{"age": 27}'), matches("age > 21", "{}"), matches(None, "{}")
    (True, False, None)
    """
    if expression is None or event is None:
        return None
    # Spark hands over timestamps as the worker's local time, and says nothing of their type.
    record = as_utc(event.asDict(recursive=True), None) if isinstance(event, Row) else event
    return _parsed(expression).evaluate(record) is True


def _matches(expression, event):  # type: ignore[no-untyped-def]
    """`matches` without the hints by which Spark would guess another kind of function."""
    return matches(expression, event)


def as_utc(value: Any, data_type: DataType | None) -> Any:
    """A value with its local times as UTC; times without a zone stay, where the type tells them apart.

    >>> from datetime import datetime
    >>> as_utc({"at": datetime(2026, 1, 31, 12)}, None)["at"].tzinfo
    datetime.timezone.utc
    >>> as_utc(datetime(2026, 1, 31, 12), TimestampNTZType())
    datetime.datetime(2026, 1, 31, 12, 0)
    """
    if isinstance(value, datetime) and not isinstance(data_type, TimestampNTZType):
        return value.astimezone(UTC)
    if isinstance(value, dict):
        fields = {field.name: field.dataType for field in getattr(data_type, "fields", ())}
        inner = getattr(data_type, "valueType", None)
        return {name: as_utc(part, fields.get(name, inner)) for name, part in value.items()}
    if isinstance(value, list):
        return [as_utc(part, getattr(data_type, "elementType", None)) for part in value]
    return value


@lru_cache(maxsize=100_000)
def _parsed(expression: str) -> Any:
    return parse(expression)


@dataclass
class Asked(AnalyzeResult):
    """What the table function was called with, resolved once for all tasks."""

    path: str = ""
    version: str = ""
    key: str = ""
    k: int | None = None
    score: str | None = None
    columns: str = ""
    """The type of the events, as JSON."""
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
        return Asked(
            schema=StructType([*fields, StructField("version", LongType())]),
            path=url,
            version=version.to_json().decode(),
            key=key_column,
            k=best,
            score=None if score is None else score.value,
            columns=table.json(),
            run=run,
        )

    def __init__(self, asked: Asked) -> None:
        """Open the index; called once for each partition of the table."""
        self.asked = asked
        self.version = Version.from_json(asked.version.encode())
        directory = open_directory(asked.path)
        lease(directory, asked.run, self.version)
        self.columns = StructType.fromJson(json.loads(asked.columns))
        self.indexes = open_all(directory, self.version)
        self.waiting: list[dict[str, Any]] = []

    def eval(self, events: Row, *_: Any) -> Iterator[tuple[Any, ...]]:
        """Take one event; answers come a few thousand events at a time."""
        self.waiting.append(events.asDict(recursive=True))
        if len(self.waiting) >= ROWS_AT_ONCE:
            yield from self._answers()

    def terminate(self) -> Iterator[tuple[Any, ...]]:
        """Answer the events that still wait."""
        yield from self._answers()

    def _answers(self) -> Iterator[tuple[Any, ...]]:
        asked = self.asked
        query = match_query({"k": asked.k, "score": asked.score}, {})
        refuse_relaxed_sources(self.version, query)
        events, self.waiting = self.waiting, []
        if not events:
            return
        names = ["event", "subscription", *(["score", "rank"] if asked.k is not None else [])]
        batch = _batch([as_utc(event, self.columns) for event in events])
        for found in query.pairs_in(self.indexes).of(batch):
            for rows in found.to_batches(max_chunksize=MOST_ROWS):
                for event, *rest in zip(*(rows.column(name).to_pylist() for name in names), strict=True):
                    yield (events[event][asked.key], *rest, self.version.number)


def _batch(events: list[dict[str, Any]]) -> pa.RecordBatch:
    """Events as a batch; columns of bytes, which no predicate can read, are left out."""
    batch = pa.RecordBatch.from_pylist(events)
    return batch.select([field.name for field in batch.schema if not pa.types.is_binary(field.type)])


def _id_type(version: Version) -> DataType:
    return LongType() if version.ids == "int" else StringType()
