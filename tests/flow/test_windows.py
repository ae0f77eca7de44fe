"""Windowed terms against DuckDB, on random queries and streams."""

import math
import random
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import tamis
from flow.windows import Judge, events, in_time, rule, windowed_term
from seeds import few

SCHEMA = pa.schema(
    {
        "ts": pa.int64(),
        "k": pa.string(),
        "kind": pa.string(),
        "ok": pa.bool_(),
        "v": pa.int64(),
        "x": pa.float64(),
        "arrival": pa.int64(),
    }
)


def push_in_batches(flow: tamis.Flow, arrived: list[dict[str, Any]], random_: random.Random) -> list[Any]:
    """Push all events in batches of random size and kind, and then let the clock run out."""
    told = []
    at = 0
    while at < len(arrived):
        size = random_.choice([1, 1, 3, 20])
        batch = arrived[at : at + size]
        way = random_.choice(["single", "list", "arrow"])
        if way == "single":
            told += [out for event in batch for out in flow.push("s", event)]
        else:
            told += flow.push_batch(
                "s", pa.Table.from_pylist(batch, schema=SCHEMA) if way == "arrow" else batch
            )
        at += size
    return told + flow.advance(to=10**6)


def close(found: Any, expected: Any, is_rounded: bool) -> bool:
    if found is None or expected is None or isinstance(found, str):
        return bool(found == expected)
    return (
        math.isclose(found, expected, rel_tol=1e-12, abs_tol=1e-9) if is_rounded else bool(found == expected)
    )


@pytest.mark.parametrize("seed", few(range(12)))
@pytest.mark.parametrize("lateness", [0, 4])
def test_the_values_of_windowed_terms_are_those_of_sql(seed: int, lateness: int) -> None:
    random_ = random.Random(seed * 2 + lateness)
    arrived = [{**event, "arrival": at} for at, event in enumerate(events(random_, 60, disorder=lateness))]
    kept = in_time(arrived, lateness)
    terms = [windowed_term(random_) for _ in range(12)]
    flow = tamis.Flow()
    flow.stream("s", time="ts", lateness=lateness)
    for number, term in enumerate(terms):
        flow.add(f"q{number}", f"{term.text} IS NULL OR {term.text} IS NOT NULL", on="s")
    told = push_in_batches(flow, arrived, random_)
    assert flow.stats()["streams"]["s"]["late"] == len(arrived) - len(kept)
    assert [event["arrival"] for event in flow.late("s")] == [
        at for at in range(len(arrived)) if at not in kept
    ]
    judge = Judge(arrived, kept)
    for number, term in enumerate(terms):
        expected = judge.values(term, 0)
        found = {
            out.events[0]["arrival"]: next(iter(out.row.values()))
            for out in told
            if out.query == f"q{number}"
        }
        assert found.keys() == expected.keys()
        for at, value in expected.items():
            assert close(found[at], value, term.is_rounded), (term.text, at, found[at], value)


@pytest.mark.parametrize("seed", few(range(20)))
def test_rules_come_and_go_as_sql_says(seed: int) -> None:
    random_ = random.Random(1000 + seed)
    lateness = random_.choice([0, 0, 3])
    arrived = [{**event, "arrival": at} for at, event in enumerate(events(random_, 80, disorder=lateness))]
    judge = Judge(arrived, in_time(arrived, lateness))
    flow = tamis.Flow()
    flow.stream("s", time="ts", lateness=lateness)
    rules = [rule(random_) for _ in range(5)]
    lives: dict[str, Any] = {}
    living: list[str] = []
    told = []

    def evaluated() -> int:
        count: int = flow.stats()["streams"]["s"]["evaluated"]
        return count

    for event in arrived:
        if random_.random() < 0.3:
            name = f"q{len(lives)}"
            chosen = random_.choice(rules)
            flow.add(name, chosen.text, on="s")
            lives[name] = [chosen, evaluated(), None]
            living.append(name)
        if living and random_.random() < 0.15:
            gone = living.pop(random_.randrange(len(living)))
            flow.remove(gone)
            lives[gone][2] = evaluated()
        told += flow.push("s", event)
    told += flow.advance(to=10**6)
    for name, (chosen, birth, end) in lives.items():
        expected = judge.matches(chosen, birth, evaluated() if end is None else end)
        found = [out.events[0]["arrival"] for out in told if out.query == name]
        assert found == expected, (chosen.text, birth, end)
    for name in list(flow):
        flow.remove(name)
    flow.late("s")
    stats = flow.stats()
    assert stats["bytes"] == 0
    assert stats["streams"]["s"]["nodes"] == []
    assert stats["streams"]["s"]["selections"] == 0


