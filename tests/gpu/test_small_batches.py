"""Batches of fewer events than are always worth a device: it answers them if all is prepared."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from gpu.devices import on_device
from tamis import Query
from tamis._matching import ask_up_to

RULES = 20_000
# Worth a device because there are that many rules, but not always.
SMALL = 150
LARGE = 1000


@pytest.fixture
def index() -> tamis.Index:
    """Every event satisfies four rules."""
    index = tamis.Index(optimize="manual")
    rules = [f"n{at % 4} = {at // 4}" for at in range(RULES)]
    index.add_many(list(range(RULES)), rules, tags=[["even"] if at % 2 == 0 else [] for at in range(RULES)])
    index.optimize()
    return index


def some_events(count: int, first: int = 0) -> pa.Table:
    draw = random.Random(count)
    values = range(first, first + RULES // 4)
    return pa.table({f"n{at}": [draw.choice(values) for _ in range(count)] for at in range(4)})


def blocks(index: tamis.Index, ask: Callable[[], Any]) -> int:
    """How many blocks the device answers when this is asked."""
    before = index.stats()["device_blocks"]
    ask()
    return int(index.stats()["device_blocks"] - before)


def test_a_small_batch_does_not_wait_for_the_plan(index: tamis.Index, kernels: Path) -> None:
    """Fault: the first two events wait until millions of rules are on the device."""
    events = some_events(SMALL)
    expected = index.match_batch(events)
    on_device(index, kernels)
    for on_the_device in (0, 1, 1):
        assert blocks(index, lambda: index.count_batch(events)) == on_the_device
        assert index.stats()["device_parts"] == on_the_device
    assert index.match_batch(events).equals(expected)
    assert index.stats()["device_failure"] is None


def test_a_small_batch_does_not_filter_all_rules(index: tamis.Index, kernels: Path) -> None:
    """Fault: each removal, and each new filter, makes the next two events look at every rule."""
    small, large = some_events(SMALL), some_events(LARGE)
    on_device(index, kernels)
    index.count_batch(large)
    assert blocks(index, lambda: index.count_batch(small)) == 1
    index.remove(3)
    assert blocks(index, lambda: index.count_batch(small)) == 0
    assert blocks(index, lambda: index.count_batch(large)) == 1
    assert blocks(index, lambda: index.count_batch(small)) == 1, "what is left is known"
    # As many events as a large batch has did without.
    assert blocks(index, lambda: index.count_batch(small, tags=["even"])) == 1
    assert blocks(index, lambda: index.count_batch(small, tags=["even"])) == 1
    assert blocks(index, lambda: index.count_batch(small, tags=["odd"])) == 0


def test_few_answered_events_are_left_to_the_processor(index: tamis.Index, kernels: Path) -> None:
    """Fault: a block is matched whole to answer fewer of its events than are always worth a device."""
    events = some_events(LARGE).to_batches()[0]
    everything = index.match_batch(events)
    on_device(index, kernels)

    def up_to(matches: int) -> int:
        answers = []
        count = blocks(
            index, lambda: answers.append(ask_up_to(index, Query("all"), events, matches, threads=1))
        )
        found, answered = answers[0]
        assert answered == matches // 4
        assert found.equals(everything.slice(0, matches))
        return count

    index.match_batch(events)
    assert up_to(4 * SMALL) == 0
    assert up_to(4 * 400) > 0
    nothing = some_events(SMALL, RULES)
    assert blocks(index, lambda: index.match_batch(nothing)) == 1
    assert up_to(4 * SMALL) == 0, "a small batch says little about others"
