"""Rules with memory over streams: the answers of one process, through every way that state is kept."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis.spark
from seeds import few
from spark.flows import EVENTS, collected, one_process, plain, put, random_events, random_query
from tamis import ArgumentError, TamisError
from tamis.spark.flows.bucket import Bucket, Step, _sorted, split_late
from tamis.spark.flows.definition import Definition, Stream
from tamis.spark.flows.frames import EVENT, TIE, TIME

pytestmark = pytest.mark.spark

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"

STREAMS = (Stream("a", "ts"), Stream("b", "ts"))
ORDER = ["__tamis_order_0"]


def packed(events: list[dict[str, Any]]) -> pa.Table:
    struct = pa.array(
        events,
        pa.struct(
            {
                "ts": pa.int64(),
                "seq": pa.int64(),
                "user": pa.string(),
                "ip": pa.int32(),
                "n": pa.int32(),
                "ok": pa.bool_(),
            }
        ),
    )
    times = pa.array([event["ts"] * 10**6 for event in events], pa.int64())
    order = pa.array([event["seq"] for event in events], pa.int64())
    return pa.table({TIME: times, ORDER[0]: order, TIE: order, EVENT: struct})


@pytest.mark.parametrize("seed", few(range(12)))
def test_a_bucket_is_a_flow_that_may_be_kept_at_any_moment(seed: int) -> None:
    choose = random.Random(seed)
    definition = Definition(STREAMS)
    queries = {f"q{at}": (random_query(choose), "a") for at in range(8)}
    events = {"a": random_events(choose, 90, jitter=4), "b": random_events(choose, 60, jitter=4)}
    arriving = [(number, event) for number, name in enumerate("ab") for event in events[name]]
    arriving.sort(key=lambda pair: pair[1]["seq"])
    bucket, log = Bucket(definition, ORDER), []
    base: bytes | None = None
    told = []
    latest, watermark = [0, 0], 0
    while arriving:
        portion, arriving = arriving[: (size := choose.randrange(1, 30))], arriving[size:]
        arrived = [
            (number, packed(own)) for number in (0, 1) if (own := [e for n, e in portion if n == number])
        ]
        added, removed = bucket.changes(queries) if watermark > bucket.watermark else ({}, [])
        step = Step(watermark, added, removed, arrived)
        told += [out for part in bucket.take(step) for out in part]
        log.append(step.to_bytes())
        for number, event in portion:
            latest[number] = max(latest[number], event["ts"])
        watermark = max(watermark, (min(latest) - 4) * 1000 - 1)
        how = choose.choice(["held", "log", "base"])
        if how == "base":
            base, log = bucket.to_bytes(), []
        if how != "held":
            bucket = Bucket(definition, ORDER) if base is None else Bucket.from_bytes(definition, ORDER, base)
            for entry in log:
                assert all(part is not None for part in bucket.take(Step.from_bytes(entry)))
    assert plain(told) == one_process(queries, events, until=bucket.watermark / 1000)


def test_queries_that_change_start_empty_and_others_go_on() -> None:
    definition = Definition(STREAMS[:1])
    bucket = Bucket(definition, ORDER)
    old, new = ("count(* LAST 1h) >= 2", None), ("count(* LAST 2h) >= 2", None)
    events = [{"ts": ts, "seq": ts, "user": "u", "ip": 1, "n": 1, "ok": True} for ts in range(1, 5)]
    told = []
    for at, wanted in enumerate(({"same": old, "other": old}, {"same": old, "other": new}, {"same": old})):
        added, removed = bucket.changes(wanted)
        step = Step((at + 1) * 1000, added, removed, [(0, packed([events[at]]))])
        told += [(out.query, at) for part in bucket.take(step) for out in part]
    assert told == [("same", 1), ("same", 2)]
    assert list(bucket.queries) == ["same"]


def test_late_is_what_the_watermark_has_passed() -> None:
    events = packed([{"ts": ts, "seq": 0, "user": None, "ip": 1, "n": 1, "ok": True} for ts in (1, 2, 3)])
    assert [part.num_rows for part in split_late(events, 2000)] == [1, 2, 0]
    assert [part.num_rows for part in split_late(events, 0)] == [3, 0, 0]


def event(ts: int, user: str = "u", seq: int = 0) -> dict[str, Any]:
    return {"ts": ts, "seq": seq, "user": user, "ip": 1, "n": 1, "ok": True}


def take(bucket: Bucket, *steps: Step) -> list[str]:
    return [out.query for step in steps for part in bucket.take(step) for out in part]


def test_missing_values_of_the_order_come_first_as_in_a_table(spark: Any) -> None:
    values = [2.5, None, float("nan"), 1.0, None, float("inf"), -0.5]
    table = pa.table({"x": values, "y": list(range(len(values)))})
    streamed = table.take(_sorted(table, ["x", "y"])).column("y").to_pylist()
    frame = spark.createDataFrame(list(enumerate(values)), "y int, x double")
    assert streamed == [row.y for row in frame.orderBy("x", "y").collect()]


def test_a_stream_that_its_limit_stopped_goes_on_with_a_greater_one() -> None:
    asked = {"q": ("count(* BY user LAST 1h) >= 2", None)}
    small, great = (Definition(STREAMS[:1], limit=limit) for limit in (1_500, 10_000_000))
    steps = [
        Step(at * 1000, asked if at == 1 else {}, [], [(0, packed([event(at, f"user {at}")]))])
        for at in range(1, 60)
    ]
    bucket = Bucket(small, ORDER)
    kept = bucket.to_bytes()
    for step in steps:
        try:
            take(bucket, step)
        except TamisError:
            break
        kept = bucket.to_bytes()
    with pytest.raises(TamisError, match="limit"):
        take(Bucket.from_bytes(small, ORDER, kept), *steps)
    again = Bucket.from_bytes(great, ORDER, kept)
    rest = [step for step in steps if step.watermark > again.watermark]
    twice = Step(100_000, {}, [], [(0, packed([event(90, "user 59")]))])
    assert take(again, *rest, twice) == ["q"]


def test_the_watermark_moves_on_when_no_event_waits() -> None:
    bucket = Bucket(Definition(STREAMS[:1]), ORDER)
    asked = {"q": ("SEQUENCE (a: ok) THEN (b: ok) WITHIN 1m BY user", None)}
    first = Step(1_000, asked, [], [(0, packed([event(1)]))])
    assert take(bucket, first, Step(2_000), Step(3_000)) == []
    assert take(bucket, Step(4_000, {}, [], [(0, packed([event(4)]))]), Step(5_000)) == ["q"]


def test_events_that_wait_count_toward_the_limit() -> None:
    definition = Definition(STREAMS[:1], limit=20_000, on_limit="shed")
    bucket = Bucket(definition, ORDER)
    soon = [event(at) for at in range(1, 1000)]
    take(bucket, Step(2_000_000, {"q": ("count(* LAST 1s) >= 9", None)}, [], [(0, packed(soon))]))
    future = [event(10**9 + at) for at in range(1000)]
    with pytest.raises(TamisError, match=r"wait for the watermark take .* lower lateness="):
        take(bucket, Step(2_000_001, {}, [], [(0, packed(future))]))


@pytest.mark.thorough
def test_what_is_shed_does_not_depend_on_having_been_read_again() -> None:
    definition = Definition(STREAMS, limit=30_000, on_limit="shed")
    pairs = "SELECT x.seq, y.seq AS other FROM a RANGE 5m AS x JOIN b RANGE 5m AS y ON x.user = y.user"
    asked = {"counted": ("count(* BY user LAST 1h) >= 2", "a"), "pairs": (pairs, None)}
    choose = random.Random(1)
    steps = []
    for number in range(4):
        own = [event(2000 * number + at, f"u{choose.randrange(900)}", at) for at in range(1, 2000)]
        arrived = [(0, packed(own[::2])), (1, packed(own[1::2]))]
        steps.append(Step(2000 * (number + 1) * 1000, {} if number else asked, [], arrived))
    held, read = Bucket(definition, ORDER), Bucket(definition, ORDER)
    for step in steps:
        told = plain(out for part in held.take(step) for out in part)
        read = Bucket.from_bytes(definition, ORDER, read.to_bytes())
        assert plain(out for part in read.take(step) for out in part) == told


@pytest.fixture
def rocksdb(spark: Any) -> Iterator[Any]:
    before = spark.conf.get(PROVIDER)
    spark.conf.set(PROVIDER, ROCKSDB)
    yield spark
    spark.conf.set(PROVIDER, before)


@pytest.mark.spark_since("4.0")
@pytest.mark.filterwarnings("ignore:query .* cannot be split")
@pytest.mark.thorough
def test_as_one_process(rocksdb: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tamis.spark.flows import processor

    monkeypatch.setattr(processor, "SHORT_LOG", 10_000)  # so that a short stream has a base and chunks
    monkeypatch.setattr(processor, "CHUNK", 3_000)
    monkeypatch.setattr(processor, "HELD", 0)  # so that every micro-batch reads its state
    choose = random.Random(3)
    queries = {f"q{at}": (random_query(choose), "a") for at in range(12)}
    events = {"a": random_events(choose, 100, jitter=4), "b": random_events(choose, 100, jitter=4)}
    for name, own in events.items():
        put(tmp_path / name, 0, own[:50])

    def start() -> Any:
        streams = {
            name: rocksdb.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1).json(str(tmp_path / name))
            for name in events
        }
        listed = [(name, text, on) for name, (text, on) in queries.items()]
        told = tamis.spark.flow(
            streams, listed, key="user", time="ts", lateness="4s", order="seq", buckets=2, late=True
        )
        plain = told.selectExpr("query", "kind", "unix_millis(time) AS time", "row", "events")
        writer = plain.writeStream.format("parquet").option(
            "checkpointLocation", str(tmp_path / "checkpoint")
        )
        return writer.start(str(tmp_path / "told"))

    query = start()
    query.processAllAvailable()
    query.stop()
    late = {**events["a"][0], "ts": 900, "seq": 1000}
    for name, own in events.items():
        put(tmp_path / name, 1, own[50:])
        put(tmp_path / name, 2, [late, {**late, "ts": None}])
    query = start()
    query.processAllAvailable()
    counts = [counted for each in query.recentProgress if (counted := each["observedMetrics"].get("tamis"))]
    query.stop()
    found = rocksdb.read.parquet(str(tmp_path / "told")).collect()
    assert sorted(row.kind for row in found if row.query is None) == ["late", "late", "untimed", "untimed"]
    assert (sum(row.late for row in counts), sum(row.untimed for row in counts)) == (2, 2)
    latest = min(max(event["ts"] for event in own) for own in events.values())
    expected = one_process(queries, events, until=latest - 4 - 0.001)
    assert len(expected) > 50
    assert collected(row for row in found if row.query is not None) == expected


@pytest.mark.slow
@pytest.mark.spark_since("4.0")
def test_queries_change_while_the_stream_runs(rocksdb: Any, tmp_path: Path) -> None:
    store = tamis.spark.QueryStore(tmp_path / "store", streams={"logins": {"time": "ts"}}, key="user")
    columns = "op string, sequence bigint, id string, expression string"

    def change(*rows: tuple[Any, ...]) -> Any:
        return store.apply_changes(rocksdb.createDataFrame(list(rows), columns))

    two = "count(* BY user LAST 1h) >= 2"
    change(("add", 1, "first", two), ("add", 2, "gone", two), ("add", 3, "bad", "count(* LAST 1h) >= 2"))
    (tmp_path / "events").mkdir()
    stream = rocksdb.readStream.schema("ts bigint, user string").json(str(tmp_path / "events"))
    told = tamis.spark.flow(stream, store, buckets=2)
    assert "as of each micro-batch" in str(tamis.spark.explain(told))
    writer = told.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.start(str(tmp_path / "told"))
    try:
        for number in range(3):
            users = ("ann", "bob", "eve")
            put(tmp_path / "events", number, [{"ts": 100 * number + 50, "user": user} for user in users])
            query.processAllAvailable()
            if number == 1:
                change(("remove", 4, "gone", None), ("add", 5, "second", two), ("replace", 6, "first", two))
        put(tmp_path / "events", 3, [{"ts": 1000, "user": "ann"}])
        query.processAllAvailable()
    finally:
        query.stop()
    found = (
        rocksdb.read.parquet(str(tmp_path / "told")).selectExpr("query", "unix_seconds(time) AS s").collect()
    )
    # The event at 150 is evaluated when the one at 250 has come, and so by the new queries.
    counted = {
        pair: sum((row.query, row.s) == pair for row in found) for pair in {(r.query, r.s) for r in found}
    }
    assert counted == {("first", 150): 3, ("first", 250): 3, ("second", 250): 3}
    assert [row.id for row in store.quarantined(rocksdb).collect()] == ["bad"]
    # The checkpoint belongs to its buckets: with others, keys would meet the state of strangers.
    put(tmp_path / "events", 4, [{"ts": 2000, "user": user} for user in ("ann", "bob", "eve", "joe")])
    other = tamis.spark.flow(stream, store, buckets=3)
    writer = other.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.start(str(tmp_path / "told"))
    with pytest.raises(Exception, match="made for another flow"):
        query.processAllAvailable()


@pytest.mark.thorough
@pytest.mark.spark_since("4.0")
def test_a_query_for_a_column_that_is_not_there_does_not_keep_a_stream_from_starting_again(
    rocksdb: Any, tmp_path: Path
) -> None:
    """A store takes it while a stream runs."""
    store = tamis.spark.QueryStore(tmp_path / "store", streams={"logins": {"time": "ts"}}, key="user")
    columns = "op string, sequence bigint, id string, expression string"
    rows = [
        ("add", 1, "bad", "sum(amuont BY user LAST 1h) >= 2"),
        ("add", 2, "good", "count(* BY user LAST 1h) > 1"),
    ]
    store.apply_changes(rocksdb.createDataFrame(rows, columns))
    (tmp_path / "events").mkdir()
    stream = rocksdb.readStream.schema("ts bigint, user string, amount int").json(str(tmp_path / "events"))
    with pytest.warns(UserWarning, match=r"(?s)query 'bad'.*did you mean `amount`"):
        tamis.spark.flow(stream, store)


@pytest.mark.spark_since("4.0")
def test_what_a_stream_needs_is_said(spark: Any, tmp_path: Path) -> None:
    stream = spark.readStream.schema("ts bigint, user string").json(str(tmp_path))
    query = {"q": "count(* BY user LAST 1h) >= 2"}
    spark.conf.unset(PROVIDER)
    with pytest.raises(ArgumentError, match="RocksDBStateStoreProvider"):
        tamis.spark.flow(stream, query, time="ts")
    table = spark.createDataFrame([(1, "ann")], "ts bigint, user string")
    with pytest.raises(ArgumentError, match="is a table"):
        tamis.spark.flow({"a": stream, "b": table}, [("q", query["q"], "a")], time="ts")


def test_an_older_spark_is_told() -> None:
    from tamis.spark.flows.stream import refuse_without_state

    class Session:
        version = "3.5.3"

    with pytest.raises(ArgumentError, match=r"since 4\.0; this is Spark 3\.5\.3"):
        refuse_without_state(Session())
