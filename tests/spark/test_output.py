"""The size of what comes out: bounded in bytes and rows, whatever is carried and however much matches.

Most tests ask `Answers` without Spark and lower the bounds, so that small tables cross them; the last ones
cross the real ones, on Spark.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis.spark
from tamis import Query
from tamis.index import Index
from tamis.spark import built_index
from tamis.spark.matching import answer, bounded_batches, pairs, payloads
from tamis.spark.matching.answer import KEY_PREFIX, OWN_BYTES, Answers, TableQuery
from tamis.spark.matching.bounded_batches import batch_bytes
from tamis.spark.plans import routing
from tamis.spark.plans.routing import EVENT, merge_task

VERSION = 7


def lower_bounds(
    patch: pytest.MonkeyPatch,
    *,
    most_bytes: int = 1 << 30,
    most_rows: int = 1 << 30,
    most_pairs: int = 1 << 30,
) -> None:
    for module in (bounded_batches, payloads):
        patch.setattr(module, "MOST_BYTES", most_bytes)
    for module in (bounded_batches, answer):
        patch.setattr(module, "MOST_ROWS", most_rows)
    patch.setattr(pairs, "MOST_PAIRS", most_pairs)


@pytest.fixture
def bounds(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets the bounds for one test."""
    return partial(lower_bounds, monkeypatch)


def indexes_of(count: int, parts: int, name: Any = str, payload: Any = None) -> list[Index]:
    """Subscriptions that match events with x above their number, spread over several indexes."""
    found = [Index() for _ in range(parts)]
    for number in range(count):
        extra = {} if payload is None else {"payload": payload(number)}
        found[number % parts].add(name(number), f"x > {number}", priority=float(number % 3), **extra)
    return found


def events_of(values: list[int], keys: dict[str, pa.Array]) -> pa.RecordBatch:
    held = {f"{KEY_PREFIX}{at}": key for at, key in enumerate(keys.values())}
    return pa.record_batch({"x": pa.array(values, pa.int64()), **held})


def check(batches: list[pa.RecordBatch], most_bytes: int, most_rows: int) -> list[dict[str, Any]]:
    """The rows of all batches, each of which must keep to the bounds."""
    for batch in batches:
        batch.validate(full=True)
        assert 0 < batch.num_rows <= most_rows
        assert batch_bytes(batch.columns, batch.num_rows).sum() <= most_bytes + 64 or batch.num_rows == 1
    return [row for batch in batches for row in batch.to_pylist()]


texts = st.text(max_size=3) | st.sampled_from(["k" * 70, "é" * 40])

carried = {
    "nothing": st.just({}),
    "numbers": st.fixed_dictionaries({"id": st.just(pa.int64())}),
    "texts": st.fixed_dictionaries({"url": st.just(pa.string()), "body": st.just(pa.large_string())}),
    "zero-width": st.fixed_dictionaries({"void": st.just(pa.null()), "empty": st.just(pa.struct([]))}),
    "nested": st.fixed_dictionaries(
        {
            "tree": st.just(
                pa.struct(
                    [
                        ("tags", pa.list_(pa.string())),
                        (
                            "by",
                            pa.map_(
                                pa.string(), pa.list_(pa.struct([("n", pa.int32()), ("t", pa.string())]))
                            ),
                        ),
                    ]
                )
            ),
            "voids": st.just(pa.list_(pa.null())),
        }
    ),
}

values_of = {
    pa.int64(): st.integers(0, 9),
    pa.string(): texts,
    pa.large_string(): texts,
    pa.null(): st.none(),
    pa.struct([]): st.just({}),
    pa.list_(pa.null()): st.lists(st.none(), max_size=90),
}


def values_for(kind: pa.DataType) -> Any:
    tree = st.fixed_dictionaries(
        {
            "tags": st.lists(texts, max_size=3),
            "by": st.lists(
                st.tuples(
                    texts, st.lists(st.fixed_dictionaries({"n": st.integers(0, 9), "t": texts}), max_size=2)
                ),
                max_size=2,
            ),
        }
    )
    return values_of.get(kind, tree) | st.none()


