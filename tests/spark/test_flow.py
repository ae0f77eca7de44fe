"""Rules with memory over tables: the answers of one process, whatever runs in parallel."""

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tamis.spark
from seeds import few
from spark.flows import EVENTS, collected, one_process, random_events, random_query
from tamis import ArgumentError
from tamis.flow import Output
from tamis.spark.flows.definition import Definition, Stream
from tamis.spark.flows.evaluation import Fed, ToldRows
from tamis.spark.flows.frames import EVENT, TIE, TIME, stream_frame
from tamis.spark.flows.keys import split_of
from tamis.spark.flows.table import STREAM, flow_task

pytestmark = pytest.mark.spark


def rows(told: Any) -> list[Any]:
    return collected(told.selectExpr("query", "kind", "unix_millis(time) AS time", "row", "events").collect())


@pytest.mark.filterwarnings("ignore:query .* cannot be split")
@pytest.mark.parametrize("seed", few(range(2)))
def test_as_one_process(spark: Any, seed: int) -> None:
    choose = random.Random(seed)
    events = {"a": random_events(choose, 150), "b": random_events(choose, 80, first=1010)}
    queries = {f"q{at}": (random_query(choose), "a") for at in range(40)}
    frames = {
        name: spark.createDataFrame([tuple(event.values()) for event in own], EVENTS)
        for name, own in events.items()
    }
    listed = [(name, text, on) for name, (text, on) in queries.items()]
    told = tamis.spark.flow(frames, listed, key="user", time="ts", order="seq")
    expected = one_process(queries, events)
    assert len(expected) > 100
    assert rows(told) == expected
    report = tamis.spark.explain(told)
    assert isinstance(report, tamis.spark.FlowReport)
    assert report.by_key
    assert report.in_one_task


@pytest.mark.parametrize(
    ("text", "attributes"),
    [
        ("count(* BY user, ip LAST 1m) > 1 AND sum(n BY user LAST 2 ROWS) > 1", {"user"}),
        ("count(* BY `first name`, user.id EVERY 1h) > 1", {"first name", "user.id"}),
        ("count(* BY lower(user) LAST 1m) > 1", set()),
        ("count(* BY concat(a, ' RANGE INTERVAL 1 MINUTE') LAST 1m) > 1", set()),
        ("count(* LAST 1m) > 1 AND count(* BY user LAST 1m) > 1", set()),
        ("n > 1", None),
        (
            "SEQUENCE (a: n > 1) THEN (b: n > 1) WITHIN 1m BY user, ip AFTER MATCH SKIP TO NEXT ROW",
            {"user", "ip"},
        ),
        (
            "SEQUENCE (a: n > 1) THEN (b: n > 1) WITHIN 1m "
            "BY concat(a, ' WITHIN INTERVAL 1 MINUTE BY user, '), ip",
            {"ip"},
        ),
        ("SEQUENCE (a: x = ' WITHIN INTERVAL 1 MINUTE BY user') THEN (b: n > 1) WITHIN 1m", set()),
        ("SELECT x.n FROM a RANGE 1m AS x JOIN b RANGE 1m AS y ON x.user = y.user", {"user"}),
        ("SELECT x.n FROM a RANGE 1m AS x JOIN b RANGE 1m AS y ON x.user = y.ip", set()),
        ("SELECT x.n FROM a RANGE 1m AS x JOIN b ROWS 5 AS y ON x.user = y.user", set()),
        ("SELECT DISTINCT x.n FROM a RANGE 1m AS x JOIN b RANGE 1m AS y ON x.user = y.user", set()),
        (
            "SELECT x.n FROM a RANGE 1m AS x JOIN b RANGE 1m AS y ON x.user = y.user "
            "JOIN a RANGE 2m AS z ON z.ip = y.ip",
            set(),
        ),
        ("SELECT n FROM a RANGE 1m", None),
    ],
)
def test_what_splits_a_query(text: str, attributes: set[str] | None) -> None:
    definition = Definition((Stream("a", "ts"), Stream("b", "ts")))
    found = split_of(definition.flow({"q": (text, "a")}), "q").attributes
    assert (None if found is None else set(found)) == attributes


@pytest.mark.thorough
def test_a_key_with_many_events_needs_the_memory_of_its_window(spark: Any) -> None:
    events = spark.range(100_000).selectExpr("id AS ts", "'ann' AS user", "id % 1000 AS n")
    queries = {"peak": "n = 999 AND count(* BY user LAST 60s) = 61"}
    told = tamis.spark.flow(events, queries, time="ts", limit=1_000_000)
    assert told.count() == 100


