"""The oracle itself, against truths that a person can check."""

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from oracle import (
    EITHER,
    FALSE,
    TRUE,
    UNDEFINED,
    Connective,
    Constant,
    Interval,
    Not,
    Predicate,
    Truth,
    Weights,
    evaluate,
    relaxed,
    relevance,
)

T, F, U = Constant(True), Constant(False), Constant(None)


def truth_of(name: str, value: Any, *operands: Any, negated: bool = False) -> Truth:
    return evaluate(Predicate("x", name, operands, negated), {} if value is None else {"x": value})


@pytest.mark.parametrize(
    ("name", "left", "right", "expected"),
    [
        ("AND", U, F, FALSE),
        ("AND", U, T, UNDEFINED),
        ("OR", U, T, TRUE),
        ("OR", U, F, UNDEFINED),
        ("XOR", T, F, TRUE),
        ("XOR", T, T, FALSE),
        ("XOR", U, T, UNDEFINED),
        ("XNOR", T, T, TRUE),
        ("XNOR", F, U, UNDEFINED),
    ],
)
def test_connectives_follow_kleene(name: str, left: Constant, right: Constant, expected: Truth) -> None:
    assert evaluate(Connective(name, (left, right)), {}) == expected
    assert evaluate(Connective(name, (right, left)), {}) == expected


def test_not_keeps_undefined() -> None:
    assert evaluate(Not(U), {}) == UNDEFINED
    assert evaluate(Not(T), {}) == FALSE


def test_xor_and_xnor_fold_from_the_left() -> None:
    assert evaluate(Connective("XOR", (T, T, T)), {}) == TRUE
    assert evaluate(Connective("XNOR", (F, T, F)), {}) == TRUE


def test_absent_and_null_are_the_same() -> None:
    equal = Predicate("x", "=", (1,))
    assert evaluate(equal, {}) == evaluate(equal, {"x": None}) == UNDEFINED
    assert truth_of("IS NULL", None) == TRUE
    assert truth_of("<=>", None, None) == TRUE
    assert truth_of("<=>", None, 1) == FALSE
    assert truth_of("<=>", 1, None) == FALSE


def test_numbers_compare_by_exact_value() -> None:
    assert truth_of("=", 2**53 + 1, float(2**53)) == FALSE
    assert truth_of("=", 7, 7.0) == TRUE
    assert truth_of("=", -0.0, 0) == TRUE
    assert truth_of("<", 2**63 - 1, float(2**63)) == TRUE


def test_nan_equals_itself_and_is_above_all() -> None:
    assert truth_of("=", math.nan, math.nan) == TRUE
    assert truth_of(">", math.nan, math.inf) == TRUE
    assert truth_of("IN", math.nan, 1.0, math.nan) == TRUE
    assert truth_of("BETWEEN", math.nan, 0.0, math.inf) == FALSE


def test_other_types_are_undefined() -> None:
    for value in ["1", True, [1], {"y": 1}, datetime(2026, 1, 1, tzinfo=UTC)]:
        assert truth_of("=", value, 1) == UNDEFINED
        assert truth_of("IN", value, 1, 2, negated=True) == UNDEFINED
    assert truth_of("truth", 1) == UNDEFINED
    assert truth_of("LIKE", 1, "1") == UNDEFINED
    assert truth_of("array_contains", 1, 1) == UNDEFINED


def test_sets_with_null_and_empty_sets() -> None:
    assert truth_of("IN", 1, 1, None) == TRUE
    assert truth_of("IN", 2, 1, None) == UNDEFINED
    assert truth_of("IN", 2) == FALSE
    assert truth_of("IN", None) == UNDEFINED
    assert truth_of("IN", 2, negated=True) == TRUE


def test_arrays_with_null() -> None:
    assert truth_of("array_contains", [1, None], 1) == TRUE
    assert truth_of("array_contains", [1, None], 2) == UNDEFINED
    assert truth_of("array_contains", [], 2) == FALSE
    assert truth_of("arrays_overlap", [1, 2], 2, 3) == TRUE
    assert truth_of("arrays_overlap", [1], 2, None) == UNDEFINED
    assert truth_of("arrays_overlap", [], None) == FALSE


