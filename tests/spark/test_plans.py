"""Sharded and by source: whatever the plan and the number of shards, the answers of one machine."""

from typing import Any

import pytest

import strategies
import tamis
import tamis.spark
from events import to_frame, to_table
from tamis.spark.plans.choose import Sizes, choose
from tamis_lab.workloads import BookAuction
from tamis_lab.workloads.spark import generate_events, generate_subscriptions
from writer import to_text

pytestmark = pytest.mark.spark

RULES = "id string, expression string"


def rows(frame: Any) -> list[tuple[Any, ...]]:
    kept = [column for column in frame.columns if column != "version"]
    return sorted((tuple(row[column] for column in kept) for row in frame.collect()), key=repr)


@pytest.fixture(scope="module")
def events(spark: Any) -> Any:
    table = to_table(strategies.collect(strategies.events(typed=True), 40))
    numbered = table.append_column("event_id", [list(range(table.num_rows))])
    return to_frame(spark, numbered).repartition(2).cache()


@pytest.fixture(scope="module")
def rules(spark: Any) -> Any:
    nodes = strategies.collect(strategies.expressions(typed=True), 60)
    nodes += strategies.collect(strategies.predicates(typed=True), 20)
    written = [(f"r{at}", to_text(node), float(at % 5)) for at, node in enumerate(nodes)]
    return spark.createDataFrame(written, f"{RULES}, priority double")


@pytest.fixture(scope="module")
def single(rules: Any) -> tamis.spark.BuiltIndex:
    return tamis.spark.build(rules, plan="replicated")


@pytest.mark.parametrize("shards", [pytest.param(2, marks=pytest.mark.slow), 5])
@pytest.mark.thorough
def test_sharding_changes_no_answer(
    single: tamis.spark.BuiltIndex, rules: Any, events: Any, shards: int
) -> None:
    sharded = tamis.spark.build(rules, plan="sharded", shards=shards, sample=events)
    assert sharded.version.plan == "sharded"
    assert sum(file.subscriptions for shard in sharded.version.shards for file in shard) == 80
    assert rows(sharded.match(events)) == rows(single.match(events))
    assert rows(sharded.match(events, k=3)) == rows(single.match(events, k=3))
    assert rows(sharded.count(events)) == rows(single.count(events))
    assert rows(sharded.exists(events)) == rows(single.exists(events))
    assert rows(sharded.unmatched(events)) == rows(single.unmatched(events))
    assert rows(sharded.count_by_subscription(events)) == rows(single.count_by_subscription(events))


@pytest.mark.thorough
def test_ranked_as_on_one_machine(spark: Any) -> None:
    written = [
        ("a", "x > 1 AND y = 'k'", {"x": 2.0}),
        ("b", "x > 2 OR (y = 'k')^5", {"y": 1.0}),
        ("c", "x < 3 AND y IS NOT NULL", None),
        ("d", "x = 3", {"x": 2.5}),
    ]
    rules = spark.createDataFrame(written, f"{RULES}, weights map<string, double>")
    events = spark.createDataFrame([(0, 1, "k"), (1, 3, "k"), (2, 3, None)], "event_id int, x int, y string")
    index = tamis.Index()
    for id, expression, weights in written:
        index.add(id, expression, weights=weights)
    built = [tamis.spark.build(rules, plan=plan, shards=2) for plan in ("replicated", "sharded")]
    for score in ("relevance", "relaxed"):
        expected = sorted(
            (event, match.id, match.score, match.rank)
            for event, record in enumerate([{"x": 1, "y": "k"}, {"x": 3, "y": "k"}, {"x": 3}])
            for match in index.top_k(tamis.Event(record, weights={"x": 0.5}), k=2, score=score)
        )
        assert expected
        for plan in built:
            assert rows(plan.match(events, k=2, score=score, weights={"x": 0.5})) == expected


@pytest.mark.thorough
def test_an_event_visits_few_shards(spark: Any) -> None:
    workload = BookAuction(count=3000)
    rules = generate_subscriptions(spark, workload)
    events = generate_events(spark, workload, 300)
    matches = tamis.spark.match(events, rules, plan="sharded", shards=8)
    assert rows(matches) == rows(tamis.spark.match(events, rules))
    report = tamis.spark.explain(matches)
    visits = sum(task["visits"] for task in report.tasks()) / 300
    assert 0 < visits < 8
    assert "shards per event" in str(report)
    assert "expected per event" in str(report)
    sizes = [sum(file.subscriptions for file in shard) for shard in report.version.shards]
    assert sum(sizes) == 3000
    assert min(sizes) > 0


