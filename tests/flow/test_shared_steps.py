"""Sequences that begin alike share their first steps; each tells what it would tell alone."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tamis
from flow.flows import flow_of
from flow.sequences import Sequence, matches
from flow.test_sequences import Written, random_rows, random_steps, whole_sequence
from seeds import few


def family(random_: random.Random) -> Iterator[tuple[str, Sequence]]:
    """Sequences with common beginnings of different lengths, without end."""
    strict = random_.random() < 0.25
    within = random_.choice([3, 8, 20])
    by = random_.choice([(), ("k",)])
    beginnings: list[Written | None] = [None]
    beginnings += [random_steps(random_, 1)]
    beginnings += [random_steps(random_, 1, beginnings[1]), random_steps(random_, 1, beginnings[1])]
    while True:
        beginning = random_.choice(beginnings[1:] if random_.random() < 0.9 else beginnings)
        written = random_steps(random_, random_.choice([1, 1, 2]), beginning)
        skip_to_next = random_.random() < 0.4
        yield whole_sequence(written, within=within, strict=strict, skip_to_next=skip_to_next, by=by)


@pytest.mark.parametrize("seed", few(range(60)))
def test_sequences_that_share_steps_tell_what_each_would_tell_alone(seed: int, tmp_path: Path) -> None:
    random_ = random.Random(seed)
    drawn = family(random_)
    rows = random_rows(random_, 40)
    flow = tamis.Flow()
    flow.stream("s", time="ts")
    lives: dict[str, tuple[str, Sequence, int, int]] = {}
    told: list[Any] = []
    for at, row in enumerate(rows):
        while random_.random() < (0.9 if at == 0 else 0.15):
            name = f"q{len(lives)}"
            text, sequence = next(drawn)
            flow.add(name, text)
            lives[name] = (text, sequence, at, len(rows))
        present = list(flow)
        if present and random_.random() < 0.08:
            name = random_.choice(present)
            flow.remove(name)
            text, sequence, start, _ = lives[name]
            lives[name] = (text, sequence, start, at)
        told += flow.push("s", row)
        if random_.random() < 0.08:
            before = flow.stats()["bytes"]
            flow.save(tmp_path / "state")
            flow = tamis.Flow.open(tmp_path / "state")
            assert flow.stats()["bytes"] == before
    told += flow.advance(to=10**6)
    assert flow.stats()["bytes"] == 0
    for name, (text, sequence, start, end) in lives.items():
        found = [[event["at"] for event in out.events] for out in told if out.query == name]
        if end == len(rows):
            expected = [[row["at"] for row in match] for match in matches(sequence, rows[start:])]
            assert sorted(found) == sorted(expected), name
        else:
            # What a removed sequence told is what it tells alone.
            alone = tamis.Flow()
            alone.stream("s", time="ts")
            alone.add(name, text)
            outs = alone.push_batch("s", rows[start:end])
            expected = [[event["at"] for event in out.events] for out in outs]
            assert sorted(found) == sorted(expected), name
    for name in list(flow):
        flow.remove(name)
    assert flow.stats()["streams"]["s"]["selections"] == 0


def logins(rules: int) -> tamis.Flow:
    flow = tamis.Flow()
    flow.stream("s", time="ts")
    for rule in range(rules):
        flow.add(
            f"q{rule}",
            f"SEQUENCE (a: NOT ok){{3,}} THEN (b: ok AND place = {rule} AND b.v != a.v) WITHIN 1h BY k",
        )
    for at in range(60):
        flow.push("s", {"ts": at, "k": at % 3, "ok": False, "v": at})
    return flow


def test_the_state_of_shared_steps_does_not_grow_with_the_number_of_sequences() -> None:
    one, many = logins(1), logins(200)
    assert many.stats()["bytes"] == one.stats()["bytes"]
    assert many.explain("q7")["sequence"]["sequences_by_step"] == [200, 1]
    assert many.explain("q7", key={"k": 1})["sequence"]["partial_matches_at_key"] > 0
    [out] = many.push("s", {"ts": 100, "k": 1, "ok": True, "place": 7, "v": 0})
    assert (out.query, out.row) == ("q7", {"a": 20, "b": 1})
    # The others still wait for theirs.
    [out] = many.push("s", {"ts": 101, "k": 1, "ok": True, "place": 8, "v": 0})
    assert (out.query, out.row) == ("q8", {"a": 20, "b": 1})
    assert many.push("s", {"ts": 102, "k": 1, "ok": True, "place": 8, "v": 0}) == []


def test_the_plan_draws_shared_steps_once() -> None:
    flow = flow_of(
        one="SEQUENCE (a = 1) THEN (b = 1) THEN (c = 1) WITHIN 1m BY k",
        two="SEQUENCE (a = 1) THEN (b = 1) THEN (c = 2) WITHIN 1m BY k",
        three="SEQUENCE (a = 1) THEN (b = 2) WITHIN 1m BY k AFTER MATCH SKIP TO NEXT ROW",
        other="SEQUENCE (a = 1) THEN (b = 2) WITHIN 2m BY k",
    )
    flow.push("s", {"ts": 1, "a": 1, "k": 1})
    nodes = flow.plan().nodes.values()
    shared = {node.label: node.queries for node in nodes if node.kind == "steps"}
    assert shared == {"(a = 1)": 3, "(a = 1) THEN (b = 1)": 2}
    assert flow.plan().to_svg().count("(a = 1) THEN (b = 1)</text>") == 1
    flow.remove("one")
    flow.remove("two")
    assert not [node for node in flow.plan().nodes.values() if node.kind == "steps"]
    assert [out.query for out in flow.push("s", {"ts": 2, "b": 2, "k": 1})] == ["three", "other"]


def test_a_step_that_speaks_of_a_later_one_is_refused_also_where_it_is_shared() -> None:
    flow = tamis.Flow()
    flow.stream("s", time="ts")
    flow.add("q", "SEQUENCE (b.x = 1) THEN (c: x = 2) WITHIN 1m")
    with pytest.raises(tamis.ExpressionError, match="later step b"):
        flow.add("r", "SEQUENCE (b.x = 1) THEN (b: x = 2) WITHIN 1m")
    flow.remove("q")
    assert flow.stats()["streams"]["s"]["selections"] == 0


def test_a_long_repetition_is_kept_in_a_small_file(tmp_path: Path) -> None:
    flow = tamis.Flow()
    flow.stream("s", time="ts", unit="us")
    flow.add("q", "SEQUENCE (a = 1){3,} THEN (a = 2) WITHIN 1h BY k")
    sizes = []
    for at in range(600):
        flow.push("s", {"ts": at, "a": 1, "k": 1, "text": "x" * 100})
        if at in (299, 599):
            flow.save(tmp_path / "state")
            sizes.append((tmp_path / "state").stat().st_size)
    # Twice the events, about twice the bytes; with a copy for each partial match it is four times as many.
    assert sizes[1] < 2.5 * sizes[0]
    assert flow.stats()["bytes"] < 600 * 1000
    again = tamis.Flow.open(tmp_path / "state")
    event = {"ts": 1000, "a": 2, "k": 1}
    assert [len(out.events) for out in again.push("s", event)] == [601]
    assert [len(out.events) for out in flow.push("s", event)] == [601]
