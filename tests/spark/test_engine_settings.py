"""Whatever Spark does to a plan, and however a session is set, the matches are those of Spark's own filters.

Faults: a partition that is split, merged or left out loses or repeats matches; a column of matches that a
join or a union copies answers for other rows; a setting of numbers, zones or batches changes a value on its
way; a function that is called twice sees two values of `rand()`.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as sf

import tamis.spark

pytestmark = [pytest.mark.spark, pytest.mark.spark_since("4.1")]

TEXTS = [
    "u.age > 3",
    "NOT (u.age > 3)",
    "u.name LIKE 'a%'",
    "array_contains(words, 'b')",
    "words IS NULL",
    "amount > 2.50",
    "at < TIMESTAMP '1970-01-01 05:00:00'",
    "u.age IN (1, 2) OR amount = 3.25",
    "f > 0.5 AND NOT (u.name = 'a6')",
]
EVENTS = """
    SELECT id AS event_id,
           IF(id % 5 = 0, NULL, named_struct('age', IF(id % 3 = 0, NULL, CAST(id % 11 AS INT)),
                                             'name', IF(id % 4 = 0, NULL, concat('a', id % 7)))) AS u,
           IF(id % 6 = 0, NULL, array('b', NULL, CAST(id AS string))) AS words,
           CAST(id / 4 AS DECIMAL(20, 2)) AS amount,
           timestamp_seconds(id * 1800) AS at,
           IF(id % 7 = 0, double('NaN'), id / 10.0D) AS f
    FROM range(0, {rows}, 1, 4)
"""
SKEWED = {
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "1KB",
    "spark.sql.adaptive.skewJoin.skewedPartitionFactor": "1.1",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "1KB",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.shuffle.partitions": "6",
}

Pairs = list[tuple[int, str]]


@contextmanager
def settings(spark: Any, given: dict[str, str]) -> Iterator[None]:
    before = {name: spark.conf.get(name, None) for name in given}
    for name, value in given.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.unset(name) if value is None else spark.conf.set(name, value)


def events_of(spark: Any, rows: int = 40) -> Any:
    return spark.sql(EVENTS.format(rows=rows))


def truth(events: Any) -> Pairs:
    """What Spark's own SQL says, in one job."""
    held = [sf.when(sf.expr(text), sf.lit(f"r{at}")) for at, text in enumerate(TEXTS)]
    told = events.select("event_id", sf.explode(sf.array_compact(sf.array(*held))).alias("rule"))
    return sorted((row.event_id, row.rule) for row in told.collect())


def pairs(matches: Any) -> Pairs:
    return sorted((row.event_id, row.subscription) for row in matches.collect())


def listed(events: Any) -> Pairs:
    return sorted((row.event_id, match.id) for row in events.collect() for match in row.found)


@pytest.fixture(scope="module")
def index(spark: Any) -> tamis.spark.BuiltIndex:
    written = [(f"r{at}", text) for at, text in enumerate(TEXTS)]
    return tamis.spark.build(spark.createDataFrame(written, "id string, expression string"))


@pytest.mark.slow
def test_skewed_partitions_are_split_and_small_ones_merged(spark: Any, index: Any) -> None:
    with settings(spark, SKEWED):
        place = sf.expr("IF(event_id < 1000, 1, event_id)")
        events = events_of(spark, 1200).repartition(6, place)
        groups = spark.range(1200).selectExpr("id AS number", "id % 3 AS group")
        joined = events.join(groups, sf.col("event_id") == sf.col("number"))
        expected = truth(joined)
        assert pairs(index.match(joined)) == expected
        found = events.withColumn("found", index.match_column(events))
        assert listed(found.join(groups, sf.col("event_id") == sf.col("number"))) == expected
        counted = index.match(events, shape="column").join(groups, sf.col("event_id") == sf.col("number"))
        per_rule = {
            row.subscription: row["count"] for row in counted.groupBy("subscription").count().collect()
        }
        assert per_rule == Counter(rule for _, rule in expected)


