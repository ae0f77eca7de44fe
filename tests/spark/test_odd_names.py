"""Columns, fields and keys may have any name that Spark allows; what no name can tell apart is said."""

from pathlib import Path
from typing import Any

import pytest

import tamis.spark
from tamis.errors import ArgumentError

pytestmark = pytest.mark.spark

RULES = "id string, expression string"


def rules(spark: Any, *texts: str) -> Any:
    return spark.createDataFrame([(text, text) for text in texts], RULES)


@pytest.fixture
def clashing(spark: Any) -> Any:
    """Columns, and fields, that differ in case only, and a column twice, as after a join."""
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        left = spark.sql("""
            SELECT 1 AS event_id, 5 AS x, 1 AS a, 2 AS A, named_struct('b', 3, 'B', 4, 'c', 5) AS r,
                   array(named_struct('d', 6, 'D', 7, 'e', 8)) AS l, 'one' AS twice""")
        return left.crossJoin(spark.sql("SELECT 'two' AS twice"))
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


@pytest.mark.thorough
def test_columns_that_differ_in_case_only_are_no_obstacle_until_rules_ask_for_them(
    spark: Any, clashing: Any
) -> None:
    """Spark itself reads x and r.c, and refuses a; so does the sharded plan, which samples all columns."""
    texts = ("x = 5", "r.c = 5", "exists(l, i -> i.e = 8)")
    for building in ({}, {"plan": "sharded", "shards": 2}):
        found = tamis.spark.match(clashing, rules(spark, *texts), **building)
        assert sorted(row.subscription for row in found.collect()) == sorted(texts)
    for text, name in (("a = 1", "a"), ("r.B = 4", "r.B"), ("r.b.z = 1", "r.b"), ("twice = 'one'", "twice")):
        with pytest.raises(ArgumentError, match=rf"rules ask for .*, and {name} is ambiguous"):
            tamis.spark.match(clashing, rules(spark, text))
    for key in ("a", "*", ["event_id", "twice"]):
        with pytest.raises(ArgumentError, match="is ambiguous"):
            tamis.spark.match(clashing, rules(spark, "x = 5"), key=key)


def test_what_cannot_be_told_apart_is_never_undefined_in_silence(spark: Any, clashing: Any) -> None:
    """Spread fields, keywords and rules with memory, too."""
    assert tamis.spark.match(clashing, rules(spark, "c = 5"), spread="r").count() == 1
    with pytest.raises(ArgumentError, match=r"rules ask for b, and r\.b is ambiguous"):
        tamis.spark.match(clashing, rules(spark, "b = 3"), spread="r")
    with pytest.warns(UserWarning, match="keywords are not looked for in .* ambiguous names .*twice"):
        tamis.spark.match(clashing, rules(spark, "ANY(all_strings()) = 'one'"))
    told = tamis.spark.flow(clashing, {"q": "x = 5 AND r.c = 5"}, time="event_id")
    assert told.count() == 1
    for text in ("a = 1", "r.b = 3", "twice = 'one'"):
        with pytest.raises(ArgumentError, match="query 'q'"):
            tamis.spark.flow(clashing, {"q": text}, time="event_id")
    with pytest.warns(UserWarning, match=r"stream 'events': queries do not see ambiguous columns \(.*a.*\)"):
        tamis.spark.flow(clashing.selectExpr("*", "map('k', 1) AS m"), {"q": "x = 5"}, time="event_id")


@pytest.mark.thorough
def test_a_stream_with_columns_that_clash_goes_on_whatever_rules_come(spark: Any, tmp_path: Path) -> None:
    """Which columns rules will ask for is not known: those that Spark cannot read stay behind."""
    store = tamis.spark.SubscriptionStore(tmp_path / "store")
    store.replace_all(rules(spark, "x = 5", "a = 1", "r.b = 3"))
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "1.json").write_text('{"event_id": 1, "x": 5}')
    stream = spark.readStream.schema("event_id int, x int").json(str(tmp_path / "events"))
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        events = stream.selectExpr("*", "1 AS a", "2 AS A", "named_struct('b', 3) AS r", "4 AS `r.b`")
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    matches = tamis.spark.match(events, store)
    query = (
        matches.writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "matches"))
    )
    query.awaitTermination()
    [row] = spark.read.parquet(str(tmp_path / "matches")).collect()
    assert row.subscription == "x = 5"
    assert tamis.spark.explain(matches).absent() == ["a", "r.b"]


