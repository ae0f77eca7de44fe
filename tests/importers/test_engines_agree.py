"""Each importer against the engine whose rules it reads."""

import random
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from importers import differences, engines
from importers.cases import (
    EventPatterns,
    EventPatternsOverArrays,
    JsonLogicConstants,
    JsonLogicOverArrays,
    JsonLogicRules,
    recorded,
)
from tamis.importers import event_patterns, json_logic, sql

JSON_LOGIC = [
    *recorded("json_logic.jsonl"),
    *recorded("json_logic_over_arrays.jsonl"),
    *recorded("json_logic_odd.jsonl"),  # operands too few or too many, and JavaScript's conversions
]


@pytest.mark.parametrize(("rule", "data", "truth"), JSON_LOGIC)
def test_json_logic(rule: Any, data: Any, truth: bool) -> None:
    imported = json_logic.convert("r", rule)
    assert imported.expression is not None, imported.refused
    assert (imported.expression.evaluate(data) is True) == truth, str(imported.expression)


@pytest.mark.parametrize(("pattern", "event", "truth"), recorded("event_patterns.jsonl"))
def test_event_patterns(pattern: Any, event: Any, truth: bool) -> None:
    imported = event_patterns.convert("r", pattern)
    assert imported.expression is not None, imported.refused
    assert (imported.expression.evaluate(event) is True) == truth, str(imported.expression)


@pytest.mark.parametrize(
    ("pattern", "event", "truth"),
    [
        ({"a": [{"exactly": "x"}]}, {"a": "x"}, True),
        ({"a": [{"exactly": "x"}]}, {"a": "X"}, False),
        ({"$or": [{"prefix": "x"}, {"prefix": "y"}]}, {"$or": "yes"}, True),
        ({"a": [{"exists": True}]}, {"a": [{}]}, False),
        ({"a": [{"exists": True}]}, {"a": [{"b": 1}]}, False),
        ({"a": [{"exists": False}]}, {"a": [{"b": 1}]}, True),
        ({"a": [{"exists": True}]}, {"a": ["x"]}, True),
        ({"a": [{"anything-but": "x"}]}, {"a": [{"b": 1}]}, False),
    ],
)
def test_odd_event_patterns(pattern: Any, event: Any, truth: bool) -> None:
    imported = event_patterns.convert("r", pattern)
    assert imported.expression is not None, imported.refused
    assert (imported.expression.evaluate(event) is True) == truth, str(imported.expression)


@pytest.mark.parametrize(("pattern", "event", "truth"), recorded("event_patterns_over_arrays.jsonl"))
def test_event_patterns_over_arrays(pattern: Any, event: Any, truth: bool) -> None:
    imported = event_patterns.convert("r", pattern, arrays=EventPatternsOverArrays.arrays)
    assert imported.expression is not None, imported.refused
    assert not imported.notes
    assert (imported.expression.evaluate(event) is True) == truth, str(imported.expression)


@pytest.mark.slow
def test_json_logic_js_gives_the_recorded_answers_and_agrees_on_others() -> None:
    known = JSON_LOGIC
    assert engines.json_logic([[rule, data] for rule, data, _ in known]) == [truth for *_, truth in known]
    for rules in (JsonLogicRules(seed=1), JsonLogicOverArrays(seed=1)):
        pairs = [(rules.rule(3), rules.data()) for _ in range(10_000)]
        _agree(pairs, engines.json_logic(pairs), json_logic.convert)
    constants = JsonLogicConstants(seed=1)
    for rule, truth in _with_answers([(constants.rule(3), {}) for _ in range(10_000)]):
        imported = json_logic.convert("r", rule)
        if imported.expression is not None:
            assert (imported.expression.evaluate({}) is True) == truth, rule
        else:
            assert imported.refused.feature in json_logic.NOT_CARRIED_OVER, (rule, imported.refused)


def _with_answers(pairs: list[Any]) -> list[Any]:
    """Rules that json-logic-js does not stumble over, each with its answer."""
    answers = engines.json_logic(pairs)
    return [(rule, truth) for (rule, _), truth in zip(pairs, answers, strict=True) if isinstance(truth, bool)]


@pytest.mark.slow
def test_event_ruler_gives_the_recorded_answers_and_agrees_on_others() -> None:
    known = recorded("event_patterns.jsonl")
    assert engines.event_ruler([[rule, event] for rule, event, _ in known]) == [truth for *_, truth in known]
    patterns = EventPatterns(seed=1)
    pairs = [(patterns.pattern(), patterns.event()) for _ in range(5_000)]
    _agree(pairs, engines.event_ruler(pairs), event_patterns.convert)


@pytest.mark.slow
def test_event_ruler_agrees_on_arrays_of_values_and_of_records() -> None:
    known = recorded("event_patterns_over_arrays.jsonl")
    assert engines.event_ruler([[rule, event] for rule, event, _ in known]) == [truth for *_, truth in known]
    patterns = EventPatternsOverArrays(seed=1)
    pairs = [(patterns.pattern(), patterns.event()) for _ in range(5_000)]

    def convert(id: str, pattern: Any) -> Any:
        return event_patterns.convert(id, pattern, arrays=patterns.arrays)

    _agree(pairs, engines.event_ruler(pairs), convert)


