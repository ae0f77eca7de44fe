"""Reading events: by the schema and by the predicate's own kind, never by which other rules exist.

Faults that these tests look for: a rule changes another one's answer; one route of input reads what another
does not; a value that cannot be read stops a batch, or vanishes without a word; a warning for every event.
"""

import json
import pickle
import random
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tamis
from tamis import Index, Query

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
SECONDS = int(NOON.timestamp())


def matches_by_route(index: Index, event: dict[str, Any]) -> dict[str, bool]:
    """Whether the only rule matches, by each way that an event can take."""
    text = json.dumps(event)
    return {
        "dict": index.exists(event),
        "event": index.exists(tamis.Event(event)),
        "json": index.exists(text),
        "bytes": index.exists(text.encode()),
        "list": index.count_batch([event]).to_pylist() == [1],
        "lines": index.count_batch(f"{text}\n").to_pylist() == [1],
        "arrow": index.count_batch(pa.Table.from_pylist([event])).to_pylist() == [1],
        "cells": index.ask_batch(
            Query("count"), pa.table({name: [str(value)] for name, value in event.items()}), cells=True
        ).to_pylist()
        == [1],
    }


@pytest.mark.parametrize(
    ("declared", "given"),
    [
        ("timestamp", "2026-01-31T12:00:00Z"),
        ("timestamp", "2026-01-31 13:00:00+01:00"),
        ("timestamp", SECONDS),
        ("timestamp", SECONDS + 0.0),
        ("timestamp_s", SECONDS),
        ("timestamp_ms", SECONDS * 1000),
        ("timestamp_us", SECONDS * 10**6),
        ("timestamp_ns", SECONDS * 10**9),
    ],
)
def test_a_schema_reads_text_and_epoch_numbers_by_every_route(declared: str, given: Any) -> None:
    index = Index(schema={"at": declared})
    index.add("noon", "at = TIMESTAMP '2026-01-31 12:00:00'")
    found = matches_by_route(index, {"at": given})
    assert all(found.values()), found
    assert all(matches_by_route(pickle.loads(pickle.dumps(index)), {"at": given}).values())


def test_the_wrong_unit_is_no_other_time() -> None:
    index = Index(schema={"at": "timestamp"})
    index.add("ever", "at IS NOT NULL AND at > TIMESTAMP '0001-01-01 00:00:00'")
    with pytest.warns(tamis.ValueWarning, match="timestamp_ms in milliseconds"):
        assert not any(matches_by_route(index, {"at": SECONDS * 1000}).values())


def test_a_schema_is_kept_and_shown(tmp_path: Path) -> None:
    index = Index(schema={"at": "timestamp_ms", "n": int})
    index.save(tmp_path / "rules.tamis")
    opened = Index.open(tmp_path / "rules.tamis")
    assert opened.schema == {"at": "timestamp_ms", "n": "int"} == opened.stats()["schema"]
    assert "timestamp_ms" in repr(opened)
    assert Index().stats()["schema"] is None
    many = Index(schema={f"a{at}": "int" for at in range(9)})
    assert "5 more" in repr(many)


def test_without_a_schema_values_stay_as_they_are() -> None:
    index = Index()
    index.add("noon", "at = TIMESTAMP '2026-01-31 12:00:00'")
    with pytest.warns(tamis.ValueWarning):
        found = matches_by_route(index, {"at": "2026-01-31T12:00:00Z"})
    assert [route for route, matched in found.items() if matched] == ["cells"]


NOON_IN_ARRAYS = "TIMESTAMP '2026-01-31 12:00:00'"


