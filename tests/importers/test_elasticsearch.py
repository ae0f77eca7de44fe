"""Elasticsearch's semantics, case by case, from the pages of its reference that each case names."""

from typing import Any

import pytest

from tamis.importers import elasticsearch

SHOULD = [{"term": {name: 1}} for name in "abcde"]


def msm(count: Any, clauses: int = 5, **more: Any) -> dict[str, Any]:
    return {"bool": {"should": SHOULD[:clauses], "minimum_should_match": count, **more}}


def having(*names: str) -> dict[str, int]:
    return dict.fromkeys(names, 1)


@pytest.mark.parametrize(
    ("page", "query", "document", "truth"),
    [
        ("term query", {"term": {"x": {"value": "Kim"}}}, {"x": "Kim"}, True),
        (
            "term query: case_insensitive",
            {"term": {"x": {"value": "Kim", "case_insensitive": True}}},
            {"x": "KIM"},
            True,
        ),
        ("arrays", {"term": {"x": "a"}}, {"x": ["b", "a"]}, True),
        ("terms query", {"terms": {"x": ["a", "b"], "boost": 1.0}}, {"x": "b"}, True),
        ("terms query", {"terms": {"x": ["a", "b"]}}, {"x": ["c"]}, False),
        ("range query", {"range": {"x": {"gte": 10, "lte": 20, "boost": 2.0}}}, {"x": 20}, True),
        ("range query", {"range": {"x": {"gt": 10}}}, {"x": 10}, False),
        ("range query", {"range": {"x": {"gt": 10}}}, {}, False),
        ("prefix query", {"prefix": {"x": {"value": "ki"}}}, {"x": "kimchy"}, True),
        ("wildcard query", {"wildcard": {"x": {"value": "ki*y"}}}, {"x": "kimchy"}, True),
        ("wildcard query: ? is one character", {"wildcard": {"x": "ki?"}}, {"x": "ki"}, False),
        ("wildcard query: \\ escapes", {"wildcard": {"x": "a\\*"}}, {"x": "ab"}, False),
        ("regexp query: always anchored", {"regexp": {"x": "k.*y"}}, {"x": "xkimchy"}, False),
        ("regexp query: always anchored", {"regexp": {"x": "k.*y"}}, {"x": "kimchy"}, True),
        ("exists query", {"exists": {"field": "x"}}, {"x": ""}, True),
        ("exists query: null or []", {"exists": {"field": "x"}}, {"x": []}, False),
        ("exists query: null or []", {"exists": {"field": "x"}}, {"x": None}, False),
        ("bool query: must_not", {"bool": {"must_not": {"term": {"x": "a"}}}}, {}, True),
        ("bool query: must_not", {"bool": {"must_not": {"term": {"x": "a"}}}}, {"x": ["b", "a"]}, False),
        ("bool query: should is one if alone", {"bool": {"should": SHOULD[:2]}}, {}, False),
        (
            "bool query: should is none beside filter",
            {"bool": {"should": SHOULD[:2], "filter": []}},
            having("a"),
            True,
        ),
        (
            "bool query: should is none beside filter",
            {"bool": {"should": SHOULD, "must": {"term": {"z": 1}}}},
            having("z"),
            True,
        ),
        ("bool query: empty", {"bool": {}}, {}, True),
        ("minimum_should_match: integer", msm(3), having("a", "b"), False),
        ("minimum_should_match: integer", msm(3), having("a", "c", "e"), True),
        ("minimum_should_match: negative integer", msm(-2), having("a", "b", "c"), True),
        ("minimum_should_match: percentage, rounded down", msm("75%"), having("a", "b", "c"), True),
        ("minimum_should_match: percentage, rounded down", msm("75%"), having("a", "b"), False),
        ("minimum_should_match: negative percentage", msm("-25%"), having("a", "b", "c", "d"), True),
        ("minimum_should_match: negative percentage", msm("-25%"), having("a", "b", "c"), False),
        ("minimum_should_match: combination", msm("3<90%"), having("a", "b", "c", "d"), True),
        ("minimum_should_match: combination", msm("3<90%", 3), having("a", "b"), False),
        ("minimum_should_match: combinations", msm("2<-25% 9<-3"), having("a", "b", "c", "d"), True),
        (
            "constant score query",
            {"constant_score": {"filter": {"term": {"x": 1}}, "boost": 2}},
            {"x": 1},
            True,
        ),
        ("dis_max query", {"dis_max": {"queries": SHOULD[:2], "tie_breaker": 0.7}}, having("b"), True),
        (
            "boosting query",
            {"boosting": {"positive": SHOULD[0], "negative": SHOULD[1], "negative_boost": 0.5}},
            having("a", "b"),
            True,
        ),
        ("match all query", {"match_all": {"boost": 1.2}}, {}, True),
        ("match all query: match_none", {"match_none": {}}, {}, False),
        ("function score query", {"function_score": {"query": SHOULD[0], "boost": 5}}, having("a"), True),
        ("search API: query", {"query": {"term": {"x": 1}}}, {"x": 1}, True),
    ],
)
def test_case(page: str, query: Any, document: dict[str, Any], truth: bool) -> None:
    imported = elasticsearch.convert("q", query)
    assert imported.expression is not None, (page, imported.refused)
    assert (imported.expression.evaluate(document) is True) == truth, (page, str(imported.expression))


def test_a_count_of_many_is_one_expression() -> None:
    clauses = [{"term": {f"a{number}": 1}} for number in range(40)]
    imported = elasticsearch.convert("q", {"bool": {"should": clauses, "minimum_should_match": 20}})
    assert imported.expression is not None
    assert imported.expression.evaluate({f"a{number}": 1 for number in range(20)}) is True
    assert imported.expression.evaluate({f"a{number}": 1 for number in range(19)}) is not True
