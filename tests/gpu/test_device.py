"""Batches on a device: the kernels, compiled for this processor, against the processor's own way."""

import os
import random
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from tamis import _kernel

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "crates" / "tamis-gpu" / "src" / "kernels.cu"


@pytest.fixture(scope="session")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kernels as a library for this processor."""
    library = tmp_path_factory.mktemp("kernels") / "libkernels.so"
    compiler = next((found for name in ("c++", "g++", "clang++") if (found := shutil.which(name))), None)
    command = [compiler] if compiler else [sys.executable, "-m", "ziglang", "c++"]
    options = ["-O1", "-shared", "-fPIC", "-Wall", "-Werror", "-x", "c++", str(KERNELS), "-o", str(library)]
    subprocess.run([*command, *options], check=True)
    return library


def on_device(index: tamis.Index, library: Path, memory: int | None = None) -> None:
    """Let the index match batches with the kernels, or on a real device if one is to be tested."""
    real = os.environ.get("TAMIS_TEST_DEVICE") == "cuda"
    assert _kernel.use_device(index._kernel, 0, memory, None if real else library, True) is None


def literal(draw: random.Random) -> str:
    """A predicate, with every way of being indexed."""
    a, b = sorted((draw.randrange(20), draw.randrange(20)))
    return draw.choice(
        [
            f"n{draw.randrange(4)} = {a}",
            f"n{draw.randrange(4)} IN ({a}, {b})",
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
    found.append(index.top_k_batch(events, 2, score="priority", min_score=1.75).to_pydict())
    found.append(index.top_k_batch(events.slice(0, 300), 2, score="relevance").to_pydict())
    return found


@pytest.mark.parametrize("seed", range(6))
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
    assert stats["device_failure"] is None


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
        os._exit(0 if is_right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert index.count_batch(events).to_pylist() == expected


def test_the_compiled_kernels_are_those_of_the_source() -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        from compile_kernels import TARGET, fingerprint
    finally:
        sys.path.pop(0)
    assert TARGET.read_text().startswith(fingerprint()), "run tools/compile_kernels.py"