@st.composite
def queries(draw: Any) -> dict[str, Any]:
    """Events, subscriptions, what is carried, and bounds."""
    count = draw(st.integers(0, 25))
    values = draw(st.lists(st.integers(0, 25), max_size=12))
    kinds = draw(draw(st.sampled_from(list(carried.values()))))
    keys = {
        name: pa.array(draw(st.lists(values_for(kind), min_size=len(values), max_size=len(values))), kind)
        for name, kind in kinds.items()
    }
    width = draw(st.sampled_from([0, 5, 300]))
    return {
        "values": values,
        "keys": keys,
        "count": count,
        "parts": draw(st.integers(1, 3)),
        "name": draw(st.sampled_from([int, lambda number: f"https://example.org/{'r' * width}/{number}"])),
        "payload": draw(
            st.sampled_from([None, lambda number: None if number % 3 else bytes(number * 13 % 400)])
        ),
        "k": draw(st.none() | st.integers(0, 30)),
        "bounds": {
            "most_bytes": draw(st.sampled_from([1, 200, 1_000, 1 << 30])),
            "most_rows": draw(st.sampled_from([1, 4, 1 << 30])),
            "most_pairs": draw(st.sampled_from([1, 7, 40, 1 << 30])),
        },
    }


def expected_rows(asked: dict[str, Any]) -> list[dict[str, Any]]:
    rows = []
    keys = {name: key.to_pylist() for name, key in asked["keys"].items()}
    for event, value in enumerate(asked["values"]):
        numbers = list(range(min(value, asked["count"])))
        own = {name: key[event] for name, key in keys.items()}
        if asked["k"] is not None:
            numbers.sort(key=lambda number: (-(number % 3), asked["name"](number)))
        for rank, number in enumerate(numbers[: asked["k"]], 1):
            row = {**own, "subscription": asked["name"](number)}
            row |= {} if asked["k"] is None else {"score": float(number % 3), "rank": rank}
            row |= {"version": VERSION}
            row |= {"payload": asked["payload"](number)} if asked["payload"] else {}
            rows.append(row)
    return sorted(rows, key=repr)


