"""Many threads and processes: every answer is that of a version that was current during the call."""

import itertools
import multiprocessing
import operator
import os
import pickle
import random
import threading
import time
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

import tamis
from seeds import first_of
from tamis import Index
from tamis.ranked import IntervalIndex

SECONDS = 1.5
SLOTS = 40

# Each fork comes at another moment of what the other threads do.
FORKS = pytest.mark.parametrize("forks", [10, pytest.param(40, marks=pytest.mark.slow)])


def in_threads(*tasks: Callable[[], None]) -> None:
    """Run tasks side by side; the first exception of any of them fails the test."""
    problems: list[BaseException] = []

    def guarded(task: Callable[[], None]) -> None:
        try:
            task()
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=guarded, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]


class Writer:
    """Changes its own slots at random and keeps every version of them.

    `versions[n]` is what its slots hold after n changes; `started` and `finished` count changes, so that a
    reader knows which versions were current while it asked.
    """

    def __init__(self, index: Index, number: int, until: float) -> None:
        self.index, self.number, self.until = index, number, until
        self.versions: list[dict[int, int]] = [{}]
        self.started = self.finished = 0

    def run(self) -> None:
        chance = random.Random(self.number)
        while time.monotonic() < self.until:
            slot, bound = self.number * SLOTS + chance.randrange(SLOTS), chance.randrange(10)
            version = dict(self.versions[-1])
            removes = slot in version and chance.random() < 0.4
            if removes:
                del version[slot]
            else:
                version[slot] = bound
            self.versions.append(version)
            self.started += 1
            if removes:
                self.index.remove(slot)
            else:
                self.index.upsert(slot, f"x >= {bound}")
            self.finished += 1


def expected(version: dict[int, int], x: int) -> list[int]:
    return sorted(slot for slot, bound in version.items() if x >= bound)