ODD = """
    SELECT 7 AS `a.b`, 8 AS `c``d`, 9 AS `ü ;,{}()=`, 10 AS `*`, 11 AS `.`, 1 AS x,
           named_struct('a.b', 1, 'c`d', 2, 'e f', named_struct('g.h', 3)) AS S
"""


@pytest.mark.parametrize(
    "asked",
    [
        {"shape": "rows"},
        pytest.param({"shape": "column"}, marks=pytest.mark.spark_since("4.1")),
        {"plan": "sharded", "shards": 2},
        {"plan": "sharded", "shards": 2, "k": 20},
    ],
    ids=["rows", "column", "sharded", "sharded best"],
)
def test_names_may_hold_anything(spark: Any, asked: dict[str, Any]) -> None:
    """As keys and as attributes; fields also in another case."""
    texts = ["`a.b` = 7", "`c``d` = 8", "`ü ;,{}()=` = 9", "`*` = 10", "`.` = 11", "X = 1"]
    texts += ["S.`a.b` = 1", "s.`A.b` = 1", "s.`C``d` = 2", "s.`E f`.`g.H` = 3"]
    keys = ["a.b", "c`d", "ü ;,{}()=", "x"]
    found = tamis.spark.match(spark.sql(ODD), rules(spark, *texts), key=keys, **asked)
    rows = found.collect()
    assert found.columns[: len(keys)] == keys
    assert {tuple(row)[: len(keys)] for row in rows} == {(7, 8, 9, 1)}
    assert sorted(row.subscription for row in rows) == sorted(texts)


@pytest.mark.slow
def test_keys_may_be_called_as_parts_of_the_answer_but_for_its_columns(spark: Any) -> None:
    events = spark.sql("SELECT 7 AS id, 8 AS matches_of, 1 AS x, parse_json('1') AS v, 2 AS Score")
    given = rules(spark, "x = 1")
    best = tamis.spark.match(events, given, key=["id", "v"], plan="sharded", shards=2, k=1)
    assert [(row.id, row.subscription) for row in best.collect()] == [(7, "x = 1")]
    listed = tamis.spark.match(events, given, key=["id", "v"], shape="column", k=1)
    assert [(row.id, row.subscription, row["rank"]) for row in listed.collect()] == [(7, "x = 1", 1)]
    for shape in ("rows", "column"):
        with pytest.raises(ArgumentError, match="'Score' has the name of a column of the result"):
            tamis.spark.match(events, given, key="Score", shape=shape)
    with pytest.raises(ArgumentError, match="names that begin with __tamis_ are taken"):
        tamis.spark.match(events.withColumnRenamed("x", "__tamis_key_0"), given, key="id")


@pytest.mark.slow
def test_history_is_keyed_by_any_name(spark: Any) -> None:
    events = spark.sql("SELECT 7 AS `a.b`, 1 AS x")
    old, new = (spark.createDataFrame([("r", text)], RULES) for text in ("x = 1", "x = 2"))
    [row] = tamis.spark.diff(events, old, new, key="a.b").collect()
    assert (row.subscription, row.gained, row.lost) == ("r", 0, 1)
    numbered = spark.createDataFrame([(1, "x = 1")], "id int, expression string")
    with pytest.raises(ArgumentError, match="ids of the rules are of type string before and int after"):
        tamis.spark.diff(events, old, numbered, key="a.b")


def test_rules_with_odd_columns_may_be_bounded(spark: Any) -> None:
    given = spark.sql("SELECT 'r' AS id, 'x = 1' AS expression, DATE '2026-05-01' AS valid_to, 3 AS `o.d``d`")
    [row] = tamis.spark.valid_at(given, "ts").collect()
    assert row["o.d`d"] == 3
    assert row.expression == "x = 1 AND (ts < TIMESTAMP '2026-05-01 00:00:00')^0"
