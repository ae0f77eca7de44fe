"""Subscriptions that change: versions, sequence numbers, quarantine, streams, and what is thrown away."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark import TaskContext

import tamis
import tamis.spark
from tamis.spark.matching import task
from tamis.spark.matching.answer import TableQuery
from tamis.spark.matching.task import Source
from tamis.spark.store.change_data_feed import as_changes
from tamis.spark.store.folding import folded_in_parallel, waiting_to_be_folded
from tamis.spark.store.pins import Pin, pin
from tamis.store import apply_changes as apply
from tamis.store import folding, garbage
from tamis.store.directory import open_directory
from tamis.store.versions import read_version, version_numbers

pytestmark = pytest.mark.spark

CHANGES = "op string, sequence bigint, id string, expression string"


def change(store: tamis.spark.SubscriptionStore, spark: Any, *rows: tuple[Any, ...]) -> Any:
    return store.apply_changes(spark.createDataFrame(list(rows), CHANGES))


def held(store: tamis.spark.SubscriptionStore, spark: Any, **event: Any) -> list[str]:
    [names] = [", ".join(f"{value!r} AS {name}" for name, value in event.items())]
    matches = tamis.spark.match(spark.sql(f"SELECT 1 AS event_id, {names}"), store)
    return sorted(row.subscription for row in matches.collect())


@pytest.fixture
def store(tmp_path: Path) -> tamis.spark.SubscriptionStore:
    return tamis.spark.SubscriptionStore(tmp_path / "store")


def test_the_highest_sequence_wins_in_any_order(spark: Any, store: tamis.spark.SubscriptionStore) -> None:
    assert change(store, spark, ("add", 5, "a", "x > 1"), ("remove", 4, "a", None)).applied == 1
    late = change(store, spark, ("remove", 3, "a", None), ("add", 5, "a", "x > 100"))
    assert (late.version, late.applied, late.stale) == (1, 0, 2)
    assert held(store, spark, x=2) == ["a"]
    change(store, spark, ("remove", 6, "a", None), ("remove", 7, "unknown", None))
    assert held(store, spark, x=2) == []
    assert change(store, spark, ("add", 5, "a", "x > 1")).applied == 0
    assert change(store, spark, ("replace", 8, "a", "x > 0")).version == 3
    assert held(store, spark, x=2) == ["a"]


@pytest.mark.slow
def test_shards_are_folded_by_a_task_each(spark: Any, store: tamis.spark.SubscriptionStore) -> None:
    rules = spark.sql("SELECT concat('r', id) AS id, concat('x = ', id) AS expression FROM range(40)")
    store.replace_all(rules, plan="sharded", shards=3)
    news = [("add", id, f"n{id}", f"x = {id}") for id in range(30)] + [("remove", 99, "r7", None)]
    version = change(store, spark, *news).version
    directory = open_directory(store.url)
    assert waiting_to_be_folded(directory, version) is None, "a few changes wait"
    due = read_version(directory, version).to_json().decode()
    assert folded_in_parallel(spark, store.url, due) == version + 1
    assert not read_version(directory).changes
    assert held(store, spark, x=3) == ["n3", "r3"]
    assert held(store, spark, x=7) == ["n7"]
    assert folded_in_parallel(spark, store.url, due) is None, "somebody made a version meanwhile"
    assert change(store, spark, ("add", 5, "n9", "x = 100")).applied == 0, "late changes stay late"


def test_a_bad_change_goes_to_quarantine_once(spark: Any, store: tamis.spark.SubscriptionStore) -> None:
    bad = [
        ("add", 1, "a", "x >"),
        ("zap", 1, "b", "x > 1"),
        ("add", None, "c", "x > 1"),
        ("add", 1, "d", None),
    ]
    for _ in range(2):  # the second time as after a crash
        result = change(store, spark, *bad, ("add", 2, "a", "x > 1"))
        assert (result.version, result.quarantined) == (1, 4)
    assert held(store, spark, x=2) == ["a"]
    quarantined = {row.id: row.error for row in store.quarantined(spark).collect()}
    assert set(quarantined) == {"a", "b", "c", "d"}
    assert store.quarantined(spark).count() == 4
    assert "line 1, column 4" in quarantined["a"]
    assert "'zap'" in quarantined["b"]


def test_changes_come_on_top_of_what_was_built(
    spark: Any, store: tamis.spark.SubscriptionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = spark.range(1000).selectExpr("'r' || id AS id", "'x > ' || id AS expression")
    store.replace_all(rules)
    change(store, spark, ("remove", 1, "r0", None), ("replace", 2, "r1", "y > 0"), ("add", 3, "new", "x > 0"))
    assert held(store, spark, x=3) == ["new", "r2"]
    assert held(store, spark, y=1) == ["r1"]
    version = store.built_index(spark).version
    assert (version.subscriptions, len(version.changes)) == (1000, 1)
    assert sorted(version.attributes) == ["x", "y"]


def test_changes_are_folded_into_new_snapshots(
    store: tamis.spark.SubscriptionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow as pa

    from tamis.store.changes import change_schema
    from tamis.store.open_shards import open_shard

    monkeypatch.setattr(folding, "CHANGES_BEFORE_FOLD", 10)
    directory = open_directory(store.url)
    schema = change_schema("int")
    for batch in range(6):
        rows = [
            {"op": "add", "sequence": batch, "id": number, "expression": f"x > {number + batch}"}
            for number in range(batch, batch + 4)
        ]
        apply.apply_to_store(directory, pa.Table.from_pylist(rows, schema), schema)
    version = read_version(directory)
    assert version.shards[0]
    assert len(version.changes) < 6
    [index] = open_shard(directory, version, 0)
    final = {number: number + max(b for b in range(6) if b <= number < b + 4) for number in range(9)}
    assert {id: str(index[id].expression) for id in index} == {
        number: f"x > {bound}" for number, bound in final.items()
    }
    stale = pa.Table.from_pylist([{"op": "remove", "sequence": 0, "id": 0}], schema)
    assert apply.apply_to_store(directory, stale, schema).applied == 0


def test_ids_keep_their_type(spark: Any, store: tamis.spark.SubscriptionStore) -> None:
    change(store, spark, ("add", 1, "a", "x > 1"))
    numbered = spark.createDataFrame([("add", 1, 7, "x > 1")], CHANGES.replace("id string", "id bigint"))
    with pytest.raises(Exception, match="ids of type string, not int"):
        store.apply_changes(numbered)


def test_wrong_columns_say_what_would_be_right(spark: Any, store: tamis.spark.SubscriptionStore) -> None:
    with pytest.raises(tamis.ArgumentError, match="these have no 'op'"):
        store.apply_changes(spark.createDataFrame([], "sequence bigint, id string, expression string"))
    with pytest.raises(tamis.ArgumentError, match="must be an integer, not string"):
        store.apply_changes(spark.createDataFrame([], CHANGES.replace("sequence bigint", "sequence string")))


def test_what_nobody_uses_is_removed(spark: Any, store: tamis.spark.SubscriptionStore) -> None:
    directory = open_directory(store.url)
    rules = spark.createDataFrame([("a", "x > 1")], "id string, expression string")
    for _ in range(4):
        store.replace_all(rules)
    directory.create("pins/query/000000000001.json", json.dumps({"version": 1, "now": 0}).encode())
    leased = tamis.spark.open_index(spark, store.url)
    events = spark.createDataFrame([(1, 2)], "event_id int, x int")
    assert leased.match(events).count() == 1  # leases version 4
    store.replace_all(rules)
    removed = store.collect_garbage(spark, keep=1, grace=0.0)
    assert version_numbers(directory) == [1, 4, 5]
    assert len(directory.list("snapshots")) == 3
    assert sum(name.startswith("snapshots/") for name in removed) == 2
    assert leased.match(events).count() == 1


class Files:
    """A folder that a stream reads, file by file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)

    def put(self, *rows: dict[str, Any]) -> None:
        number = len(list(self.folder.iterdir()))
        draft = self.folder.parent / f"{self.folder.name}-{number}.json"
        draft.write_text("\n".join(json.dumps(row) for row in rows))
        draft.rename(self.folder / f"{number}.json")


