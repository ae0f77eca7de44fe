"""Matching from Spark SQL: one scalar function and one table function.

```sql
SELECT * FROM rules CROSS JOIN events WHERE tamis_matches(rules.expression, to_json(struct(events.*)));
SELECT * FROM tamis_match(TABLE(events), '/data/rules-index', 'event_id');
SELECT * FROM tamis_match(TABLE(events), '/data/rules-index', 'event_id', k => 10, score => 'priority');
SELECT event_id, inline(ads(struct(age, country))) FROM events;  -- after register_match(spark, "ads", index)
```

`tamis_matches` evaluates one expression, for rules that are a column. `tamis_match` uses an index that
`tamis.spark.build` or a `SubscriptionStore` has written. Both it and a function that `register_match` makes
take Arrow batches and are as fast as the DataFrame functions; Spark 4.0 passes rows to `tamis_match` one by
one.
"""

import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import (
    DataType,
    Row,
    TimestampNTZType,
)

from tamis.expr import parse
from tamis.spark.events.names import ignores_case
from tamis.spark.matching.answer import match_query
from tamis.spark.matching.task import Source, refuse_relaxed_sources
from tamis.spark.plans.shape import list_function, refuse_lists

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: "SparkSession") -> None:
    '''Register the SQL functions `tamis_matches` and, from Spark 4.0 on, `tamis_match`.

    >>> from pyspark.sql import SparkSession
    >>> spark = SparkSession.builder.getOrCreate()
    >>> register(spark)
    >>> spark.sql("""SELECT tamis_matches('age > 21', '{"age": 27}') AS matched""").first().matched
    True
    '''
    from pyspark.sql.functions import udf  # noqa: PLC0415 - it needs a session

    spark.udf.register("tamis_matches", udf(_matches, "boolean"))
    try:
        from tamis.spark.table_function import match_table  # noqa: PLC0415
    except ImportError:  # Spark 3.5, whose table functions take no tables
        return
    spark.udtf.register("tamis_match", match_table(ignore_case=ignores_case(spark)))


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
    """Register an SQL function that takes an event, as a struct, and returns the list of its matches.

    The list has structs of `id`, and with `k` of `id`, `score` and `rank`, the best first, as in
    `match_column`, and is as fast. Pass only the columns that rules use, `ads(struct(age, country))`, because
    all of them travel to Python. The version is the latest at the time of this call; in a streaming query,
    that of the micro-batch.

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
