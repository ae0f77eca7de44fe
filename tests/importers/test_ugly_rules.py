"""Rules that are broken, huge, deep or named twice: each is refused by name, and nothing else happens."""

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from cli.conftest import Command
from tamis.importers import elasticsearch, event_patterns, json_logic, sigma, sql


def deep(key: str, inside: Any, levels: int = 2_000) -> Any:
    for _ in range(levels):
        inside = {key: inside}
    return inside


X = {"var": "x"}
NUMBER = "NaN and infinite numbers are not written in rules"
TOO_LARGE = "does not fit in 64 bits"
SIGMA = "title: A\nlogsource: {product: x}\ndetection: "
UGLY: list[tuple[ModuleType, Any, str, str]] = [
    (json_logic, deep("!", X), "deep nesting", "at most 256 levels"),
    (json_logic, {">": [X, 1e308 * 10]}, "a number", NUMBER),
    (json_logic, {">": [X, 10**30]}, "an invalid rule", TOO_LARGE),
    (json_logic, {"==": [X, "\ud800"]}, "an invalid rule", "surrogate"),
    (json_logic, {"var": "a..b"}, "an invalid rule", "an attribute needs a name"),
    (json_logic, {"missing_some": ["x", ["a"]]}, "an invalid rule", "operands"),
    (json_logic, {">": [{"/": [X]}, 1]}, "an invalid rule", "operands"),
    (event_patterns, deep("y", {"x": [1]}), "deep nesting", "at most 256 levels"),
    (event_patterns, '{"x": [1', "an invalid pattern", "not valid JSON: Expecting"),
    (event_patterns, 5, "an invalid pattern", "record of fields"),
    (event_patterns, {"x": [float("nan")]}, "a number", NUMBER),
    (event_patterns, {"x": [10**30]}, "an invalid pattern", TOO_LARGE),
    (event_patterns, {"x": [{"exists": "no"}]}, "an invalid pattern", "record of fields"),
    (event_patterns, {"": [1]}, "an invalid pattern", "an attribute needs a name"),
    (elasticsearch, {"query": deep("nested", {})}, "deep nesting", "at most 256 levels"),
    (elasticsearch, None, "an invalid query", "documentation"),
    (elasticsearch, {"function_score": 5}, "an invalid query", "documentation"),
    (elasticsearch, {"range": {"x": {"gt": 1e400}}}, "a number", NUMBER),
    (elasticsearch, {"regexp": {"x": "("}}, "an invalid query", "unclosed group"),
    (elasticsearch, {"regexp": {"x": "(a{1000}){1000}"}}, "an invalid query", "too large"),
    (sql, "(" * 5_000 + "x" + ")" * 5_000, "deep nesting", "at most 256 levels"),
    (sql, "x > 1e999", "the text", "too large for a float"),
    (sql, "x = DATE '2020-13-45'", "the text", "'2020-13-45' is not a date"),
    (sql, "x = 'a", "the text", "sqlglot cannot read it"),
]


@pytest.mark.parametrize(("module", "rule", "feature", "said"), UGLY)
def test_it_is_refused(module: Any, rule: Any, feature: str, said: str) -> None:
    [imported] = module.read([("r", rule)])
    assert imported.expression is None
    assert imported.refused.feature == feature
    assert said in imported.refused.reason
    assert feature in module.NOT_CARRIED_OVER


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("title: [\n", "(line 2, column 1)"),
        ("title: A\ndetection: &d {s: *d, condition: s}\n", "Recursive"),
        (
            "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
            "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
            "e: [*d,*d,*d,*d,*d,*d,*d,*d,*d]\n",
            "too many nodes",
        ),
        ("- 1\n- 2\n", "pySigma cannot read it"),
        (SIGMA + "{s: {a: .nan}, condition: s}", "Invalid number"),
        (SIGMA + "{s: {a: 1}, condition: s and}", "(line:1, col:"),
    ],
)
def test_sigma_refuses_with_the_place(text: str, said: str) -> None:
    refused = sigma.convert(text).refused
    assert refused is not None
    assert said in refused.reason