DIFFERENCES = [
    *((json_logic, known) for known in differences.JSON_LOGIC),
    *((event_patterns, known) for known in differences.EVENT_PATTERNS),
]


@pytest.mark.parametrize(("module", "known"), DIFFERENCES)
def test_known_differences_are_differences_and_are_documented(
    module: Any, known: differences.Difference
) -> None:
    imported = module.convert("r", known.rule)
    assert imported.expression is not None, imported.refused
    assert (imported.expression.evaluate(known.event) is True) != known.theirs
    page = Path(__file__).parents[2] / "docs" / "importers.md"
    assert known.says in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("known", differences.SQL)
def test_known_differences_from_duckdb_are_differences_and_are_documented(
    known: differences.Difference,
) -> None:
    imported = sql.convert("r", known.rule)
    assert imported.expression is not None, imported.refused
    columns = {name: pa.array([value]) for name, value in known.event.items()}
    connection = duckdb.connect()
    connection.register("events", pa.table(columns))
    theirs = bool(connection.execute(f"SELECT 1 FROM events WHERE {known.rule}").fetchall())
    assert theirs == known.theirs
    assert (imported.expression.evaluate(known.event) is True) != theirs
    page = Path(__file__).parents[2] / "docs" / "importers.md"
    assert known.says in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_engines_give_the_answers_that_are_known_to_differ() -> None:
    for judge, known in (
        (engines.json_logic, differences.JSON_LOGIC),
        (engines.event_ruler, differences.EVENT_PATTERNS),
    ):
        answers = judge([[one.rule, one.event] for one in known])
        assert answers == [one.theirs for one in known]


def _agree(pairs: list[Any], answers: list[Any], convert: Any) -> None:
    for (rule, event), truth in zip(pairs, answers, strict=True):
        imported = convert("r", rule)
        assert imported.expression is not None, (rule, imported.refused)
        assert (imported.expression.evaluate(event) is True) == truth, (rule, event, imported.expression)