@pytest.mark.thorough
def test_a_task_reads_as_it_writes() -> None:
    taken = []

    def batches() -> Iterator[pa.RecordBatch]:
        for at in range(6):
            taken.append(at)
            times = np.arange(1000) + 1000 * at
            event = pa.StructArray.from_arrays(
                [pa.array(times), pa.array(["x" * 400] * 1000)], ["ts", "text"]
            )
            yield pa.record_batch({TIME: times * 10**6, STREAM: np.zeros(1000, int), f"{EVENT}_0": event})

    definition = Definition((Stream("a", "ts"),))
    queries = {f"q{at}": ("count(* LAST 5 ROWS) > 0", None) for at in range(15)}
    made = flow_task(definition, queries, late=False)(batches())
    first = next(made)
    assert len(taken) <= 2
    assert first.nbytes < 20 << 20
    assert first.num_rows + sum(batch.num_rows for batch in made) == 6 * 1000 * 15


def test_equal_times_of_several_streams_keep_their_order() -> None:
    choose = random.Random(5)
    text = "SELECT x.seq, y.seq AS other FROM a ROWS 3 AS x JOIN b ROWS 3 AS y"
    definition = Definition((Stream("a", "ts"), Stream("b", "ts")))
    own = {0: list(range(0, 400, 1)), 1: list(range(400, 800))}
    events = {
        number: pa.record_batch({"ts": [choose.randrange(30) for _ in seqs], "seq": seqs})
        for number, seqs in own.items()
    }
    order = [(events[s]["ts"][row].as_py(), choose.random(), s, row) for s in (0, 1) for row in range(400)]
    order.sort()
    times, streams, places = (np.array([entry[at] for entry in order]) for at in (0, 2, 3))
    fed = Fed(definition.flow({"q": (text, None)}), ["a", "b"])
    told = [out for part in fed.feed(times * 10**6, streams, places, events) for out in part]
    single = definition.flow({"q": (text, None)})
    expected = []
    for time, _, stream, row in order:
        expected += single.push("ab"[stream], events[stream].slice(row, 1).to_pylist()[0])
        expected += single.advance(to=time)
    assert [(out.kind, out.row) for out in told] == [(out.kind, out.row) for out in expected]


@pytest.mark.thorough
def test_times_of_every_type(spark: Any) -> None:
    queries = {"q": "count(* BY user LAST 2s) >= 2"}
    plain = spark.sql("SELECT 'ann' AS user, id AS s FROM range(5)")
    for sql, unit in (
        ("timestamp_seconds(s)", None),
        ("CAST(timestamp_seconds(s) AS timestamp_ntz)", None),
        ("CAST(s AS double)", "s"),
        ("CAST(s * 1000 AS decimal(20, 1))", "ms"),
    ):
        told = tamis.spark.flow(plain.selectExpr("user", f"{sql} AS ts"), queries, time="ts", unit=unit)
        found = sorted(row.time.replace(tzinfo=UTC) for row in told.select("time").collect())
        assert found == [datetime.fromtimestamp(s, UTC) for s in (1, 2, 3, 4)], sql


def test_events_without_a_time_are_told_if_asked(spark: Any) -> None:
    events = spark.createDataFrame([(1, "ann"), (None, "bob")], "ts int, user string")
    queries = {"q": "count(* BY user LAST 2s) >= 1"}
    assert [row.query for row in tamis.spark.flow(events, queries, time="ts").collect()] == ["q"]
    told = tamis.spark.flow(events, queries, time="ts", late=True)
    [unused] = told.where("kind = 'untimed'").collect()
    assert json.loads(unused.events[0])["user"] == "bob"
    assert unused.time is None


@pytest.mark.thorough
def test_nothing_in_nothing_out(spark: Any) -> None:
    events = spark.createDataFrame([], "ts int, user string")
    assert tamis.spark.flow(events, {"q": "count(* BY user LAST 2s) >= 1"}, time="ts").collect() == []


def test_what_is_wrong_is_said_before_anything_runs(spark: Any) -> None:
    events = spark.createDataFrame([(1, "ann")], "ts int, user string")
    query = {"q": "count(* BY user LAST 2s) >= 1"}
    wrong: tuple[tuple[str, dict[str, Any]], ...] = (
        ("did you mean `user`", {"queries": {"q": "count(* BY usr LAST 2s) >= 1"}}),
        ("query 'q': count needs a window", {"queries": {"q": "count(*) >= 1"}}),
        ("which column holds the time", {"queries": query, "time": None}),
        ("there is no column 'at' for the time", {"queries": query, "time": "at"}),
        ("to_timestamp", {"queries": query, "time": "user"}),
        ("no column 'ip' for the key", {"queries": query, "key": "ip"}),
        ("no column 'seq' for the order", {"queries": query, "order": "seq"}),
        ("two queries have the name", {"queries": [("a", "n > 1"), ("a", "n > 2")]}),
    )
    for expected, given in wrong:
        with pytest.raises((ArgumentError, tamis.ExpressionError), match=expected):
            tamis.spark.flow(events, **{"time": "ts", **given})


