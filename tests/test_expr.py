"""Expressions: three ways to write one, and the truth that the oracle says it has."""

import functools
import pickle
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import strategies
import tamis
from oracle import EITHER, FALSE, TRUE, UNDEFINED, Interval, Node, Truth, evaluate
from tamis import Expression, ExpressionError, col, parse
from writer import to_builder, to_text

SHOWN = {TRUE: True, FALSE: False, UNDEFINED: None, EITHER: "either"}


def for_kernel(event: dict[str, Any]) -> dict[str, Any]:
    """The oracle's event as the kernel takes it."""
    swap = {Interval: lambda interval: tamis.Interval(interval.low, interval.high), dict: for_kernel}
    return {name: swap.get(type(value), lambda same: same)(value) for name, value in event.items()}


@pytest.fixture(scope="module", autouse=True)
def drawn() -> None:
    """Draw the deck before a test draws."""
    strategies.deck()


def check(node: Node, expression: Expression, event: dict[str, Any]) -> None:
    """The expression has the truth that the oracle sees in the node, for the event and for the deck."""
    for each in (event, *strategies.deck()):
        assert expression.evaluate(for_kernel(each)) == SHOWN[evaluate(node, each)], each


class TestMeaning:
    """What is written means what the oracle says."""

    @given(strategies.expressions(), strategies.events(intervals=True))
    def test_text_agrees_with_the_oracle(self, node: Node, event: dict[str, Any]) -> None:
        check(node, parse(to_text(node)), event)

    @given(strategies.expressions(), strategies.events(intervals=True))
    def test_builder_agrees_with_the_oracle(self, node: Node, event: dict[str, Any]) -> None:
        check(node, to_builder(node), event)

    @given(strategies.predicates(), strategies.events(intervals=True))
    def test_single_predicates_agree_with_the_oracle(self, node: Node, event: dict[str, Any]) -> None:
        check(node, to_builder(node), event)

    @given(strategies.expressions(), strategies.events(intervals=True))
    def test_json_events_mean_the_same(self, node: Node, event: dict[str, Any]) -> None:
        text = tamis.Event(for_kernel(event)).to_json()
        for given_as in (text, text.encode(), tamis.Event(text)):
            assert to_builder(node).evaluate(given_as) == SHOWN[evaluate(node, event)]

    @pytest.mark.thorough
    def test_the_deck_reaches_every_truth_of_every_operator(self) -> None:
        seen: dict[str, set[Truth]] = {}
        for node in strategies.collect(strategies.predicates(), 500):
            outcomes = seen.setdefault(node.operator, set())
            outcomes.update(evaluate(node, event) for event in strategies.deck())
        for operator, outcomes in seen.items():
            assert {TRUE, FALSE} <= outcomes, operator
            assert UNDEFINED in outcomes or operator == "IS NULL", operator
        names = {name for names in strategies.OPERATORS.values() for name in names}
        assert set(seen) == names


class TestRoundTrips:
    """Text, Python and JSON print back to each other."""

    @given(strategies.expressions())
    def test_text(self, node: Node) -> None:
        expression = parse(to_text(node))
        assert parse(str(expression)) == expression
        assert str(parse(str(expression))) == str(expression)

    @given(strategies.expressions())
    def test_json(self, node: Node) -> None:
        expression = parse(to_text(node))
        assert Expression.from_json(expression.to_json()) == expression

    @given(strategies.predicates())
    def test_builder_writes_the_same_predicate_as_text(self, node: Node) -> None:
        assert to_builder(node).evaluate({}) is parse(to_text(node)).evaluate({})
        assert parse(str(to_builder(node))) == to_builder(node)

    @given(strategies.expressions())
    def test_pickle_repr_and_hash(self, node: Node) -> None:
        expression = to_builder(node)
        copy = pickle.loads(pickle.dumps(expression))
        assert copy == expression
        assert hash(copy) == hash(expression)
        assert eval(repr(expression), {"tamis": tamis}) == expression

    def test_chains_are_flat_as_in_text(self) -> None:
        a, b, c = col("a") > 1, col("b") > 1, col("c") > 1
        assert a & b & c == parse("a > 1 AND b > 1 AND c > 1")
        assert a | b | c == parse("a > 1 OR b > 1 OR c > 1")
        assert a ^ b ^ c == parse("a > 1 XOR b > 1 XOR c > 1")
        assert a.xnor(b).xnor(c) == parse("a > 1 XNOR b > 1 XNOR c > 1")
        assert (a & b) | ~c == parse("a > 1 AND b > 1 OR NOT c > 1")

    def test_expressions_are_values(self) -> None:
        assert {col("a") > 1: "x"}[parse("a > 1")] == "x"
        assert (col("a") > 1) != (col("a") > 2)
        assert (col("a") > 1) != "a > 1"
        with pytest.raises(AttributeError):
            (col("a") > 1).attributes = []  # type: ignore[misc]


