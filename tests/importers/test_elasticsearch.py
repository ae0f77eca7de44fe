"""Elasticsearch's semantics, case by case, from the pages of its reference that each case names."""

from typing import Any

import pytest

from tamis.importers import elasticsearch

SHOULD = [{"term": {name: 1}} for name in "abcde"]


def msm(count: Any, clauses: int = 5, **more: Any) -> dict[str, Any]:
    return {"bool": {"should": SHOULD[:clauses], "minimum_should_match": count, **more}}


def _prefix(case_insensitive: str) -> dict[str, Any]:
    return {"prefix": {"x": {"value": "A", "case_insensitive": case_insensitive}}}


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
        ("exists query: null or []", {"exists": {"field": "x"}}, {"x": [None]}, False),
        ("exists query: one value is enough", {"exists": {"field": "x"}}, {"x": [None, 0]}, True),
        ("exists query: fields of an object", {"exists": {"field": "x"}}, {"x": {"y": 1}}, True),
        ("regexp syntax: \\d", {"regexp": {"x": "\\d+"}}, {"x": "123"}, True),
        ("regexp syntax: \\W", {"regexp": {"x": "a\\Wb"}}, {"x": "a-b"}, True),
        ("prefix query: case_insensitive", _prefix("false"), {"x": "ab"}, False),
        ("prefix query: case_insensitive", _prefix("true"), {"x": "ab"}, True),
        ("minimum_should_match: 0 alone", msm(0), {}, False),
        ("minimum_should_match: 0 alone", msm(0, must_not={"term": {"z": 1}}), {}, False),
        ("minimum_should_match: 0 beside must", msm(0, must={"term": {"z": 1}}), having("z"), True),
        ("minimum_should_match: no should", msm(1, 0, must={"term": {"z": 1}}), having("z"), False),
        ("minimum_should_match: no clause", {"bool": {"minimum_should_match": 1}}, {}, True),
        ("minimum_should_match: first limit", msm("9<-3 2<-25%"), having("a", "b", "c", "d"), False),
        ("minimum_should_match: spaces", msm("2 < -25%"), having("a", "b", "c", "d"), True),
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


# The documents of the pages "Nested field type" and "Nested query".
USERS = {"group": "fans", "user": [{"first": "John", "last": "Smith"}, {"first": "Alice", "last": "White"}]}
DRIVER = {
    "driver": {
        "last_name": "McQueen",
        "vehicle": [{"make": "Powell Motors", "model": "Canyonero"}, {"make": "Miller", "model": "Meteor"}],
    }
}


def both(*clauses: Any) -> dict[str, Any]:
    return {"bool": {"must": list(clauses)}}


def nested(path: str, query: Any, **options: Any) -> dict[str, Any]:
    return {"nested": {"path": path, "query": query, **options}}


def without(query: Any) -> dict[str, Any]:
    return {"bool": {"must_not": [query]}}


def user(first: str, last: str) -> dict[str, Any]:
    return both({"term": {"user.first": first}}, {"term": {"user.last": last}})


def vehicle(make: str, model: str) -> dict[str, Any]:
    return both({"term": {"driver.vehicle.make": make}}, {"term": {"driver.vehicle.model": model}})


JIM = {"term": {"comments.author": "jim"}}
JIM_AND_OTHERS = {"comments": [{"author": "jim"}, {"author": "ann"}]}
ONLY_JIM = {"comments": [{"author": "jim"}]}


