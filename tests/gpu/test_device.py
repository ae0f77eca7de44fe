"""Batches on a device: the kernels, compiled for this processor, against the processor's own way."""

import gc
import os
import random
import subprocess
import sys
import warnings
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tamis
from gpu.devices import LOST, OUT_OF_MEMORY, ROOT, Faults, on_device, with_faults
from seeds import few
from tamis import Query
from tamis._matching import ask_up_to


def literal(draw: random.Random) -> str:
    """A predicate, with every way of being indexed."""
    a, b = sorted((draw.randrange(20), draw.randrange(20)))
    return draw.choice(
        [
            f"n{draw.randrange(4)} = {a}",
            f"n{draw.randrange(4)} IN ({a}, {b})",
            # Short sets are read value by value, longer ones have a mask; some values are in no event.
            f"n{draw.randrange(4)} {draw.choice(['IN', 'NOT IN'])} ({', '.join(map(str, some_of(draw)))})",
            f"t {draw.choice(['IN', 'NOT IN'])} ({', '.join(repr(f'v{each}') for each in some_of(draw))})",
            f"n{draw.randrange(4)} {draw.choice(['<', '<=', '>', '>=', '!='])} {a}",
            f"n{draw.randrange(4)} BETWEEN {a} AND {b}",
            f"(f > {a}.5 AND f < {b}.25)",
            f"t = 'v{a}'",
            f"t >= 'v{a}'",
            f"t LIKE '%{a}'",
            f"n{draw.randrange(4)} IS NULL",
            "flag",
            f"array_contains(tags, 'v{a}')",
            f"n0 + n1 > {a + b}",
            f"exists(tags, t -> t > 'v{a}')",
        ]
    )


def some_of(draw: random.Random) -> list[int]:
    """Different numbers, one to six of them."""
    return draw.sample(range(25), draw.randint(1, 6))


def expression(draw: random.Random, depth: int) -> str:
    """An expression that is up to so deep."""
    if depth == 0 or draw.random() < 0.2:
        return literal(draw)
    kind = draw.choice(["AND", "AND", "AND", "OR", "OR", "NOT", "XOR", "AT LEAST", "TRUTH"])
    if kind == "NOT":
        return f"NOT ({expression(draw, depth - 1)})"
    if kind == "TRUTH":
        test = draw.choice(["TRUE", "NOT TRUE", "UNKNOWN", "NOT UNKNOWN"])
        return f"({expression(draw, depth - 1)}) IS {test}"
    children = [f"({expression(draw, depth - 1)})" for _ in range(draw.randint(2, 4))]
    if kind == "AT LEAST":
        return f"AT LEAST {draw.randint(1, len(children))} OF ({', '.join(children)})"
    return f" {kind} ".join(children)


def some_events(draw: random.Random, count: int) -> pa.Table:
    """Events of every kind of column; values are missing now and then."""

    def maybe(value: object) -> object:
        return None if draw.random() < 0.3 else value

    return pa.table(
        {
            **{
                f"n{at}": pa.array([maybe(draw.randrange(20)) for _ in range(count)], pa.int64())
                for at in range(4)
            },
            "f": pa.array([maybe(draw.randrange(80) / 4) for _ in range(count)], pa.float64()),
            "t": pa.array([maybe(f"v{draw.randrange(20)}") for _ in range(count)]),
            "flag": pa.array([maybe(draw.random() < 0.5) for _ in range(count)], pa.bool_()),
            "tags": pa.array(
                [maybe([f"v{draw.randrange(20)}" for _ in range(draw.randrange(4))]) for _ in range(count)],
                pa.list_(pa.string()),
            ),
        }
    )


