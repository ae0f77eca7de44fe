"""What importers refuse: every listed feature with its reason, and nothing lost silently."""

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tamis.importers import NotCarriedOverError, elasticsearch, event_patterns, json_logic, sigma, sql

X = {"var": "x"}

REFUSED: list[tuple[ModuleType, str, Any]] = [
    (json_logic, "map", {"==": [{"map": [X, X]}, 1]}),
    (json_logic, "map", {"map": [[1], X]}),
    (json_logic, "filter", {">": [{"filter": [X, True]}, 1]}),
    (json_logic, "reduce", {"reduce": [X, X, 0]}),
    (json_logic, "merge", {"missing": {"merge": ["a", {"if": [X, ["b"], []]}]}}),
    (json_logic, "all", {"all": [[1, 2], {">": [{"var": ""}, 1]}]}),
    (json_logic, "some", {"some": [{"map": [X, {"+": [{"var": ""}, 1]}]}, {">": [{"var": ""}, 1]}]}),
    (json_logic, "none", {"none": [{"merge": [X, X]}, {">": [{"var": ""}, 1]}]}),
    (json_logic, "min", {">": [{"min": [X, 1]}, 3]}),
    (json_logic, "max", {">": [{"max": [X, 1]}, 3]}),
    (json_logic, "method", {"method": [X, "shift"]}),
    (json_logic, "var", {"==": [{"var": "list.0"}, 1]}),
    (json_logic, "in", {"in": [X, {"var": "y"}]}),
    (json_logic, "substr", {"==": [{"substr": [X, 0, -2]}, "a"]}),
    (json_logic, "==", {"==": [X, [1, 2]]}),
    (json_logic, "matches", {"matches": [X, "a"]}),
    (json_logic, "if", {"==": [{"if": [X, "a", "b"]}, "a"]}),
    (json_logic, "missing", {"==": [{"missing": ["x"]}, True]}),
    (json_logic, "missing_some", {"!=": [{"missing_some": [1, ["x"]]}, True]}),
    (json_logic, "an invalid rule", {"missing_some": [1.5, ["x"]]}),
    (json_logic, "an invalid rule", {"missing_some": [1, "x"]}),
    (json_logic, "an invalid rule", {"*": []}),
    (json_logic, "==", {">": [{"-": [X, "a"]}, 1]}),
    (event_patterns, "null", {"x": [None]}),
    (event_patterns, "cidr", {"x": [{"cidr": "10.0.0.300/8"}]}),
    (event_patterns, "numeric", {"x": [{"numeric": [">", "1"]}]}),
    (event_patterns, "wildcard", {"x": [{"wildcard": "a\\b"}]}),
    (event_patterns, "a field next to and inside $or", {"x": [1], "$or": [{"x": [2]}, {"y": [3]}]}),
    (event_patterns, "a field twice", {"a": {"b": [1]}, "a.b": [2]}),
    (event_patterns, "sounds-like", {"x": [{"sounds-like": "a"}]}),
    (event_patterns, "an invalid pattern", {"x": 1}),
    (elasticsearch, "match", {"match": {"body": "two words"}}),
    (
        elasticsearch,
        "a field outside of the nested path",
        {"nested": {"path": "a", "query": {"term": {"b": 1}}}},
    ),
    (
        elasticsearch,
        "a field of nested objects",
        {"bool": {"must": [{"nested": {"path": "a", "query": {"term": {"a.b": 1}}}}, {"term": {"a.c": 1}}]}},
    ),
    (elasticsearch, "an invalid query", {"nested": {"path": "a"}}),
    (elasticsearch, "terms lookup", {"terms": {"user": {"index": "users", "id": "2", "path": "f"}}}),
    (elasticsearch, "date math", {"range": {"at": {"gte": "now-1d/d"}}}),
    (elasticsearch, "range with format or time_zone", {"range": {"at": {"gte": "1", "format": "yyyy"}}}),
    (elasticsearch, "range with relation", {"range": {"at": {"gte": 1, "relation": "within"}}}),
    (elasticsearch, "regexp", {"regexp": {"x": "a~bc"}}),
    (elasticsearch, "script", {"script": {"script": "true"}}),
    (elasticsearch, "ids", {"ids": {"values": ["1"]}}),
    (elasticsearch, "an invalid query", {"term": {"x": 1, "y": 2}}),
    (elasticsearch, "guess", {"guess": {}}),
    (elasticsearch, "range with from or to", {"range": {"x": {"from": 1, "to": 5}}}),
    (elasticsearch, "an invalid query", {"range": {"x": {"gtee": 1}}}),
    (elasticsearch, "an invalid query", {"term": {"x": {"value": 1, "valeu": 2}}}),
    (elasticsearch, "an invalid query", {"prefix": {"x": {"value": "a", "case_insensitive": "maybe"}}}),
    (elasticsearch, "a search body", {"query": {"term": {"x": 1}}, "post_filter": {"term": {"y": 1}}}),
    (elasticsearch, "a search body", {"query": {"term": {"x": 1}}, "min_score": 5}),
    (elasticsearch, "a pattern of fields", {"exists": {"field": "user.*"}}),
    (elasticsearch, "regexp", {"regexp": {"x": "[\\d_]+"}}),
    (elasticsearch, "span_term", {"span_term": {"x": "a"}}),
    (elasticsearch, "wrapper", {"wrapper": {"query": "e30="}}),
    (elasticsearch, "function_score with min_score", {"function_score": {"query": {}, "min_score": 1}}),
    (sql, "a subquery", "x IN (SELECT 1)"),
    (sql, "a subquery", "EXISTS (SELECT 1 FROM others)"),
    (sql, "a subquery", "EXISTS (SELECT count(*) FROM UNNEST(xs) AS t(x))"),
    (sql, "a subquery", "EXISTS (SELECT 1 FROM UNNEST(xs) AS t(x) LIMIT 0)"),
    (sql, "a subquery", "x = ANY(SELECT y FROM others)"),
    (sql, "an array", "x = ANY([1, 2])"),
    (sql, "an array", "len(list_filter(xs, x -> x > 1)) > 0"),
    (sql, "a name next to UNNEST", "EXISTS (SELECT 1 FROM UNNEST(items) AS item WHERE price > 5)"),
    (sql, "an aggregate", "count(x) > 1"),
    (sql, "a window", "row_number() OVER () = 1"),
    (sql, "a parameter", "x = ?"),
    (sql, "CASE", "CASE WHEN x THEN 1 ELSE 2 END = 1"),
    (sql, "a cast", "CAST(x AS DECIMAL(5, 2)) > 1"),
    (sql, "current time", "x > current_timestamp"),
    (sql, "a function", "levenshtein(x, 'a') < 2"),
    (sql, "SIMILAR TO", "x SIMILAR TO 'a'"),
    (sql, "an array", "x[1] = 2"),
    (sql, "a condition as a value", "(x > 1) = (y > 1)"),
    (sql, "the text", "x = = 1"),
]


