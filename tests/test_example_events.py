"""Events that an expression matches, as `tamis check --explain` shows them."""

import json
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings

import tamis
from strategies import expressions
from tamis._example import example, search
from tamis._example.documents import document_for
from tamis._example.texts import text_found_by
from writer import to_text

FOUND = [
    "lower(x) = 'abc' AND contains(lower(x), 'b')",
    "startswith(lower(x), 'c:') AND contains(lower(x), 'temp') AND endswith(lower(x), '.exe')",
    "price * quantity > 100",
    "(a + b) * 2 - c >= 10 AND lower(concat(d, '-', e)) = 'x-y'",
    "a < b",
    "(a < b) = TRUE",
    "x * x = 16",
    "a % 3 = 1 AND abs(b) < 5",
    "CAST(x AS int) > 3",
    "coalesce(x, 0) > 5 OR size(arr) > 2",
    "substring(x, 1, 3) = 'abc' AND length(x) = 5",
    "hour(ts) = 5 AND dayofweek(ts) = 1",
    "year(t) = 2024 AND month(t) >= 6",
    "date_trunc('day', ts) > TIMESTAMP '2026-01-01'",
    "ts > current_timestamp() - INTERVAL 1 DAY",
    "ts + INTERVAL 1 DAY > TIMESTAMP '2026-01-01'",
    "timestampdiff(DAY, a, b) > 3",
    "x RLIKE '^[A-Z]{2}[0-9]+\\\\.(exe|dll)$'",
    "x LIKE 'a%b_' AND endswith(x, 'bc')",
    "ip_in(ip, '10.0.0.0/8')",
    "ip_in(ip, 'fd00::/8')",
    "within_distance(lat, lon, 52.52, 13.4, 1500)",
    "AT LEAST 2 OF (lower(x) = 'a', y = 2, z = 3)",
    "lower(x) = 'a' XOR lower(y) = 'b'",
    "NOT lower(x) = 'a'",
    "(lower(x) = 'a') IS NOT TRUE AND y = 1",
    "(lower(x) = 'a') IS UNKNOWN AND y = 1",
    "x IN ('a', 'b') AND x <=> y",
    "array_contains(tags, 'a') AND size(tags) = 2",
    "element_at(tags, 2) = 'x' AND round(z, 2) = 1.25",
    "exists(all_strings(), s -> contains(lower(s), 'mimikatz'))",
    "exists(items, i -> lower(i.name) = 'a' AND i.price * 2 > 10)",
    "forall(items, i -> lower(i.name) = 'a') AND size(items) > 0",
    "lower(`odd name`.`a.b`) = 'x'",
    "xpath(doc, '/news/item[price > 5]')",
    "xpath(doc, '//item[@lang = \"de\"]') AND NOT xpath(doc, '//correction')",
    "xpath(doc, '/news//item[price > 5 and @lang = \"en\"]/title') AND source = 'reuters'",
    "xpath(doc, '//item[contains(title, \"sieve\")]') AND xpath(doc, '/news/x')",
    "xpath(doc, '/Q{urn:n}news/*/text()') AND xpath(doc, '//@lang')",
    "xpath(doc, '/a[not(b)][c or d]')",
    "xpath(lower(doc), '/a')",
    "NOT xpath(coalesce(doc, ''), '/a')",
]


@pytest.mark.parametrize("text", FOUND)
def test_computed_terms_and_documents_have_examples(text: str) -> None:
    expression = tamis.parse(text)
    event = example(expression)
    assert event is not None
    assert expression.evaluate(event) is True
    shown = json.dumps(event, allow_nan=False, default=as_json)
    assert expression.evaluate(shown) is True


def as_json(value: datetime) -> dict[str, str]:
    return {"$timestamp": value.isoformat()}


@pytest.mark.parametrize("text", ["lower(x) = 'a' AND lower(x) = 'b'", "lower(x) = 'A'", "size(x) < 0"])
def test_what_no_event_matches_has_none(text: str) -> None:
    assert example(tamis.parse(text)) is None


def test_a_rule_of_thousands_of_predicates_ends() -> None:
    many = " AND ".join(f"lower(x{number}) = 'a'" for number in range(2_000))
    assert example(tamis.parse(many)) in (None, {f"x{number}": "a" for number in range(2_000)})
    hard = " AND ".join(f"(lower(x) = '{number}' OR x * y = {number})" for number in range(40))
    assert example(tamis.parse(hard)) is None


def test_a_rule_of_many_levels_ends() -> None:
    deep = "lower(x) = 'a'"
    for level in range(60):
        deep = f"(y{level} = 1 OR NOT ({deep}))"
    assert example(tamis.parse(deep)) is not None


@given(expressions())
@settings(deadline=None, max_examples=100)
def test_an_example_is_never_wrong(node: Any) -> None:
    expression = tamis.parse(to_text(node))
    event = example(expression)
    assert event is None or expression.evaluate(event) is True


@pytest.mark.parametrize("pattern", [r"(?<=a)b", r"\p{Greek}", "(" * 300 + ")" * 300, "a{60000}", "["])
def test_odd_patterns_have_a_text_or_none(pattern: str) -> None:
    found = text_found_by(pattern)
    assert found is None or len(found) <= 4_096


@pytest.mark.parametrize("path", ["/a[1]", "a", "//", "/a[b = ", "/a/../b", "count(/a)", ""])
def test_odd_paths_have_a_document_or_none(path: str) -> None:
    found = document_for(path)
    assert found is None or found.startswith("<")


def test_the_search_is_bounded() -> None:
    assert search.MOST_TRIALS <= 10_000