def test_a_sum_of_floats_is_rounded_once() -> None:
    random_ = random.Random(7)
    flow = tamis.Flow()
    flow.stream("s", time="ts")
    flow.add("sum", "sum(x LAST 20s) IS NOT NULL", on="s")
    values = [random_.uniform(-1, 1) * 10.0 ** random_.randint(-30, 30) for _ in range(300)]
    for at, value in enumerate(values):
        [out] = flow.push("s", {"ts": at, "x": value})
        exact = sum(map(Fraction, values[max(0, at - 20) : at + 1]))
        assert next(iter(out.row.values())) == float(exact)


def test_backfill_starts_from_what_older_queries_hold() -> None:
    flow = tamis.Flow()
    flow.stream("s", time="ts")
    flow.add("old", "sum(v BY k LAST 100s) > 0", on="s")
    flow.push_batch("s", [{"ts": 1, "k": "a", "v": 1}, {"ts": 2, "k": "a", "v": 2}])
    flow.add("empty", "sum(v BY k LAST 100s) > 0", on="s")
    flow.add("filled", "sum(v BY k LAST 100s) > 0", on="s", backfill=True)
    flow.add("shorter", "sum(v BY k LAST 1s) > 0", on="s", backfill=True)
    told = flow.push("s", {"ts": 3, "k": "a", "v": 4})
    assert {out.query: next(iter(out.row.values())) for out in told} == {
        "old": 7,
        "empty": 4,
        "filled": 7,
        "shorter": 6,
    }


def test_keys_without_events_expire() -> None:
    flow = tamis.Flow()
    flow.stream("s", time="ts")
    flow.add("q", "count(* BY k LAST 10s) > 5", on="s")
    for at in range(2000):
        flow.push("s", {"ts": at, "k": at})
    assert flow.stats()["streams"]["s"]["keys"] < 50


def test_windows_with_the_same_rows_share_them() -> None:
    def state(texts: list[str]) -> int:
        flow = tamis.Flow()
        flow.stream("s", time="ts")
        for number, text in enumerate(texts):
            flow.add(f"q{number}", text, on="s")
        flow.push_batch("s", [{"ts": at, "k": at % 7, "v": at, "name": "n" * 40} for at in range(500)])
        size: int = flow.stats()["bytes"]
        return size

    alone = state(["last(name BY k LAST 400s) = 'x'"])
    same = state([f"last(name BY k LAST 400s) = '{n}'" for n in range(50)])
    lengths = state([f"last(name BY k LAST {400 - n}s) = 'x'" for n in range(50)])
    assert same == alone
    assert lengths < 2 * alone


def test_a_limit_refuses_and_says_what_to_do() -> None:
    flow = tamis.Flow(limit=20_000)
    flow.stream("s", time="ts")
    flow.add("q", "count(DISTINCT v BY k LAST 1000s) > 5", on="s")
    with pytest.raises(tamis.ArgumentError, match="more than the limit of 20000") as refused:
        flow.push_batch("s", [{"ts": at, "k": at, "v": at} for at in range(1000)])
    assert "on_limit" in str(refused.value)
    assert refused.value.told == []  # type: ignore[attr-defined]
    assert flow.push("s", {"ts": 5000, "k": 1, "v": 1}) == []
    assert flow.stats()["bytes"] < 20_000
    assert flow.stats()["refused"] == 1