@pytest.mark.parametrize(
    ("module", "feature", "rule"),
    REFUSED,
    ids=[f"{module.__name__[16:]}-{name}" for module, name, _ in REFUSED],
)
def test_it_is_refused_by_name(module: Any, feature: str, rule: Any) -> None:
    imported = module.convert("r", rule)
    assert imported.expression is None
    assert imported.refused.feature == feature
    assert imported.refused.reason


@pytest.mark.parametrize(
    ("dialect", "where", "expression"),
    [
        ("postgres", "5 = ANY(xs)", "exists(xs, element -> element = 5)"),
        ("postgres", "element > ALL(xs)", "forall(xs, element2 -> element2 < element)"),
        ("postgres", "tags && ARRAY['a', 'b']", "exists(tags, element -> (element IN ('a', 'b')) IS TRUE)"),
        (
            "postgres",
            "EXISTS (SELECT 1 FROM unnest(ts) AS t WHERE t LIKE 'a%')",
            "exists(ts, t -> t LIKE 'a%')",
        ),
        ("bigquery", "'a' IN UNNEST(tags)", "exists(tags, element -> element = 'a')"),
        (
            "bigquery",
            "EXISTS (SELECT 1 FROM UNNEST(items) AS i WHERE i.p > 5)",
            "exists(items, i -> i.p > 5)",
        ),
        ("spark", "exists(items, i -> i.p.q > 5)", "exists(items, i -> i.p.q > 5)"),
        ("spark", "NOT array_contains(xs, 1)", "NOT array_contains(xs, 1)"),
        ("databricks", "forall(xs, x -> x > 5)", "forall(xs, x -> x > 5)"),
        ("presto", "any_match(xs, x -> x > 5)", "exists(xs, x -> x > 5)"),
        ("trino", "all_match(xs, x -> x > 5)", "forall(xs, x -> x > 5)"),
        ("trino", "none_match(xs, x -> x > 5)", "NOT exists(xs, x -> x > 5)"),
        ("duckdb", "EXISTS (SELECT * FROM UNNEST(xs) AS t(X) WHERE t.x > 5)", "exists(xs, X -> X > 5)"),
    ],
)
def test_sql_arrays(dialect: str, where: str, expression: str) -> None:
    imported = sql.convert("r", where, dialect)
    assert imported.expression is not None, imported.refused
    assert str(imported.expression) == expression