@pytest.mark.parametrize(
    "schema",
    [
        {"items.at": "timestamp_ms", "items.parts.at": "timestamp_ms", "items.maker.since": "timestamp_ms"},
        {
            "items": "array<struct<at:timestamp_ms,sku:string,"
            "maker:struct<since:timestamp_ms,of:map<int,int>>,parts:array<struct<at:timestamp_ms>>>>"
        },
    ],
    ids=["fields", "struct"],
)
@pytest.mark.parametrize("given", [SECONDS * 1000, "2026-01-31T12:00:00Z", SECONDS * 1000.0])
def test_a_schema_reads_timestamps_in_records_of_arrays(schema: dict[str, str], given: Any) -> None:
    event = {
        "items": [
            {"at": None, "parts": [], "maker": {"since": None}},
            {"at": given, "parts": [{"at": given}], "maker": {"since": given}},
        ]
    }
    for rule in (
        f"exists(items, i -> i.at = {NOON_IN_ARRAYS})",
        f"exists(items, i -> i.maker.since = {NOON_IN_ARRAYS})",
        f"exists(items, i -> exists(i.parts, p -> p.at = {NOON_IN_ARRAYS}))",
        f"ANY(items) IS NOT NULL AND exists(items, i -> hour(i.at) = 12 AND i.at >= {NOON_IN_ARRAYS})",
    ):
        index = Index(schema=schema)
        index.add("noon", rule)
        found = matches_by_route(index, event)
        del found["cells"]  # a cell is no array
        assert all(found.values()), (rule, found)
    if isinstance(given, str):  # what was text is text for keywords
        index = Index(schema=schema)
        index.add("text", "ANY(all_strings()) LIKE '2026-01-31T%'")
        assert index.match(event) == index.match(tamis.Event(event)) == ["text"]


def test_a_schema_refuses_bodies_that_cannot_be_true() -> None:
    schema = {"n": int, "tags": "array<string>", "items.at": "timestamp", "open": "array<record>"}
    index = Index(schema=schema)
    for rule, wrong in {
        "exists(tags, t -> t > 5)": r"`tags\[\]` is a string; `>` compares it with the number 5",
        "exists(tags, t -> abs(t) > 5)": "takes a number",
        "exists(tags, t -> t.x = 1)": r"`tags\.x` is not in the schema",
        "exists(items, i -> i.att IS NULL)": r"did you mean `items\.at`",
        "exists(items, i -> i.at = 5)": r"`items\.at` is a timestamp; `=` compares",
        "exists(n, x -> x > 5)": "`n` is an int; `exists` takes an array",
        "ANY(n) = 'a'": r"`n\[\]` is an int; `=` compares it with the string 'a'",
        "exists(tags, t -> t = m)": "`m` is not in the schema",
        "ANY(all_strings()) > 5": "is a string; `>` compares it with the number 5",
        "within_distance(tags, n, 1, 1, 1)": "made of numbers",
    }.items():
        with pytest.raises(tamis.ExpressionError, match=wrong):
            index.add(rule, rule)
    with pytest.raises(tamis.ExpressionError) as caught:
        index.add("placed", "n = 1 AND\n  exists(items, i -> i.at = 5)")
    assert (caught.value.line, caught.value.column) == (2, 3)
    for rule in (
        "exists(tags, t -> t = 'a' AND n > 5)",
        "exists(tags, n -> n = 'a')",  # the variable hides the attribute
        "exists(items, i -> i.at > DATE '2026-01-01' AND i IS NOT NULL)",
        "exists(open, o -> o.x = 1 AND exists(o.ys, y -> y.z LIKE 'a%'))",
        "ANY(n) > 5",
        "exists(tags, t -> exists(all_strings(), s -> s = t))",
    ):
        index.add(rule, rule)


# --- cells ----------------------------------------------------------------------------------------

RULES = [
    "x = '02134'",
    "x > 5",
    "x = 2134",
    "NOT x = 2134",
    "NOT x = '02134'",
    "x IN ('5', 'true')",
    "x",
    "NOT x",
    "x IS NULL",
    "x IS NOT NULL",
    "x LIKE '0%'",
    "x >= TIMESTAMP '2026-01-31'",
    "x <=> 5",
    "x < y",
    "x = y",
    "x + 1 > 5",
    "length(x) = 5",
    "coalesce(x, y) > 5",
    "coalesce(x, 'none') = 'none'",
    "CAST(x AS int) = 2134",
    "(x > 5) IS TRUE",
    "(x > 5) IS NOT TRUE",
    "(x = '5') IS UNKNOWN",
    "AT LEAST 2 OF (x > 5, x = '02134', y > 1)",
    "x = '5' XOR x = 5",
    "x = '02134' AND x > 5",
    "NOT x = 'abc' AND x > 5 AND y IS NOT NULL",
    "hour(x) = 12",
    "ip_in(x, '10.0.0.0/8')",
    "within_distance(x, y, 5.0, 5.0, 1000)",
    "ANY(x) > 5",
    "array_contains(x, 5)",
]
CELLS = [
    "02134",
    "2134",
    "5",
    "5.0",
    "6",
    "true",
    "False",
    "abc",
    "",
    None,
    "2026-01-31 12:00:00",
    "10.1.2.3",
    "nan",
    "1e3",
]


