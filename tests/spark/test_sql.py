"""The SQL functions where a worker's clock is not UTC, and what keeps their version from being collected."""

import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import (
    LongType,
    Row,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

import tamis
import tamis.spark
from tamis.spark.sql import matches
from tamis.store.directory import open_directory
from tamis.store.index_files import put_index
from tamis.store.versions import Version, publish

NOON_UTC = "at = TIMESTAMP '2026-01-31 12:00:00'"


@pytest.fixture
def new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def asked(folder: Path, kind: type) -> Any:
    from tamis.spark.table_function import Asked

    index = tamis.Index()
    index.add("noon", NOON_UTC)
    directory = open_directory(folder)
    file = put_index(directory, index)
    version = publish(directory, Version(number=1, plan="replicated", ids="string", shards=[[file]]))
    columns = StructType([StructField("event_id", LongType()), StructField("at", kind())])
    return Asked(
        schema=StructType(),
        path=str(folder),
        version=version.to_json().decode(),
        columns=columns.json(),
        run="query",
    )


def opened(given: Any) -> Any:
    from tamis.spark.table_function import MatchTable

    return MatchTable(given)


def found(table: Any, at: datetime) -> list[tuple[object, ...]]:
    return [*table.eval(Row(event_id=1, at=at)), *table.terminate()]


@pytest.mark.spark_since("4.0")
def test_local_times_are_times_of_a_zone(new_york: None, tmp_path: Path) -> None:
    """Spark hands a timestamp to Python as the worker's local time: 7 in New York is noon in UTC."""
    table = opened(asked(tmp_path, TimestampType))
    assert found(table, datetime(2026, 1, 31, 7)) == [(1, "noon", 1)]
    assert found(table, datetime(2026, 1, 31, 12)) == []
    assert matches(NOON_UTC, Row(at=datetime(2026, 1, 31, 7))) is True


@pytest.mark.spark_since("4.0")
def test_times_without_a_zone_stay_as_they_are(new_york: None, tmp_path: Path) -> None:
    table = opened(asked(tmp_path, TimestampNTZType))
    assert found(table, datetime(2026, 1, 31, 12)) == [(1, "noon", 1)]
    assert found(table, datetime(2026, 1, 31, 7)) == []


@pytest.mark.spark_since("4.0")
def test_the_version_is_leased(tmp_path: Path) -> None:
    opened(asked(tmp_path, TimestampType))
    directory = open_directory(tmp_path)
    [lease] = directory.list("leases")
    assert lease.startswith("query-")
    assert lease.endswith("@1")


@pytest.mark.spark
@pytest.mark.spark_since("4.0")
def test_columns_that_no_rule_asks_for_may_have_any_type(spark: Any) -> None:
    """Spark cannot hand a VARIANT or a map of numbers to a table function, and need not."""
    rules = spark.createDataFrame([("a", "x > 1 AND p.y = 2")], "id string, expression string")
    index = tamis.spark.build(rules)
    tamis.spark.register(spark)
    events = spark.sql("""
        SELECT id AS event_id, id AS x, named_struct('y', 2) AS p, parse_json('{"a": 1}') AS document,
               map(1, 'one') AS numbered, X'00FF' AS bytes
        FROM range(4)
    """)
    events.createOrReplaceTempView("odd_events")
    found = spark.sql(f"SELECT * FROM tamis_match(TABLE(odd_events), '{index.url}', 'event_id')")
    assert sorted(tuple(row) for row in found.collect()) == [(2, "a", 1), (3, "a", 1)]


@pytest.mark.spark
@pytest.mark.spark_since("4.1")
def test_a_registered_function_says_what_spark_sql_says(spark: Any) -> None:
    written = [(at, f"x >= {10 * at} AND s IN ('{'abc'[at % 3]}', 'd')", float(at % 4)) for at in range(12)]
    rules = spark.createDataFrame(written, "id bigint, expression string, priority double")
    events = spark.sql(
        "SELECT id AS event_id, id AS x, substring('abcd', id % 4 + 1, 1) AS s FROM range(100)"
    )
    events.createOrReplaceTempView("plain_events")
    index = tamis.spark.build(rules)
    tamis.spark.register_match(spark, "all_rules", index)
    tamis.spark.register_match(spark, "best_rules", index, k=2)
    truth = {(row.event_id, id) for id, text, _ in written for row in events.where(text).collect()}
    found = spark.sql("SELECT event_id, inline(all_rules(struct(x, s))) FROM plain_events").collect()
    assert sorted((row.event_id, row.id) for row in found) == sorted(truth)
    best = spark.sql("SELECT event_id, inline(best_rules(struct(x, s))) FROM plain_events").collect()
    expected = index.match(events, k=2).collect()
    assert sorted((row.event_id, row.id, row.score, row.rank) for row in best) == sorted(
        (row.event_id, row.subscription, row.score, row.rank) for row in expected
    )