def test_queries_of_every_kind(spark: Any, tmp_path: Any) -> None:
    events = spark.createDataFrame([(1, "ann"), (2, "ann")], "ts int, user string")
    text = "count(* BY user LAST 2s) >= 2"
    file = tmp_path / "rules.yaml"
    file.write_text(f"streams: {{logins: {{time: ts}}}}\nqueries: {{q: '{text}'}}\n")
    table = spark.createDataFrame([("q", text)], "id string, expression string")
    store = tamis.spark.QueryStore(tmp_path / "store", streams={"logins": {"time": "ts"}}, key="user")
    store.apply_changes(table.selectExpr("'add' AS op", "1L AS sequence", "*"))
    for queries, time in (
        ({"q": text}, "ts"),
        ([("q", text)], "ts"),
        (file, None),
        (table, "ts"),
        (store, None),
    ):
        told = tamis.spark.flow(events, queries, time=time).collect()
        assert [(row.query, row.kind) for row in told] == [("q", "+")], queries


def test_output_is_cut_by_bytes() -> None:
    told = ToldRows()
    event = tamis.Event({"text": "é" * 1_000_000})
    for at in range(40):
        told.add([Output("q", "+", datetime(2026, 1, 1, tzinfo=UTC), {"n": at}, [event])])
    batches = list(told.finished())
    assert sum(batch.num_rows for batch in batches) == 40
    assert max(batch.nbytes for batch in batches) <= 20 << 20


@pytest.mark.filterwarnings("ignore:query .* cannot be split")
def test_what_cannot_be_a_key_is_not_chosen(spark: Any) -> None:
    events = spark.sql("SELECT 1 AS ts, array(1) AS tags, 'ann' AS user")
    told = tamis.spark.flow(events, {"q": "count(* BY tags LAST 2s) >= 1"}, time="ts")
    report = tamis.spark.explain(told)
    assert isinstance(report, tamis.spark.FlowReport)
    assert report.key == ()
    assert [row.query for row in told.collect()] == ["q"]
    with pytest.raises(ArgumentError, match="a key is a"):
        tamis.spark.flow(events, {"q": "count(* BY tags LAST 2s) >= 1"}, time="ts", key="tags")


def test_events_with_nulls_in_other_places_have_an_order(spark: Any) -> None:
    """Spark's hash leaves nulls out, and has none for maps."""
    columns = "ts int, a string, b string, m map<string, int>, r struct<x: int, y: int>"
    rows = [
        (1, None, "x", None, None),
        (1, "x", None, None, None),
        (1, None, None, {"k": 1}, None),
        (1, None, None, {"k": 2}, None),
        (1, None, None, None, (None, 1)),
        (1, None, None, None, (1, None)),
    ]
    frame = stream_frame(spark.createDataFrame(rows, columns), Stream("s", "ts"), (), [])
    assert frame.select(TIE).distinct().count() == len(rows)


def test_an_order_that_is_none_is_refused(spark: Any) -> None:
    query = {"q": "count(* BY user LAST 1h) >= 2"}
    events = spark.createDataFrame([(1, "ann", [1])], "ts int, user string, at array<int>")
    with pytest.raises(ArgumentError, match=r"the order 'at' of stream 'events' is array<int>; it must be"):
        tamis.spark.flow(events, query, time="ts", order="at")
    other = spark.createDataFrame([(1, "ann", "1")], "ts int, user string, at string")
    numbers = spark.createDataFrame([(1, "ann", 1)], "ts int, user string, at int")
    with pytest.raises(ArgumentError, match="the order 'at' is number in a, string in b"):
        tamis.spark.flow({"a": numbers, "b": other}, [("q", query["q"], "a")], time="ts", order="at")


def test_an_unknown_partition_is_named_before_anything_runs(spark: Any) -> None:
    events = spark.createDataFrame([(1, "ann", 1)], "ts int, user string, n int")
    for text in (
        "count(* BY usr LAST 1h) >= 2",
        "sum(n BY lower(usr) LAST 1h) >= 2",
        "SEQUENCE (a: n > 1) THEN (b: n > 1) WITHIN 1m BY usr",
    ):
        with pytest.raises(ArgumentError, match=r"(?s)`usr` is not in the schema.*did you mean `user`"):
            tamis.spark.flow(events, {"q": text}, time="ts")