def answers(
    rules: list[str], cells: list[tuple[str | None, str | None]], algorithm: str
) -> dict[str, set[int]]:
    """For each rule, the rows that it matches within the index of all of them."""
    index = Index(algorithm=algorithm)
    index.add_many(range(len(rules)), rules)
    table = pa.table(
        {
            name: pa.array(list(column), pa.string())
            for name, column in zip("xy", zip(*cells, strict=True), strict=True)
        }
    )
    found = index.ask_batch(Query("all"), table, cells=True)
    by_rule: dict[str, set[int]] = {rule: set() for rule in rules}
    for row, rule in zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True):
        by_rule[rules[rule]].add(row)
    for row, (x, y) in enumerate(cells):
        event = tamis.Event.of_cells({"x": x, "y": y})
        assert [rules[rule] for rule in index.match(event)] == [
            rule for rule in rules if row in by_rule[rule]
        ]
    return by_rule


@pytest.mark.filterwarnings("ignore::tamis.ValueWarning")
@pytest.mark.parametrize("algorithm", ["auto", "scan", "counting"])
def test_a_rule_alone_answers_as_within_any_set_of_rules(algorithm: str) -> None:
    generator = random.Random(7)
    cells = [(generator.choice(CELLS), generator.choice(CELLS)) for _ in range(60)]
    cells = [(x or None, y or None) for x, y in cells]
    alone = {rule: answers([rule], cells, algorithm)[rule] for rule in RULES}
    for rule, rows in alone.items():  # the reference evaluator agrees
        parsed = tamis.parse(rule)
        truths = [parsed.evaluate(tamis.Event.of_cells({"x": x, "y": y})) for x, y in cells]
        assert rows == {row for row, truth in enumerate(truths) if truth is True}, rule
    for _ in range(12):
        some = generator.sample(RULES, generator.randint(2, len(RULES)))
        for rule, rows in answers(some, cells, algorithm).items():
            assert rows == alone[rule], (rule, some)


def test_one_bad_cell_is_one_bad_cell() -> None:
    index = Index()
    index.add("adult", "age > 17")
    index.add("there", "age IS NOT NULL")
    table = pa.table({"age": ["30", "n/a", "12", None]})
    with pytest.warns(tamis.ValueWarning, match="`age` is a string"):
        found = index.ask_batch(Query("all"), table, cells=True)
    pairs = list(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True))
    assert pairs == [(0, "adult"), (0, "there"), (1, "there"), (2, "there")]
    assert index.stats()["observed"]["type_mismatches"] == 1


# --- what no value can hold -----------------------------------------------------------------------

UNREADABLE = {
    "large integer": 2**63,
    "huge integer": 10**5000,
    "long decimal": Decimal("1." + "3" * 120),
    "NaT": pd.NaT,
    "mixed list": [1, "x"],
    "list with a large integer": [1, 2**70],
    "unsigned": np.uint64(2**64 - 1),
}


def test_the_null_of_pandas_is_absent() -> None:
    index = Index()
    index.add("x", "x IS NULL")
    rows = pd.DataFrame({"x": pd.array([None, 1], dtype="Int64")}).to_dict("records")
    assert [index.match(row) for row in rows] == [["x"], []]
    assert index.match({"x": [pd.NA, 1]}) == []
    assert index.stats()["observed"]["type_mismatches"] == 0


