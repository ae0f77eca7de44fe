"""Matching from Spark SQL: one scalar function and one table function.

```sql
SELECT * FROM rules CROSS JOIN events WHERE tamis_matches(rules.expression, to_json(struct(events.*)));
SELECT * FROM tamis_match(TABLE(events), '/data/rules-index', 'event_id');
SELECT * FROM tamis_match(TABLE(events), '/data/rules-index', 'event_id', k => 10, score => 'priority');
SELECT event_id, inline(ads(struct(age, country))) FROM events;  -- after register_match(spark, "ads", index)
```

`tamis_matches` evaluates one expression, for rules that are a column. `tamis_match` uses an index that
`tamis.spark.build` or a `SubscriptionStore` has written; Spark hands it row after row, so it is for small
tables. A function that `register_match` makes takes Arrow batches, and is as fast as a DataFrame.
"""

import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

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
    TimestampNTZType,
)
from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult, SelectedColumn

from tamis.errors import ArgumentError
from tamis.expr import parse
from tamis.spark.events.columns import kind_of, quoted
from tamis.spark.events.names import ignores_case
from tamis.spark.matching.answer import KEY_PREFIX, match_query
from tamis.spark.matching.slices import MOST_ROWS
from tamis.spark.matching.task import Source, lease, refuse_relaxed_sources
from tamis.spark.plans.shape import list_function, refuse_lists
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


def register_match(
    spark: "SparkSession",
    name: str,
    subscriptions: Any,
    *,
    k: int | None = None,
    score: Any = None,
    tags: Iterable[str] | None = None,
    tags_all: Iterable[str] | None = None,
    tags_none: Iterable[str] | None = None,
) -> None:
    """Give a session an SQL function: from a struct, an event, to the list of its matches.

    The list has structs of `id`, and with `k` of `id`, `score` and `rank`, the best first: what
    `match_column` gives, as fast as it. Name the columns that rules ask for, `ads(struct(age, country))`: all
    of them travel to Python. The version is the latest when this is called; in a streaming query, that of the
    micro-batch.

    >>> from pyspark.sql import SparkSession
    >>> import tamis.spark
    >>> spark = SparkSession.builder.getOrCreate()
    >>> rules = spark.createDataFrame([("a", "x > 1"), ("b", "x > 2")], "id string, expression string")
    >>> register_match(spark, "ads", tamis.spark.build(rules))
    >>> events = spark.createDataFrame([(1, 2), (2, 3)], "event_id int, x int")
    >>> found = events.selectExpr("event_id", "inline(ads(struct(x)))")
    >>> sorted(tuple(row) for row in found.collect())
    [(1, 'a'), (2, 'a'), (2, 'b')]
    """
    from tamis.spark.api import index_of  # noqa: PLC0415 - it offers this

    index = index_of(spark, subscriptions)
    selection = {"tags": tags, "tags_all": tags_all, "tags_none": tags_none}
    query = match_query({"k": k, "score": score}, selection)
    refuse_lists(index.version.plan, query)
    refuse_relaxed_sources(index.version, query)
    run = uuid.uuid4().hex if index.keeps_reports else None
    source = Source(
        index.url,
        index.version,
        run,
        ids=index.version.ids,
        ignore_case=ignores_case(spark),
        follows=index.follows,
    )
    function: Any = list_function(source, query, index.version.ids, versions=False)
    spark.udf.register(name, function)


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
    k: int | None = None
    score: str | None = None
    columns: str = ""
    """The types of the columns that are asked for, as JSON: the key, then attributes."""
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
        return Asked(
            schema=StructType([*fields, StructField("version", LongType())]),
            # Others stay in the JVM: Spark has types that it cannot hand to a table function.
            select=[SelectedColumn(quoted(name), f"c{at}") for at, name in enumerate(selected)],
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
        columns = {
            field.name: pa.array(_plain(column, field.dataType))
            for field, column in zip(self.columns[1:], values, strict=True)
        }
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
    return name in attributes and kind_of(element) is not None


def _plain(values: Sequence[Any], data_type: DataType) -> Sequence[Any]:
    """The values of a column as Arrow reads them: records as dicts, times as UTC."""
    if kind_of(data_type) not in (None, "timestamp"):
        return values
    dicts = (value.asDict(recursive=True) if isinstance(value, Row) else value for value in values)
    return [as_utc(value, data_type) for value in dicts]


def _id_type(version: Version) -> DataType:
    return LongType() if version.ids == "int" else StringType()