def until(condition: Any, query: Any) -> None:
    """Wait for a condition; a query that fails ends the wait with its error."""
    while not condition():
        if query.exception() is not None:
            raise query.exception()
        time.sleep(0.2)


def test_streams_follow_the_versions(
    spark: Any, store: tamis.spark.SubscriptionStore, tmp_path: Path
) -> None:
    changed, seen = Files(tmp_path / "changes"), Files(tmp_path / "events")
    change(store, spark, ("add", 1, "a", "x > 1"))
    changes = spark.readStream.schema(CHANGES).json(str(changed.folder))
    applying = store.apply_changes(
        changes, checkpoint=tmp_path / "c1", trigger={"processingTime": "100 milliseconds"}
    )
    events = spark.readStream.schema("event_id int, x int, y int").json(str(seen.folder))
    matching = (
        tamis.spark.match(events, store)
        .writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "c2"))
        .trigger(processingTime="100 milliseconds")
        .start(str(tmp_path / "matches"))
    )

    def found() -> dict[int, list[tuple[str, int]]]:
        matching.processAllAvailable()
        pairs: dict[int, list[tuple[str, int]]] = {}
        for row in spark.read.parquet(str(tmp_path / "matches")).collect():
            pairs.setdefault(row.event_id, []).append((row.subscription, row.version))
        return pairs

    try:
        seen.put({"event_id": 1, "x": 2, "y": 2})
        assert found() == {1: [("a", 1)]}
        changed.put(
            {
                "op": "add",
                "sequence": 2,
                "id": "b",
                "expression": "y > 1",
            },  # an attribute nobody asked for yet
            {"op": "remove", "sequence": 3, "id": "a"},
            {"op": "add", "sequence": 4, "id": "bad", "expression": "y >"},
        )
        until(lambda: store.built_index(spark).version.number == 2, applying)
        seen.put({"event_id": 2, "x": 2, "y": 2})
        assert found() == {1: [("a", 1)], 2: [("b", 2)]}
        assert [row.id for row in store.quarantined(spark).collect()] == ["bad"]
    finally:
        applying.stop()
        matching.stop()


