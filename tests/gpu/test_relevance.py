"""The best by relevance on a device: the same rows and numbers, to the last bit, as on the processor.

What could go wrong, and is drawn here: sums in another order, or rounded once less; parts that do not hold
and count all the same; ties, and more of them than a bin has room for; rows that only their records can
score; predicates that are still set when the next block comes; rows that are gone or came later; weights
that changed; too little memory.
"""

import functools
import math
import operator
import random
from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from gpu.devices import LOST, OUT_OF_MEMORY, Faults, on_device, with_faults
from gpu.test_device import expression, literal, some_events
from seeds import few

# Sums of these depend on the order; some are nothing, some are too large or too small to matter.
WEIGHTS = [0.1, 0.2, 0.3, 1e16, 1.0, 3.0, 0.0, 1e-300, 5e-324, 1e308, 2.0**53, 1 / 3]
TAME = [1.0, 2.0, 0.5, 0.1]

# How many are asked for, and how many scores there are.
SIZES = [(10, 1), (100, 7), (1, 5000), (1, 1), (100, 1), (1, 7), (10, 7), (10, 5000), (100, 5000)]


def boosted(draw: random.Random, text: str, weights: list[float]) -> str:
    """A predicate of which some have weights of their own."""
    simple = not any(part in text for part in ("(", "LIKE", "NULL", "+", "BETWEEN"))
    return f"({text})^{draw.choice(weights)!r}" if simple and draw.random() < 0.5 else text


def weighted(draw: random.Random, depth: int, weights: list[float]) -> str:
    """An expression with weights inside."""
    if depth == 0 or draw.random() < 0.2:
        return boosted(draw, literal(draw), weights)
    kind = draw.choice(["AND", "AND", "OR", "OR", "NOT", "XOR", "XNOR", "AT LEAST"])
    if kind == "NOT":
        return f"NOT ({weighted(draw, depth - 1, weights)})"
    children = [f"({weighted(draw, depth - 1, weights)})" for _ in range(draw.randint(2, 4))]
    if kind == "AT LEAST":
        return f"AT LEAST {draw.randint(1, len(children))} OF ({', '.join(children)})"
    return f" {kind} ".join(children)


def build(draw: random.Random, rules: int, depth: int, weights: list[float]) -> tamis.Index:
    """Rules of which most have weights; the first ones have none."""
    index = tamis.Index(optimize="manual")
    for id in range(rules):
        is_plain = id < 5 or draw.random() < 0.1
        text = expression(draw, depth) if is_plain else weighted(draw, depth, weights)
        if draw.random() < 0.3:
            text = f"({text}) OR n0 >= 0"
        names = draw.sample(["n0", "n1", "n2", "n3", "f", "t", "flag", "tags"], draw.randrange(5))
        index.add(
            id,
            text,
            weights=None if is_plain else {name: draw.choice(weights) for name in names},
            tags=draw.sample(["a", "b"], draw.randrange(3)),
            expires=draw.choice([None, None, 150]),
        )
    return index


def bits(table: pa.Table) -> list[tuple[object, ...]]:
    """The rows of an answer, with scores that are equal only if all their bits are."""
    rows = table.to_pylist()
    return [tuple(each.hex() if isinstance(each, float) else each for each in row.values()) for row in rows]


def answers(index: tamis.Index, events: pa.Table) -> list[object]:
    """The best by relevance, in every way that can be asked for."""
    ways: list[dict[str, object]] = [
        {},
        {"tags": ["a"]},
        {"now": 200},
        {"min_score": 2.0},
        {"min_score": -1.0},
        {"min_score": math.inf},
    ]
    found = [bits(index.top_k_batch(events, 3, score="relevance", **way)) for way in ways]
    for k in (1, 20, 256):
        found.append(bits(index.top_k_batch(events.slice(0, 300), k, score="relevance")))
    return found


def check_block(index: tamis.Index, events: pa.Table, k: int, kernels: Path) -> None:
    """Ask for the best of one block here and on the device, which is to answer."""
    expected = bits(index.top_k_batch(events, k, score="relevance"))
    assert expected
    on_device(index, kernels)
    assert bits(index.top_k_batch(events, k, score="relevance")) == expected
    assert index.stats()["device_blocks"] == 1
    index.to_cpu()


