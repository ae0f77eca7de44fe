"""Matching as a column: the same answers as rows, for nested, decimal and null-rich events."""

import contextlib
import io
import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import strategies
import tamis
import tamis.spark
from events import to_frame, to_table
from writer import to_text

pytestmark = [pytest.mark.spark, pytest.mark.spark_since("4.1")]

RULES = "id string, expression string, priority double"


def rows(frame: Any, *columns: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row[column] for column in columns) for row in frame.collect()), key=repr)


@pytest.fixture(scope="module")
def events(spark: Any) -> Any:
    table = to_table(strategies.collect(strategies.events(typed=True), 60))
    numbered = table.append_column("event_id", [list(range(table.num_rows))])
    return to_frame(spark, numbered).repartition(2).cache()


@pytest.fixture(scope="module")
def index(spark: Any) -> tamis.spark.BuiltIndex:
    nodes = strategies.collect(strategies.expressions(typed=True), 80)
    written = [(f"r{at}", to_text(node), float(at % 5)) for at, node in enumerate(nodes)]
    return tamis.spark.build(spark.createDataFrame(written, RULES), plan="replicated")


@pytest.mark.thorough
def test_the_same_matches_as_rows(index: tamis.spark.BuiltIndex, events: Any) -> None:
    for asked in ({}, {"k": 3}):
        columns = ["event_id", "subscription", *(["score", "rank"] if asked else []), "version"]
        by_rows = index.match(events, shape="rows", **asked)
        by_column = index.match(events, shape="column", **asked)
        assert by_column.columns == by_rows.columns == columns
        assert by_column.dtypes == by_rows.dtypes
        found = rows(by_column, *columns)
        assert found == rows(by_rows, *columns)
        assert found
        assert tamis.spark.explain(by_column).tasks(), "tasks leave their reports"


def test_spark_sql_says_the_same(spark: Any) -> None:
    """Truth is a crossJoin: nested, decimal, zoned and null values."""
    events = spark.sql("""
        SELECT id AS event_id,
               named_struct('amount', CAST(id / 3 AS DECIMAL(38, 4)),
                            'at', timestamp_seconds(id * 3600)) AS pay,
               CASE WHEN id % 3 = 0 THEN NULL ELSE array('a', CAST(id % 5 AS string)) END AS words,
               map('k', CAST(id AS bigint)) AS facts
        FROM range(60)
    """)
    texts = [
        "pay.amount > 6.6666",
        "pay.amount = 7",
        "array_contains(words, '3')",
        "words IS NULL AND facts.k > 30",
        "pay.at < TIMESTAMP '1970-01-01 09:30:00'",
        "NOT (facts.k BETWEEN 5 AND 50)",
    ]
    rules = spark.createDataFrame([(f"r{at}", text, 0.0) for at, text in enumerate(texts)], RULES)
    truth = [
        (row.event_id, f"r{at}")
        for at, text in enumerate(texts)
        for row in events.where(text.replace("facts.k", "facts['k']")).collect()
    ]
    listed = events.withColumn("found", tamis.spark.match_column(events, rules))
    found = [(row.event_id, match.id) for row in listed.collect() for match in row.found]
    assert sorted(found) == sorted(truth)
    assert listed.columns == [*events.columns, "found"]


def test_lists_are_ranked_and_may_be_filtered(spark: Any) -> None:
    rules = spark.createDataFrame([("a", "x > 1", 1.0), ("b", "x > 2", 3.0), ("c", "x > 2", 3.0)], RULES)
    events = spark.createDataFrame([(1, 3), (2, 2), (3, 0)], "event_id int, x int")
    best = tamis.spark.match_column(events, rules, k=2)
    found = {
        row.event_id: [tuple(match) for match in row.best]
        for row in events.withColumn("best", best).collect()
    }
    assert found == {1: [("b", 3.0, 1), ("c", 3.0, 2)], 2: [("a", 1.0, 1)], 3: []}
    kept = events.withColumn("best", best).where("size(best) > 1")
    assert [row.event_id for row in kept.collect()] == [1]


@pytest.mark.thorough
def test_what_cannot_come_as_a_list_says_so(spark: Any) -> None:
    rules = spark.createDataFrame([("a", "x = 1", 1.0), ("b", "x = 2", 1.0)], RULES)
    events = spark.createDataFrame([(1, 1)], "event_id int, x int")
    sharded = tamis.spark.build(rules, plan="sharded", shards=2)
    with pytest.raises(tamis.ArgumentError, match=r"merged as rows; use tamis\.spark\.match"):
        tamis.spark.match_column(events, sharded)
    with pytest.raises(tamis.ArgumentError, match='shape is "auto", "rows" or "column"'):
        tamis.spark.match(events, rules, shape="list")