@pytest.mark.parametrize(
    ("dialect", "where", "expression"),
    [
        ("snowflake", "x RLIKE 'a'", "x RLIKE '^(?:a)$'"),
        ("postgres", "x BETWEEN SYMMETRIC 5 AND 1", "x BETWEEN 5 AND 1 OR x BETWEEN 1 AND 5"),
        ("bigquery", "LENGTH(x) > 3", "length(x) > 3"),
        ("mysql", "CHAR_LENGTH(x) > 3", "length(x) > 3"),
        ("spark", "substring(x, 0, 2) = 'a'", "substring(x, 0, 2) = 'a'"),
        ("spark", "year(ts) = 2024", "year(ts) = 2024"),
        ("spark", "ts < to_date('2024-01-01')", "ts < TIMESTAMP '2024-01-01 00:00:00'"),
        ("oracle", "x = DATE '2024-01-01'", "x = TIMESTAMP '2024-01-01 00:00:00'"),
        ("tsql", "[my col] = N'a'", "`my col` = 'a'"),
        ("bigquery", r"x = r'a\n'", r"x = 'a\\n'"),
        ("duckdb", "where\n\tx > - -5", "x > 5"),
        ("duckdb", "1 = 1 AND x > 3", "TRUE AND x > 3"),
        ("duckdb", "'a' <> 'a' OR x > 3", "FALSE OR x > 3"),
        ("duckdb", "(x > 1 OR y) IS NOT TRUE", "NOT ((x > 1) IS TRUE OR y IS TRUE)"),
        ("duckdb", "(x > 1) IS NULL", "(x > 1) IS UNKNOWN"),
    ],
)
def test_sql_means_what_its_dialect_means(dialect: str, where: str, expression: str) -> None:
    imported = sql.convert("r", where, dialect)
    assert imported.expression is not None, imported.refused
    assert str(imported.expression) == expression


@pytest.mark.parametrize(
    ("dialect", "where", "feature"),
    [
        ("mysql", "LENGTH(x) > 3", "a function"),
        ("duckdb", "length(x, y) > 3", "a function"),
        ("mysql", "DATE(ts) = '2024-01-01'", "a function"),
        ("spark", "to_date(ts) = DATE '2024-01-01'", "a function"),
        ("spark", "to_timestamp(x, 'yyyy') > TIMESTAMP '2024-01-01 00:00:00'", "a function"),
        ("snowflake", "CEIL(x, 2) = 1.5", "a function"),
        ("snowflake", "FLOOR(x, 1) = 1.5", "a function"),
        ("tsql", "ROUND(x, 1, 1) = 1.5", "a function"),
        ("sqlite", "x GLOB 'a*'", "a function"),
        ("tsql", "x LIKE '[abc]%'", "a class in LIKE"),
        ("postgres", "substring(x, 0, 2) = 'a'", "a place in a text"),
        ("mysql", "substring(x, -2) = 'a'", "a place in a text"),
        ("duckdb", "substring(x, -2, 1) = 'a'", "a place in a text"),
        ("duckdb", "substring(x, n) = 'a'", "a place in a text"),
    ],
)
def test_sql_of_another_meaning_is_refused(dialect: str, where: str, feature: str) -> None:
    refused = sql.convert("r", where, dialect).refused
    assert refused is not None
    assert refused.feature == feature
    assert feature in sql.NOT_CARRIED_OVER