@pytest.mark.thorough
def test_a_rule_of_a_megabyte_is_imported() -> None:
    values = ", ".join(f"a-rather-long-value-of-a-field-{number:09d}" for number in range(25_000))
    assert len(values) > 1_000_000
    imported = sigma.convert(f"{SIGMA}{{s: {{a: [{values}]}}, condition: s}}")
    assert imported.expression is not None, imported.refused
    assert imported.expression.evaluate({"a": "A-rather-long-value-of-a-field-000024999"}) is True


def test_the_second_rule_of_an_id_is_refused() -> None:
    report = json_logic.read([("a", X), ("a", {"!": X}), ("b", X)])
    assert [(rule.id, rule.expression is None) for rule in report] == [
        ("a", False),
        ("a", True),
        ("b", False),
    ]
    assert report.refused[0].refused is not None
    assert report.refused[0].refused.feature == "a repeated id"
    assert len(report.to_index()) == 2
    assert "refused: a" in str(report)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": {"x": [1]}, "a": {"x": [2]}}', "rules.json:1: not valid JSON: the name 'a' occurs twice"),
        ('{"r": ' + '{"y": ' * 100_000 + "[1]" + "}" * 100_001, "rules.json:1: nested too deep to be read"),
        ('{"r": {"x": [1]}', "rules.json:1:"),
    ],
)
def test_a_file_that_cannot_be_read_says_where(
    tamis: Command,
    tmp_path: Path,
    text: str,
    said: str,
) -> None:
    path = tmp_path / "rules.json"
    path.write_text(text, encoding="utf-8")
    ran = tamis("import", "event-patterns", path)
    assert ran.code == 2
    assert said in ran.err


def test_the_command_names_what_it_refused(tamis: Command, tmp_path: Path) -> None:
    path = tmp_path / "patterns.json"
    path.write_text(json.dumps({"good": {"x": [1]}, "bad": {"x": 1}}), encoding="utf-8")
    assert "refused: bad" in tamis("import", "event-patterns", path).err


def levels(count: int, around: Any, innermost: Any) -> Any:
    for level in range(count):
        innermost = around(level, innermost)
    return innermost


DEEP: list[tuple[ModuleType, Any]] = [
    (json_logic, levels(120, lambda at, rule: {"or": [{"var": f"y{at}"}, {"!": rule}]}, X)),
    (
        elasticsearch,
        levels(
            120,
            lambda at, query: {
                "bool": {"should": [{"term": {f"y{at}": 1}}, {"bool": {"must_not": [query]}}]}
            },
            {"term": {"x": 1}},
        ),
    ),
    (sql, levels(70, lambda at, text: f"(y{at} = 1 OR NOT ({text}))", "x = 1")),
]


@pytest.mark.parametrize(("module", "rule"), DEEP)
def test_a_rule_is_imported_as_deep_as_expressions_are(module: Any, rule: Any) -> None:
    """Python's stack holds fewer levels of sqlglot's reader."""
    limit = sys.getrecursionlimit()
    [imported] = module.read([("r", rule)])
    assert imported.refused is None
    assert sys.getrecursionlimit() == limit


def test_a_condition_of_sigma_is_imported_as_deep_as_expressions_are() -> None:
    condition = levels(110, lambda at, text: f"(t{at} or not {text})", "s")
    searches = ", ".join(f"t{at}: {{b{at}: 1}}" for at in range(110))
    text = f"{SIGMA}{{s: {{a: 1}}, {searches}, condition: '{condition}'}}"
    assert sigma.convert(text).refused is None


def test_what_refers_to_itself_or_repeats_itself_is_refused_at_once() -> None:
    endless: dict[str, Any] = {}
    endless["!"] = endless
    many: Any = X
    for _ in range(60):
        many = {"or": [many, many]}
    for rule, feature in ((endless, "deep nesting"), (many, "a large rule")):
        refused = json_logic.convert("r", rule).refused
        assert refused is not None
        assert refused.feature == feature
