"""What rules would have done: every table is compared with what Spark SQL itself selects."""

from pathlib import Path
from typing import Any

import pytest

import tamis
import tamis.spark
from pages import Page
from tamis.spark.history.relations import relations_of

pytestmark = pytest.mark.spark

RULES = "id string, expression string"
CHANGES = "op string, sequence bigint, id string, expression string"

BEFORE = {
    "same": "amount > 50",
    "looser": "amount > 70 AND kind = 'a'",
    "tighter": "kind IN ('a', 'b')",
    "gone": "kind IS NULL",
    "dead": "amount > 1000",
}
AFTER = BEFORE | {"looser": "amount > 30 AND kind = 'a'", "tighter": "kind = 'b'", "new": "NOT kind = 'a'"}
del AFTER["gone"]


@pytest.fixture(scope="module")
def events(spark: Any) -> Any:
    return spark.sql("""
        SELECT id AS event_id, CAST(id % 97 AS DECIMAL(10, 2)) AS amount,
               CASE id % 4 WHEN 0 THEN 'a' WHEN 1 THEN 'b' WHEN 2 THEN 'c' END AS kind
        FROM range(200)
    """).cache()


def table(spark: Any, rules: dict[str, str]) -> Any:
    return spark.createDataFrame(list(rules.items()), RULES)


def truth(events: Any, rules: dict[str, str]) -> set[tuple[int, str]]:
    return {(row.event_id, id) for id, text in rules.items() for row in events.where(text).collect()}


@pytest.mark.thorough
def test_hit_rates_and_dead_rules(spark: Any, events: Any) -> None:
    hits = truth(events, BEFORE)
    expected = {id: sum(1 for _, hit in hits if hit == id) for id in BEFORE}
    tested = {row.subscription: row for row in tamis.spark.backtest(table(spark, BEFORE), events).collect()}
    assert {id: row.matches for id, row in tested.items()} == expected
    assert {id: row.rate for id, row in tested.items()} == {id: hits / 200 for id, hits in expected.items()}
    assert [id for id, row in tested.items() if row.dead] == ["dead"]


@pytest.mark.thorough
def test_what_a_change_gains_and_loses(spark: Any, events: Any, tmp_path: Path) -> None:
    old, new = truth(events, BEFORE), truth(events, AFTER)
    store = tamis.spark.SubscriptionStore(tmp_path / "store")
    first = [("add", 1, id, text) for id, text in BEFORE.items()]
    store.apply_changes(spark.createDataFrame(first, CHANGES))
    second = [("add", 2, id, text) for id, text in AFTER.items() if BEFORE.get(id) != text]
    store.apply_changes(spark.createDataFrame([*second, ("remove", 2, "gone", None)], CHANGES))
    found = tamis.spark.backfill(store, 1, 2, events).collect()
    assert {(row.event_id, row.subscription) for row in found if row.change == "gained"} == new - old
    assert {(row.event_id, row.subscription) for row in found if row.change == "lost"} == old - new
    assert len(found) == len(new ^ old)
    assert {row.version for row in found} == {2}

    changed = tamis.spark.diff(events, table(spark, BEFORE), store).collect()
    by_rule = {row.subscription: (row.change, row.gained, row.lost) for row in changed}
    assert by_rule == {
        id: (change, sum(1 for _, hit in new - old if hit == id), sum(1 for _, hit in old - new if hit == id))
        for id, change in (
            ("looser", "changed"),
            ("tighter", "changed"),
            ("gone", "removed"),
            ("new", "added"),
        )
    }


@pytest.mark.thorough
def test_rules_of_any_version_are_a_table(spark: Any, tmp_path: Path) -> None:
    store = tamis.spark.SubscriptionStore(tmp_path / "store")
    given = spark.createDataFrame(
        [(1, "x > 1", 2.5, ["q"], b"p"), (2, "y = 'a'", 0.0, [], None)],
        "id bigint, expression string, priority double, tags array<string>, payload binary",
    )
    store.replace_all(given, plan="sharded", shards=2)
    store.replace_all(given.limit(0))
    first = {row.id: row for row in tamis.spark.rules(spark, store, version=1).collect()}
    assert {id: (row.expression, row.priority, row.tags) for id, row in first.items()} == {
        1: ("x > 1", 2.5, ["q"]),
        2: ("y = 'a'", 0.0, []),
    }
    assert bytes(first[1].payload) == b"p"
    assert tamis.spark.rules(spark, store).count() == 0
    with pytest.raises(Exception, match="holds no version 9; it holds 1, 2"):
        tamis.spark.rules(spark, store, version=9)


def test_relations_are_proven_ones() -> None:
    """Against every pair: nothing is said that no proof supports, and nothing decidable is left out."""
    from tamis import relate

    texts = [
        "x > 5",
        "x > 2",
        "NOT x <= 5",
        "x > 5 AND x < 3",
        "x = 7 AND y = 'a'",
        "y IN ('a', 'b')",
        "y = 'c'",
    ]
    index = tamis.Index()
    index.add_many(list(range(len(texts))), texts)
    found = {
        (row["subscription"], row["relation"], row["other"])
        for id, text in enumerate(texts)
        for row in relations_of(id, text, [index])
    }
    expected: set[tuple[int, str, int | None]] = {(3, "never true", None)}
    parsed = [tamis.parse(text) for text in texts]
    for id, own in enumerate(parsed):
        for other, theirs in enumerate(parsed):
            if id in (other, 3) or other == 3 or not relate.decide_covers(theirs, own):
                continue
            same = relate.decide_covers(own, theirs)
            if not same or other < id:
                expected.add((id, "duplicate" if same else "covered", other))
    assert found == expected


@pytest.mark.slow
def test_the_report_is_one_page(spark: Any, events: Any, tmp_path: Path) -> None:
    old, new = table(spark, BEFORE), table(spark, AFTER)
    page = tamis.spark.write_rules_report(
        tmp_path / "rules.html",
        tamis.spark.backtest(old, events),
        related=tamis.spark.related_rules(spark, old),
        changes=tamis.spark.diff(events, old, new),
    ).read_text()
    [chart] = Page(page).charts
    assert chart.get("width") != "container"  # which has none: the chart would not be seen
    assert "amount &gt; 1000" in page
    assert "What the change does" in page
    assert "vega" in page