@pytest.mark.parametrize(
    ("dialect", "where", "said"),
    [
        ("postgres", "x::int = 2", "rounds there"),
        ("postgres", "EXTRACT(SECOND FROM ts) = 1", "fractions there"),
        ("oracle", "x <> ''", "empty text is null there"),
        ("oracle", "x || y = 'a'", "empty text is null there"),
        ("tsql", "LEN(x) = 2", "spaces at the end"),
        ("mysql", "x = 'a'", "the collation"),
    ],
)
def test_sql_of_another_meaning_in_a_corner_has_a_note(dialect: str, where: str, said: str) -> None:
    imported = sql.convert("r", where, dialect)
    assert imported.expression is not None, imported.refused
    assert any(said in note for note in imported.notes), imported.notes
    assert sql.convert("r", "x > 1", "spark").notes == ()


def test_an_integer_division_is_refused_where_the_dialect_has_one() -> None:
    refused = sql.convert("r", "x / 2 = 1", "postgres").refused
    assert refused is not None
    assert refused.feature == "an integer division"
    assert sql.convert("r", "x / 2 = 1", "duckdb").refused is None


def rule(detection: str, **more: str) -> str:
    lines = ["title: A rule", "logsource: {product: windows, category: process_creation}"]
    return "\n".join([*lines, *(f"{key}: {value}" for key, value in more.items()), f"detection: {detection}"])


def test_sigma_meaning() -> None:
    imported = sigma.convert(
        rule(
            "{s: {Image|endswith: '\\\\cmd.exe', CommandLine|contains|all: [/C, whoami]},"
            " f: {User|startswith: SYS}, condition: s and not f}",
            level="high",
            tags="[attack.execution]",
        )
    )
    assert imported.expression is not None, imported.refused
    event = {"Image": "C:\\Windows\\CMD.EXE", "CommandLine": "cmd /c whoami"}
    assert imported.expression.evaluate(event) is True  # User is absent, and no match is lost
    assert imported.expression.evaluate({**event, "User": "system"}) is not True
    assert imported.expression.evaluate({**event, "User": 7}) is True
    assert imported.priority == 3.0
    assert imported.tags == ("attack.execution", "product:windows", "category:process_creation")


@pytest.mark.parametrize(
    ("detection", "event", "truth"),
    [
        ("{s: {ip|cidr: 10.0.0.0/23}, condition: s}", {"ip": "10.0.1.200"}, True),
        ("{s: {ip|cidr: 10.0.0.0/23}, condition: s}", {"ip": "10.0.2.1"}, False),
        ("{s: {ip|cidr: 'fe80::/10'}, condition: s}", {"ip": "FE80::1"}, True),
        ("{s: {a|fieldref: b}, condition: s}", {"a": "X", "b": "x"}, True),
        ("{s: {a|fieldref: b}, condition: not s}", {"a": "X"}, True),
        ("{s: {a|re: '^x.*9$'}, condition: s}", {"a": "x--9"}, True),
        ("{s: {a|re|i: '^X'}, condition: s}", {"a": "xy"}, True),
        ("{s: {a|cased: X}, condition: s}", {"a": "x"}, False),
        ("{s: {a|gte: 5}, condition: s}", {"a": 5}, True),
        ("{s: {a: 4624}, condition: s}", {"a": "4624"}, True),
        ("{s: {a: '4624'}, condition: s}", {"a": 4624}, True),
        ("{s: {a: null}, condition: s}", {}, True),
        ("{s: {a|exists: true}, condition: s}", {"a": 0}, True),
        ("{s: {a: 'b?d*'}, condition: s}", {"a": "BCDE"}, True),
        ("{s1: {a: 1}, s2: {b: 1}, s3: {c: 1}, condition: 2 of s*}", {"a": 1, "c": 1}, True),
        ("{s1: {a: 1}, s2: {b: 1}, s3: {c: 1}, condition: 2 of s*}", {"c": 1}, False),
        (
            "{s1: {a: 1}, s2: {b: 1}, f: {c: 1}, condition: 2 of s* and not f}",
            {"a": 1, "b": 1, "c": 1},
            False,
        ),
        ("{s1: {a: 1}, s2: {b: 1}, f: {c: 1}, condition: not 3 of them}", {"a": 1, "b": 1, "c": 1}, False),
        ("{s: {'|re|i': 'EV[I1]L'}, condition: s}", {"x": "so evil"}, True),
        ("{s: {'|cased': 'EVIL'}, condition: s}", {"x": "so evil"}, False),
        ("{s: {'|cased': 'EVIL'}, condition: s}", {"x": "so EVIL"}, True),
        ("{s1: {a: 1}, s2: {b: 1}, condition: 1 of s*}", {"b": 1}, True),
        ("{s1: {a: 1}, s2: {b: 1}, condition: all of s*}", {"b": 1}, False),
        ("{s: [{a: 1}, {b: 2}], condition: s}", {"b": 2}, True),
        ("{s: {a|windash|contains: ' -x'}, condition: s}", {"a": "run /x"}, True),
        ("{s: {a|base64offset|contains: foo}, condition: s}", {"a": "xxZm9vxx"}, True),
    ],
)
def test_sigma_case(detection: str, event: dict[str, Any], truth: bool) -> None:
    imported = sigma.convert(rule(detection))
    assert imported.expression is not None, imported.refused
    assert (imported.expression.evaluate(event) is True) == truth, str(imported.expression)


