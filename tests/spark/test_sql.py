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
    from tamis.spark.table_function import AnalyzedCall

    index = tamis.Index()
    index.add("noon", NOON_UTC)
    directory = open_directory(folder)
    file = put_index(directory, index)
    version = publish(directory, Version(number=1, plan="replicated", ids="string", shards=[[file]]))
    columns = StructType([StructField("event_id", LongType()), StructField("at", kind())])
    return AnalyzedCall(
        schema=StructType(),
        path=str(folder),
        version=version.to_json().decode(),
        columns=columns.json(),
        run="query",
    )


def opened(given: Any) -> Any:
    from tamis.spark.table_function import RowMatchTable

    return RowMatchTable(given)


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
@pytest.mark.thorough
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


@pytest.mark.thorough
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


EVENTS = """
    SELECT id AS event_id, IF(id % 7 = 0, NULL, id) AS Amount,
           IF(id % 5 = 0, NULL, named_struct('y', id % 3, 'names', array('a', NULL, 'b'))) AS p,
           CAST(id AS DECIMAL(38, 2)) + CAST('99999999999999999999999999999999.89' AS DECIMAL(38, 2)) AS d,
           TIMESTAMP '2026-03-29 00:30:00' + MAKE_INTERVAL(0, 0, 0, 0, id) AS at,
           CAST(TIMESTAMP '2026-03-29 00:30:00' + MAKE_INTERVAL(0, 0, 0, 0, id) AS TIMESTAMP_NTZ) AS plain,
           IF(id % 4 = 0, map(), map('k', id)) AS m, map(1, 'one') AS numbered, X'00FF' AS bytes
    FROM range(60)
"""

RULES = [
    ("amount", "amount > 40"),
    ("absent", "Amount IS NULL"),
    ("inside", "p.y = 2 AND array_contains(p.names, 'b')"),
    ("exact", "d = 100000000000000000000000000000009.89"),
    ("saving", "at BETWEEN TIMESTAMP '2026-03-29 02:30:00' AND TIMESTAMP '2026-03-29 03:30:00'"),
    ("wall", "plain >= TIMESTAMP '2026-03-31 00:00:00'"),
    ("key", "m.k < 9"),
    ("nothing", "p IS NULL"),
]


@pytest.mark.spark
@pytest.mark.spark_since("4.1")
def test_the_table_function_says_what_spark_sql_says(spark: Any) -> None:
    events = spark.sql(EVENTS)
    events.createOrReplaceTempView("typed_events")
    index = tamis.spark.build(spark.createDataFrame(RULES, "id string, expression string"))
    tamis.spark.register(spark)
    truth = {(row.event_id, id) for id, text in RULES for row in events.where(text).collect()}
    assert {id for _, id in truth} == {id for id, _ in RULES}  # none of them is idle
    query = f"SELECT * FROM tamis_match(TABLE(typed_events), '{index.url}', 'event_id')"
    assert sorted((row.event_id, row.subscription) for row in spark.sql(query).collect()) == sorted(truth)
    best = spark.sql(query.replace("'event_id')", "'event_id', k => 2)")).collect()
    expected = index.match(events, k=2, score="priority").collect()
    assert sorted(map(tuple, best)) == sorted(map(tuple, expected))


@pytest.mark.spark
@pytest.mark.spark_since("4.1")
def test_the_table_function_takes_arrow_and_any_size(spark: Any) -> None:
    """A row for each match would take Spark most of the time; 90,000 matches do not come in one batch."""
    rules = spark.createDataFrame([(at, "x >= 0") for at in range(300)], "id bigint, expression string")
    index = tamis.spark.build(rules)
    spark.sql("SELECT id AS event_id, id AS x FROM range(300)").createOrReplaceTempView("many_events")
    tamis.spark.register(spark)
    found = spark.sql(f"SELECT * FROM tamis_match(TABLE(many_events), '{index.url}', 'event_id')")
    assert "ArrowEvalPythonUDTF" in found._jdf.queryExecution().toString()
    assert found.distinct().count() == 90_000


@pytest.mark.spark
@pytest.mark.spark_since("4.0")
def test_names_in_sql_mean_columns_as_the_session_says(spark: Any) -> None:
    index = tamis.spark.build(spark.createDataFrame([("a", "X > 1")], "id string, expression string"))
    spark.sql("SELECT id AS event_id, id AS x FROM range(4)").createOrReplaceTempView("small_events")
    query = f"SELECT * FROM tamis_match(TABLE(small_events), '{index.url}', 'event_id')"
    tamis.spark.register(spark)
    assert spark.sql(query).count() == 2
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        tamis.spark.register(spark)
        assert spark.sql(query).count() == 0
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
        tamis.spark.register(spark)


@pytest.mark.spark
@pytest.mark.spark_since("4.0")
def test_a_key_that_the_result_has_for_itself_is_refused(spark: Any) -> None:
    index = tamis.spark.build(spark.createDataFrame([("a", "x > 1")], "id string, expression string"))
    spark.sql("SELECT id AS version, id AS x FROM range(4)").createOrReplaceTempView("versions")
    tamis.spark.register(spark)
    with pytest.raises(Exception, match="rename it"):
        spark.sql(f"SELECT * FROM tamis_match(TABLE(versions), '{index.url}', 'version')").collect()
