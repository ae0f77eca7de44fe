"""Boxes with scores: every structure against a plain scan, through the public face."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis import UnsupportedExpressionError
from tamis.index import Match
from tamis.ranked import STRUCTURES, IntervalIndex

ATTRIBUTES = ("x", "y")
DYNAMIC = [name for name, is_dynamic in STRUCTURES.items() if is_dynamic]
STATIC = [name for name, is_dynamic in STRUCTURES.items() if not is_dynamic]

Box = tuple[dict[str, tuple[float, float]], float, dict[str, float]]

intervals = st.tuples(st.integers(0, 12), st.integers(0, 8)).map(lambda ends: (ends[0], ends[0] + ends[1]))
boxes = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from(ATTRIBUTES), intervals),
        st.integers(-2, 3).map(float),
        st.fixed_dictionaries(
            {name: st.integers(0, 4).map(lambda tenths: tenths / 10) for name in ATTRIBUTES}
        ),
    ),
    max_size=25,
)
events = st.dictionaries(st.sampled_from(ATTRIBUTES), st.integers(-2, 44).map(lambda halves: halves / 2))


def built(structure: str, given: list[Box]) -> IntervalIndex:
    if structure in DYNAMIC:
        index = IntervalIndex(ATTRIBUTES, structure=structure, branching=3)
        for id, (sides, priority, weights) in enumerate(given):
            index.add(id, sides, priority=priority, weights=weights)
        return index
    ends = {
        name: tuple([sides.get(name, (math.nan, math.nan))[end] for sides, _, _ in given] for end in (0, 1))
        for name in ATTRIBUTES
    }
    return IntervalIndex.from_columns(
        range(len(given)),
        ends,  # type: ignore[arg-type]
        priorities=[priority for _, priority, _ in given],
        weights={name: [weights[name] for _, _, weights in given] for name in ATTRIBUTES},
        structure=structure,
        branching=3,
    )


def scan(given: dict[int, Box], event: dict[str, float], relaxed: bool) -> list[Match]:
    def holds(sides: dict[str, tuple[float, float]], name: str) -> bool:
        return name in event and sides[name][0] <= event[name] <= sides[name][1]

    found = []
    for id, (sides, priority, weights) in given.items():
        held = [name for name in ATTRIBUTES if name in sides and holds(sides, name)]
        if relaxed and held:
            found.append((-sum(weights[name] for name in held), id))
        elif not relaxed and len(held) == len(sides):
            found.append((-priority, id))
    return [Match(id, -score + 0.0, rank) for rank, (score, id) in enumerate(sorted(found), 1)]


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("relaxed", [False, True])
@settings(max_examples=40)
@given(given=boxes, event=events)
def test_the_best_are_those_of_a_scan(
    structure: str, relaxed: bool, given: list[Box], event: dict[str, float]
) -> None:
    index = built(structure, given)
    expected = scan(dict(enumerate(given)), event, relaxed)
    for k in (1, 5, 20, 1_000):
        assert index.top_k(event, k, relaxed=relaxed) == expected[:k]
    assert list(index.iterate(event, relaxed=relaxed)) == expected
    index.check()


@pytest.mark.parametrize("structure", DYNAMIC)
@settings(max_examples=25)
@given(given=boxes, more=boxes, event=events)
def test_dynamic_structures_follow_changes(
    structure: str, given: list[Box], more: list[Box], event: dict[str, float]
) -> None:
    index = built(structure, given)
    held = dict(enumerate(given))
    index.check()  # builds both modes: from now on changes go into the structures
    for at, (sides, priority, weights) in enumerate(more):
        index.add(100 + at, sides, priority=priority, weights=weights)
        held[100 + at] = (sides, priority, weights)
        if at % 2:
            gone = sorted(held)[(7 * at) % len(held)]
            index.remove(gone)
            del held[gone]
        index.check()
    assert len(index) == len(held)
    for relaxed in (False, True):
        assert index.top_k(event, 1_000, relaxed=relaxed) == scan(held, event, relaxed)


@pytest.mark.parametrize("structure", STATIC)
def test_static_structures_refuse_changes(structure: str) -> None:
    index = IntervalIndex.from_columns([1], {"x": ([0], [1])}, structure=structure)
    with pytest.raises(
        tamis.ArgumentError, match=f'"{structure}" is built at once and takes no changes.*"ir"'
    ):
        index.add(2, {"x": (0, 1)})
    with pytest.raises(tamis.ArgumentError, match="built at once"):
        index.remove(1)
    assert [match.id for match in index.top_k({"x": 1})] == [1]


def test_infinite_ends_and_unconstrained_attributes() -> None:
    index = IntervalIndex(["x", "y"])
    index.add(1, {"x": (None, 3)})
    index.add(2, {"y": (3, None)})
    index.add(3, {})
    assert [match.id for match in index.top_k({"x": -1e300, "y": math.inf})] == [1, 2, 3]
    assert [match.id for match in index.top_k({"x": 9})] == [3]
    assert [match.id for match in index.top_k({})] == [3]
    assert index.top_k({}, relaxed=True) == []


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda index: index.add(1, {"x": (0, 1)}), tamis.DuplicateIdError, "subscription 1 already"),
        (lambda index: index.remove(9), tamis.UnknownIdError, "no subscription 9"),
        (lambda index: index.add(2, {"z": (0, 1)}), tamis.ArgumentError, "has `z`; the index has `x`"),
        (lambda index: index.add(2, {"x": (1, 0)}), tamis.ArgumentError, "low end that is not above"),
        (lambda index: index.add(2, {"x": (0, 1)}, weights={"x": -1}), tamis.ArgumentError, "not negative"),
        (lambda index: index.add(2, {"x": (0, 1)}, priority=math.inf), tamis.ArgumentError, "must be finite"),
        (lambda index: index.top_k({"x": "a"}), tamis.EventError, "must be a number"),
        (lambda index: index.top_k({"x": math.nan}), tamis.EventError, "not NaN"),
        (lambda index: index.top_k({"x": 1}, -1), tamis.ArgumentError, "k must be"),
        (lambda _: IntervalIndex(["x"], structure="b"), tamis.ArgumentError, 'one of "segment", .*"sopt-r"'),
        (lambda _: IntervalIndex(["x"], branching=1), tamis.ArgumentError, "at least 2"),
        (lambda _: IntervalIndex([]), tamis.ArgumentError, "at least one attribute"),
        (lambda _: IntervalIndex(["x", "x"]), tamis.ArgumentError, "`x` is given twice"),
        (
            lambda _: IntervalIndex.from_columns([1, 2], {"x": ([0], [1])}),
            tamis.ArgumentError,
            "as long as the 2 ids",
        ),
    ],
)
def test_bad_input_gets_a_clear_error(call: Any, error: type[Exception], message: str) -> None:
    index = IntervalIndex(["x"])
    index.add(1, {"x": (0, 1)})
    with pytest.raises(error, match=message):
        call(index)
    assert [match.id for match in index.top_k({"x": 1})] == [1]


def test_an_index_must_not_change_while_it_is_iterated_over() -> None:
    index = IntervalIndex.from_columns(range(40), {"x": (np.zeros(40), np.ones(40))})
    answers = index.iterate({"x": 1})
    assert next(answers).id == 0
    index.remove(3)
    with pytest.raises(RuntimeError, match="changed"):
        list(answers)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_the_algorithm_of_an_index_answers_like_the_production_index(structure: str) -> None:
    rng = np.random.default_rng(5)
    interval = tamis.Index(algorithm="interval", options={"structure": structure, "branching": 4})
    production = tamis.Index()
    for index in (interval, production):
        rng = np.random.default_rng(5)
        for id in range(300):
            names = [name for name in "xyz" if rng.random() < 0.6] or ["x"]
            lows = rng.integers(0, 50, len(names))
            text = " AND ".join(
                f"{name} BETWEEN {low} AND {low + rng.integers(0, 30)}"
                for name, low in zip(names, lows, strict=True)
            )
            weights = {name: float(rng.integers(0, 5)) / 4 for name in names}
            index.add(f"s{id}", text, priority=float(rng.integers(0, 6)), weights=weights)
            if id % 7 == 3:
                index.remove(f"s{id - 2}")
            if id % 11 == 5:
                index.set_priority(f"s{id}", 9.0)
    for _ in range(60):
        event = {name: float(rng.integers(0, 80)) for name in "xyz" if rng.random() < 0.9}
        assert interval.match(event) == production.match(event)
        for score in ("priority", "relaxed", "relevance"):
            for k in (1, 5, 20, 1_000):
                assert interval.top_k(event, k, score) == production.top_k(event, k, score)
        weighted = tamis.Event(event, weights={"x": 0.3, "y": 2.0})
        assert interval.top_k(weighted, 5, "relaxed") == production.top_k(weighted, 5, "relaxed")


def test_expressions_that_are_no_intervals_are_refused() -> None:
    index = tamis.Index(algorithm="interval")
    index.add("a", "x BETWEEN 1 AND 5 AND y > 2")
    for text in ("x = 1 OR y = 2", "x != 1", "name LIKE '%a'", "x IS NULL", "TRUE"):
        with pytest.raises(UnsupportedExpressionError, match="conjunctions of intervals only"):
            index.add("b", text)
    assert index.match({"x": 1, "y": 3}) == ["a"]


def test_ids_are_integers_and_names_that_look_misspelt_are_named() -> None:
    index = IntervalIndex(["price", "age"])
    index.add(np.int64(1), {"price": (0, 9)})
    for ask in (
        lambda: index.add("ad-1", {"price": (0, 9)}),  # type: ignore[arg-type]
        lambda: index.remove("ad-1"),  # type: ignore[arg-type]
        lambda: IntervalIndex.from_columns(["ad-1"], {"x": ([0], [1])}),
        lambda: IntervalIndex.from_columns([1.5], {"x": ([0], [1])}),
    ):
        with pytest.raises(tamis.IdError, match="64-bit integers as ids"):
            ask()
    assert [match.id for match in index.top_k({"price": 3, "colour": 1})] == [1]
    with pytest.raises(tamis.IdError, match="is larger"):
        IntervalIndex.from_columns(np.array([2**63 + 5], np.uint64), {"x": ([0], [1])})
    meant = "no attribute `prices`, and the event no `price`; did you mean `price`"
    with pytest.warns(tamis.UnknownAttributeWarning, match=meant):
        index.top_k({"prices": 3, "age": 1})
