"""Small sets of subscriptions are built by one task, larger ones by several jobs: with the same result.

Faults: a set at the limit is cut; an empty one is lost; a refused subscription is published, or another
message is given; sources, payloads, sequences or the plan that was asked for are forgotten; a job is run for
each step.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import tamis
import tamis.spark
from tamis.spark.building import one_task

pytestmark = pytest.mark.spark

COLUMNS = (
    "id string, expression string, priority string, weights map<string,double>, tags array<string>, "
    "payload binary, expires timestamp, source string"
)
GONE = datetime(2020, 1, 1, tzinfo=UTC)
RULES: list[tuple[Any, ...]] = [
    ("a", "x > 1", "2.5", {"x": 0.5}, ["t"], b"p", None, None),
    ("b", "x > 2", None, None, None, None, None, "shop"),
    ("c", "x > 3 OR missing = 'é'", "1", None, [], b"", None, "mall"),
    ("d", "x > 0", "1", None, None, None, GONE, None),
]
BAD: list[tuple[Any, ...]] = [
    ("e", "x >", None, None, None, None, None, None),
    ("f", "x > 1", "much", None, None, None, None, None),
    ("g", "x ! 2", None, None, None, None, None, "shop"),
    (None, "x > 1", None, None, None, None, None, None),
    ("h", None, None, None, None, None, None, None),
]
SCHEMA = {"x": "int", "source": "string", "missing": "string"}
EVENTS = [(number, number, source) for number in range(6) for source in ("shop", "mall", None)]

Built = Callable[..., Any]


@pytest.fixture(params=["one task", "several jobs"])
def limit(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "several jobs":
        monkeypatch.setattr(one_task, "SMALL", 0)


def jobs_of(spark: Any, work: Callable[[], Any]) -> tuple[Any, int]:
    """What `work` gives, and how many jobs it took."""
    context = spark.sparkContext
    context.setJobGroup("counted", "counted")
    tracker = context.statusTracker()
    before = set(tracker.getJobIdsForGroup("counted"))
    try:
        result = work()
        jobs = set(tracker.getJobIdsForGroup("counted")) - before
        return result, len(jobs)
    finally:
        context._jsc.clearJobGroup()


def answers(spark: Any, index: Any) -> list[Any]:
    events = spark.createDataFrame(EVENTS, "event_id int, x int, source string")
    return sorted(map(str, index.match(events, key=["event_id", "source"], k=9, score="relevance").collect()))


def described(index: Any) -> dict[str, Any]:
    """A version without what differs between any two builds."""
    version = index.version
    shards = [[(file.subscriptions, file.bytes) for file in shard] for shard in version.shards]
    notes = {name: told for name, told in version.notes.items() if name != "build"}
    return {**vars(version), "shards": shards, "notes": notes}


def both(monkeypatch: pytest.MonkeyPatch, build: Built) -> tuple[Any, Any]:
    small = build()
    monkeypatch.setattr(one_task, "SMALL", 0)
    return small, build()


def test_versions_and_answers_are_the_same(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = spark.createDataFrame(RULES, COLUMNS)
    small, large = both(monkeypatch, lambda: tamis.spark.build(rules, schema=SCHEMA))
    assert described(small) == described(large)
    assert small.version.bound
    assert small.version.payloads
    found = answers(spark, small)
    assert found == answers(spark, large)
    assert len(found) == 12 + 3 + 2, "a in four events of three sources, b in three of one, c in two of one"


@pytest.mark.thorough
def test_refusals_are_the_same(spark: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rules = spark.createDataFrame([*RULES, *BAD, RULES[0]], COLUMNS)
    store = tamis.spark.SubscriptionStore(tmp_path)

    def refused() -> Any:
        with pytest.raises(tamis.spark.InvalidSubscriptionsError) as told:
            store.replace_all(rules)
        return told.value

    small, large = both(monkeypatch, refused)
    assert str(small) == str(large)
    assert (small.problems, small.refused) == (large.problems, large.refused)
    assert small.refused == len(BAD) + 1
    with pytest.raises(tamis.SnapshotError, match="holds no index"):
        store.built_index(spark)
    monkeypatch.undo()
    left_out, others = both(monkeypatch, lambda: tamis.spark.build(rules, on_error="quarantine"))
    assert described(left_out) == described(others)
    assert sorted(map(str, left_out.quarantined.collect())) == sorted(map(str, others.quarantined.collect()))


@pytest.mark.parametrize("rows", [0, 5, 6])
@pytest.mark.thorough
def test_sets_around_the_limit(spark: Any, monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(one_task, "SMALL", 5)
    rules = spark.createDataFrame([(n, f"x >= {n}") for n in range(rows)], "id int, expression string")
    index = tamis.spark.build(rules.repartition(4))
    assert index.version.subscriptions == rows
    events = spark.createDataFrame([(1, 50)], "event_id int, x int")
    assert sorted(row.subscription for row in index.match(events).collect()) == [*range(rows)]


@pytest.mark.usefixtures("limit")
@pytest.mark.thorough
def test_the_plan_is_the_one_that_fits_or_was_asked_for(spark: Any) -> None:
    rules = spark.createDataFrame(RULES, COLUMNS)
    built = [
        tamis.spark.build(rules, **asked).version.plan
        for asked in ({}, {"plan": "replicated"}, {"shards": 2}, {"memory": 400}, {"shards": 1})
    ]
    assert built == ["replicated", "replicated", "sharded", "sharded", "replicated"]


@pytest.mark.usefixtures("limit")
def test_late_changes_stay_late(spark: Any, tmp_path: Path) -> None:
    store = tamis.spark.SubscriptionStore(tmp_path)
    columns = "op string, sequence bigint, id string, expression string"
    store.apply_changes(spark.createDataFrame([("add", 7, "a", "x > 1")], columns))
    index = store.replace_all(spark.createDataFrame([("b", "x > 1")], "id string, expression string"))
    assert (index.version.number, index.version.base) == (2, 2)
    late = store.apply_changes(spark.createDataFrame([("add", 6, "a", "x > 1")], columns))
    assert (late.applied, late.version) == (0, 2)


@pytest.mark.usefixtures("limit")
def test_errors_of_tasks_are_those_of_tamis(spark: Any) -> None:
    rules = spark.createDataFrame(RULES, COLUMNS)
    with pytest.raises(tamis.ArgumentError, match="nonsense"):
        tamis.spark.build(rules, schema={"x": "nonsense"})


@pytest.mark.thorough
def test_it_takes_one_job_for_a_small_set(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = spark.createDataFrame(RULES, COLUMNS)
    tamis.spark.build(rules)  # what is asked once for each session
    (_, small), (_, large) = both(monkeypatch, lambda: jobs_of(spark, lambda: tamis.spark.build(rules)))
    # Adaptive execution submits each side of a shuffle as a job.
    assert small <= 2 < large
