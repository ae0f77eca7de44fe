"""Whatever makes rules silently never true is either made right or said loudly."""

import json
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

import tamis
import tamis.spark

pytestmark = pytest.mark.spark

RULES = "id string, expression string"


def found(frame: Any) -> list[tuple[Any, ...]]:
    return sorted((row.event_id, row.subscription) for row in frame.collect())


@pytest.mark.thorough
def test_names_mean_columns_as_spark_resolves_them(spark: Any, tmp_path: Path) -> None:
    """Truth is what Spark itself selects with the same names."""
    events = spark.sql("""
        SELECT id AS event_id, id * 10 AS Amount, named_struct('Age', id + 20) AS User,
               map('Key', id) AS Facts
        FROM range(4)
    """)
    texts = ["AMOUNT > 5", "Amount > 15", "user.age > 21", "USER.Age > 22 AND amount < 35", "facts.Key = 2"]
    rules = spark.createDataFrame([(text, text) for text in texts], RULES)
    truth = sorted(
        (row.event_id, text)
        for text in texts
        for row in events.where(text.replace("facts.Key", "facts['Key']")).collect()
    )
    events.coalesce(1).write.parquet(str(tmp_path / "events"))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        for options in ({}, {"plan": "sharded", "shards": 2}):
            assert found(tamis.spark.match(events, rules, **options)) == truth
        files = tamis.spark.match_files(spark, tmp_path / "events", rules).collect()
        assert sorted((row.row, row.subscription) for row in files) == truth
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        exact = tamis.spark.match(events, rules)
        assert found(exact) == [(2, "Amount > 15"), (3, "Amount > 15")]
        assert "no column of the events holds" in str(tamis.spark.explain(exact))
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


@pytest.mark.spark_since("4.1")
@pytest.mark.thorough
def test_types_that_no_predicate_reads_are_warned_of(spark: Any) -> None:
    events = spark.sql("""
        SELECT 1 AS event_id, parse_json('{"a": 1}') AS document, array(named_struct('price', 5)) AS items,
               map(1, 'one') AS numbered
    """)
    for text, said in (
        ("document.a = 1", r"document is variant.*try_variant_get\(document"),
        ("items.price = 5", r"items is array<struct.*whether one or all elements are meant"),
        (
            "numbered.one = 1",
            r"numbered is map<int,string>, which no predicate can read.*inside is undefined",
        ),
    ):
        rules = spark.createDataFrame([("a", text), ("b", "event_id = 1")], RULES)
        for match in (tamis.spark.match, tamis.spark.match_column):
            with pytest.warns(UserWarning, match=said):
                matches = match(events, rules)
        with pytest.warns(UserWarning, match=said):
            matches = tamis.spark.match(events, rules)
        assert found(matches) == [(1, "b")]
    with pytest.warns(UserWarning, match=r"column event_id is int, but every predicate on it expects string"):
        tamis.spark.match(events, spark.createDataFrame([("a", "event_id = 'x'")], RULES))


@pytest.mark.spark_since("4.0")
def test_collated_strings_are_compared_and_warned_of(spark: Any) -> None:
    events = spark.sql(
        "SELECT id AS event_id, substring('aAb', id + 1, 1) COLLATE UTF8_LCASE AS s FROM range(3)"
    )
    rules = spark.createDataFrame([("a", "s = 'a'")], RULES)
    with pytest.warns(UserWarning, match=r"column s has the collation UTF8_LCASE.*byte by byte"):
        matches = tamis.spark.match(events, rules)
    assert found(matches) == [(0, "a")]


@pytest.mark.spark_since("4.1")
def test_what_maps_and_elements_hide_is_warned_of(spark: Any) -> None:
    """Spark itself matches (1, "map") and (1, "element") as well: these rules must not fail unseen."""
    events = spark.sql("""
        SELECT id AS event_id, map('k', substring('aAb', id + 1, 1) COLLATE UTF8_LCASE) AS m,
               array(named_struct('n', substring('aAb', id + 1, 1) COLLATE UTF8_LCASE,
                                  'v', parse_json('1'), 'in', map('k', id))) AS items,
               map('k', parse_json('1')) AS documents, map('k', named_struct('x', id)) AS records,
               array(named_struct('p', id, 'tags', array('t'))) AS plain
        FROM range(3)
    """)
    for id, text, expected in (
        (
            "map",
            "m.k = 'a'",
            [r"column m has strings with a collation, m\.\* \(UTF8_LCASE\), but rules compare"],
        ),
        (
            "element",
            "exists(items, i -> i.n = 'a')",
            [
                r"column items has values .* read: items\.v \(variant\), items\.in \(map<string,bigint>\)",
                r"column items has strings with a collation, items\.n \(UTF8_LCASE\)",
            ],
        ),
        ("variant", "documents.k = 1", [r"column documents has values .* read: documents\.\* \(variant\)"]),
        ("fine", "records.k.x = 1 OR exists(plain, p -> p.p = 2 AND array_contains(p.tags, 't'))", []),
    ):
        rules = spark.createDataFrame([(id, text)], RULES)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", UserWarning)
            matches = tamis.spark.match(events, rules)
        texts = [str(warning.message) for warning in said if warning.category is UserWarning]
        assert len(texts) == len(expected), texts
        for pattern in expected:
            assert any(re.search(pattern, text) for text in texts), (pattern, texts)
        right = {"map": [0], "element": [0], "variant": [], "fine": [1, 2]}[id]
        assert found(matches) == [(event, id) for event in right]


@pytest.mark.thorough
def test_rules_that_come_to_a_running_stream_are_checked(spark: Any, tmp_path: Path) -> None:
    store = tamis.spark.SubscriptionStore(tmp_path / "store")
    store.replace_all(spark.createDataFrame([("a", "x > 1")], RULES))
    folder = tmp_path / "events"
    folder.mkdir()
    (folder / "0.json").write_text(json.dumps({"event_id": 1, "x": 2}))
    events = spark.readStream.schema("event_id int, x int").json(str(folder))
    matches = tamis.spark.match(events, store)
    columns = "op string, sequence bigint, id string, expression string"
    store.apply_changes(spark.createDataFrame([("add", 1, "b", "colour = 'red'")], columns))
    query = (
        matches.writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    report = tamis.spark.explain(matches)
    assert report.absent() == ["colour"]
    assert "absent         colour: no column of the events holds" in str(report)
