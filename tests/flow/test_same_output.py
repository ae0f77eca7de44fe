"""One history, taken in one by one, in batches, or reopened after every step: the output is the same."""

import random
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from flow.flows import flow_of
from flow.test_joins import random_query
from flow.test_keep import plain
from flow.test_sequences import random_sequence
from flow.windows import rule

Step = tuple[str, tuple[Any, ...]]
NAN = float("nan")
KEYS: list[Any] = [
    0,
    -0.0,
    1,
    1.0,
    Decimal("1.00"),
    NAN,
    "1",
    True,
    None,
    [1, 2],
    [1.0, 2.0],
    {"x": 1},
    {"x": 1.0},
]
KEYS += [2.0**63, 9.21e18, int(9.21e18), 0.1, Decimal("0.1")]
"""Values of which some are equal, written differently."""


def history(random_: random.Random, count: int, keys: list[Any]) -> list[Step]:
    """Streams, queries that come and go under few names, events, some late or without a usable time."""
    steps: list[Step] = [
        ("stream", (name, random_.choice([0, 0, 4]), random_.choice([None, 6]))) for name in "ab"
    ]
    texts = [rule(random_).text for _ in range(3)] + [random_sequence(random_)[0] for _ in range(3)]
    texts += [random_query(random_)[0] for _ in range(2)]
    texts += ["count(DISTINCT v BY k LAST 9s) >= 2", "SEQUENCE (a: v >= 1) THEN (b: v != a.v) WITHIN 9s BY k"]
    now = 0
    added: set[str] = set()
    for number in range(count):
        now += random_.choice([0, 0, 1, 1, 3, 20])
        draw = random_.random()
        name = f"q{random_.randrange(6)}"
        if draw < 0.12 and name not in added:
            added.add(name)
            text = random_.choice(texts)
            steps.append(("add", (name, text, None if text.startswith("SELECT") else random_.choice("ab"))))
        elif draw < 0.17 and name in added:
            added.remove(name)
            steps.append(("remove", (name,)))
        elif draw < 0.22:
            steps.append(("advance", (now + random_.randint(-30, 3),)))
        elif draw < 0.25:
            steps.append(("late", (random_.choice("ab"),)))
        else:
            event = {
                "ts": now - random_.choice([0, 0, 0, 2, 9]),
                "number": number,
                "k": random_.choice(keys),
                "kind": random_.choice(["a", "a", "b", "c", None]),
                "name": random_.choice(["x", "y", None]),
                "v": random_.choice([0, 1, 2, 5, None]),
                "ok": random_.choice([True, False, None]),
                "x": random_.choice([0.1, 0.2, -0.3, 1e300, -1e300, 5e-324, None]),
            }
            if random_.random() < 0.02:
                event["ts"] = "soon"
            steps.append(("push", (random_.choice("ab"), event)))
    return steps


def take(flow: tamis.Flow, step: Step) -> list[Any]:
    """What a step tells; a refusal is part of it."""
    action, given = step
    try:
        match action:
            case "stream":
                flow.stream(given[0], time="ts", lateness=given[1], idle=given[2])
            case "add":
                flow.add(*given)
            case "remove":
                flow.remove(*given)
            case "late":
                return [event.to_json() for event in flow.late(*given)]
            case "advance":
                return plain(flow.advance(*given))
            case _:
                return plain(flow.push(*given))
    except tamis.TamisError as refused:
        return [*plain(getattr(refused, "told", [])), type(refused).__name__]
    return []


def one_by_one(flow: tamis.Flow, steps: list[Step], _: Path) -> list[Any]:
    return [told for step in steps for told in take(flow, step)]


def saved_after_every_step(flow: tamis.Flow, steps: list[Step], path: Path) -> list[Any]:
    found = []
    for step in steps:
        found += take(flow, step)
        flow.save(path)
        flow = tamis.Flow.open(path)
    return found


def checkpoint_after_every_step(flow: tamis.Flow, steps: list[Step], path: Path) -> list[Any]:
    """The last checkpoint is opened and takes the next step, while the flow that wrote it goes on, too."""
    found = []
    flow.checkpoint(path)
    for step in steps:
        found += take(tamis.Flow.open(path), step)
        take(flow, step)
        flow.checkpoint(path)
    return found


