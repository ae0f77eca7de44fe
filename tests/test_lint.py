"""Slips in rules that are well formed."""

import json

import pytest

import tamis
from tamis.lint import example, lint


@pytest.mark.parametrize(
    ("rules", "found"),
    [
        (["x > 5 AND x < 3"], [(0, "never true")]),
        (["x IS NULL OR x IS NOT NULL"], [(0, "always true")]),
        (["x = 1 OR x != 1"], []),  # not where x is absent
        (["x > 1", "x>1"], [(1, "repeated")]),
        (["x > 1", "x > 2"], [(1, "covered")]),
        (["x > 1 AND y = 2", "x > 1"], []),  # other attributes: not compared
        ([r"path = 'C:\dir'"], [(0, "dropped backslash")]),
        ([r"path = 'C:\\dir' AND p = r'C:\dir' AND s LIKE '50\%' AND t = 'a\n'"], []),
        (["NOT (x = 1 AND y = 2)"], [(0, "absent under NOT"), (0, "absent under NOT")]),
        (["x NOT IN (1, 2)"], [(0, "absent under NOT")]),
        (["x IS NULL OR x NOT IN (1, 2)"], []),
        (["(x = 1) IS NOT TRUE"], []),
        (["x >", "x > 1"], []),
        (["AT LEAST 2 OF (x > 5, x < 3, y = 1) AND y = 2"], [(0, "never true")]),
        (["AT LEAST 2 OF (x IS NULL, x IS NOT NULL, TRUE)"], [(0, "always true")]),
        (["NOT AT LEAST 2 OF (x = 1, y = 2)"], [(0, "absent under NOT"), (0, "absent under NOT")]),
        (["exists(xs, x -> x > 5 AND x < 3)"], [(0, "never true")]),
        (["exists(xs, x -> x > 5 AND x < 3) OR y = 1"], [(0, "never true inside")]),
        (["exists(xs, x -> exists(x.ys, y -> y > 5 AND y < 3)) AND z = 1"], [(0, "never true")]),
        (["(exists(xs, x -> x > 5 AND x < 3)) IS NOT TRUE"], [(0, "never true inside")]),
        (["forall(xs, x -> x > 5 AND x < 3)"], []),  # true of an empty array
        (
            [
                "exists(xs, x -> x.a = 'x' AND lower(x.b) > 'x')",
                "exists(xs, y -> y.a = 'x' AND lower(y.b) > 'x')",
            ],
            [(1, "repeated")],
        ),
        (["exists(xs, x -> x.p > 5)", "exists(xs, y -> y.p > 6)"], [(1, "covered")]),
        (["exists(xs, x -> x > 5)", "any(xs, x -> x > 6)"], []),  # of one value, only the second is true
        (["exists(xs, x -> x > 6)", "exists(xs, x -> x > 5)"], [(0, "covered")]),
        (["forall(xs, x -> x > 5)", "forall(xs, x -> x > 6)"], [(1, "covered")]),
        (["NOT exists(xs, x -> x > 5)"], [(0, "absent under NOT")]),
        (["exists(xs, x -> NOT x.p > 5)"], [(0, "absent under NOT")]),
        ([r"exists(xs, x -> x = 'C:\dir')"], [(0, "dropped backslash")]),
        ([r"path = 'C:\temp'"], [(0, "escape in a path")]),
        ([r"path = 'docs\new.txt'"], [(0, "escape in a path")]),
        (
            [r"a = '\t'", r"a RLIKE '\bfoo'", r"a = 'a\tb.c'", r"a = 'Dear Sir,\nplease call.me'"],
            [],
        ),
        ([r"path = 'D:/x\new'"], [(0, "escape in a path")]),
        ([r"path = r'C:\temp'", r"text = 'one\ntwo'", r"path = 'C:\\tmp'"], []),
        (["price * quantity > 5 AND price * quantity < 3"], [(0, "never true")]),
        (["price * quantity > 5", "price * quantity > 6"], [(1, "covered")]),
        (["NOT hour(ts) = 3"], [(0, "absent under NOT")]),
        (["xpath(doc, '/a')", "xpath(doc, '/a')"], [(1, "repeated")]),
        (["NOT xpath(doc, '/a')"], [(0, "absent under NOT")]),
        (["x = NULL OR y = 1"], [(0, "compared with NULL")]),
        (
            ["x != NULL OR y = 1", "x > NULL"],
            [(0, "compared with NULL"), (1, "compared with NULL"), (1, "never true")],
        ),
        (["exists(xs, x -> x = NULL OR x = 1)"], [(0, "compared with NULL")]),
        (["x IS NULL OR x <=> NULL OR x IN (1, NULL)"], []),
        (["user-agent = 'x'"], [(0, "number and text")]),
        (
            ["user-agent IN ('x', 'y')", "a.content/type LIKE 'x%'"],
            [(0, "number and text"), (1, "number and text")],
        ),
        (["`user-agent` = 'x'", "user - agent > 5", "b - 1 > c", "lower(a) = 'x'"], []),
        (["country = CA AND age > 3"], [(0, "missing quotes")]),
        (
            ["address.city = Oslo", "x > 1 AND NOT city <=> Oslo"],
            [(0, "missing quotes"), (1, "absent under NOT"), (1, "missing quotes")],
        ),
        (["country = CA", "CA > 3 AND x = 1"], []),  # an attribute of another rule
        (["country = CA", "length(CA) > 3 AND x = 1"], []),
        (["Country = Home", "home = away", "price > Price", "a = b.C"], []),
    ],
)
def test_findings(rules: list[str], found: list[tuple[int, str]]) -> None:
    assert [(finding.row, finding.lint) for finding in lint(rules)] == found