@pytest.mark.parametrize("seed", few(range(8)))
def test_the_best_are_those_of_the_processor(kernels: Path, seed: int) -> None:
    draw = random.Random(seed)
    weights = [TAME, WEIGHTS][seed % 2]
    index = build(draw, [150, 400][seed // 2 % 2], draw.randrange(1, 4), weights)
    if seed % 3:
        index.optimize()
    events = some_events(draw, [300, 700, 4500][seed % 3])
    expected = answers(index, events)
    assert len({tuple(map(tuple, each)) for each in expected}) > 2
    on_device(index, kernels)
    assert answers(index, events) == expected
    stats = index.stats()
    # Each of nine questions, in one block or two.
    assert stats["device_blocks"] >= 9
    assert stats["device_failure"] is None


def test_weights_that_are_added_in_another_order_would_be_seen() -> None:
    orders = [draw.sample([0.1, 0.2, 0.3, 1 / 3], 4) for draw in map(random.Random, range(20))]
    sums = {functools.reduce(operator.add, order) for order in orders}
    assert len(sums) > 1


@pytest.mark.parametrize("size", few(SIZES))
@pytest.mark.thorough
def test_more_candidates_than_a_bin_has_room_for(kernels: Path, size: tuple[int, int]) -> None:
    """Rows have the same bound, so that all of them are scored; those of events tie, or nearly all differ."""
    k, scores = size
    draw = random.Random(scores)
    index = tamis.Index(optimize="manual")
    ids = draw.sample(range(100_000), 3000)
    rules = [
        f"(a >= 0)^{1 + draw.randrange(scores)} OR (b > {draw.randrange(40)})^{draw.randrange(5)}"
        " OR (c = 1)^9000"
        for _ in ids
    ]
    index.add_many(ids, rules)
    index.optimize()
    events = pa.table({"a": [at % 3 for at in range(600)], "b": [at % 41 for at in range(600)]})
    assert index.top_k_batch(events, k, score="relevance").num_rows == k * 600
    check_block(index, events, k, kernels)


def test_several_rounds(kernels: Path) -> None:
    """Rows beyond those with the highest bounds are the best of some events, of others not even looked at."""
    draw = random.Random(5)
    index = tamis.Index(optimize="manual")
    rules = [
        f"(n0 = {draw.randrange(20)})^{at % 97 + 0.1} OR (n1 > {draw.randrange(20)} AND (n2 < 5)^0.3)"
        for at in range(36_000)
    ]
    index.add_many(list(range(len(rules))), rules)
    index.optimize()
    check_block(index, some_events(draw, 300), 5, kernels)


def test_rows_that_only_their_records_score(kernels: Path) -> None:
    index = tamis.Index(optimize="manual")
    deep = "n0 > 3"
    for at in range(20):
        deep = f"(n{at % 4} < {at} {'AND' if at % 2 else 'OR'} ({deep}))"
    xors = "flag"
    for at in range(5):
        xors = f"({xors}) XOR ((n{at % 4} > {at})^0.7 AND n0 > 1)"
    rules = [
        "n0 > 2 OR n1 = 3",
        "flag",
        deep,
        xors,
        f"({deep})",
        "(n0 > 1)^0.5 OR (n1 > 1)^0.25",
        f"NOT ({xors})",
    ]
    for id, rule in enumerate(rules * 20):
        index.add(id, rule, weights={"n2": 0.1} if id > 4 else None)
    index.optimize()
    events = some_events(random.Random(3), 700)
    for k in (2, 60, 200):
        check_block(index, events, k, kernels)


def test_without_weights_few_matches_are_scored_by_their_records(kernels: Path) -> None:
    index = tamis.Index(optimize="manual")
    for id in range(900):
        index.add(id, f"n0 = {id % 20} AND (n1 = {id % 7} OR n2 > {id % 19})")
    index.optimize()
    check_block(index, some_events(random.Random(1), 900), 4, kernels)


def test_too_many_matches_without_weights_are_left_to_the_processor(kernels: Path) -> None:
    index = tamis.Index(optimize="manual")
    for id in range(600):
        index.add(id, f"n0 >= 0 OR n1 > {id % 20}")
    index.optimize()
    events = some_events(random.Random(1), 600)
    expected = bits(index.top_k_batch(events, 4, score="relevance"))
    on_device(index, kernels)
    for _ in range(3):
        assert bits(index.top_k_batch(events, 4, score="relevance")) == expected
    stats = index.stats()
    assert stats["device_blocks"] == 0
    assert stats["device_failure"] is None


def test_what_a_device_is_not_asked_for(kernels: Path) -> None:
    """None at all, very many, some attributes only, and events with weights."""
    draw = random.Random(2)
    index = build(draw, 200, 2, TAME)
    index.optimize()
    events = some_events(draw, 300)

    def ask() -> list[object]:
        return [
            bits(index.top_k_batch(events, 0, score="relevance")),
            bits(index.top_k_batch(events, 257, score="relevance")),
            bits(index.top_k_batch(events, 3, score="relevance", dimensions=["n0", "t"])),
            bits(index.top_k_batch(events, 3, score="relevance", weights={"n0": 3.5, "t": 0.25})),
            bits(index.top_k_batch(events, 3, score="relaxed")),
        ]

    expected = ask()
    on_device(index, kernels)
    assert ask() == expected
    assert index.stats()["device_blocks"] == 0


def test_changes_reach_the_device(kernels: Path) -> None:
    draw = random.Random(11)
    index = build(draw, 300, 2, TAME)
    index.optimize()
    events = some_events(draw, 400)
    twin = build(random.Random(11), 300, 2, TAME)
    on_device(index, kernels)

    def check() -> None:
        blocks = index.stats()["device_blocks"]
        assert bits(index.top_k_batch(events, 5, score="relevance")) == bits(
            twin.top_k_batch(events, 5, score="relevance")
        )
        assert index.stats()["device_blocks"] == blocks + 1

    check()
    for step in range(6):
        for each in (index, twin):
            change = random.Random(step)
            for _ in range(30):
                each.set_weights(change.randrange(300), {"n0": change.choice(TAME), "t": 7.25})
            for id in range(1000 * step, 1000 * step + [5, 200][step % 2]):
                each.add(id + 1000, weighted(change, 2, TAME), weights={"n1": change.choice(TAME)})
            for id in change.sample(range(40 * step, 40 * step + 40), 20):
                each.remove(id)
                each.add(id, weighted(change, 1, TAME), weights={"n2": 3.0})
        if step == 3:
            index.optimize()
        check()


@pytest.mark.filterwarnings("ignore:.*device memory")
@pytest.mark.thorough
def test_any_limit_of_memory_gives_the_same_answers(kernels: Path) -> None:
    draw = random.Random(17)
    index = tamis.Index(optimize="manual")
    rules = [
        f"(n0 = {at % 20})^{draw.choice(WEIGHTS)!r} OR n1 > {at // 20 % 20} AND (n2 != {at // 400})^0.7"
        for at in range(6000)
    ]
    index.add_many(list(range(6000)), rules)
    index.optimize()
    index.remove(17)
    events = some_events(draw, 300)
    expected = bits(index.top_k_batch(events, 7, score="relevance"))
    many = bits(index.top_k_batch(events, 200, score="relevance"))
    parts = set()
    for megabytes in (64, 16, 12, 9, 7, 5, 1):
        on_device(index, kernels, megabytes << 20)
        # Bins for so many may not fit: the processor answers, and the device goes on.
        assert bits(index.top_k_batch(events, 200, score="relevance")) == many
        assert bits(index.top_k_batch(events, 7, score="relevance")) == expected
        stats = index.stats()
        assert stats["device_bytes"] <= megabytes << 20
        if stats["device_blocks"]:
            parts.add(stats["device_parts"])
    assert {1, 2} <= parts


@pytest.mark.filterwarnings("ignore:the device failed")
@pytest.mark.parametrize("kind", [OUT_OF_MEMORY, LOST])
@pytest.mark.thorough
def test_whatever_fails_the_answer_is_right(faults: Faults, kind: int) -> None:
    draw = random.Random(23)
    index = build(draw, 150, 2, TAME)
    index.optimize()
    events = some_events(draw, 300)
    expected = bits(index.top_k_batch(events, 3, score="relevance"))
    with_faults(index, faults)
    before = sum(faults.operations)
    assert bits(index.top_k_batch(events, 3, score="relevance")) == expected
    operations = sum(faults.operations) - before
    for at in range(0, operations, max(1, operations // 25)):
        faults.at(None)
        with_faults(index, faults)
        faults.at(at, kind)
        assert bits(index.top_k_batch(events, 3, score="relevance")) == expected
        faults.at(None)


def test_a_block_is_wider_than_a_warp(kernels: Path) -> None:
    """A thread has two lanes of a mask: those of the second one are events from 4,096 on."""
    draw = random.Random(37)
    index = build(draw, 150, 2, TAME)
    index.optimize()
    events = some_events(draw, 8_500)
    expected = bits(index.top_k_batch(events, 3, score="relevance"))
    on_device(index, kernels)
    assert bits(index.top_k_batch(events, 3, score="relevance")) == expected
    assert index.stats()["device_blocks"] > 0


def test_a_block_after_another_starts_afresh(kernels: Path) -> None:
    """Predicates are cleared after rows are scored: neither a count nor the next block sees them."""
    draw = random.Random(29)
    index = build(draw, 200, 2, TAME)
    index.optimize()
    batches = [some_events(draw, 300) for _ in range(3)]
    expected = [
        (bits(index.top_k_batch(batch, 3, score="relevance")), index.count_batch(batch)) for batch in batches
    ]
    on_device(index, kernels)
    for batch, (best, counts) in zip(batches, expected, strict=True):
        assert bits(index.top_k_batch(batch, 3, score="relevance")) == best
        assert index.count_batch(batch).equals(counts)


def test_scores_that_grow_where_bounds_fall_take_no_quadratic_time(faults: Faults) -> None:
    """Fault: the bins of an event run over again and again, each time for a few hundred rows."""
    launches = []
    for rows in (20_000, 40_000):
        index = tamis.Index(optimize="manual")
        rules = [f"(x = 1)^{row / rows!r} OR (y = {row})^{1000 - 2 * row / rows!r}" for row in range(rows)]
        index.add_many(range(rows), rules)
        events = pa.table({"x": [1, 1] + [7] * 600})
        expected = bits(index.top_k_batch(events, 10, score="relevance"))
        with_faults(index, faults)
        before = sum(faults.operations)
        assert bits(index.top_k_batch(events, 10, score="relevance")) == expected
        launches.append(sum(faults.operations) - before)
    assert launches[0] == launches[1]