class TestBuilder:
    """`col` has the names that PySpark and Polars users expect."""

    @pytest.mark.parametrize(
        ("built", "text"),
        [
            (col("a") == 1, "a = 1"),
            (col("a") != 1, "a != 1"),
            (col("a") > 1, "a > 1"),
            (col("a") <= 1.5, "a <= 1.5"),
            (col("a").between(1, 2), "a BETWEEN 1 AND 2"),
            (col("a").is_between(1, 2), "a BETWEEN 1 AND 2"),
            (col("a").between(None, 2), "a >= NULL AND a <= 2"),
            (col("a").isin(1, 2), "a IN (1, 2)"),
            (col("a").isin([2, 1, 2]), "a IN (1, 2)"),
            (col("a").is_in({1, 2}), "a IN (1, 2)"),
            (col("a").isin(x for x in (1, 2)), "a IN (1, 2)"),
            (~col("a").isin("x"), "NOT a IN ('x')"),
            (col("a").isNull(), "a IS NULL"),
            (col("a").isNotNull(), "a IS NOT NULL"),
            (col("a").eqNullSafe(1), "a <=> 1"),
            (col("a").like("x%"), "a LIKE 'x%'"),
            (col("a").ilike("x%"), "a ILIKE 'x%'"),
            (col("a").rlike("x+"), "a RLIKE 'x+'"),
            (col("a").startswith("x"), "startswith(a, 'x')"),
            (col("a").endswith("x"), "endswith(a, 'x')"),
            (col("a").contains("x"), "contains(a, 'x')"),
            (col("a").array_contains(1), "array_contains(a, 1)"),
            (col("a").arrays_overlap([1, 2]), "arrays_overlap(a, ARRAY(1, 2))"),
            (~col("flag"), "NOT flag"),
            (col("flag") & col("other"), "flag AND other"),
            ((col("a") > 1) & col("flag"), "a > 1 AND flag"),
            (col("a")["b"] == True, "a.b = TRUE"),  # noqa: E712
            (col("a.b") == "it's", r"a.b = 'it\'s'"),
            (col("odd name") == 1, "`odd name` = 1"),
            ((col("a") > 1).boost(0.4), "(a > 1)^0.4"),
            (col("t") > datetime(2026, 1, 31, 12), "t > TIMESTAMP '2026-01-31 12:00:00'"),
            (col("t") > datetime(2026, 1, 31, 12, tzinfo=UTC), "t > TIMESTAMP '2026-01-31 12:00:00'"),
            (col("t") > date(2026, 1, 31), "t > TIMESTAMP '2026-01-31 00:00:00'"),
            (col("a") == np.int32(7), "a = 7"),
            (col("a") == np.float32(0.5), "a = 0.5"),
            (col("a") == np.bool_(True), "a = TRUE"),
            (col("a") == np.str_("x"), "a = 'x'"),
            (col("a").isin(np.array([1, 2])), "a IN (1, 2)"),
            (col("t") == np.datetime64("2026-01-31T12:00:00", "ns"), "t = TIMESTAMP '2026-01-31 12:00:00'"),
        ],
        ids=str,
    )
    def test_builds_what_the_text_says(self, built: Expression, text: str) -> None:
        assert built == parse(text)

    def test_values_that_are_refused(self) -> None:
        for value in [2**63, -(2**63) - 1, b"bytes", object(), 1j, "\ud800", [1, 2], {"a": 1}]:
            with pytest.raises(ExpressionError):
                col("a") == value  # noqa: B015
        with pytest.raises(ExpressionError, match="64 bits"):
            col("a") > 2**63  # noqa: B015
        with pytest.raises(ExpressionError):
            col("a").isin(1, "x")
        with pytest.raises(ExpressionError):
            col("a").rlike("(")

    def test_a_column_where_only_values_go_is_refused_with_a_hint(self) -> None:
        for attempt in [
            lambda: col("a").isin(col("b")),
            lambda: col("a").like(col("b")),
            lambda: col("a") > (col("b") > 1),
        ]:
            with pytest.raises(ExpressionError) as caught:
                attempt()
            assert caught.value.hint

    def test_python_logic_is_refused_with_a_hint(self) -> None:
        a, b = col("a") > 1, col("b") > 1
        for attempt in [
            lambda: a and b,
            lambda: a or b,
            lambda: not a,
            lambda: 1 < col("a") < 3,
            lambda: bool(col("a")),
        ]:
            with pytest.raises(TypeError, match="&"):
                attempt()

    def test_forgotten_parentheses_are_explained(self) -> None:
        for attempt in [
            lambda: col("a") > 1 & col("b") > 1,  # type: ignore[operator]
            lambda: col("a") > 1 | col("b"),  # type: ignore[operator]
            lambda: 1 ^ col("b"),  # type: ignore[operator]
            lambda: True & (col("b") > 1),  # type: ignore[operator]
            lambda: "a" | (col("b") > 1),  # type: ignore[operator]
            lambda: 1 ^ (col("b") > 1),  # type: ignore[operator]
            lambda: (col("a") > 1) & 1,  # type: ignore[operator]
        ]:
            with pytest.raises(TypeError, match=r"put each comparison .* in parentheses"):
                attempt()

    def test_python_tests_are_explained(self) -> None:
        with pytest.raises(TypeError, match="between"):
            1 < col("a") < 3  # noqa: B015
        with pytest.raises(TypeError, match=r"col\('a'\)\.isin\("):
            "x" in col("a")  # noqa: B015

    def test_weights_are_finite_and_not_negative(self) -> None:
        for weight in [-1.0, float("nan"), float("inf")]:
            with pytest.raises(ExpressionError):
                (col("a") > 1).boost(weight)
        with pytest.raises(ExpressionError):
            ((col("a") > 1) & (col("b") > 1)).boost(1.0)