def test_a_replacement_forgets_no_sequence(spark: Any, store: tamis.spark.SubscriptionStore) -> None:
    change(store, spark, ("add", 5, "a", "x > 1"), ("remove", 6, "a", None))
    store.replace_all(spark.createDataFrame([("b", "x > 1")], "id string, expression string"))
    assert change(store, spark, ("add", 5, "a", "x > 1")).applied == 0
    assert held(store, spark, x=2) == ["b"]


@pytest.mark.thorough
def test_a_change_may_be_for_one_source(spark: Any, store: tamis.spark.SubscriptionStore) -> None:
    changes = [("add", 1, "a", "x > 1", "shop"), ("add", 2, "b", "x > 1", None)]
    store.apply_changes(spark.createDataFrame(changes, f"{CHANGES}, source string"))
    assert held(store, spark, x=2, source="other") == ["b"]
    assert held(store, spark, x=2, source="shop") == ["a", "b"]


def test_options_of_building_are_refused_for_what_is_built(
    spark: Any, store: tamis.spark.SubscriptionStore
) -> None:
    change(store, spark, ("add", 1, "a", "x > 1"))
    events = spark.createDataFrame([(1, 2)], "event_id int, x int")
    with pytest.raises(tamis.ArgumentError, match="tgas: these are about building"):
        tamis.spark.match(events, store, tgas=["x"])


def test_a_detail_that_cannot_be_read_goes_to_quarantine(
    spark: Any, store: tamis.spark.SubscriptionStore
) -> None:
    rows = [
        ("add", 1, "a", "x > 1", "high", None),
        ("add", 1, "b", "x > 1", "2.5", "soon"),
        ("add", 1, "c", "x > 1", "2.5", "2036-01-01 00:00:00"),
    ]
    changes = spark.createDataFrame(rows, f"{CHANGES}, priority string, expires string")
    assert store.apply_changes(changes)[1:] == (1, 0, 2)
    assert held(store, spark, x=2) == ["c"]
    assert {row.id: row.error for row in store.quarantined(spark).collect()} == {
        "a": "priority is high, which is not a number",
        "b": "expires is soon, which is not a time",
    }