@pytest.mark.parametrize(
    ("page", "query", "document", "truth"),
    [
        ("nested field type: arrays of objects are flattened", user("Alice", "Smith"), USERS, True),
        ("nested field type: arrays of objects are flattened", without(user("Alice", "Smith")), USERS, False),
        ("nested field type: one object matches all", nested("user", user("Alice", "Smith")), USERS, False),
        ("nested field type: one object matches all", nested("user", user("Alice", "White")), USERS, True),
        (
            "nested field type: an object in place of an array",
            nested("user", user("A", "B")),
            {"user": {"first": "A", "last": "B"}},
            True,
        ),
        (
            "nested query: score_mode and inner_hits do not filter",
            nested("user", user("Alice", "White"), score_mode="avg", ignore_unmapped=True, inner_hits={}),
            USERS,
            True,
        ),
        (
            "nested query: multi-level",
            nested("driver", nested("driver.vehicle", vehicle("Powell Motors", "Canyonero"))),
            DRIVER,
            True,
        ),
        (
            "nested query: multi-level",
            nested("driver", nested("driver.vehicle", vehicle("Powell Motors", "Meteor"))),
            DRIVER,
            False,
        ),
        (
            "nested query: the complete path",
            nested("driver.vehicle", vehicle("Miller", "Meteor")),
            DRIVER,
            True,
        ),
        ("nested query: the complete path", nested("driver.vehicle", vehicle("Miller", "Meteor")), {}, False),
        (
            "nested query: the complete path",
            nested("driver.vehicle", vehicle("Miller", "Canyonero")),
            {"driver": [DRIVER["driver"]]},
            False,
        ),
        (
            "nested query: the complete path",
            nested("driver.vehicle", vehicle("Miller", "Meteor")),
            {"driver": [DRIVER["driver"]]},
            True,
        ),
        ("nested query: must_not inside", nested("comments", without(JIM)), JIM_AND_OTHERS, True),
        ("nested query: must_not inside", nested("comments", without(JIM)), ONLY_JIM, False),
        ("nested query: must_not inside", nested("comments", without(JIM)), {}, False),
        ("nested query: must_not inside", nested("comments", without(JIM)), {"comments": []}, False),
        ("nested query: must_not inside", nested("comments", without(JIM)), {"comments": {"at": 1}}, True),
        ("nested query: must_not around", without(nested("comments", JIM)), JIM_AND_OTHERS, False),
        ("nested query: must_not around", without(nested("comments", JIM)), {}, True),
        (
            "nested query: match_all",
            nested("comments", {"match_all": {}}),
            {"comments": [{"author": "ann"}]},
            True,
        ),
        ("nested query: match_all", nested("comments", {"match_all": {}}), {"comments": []}, False),
        (
            "nested query: minimum_should_match",
            nested(
                "c",
                {
                    "bool": {
                        "should": [{"term": {f"c.{name}": 1}} for name in "xyz"],
                        "minimum_should_match": 2,
                    }
                },
            ),
            {"c": [{"x": 1}, {"y": 1, "z": 1}]},
            True,
        ),
        (
            "nested query: minimum_should_match",
            nested(
                "c",
                {
                    "bool": {
                        "should": [{"term": {f"c.{name}": 1}} for name in "xyz"],
                        "minimum_should_match": 2,
                    }
                },
            ),
            {"c": [{"x": 1}, {"y": 1}, {"z": 1}]},
            False,
        ),
        ("arrays: range", {"range": {"n": {"gt": 1, "lt": 3}}}, {"n": [0, 5]}, False),
        ("arrays: range", {"range": {"n": {"gt": 1, "lt": 3}}}, {"n": [0, 2]}, True),
        ("arrays: range", {"range": {"n": {"gt": 1, "lt": 3}}}, {"n": 2}, True),
        ("arrays: prefix", {"prefix": {"tags": "new-"}}, {"tags": ["old", "new-1"]}, True),
        ("arrays: must_not", without({"prefix": {"tags": "new-"}}), {"tags": ["old", "new-1"]}, False),
        ("arrays: exists", {"exists": {"field": "tags"}}, {"tags": [None]}, False),
        ("arrays: exists", {"exists": {"field": "tags"}}, {"tags": [None, "a"]}, True),
        ("arrays: exists", {"exists": {"field": "user.last"}}, USERS, True),
        ("arrays: exists", {"exists": {"field": "user.middle"}}, USERS, False),
    ],
)
def test_arrays(page: str, query: Any, document: dict[str, Any], truth: bool) -> None:
    imported = elasticsearch.convert("q", query, arrays=["user", "n", "tags", "driver"])
    assert imported.expression is not None, (page, imported.refused)
    assert not imported.notes
    assert (imported.expression.evaluate(document) is True) == truth, (page, str(imported.expression))


def test_a_nested_query_needs_no_naming_and_says_what_is_not_known() -> None:
    imported = elasticsearch.convert("q", nested("a.b", {"term": {"a.b.c": 1}}))
    assert imported.expression is not None
    assert imported.expression.evaluate({"a": {"b": [{"c": 2}, {"c": 1}]}}) is True
    assert imported.notes == ("a.b.c: not reached where an event has an array of records at a",)


def test_objects_exist_where_the_field_is_named_as_an_array() -> None:
    imported = elasticsearch.convert("r", {"exists": {"field": "user"}}, arrays=["user"])
    assert imported.expression is not None
    for user, truth in (
        ({"name": "a"}, True),
        ([{"name": "a"}], True),
        ("a", True),
        ([], False),
        ([None], False),
    ):
        assert (imported.expression.evaluate({"user": user}) is True) == truth, user
    nested = {"nested": {"path": "users", "query": {"exists": {"field": "users.tags"}}}}
    inner = elasticsearch.convert("r", nested, arrays=["users.tags"]).expression
    assert inner is not None
    assert inner.evaluate({"users": [{"tags": []}, {"tags": ["a"]}]}) is True
    assert inner.evaluate({"users": [{"tags": []}, {"tags": [None]}]}) is not True


def test_dates_as_bounds_have_a_note() -> None:
    imported = elasticsearch.convert("r", {"range": {"at": {"lte": "2024-01-31"}}}, arrays=[])
    assert imported.notes == ("at: a date is compared as text; a day as an upper bound ends as it begins",)