def in_batches(flow: tamis.Flow, steps: list[Step], _: Path, *, arrow: bool = False) -> list[Any]:
    """Events of one stream that follow one another are one batch."""
    found = []
    for at, (action, given) in enumerate(steps):
        if action != "push":
            found += take(flow, steps[at])
            continue
        if at and steps[at - 1][0] == "push" and steps[at - 1][1][0] == given[0]:
            continue
        batch = []
        for other, event in steps[at:]:
            if other != "push" or event[0] != given[0]:
                break
            batch.append(event[1])
        while batch:
            try:
                found += plain(flow.push_batch(given[0], in_chunks(batch) if arrow else batch))
                break
            except tamis.TamisError as refused:
                found += [*plain(refused.told), type(refused).__name__]  # type: ignore[attr-defined]
                row = re.search(r"row (\d+)", str(refused))
                assert row is not None
                batch = batch[int(row[1]) + 1 :]
    return found


def in_chunks(events: list[dict[str, Any]]) -> pa.Table:
    """A table in two chunks, whose rows lie in the middle of larger buffers."""
    table = pa.Table.from_pylist([*events, *events])
    return pa.concat_tables([table.slice(len(events), 1), table.slice(1, len(events) - 1)])


def as_arrow(flow: tamis.Flow, steps: list[Step], path: Path) -> list[Any]:
    return in_batches(flow, steps, path, arrow=True)


@pytest.mark.parametrize("limit", [(None, "refuse"), (4000, "refuse"), (4000, "shed")])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 12))])
def test_the_output_is_the_same_however_a_history_is_taken_in(
    seed: int, limit: tuple[int | None, Any], tmp_path: Path
) -> None:
    def empty() -> tamis.Flow:
        return tamis.Flow(limit=limit[0], on_limit=limit[1])

    random_ = random.Random(f"{seed} {limit}")
    steps = history(random_, 70, KEYS)
    expected = one_by_one(empty(), steps, tmp_path)
    for way in (saved_after_every_step, checkpoint_after_every_step, in_batches):
        found = way(empty(), steps, tmp_path / way.__name__)
        assert list(map(repr, found)) == list(map(repr, expected)), way.__name__
    # Columns of a table have one type each, and a time for every row.
    steps = [step for step in history(random_, 150, ["x", "y", None]) if "soon" not in str(step[1])]
    expected = one_by_one(empty(), steps, tmp_path)
    assert as_arrow(empty(), steps, tmp_path) == expected


def test_keys_are_equal_as_values_are() -> None:
    """Every key against every other: partitions, sequences, joins and DISTINCT agree."""

    def kind(value: Any) -> Any:
        if isinstance(value, bool | str | None):
            return type(value).__name__, value
        if isinstance(value, list):
            return "array", tuple(map(kind, value))
        if isinstance(value, dict):
            return "record", tuple((name, kind(item)) for name, item in value.items())
        # A float is the number it is written as.
        return "number", str((Decimal(repr(value) if isinstance(value, float) else value) + 0).normalize())

    for one in KEYS:
        for other in KEYS:
            is_same = kind(one) == kind(other)
            flow = flow_of(
                partition="count(* BY k LAST 9s) >= 2",
                distinct="count(DISTINCT k LAST 9s) = 1 AND count(k LAST 9s) = 2",
                sequence="SEQUENCE (n = 1) THEN (n = 2) WITHIN 9s BY k",
                join="SELECT x.n FROM s ROWS 2 AS x JOIN s ROWS 1 AS y ON x.k = y.k WHERE x.n < y.n",
            )
            flow.push("s", {"ts": 1, "n": 1, "k": one})
            found = {out.query for out in flow.push("s", {"ts": 2, "n": 2, "k": other}) if out.kind == "+"}
            expected = {"partition"} if is_same else set()
            if is_same and one is not None:
                expected |= {"distinct", "sequence"}
                expected |= set() if isinstance(one, list | dict) else {"join"}
            assert found == expected, (one, other)