@pytest.mark.thorough
def test_the_shape_is_chosen_and_explained(spark: Any) -> None:
    rules = spark.createDataFrame([("a", "x > 1", 1.0)], RULES)
    wide = spark.sql("SELECT 1 AS event_id, 2 AS x, 'a' AS p, 'b' AS q, 'c' AS r")
    index = tamis.spark.build(rules)
    best = index.match(wide, key="*", k=1)
    assert "shape          column: 4 carried columns stay in the JVM" in str(tamis.spark.explain(best))
    assert rows(best, "event_id", "r", "subscription") == [(1, "c", "a")]
    assert "shape          rows: an event may have any number" in str(
        tamis.spark.explain(index.match(wide, key="*"))
    )
    narrow = index.match(wide, key="event_id", k=1)
    assert "shape          rows: 1 columns are asked for" in str(tamis.spark.explain(narrow))


@pytest.mark.slow
@pytest.mark.thorough
def test_a_watermark_survives_from_deduplication_to_windows(spark: Any, tmp_path: Path) -> None:
    """Deduplicated, matched and counted by window in one query, which gives finished windows only."""
    arrived = [
        [(1, "2026-01-01 00:01:00", 5), (2, "2026-01-01 00:02:00", 5)],
        # The first was there in the micro-batch before, and the last closes the windows before it.
        [(1, "2026-01-01 00:01:00", 5), (3, "2026-01-01 00:11:00", 5), (4, "2026-01-01 01:00:00", 5)],
    ]
    folder = tmp_path / "events"
    folder.mkdir()
    for number, part in enumerate(arrived):
        texts = [json.dumps({"event_id": id, "at": at, "x": x}) for id, at, x in part]
        (folder / f"{number}.json").write_text("\n".join(texts))
        os.utime(folder / f"{number}.json", (number, number))  # in this order
    events = (
        spark.readStream.schema("event_id int, at timestamp, x int")
        .option("maxFilesPerTrigger", 1)
        .json(str(folder))
        .withWatermark("at", "5 minutes")
        .dropDuplicatesWithinWatermark(["event_id"])
    )
    store = tamis.spark.SubscriptionStore(tmp_path / "store")
    store.replace_all(spark.createDataFrame([("a", "x > 1", 1.0), ("b", "x > 9", 1.0)], RULES))
    matches = tamis.spark.match(events, store, key=["event_id", "at"])
    assert "column: the watermark of at survives it" in str(tamis.spark.explain(matches))
    counted = matches.groupBy("subscription", tamis_window("at")).count()
    query = (
        counted.writeStream.format("parquet")
        .outputMode("append")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "out"))
    )
    query.awaitTermination()
    found = spark.read.parquet(str(tmp_path / "out")).selectExpr("subscription", "window.start", "count")
    assert rows(found, "subscription", "start", "count") == [
        ("a", datetime(2026, 1, 1, 0, 0), 2),
        ("a", datetime(2026, 1, 1, 0, 10), 1),
    ]


def tamis_window(column: str) -> Any:
    from pyspark.sql import functions as sf

    return sf.window(column, "10 minutes")


def evaluations(frame: Any) -> int:
    """How often its plan calls an Arrow function for each event."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        frame.explain()
    return shown.getvalue().count("ArrowEvalPython")


@pytest.mark.thorough
def test_events_are_matched_once_whatever_is_asked_of_the_matches(spark: Any) -> None:
    """Spark may copy a column into a filter that it infers; a function of Python is then called twice."""
    rules = spark.createDataFrame([("a", "x > 1", 1.0), ("b", "x > 2", 3.0)], RULES)
    events = spark.createDataFrame([(1, 3), (2, 2), (3, 0)], "event_id int, x int")
    matches = tamis.spark.match(events, rules, shape="column")
    counted = matches.groupBy("subscription").count()
    for asked in (matches, counted, matches.select("event_id"), matches.where("subscription = 'a'")):
        assert evaluations(asked) == 1
    assert rows(counted, "subscription", "count") == [("a", 2), ("b", 1)]
    listed = events.withColumn("best", tamis.spark.match_column(events, rules))
    sized = listed.selectExpr("best", "size(best) AS matches", "best[0].id AS first").orderBy("matches")
    assert evaluations(sized) == 1
    assert evaluations(listed.select("event_id")) == 0, "nobody asks for it"
    kept = listed.where("size(best) > 1")
    assert evaluations(kept) == 2, (
        "a limit that docs/spark.md tells of: once to filter, once for what is left"
    )
    assert [row.event_id for row in kept.collect()] == [1]


def test_names_mean_columns_as_spark_resolves_them(spark: Any) -> None:
    rules = spark.createDataFrame([("a", "AMOUNT > 5 AND user.age > 21", 1.0)], RULES)
    events = spark.sql(
        "SELECT id AS event_id, id * 10 AS Amount, named_struct('Age', id + 20) AS User FROM range(4)"
    )
    listed = events.withColumn("ids", tamis.spark.match_column(events, rules))
    assert sorted(row.event_id for row in listed.collect() if row.ids) == [2, 3]