@pytest.mark.parametrize(
    ("feature", "text"),
    [
        ("fieldref with a modifier", rule("{s: {a|fieldref|startswith: b}, condition: s}")),
        ("a placeholder", rule("{s: {a|expand: '%admins%'}, condition: s}")),
        ("a regular expression", rule(r"{s: {a|re: 'a\C'}, condition: s}")),
        ("week", rule("{s: {a|week: 3}, condition: s}")),
        ("N of", rule("{s1: {a: 1}, s2: {b: 1}, condition: 3 of s*}")),
        ("N of", rule("{" + "".join(f"s{n}: {{a: {n}}}, " for n in range(20)) + "condition: 9 of s*}")),
        ("an invalid rule", "title: [\n"),
    ],
)
def test_sigma_refuses(feature: str, text: str) -> None:
    refused = sigma.convert(text).refused
    assert refused is not None
    assert refused.feature == feature, refused


def test_sigma_correlations_are_refused_and_their_rules_are_not() -> None:
    correlation = (
        "correlation: {type: event_count, rules: [base], group-by: [b], timespan: 5m, condition: {gte: 3}}"
    )
    text = f"name: base\n{rule('{s: {a: 1}, condition: s}')}\n---\ntitle: C\n{correlation}"
    report = sigma.read([text])
    assert [imported.expression is None for imported in report] == [False, True]
    assert [feature for feature, _ in report.reasons] == ["a correlation"]


FILTER = """
title: Administrators may
logsource: {{product: windows}}
filter: {{rules: {rules}, s: {{User: admin}}, condition: not s}}
"""