class Conditions:
    """Random WHERE clauses in DuckDB's dialect."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def rows(self, count: int) -> list[dict[str, Any]]:
        choice = self._random.choice
        return [
            {
                "i": number,
                "n": choice([None, 0, 1, 2, 5, -1]),
                "m": choice([None, 0.0, 1.0, 2.5, 5.0]),
                "s": choice([None, "", "a", "b", "aB", "ab", "x_y", "xzy", " a "]),
                "t": choice([None, "a", "b", "A", "a%"]),
                "p": choice([None, True, False]),
            }
            for number in range(count)
        ]

    def number(self, depth: int) -> str:
        choice = self._random.choice
        if depth <= 0 or self._random.random() < 0.6:
            return choice(["n", "m"])
        first, second = self.number(depth - 1), self.number(depth - 1)
        return choice(
            [
                f"({first} {choice('+-*')} {second})",
                f"({first} + 2)",
                "(n % 3)",
                f"abs({first})",
                f"length({self.text(depth - 1)})",
                f"coalesce({first}, {second})",
            ]
        )

    def text(self, depth: int) -> str:
        choice = self._random.choice
        if depth <= 0 or self._random.random() < 0.6:
            return choice(["s", "t"])
        first, second = self.text(depth - 1), self.text(depth - 1)
        return choice(
            [
                f"lower({first})",
                f"upper({first})",
                f"trim({first})",
                f"({first} || {second})",
                f"concat({first}, {second})",
                f"substring({first}, 1, {choice([0, 1, 2])})",
            ]
        )

    def condition(self, depth: int) -> str:
        choice = self._random.choice
        if depth > 0 and self._random.random() < 0.5:
            first, second = self.condition(depth - 1), self.condition(depth - 1)
            return choice([f"NOT ({first})", f"({first}) AND ({second})", f"({first}) OR ({second})"])
        compare, negated = choice(["=", "<>", "<", "<=", ">", ">="]), choice(["", "NOT "])
        pattern = choice(["a%", "%b", "a_", "%", "A%", "x!_y' ESCAPE '!"])
        return choice(
            [
                f"{self.number(2)} {compare} {self.number(2)}",
                f"{self.number(2)} {compare} {choice([0, 1, 2.5, -1])}",
                f"{self.text(2)} {compare} {self.text(1)}",
                f"{self.text(2)} {compare} '{choice(['a', 'aB', ''])}'",
                f"n {negated}IN (1, 2, 5)",
                f"s {negated}IN ('a', 'b', NULL)",
                f"{self.number(1)} {negated}BETWEEN 0 AND {choice([1, 5])}",
                f"{self.text(1)} {negated}{choice(['LIKE', 'ILIKE'])} '{pattern}'",
                f"{choice('nsp')} IS {negated}NULL",
                choice(["p", "p = TRUE", "NOT p"]),
                f"n IS {negated}DISTINCT FROM {choice(['1', 'm'])}",
                f"regexp_matches(s, '{choice(['^a', 'b$', '[xy]'])}')",
                "starts_with(s, 'a')",
                f"p IS {negated}{choice(['TRUE', 'FALSE'])}",
                f"(n > 1 OR s = 'a') IS {negated}{choice(['TRUE', 'FALSE', 'NULL'])}",
                f"({choice(['1 = 1', '2 <= 1'])} AND n > - -1)",
                f"substring(s, {choice([2, -1, -2])}) {compare} 'b'",
            ]
        )


PLAIN = {
    "i": pa.int64(),
    "n": pa.int64(),
    "m": pa.float64(),
    "s": pa.string(),
    "t": pa.string(),
    "p": pa.bool_(),
}


def _duckdb_selects_the_same(conditions: Conditions, kinds: dict[str, Any], count: int, depth: int) -> None:
    rows = conditions.rows(60)
    columns = {name: pa.array([row[name] for row in rows], kind) for name, kind in kinds.items()}
    connection = duckdb.connect()
    connection.register("events", pa.table(columns))
    for _ in range(count):
        where = conditions.condition(depth)
        selected = connection.execute(f"SELECT i FROM events WHERE {where} ORDER BY i").fetchall()
        imported = sql.convert("r", where)
        assert imported.expression is not None, (where, imported.refused)
        found = [row["i"] for row in rows if imported.expression.evaluate(row) is True]
        assert found == [number for (number,) in selected], (where, str(imported.expression))


def test_sql_selects_what_duckdb_selects() -> None:
    _duckdb_selects_the_same(Conditions(seed=1), PLAIN, count=400, depth=3)


class ConditionsOnArrays(Conditions):
    """Random WHERE clauses in DuckDB's dialect about the values and the records in arrays."""

    def rows(self, count: int) -> list[dict[str, Any]]:
        choice, many = self._random.choice, (0, 1, 2, 3)

        def items(depth: int) -> Any:
            return choice([None, [item(depth) for _ in range(choice(many))]])

        def item(depth: int) -> Any:
            made = {"n": choice([None, 0, 1, 2, 5]), "s": choice([None, "a", "b"])}
            return choice([None, *[made | ({"parts": items(depth - 1)} if depth else {})] * 5])

        for_all = super().rows(count)
        for row in for_all:
            row["xs"] = choice([None, [choice([None, 0, 1, 2, 5]) for _ in range(choice(many))]])
            row["ts"] = choice([None, [choice([None, "a", "b", "ab"]) for _ in range(choice(many))]])
            row["items"] = items(1)
        return for_all

    def condition(self, depth: int) -> str:
        choice = self._random.choice
        if depth > 0 and self._random.random() < 0.4:
            first, second = self.condition(depth - 1), self.condition(depth - 1)
            return choice([f"NOT ({first})", f"({first}) AND ({second})", f"({first}) OR ({second})"])
        compare, negated = choice(["=", "<>", "<", "<=", ">", ">="]), choice(["", "NOT "])
        inner = choice(["p.n > i.n", "p.s = 'a'", "p.n = 1 AND p.s = s", "NOT p.n = 2"])
        about_item = choice(
            [
                f"i.n {compare} {choice(['1', '2', 'n'])}",
                f"i.s {negated}IN ('a', 'b') AND i.n {compare} 1",
                "NOT (i.n > 1 OR i.s = 'a')",
                "i.n IS NULL",
                f"{negated}EXISTS (SELECT 1 FROM UNNEST(i.parts) AS u(p) WHERE {inner})",
            ]
        )
        return choice(
            [
                f"{negated}EXISTS (SELECT 1 FROM UNNEST(items) AS t(i) WHERE {about_item})",
                f"{negated}EXISTS (SELECT i FROM UNNEST(xs) AS t(i) WHERE t.i {compare} {choice('1n')})",
                f"{choice('012n')} {compare} {choice(['ANY', 'ALL'])}(xs)",
                f"s {choice(['=', '<>'])} ANY(ts)",
                f"{negated}list_contains(ts, 'a')",
                f"{negated}list_has_any(ts, ['a', 'ab'])",
                f"{choice(['n', '1'])} {negated}IN (SELECT unnest(xs))",
                super().condition(0),
            ]
        )


def test_sql_looks_into_arrays_as_duckdb_does() -> None:
    record = pa.struct({"n": pa.int64(), "s": pa.string()})
    items = pa.list_(pa.struct([*record, pa.field("parts", pa.list_(record))]))
    kinds = {**PLAIN, "xs": pa.list_(pa.int64()), "ts": pa.list_(pa.string()), "items": items}
    _duckdb_selects_the_same(ConditionsOnArrays(seed=1), kinds, count=300, depth=2)
