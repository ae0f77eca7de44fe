"""Sequences against the reference evaluator, on random patterns and streams."""

import random
from dataclasses import dataclass
from typing import Any

import pytest

import tamis
from flow.sequences import Condition, Row, Sequence, Step, matches
from seeds import few


def value(row: Row, name: str) -> Any:
    return row.get(name)


def conditions(random_: random.Random, earlier: list[str]) -> tuple[str, Condition]:
    """A random condition as text and as a function."""
    kinds = random_.sample(["a", "b", "c"], random_.choice([1, 1, 2]))
    text = f"kind IN ({', '.join(repr(kind) for kind in kinds)})"

    def is_kind(row: Row, _: dict[int, Row]) -> bool:
        return value(row, "kind") in kinds

    choice = random_.random()
    if choice < 0.2:
        return "v > 1", lambda row, _: value(row, "v") is not None and row["v"] > 1
    if choice < 0.6 and earlier:
        step = random_.randrange(len(earlier))

        def differs(row: Row, last: dict[int, Row]) -> bool:
            here, there = value(row, "v"), value(last[step], "v")
            return here is not None and there is not None and here != there

        if random_.random() < 0.3:
            return f"v != {earlier[step]}.v", differs
        return (
            f"{text} AND v != {earlier[step]}.v",
            lambda row, last: is_kind(row, last) and differs(row, last),
        )
    return text, is_kind


@dataclass
class Written:
    """Steps as text and for the reference evaluator."""

    texts: list[str]
    steps: list[Step]


def random_steps(random_: random.Random, count: int, first: Written | None = None) -> Written:
    """Random steps, after others if there are some."""
    written = list(first.texts) if first else []
    steps = list(first.steps) if first else []
    names = [f"s{number}" for number in range(len(steps))]
    for number in range(len(steps), len(steps) + count):
        text, condition = conditions(random_, names)
        step = Step(condition)
        suffix = ""
        choice = random_.random()
        if choice < 0.25:
            step.least, step.most, suffix = 2, None, "{2,}"
        elif choice < 0.4:
            step.least, step.most, suffix = 1, None, "{1,}"
        elif choice < 0.65:
            step.least, step.most = random_.choice([(1, 2), (1, 3), (2, 2), (2, 3)])
            suffix = f"{{{step.least},{step.most}}}"
        if number and random_.random() < 0.35:
            absent, step.absent = conditions(random_, names)
            written.append(f"NOT ({absent})")
        names.append(f"s{number}")
        written.append(f"(s{number}: {text}){suffix}")
        steps.append(step)
    return Written(written, steps)


def whole_sequence(
    written: Written, *, within: int, strict: bool, skip_to_next: bool, by: tuple[str, ...]
) -> tuple[str, Sequence]:
    """A sequence of these steps, as text and for the reference evaluator."""
    text = f"SEQUENCE {'STRICT ' if strict else ''}{' THEN '.join(written.texts)} WITHIN {within} SECONDS"
    if by:
        text += " BY k"
    if skip_to_next:
        text += " AFTER MATCH SKIP TO NEXT ROW"
    return text, Sequence(written.steps, within, strict, skip_to_next, by)


def random_sequence(random_: random.Random) -> tuple[str, Sequence]:
    written = random_steps(random_, random_.choice([1, 2, 2, 3]))
    strict = random_.random() < 0.25
    skip_to_next = random_.random() < 0.4
    within = random_.choice([3, 8, 20])
    by = random_.choice([(), ("k",)])
    return whole_sequence(written, within=within, strict=strict, skip_to_next=skip_to_next, by=by)


def random_rows(random_: random.Random, count: int) -> list[Row]:
    rows = []
    now = 0
    for at in range(count):
        now += random_.choice([0, 1, 1, 2, 5])
        row = {
            "at": at,
            "ts": now,
            "k": random_.choice(["x", "y", None]),
            "kind": random_.choice(["a", "a", "b", "c", None]),
            "v": random_.choice([0, 1, 2, None]),
        }
        rows.append({name: value for name, value in row.items() if value is not None})
    return rows