@pytest.mark.parametrize("value", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_it_makes_its_attribute_absent_and_is_counted(value: Any) -> None:
    index = Index()
    index.add("x", "x IS NULL")
    index.add("y", "y = 1")
    with pytest.warns(tamis.UnreadableValueWarning, match="`x`"):
        assert index.match({"x": value, "y": 1}) == ["x", "y"]
    assert index.stats()["observed"]["type_mismatches"] == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert index.match({"x": value, "y": 1}) == ["x", "y"]
        assert index.count_batch([{"x": value, "y": 1}]).to_pylist() == [2]
        assert index.match(tamis.Event({"x": value, "y": 1})) == ["x", "y"]
    assert index.stats()["observed"]["type_mismatches"] == 4
    strict = Index(strict=True)
    strict.add("x", "x IS NULL")
    with pytest.raises(tamis.EventError, match="attribute `x`"):
        strict.match({"x": value})
    with pytest.raises(tamis.EventError, match="attribute `x`"):
        strict.count_batch([{"x": value}])
    with pytest.raises(tamis.EventError, match="attribute `x`"):
        tamis.Event({"x": value}, strict=True)
    assert strict.match({"other": value}) == ["x"]  # nobody asks for it


@pytest.mark.parametrize("text", ["9223372036854775808", "1e999", '[1, "x"]', "[1, 99999999999999999999]"])
def test_the_same_in_json(text: str) -> None:
    index, strict = Index(), Index(strict=True)
    for each in (index, strict):
        each.add("x", "x IS NULL")
    event = f'{{"y": 1, "x": {text}}}'
    with pytest.warns(tamis.UnreadableValueWarning):
        assert index.match(event) == ["x"]
    assert index.count_batch(f"{event}\n{event}\n").to_pylist() == [1, 1]
    assert index.stats()["observed"]["type_mismatches"] == 3
    for ask in (strict.match, strict.count_batch):
        with pytest.raises(tamis.EventError, match="attribute `x`"):
            ask(event)
    _, refused = strict.match_batch([event, "{}"], on_error="collect")
    assert [row.row for row in refused] == [0]


def test_the_same_in_arrow() -> None:
    table = pa.table(
        {
            "n": pa.array([1, 2**63, None], pa.uint64()),
            "list": pa.array([[1], [2, 2**64 - 1], []], pa.list_(pa.uint64())),
            "at": pa.array([0, 2**62, 1], pa.timestamp("s")),
        }
    )
    rules = {"n": "n IS NULL", "list": "list IS NULL", "at": "at IS NULL"}
    index, strict = Index(), Index(strict=True)
    for each in (index, strict):
        each.add_many(list(rules), list(rules.values()))
    with pytest.warns(tamis.UnreadableValueWarning):
        found = index.match_batch(table)
    pairs = set(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True))
    assert pairs == {(1, "n"), (1, "list"), (1, "at"), (2, "n")}
    assert index.stats()["observed"]["type_mismatches"] == 3
    with pytest.raises(tamis.EventError, match="row 1"):
        strict.match_batch(table)


def test_a_field_of_a_record_in_an_array_is_absent_from_its_record() -> None:
    index = Index()
    index.add("cheap", "exists(items, i -> i.sku = 'A' AND i.price IS NULL)")
    event = {"items": [{"sku": "A", "price": 2**70}, {"sku": "B", "price": 1}]}
    with pytest.warns(tamis.UnreadableValueWarning, match=r"`items\.price`"):
        assert index.match(event) == ["cheap"]
    assert index.match(json.dumps(event)) == ["cheap"]


@pytest.mark.parametrize(
    "event",
    [
        {"x": [1, "needle"]},
        {"x": ["needle", 2**70]},
        {"items": [{"name": [1, "needle"]}]},
        {"items": [1, {"deep": {"er": "needle"}}]},
    ],
)
def test_strings_in_what_cannot_be_read_are_keywords_by_every_route(event: dict[str, Any]) -> None:
    index = Index()
    index.add("keyword", "ANY(all_strings()) = 'needle'")
    text = json.dumps(event)
    for given in (event, tamis.Event(event), tamis.Event(text), text, text.encode()):
        assert index.match(given) == ["keyword"]
        assert index.count_batch([given]).to_pylist() == [1]
        assert index.explain("keyword", given).matches
        assert tamis.parse("ANY(all_strings()) = 'needle'").evaluate(given) is True
    assert index.count_batch(text).to_pylist() == [1]


# --- warnings -------------------------------------------------------------------------------------