class TestInspection:
    def test_attributes_and_predicates(self) -> None:
        expression = parse("b > 1 AND (a.c = 2 OR NOT b > 1) XOR TRUE")
        assert expression.attributes == ["a.c", "b"]
        assert expression.predicates == 3

    def test_unknown_dialects_are_refused(self) -> None:
        with pytest.raises(tamis.ArgumentError, match="spark"):
            parse("a > 1").to_sql("oracle")  # type: ignore[arg-type]


class TestErrors:
    def test_places_count_lines_and_characters(self) -> None:
        with pytest.raises(ExpressionError) as caught:
            parse("é = 1 AND\n  b >")
        error = caught.value
        assert (error.line, error.column) == (2, 6)
        assert "^" in str(error)
        assert pickle.loads(pickle.dumps(error)).line == 2

    def test_deep_nests_and_long_texts_are_refused_not_fatal(self) -> None:
        for text in [
            "(" * 10_000 + "a" + ")" * 10_000,
            "NOT " * 1_000_000 + "a",
            "a = '" + "x" * 100_000_000 + "'",
        ]:
            with pytest.raises(ExpressionError):
                parse(text)
        with pytest.raises(ExpressionError, match="deep"):
            functools.reduce(lambda inner, _: ~inner, range(100_000), col("a") > 1)