@pytest.mark.parametrize("algorithm", ["auto", "scan"])
def test_answers_are_those_of_a_current_version(algorithm: str) -> None:
    index = Index(algorithm=algorithm)
    until = time.monotonic() + SECONDS
    writers = [Writer(index, number, until) for number in range(2)]
    asked = 0

    def read(seed: int, ask: Callable[[int], list[int]]) -> None:
        nonlocal asked
        chance = random.Random(seed)
        while time.monotonic() < until:
            x = chance.randrange(10)
            first = [writer.finished for writer in writers]
            answer = ask(x)
            last = [writer.started for writer in writers]
            for writer, low, high in zip(writers, first, last, strict=True):
                own = [slot for slot in answer if slot // SLOTS == writer.number]
                current = writer.versions[low : high + 1]
                assert any(own == expected(version, x) for version in current), (own, low, high)
            asked += 1

    def by_batch(x: int) -> list[int]:
        ids: list[int] = index.match_batch(pa.table({"x": [x]})).column("subscription").to_pylist()
        return ids

    def optimize() -> None:
        while time.monotonic() < until:
            index.optimize()
            time.sleep(0.01)

    in_threads(
        *(writer.run for writer in writers),
        lambda: read(1, lambda x: index.match({"x": x})),
        lambda: read(2, lambda x: index.match(f'{{"x": {x}}}')),
        lambda: read(3, by_batch),
        optimize,
    )
    assert asked > 100
    assert all(writer.finished > 100 for writer in writers)
    last = {slot: bound for writer in writers for slot, bound in writer.versions[-1].items()}
    assert index.match({"x": 9}) == sorted(last)


@pytest.mark.parametrize("algorithm", ["auto", "scan"])
def test_rows_of_one_call_appear_together(algorithm: str) -> None:
    index, groups, size = Index(algorithm=algorithm), 60, 50

    def write() -> None:
        for group in range(groups):
            index.add_many(range(group * size, (group + 1) * size), ["x > 0"] * size)

    def read() -> None:
        seen = 0
        while seen < groups * size:
            count = index.count({"x": 1})
            assert count % size == 0
            assert count >= seen
            seen = count

    in_threads(write, read, read)


def test_what_is_added_during_optimize_is_merged_afterwards() -> None:
    index = Index()
    index.add_many(list(range(20_000)), [f"x > {n} AND y = {n % 50}" for n in range(20_000)])
    adding = threading.Event()

    def optimize() -> None:
        adding.wait()
        index.optimize()

    def add() -> None:
        for n in range(1_600):
            index.add(20_000 + n, f"x = {n}")
            adding.set()

    in_threads(optimize, add)
    patience = time.monotonic() + 60
    while len(index.stats()["segments"]) > 20 and time.monotonic() < patience:
        time.sleep(0.01)
    assert len(index.stats()["segments"]) <= 20
    assert index.count({"x": 5}) == 1


def test_other_threads_run_while_one_matches() -> None:
    """The interpreter lock is not held: a thread that counts in Python goes on during a long batch."""
    index = Index()
    index.add_many(range(3000), [f"x > {at} AND y < {at} OR z = {at}" for at in range(3000)])
    table = pa.table({name: [at % 3000 for at in range(20_000)] for name in "xyz"})
    steps, done = 0, threading.Event()

    def work() -> None:
        nonlocal steps
        while not done.is_set():
            steps += 1

    thread = threading.Thread(target=work)
    thread.start()
    try:
        before = steps
        index.count_batch(table, threads=1)
        during = steps - before
    finally:
        done.set()
        thread.join()
    assert during > 1000


@pytest.mark.parametrize("algorithm", ["auto", "scan"])
def test_finalizers_may_change_the_index(algorithm: str) -> None:
    """Python may run any code wherever it allocates; none of it may wait for a lock that its thread holds."""
    index = Index(algorithm=algorithm)
    index.add_many([f"s{at}" for at in range(2000)], ["TRUE"] * 2000)

    class Session:
        pass

    for at in range(2000):
        session, ring = Session(), []
        ring.append((ring, session))  # only the garbage collector ends it
        weakref.finalize(session, index.remove, f"s{at}")
        del session, ring
        index.match({})
    import gc

    gc.collect()
    assert len(index) == 0


# --- processes ------------------------------------------------------------------------------------


def child_is_well(index: Index) -> bool:
    """What a forked child does with the index of its parent."""
    count = index.count({"x": 5})
    index.add(-1, "x >= 0")
    index.add_many([-2, -3], ["x >= 0", "x < 0"])
    index.remove(-3)
    batch = index.count_batch(pa.table({"x": [5] * 600}), threads=2).to_pylist()
    if index.algorithm == "auto":
        index.optimize()
    index.stats()
    fresh = Index()
    fresh.add("a", "TRUE")
    return index.count({"x": 5}) == count + 2 and set(batch) == {count + 2} and fresh.match({}) == ["a"]


def forked(is_well: Callable[[], bool]) -> int:
    """The exit status of a forked child: 0 if all is well, 14 if it hung."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            import signal

            signal.signal(signal.SIGALRM, signal.SIG_DFL)  # a handler in Python would wait for what hangs
            signal.alarm(60)
            status = 0 if is_well() else 2
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(("algorithm", "size"), first_of([("auto", 200), ("auto", 2000), ("scan", 200)], 1))
def test_forks_while_others_read_and_write(algorithm: str, size: int) -> None:
    index = Index(algorithm=algorithm)
    index.add_many(range(size), ["x > 1"] * size)
    index.count_batch(pa.table({"x": [5] * 600}), threads=2)
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            index.upsert(random.randrange(size), "x > 1")

    def read() -> None:
        while not done.is_set():
            index.match({"x": random.randrange(10)})

    def fork() -> None:
        try:
            for _ in range(10):
                assert forked(lambda: child_is_well(index)) == 0
        finally:
            done.set()

    in_threads(write, read, fork)
    assert index.count({"x": 5}) == size


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::tamis.ValueWarning")
@FORKS
@pytest.mark.thorough
def test_forks_while_others_warn_of_values(forks: int) -> None:
    """A warning takes a lock with the interpreter in hand, which whoever forks waits for."""
    done = threading.Event()

    def warn() -> None:
        while not done.is_set():
            index = Index()
            index.add(1, "x > 1 AND y = 'b'")
            index.match({"x": "text", "y": 3})
            index.match_batch([{"x": "text"}] * 20)

    def fork() -> None:
        index = Index()
        index.add(1, "x > 1")
        try:
            for _ in range(forks):
                assert forked(lambda: child_is_well(index)) == 0
        finally:
            done.set()

    in_threads(warn, warn, fork)


def forks_while(work: Callable[[], object], is_well: Callable[[], bool], times: int) -> None:
    """Two threads do some work again and again, and a third forks."""
    done = threading.Event()

    def repeat() -> None:
        while not done.is_set():
            work()

    def fork() -> None:
        try:
            for _ in range(times):
                assert forked(is_well) == 0
        finally:
            done.set()

    in_threads(repeat, repeat, fork)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forks_while_insertions_wait_for_a_segment() -> None:
    """Without events, a thread makes segments of what was inserted; a child does not have it."""

    def is_well(index: Index) -> bool:
        before = index.count({"x": 3})
        for n in range(700, 1_400):
            index.add(n, f"x = {n % 7}")
        index.remove(3)
        index.replace(10, "x = 4")
        copy = pickle.loads(pickle.dumps(index))
        batch = index.match_batch([{"x": 3}] * 500).num_rows
        return (before, index.count({"x": 3}), batch, copy.count({"x": 3})) == (100, 198, 500 * 198, 198)

    for pause in (0, 0.001, 0.06):
        index = Index()
        for n in range(700):
            index.add(n, f"x = {n % 7}")
        time.sleep(pause)
        assert forked(partial(is_well, index)) == 0
        assert is_well(index)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@FORKS
@pytest.mark.thorough
def test_forks_while_others_push(forks: int) -> None:
    flow = tamis.Flow()
    flow.stream("s")
    flow.add("many", "count(*) OVER (PARTITION BY x ROWS 5) >= 3", on="s")
    events = pa.table({"x": [value % 7 for value in range(500)]})

    def is_well() -> bool:
        return len(flow) == 1 and len(flow.push_batch("s", events)) > 0

    forks_while(lambda: flow.push_batch("s", events), is_well, forks)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@FORKS
@pytest.mark.thorough
def test_forks_while_others_ask_a_new_inner_index(forks: int) -> None:
    """The first question to the index of a quantifier prepares it, with the interpreter in hand."""
    event = {"items": [{"name": "a long name"}, {"name": "another"}]}

    def ask() -> None:
        index = Index()
        index.add(1, "exists(items, i -> i.name LIKE '%long%' OR i.name LIKE '%short%')")
        assert index.match(event) == [1]
        assert index.match(tamis.Event(event)) == [1]

    index = Index()
    index.add(1, "x > 1")
    forks_while(ask, lambda: child_is_well(index), forks)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.thorough
def test_forks_while_another_thread_asks_first() -> None:
    """The first event prepares the table of Booleans, for milliseconds: some of the forks come then."""
    rules = [f"b{number} = TRUE" for number in range(30_000)]
    event = {"b7": True}
    for milliseconds in range(6):
        index = Index()
        index.add_many(range(len(rules)), rules)
        asking = threading.Thread(target=index.match_batch, args=([event],))
        asking.start()
        time.sleep(milliseconds / 1_000)
        assert forked(lambda index=index: index.match(event) == [7]) == 0
        asking.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@FORKS
@pytest.mark.thorough
def test_forks_while_others_ask_for_the_best_interval(forks: int) -> None:
    intervals = IntervalIndex(["x"])
    ids = itertools.count(1)

    def change() -> None:
        id = next(ids)
        intervals.add(id, {"x": (0, 10)}, priority=id)
        assert intervals.top_k({"x": 5})
        intervals.remove(id)

    def is_well() -> bool:
        intervals.add(0, {"x": (0, 10)})
        return len(intervals) > 0 and len(intervals.top_k({"x": 5})) > 0

    forks_while(change, is_well, forks)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_two_threads_fork_at_once() -> None:
    indexes = [Index() for _ in range(5)]
    for index in indexes:
        index.add(1, "x > 1")

    def fork() -> None:
        for _ in range(5):
            assert forked(lambda: child_is_well(indexes[0])) == 0

    in_threads(fork, fork)


def test_spawned_processes_get_a_copy() -> None:
    index = Index()
    index.add("a", "x > 1")
    ask: Any = operator.methodcaller("match", {"x": 2})
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(ask, (index,)) == ["a"]


def test_errors_cross_processes() -> None:
    with (
        multiprocessing.get_context("spawn").Pool(1) as pool,
        pytest.raises(tamis.ExpressionError) as caught,
    ):
        pool.apply(tamis.parse, ("x >",))
    assert caught.value.column == 4