def build(draw: random.Random, rules: int, depth: int) -> tamis.Index:
    """Rules with priorities, tags and expiries; some share all or part of their expression."""
    index = tamis.Index(optimize="manual")
    pool = [expression(draw, depth) for _ in range(rules // 2 + 1)]
    for id in range(rules):
        text = draw.choice(pool)
        if draw.random() < 0.5:
            text = f"({text}) AND {literal(draw)}"
        index.add(
            id,
            text,
            priority=draw.choice([0.0, -0.0, 1.5, 2.0, 7.0]),
            tags=draw.sample(["a", "b"], draw.randrange(3)),
            starts=draw.choice([None, None, 70]),
            expires=draw.choice([None, None, 150]),
        )
    return index


def answers(index: tamis.Index, events: pa.Table) -> list[object]:
    """What is asked of a batch, in every way that a device knows and one that it does not."""
    ways: list[dict[str, object]] = [{}, {"tags": ["a"]}, {"now": 60}, {"now": 100}]
    found: list[object] = []
    for way in ways:
        found.append(index.match_batch(events, **way).to_pydict())
        found.append(index.count_batch(events, **way).to_pylist())
        found.append(index.top_k_batch(events, 3, score="priority", **way).to_pydict())
        found.append(index.count_by_subscription(events, **way).to_pydict())
    found.append(index.top_k_batch(events, 2, score="priority", min_score=1.75).to_pydict())
    # More than are taken one after the other.
    found.append(index.top_k_batch(events.slice(0, 500), 70, score="priority").to_pydict())
    found.append(index.top_k_batch(events.slice(0, 300), 2, score="relevance").to_pydict())
    return found


@pytest.mark.parametrize("seed", few(range(6)))
def test_a_device_answers_as_the_processor_does(kernels: Path, seed: int) -> None:
    draw = random.Random(seed)
    index = build(draw, [200, 300, 900][seed % 3], draw.randrange(4))
    if seed % 2:
        index.optimize()
    events = some_events(draw, [300, 700, 4500][seed % 3])
    expected = answers(index, events)
    on_device(index, kernels)
    assert answers(index, events) == expected
    stats = index.stats()
    assert stats["device_blocks"] > 0
    assert stats["device_bytes"] > 0
    assert stats["device_pinned_bytes"] > 0
    assert stats["device_failure"] is None


@pytest.mark.thorough
def test_a_block_is_wider_than_a_warp(kernels: Path) -> None:
    """A thread has two lanes of a mask: those of the second one are events from 4,096 on."""
    draw = random.Random(31)
    index = build(draw, 150, 2)
    index.optimize()
    for count in (8_500, 8_192, 4_097):
        events = some_events(draw, count)
        index.to_cpu()
        expected = answers(index, events)
        on_device(index, kernels)
        assert answers(index, events) == expected
        assert index.stats()["device_failure"] is None


@pytest.mark.parametrize("parts", few([32, 33, 100, 31, 64, 70]))
def test_units_of_any_length(kernels: Path, parts: int) -> None:
    """Summaries number 32 leaves of a unit: what is longer goes another way."""
    draw = random.Random(parts)
    # Neighbouring rules share nothing, so that each is one long unit.
    one = [f"n{at % 4} {draw.choice(['=', '>=', '!='])} {draw.randrange(400)}" for at in range(parts)]
    pairs = [f"(n{at % 4} > {draw.randrange(20)} AND f < {draw.randrange(20)})" for at in range(parts // 2)]
    either = [f"(n{at % 4} > {draw.randrange(20)} OR f < {draw.randrange(20)})" for at in range(parts // 2)]
    rules = [
        " OR ".join(one),
        " AND ".join(f"NOT ({each})" for each in one if "!=" not in each),
        " OR ".join(pairs),
        "flag AND (" + " OR ".join(pairs) + ")",
        "flag AND " + " AND ".join(either),
        f"AT LEAST {parts // 3} OF ({', '.join(one)})",
        " XOR ".join(one),
    ]
    index = tamis.Index()
    index.add_many(list(range(len(rules))), rules)
    index.optimize()
    events = some_events(draw, 900)
    expected = index.match_batch(events), index.count_batch(events)
    assert expected[0].num_rows > 0
    on_device(index, kernels)
    assert index.match_batch(events).equals(expected[0])
    assert index.count_batch(events).equals(expected[1])
    assert index.stats()["device_failure"] is None


def test_counts_of_any_size(kernels: Path) -> None:
    """Counts are added up bit by bit; what goes beyond the last bit that is shared is added elsewhere."""
    index = tamis.Index()
    copies = [1, 2, 3, 7, 8, 9, 100, 1000, 4095, 4096, 8192, 20_000]
    rules = [f"n0 >= {at}" for at, number in enumerate(copies) for _ in range(number)]
    index.add_many(list(range(len(rules))), rules)
    index.optimize()
    events = pa.table({"n0": [at % len(copies) for at in range(4096)]})
    expected = [sum(copies[: event + 1]) for event in events["n0"].to_pylist()]
    assert index.count_batch(events).to_pylist() == expected
    on_device(index, kernels)
    assert index.count_batch(events).to_pylist() == expected
    assert index.stats()["device_blocks"] > 0


@pytest.mark.parametrize("at", few([0, 1023, 4095, 290]))
def test_an_event_with_an_interval_among_others(kernels: Path, at: int) -> None:
    """A block that has one is left to the processor, in smaller blocks: none of these is answered twice."""
    index = tamis.Index()
    for number in range(200):
        index.add(number, f"a > {number % 50} AND b < {number % 7}", priority=float(number))
    index.optimize()
    events = [tamis.Event({"a": each % 60, "b": each % 8}) for each in range(4096)]
    events[at] = tamis.Event({"a": tamis.Interval(3, 9), "b": 2})

    def ask() -> list[pa.Table]:
        return [
            index.match_batch(events),
            index.count_batch(events),
            index.top_k_batch(events, 2, score="priority"),
            index.top_k_batch(events[:1100], 2, score="relevance"),
            index.count_by_subscription(events),
        ]

    expected = ask()
    on_device(index, kernels)
    assert ask() == expected
    # Among them one that the first event of the processor's second block exceeds.
    first_block = pc.sum(expected[1].slice(0, 512)).as_py()
    for most in (1, 5_000, first_block, first_block + 1, 10**9):
        found, answered = ask_up_to(index, Query("all"), events, most, threads=1)
        assert found.num_rows <= most or answered == 1
        assert found.equals(expected[0].filter(pc.less(expected[0]["event"], answered)))
    assert answered == len(events)


@pytest.mark.parametrize("count", [300, 4500])
def test_sets_of_values(kernels: Path, count: int) -> None:
    """A value that is in many sets is a mask of its own, which conjunctions of short sets read.

    With few events a lane computes its part of a unit alone, with many the lanes do it together. Sets of five
    have a mask, and so have sets that a choice or a threshold reads; one value needs no set.
    """
    draw = random.Random(count)

    def values() -> list[int]:
        return draw.sample(range(25), draw.choice([1, 2, 3, 4, 4, 5]))

    def test_of(attribute: str) -> str:
        is_in = draw.choice(["IN", "IN", "IN", "NOT IN"])
        listed = [f"'v{each}'" if attribute == "t" else str(each) for each in values()]
        return f"{attribute} {is_in} ({', '.join(listed)})"

    rules = []
    for _ in range(1500):
        tests = [test_of(attribute) for attribute in draw.sample(["n0", "n1", "n2", "n3", "t"], 4)]
        rules.append(" AND ".join(tests[: draw.randint(1, 4)]))
        rules.append(f"{tests[0]} AND ({tests[1]} OR {tests[2]})")
        rules.append(f"({tests[0]} AND {tests[1]}) OR ({tests[2]} AND flag)")
        if draw.random() < 0.1:
            rules.append(f"AT LEAST 2 OF ({', '.join(tests)})")
            rules.append(f"({tests[0]}) XOR ({tests[1]})")
            rules.append(f"({tests[0]} AND {tests[1]}) OR ({tests[2]} AND ({tests[3]} OR n0 > 9))")
    index = tamis.Index()
    index.add_many(list(range(len(rules))), rules)
    index.optimize()
    events = some_events(draw, count)
    expected = index.match_batch(events), index.count_batch(events)
    assert expected[0].num_rows > 100 * count
    on_device(index, kernels)
    assert index.count_batch(events).equals(expected[1])
    assert index.match_batch(events).equals(expected[0])
    # The values of a column that rules match with patterns are looked up one by one.
    index.add(len(rules), "t LIKE '%1_' AND n0 IN (1, 2, 3)")
    index.optimize()
    on_device(index, kernels)
    counted = index.count_batch(events)
    index.to_cpu()
    assert counted.equals(index.count_batch(events))
    assert index.stats().get("device_failure") is None


@pytest.mark.slow
def test_the_best_of_many_are_looked_for_among_those_of_highest_priority(faults: Faults) -> None:
    """Where these are enough; where they are not, among all."""
    draw = random.Random(31)
    count = 140_000
    index = tamis.Index()
    rules = [f"n{at % 4} >= {at // 4 % 20}" if at % 50 == 0 else f"t = 'w{at}'" for at in range(count)]
    priorities = [float(draw.randrange(1000)) for _ in range(count)]
    index.add_many(list(range(count)), rules, priorities=priorities)
    index.optimize()
    events = some_events(draw, 300)
    many = events.filter(pc.and_(pc.is_valid(events["n0"]), pc.greater(events["n0"], 10)))
    many = pa.concat_tables([many] * (300 // many.num_rows + 1))
    few = pa.table({"t": [f"w{at}" for at in range(1, 400)]})
    # A few that have not enough, among others that have: at the beginning, in between, at the end.
    pieces = [few.slice(0, 3), many.slice(0, 200), few.slice(5, 4), many, few.slice(90, 2)]
    mixed = pa.concat_tables(pieces, promote_options="default")

    def ask() -> list[object]:
        small = few.slice(0, 15), many.slice(0, 15), mixed.slice(0, 20)
        batches = (*small, many, few, many, *small, mixed, few, few, few, *small, mixed, mixed, many)
        found = [index.top_k_batch(batch, 5, score="priority").to_pydict() for batch in batches]
        return [*found, index.top_k_batch(many, 5, score="priority", min_score=998.0).to_pydict()]

    expected = ask()
    with_faults(index, faults)
    index.count_batch(many, threads=1)
    before = index.stats()["device_bytes"]
    assert ask() == expected
    assert index.stats()["device_bytes"] > before, "the best are there twice"
    best = max((priority, -id) for id, priority in enumerate(priorities) if id % 50 == 0)
    index.remove(-best[1])
    assert ask() != expected, "what is removed is removed there too"
    index.to_cpu()
    expected = ask()
    with_faults(index, faults)
    assert ask() == expected


def test_changes_reach_the_device(kernels: Path) -> None:
    draw = random.Random(11)
    index = build(draw, 500, 2)
    on_device(index, kernels)
    events = some_events(draw, 400)
    for step in range(6):
        for id in draw.sample(range(500), 20):
            if id in index:
                index.remove(id)
        for at in range(150):
            index.upsert(1000 * (step + 1) + at, expression(draw, 2), priority=draw.randrange(5))
        if step == 3:
            index.optimize()
        on = index.match_batch(events).to_pydict(), index.count_batch(events).to_pylist()
        assert index.device != "cpu"
        other = tamis.Index()
        held = dict(index.items())
        expressions = [subscription.expression for subscription in held.values()]
        other.add_many(
            list(held), expressions, expires=[subscription.expires for subscription in held.values()]
        )
        assert on == (other.match_batch(events).to_pydict(), other.count_batch(events).to_pylist())


def test_any_number_of_threads_gives_the_same(kernels: Path) -> None:
    draw = random.Random(5)
    index = build(draw, 400, 2)
    events = some_events(draw, 9000)
    expected = index.match_batch(events)
    on_device(index, kernels)
    for threads in (1, 3, 9):
        assert index.match_batch(events, threads=threads).equals(expected)


def test_too_little_memory_leaves_it_to_the_processor(kernels: Path) -> None:
    draw = random.Random(3)
    index = build(draw, 300, 2)
    events = some_events(draw, 600)
    expected = index.count_batch(events).to_pylist()
    on_device(index, kernels, memory=100_000)
    with pytest.warns(RuntimeWarning, match="100000 bytes of device memory.*the processor answers"):
        assert index.count_batch(events).to_pylist() == expected
    assert index.device == "cpu"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert index.count_batch(events).to_pylist() == expected
    assert "100000 bytes" in index.stats()["device_failure"]


@pytest.mark.thorough
def test_any_limit_of_memory_gives_the_same_answers(kernels: Path) -> None:
    draw = random.Random(8)
    index = build(draw, 600, 2)
    index.optimize()
    events = some_events(draw, 30_000)
    expected = index.count_batch(events), index.match_batch(events)
    left_to_the_processor = 0
    for memory in (0, 10**6, 2 * 10**6, 4 * 10**6, 8 * 10**6, 16 * 10**6, 32 * 10**6, 10**9):
        on_device(index, kernels, memory)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Counting needs less than listing: lanes grow, or fail to, while other threads wait for them.
            assert index.count_batch(events, threads=8).equals(expected[0])
            assert index.match_batch(events, threads=8).equals(expected[1])
        left_to_the_processor += index.device == "cpu"
        assert index.stats()["device_bytes"] <= memory
    assert 0 < left_to_the_processor < 8


def test_without_a_device_the_processor_answers() -> None:
    index = tamis.Index()
    index.add(1, "x > 1")
    if index.device == "cpu" and not Path("/dev/nvidia0").exists():
        with pytest.warns(RuntimeWarning, match="no CUDA driver was found.*the processor answers"):
            assert not index.to_gpu()
    assert index.count_batch([{"x": 2}]).to_pylist() == [1]
    with pytest.raises(ValueError, match="a number of bytes"):
        index.to_gpu(memory=-1)
    index.to_cpu()


def test_deep_alternatives_are_left_to_the_processor(kernels: Path) -> None:
    text = "n0 = 1"
    for at in range(60):
        text = f"(n1 > {at} AND (n2 < {at} OR ({text})))"
    index = tamis.Index()
    index.add(1, text)
    index.optimize()
    events = some_events(random.Random(2), 500)
    expected = index.count_batch(events).to_pylist()
    on_device(index, kernels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert index.count_batch(events).to_pylist() == expected


def test_a_forked_child_does_without_the_device(kernels: Path) -> None:
    index = tamis.Index()
    index.add(1, "n0 > 3")
    on_device(index, kernels)
    events = some_events(random.Random(1), 300)
    expected = index.count_batch(events).to_pylist()
    child = os.fork()
    if child == 0:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            is_right = index.count_batch(events).to_pylist() == expected and index.device == "cpu"
            del index
            gc.collect()  # what it held on the device is the parent's
        os._exit(0 if is_right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert index.count_batch(events).to_pylist() == expected


@pytest.mark.parametrize("kind", [OUT_OF_MEMORY, LOST])
@pytest.mark.parametrize("lasts", [True, False])
@pytest.mark.thorough
def test_whatever_fails_the_answer_is_right(faults: Faults, kind: int, lasts: bool) -> None:
    draw = random.Random(21)
    index = build(draw, 150, 2)
    events = some_events(draw, 600)

    def ask() -> list[object]:
        return [
            index.count_batch(events, threads=2).to_pylist(),
            index.match_batch(events, tags=["a"], threads=2).to_pydict(),
            index.top_k_batch(events, 3, score="priority", threads=1).to_pydict(),
            index.count_by_subscription(events, now=60).to_pydict(),
        ]

    expected = ask()
    with_faults(index, faults)
    before = sum(faults.operations)
    assert ask() == expected
    operations = sum(faults.operations) - before
    assert index.device != "cpu"
    for operation in {*range(0, operations, max(1, operations // 40)), *range(min(operations, 30))}:
        with_faults(index, faults)
        faults.at(operation, kind, lasts=lasts)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert ask() == expected, operation
        faults.at(None)
        told = [str(warning.message) for warning in caught if "processor answers" in str(warning.message)]
        if index.device == "cpu":
            assert len(told) == 1
            assert index.stats()["device_bytes"] == 0
        else:
            assert kind == OUT_OF_MEMORY, "a device that is lost is not used again"
            assert not told


def test_a_device_that_is_lost_while_threads_wait_for_it(faults: Faults) -> None:
    draw = random.Random(22)
    index = build(draw, 200, 2)
    events = some_events(draw, 40_000)
    expected = index.count_batch(events)
    for operation in (60, 150, 300):
        with_faults(index, faults)
        faults.at(operation, OUT_OF_MEMORY if operation == 150 else LOST)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert index.count_batch(events, threads=9).equals(expected)
        faults.at(None)


LOST_IN_MID_BATCH = """
import ctypes, random, sys, threading, time, warnings
sys.path.insert(0, sys.argv[1])
import pyarrow as pa
from gpu.test_device import build, some_events

PTX = b".version 7.0\\n.target sm_70\\n.address_size 64\\n.visible .entry lost() { trap; }\\0"
draw = random.Random(41)
index = build(draw, 3000, 2)
index.optimize()
events = pa.concat_tables([some_events(draw, 8192)] * 512)
expected = index.count_batch(events)
assert index.to_gpu()
index.count_batch(events.slice(0, 8192))
before = index.stats()["device_blocks"]
cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0


def lose():
    assert cuda.cuCtxPushCurrent_v2(context) == 0
    assert cuda.cuModuleLoadData(ctypes.byref(module), PTX) == 0
    assert cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"lost") == 0
    while index.stats()["device_blocks"] < before + 20:
        time.sleep(0.001)
    assert cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, None, None) == 0


loser = threading.Thread(target=lose)
loser.start()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert index.count_batch(events).equals(expected)
loser.join()
assert index.device == "cpu", "the batch was over before the device was lost"
blocks = index.stats()["device_blocks"] - before
assert 20 <= blocks < 1024, blocks
assert ["processor answers" in str(warning.message) for warning in caught] == [True]
assert index.count_batch(events.slice(0, 8192)).equals(expected.slice(0, 8192))
assert "the CUDA device failed" in index.stats()["device_failure"]
"""


@pytest.mark.skipif(os.environ.get("TAMIS_TEST_DEVICE") != "cuda", reason="needs a real device")
def test_a_real_device_that_is_lost_in_mid_batch() -> None:
    """Another kernel of the process traps: after that, every call of the driver fails."""
    subprocess.run([sys.executable, "-c", LOST_IN_MID_BATCH, str(ROOT / "tests")], check=True, cwd=ROOT)


def test_memory_that_is_short_for_a_moment_is_no_failure(faults: Faults) -> None:
    draw = random.Random(23)
    index = build(draw, 200, 2)
    events = some_events(draw, 40_000)
    expected = index.match_batch(events)
    with_faults(index, faults)
    index.count_batch(events, threads=1)
    faults.at(20, OUT_OF_MEMORY, lasts=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert index.match_batch(events, threads=4).equals(expected)
    assert index.device != "cpu"


def test_an_index_that_does_not_fit_is_run_in_parts(kernels: Path) -> None:
    draw = random.Random(24)
    index = tamis.Index()
    rules = [f"n0 = {at % 20} AND n1 >= {at // 20 % 20} AND n2 != {at // 400}" for at in range(8000)]
    index.add_many(list(range(8000)), rules, priorities=[float(at % 7) for at in range(8000)])
    index.optimize()
    index.remove(17)
    events = some_events(draw, 300)

    def ask() -> list[object]:
        return [
            index.count_batch(events).to_pylist(),
            index.match_batch(events).to_pydict(),
            index.top_k_batch(events, 3, score="priority").to_pydict(),
            index.count_by_subscription(events).to_pydict(),
        ]

    expected = ask()
    on_device(index, kernels)
    index.match_batch(events, threads=1)
    enough = index.stats()["device_bytes"]
    for share, parts in ((1.0, {1}), (0.7, {2, 4}), (0.5, {2, 4, 8})):
        on_device(index, kernels, memory=int(share * enough))
        assert ask() == expected
        stats = index.stats()
        assert stats["device_bytes"] <= share * enough
        assert stats["device_parts"] in parts
        assert stats["device_failure"] is None


def test_what_a_filter_keeps_is_not_copied_again(faults: Faults) -> None:
    """Neither because time goes by, nor because something else is added."""
    draw = random.Random(25)
    index = build(draw, 400, 1)
    index.optimize()
    index.remove(7)
    events = some_events(draw, 300)
    with_faults(index, faults)

    def uploads(**way: object) -> int:
        before = faults.uploads()
        index.count_batch(events, threads=1, **way)
        return faults.uploads() - before

    uploads(now=100)
    again = uploads(now=100)
    assert uploads(now=101) == again
    index.add("later" if isinstance(next(iter(index)), str) else 10_000, "n0 > 3")
    assert uploads(now=102) == again
    assert uploads(now=160) == again + 1, "some expired at 150"
    assert uploads(now=161, tags=["a"]) == again + 1
    assert uploads(now=101) == again, "filters that were used lately stay"
    index.remove(8)
    assert uploads(now=160) == again + 1


def test_versions_in_turn_are_not_copied_in_turn(faults: Faults) -> None:
    """Several readers of several versions: who holds a version finds its segments on the device."""
    draw = random.Random(26)
    index = build(draw, 300, 1)
    index.optimize()
    events = some_events(draw, 300)
    with_faults(index, faults)
    index.count_batch(events, threads=1)
    bytes_of_one = index.stats()["device_bytes"]
    for step in range(4):
        for at in range(200):
            index.add(1000 * (step + 1) + at, expression(draw, 1))
        index.optimize()
        index.count_batch(events, threads=1)
    # Segments that are gone leave nothing behind.
    assert index.stats()["device_bytes"] < 20 * bytes_of_one
    assert index.stats()["device_parts"] == len(index.stats()["segments"])


def test_bounded_answers_are_those_of_the_first_events(kernels: Path) -> None:
    draw = random.Random(27)
    index = build(draw, 500, 1)
    events = some_events(draw, 3000).to_batches()[0]
    everything = index.match_batch(events)
    on_device(index, kernels)
    for most in (1, 500, 20_000, 10**7):
        found, answered = ask_up_to(index, Query("all"), events, most, threads=1)
        assert answered >= 1
        assert found.num_rows <= most or answered == 1
        assert found.equals(everything.filter(pc.less(everything["event"], answered)))
    assert answered == events.num_rows


def test_many_matches_are_written_by_all_threads(kernels: Path) -> None:
    index = tamis.Index()
    index.add_many(list(range(1000)), [f"n{at % 4} >= {at % 20}" for at in range(1000)])
    index.optimize()
    events = some_events(random.Random(28), 3000)
    expected = {lists: index.match_batch(events, lists=lists, threads=1) for lists in (False, True)}
    assert expected[False].num_rows > 2**19
    on_device(index, kernels)
    for threads in (1, 2, 7):
        for lists in (False, True):
            assert index.match_batch(events, lists=lists, threads=threads).equals(expected[lists])


def test_memory_of_answers_outlives_a_table_of_many_chunks(kernels: Path) -> None:
    """Fault: each chunk is taken for an answer that does not need what is kept for the next ones."""
    index = tamis.Index()
    index.add_many(list(range(1000)), [f"n{at % 4} >= {at % 20}" for at in range(1000)])
    index.optimize()
    events = some_events(random.Random(29), 500)
    on_device(index, kernels)
    index.match_batch(events)
    gc.collect()
    kept = index.stats()["device_answer_bytes"]
    assert kept > 0
    chunks = pa.concat_tables([events.slice(at, 1) for at in range(40)])
    assert chunks["n0"].num_chunks == 40
    index.count_batch(chunks)
    assert index.stats()["device_answer_bytes"] == kept
    for _ in range(40):
        index.count_batch(events.slice(0, 1))
    assert index.stats()["device_answer_bytes"] == 0


@pytest.mark.parametrize("device", [False, True])
def test_counts_by_subscription(kernels: Path, device: bool) -> None:
    draw = random.Random(30)
    index = build(draw, 700, 2)
    events = some_events(draw, 5000)
    if device:
        on_device(index, kernels)
    for way in ({}, {"tags": ["a"]}, {"now": 60}):
        counted = index.count_by_subscription(events, **way)
        ids = index.match_batch(events, **way)["subscription"].combine_chunks()
        expected = sorted((each["values"], each["counts"]) for each in pc.value_counts(ids).to_pylist())
        assert list(zip(*counted.to_pydict().values(), strict=True)) == expected
    reader = events.to_reader(max_chunksize=1000)
    assert index.count_by_subscription(reader).equals(index.count_by_subscription(events))


def test_the_compiled_kernels_are_those_of_the_source() -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        from compile_kernels import TARGET, headed
    finally:
        sys.path.pop(0)
    ptx = TARGET.read_text()
    assert ptx == headed(ptx.partition("\n")[2]), "run tools/compile_kernels.py"
