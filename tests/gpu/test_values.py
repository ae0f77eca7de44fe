"""Values that a device looks up by itself, and those that the processor looks up for it, in one batch."""

import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from gpu.devices import on_device
from seeds import few

EDGE = 2**53
INTEGERS = [0, 1, -1, 7, EDGE - 1, EDGE, EDGE + 1, EDGE + 2, -EDGE - 1, 2**62 + 1, 2**63 - 1, -(2**63)]
FLOATS = [
    0.0,
    -0.0,
    0.1,
    1.0,
    -1.0,
    7.0,
    float(EDGE),
    2.0**63,
    1e300,
    5e-324,
    float("inf"),
    float("-inf"),
    float("nan"),
]
DECIMALS = [
    Decimal(text)
    for text in (
        "0",
        "0.1",
        "7",
        "-1",
        f"{EDGE + 1}",
        "0.1000000000000000000001",
        "123456789012345678901234.5",
    )
]
START = datetime(2026, 1, 31, 12, tzinfo=UTC)
MOMENTS = [START + timedelta(microseconds=each) for each in (0, 1, -1, 10**9, -(10**14))]


def number(draw: random.Random) -> str:
    """An operand of any kind of number."""
    values = [*INTEGERS, *(each for each in FLOATS if abs(each) < 1e200), *DECIMALS]
    return str(draw.choice(values))


def moment(draw: random.Random) -> str:
    """An operand that is a timestamp."""
    return f"TIMESTAMP '{draw.choice(MOMENTS):%Y-%m-%d %H:%M:%S.%f}'"


def predicate(draw: random.Random) -> str:
    """A predicate on a column of any kind, often of another kind than its operand."""
    name = draw.choice(["i", "small", "f", "d", "when", "sparse", "mixed"])
    operand = moment if name == "when" or draw.random() < 0.1 else number
    one, other = operand(draw), operand(draw)
    return draw.choice(
        [
            f"{name} = {one}",
            f"{name} {draw.choice(['<', '<=', '>', '>=', '!='])} {one}",
            f"{name} {draw.choice(['IN', 'NOT IN'])} ({one}, {other})",
            f"{name} BETWEEN {one} AND {other}",
            "flag",
            "NOT flag",
            # Whoever asks for these looks at every event.
            *(
                ["mixed IS NULL", "sparse IS NOT NULL", f"t LIKE '%{draw.randrange(9)}'"]
                if draw.random() < 0.2
                else []
            ),
        ]
    )


def events(draw: random.Random, count: int) -> pa.Table:
    """Columns that are dense, sparse or sliced, with the values above and some beside them."""

    def column(values: list[object], kind: pa.DataType, share: float = 0.7) -> pa.Array:
        drawn = [draw.choice(values) if draw.random() < share else None for _ in range(count + 13)]
        return pa.array(drawn, kind).slice(13)

    return pa.table(
        {
            "i": column(INTEGERS, pa.int64()),
            "small": column([-1, 0, 1, 7], pa.int8(), 1.0),
            "f": column(FLOATS, pa.float64()),
            "d": column(DECIMALS, pa.decimal256(60, 25)),
            "when": column(MOMENTS, pa.timestamp("us", "UTC")),
            "flag": column([True, False], pa.bool_()),
            "sparse": column([*INTEGERS, 3, 5], pa.int64(), 0.03),
            "mixed": column([*FLOATS, 0.5], pa.float64(), 0.02),
            "t": column([f"v{each}" for each in range(20)], pa.string()),
        }
    )


@pytest.mark.parametrize("seed", few(range(4)))
def test_values_of_any_kind_and_size(kernels: Path, seed: int) -> None:
    """Numbers beside 2^53, decimals between floats, NaN, both zeros, other kinds than predicates expect."""
    draw = random.Random(seed)
    index = tamis.Index()
    for id in range(600):
        tests = [predicate(draw) for _ in range(draw.randint(1, 3))]
        index.add(
            id, draw.choice([" AND ", " OR "]).join(f"({test})" for test in tests), priority=draw.random()
        )
    index.optimize()
    batch = events(draw, [700, 4600][seed % 2])

    def ask() -> list[object]:
        found = (
            index.match_batch(batch),
            index.count_batch(batch),
            index.top_k_batch(batch, 3, score="priority"),
        )
        return [
            found[0].to_pydict(),
            found[1].to_pylist(),
            found[2].to_pydict(),
            index.count_by_subscription(batch).to_pydict(),
        ]

    expected = ask()
    assert sum(expected[1]) > 0
    on_device(index, kernels)
    assert ask() == expected
    assert index.stats()["device_blocks"] > 0
    assert index.stats()["device_failure"] is None


def test_threads_share_the_events_of_a_block(kernels: Path) -> None:
    """With fewer blocks than threads, each thread gathers some events of a block, numbered from zero."""
    draw = random.Random(5)
    rows, names = 1500, [f"a{each}" for each in range(400)]
    columns = {name: [None] * rows for name in names}
    for row in range(rows):
        for name in draw.sample(names, 12):
            columns[name][row] = draw.choice([0, 1, 2, 3, EDGE + 1])
    batch = pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})
    batch = batch.append_column("t", pa.array([f"v{draw.randrange(30)}" for _ in range(rows)]))
    index = tamis.Index()
    for id in range(500):
        one, other = draw.sample(names, 2)
        test = draw.choice(
            [f"{one} = {draw.randrange(4)}", f"{one} > {draw.randrange(4)}", f"{one} > {EDGE}"]
        )
        rest = draw.choice(
            [f"{other} < 3", f"t = 'v{draw.randrange(30)}'", f"t LIKE '%{draw.randrange(9)}'", "a0 IS NULL"]
        )
        index.add(id, f"{test} {draw.choice(['AND', 'OR'])} {rest}")
    index.optimize()
    expected = index.match_batch(batch), index.count_batch(batch)
    on_device(index, kernels)
    for threads in (1, 16):
        assert index.match_batch(batch, threads=threads).equals(expected[0])
        assert index.count_batch(batch, threads=threads).equals(expected[1])
    assert index.stats()["device_failure"] is None