@pytest.mark.thorough
def test_sources_visit_only_what_they_might_match(spark: Any) -> None:
    rules = spark.createDataFrame(
        [
            ("cheap", "price < 10", None),
            ("dear", "price > 100", None),
            ("any", "price > 0 OR kind = 'gift'", None),
            ("only-b", "price > 0", "b"),
            ("nobody", "price > 1000 AND price < 900", None),
        ],
        f"{RULES}, source string",
    )
    offers = spark.createDataFrame(
        [("a", "price < 50"), ("b", "price > 50")], "source string, expression string"
    )
    events = spark.createDataFrame(
        [(1, "a", 5), (2, "b", 200), (3, "a", 500), (4, "c", 5), (5, None, 200)],
        "event_id int, source string, price int",
    )
    planned = tamis.spark.match(events, rules, advertisements=offers, shards=3)
    assert rows(planned) == rows(tamis.spark.match(events, rules, plan="replicated"))
    assert {row[0] for row in rows(planned)} == {1, 2, 3, 4, 5}  # event 3 breaks its source's promise
    best = tamis.spark.match(events, rules, advertisements=offers, shards=3, k=1)
    assert rows(best) == rows(tamis.spark.match(events, rules, k=1))
    version = tamis.spark.build(rules, advertisements=offers, shards=3).version
    assert version.plan == "by-source"
    assert version.router is not None
    assert any(len(visited) < 3 for visited in version.router.sources.values())


@pytest.mark.thorough
def test_bad_rules_are_reported_in_the_sharded_plan(spark: Any) -> None:
    rules = spark.createDataFrame([("a", "x > 1"), ("b", "x >"), ("c", None)], RULES)
    events = spark.createDataFrame([(1, 9)], "event_id int, x int")
    with pytest.raises(tamis.spark.InvalidSubscriptionsError, match="2 subscriptions"):
        tamis.spark.match(events, rules, plan="sharded", shards=2)
    matches, bad = tamis.spark.match(events, rules, plan="sharded", shards=2, on_error="quarantine")
    assert [row.subscription for row in matches.collect()] == ["a"]
    assert sorted(row.id for row in bad.collect()) == ["b", "c"]


def test_changes_reach_sharded_indexes(spark: Any, tmp_path: Any) -> None:
    store = tamis.spark.SubscriptionStore(tmp_path / "store")
    rules = spark.range(40).selectExpr("'r' || id AS id", "'x = ' || id AS expression")
    store.replace_all(rules, plan="sharded", shards=4)
    changes = [("remove", 1, "r3", None), ("replace", 2, "r4", "x = 3"), ("add", 3, "new", "x = 5")]
    columns = "op string, sequence bigint, id string, expression string"
    store.apply_changes(spark.createDataFrame(changes, columns))
    events = spark.range(8).selectExpr("id AS event_id", "id AS x")
    found = tamis.spark.match(events, store)
    assert rows(found) == sorted(
        [(0, "r0"), (1, "r1"), (2, "r2"), (3, "r4"), (5, "new"), (5, "r5"), (6, "r6"), (7, "r7")]
    )


def test_the_planner_says_why() -> None:
    small = Sizes(subscriptions=1000, characters=50_000, room=8 << 30, tasks=4)
    large = Sizes(subscriptions=10**8, characters=10**10, room=8 << 30, tasks=4)
    assert choose(small).name == "replicated"
    plan = choose(large)
    assert plan.name == "sharded"
    assert plan.shards >= 4
    assert "do not fit" in plan.reason
    assert choose(small, advertised=True).name == "by-source"
    assert choose(large, "replicated").name == "replicated"
    with pytest.raises(tamis.ArgumentError, match="needs advertisements"):
        choose(small, "by-source")


@pytest.mark.parametrize("plan", [pytest.param("replicated", marks=pytest.mark.slow), "sharded"])
@pytest.mark.thorough
def test_ids_given_twice_are_noticed_in_every_plan(spark: Any, plan: str) -> None:
    rules = spark.createDataFrame([("a", "x = 1"), ("a", "y = 2"), ("b", "x = 1")], RULES)
    events = spark.createDataFrame([(1, 1, 2)], "event_id int, x int, y int")
    with pytest.raises(tamis.spark.InvalidSubscriptionsError, match=r"given 2 times|this id is also that of"):
        tamis.spark.match(events, rules, plan=plan, shards=2)
    matches, _ = tamis.spark.match(events, rules, plan=plan, shards=2, on_error="quarantine")
    assert [row[1] for row in rows(matches)] == ["a", "b"]
