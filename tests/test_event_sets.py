"""Attributes of an event that are given by a predicate: what is true of some value that satisfies it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis

VALUES = (1, 2, 3, 4)
OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
# Every value that could tell two of these predicates apart: the operands, and a number beside each.
WITNESSES = sorted({value + step for value in VALUES for step in (-0.5, 0, 0.5)})


@st.composite
def predicates(draw: st.DrawFn) -> str:
    """A predicate on numbers without its attribute."""
    shape = draw(st.sampled_from(["compare", "in", "between"]))
    if shape == "compare":
        return f"{draw(st.sampled_from(OPERATORS))} {draw(st.sampled_from(VALUES))}"
    negation = draw(st.sampled_from(["", "NOT "]))
    if shape == "in":
        members = draw(st.lists(st.sampled_from(VALUES), min_size=1, max_size=3, unique=True))
        return f"{negation}IN ({', '.join(map(str, members))})"
    low, high = sorted(draw(st.lists(st.sampled_from(VALUES), min_size=2, max_size=2)))
    return f"{negation}BETWEEN {low} AND {high}"


def can_be_true(expression: str, event: str) -> bool:
    """Whether some value satisfies both predicates, by trying all that matter."""
    both = tamis.parse(f"(x {expression}) AND (x {event})")
    return any(both.evaluate({"x": value}) is True for value in WITNESSES)


@given(asked=predicates(), given_=predicates())
def test_a_predicate_can_be_true_if_some_value_satisfies_both(asked: str, given_: str) -> None:
    outcome = tamis.parse(f"x {asked}").evaluate({"x": tamis.Where(given_)})
    assert (outcome in (True, "either")) == can_be_true(asked, given_)
    negated = tamis.parse(f"NOT x {asked}").evaluate({"x": tamis.Where(given_)})
    false_too = any(
        tamis.parse(f"(NOT (x {asked})) AND (x {given_})").evaluate({"x": value}) is True
        for value in WITNESSES
    )
    assert (negated in (True, "either")) == false_too


@given(
    asked=st.lists(st.lists(predicates(), min_size=1, max_size=2), min_size=1, max_size=12),
    events=st.lists(predicates(), min_size=1, max_size=4),
)
def test_every_algorithm_agrees(asked: list[list[str]], events: list[str]) -> None:
    texts = [" AND ".join(f"x {predicate}" for predicate in row) for row in asked]
    expected = [
        [at for at, row in enumerate(asked) if all(can_be_true(predicate, event) for predicate in row)]
        for event in events
    ]
    for algorithm in tamis.ALGORITHMS:
        index = tamis.Index(algorithm=algorithm)
        try:
            index.add_many(range(len(texts)), texts)
        except tamis.UnsupportedExpressionError:
            continue
        found = [index.match({"x": tamis.Where(event)}) for event in events]
        assert found == expected, algorithm


def test_json_reads_back() -> None:
    event = tamis.Event({"x": tamis.Where("> 15"), "s": tamis.Where("NOT IN ('a', 'b')")})
    assert event.to_json() == '{"s":{"$where":"NOT IN (\'a\', \'b\')"},"x":{"$where":"> 15"}}'
    assert tamis.Event(event.to_json()) == event
    assert event["x"] == tamis.Where("> 15")
    assert repr(event["x"]) == "Where('> 15')"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("> 15 AND value < 3", "predicate without its attribute"),
        ("BETWEEN 3 AND 1", "no value satisfies it"),
        ("IS NOT NULL", "does not give a value"),
        ("LIKE 'a%'", "does not give a value"),
        ("", "predicate without its attribute"),
        ("^2", "predicate without its attribute"),
        ("-- a comment", "predicate without its attribute"),
        ("> 5 ^2", "predicate without its attribute"),
    ],
)
def test_what_gives_no_set_is_refused(text: str, message: str) -> None:
    with pytest.raises(tamis.ArgumentError, match=message):
        tamis.Where(text)


def test_errors_point_into_the_text_as_it_was_written() -> None:
    with pytest.raises(tamis.ArgumentError) as raised:
        tamis.Where("visits > 5")
    lines = str(raised.value).splitlines()
    assert lines[0].endswith("(line 1, column 1)")
    assert lines[1:] == ["visits > 5", "^", "hint: leave out visits: the event says which attribute it is"]


def test_plain_sets_are_plain_values() -> None:
    event: dict[str, Any] = {"x": tamis.Where("= 3"), "y": tamis.Where("BETWEEN 1 AND 2")}
    assert tamis.Event(event)["x"] == 3
    assert tamis.Event(event)["y"] == tamis.Interval(1, 2)


def test_the_approximate_meaning_is_an_option_of_be_star_tree() -> None:
    for overlap, expected in (("exact", []), ("approximate", ["s"])):
        index = tamis.Index(algorithm="be-star-tree", options={"overlap": overlap})
        index.add("s", "x IN (1, 9)")
        event = {"x": tamis.Where("IN (4, 5)")}
        assert index.match(event) == expected
        for score in ("priority", "relevance"):
            assert [match.id for match in index.top_k(event, score=score)] == expected