def test_sigma_filters_apply_to_rules_of_other_files(tmp_path: Path) -> None:
    texts = {
        "a.yml": FILTER.format(rules="any"),
        "b.yml": rule("{s: {x: 1}, condition: s}"),
        "c.yml": FILTER.format(rules="[no-such-rule]").replace("Administrators", "Nobody"),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    report = sigma.read(sorted(tmp_path.glob("*.yml")))
    [imported] = report.imported
    assert imported.expression is not None
    assert imported.expression.evaluate({"x": 1}) is True
    assert imported.expression.evaluate({"x": 1, "User": "Admin"}) is not True
    assert [(one.id, one.refused.feature) for one in report.refused if one.refused] == [
        ("Nobody may", "a filter")
    ]


def test_sigma_keywords_are_found_in_every_string() -> None:
    rules = {
        "one": "{s: [mimikatz, 'a*b'], condition: s}",
        "all": "{s: {'|all': [mimi, KATZ]}, condition: s}",
        "number": "{s: [4624], condition: s}",
        "regex": "{s: {'|re': 'ev[i1]l'}, condition: s}",
        "quoted": r"{s: ['it''s \\ 100%'], condition: s}",
        "not": "{s: [mimikatz], f: {user: admin}, condition: not s and not f}",
    }
    report = sigma.read(
        [rule(detection).replace("title: A rule", f"title: {id}") for id, detection in rules.items()]
    )
    assert not report.refused, report
    index = report.to_index()
    for event, expected in [
        ({"a": {"b": ["x", "ran MimiKatz.exe"]}}, {"one", "all"}),
        ({"x": "a mimi", "y": [{"z": "KATz"}]}, {"all", "not"}),
        ({"x": "A--B"}, {"one", "not"}),
        ({"id": "event 4624"}, {"number", "not"}),
        ({"id": 4624}, {"not"}),
        ({"x": "ev1l", "user": "admin"}, {"regex"}),
        ({"x": "It's \\ 100% so"}, {"quoted", "not"}),
        ({"mimikatz": 1}, {"not"}),
        ({}, {"not"}),
    ]:
        assert set(index.match(event)) == expected, event


def test_sigma_keywords_are_found_in_named_attributes() -> None:
    imported = sigma.convert(rule("{s: [mimikatz, 'a*b'], condition: s}"), keywords_in=["message", "title"])
    assert imported.expression is not None
    assert imported.expression.evaluate({"title": "run MimiKatz now"}) is True
    assert imported.expression.evaluate({"message": "xxaxxbxx"}) is True
    assert imported.expression.evaluate({"message": "b a"}) is not True


def test_a_rule_without_its_attributes_matches_where_its_own_format_says_so() -> None:
    absent = [
        json_logic.convert("r", {"!": {"==": [X, "a"]}}),
        elasticsearch.convert("r", {"bool": {"must_not": [{"term": {"x": "a"}}]}}),
        event_patterns.convert("r", {"x": [{"exists": False}]}),
        sigma.convert(rule("{s: {x: a}, condition: not s}")),
    ]
    for imported in absent:
        assert imported.expression is not None
        assert imported.expression.evaluate({}) is True
        assert imported.expression.evaluate({"x": "a"}) is not True


@pytest.mark.parametrize(
    ("module", "rule"),
    [
        (event_patterns, {"detail": {"items": {"price": [5]}}, "source": ["shop"]}),
        (elasticsearch, {"term": {"detail.items.price": 5}}),
    ],
)
def test_fields_of_records_in_arrays_are_never_missed_silently(module: Any, rule: Any) -> None:
    unsure = module.convert("r", rule)
    assert any("detail.items.price" in note and "array of records" in note for note in unsure.notes)
    for arrays in (["detail.items"], ["detail"], ["detail", "detail.items"], ["detail.items.price"]):
        [told] = module.read({"r": rule}, arrays=arrays)
        assert told.expression is not None
        assert not told.notes
        event = {"detail": {"items": {"price": 5}}, "source": "shop"}
        assert told.expression.evaluate(event) is True
        if "detail.items" in arrays:
            event["detail"] = {"items": [{"price": 4}, {"price": 5}]}
        if "detail" in arrays:
            event["detail"] = [{}, event["detail"]]
        if "detail.items.price" in arrays:
            event["detail"] = {"items": {"price": [4, 5]}}
        assert told.expression.evaluate(event) is True


def test_alternatives_over_arrays_of_records_have_a_limit() -> None:
    ors = {f"r{at}": {"$or": [{name: [1]} for name in "abcdefghijk"]} for at in range(3)}
    plain = event_patterns.convert("r", ors, arrays=[])
    assert plain.expression is not None
    refused = event_patterns.convert("r", {**ors, "items": {"price": [5]}}, arrays=["items"]).refused
    assert refused is not None
    assert refused.feature == "alternatives over arrays of records"


def test_the_report_counts_the_rules_with_notes() -> None:
    patterns = {"a": {"d": {"x": [1]}}, "b": {"d": {"x": [{"prefix": "y"}]}}, "c": {"x": [1]}}
    report = event_patterns.read(patterns)
    assert [id for id, _ in report.notes] == ["a", "b", "b"]
    assert "2 imported with notes on where they differ" in str(report)


def test_refusals_survive_pickling() -> None:
    import pickle

    error = NotCarriedOverError("map", "it makes arrays", "some[0]")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.feature) == (str(error), "map")


def test_blocks_of_addresses_are_found_in_every_spelling() -> None:
    """Bits beyond the length of a block are passed over, and what is no address is in no block."""
    for block, inside, outside in [
        ("2001:db8::/32", ["2001:db8::1", "2001:0DB8:0:0::ffff"], ["2001:db9::1", "10.0.0.1", "x", 5]),
        ("10.1.2.3/8", ["10.0.0.0", "::ffff:10.9.9.9"], ["11.0.0.0", "10.0.0", ""]),
    ]:
        expression = event_patterns.convert("r", {"x": [{"cidr": block}]}).expression
        assert expression is not None
        assert all(expression.evaluate({"x": address}) is True for address in inside)
        assert not any(expression.evaluate({"x": other}) is True for other in outside)