@pytest.mark.parametrize("seed", few(range(60)))
def test_matches_are_those_of_the_reference(seed: int, tmp_path: Any) -> None:
    random_ = random.Random(seed)
    sequences = [random_sequence(random_) for _ in range(6)]
    rows = random_rows(random_, 35)
    flow = tamis.Flow()
    flow.stream("s", time="ts")
    for number, (text, _) in enumerate(sequences):
        flow.add(f"q{number}", text)
        flow.add(f"same{number}", text)
    told = []
    for row in rows:
        told += flow.push("s", row)
        if random_.random() < 0.05:
            flow.save(tmp_path / "state")
            flow = tamis.Flow.open(tmp_path / "state")
    told += flow.advance(to=10**6)
    for number, (text, sequence) in enumerate(sequences):
        expected = sorted([row["at"] for row in match] for match in matches(sequence, rows))
        for name in (f"q{number}", f"same{number}"):
            found = sorted([event["at"] for event in out.events] for out in told if out.query == name)
            assert found == expected, text
    for name in list(flow):
        flow.remove(name)
    assert flow.stats()["bytes"] == 0
    assert flow.stats()["streams"]["s"]["selections"] == 0


def test_a_burst_and_then_a_success_from_elsewhere() -> None:
    flow = tamis.Flow()
    flow.stream("logins", time="ts")
    flow.add(
        "travel",
        "SEQUENCE (a: NOT ok){3,} THEN (b: ok AND b.country != a.country) WITHIN 10 MINUTES BY user",
        on="logins",
    )
    failed = [{"ts": at, "user": "ann", "ok": False, "country": "CA"} for at in (0, 10, 20, 30)]
    assert flow.push_batch("logins", failed) == []
    assert flow.push("logins", {"ts": 35, "user": "bob", "ok": True, "country": "FR"}) == []
    assert flow.push("logins", {"ts": 36, "user": "ann", "ok": True, "country": "CA"}) == []
    [out] = flow.push("logins", {"ts": 40, "user": "ann", "ok": True, "country": "FR"})
    assert (out.query, out.kind, out.row) == ("travel", "+", {"a": 4, "b": 1})
    assert [event["ts"] for event in out.events] == [0, 10, 20, 30, 40]


def test_a_new_sequence_starts_empty_also_where_it_is_shared() -> None:
    flow = tamis.Flow()
    flow.stream("s", time="ts")
    text = "SEQUENCE (a = 1) THEN (a = 2) WITHIN 1m"
    flow.add("old", text)
    flow.push("s", {"ts": 1, "a": 1})
    flow.add("new", text)
    assert [out.query for out in flow.push("s", {"ts": 2, "a": 2})] == ["old"]
    with pytest.raises(tamis.ArgumentError, match="starts empty"):
        flow.add("filled", text, backfill=True)


def test_partial_matches_expire_without_events_at_their_key() -> None:
    flow = tamis.Flow()
    flow.stream("s", time="ts")
    flow.add("q", "SEQUENCE (a = 1) THEN (a = 2) WITHIN 10s BY k")
    for at in range(1000):
        flow.push("s", {"ts": at, "k": at, "a": 1})
    assert flow.explain("q")["sequence"]["keys"] <= 11
    flow.advance(to=5000)
    assert flow.stats()["bytes"] == 0


@pytest.mark.parametrize("repeated", ["{3,}", "{1,10000}", "{3,9}"])
def test_many_rows_cost_no_more_than_few_partial_matches(repeated: str) -> None:
    flow = tamis.Flow()
    flow.stream("s", time="ts", unit="us")
    flow.add("q", f"SEQUENCE (a = 1){repeated} THEN (a = 2) WITHIN 1h AFTER MATCH SKIP PAST LAST ROW")
    for at in range(300):
        flow.push("s", {"ts": at, "a": 1})
    assert flow.explain("q")["sequence"]["partial_matches"] <= 4 * 300
    [out] = flow.push("s", {"ts": 1000, "a": 2})
    assert out.row == {}
    assert len(out.events) == (10 if repeated == "{3,9}" else 301)


def test_a_sequence_without_a_bound_is_refused() -> None:
    flow = tamis.Flow()
    flow.stream("s", time="ts")
    with pytest.raises(tamis.ExpressionError, match="WITHIN 10 MINUTES bounds"):
        flow.add("q", "SEQUENCE (a = 1) THEN (a = 2)")
    with pytest.raises(tamis.ExpressionError, match="later step b"):
        flow.add("q", "SEQUENCE (a: x = b.x) THEN (b: x = 2) WITHIN 1m")
    assert flow.stats()["streams"]["s"]["selections"] == 0


def test_attributes_of_steps_are_checked_against_the_schema() -> None:
    flow = tamis.Flow()
    flow.stream("s", time="ts", schema={"ts": "int", "user": "string"})
    flow.add("q", "SEQUENCE (a: user = 'x') THEN (user = a.user) WITHIN 1m")
    with pytest.raises(tamis.ExpressionError, match="`usr` is not in the schema"):
        flow.add("r", "SEQUENCE (a: user = 'x') THEN (user = a.usr) WITHIN 1m")