@pytest.mark.parametrize(
    ("rule", "advice"),
    [
        ("x = NULL OR y = 1", "= NULL is never true: write IS NULL"),
        ("x != NULL OR y = 1", "!= NULL is never true: write IS NOT NULL"),
        ("user-agent = 'x'", "if it is a name, write `user-agent`"),
        ("country = CA", "for text write 'CA'"),
    ],
)
def test_advice_says_what_to_write(rule: str, advice: str) -> None:
    [finding] = lint([rule])
    assert advice in finding.message


def test_what_is_absent_is_named() -> None:
    [finding] = lint(["NOT price * quantity > 3"])
    assert "where price or quantity is absent" in finding.message
    [finding] = lint(["NOT exists(order.items, i -> i.p > 3)"])
    assert "where order.items is absent" in finding.message


@pytest.mark.parametrize(
    "text",
    [
        "exists(items, i -> i.price > 5 AND i.maker.country = 'CH') AND total > 3",
        "exists(order.items, i -> i.price > limit) OR vip",
        "exists(a, x -> exists(x.b, y -> y.c = 1))",
        "exists(items, i -> i.price > 5) AND NOT exists(items, i -> i.price > 9)",
        "ANY(tags) = 'a' AND ANY(tags) = 'b'",
        "forall(tags, t -> t = 'a')",
        "NOT forall(tags, t -> t = 'a')",
        "AT LEAST 2 OF (a = 1, b = 2, exists(c, x -> x = 3))",
        "x < 5 AND y > 1e20 AND z > 0.25 AND z < 0.5",
    ],
)
def test_an_example_of_any_form_matches_and_is_json(text: str) -> None:
    expression = tamis.parse(text)
    event = example(expression)
    assert event is not None
    assert expression.evaluate(json.dumps(event, allow_nan=False)) is True


def test_an_example_matches() -> None:
    expression = tamis.parse("(age BETWEEN 20 AND 30 OR vip) AND startswith(name, 'A') AND note != 'x'")
    event = example(expression)
    assert event is not None
    assert expression.evaluate(event) is True
    assert example(tamis.parse("x > 2 AND x < 1")) is None