def test_only_the_sequences_that_are_asked_for_are_loaded(tmp_path: Path) -> None:
    import pyarrow as pa

    from tamis.store.change_log import known_sequences
    from tamis.store.changes import change_schema

    directory, schema = open_directory(tmp_path), change_schema("int")
    rows = [{"op": "add", "sequence": 3, "id": id, "expression": "x > 1"} for id in range(1000)]
    apply.apply_to_store(directory, pa.Table.from_pylist(rows, schema), schema)
    version = read_version(directory)
    asked = pa.chunked_array([[5, 2000]], pa.int64())
    assert known_sequences(directory, version, asked) == {5: 3}


def test_an_emptied_store_keeps_the_type_of_its_ids(tmp_path: Path) -> None:
    import pyarrow as pa

    from tamis.store.changes import change_schema

    directory = open_directory(tmp_path)
    for op, sequence, id in (("add", 1, 7), ("remove", 2, 7), ("add", 1, "a")):
        schema = change_schema("string" if isinstance(id, str) else "int")
        rows = [{"op": op, "sequence": sequence, "id": id, "expression": "x > 1"}]
        table = pa.Table.from_pylist(rows, schema)
        if op == "add" and id == "a":
            with pytest.raises(tamis.SnapshotError, match="ids of type int, not string"):
                apply.apply_to_store(directory, table, schema)
        else:
            assert apply.apply_to_store(directory, table, schema).applied == 1


def test_only_subscriptions_that_are_held_bind_a_store_to_sources(
    spark: Any, store: tamis.spark.SubscriptionStore
) -> None:
    columns = f"{CHANGES}, source string"
    refused = [("add", 1, "a", "x > 1", None), ("add", 1, "b", "x >", "shop")]
    assert store.apply_changes(spark.createDataFrame(refused, columns)).quarantined == 1
    assert not read_version(open_directory(store.url)).bound
    store.apply_changes(spark.createDataFrame([("add", 2, "b", "x > 2", "shop")], columns))
    assert read_version(open_directory(store.url)).bound


def test_a_stream_says_that_ids_have_become_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tamis.spark.matching import task
    from tamis.spark.matching.answer import TableQuery
    from tamis.spark.store.pins import Pin
    from tamis.store.index_files import put_index
    from tamis.store.versions import Version, publish

    directory, index = open_directory(tmp_path), tamis.Index()
    index.add(7, "x > 1")
    shards = [[put_index(directory, index)]]
    publish(directory, Version(number=1, plan="replicated", ids="int", shards=shards, subscriptions=1))
    monkeypatch.setattr(task, "pinned", lambda *_: Pin(version=1, now=0))
    with pytest.raises(
        tamis.SnapshotError, match=r"version 1 .* ids of type int, but this query was started"
    ):
        task.Source(str(tmp_path), None, None, ids="string").resolve(TableQuery("all"))
    _, version, _ = task.Source(str(tmp_path), None, None, ids="int").resolve(TableQuery("all"))
    assert version.number == 1


@pytest.mark.slow
def test_a_running_stream_follows_when_the_store_gets_more_shards_and_fewer(
    spark: Any, store: tamis.spark.SubscriptionStore, tmp_path: Path
) -> None:
    """A query is planned for the shards of its first version; events must find those of later ones, too."""
    values = [f"v{number}" for number in range(40)]
    written = [(f"{value}-{copy}", f"s = '{value}'", float(copy)) for value in values for copy in range(3)]
    rules = spark.createDataFrame(written, "id string, expression string, priority double")
    store.replace_all(rules, plan="sharded", shards=2)
    seen = Files(tmp_path / "events")
    events = spark.readStream.schema("event_id int, s string").json(str(seen.folder))
    index = store.built_index(spark)
    asked = {"best": index.match(events, k=2), "count": index.count(events)}
    queries = {
        name: frame.writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / f"checkpoint-{name}"))
        .start(str(tmp_path / name))
        for name, frame in asked.items()
    }

    def found(name: str, *columns: str) -> list[tuple[Any, ...]]:
        queries[name].processAllAvailable()
        rows = spark.read.parquet(str(tmp_path / name)).collect()
        return sorted(tuple(row[column] for column in columns) for row in rows)

    expected: dict[str, list[tuple[Any, ...]]] = {name: [] for name in asked}
    shards_were: list[int] = []
    try:
        for version, building in enumerate([{}, {"shards": 5}, {"plan": "replicated"}], 1):
            if building:
                store.replace_all(rules, **building)
            shards_were.append(len(store.built_index(spark).version.shards))
            first = 100 * version
            seen.put(*({"event_id": first + at, "s": value} for at, value in enumerate([*values, "other"])))
            for at, value in enumerate(values):
                expected["best"] += [
                    (first + at, f"{value}-{2 - place}", place + 1, version) for place in range(2)
                ]
                expected["count"].append((first + at, 3))
            expected["count"].append((first + len(values), 0))
            assert found("best", "event_id", "subscription", "rank", "version") == sorted(expected["best"])
            assert found("count", "event_id", "matches") == sorted(expected["count"])
    finally:
        for query in queries.values():
            query.stop()
    assert shards_were == [2, 5, 1]