def test_each_attribute_is_warned_of_once() -> None:
    index = Index()
    index.add("a", "age > 21 AND name = 'Ada'")
    index.add("b", "vip IS NOT NULL")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            index.match({"age": "27", "name": "Ada", "vip": 3})
            index.match({"age": [27], "name": "Ada"})
        index.count_batch(pa.table({"age": ["27"], "name": [7]}))
        index.match_batch([{"name": 7}])
    assert [str(one.message).split("`")[1] for one in caught] == ["age", "name"]
    assert caught[0].filename == __file__
    assert "CAST(age AS double)" in str(caught[0].message)


def test_no_warning_where_the_kind_is_expected() -> None:
    index = Index()
    index.add("a", "age > 21")
    index.add("b", "age = 'old'")
    index.add("c", "size(tags) > 1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        index.match({"age": "old", "tags": ["a", "b"], "other": object})
        index.match_batch(pa.table({"age": ["old"], "more": [b"x"]}))


NESTED = [
    [[True, 1]],
    [[True, "x"], ["x", None]],
    [[1, [2.5, "x"]]],
    [[2**70], [2**70, "x"]],
    [[{"k": "x"}, 1]],
    [[]],
    [[], "x"],
    [[None]],
    [None, [None, [None]]],
    [[1], {"a": 1}],
    [[1], 2],
    [["x"], {"a": "x"}],
    [{"a": [[1, "x"], True]}],
]


@pytest.mark.filterwarnings("ignore::tamis.ValueWarning", "ignore::tamis.UnreadableValueWarning")
@pytest.mark.parametrize("items", NESTED, ids=json.dumps)
@pytest.mark.parametrize("strict", [False, True])
def test_arrays_inside_arrays_may_hold_what_no_value_can(items: list[Any], strict: bool) -> None:
    """A nested array is present and has strings; nothing compares with it, whatever it holds."""
    rules = ["e IS NULL", "e IS NOT NULL", "ANY(all_strings()) = 'x'", "size(e) = 1", "size(e) = 2"]
    index = Index(strict=strict)
    index.add_many(rules, rules)
    event = {"e": items}
    text = json.dumps(event)

    def answer(form: Any) -> set[Any] | type[Exception]:
        try:
            return set(index.match(form))
        except ValueError as refused:
            return type(refused)

    assert answer(event) == answer(text) == answer(tamis.Event(event))
    if not strict:
        assert {"e IS NULL", "e IS NOT NULL"} & set(index.match(event))


@pytest.mark.parametrize(
    ("before", "text"),
    [
        ({"x": 1, "$event": {}}, '{"x": 1, "$event": {"x": 2}}'),
        ({"$timestamp": 1, "x": 1}, '{"$timestamp": 1, "x": 1}'),
        ({"x": {"b": 1, "$interval": [1, 2]}}, '{"x": {"b": 1, "$interval": [1, 2]}}'),
    ],
)
def test_what_was_learnt_from_records_makes_no_json_valid(before: dict[str, Any], text: str) -> None:
    index = tamis.Index()
    index.add_many([1, 2], ["x > 0", "x.b > 0"])
    with pytest.raises(tamis.EventError) as first:
        index.match(text)
    for _ in range(3):
        index.match(before)
        with pytest.raises(tamis.EventError) as later:
            index.match(text)
        assert str(later.value) == str(first.value)


@pytest.mark.parametrize("of", [str, str.encode])
def test_only_a_line_feed_ends_a_line(of: Callable[[str], Any]) -> None:
    index = tamis.Index()
    index.add("rule", "x > 1", priority=1.0)
    text = of('{"id": "a", "x": 2, "s": "p\u2028q\u0085"}\r\n\n{"id": "b", "x": 2}')
    assert index.match_batch(text)["event"].to_pylist() == [0, 1]
    assert index.match_batch(text, key="id")["event"].to_pylist() == ["a", "b"]
    found, refused = index.match_batch(text, on_error="collect")
    assert (found["event"].to_pylist(), refused) == ([0, 1], [])
    best = index.top_k_batch(text, k=1, score=lambda block: block.priority)
    assert best["event"].to_pylist() == [0, 1]
