"""Values, settings and schemas that trip pipelines up; what is right is what Spark SQL itself says."""

import warnings
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as sf

import tamis.spark

pytestmark = pytest.mark.spark

VALUES = """
    SELECT * FROM VALUES
      (0, CAST('99999999999999999999.999999999999999999' AS DECIMAL(38, 18)), CAST('NaN' AS DOUBLE),
       TIMESTAMP '9999-12-31 23:59:59.999999', DATE '9999-12-31', 9223372036854775807L, '',
       named_struct('a', named_struct('b', 1, 'c', array(1, NULL))), map('k', 1, 'n', CAST(NULL AS INT)),
       array(named_struct('p', 1.5, 't', 'x'))),
      (1, CAST('0.000000000000000001' AS DECIMAL(38, 18)), CAST('Infinity' AS DOUBLE),
       TIMESTAMP '0001-01-01 00:00:00', DATE '0001-01-01', -9223372036854775808L, 'a ',
       named_struct('a', named_struct('b', CAST(NULL AS INT), 'c', array(CAST(NULL AS INT)))), map('k', NULL),
       array(named_struct('p', NULL, 't', 'y'), NULL)),
      (2, CAST(-1 AS DECIMAL(38, 18)), -0.0D, TIMESTAMP '1582-10-10 00:00:00', DATE '1582-10-15', 0L,
       '\\u0000\\U0001F600', named_struct('a', CAST(NULL AS STRUCT<b: INT, c: ARRAY<INT>>)), map(), array()),
      (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
    AS t(event_id, d, f, at, day, l, s, r, m, items)
"""

RULES = [
    "d = 99999999999999999999.999999999999999999",
    "d > 99999999999999999999.99",
    "d > 0 AND d < 0.00000000000000001",
    "d IN (-1, 1)",
    "d IS NULL",
    "f > 5",
    "f = 0",
    "NOT (f > 0)",
    "f <=> NULL",
    "at > TIMESTAMP '9000-01-01 00:00:00'",
    "at < TIMESTAMP '1600-01-01 00:00:00'",
    "day = DATE '1582-10-15'",
    "year(at) = 9999",
    "l = 9223372036854775807",
    "l > 9223372036854775806.5",
    "l < 0",
    "s = ''",
    "s = 'a'",
    "length(s) = 2",
    "s < 'a'",
    "r.a.b = 1",
    "r.a.b IS NULL",
    "r.a IS NULL",
    "r IS NULL",
    "array_contains(r.a.c, 1)",
    "NOT array_contains(r.a.c, 2)",
    "exists(r.a.c, x -> x = 1)",
    "m.k = 1",
    "m.n IS NULL",
    "m IS NULL",
    "exists(items, i -> i.p > 1)",
    "forall(items, i -> i.p > 1)",
    "exists(items, i -> i.p IS NULL)",
    "NOT exists(items, i -> i.t = 'y')",
    "size(items) = 2",
]


def truth(events: Any, texts: list[str]) -> list[tuple[int, int]]:
    conditions = [sf.when(sf.expr(text), sf.lit(number)) for number, text in enumerate(texts)]
    found = events.select("event_id", sf.array_compact(sf.array(*conditions)).alias("matched"))
    return sorted((row.event_id, number) for row in found.collect() for number in row.matched)


def index_of(spark: Any, texts: list[str], **building: Any) -> tamis.spark.BuiltIndex:
    rules = spark.createDataFrame(list(enumerate(texts)), "id bigint, expression string")
    return tamis.spark.build(rules, **building)


def pairs(rows: Any) -> list[tuple[int, int]]:
    return sorted((row[0], row[1]) for row in rows.collect())


@pytest.mark.slow
@pytest.mark.spark_since("4.1")
def test_extremes_and_nested_nulls_agree_in_every_shape(spark: Any) -> None:
    events = spark.sql(VALUES).cache()
    expected = truth(events, RULES)
    assert {number for _, number in expected} == set(range(len(RULES))) - {17, 25}, "two rules are idle"
    index = index_of(spark, RULES)
    assert pairs(index.match(events, shape="rows")) == expected
    assert pairs(index.match(events, shape="column")) == expected
    assert pairs(index_of(spark, RULES, plan="sharded", shards=3).match(events)) == expected
    events.createOrReplaceTempView("odd_values")
    tamis.spark.register(spark)
    found = spark.sql(f"SELECT * FROM tamis_match(TABLE(odd_values), '{index.url}', 'event_id')")
    assert pairs(found) == expected


