"""One event on several threads: the same answers in the same order, whatever is asked."""

import random
import threading
from typing import Any

import pytest

from tamis import ArgumentError, Index, Interval, Query

NOW = 1_000_000
COUNT = 24_000


def expression(draw: random.Random) -> str:
    """Most of them are looked at for nearly every event, and about half of those match."""
    a, b = draw.randrange(100), draw.randrange(100)
    return draw.choice(
        [
            f"x > {a}",
            f"x > {a} AND y < {b}",
            f"x > {a} AND (y < {b} OR z = {a % 5})",
            f"(x < {a} AND y > {b}) OR (z = {b % 5} AND x > {b})",
            f"x > {a} XOR y > {b}",
            f"(x > {a})^0.5 OR (y < {b})^2",
            f"NOT (x = {a}) AND y BETWEEN {b} AND {b + 40}",
        ]
    )


@pytest.fixture(scope="module")
def index() -> Index:
    """Large enough for its events to be shared, with all that decides beside the expression."""
    draw = random.Random(7)
    index = Index(optimize="manual")
    # Every seventh has an expression of another one, so that units with several rows are met.
    expressions = [expression(draw) if at % 7 else "x > 3 AND y < 90" for at in range(COUNT)]
    index.add_many(
        range(COUNT),
        expressions,
        priorities=[draw.randrange(50) for _ in range(COUNT)],
        tags=[["even", "all"] if at % 2 == 0 else ["all"] for at in range(COUNT)],
        owners=[f"owner {at % 9}" for at in range(COUNT)],
        expires=[NOW if at % 11 == 0 else None for at in range(COUNT)],
    )
    index.optimize()
    for at in range(0, COUNT, 13):
        index.remove(at)
    for at in range(COUNT, COUNT + 40):
        index.add(at, expression(draw), tags=["even"], owner="late")
    return index


EVENTS: list[dict[str, Any]] = [
    {"x": 50, "y": 50, "z": 1},
    {"x": 99, "y": 0, "z": 4},
    {"x": 0, "y": 120},
    {"q": 1},
]
SELECTIONS: list[dict[str, Any]] = [{}, {"tags": ["even"]}, {"tags_all": ["all"], "tags_none": ["even"]}]
ASKED: list[dict[str, Any]] = [
    {"ask": "all"},
    {"ask": "count"},
    {"ask": "exists"},
    {"ask": "owners"},
    *(
        {"k": k, "score": score}
        for k in (1, 50)
        for score in ("priority", "relevance", "relaxed", "max(x, 2 * y)")
    ),
    {"k": 30_000, "score": "priority"},
]


@pytest.mark.parametrize("asked", ASKED, ids=str)
@pytest.mark.filterwarnings("ignore::tamis.UnknownAttributeWarning")
def test_answers_do_not_depend_on_threads(index: Index, asked: dict[str, Any]) -> None:
    for selection in SELECTIONS:
        query = Query(**asked, **selection, now=NOW - 1 if asked.get("ask") == "all" else NOW)
        for event in EVENTS:
            alone = index.ask(query, event)
            for threads in (2, 3, 16):
                assert index.ask(query, event, threads=threads) == alone, (threads, selection, event)


def test_interval_events_are_shared(index: Index) -> None:
    event = {"x": Interval(20, 30), "y": 10, "z": 2}
    alone = index.match(event, now=NOW)
    assert len(alone) > 1000
    assert index.match(event, now=NOW, threads=3) == alone
    assert index.top_k(event, 5, threads=2, now=NOW) == index.top_k(event, 5, now=NOW)


def test_methods_take_threads(index: Index) -> None:
    event = {"x": 50, "y": 50, "z": 1}
    matches = index.match(event)
    assert len(matches) > 1000
    assert index.match(event, threads=2) == matches
    assert index.count(event, threads=2) == len(matches)
    assert index.exists(event, threads=2) is True
    assert index.owners(event, threads=2) == index.owners(event)
    assert index.top_k(event, 20, threads=2) == index.top_k(event, 20)
    assert index.match('{"x": 50, "y": 50, "z": 1}', threads=2) == matches


def test_one_index_is_asked_from_many_threads(index: Index) -> None:
    expected = [index.match(event) for event in EVENTS]
    wrong: list[int] = []

    def ask(first: int) -> None:
        for turn in range(10):
            at = (first + turn) % len(EVENTS)
            if index.match(EVENTS[at], threads=1 + turn % 4) != expected[at]:
                wrong.append(at)

    askers = [threading.Thread(target=ask, args=(first,)) for first in range(4)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    assert not wrong


def test_small_indexes_and_algorithms_accept_threads() -> None:
    for algorithm in ("auto", "counting"):
        index = Index(algorithm=algorithm)
        assert index.match({"x": 1}, threads=8) == []
        index.add("a", "x > 1")
        assert index.match({"x": 2}, threads=8) == ["a"]
        assert index.count({"x": 2}, threads=10**12) == 1


@pytest.mark.parametrize("threads", [0, -1, -(2**40)])
def test_threads_must_be_positive(threads: int) -> None:
    index = Index()
    index.add("a", "x > 1")
    with pytest.raises(ArgumentError, match="threads must be 1 or more"):
        index.match({"x": 2}, threads=threads)
    with pytest.raises(ArgumentError, match="threads must be 1 or more"):
        index.top_k({"x": 2}, threads=threads)
