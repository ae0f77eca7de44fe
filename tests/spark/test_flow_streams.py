"""Rules with memory over streams: the answers of one process, through every way that state is kept."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis.spark
from spark.flows import EVENTS, collected, one_process, plain, put, random_events, random_query
from tamis import ArgumentError
from tamis.spark.flows.bucket import Bucket, Step, split_late
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


@pytest.mark.parametrize("seed", range(12))
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


@pytest.fixture
def rocksdb(spark: Any) -> Iterator[Any]:
    before = spark.conf.get(PROVIDER)
    spark.conf.set(PROVIDER, ROCKSDB)
    yield spark
    spark.conf.set(PROVIDER, before)


@pytest.mark.spark_since("4.0")
@pytest.mark.filterwarnings("ignore:query .* cannot be split")
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