@pytest.mark.thorough
def test_a_replayed_foreach_batch_uses_the_version_it_had(
    spark: Any, store: tamis.spark.SubscriptionStore, tmp_path: Path
) -> None:
    """The function fails after it has matched, the rules change, and Spark calls it again."""
    columns = f"{CHANGES}, expires timestamp"
    soon = datetime.now(UTC) + timedelta(seconds=3600)
    store.apply_changes(spark.createDataFrame([("add", 1, "a", "x > 1", soon)], columns))
    Files(tmp_path / "events").put({"event_id": 1, "x": 2})
    events = spark.readStream.schema("event_id int, x int").json(str(tmp_path / "events"))
    found: list[list[tuple[str, int]]] = []
    fails = True

    def match(batch: Any, _: int) -> None:
        matches = tamis.spark.match(batch, store)
        found.append(sorted((row.subscription, row.version) for row in matches.collect()))
        if fails:
            raise ValueError("a sink that fails")

    def run() -> Any:
        query = (
            events.writeStream.foreachBatch(match)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return query

    with pytest.raises(Exception, match="a sink that fails"):
        run()
    change(store, spark, ("remove", 2, "a", None), ("add", 2, "b", "x > 1"))
    fails = False
    run()
    assert found == [[("a", 1)], [("a", 1)]]
    Files(tmp_path / "more").put({"event_id": 2, "x": 2})
    (tmp_path / "more" / "0.json").rename(tmp_path / "events" / "1.json")
    run()
    assert found[-1] == [("b", 2)], "the next micro-batch uses the latest version"


def test_a_store_that_never_changes_is_cleaned_by_those_who_match(
    spark: Any, store: tamis.spark.SubscriptionStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(store, spark, ("add", 1, "a", "x > 1"))
    directory = open_directory(store.url)
    for number in range(30):
        directory.create(f"pins/query/{number:012d}.json", b'{"version": 1, "now": 0}')
        directory.create(f"reports/old/match-{number:012d}-0.json", b"{}")
        long_ago = time.time() - 8 * 24 * 3600
        os.utime(Path(store.url) / f"reports/old/match-{number:012d}-0.json", (long_ago, long_ago))
    for marker in directory.list("cleaned"):  # as if ten minutes had passed
        directory.delete(f"cleaned/{marker}")
    monkeypatch.setattr(garbage, "_windows_seen", {})
    source = Source(store.url, None, "run")
    monkeypatch.setattr(task, "pinned", lambda *_: Pin(version=1, now=0))
    source.resolve(TableQuery("all"))
    assert len(directory.list("pins/query")) == garbage.PINS_KEPT
    assert directory.list("reports") == []
    directory.create("reports/later/match-000000000000-0.json", b"{}")
    source.resolve(TableQuery("all"))
    assert len(directory.list("cleaned")) == 1, "once in a window"


def test_a_stream_leaves_a_bounded_number_of_files(
    spark: Any, store: tamis.spark.SubscriptionStore, tmp_path: Path
) -> None:
    change(store, spark, ("add", 1, "a", "x > 1"))
    directory, version = open_directory(store.url), read_version(open_directory(store.url))
    for batch in range(150):
        pin(directory, "query", batch)
        context = FakeContext(batch)
        with context.installed():
            seen = task.Seen(version)
            seen.report(directory, "run", 0)
            seen.report(directory, "run", 0)  # tried again
    assert len(directory.list("pins/query")) == garbage.PINS_KEPT
    assert len(directory.list("reports/run")) == task.BATCHES_REPORTED


class FakeContext:
    """What a task of a micro-batch knows of itself."""

    def __init__(self, batch: int) -> None:
        self.batch = batch

    def getLocalProperty(self, name: str) -> str | None:  # noqa: N802 - Spark's name
        return {"streaming.sql.batchId": str(self.batch), "sql.streaming.queryId": "query"}.get(name)

    def partitionId(self) -> int:  # noqa: N802
        return 0

    def stageId(self) -> int:  # noqa: N802
        return 7

    @contextmanager
    def installed(self) -> Iterator[None]:
        before, TaskContext._taskContext = TaskContext._taskContext, self
        try:
            yield
        finally:
            TaskContext._taskContext = before


def test_driver_and_executors_must_run_the_same_release(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from tamis.spark import session

    events = spark.createDataFrame([(1, 2)], "event_id int, x int")
    index = tamis.spark.build(spark.createDataFrame([("a", "x > 1")], "id string, expression string"))
    monkeypatch.setattr(tamis, "__version__", "0.1.0")  # of the driver alone: workers import their own
    with pytest.raises(Exception, match=r"the driver runs Tamis 0\.1\.0 and this executor 0\.2"):
        index.match(events).collect()
    with pytest.raises(tamis.TamisError, match=r"install the same release on all hosts"):
        session.on_executor(spark, lambda: 1)


def test_rules_for_columns_that_events_lack_are_refused_when_asked_to(
    spark: Any, store: tamis.spark.SubscriptionStore
) -> None:
    events = spark.createDataFrame([(1, 2)], "event_id int, amount int")
    rows = [
        ("add", 1, "a", "amount > 1"),
        ("add", 1, "b", "amuont > 1"),
        ("add", 1, "c", "amount > 1 OR vip"),
    ]
    applied = store.apply_changes(spark.createDataFrame(rows, CHANGES), events=events)
    assert (applied.applied, applied.quarantined) == (1, 2)
    said = {row.id: row.error for row in store.quarantined(spark).collect()}
    assert said["b"].startswith("no column of the events holds amuont (did you mean `amount`?)")
    assert "vip" in said["c"]
    assert held(store, spark, amount=2) == ["a"]


@pytest.mark.thorough
def test_change_data_of_a_table_become_changes(spark: Any, store: tamis.spark.SubscriptionStore) -> None:
    """As Delta's feed has them; a commit that rewrites the table deletes each rule and inserts it again."""
    columns = "rule string, text string, _change_type string, _commit_version bigint"

    def feed(*rows: tuple[Any, ...]) -> Any:
        changes = as_changes(spark.createDataFrame(list(rows), columns), {"id": "rule", "expression": "text"})
        return store.apply_changes(changes)

    feed(("a", "x > 1", "insert", 1), ("b", "x > 1", "insert", 1))
    feed(
        ("a", "x > 1", "update_preimage", 2),
        ("a", "x > 2", "update_postimage", 2),
        ("b", "x > 1", "delete", 2),
    )
    assert held(store, spark, x=2) == []
    feed(("a", "x > 0", "insert", 3), ("a", "x > 2", "delete", 3), ("b", "x > 1", "insert", 1))
    assert held(store, spark, x=2) == ["a"]
    with pytest.raises(tamis.ArgumentError, match="Switch it on with ALTER TABLE"):
        as_changes(spark.createDataFrame([("a", "x > 1")], "id string, expression string"))
    with pytest.raises(tamis.ArgumentError, match="has no column 'rlue'"):
        as_changes(spark.createDataFrame([], columns), {"id": "rlue"})


def test_a_session_may_do_without_reports(spark: Any, store: tamis.spark.SubscriptionStore) -> None:
    change(store, spark, ("add", 1, "a", "x > 1"))
    events = spark.createDataFrame([(1, 2)], "event_id int, x int")
    spark.conf.set("spark.tamis.reports", "false")
    try:
        matches = tamis.spark.match(events, store)
        assert matches.count() == 1
    finally:
        spark.conf.unset("spark.tamis.reports")
    directory = open_directory(store.url)
    assert directory.list("reports") == []
    assert len(directory.list("leases")) == 1, "its version is still kept"
    assert tamis.spark.explain(matches).tasks() == []