def test_a_limit_sheds_the_keys_that_were_idle_for_longest() -> None:
    flow = tamis.Flow(limit=20_000, on_limit="shed")
    flow.stream("s", time="ts")
    flow.add("q", "count(* BY k LAST 1000s) = 2", on="s")
    flow.push_batch("s", [{"ts": at, "k": at} for at in range(1000)])
    stats = flow.stats()
    assert stats["bytes"] < 22_000
    assert stats["streams"]["s"]["shed_keys"] > 500
    assert flow.push("s", {"ts": 1000, "k": 0}) == []
    assert [out.query for out in flow.push("s", {"ts": 1000, "k": 999})] == ["q"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("count(*) OVER (PARTITION BY k ROWS UNBOUNDED PRECEDING) > 3", "grow for ever"),
        ("sum(count(* LAST 5m) LAST 5m) > 3", "window inside a window"),
        ("count(* LAST 5 parsecs) > 3", "expected ROWS"),
    ],
)
def test_what_has_no_meaning_is_refused(text: str, message: str) -> None:
    flow = tamis.Flow()
    flow.stream("s", time="ts")
    with pytest.raises(tamis.ExpressionError, match=message):
        flow.add("q", text)
    assert len(flow) == 0
    assert flow.stats()["streams"]["s"]["selections"] == 0


def test_unknown_streams_and_queries_are_named() -> None:
    flow = tamis.Flow()
    with pytest.raises(tamis.UnknownIdError, match="declare it first"):
        flow.push("logins", {})
    flow.stream("logins", time="ts")
    with pytest.raises(tamis.UnknownIdError, match='did you mean "logins"'):
        flow.add("q", "a = 1", on="login")
    with pytest.raises(tamis.UnknownIdError, match="no query"):
        flow.remove("q")
    flow.add("q", "a = 1")
    with pytest.raises(tamis.DuplicateIdError, match="already in the flow"):
        flow.add("q", "a = 1")
    with pytest.raises(tamis.EventError, match="has no `ts`"):
        flow.push("logins", {"a": 1})
    with pytest.raises(tamis.EventError, match="cannot serve"):
        flow.push("logins", {"ts": True})


def test_a_flow_waits_for_its_slowest_stream() -> None:
    flow = tamis.Flow()
    flow.stream("a", time="ts")
    flow.stream("b", time="ts", idle=100)
    flow.stream("unread", time="ts")
    flow.add("qa", "count(* LAST 10s) >= 1", on="a")
    flow.add("qb", "count(* LAST 10s) >= 1", on="b")
    assert flow.push("a", {"ts": 5}) == []
    assert [out.query for out in flow.push("b", {"ts": 7})] == ["qa"]
    assert [out.query for out in flow.push("a", {"ts": 8})] == ["qb"]
    assert [out.events[0]["ts"] for out in flow.push("a", {"ts": 200})] == [8]
    assert [out.events[0]["ts"] for out in flow.advance(to=300)] == [200]


def test_a_plain_index_refuses_windowed_terms_and_says_what_to_use() -> None:
    with pytest.raises(tamis.ExpressionError, match=r"tamis\.Flow"):
        tamis.Index().add("q", "count(*) OVER (RANGE INTERVAL 10 MINUTES) > 3")


def test_current_timestamp_is_the_time_of_the_event() -> None:
    flow = tamis.Flow()
    flow.stream("s", time="ts")
    flow.add("rule", "count(* LAST 1h) >= 1 AND expires > current_timestamp()")
    flow.add(
        "sequence",
        "SEQUENCE (a: expires > current_timestamp()) THEN (expires <= current_timestamp()) WITHIN 1h",
    )
    expires = datetime(1970, 1, 1, 0, 1, tzinfo=UTC)
    told = [
        (out.query, out.events[-1]["ts"])
        for ts in (30, 90)
        for out in flow.push("s", {"ts": ts, "expires": expires})
    ]
    assert told == [("rule", 30), ("sequence", 90)]
    with pytest.raises(tamis.ExpressionError, match="time of asking"):
        flow.add("join", "SELECT x.a FROM s ROWS 5 AS x WHERE x.expires > current_timestamp()")