@given(queries())
def test_every_row_comes_out_in_batches_that_keep_to_the_bounds(asked: dict[str, Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        lower_bounds(patch, **asked["bounds"])
        indexes = indexes_of(asked["count"], asked["parts"], asked["name"], asked["payload"])
        query = Query("all") if asked["k"] is None else Query(k=asked["k"])
        mode = "all" if asked["k"] is None else "top_k"
        wanted = TableQuery(mode, query, payload=asked["payload"] is not None)
        answers = Answers(wanted, indexes, VERSION, list(asked["keys"]))
        found = list(answers.to_batches([events_of(asked["values"], asked["keys"])]))
    rows = check(found, asked["bounds"]["most_bytes"] + OWN_BYTES, asked["bounds"]["most_rows"])
    assert sorted(rows, key=repr) == expected_rows(asked)
    assert answers.matches == len(rows)


@given(queries())
def test_sums_by_subscription_keep_to_the_bounds(asked: dict[str, Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        lower_bounds(patch, **asked["bounds"])
        indexes = indexes_of(asked["count"], asked["parts"], asked["name"])
        answers = Answers(TableQuery("by_subscription"), indexes, VERSION, [])
        found = list(answers.to_batches([events_of(asked["values"], {})] * 2))
    rows = check(found, asked["bounds"]["most_bytes"] + OWN_BYTES, asked["bounds"]["most_rows"])
    sums = {asked["name"](n): 2 * sum(value > n for value in asked["values"]) for n in range(asked["count"])}
    assert {row["subscription"]: row["matches"] for row in rows} == {id: n for id, n in sums.items() if n}


def test_pairs_are_found_some_at_a_time(bounds: Any) -> None:
    """Few matches first, so that many events are asked about at once, and then events that match all."""
    bounds(most_pairs=1_000)
    indexes = indexes_of(300, 2, int)
    values = [0] * 5_000 + [300] * 50 + [0, 1] * 300
    tables = list(TableQuery("all").pairs_in(indexes).of(pa.record_batch({"x": values})))
    assert max(table.num_rows for table in tables) <= 1_000
    counted = np.zeros(len(values), int)
    for table in tables:
        np.add.at(counted, table.column("event").to_numpy(), 1)
    assert counted.tolist() == values


def test_an_event_with_more_matches_than_fit_is_cut(bounds: Any) -> None:
    bounds(most_pairs=10, most_rows=64, most_bytes=1_000)
    answers = Answers(TableQuery("all"), indexes_of(500, 1, int), VERSION, ["body"])
    found = list(answers.to_batches([events_of([500, 500], {"body": pa.array(["b" * 100, ""])})]))
    rows = check(found, 1_000, 64)
    assert len(found) > 80
    assert [row["subscription"] for row in rows] == [*range(500), *range(500)]


def test_payloads_are_read_as_rows_need_them(bounds: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each a third of what may be held: never more than a few at once, and those at hand not again."""
    bounds(most_bytes=3_000)
    (index,) = indexes_of(60, 1, int, lambda number: bytes([number]) * 1_000)
    held: list[int] = []
    asked: list[int] = []
    read = payloads.Payloads._read

    def watched(self: Any, ids: Any) -> None:
        before = set(self._held)
        read(self, ids)
        held.append(sum(len(payload) for payload in self._held.values()))
        asked.append(len(set(self._held) - before))

    monkeypatch.setattr(payloads.Payloads, "_read", watched)
    answers = Answers(TableQuery("all", payload=True), [index], VERSION, [])
    rows = check(list(answers.to_batches([events_of([60, 60, 2], {})])), 3_000 + OWN_BYTES, 1 << 30)
    assert [row["payload"] for row in rows] == [bytes([n % 60]) * 1_000 for n in [*range(120), 0, 1]]
    assert max(held) <= 7_000
    assert sum(asked) < 130


def test_elements_without_a_width_are_counted(bounds: Any) -> None:
    """Lists of nulls have no bytes, and offsets count their elements all the same."""
    bounds(most_bytes=5_000)
    voids = pa.array([[None] * 1_000], pa.list_(pa.null()))
    answers = Answers(TableQuery("all"), indexes_of(50, 1, int), VERSION, ["voids"])
    found = answers.to_batches([events_of([50], {"voids": voids})])
    lengths = [len(batch.column("voids").values) for batch in found]
    assert sum(lengths) == 50 * 1_000
    assert max(lengths) <= 5_000


def answers_of_shards(order: list[tuple[int, int]], width: int) -> Iterator[pa.RecordBatch]:
    """Scored answers of an event and a subscription each, in batches of 50 rows that carry a text."""
    for first in range(0, len(order), 50):
        part = order[first : first + 50]
        yield pa.record_batch(
            {
                "body": [f"{event}".rjust(width) for event, _ in part],
                EVENT: pa.array([event for event, _ in part], pa.int64()),
                "subscription": [f"s{number:03}" for _, number in part],
                "score": [float(number % 4) for _, number in part],
                "rank": pa.array([1] * len(part), pa.int32()),
                "version": pa.array([VERSION] * len(part), pa.int64()),
            }
        )


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("k", [1, 7, 1_000])
def test_the_best_of_all_shards_keep_to_the_bounds(
    bounds: Any, monkeypatch: pytest.MonkeyPatch, ordered: bool, k: int
) -> None:
    bounds(most_bytes=5_000, most_rows=64)
    monkeypatch.setattr(routing, "ROWS_BEFORE_MERGE", 100)
    best_first = [
        (event, number) for event in range(9) for number in sorted(range(120), key=lambda n: (-(n % 4), n))
    ]
    order = best_first if ordered else [best_first[at * 7 % len(best_first)] for at in range(len(best_first))]
    task = merge_task(TableQuery("top_k", Query(k=k)), [], ordered=ordered)
    rows = check(list(task(answers_of_shards(order, 200))), 50 * 250 if ordered else 5_000, 64)
    found = [(int(row["body"]), int(row["subscription"][1:]), row["rank"]) for row in rows]
    wanted = [(event, number, at % 120 + 1) for at, (event, number) in enumerate(best_first) if at % 120 < k]
    assert found == wanted


def test_answers_that_cannot_be_added_up_are_not_tried_for_each_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A micro-batch of ever new events: adding up must not read all that waits for each batch that comes."""
    monkeypatch.setattr(routing, "ROWS_BEFORE_MERGE", 100)
    read = 0
    add_up = routing._added_up

    def counting(answers: list[pa.RecordBatch], query: TableQuery) -> Iterator[pa.RecordBatch]:
        nonlocal read
        read += sum(batch.num_rows for batch in answers)
        return add_up(answers, query)

    monkeypatch.setattr(routing, "_added_up", counting)
    order = [(event, event % 9) for event in range(10_000)]
    task = merge_task(TableQuery("top_k", Query(k=2)), [], ordered=False)
    assert sum(batch.num_rows for batch in task(answers_of_shards(order, 1))) == 10_000
    assert read < 5 * 10_000


@pytest.mark.parametrize("source_key", [False, True])
@pytest.mark.thorough
def test_events_are_copied_to_shards_within_the_bounds(
    bounds: Any, tmp_path: Path, spark: Any, source_key: bool
) -> None:
    bounds(most_bytes=2_000, most_rows=16)
    rules = spark.createDataFrame([(f"r{n}", f"x >= {n}") for n in range(40)], "id string, expression string")
    index = tamis.spark.build(rules, plan="sharded", shards=4, directory=tmp_path)
    keys = {"body": pa.array([f"{n}".rjust(300) for n in range(30)])}
    if source_key:
        keys["source"] = pa.array(["shop"] * 30)
    batch = events_of([50] * 30, keys)
    task = routing.route_task(
        routing.Source(str(tmp_path), index.version, None), TableQuery("top_k", Query(k=1)), source_key
    )
    found = list(task(iter([batch, batch])))
    rows = check(found, 2_000, 16)
    assert len(found) > 30
    visited = [(row[EVENT], row[routing.SHARD], int(row[f"{KEY_PREFIX}0"])) for row in rows]
    assert visited == [(event, shard, event % 30) for event in range(60) for shard in range(4)]
    assert all(f"{KEY_PREFIX}1" not in row for row in rows)


# --- with the real bounds ----------------------------------------------------------------------------

MOST_MB = 160
"""What a task may add to its process: pairs, a few batches, and what the allocators keep."""

GIGABYTES = """
import json
import pathlib
import pyarrow as pa
from tamis.index import Index
from tamis.spark.matching.answer import KEY_PREFIX, Answers, TableQuery
from tamis import Query

def peak():
    return int(pathlib.Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024

index = Index()
numbers = range({rules})
index.add_many({ids}, ["x >= 0"] * {rules}, payloads=[{payload} for n in numbers])
keys = pa.array([{key} for n in range({events})])
events = pa.record_batch({{"x": range({events}), KEY_PREFIX + "0": keys}})
before, rows, size = peak(), 0, 0
query = Query("all") if {k} is None else Query(k={k})
answers = Answers(TableQuery("{mode}", query, payload={has_payload}), [index], 1, ["key"])
for batch in answers.to_batches([events]):
    rows, size = rows + batch.num_rows, size + batch.nbytes
print(json.dumps({{"MB": peak() - before, "rows": rows, "bytes": size}}))
"""

SMALL: dict[str, Any] = {
    "rules": 2_000,
    "events": 500,
    "ids": "[*numbers]",
    "payload": "None",
    "key": "n",
    "mode": "all",
    "k": None,
    "has_payload": False,
}


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"key": "'w' * 2_300"}, id="long key", marks=pytest.mark.slow),
        pytest.param({"key": "{'at': n, 'inside': [{'body': 'w' * 2_300}]}"}, id="nested key"),
        pytest.param({"key": "'w' * 2_300", "mode": "top_k", "k": 3_000}, id="best", marks=pytest.mark.slow),
        pytest.param({"payload": "b'p' * 2_300", "has_payload": True}, id="payload", marks=pytest.mark.slow),
        pytest.param(
            {"rules": 25_000, "ids": "['r' * 900 + str(n) for n in numbers]", "events": 100},
            id="many matches",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            {"rules": 22, "payload": "bytes(10_000_000)", "has_payload": True, "events": 10},
            id="huge payloads",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_gigabytes_come_out_of_a_few_megabytes(case: dict[str, Any]) -> None:
    """More than one Arrow column can hold, from one batch of events, in a process of its own."""
    asked = SMALL | case
    command = [sys.executable, "-c", GIGABYTES.format(**asked)]
    found = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert found["rows"] == asked["rules"] * asked["events"]
    assert found["bytes"] > 2**31
    assert found["MB"] < MOST_MB


def measured(make: Any, file: Path) -> Any:
    """A task that also notes the largest batch, and how far the memory of its worker process went."""

    def made(*arguments: Any, **options: Any) -> Any:
        task = make(*arguments, **options)

        def run(batches: Any) -> Any:
            import json
            import pathlib

            status = pathlib.Path("/proc/self/status")
            pathlib.Path("/proc/self/clear_refs").write_text("5")  # forget the peak of earlier tasks

            def kilobytes(name: str) -> int:
                return int(status.read_text().split(f"{name}:")[1].split()[0])

            before, largest = kilobytes("VmRSS"), 0
            for batch in task(batches):
                largest = max(largest, batch.nbytes)
                yield batch
            used = (kilobytes("VmHWM") - before) / 1024
            noted = {"step": make.__name__, "MB": used, "largest": largest}
            with file.open("a") as out:
                out.write(json.dumps(noted) + "\n")

        return run

    return made


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """What tasks noted of their memory."""
    file = tmp_path / "noted"
    for name in ("match_task", "route_task", "shard_task", "merge_task"):
        monkeypatch.setattr(built_index, name, measured(getattr(built_index, name), file))
    return lambda: [json.loads(line) for line in file.read_text().splitlines()]


def check_noted(noted: Any) -> None:
    for task in noted():
        assert task["step"] == "merge_task" or task["largest"] <= 1.1 * bounded_batches.MOST_BYTES
        assert task["MB"] < MOST_MB


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("kind", ["text", "nested", "payload"])
def test_gigabytes_come_out_of_spark(spark: Any, noted: Any, kind: str) -> None:
    """2,000 matches an event and 2.3 KB each, which was too much for one Arrow column."""
    long = {
        "text": "rpad(string(id), 2300, 'w') AS body",
        "nested": "array(named_struct('at', id, 'body', map('k', rpad(string(id), 2300, 'w')))) AS body",
        "payload": "id AS body",
    }[kind]
    payload = "cast(rpad(string(id), 2300, 'p') AS binary)" if kind == "payload" else "cast(NULL AS binary)"
    rules = spark.range(2_000).selectExpr("id", "'x >= 0' AS expression", f"{payload} AS payload")
    events = spark.range(0, 500, 1, 1).selectExpr("id AS event_id", "id AS x", long)
    matches = tamis.spark.match(events, rules, key=["event_id", "body"], payload=kind == "payload")
    size = "octet_length(payload)" if kind == "payload" else "octet_length(string(body))"
    row = matches.selectExpr(
        "count(*) AS n", "sum(event_id) AS e", "sum(subscription) AS s", f"sum({size}) AS b"
    ).first()
    assert (row.n, row.e, row.s) == (1_000_000, 2_000 * sum(range(500)), 500 * sum(range(2_000)))
    assert row.b >= 2_300_000_000
    check_noted(noted)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("ids", ["id", "concat(rpad('https://example.org/', 900, 'r'), id)"])
def test_memory_does_not_depend_on_how_many_subscriptions_match(spark: Any, noted: Any, ids: str) -> None:
    """25,000 matches an event; with long ids, more than 2 GiB of them for the events of one batch."""
    rules = spark.range(25_000).selectExpr(f"{ids} AS id", "'x >= 0' AS expression")
    events = spark.range(0, 100, 1, 1).selectExpr("id AS event_id", "id AS x")
    row = (
        tamis.spark.match(events, rules)
        .selectExpr("count(*) AS n", "sum(hash(event_id, subscription)) AS h")
        .first()
    )
    joined = events.crossJoin(rules.withColumnRenamed("id", "subscription"))
    expected = joined.selectExpr("count(*) AS n", "sum(hash(event_id, subscription)) AS h").first()
    assert (row.n, row.h) == (expected.n, expected.h)
    check_noted(noted)


@pytest.mark.slow
@pytest.mark.spark
def test_shards_copy_and_merge_within_the_bounds(spark: Any, noted: Any) -> None:
    """Each event goes to 16 shards with all that it carries, and comes back with its best 400."""
    rules = spark.range(800).selectExpr("id", "'x >= 0' AS expression", "double(id % 7) AS priority")
    events = spark.range(0, 300, 1, 1).selectExpr(
        "id AS event_id", "id AS x", "rpad(string(id), 4000, 'w') AS body"
    )
    index = tamis.spark.build(rules, plan="sharded", shards=16)
    best = index.match(events, key=["event_id", "body"], k=400)
    row = best.selectExpr(
        "count(*) AS n", "sum(rank) AS r", "sum(octet_length(body)) AS b", "sum(subscription) AS s"
    ).first()
    first = sorted(range(800), key=lambda id: (-(id % 7), id))[:400]
    assert (row.n, row.r, row.b) == (300 * 400, 300 * sum(range(401)), 300 * 400 * 4_000)
    assert row.s == 300 * sum(first)
    check_noted(noted)