BROKEN = """
    SELECT id AS event_id, s, array(s, 'b') AS l, named_struct('t', s) AS r, map('k', s) AS m FROM (
      SELECT id, CASE id WHEN 0 THEN CAST(X'FF' AS STRING) WHEN 1 THEN CAST(X'61FF' AS STRING)
                         WHEN 2 THEN 'a' ELSE CAST(X'EDA080' AS STRING) END AS s FROM range(4))
"""


@pytest.mark.thorough
def test_strings_that_are_not_utf8_stop_nothing(spark: Any, tmp_path: Path) -> None:
    """One of them would stop a stream for good; they are what they are, and match no valid string."""
    texts = [
        "s = 'a'",
        "startswith(s, 'a')",
        "s > 'a'",
        "s IS NOT NULL",
        "array_contains(l, 'b')",
        "r.t = 'a'",
    ]
    texts += ["m.k != 'a'", "array_contains(l, 'a')"]
    events = spark.sql(BROKEN)
    expected = truth(events, texts)
    for building in ({}, {"plan": "sharded", "shards": 2}):
        index = index_of(spark, texts, **building)
        assert pairs(index.match(events)) == expected
        assert {row.event_id: row.matches for row in index.count(events).collect()}[2] == 6
    keyed = index.match(events, key=["event_id", "s"]).selectExpr("event_id", "subscription", "hex(s) AS s")
    assert {row.s for row in keyed.collect()} == {"FF", "61FF", "61", "EDA080"}, "keys stay what they are"
    events.write.parquet(str(tmp_path / "events"))
    assert tamis.spark.match_files(spark, tmp_path / "events", index_of(spark, texts)).count() == len(
        expected
    )


def test_answers_do_not_depend_on_the_time_zone_of_the_session(spark: Any) -> None:
    """Times in rules are UTC; where Spark would read them otherwise, that is said."""
    texts = ["at > TIMESTAMP '2026-03-29 02:30:00'", "n > TIMESTAMP '2026-03-29 02:30:00'", "hour(at) = 3"]
    texts += [
        "hour(n) = 3",
        "day = DATE '2026-03-29'",
        "date_trunc('day', at) = TIMESTAMP '2026-03-29 00:00:00'",
    ]
    frame = """
        SELECT id AS event_id, timestamp_seconds(1774740600 + 1800 * id) AS at,
               to_timestamp_ntz('2026-03-28 23:30:00') + make_dt_interval(0, 0, 30 * id) AS n,
               date_add(DATE '2026-03-28', CAST(id % 3 AS INT)) AS day
        FROM range(60)"""
    expected = truth(spark.sql(frame), texts)  # the session is in UTC
    index = index_of(spark, texts)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # Spark 3.5 has deprecations of its own
        assert pairs(index.match(spark.sql(frame))) == expected
    try:
        for zone in ("America/New_York", "Asia/Kathmandu"):
            spark.conf.set("spark.sql.session.timeZone", zone)
            with pytest.warns(UserWarning, match=f"in UTC, and this session is in {zone}"):
                found = index.match(spark.sql(frame))
            assert pairs(found) == expected
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.slow
def test_a_stream_goes_on_when_its_events_have_more_columns(spark: Any, tmp_path: Path) -> None:
    """A column comes with new files and a new rule; the checkpoint and the sink stay."""
    store = tamis.spark.SubscriptionStore(tmp_path / "store")
    changes = "op string, sequence bigint, id string, expression string"

    def run(schema: str) -> list[tuple[Any, ...]]:
        events = spark.readStream.schema(schema).json(str(tmp_path / "events"))
        query = (
            tamis.spark.match(events, store)
            .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "matches"), format="parquet")
        )
        query.awaitTermination()
        return sorted(tuple(row) for row in spark.read.parquet(str(tmp_path / "matches")).collect())

    def arrive(number: int, text: str) -> None:
        (tmp_path / "events").mkdir(exist_ok=True)
        (tmp_path / "events" / f"{number}.json").write_text(text)

    store.apply_changes(spark.createDataFrame([("add", 1, "a", "x > 1")], changes))
    arrive(1, '{"event_id": 1, "x": 2}')
    assert run("event_id int, x int") == [(1, "a", 1)]
    store.apply_changes(spark.createDataFrame([("add", 2, "b", "colour.name = 'red'")], changes))
    arrive(2, '{"event_id": 2, "x": 2, "colour": {"name": "red"}}')
    assert run("event_id int, x int, colour struct<name: string>")[1:] == [(2, "a", 2), (2, "b", 2)]
    # And away again, with another order of columns.
    arrive(3, '{"event_id": 3, "x": 5}')
    assert run("x bigint, event_id int")[3:] == [(3, "a", 2)]