@pytest.mark.slow
def test_copies_of_a_matched_frame(spark: Any, index: Any) -> None:
    events = events_of(spark)
    expected = truth(events)
    column = index.match_column(events)
    found = events.withColumn("found", column)
    assert listed(found.union(found)) == sorted(expected * 2)
    assert listed(events.alias("e").where("event_id < 9").withColumn("found", column)) == [
        pair for pair in expected if pair[0] < 9
    ]
    twice = found.alias("a").join(found.alias("b"), sf.expr("a.event_id = b.event_id"))
    assert twice.where("a.found != b.found").count() == 0
    matches = index.match(events)
    others = matches.alias("a").join(
        matches.alias("b"), sf.expr("a.event_id = b.event_id AND a.subscription < b.subscription")
    )
    per_event = Counter(event for event, _ in expected)
    assert others.count() == sum(count * (count - 1) // 2 for count in per_event.values())


@pytest.mark.thorough
def test_values_that_are_drawn_anew_are_drawn_once(spark: Any) -> None:
    rules = spark.createDataFrame([(at, f"x = {at}") for at in range(10)], "id int, expression string")
    index = tamis.spark.build(rules)
    events = spark.range(500).selectExpr("id AS event_id", "CAST(rand() * 10 AS INT) AS x")
    found = events.withColumn("found", index.match_column(events))
    assert [row for row in found.collect() if [match.id for match in row.found] != [row.x]] == []
    assert [row for row in found.where("found[0].id = 3").collect() if row.x != 3] == []
    for shape in ("rows", "column"):
        matches = index.match(events, key=["event_id", "x"], shape=shape)
        assert [row for row in matches.collect() if row.x != row.subscription] == []


@pytest.mark.slow
@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata"])
def test_zones_change_no_match_and_no_key(spark: Any, index: Any, zone: str) -> None:
    expected = truth(events_of(spark))
    with settings(spark, {"spark.sql.session.timeZone": zone}):
        events = events_of(spark)
        with pytest.warns(UserWarning, match=f"in UTC, and this session is in {zone}"):
            matches = index.match(events, key=["event_id", "at"])
        assert pairs(matches) == expected
        times = {row.event_id: row.at for row in events.select("event_id", "at").collect()}
        assert {(row.event_id, row.at) for row in matches.collect()} <= set(times.items())


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [
        {"spark.sql.ansi.enabled": "true"},
        {"spark.sql.ansi.enabled": "false"},
        {"spark.sql.execution.arrow.maxRecordsPerBatch": "1"},
        {"spark.sql.execution.arrow.maxRecordsPerBatch": "0"},
        {"spark.sql.adaptive.enabled": "false"},
        {"spark.sql.codegen.wholeStage": "true"},
    ],
)
def test_settings(spark: Any, given: dict[str, str]) -> None:
    with settings(spark, given):
        events = events_of(spark)
        written = [(f"r{at}", text, str(at)) for at, text in enumerate(TEXTS)]
        rules = spark.createDataFrame(written, "id string, expression string, priority string")
        expected = truth(events)
        assert pairs(tamis.spark.match(events, rules)) == expected
        assert listed(events.withColumn("found", tamis.spark.match_column(events, rules))) == expected
        assert pairs(tamis.spark.match(events, rules, plan="sharded", shards=2)) == expected
        unreadable = spark.createDataFrame([("a", "x > 1", "much")], rules.schema)
        with pytest.raises(tamis.spark.InvalidSubscriptionsError, match="priority is much"):
            tamis.spark.build(unreadable)


@pytest.mark.slow
def test_partitions_that_a_join_prunes_and_frames_that_are_cached(
    spark: Any, index: Any, tmp_path: Path
) -> None:
    place = str(tmp_path / "events")
    events_of(spark, 200).withColumn("part", sf.expr("event_id % 10")).write.partitionBy("part").parquet(
        place
    )
    spark.range(10).selectExpr("id AS part", "id * 10 AS wanted").write.parquet(str(tmp_path / "parts"))
    wanted = spark.read.parquet(str(tmp_path / "parts")).where("wanted = 20")
    events = spark.read.parquet(place)
    expected = truth(events.join(wanted, "part"))
    assert expected
    assert listed(events.withColumn("found", index.match_column(events)).join(wanted, "part")) == expected
    assert pairs(index.match(events, key=["event_id", "part"]).join(wanted, "part")) == expected
    cached = index.match(events.cache()).cache()
    assert cached.count() == len(truth(events))
    assert pairs(cached) == truth(events)
    cached.unpersist()
    events.unpersist()