def test_patterns() -> None:
    assert truth_of("LIKE", "a%b", r"a\%b") == TRUE
    assert truth_of("LIKE", "axb", r"a\%b") == FALSE
    assert truth_of("LIKE", "a\nb", "a_b") == TRUE
    assert truth_of("LIKE", "ab", "%") == TRUE
    assert truth_of("LIKE", "AB", "a%") == FALSE
    assert truth_of("ILIKE", "ÉA", "é_") == TRUE
    assert truth_of("RLIKE", "xab", "a[bc]") == TRUE
    assert truth_of("startswith", "abc", "ab") == TRUE
    assert truth_of("endswith", "abc", "bc") == TRUE
    assert truth_of("contains", "abc", "z") == FALSE


def test_nested_records() -> None:
    city = Predicate("address.city", "=", ("Geneva",))
    assert evaluate(city, {"address": {"city": "Geneva"}}) == TRUE
    assert evaluate(city, {"address.city": "Geneva"}) == TRUE
    assert evaluate(city, {"address": "Geneva"}) == UNDEFINED
    assert evaluate(Predicate("address", "IS NULL", negated=True), {"address": {}}) == TRUE


def test_intervals_set_both_bits() -> None:
    hours = Interval(20, 30)
    assert truth_of(">", hours, 10) == TRUE
    assert truth_of(">", hours, 25) == EITHER
    assert truth_of(">", hours, 30) == FALSE
    assert truth_of("=", hours, 20.5) == EITHER
    assert truth_of("IN", hours, 1, 2) == FALSE
    assert truth_of("IN", hours, 25, None) == Truth(True, False)
    assert truth_of("IN", hours, 1, None) == UNDEFINED
    assert truth_of("BETWEEN", hours, 20, 30) == TRUE
    assert truth_of("BETWEEN", hours, 28, 22) == FALSE
    assert truth_of("IS NULL", hours) == FALSE
    assert truth_of("=", hours, "a") == UNDEFINED


def test_no_timestamp_lies_between_neighbours() -> None:
    first = datetime(2026, 1, 1, tzinfo=UTC)
    second = first + timedelta(microseconds=1)
    assert truth_of("IN", Interval(first, second), first, second) == TRUE
    assert truth_of("IN", Interval(0, 1), 0, 1) == EITHER


def flag(name: str, boost: float | None = None) -> Predicate:
    return Predicate(name, "truth", (), False, boost)


SEEN = {"t": True, "u": True, "f": False}


@pytest.mark.parametrize(
    ("node", "relevant", "relaxed_score"),
    [
        (Connective("AND", (flag("t", 2.0), flag("u"))), 3.0, 3.0),
        (Connective("AND", (flag("t", 2.0), flag("f"))), None, 2.0),
        (Connective("OR", (flag("t", 2.0), flag("f", 9.0), flag("t", 2.0))), 4.0, 2.0),
        (Not(Connective("AND", (flag("t", 2.0), flag("f", 3.0)))), 3.0, 3.0),
        (Connective("XOR", (flag("t", 2.0), flag("f", 3.0))), 5.0, 5.0),
        (Connective("XOR", (flag("t"), flag("u"))), None, 2.0),
        (Connective("XNOR", (flag("t"), flag("u"))), 2.0, 2.0),
        (Connective("XOR", (flag("t"), flag("u"), flag("u"))), 3.0, 2.0),
        (flag("absent"), None, None),
        (Constant(True), 0.0, None),
    ],
)
def test_scores(node: Any, relevant: float | None, relaxed_score: float | None) -> None:
    assert relevance(node, SEEN, Weights()) == relevant
    assert relaxed(node, SEEN, Weights()) == relaxed_score


def test_boosts_come_before_weights_and_events_multiply() -> None:
    both = Connective("AND", (flag("t", 2.0), flag("u")))
    assert relevance(both, SEEN, Weights({"t": 9.0, "u": 3.0}, {"t": 0.5, "u": 0.25})) == 1.75
    only_u = Weights(dimensions=frozenset(["u"]))
    assert (relevance(both, SEEN, only_u), relaxed(flag("t"), SEEN, only_u)) == (1.0, None)
