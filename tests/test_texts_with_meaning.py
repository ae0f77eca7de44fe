"""Computed terms, thresholds, truth tests, quantifiers, moving time, networks and places, on every path.

The judge is `texts_with_meaning`: each random expression carries its meaning in Python. Faults looked for:
a path that answers otherwise than the others; a finder of Boolean terms that loses a member among thousands;
false taken for undefined.
"""

import json
import pickle
import random
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
import texts_with_meaning
from tamis import Index
from texts_with_meaning import NOW, Form

RULES, EVENTS = 400, 60


@pytest.fixture(scope="module")
def forms() -> list[Form]:
    generator = random.Random(17)
    return [texts_with_meaning.expression(generator, depth=at % 4) for at in range(RULES)]


@pytest.fixture(scope="module")
def events() -> list[dict[str, Any]]:
    generator = random.Random(18)
    return [texts_with_meaning.event(generator) for _ in range(EVENTS)]


@pytest.fixture(scope="module")
def expected(forms: list[Form], events: list[dict[str, Any]]) -> list[list[int]]:
    return [[at for at, form in enumerate(forms) if form.of(event) is True] for event in events]


@pytest.fixture(scope="module")
def index(forms: list[Form]) -> Index:
    made = Index()
    made.add_many(
        range(len(forms)),
        [form.text for form in forms],
        priorities=[float(at % 7) for at in range(len(forms))],
    )
    return made


def to_json(event: dict[str, Any]) -> str:
    return json.dumps(
        event, default=lambda at: {"$timestamp": at.isoformat()} if isinstance(at, datetime) else at
    )


NAMES = ("i", "j", "s", "t", "addr", "lat", "lon", "ints", "items")


def to_table(events: list[dict[str, Any]]) -> pa.Table:
    """The events as rows; pyarrow takes the columns of the first row for those of all."""
    return pa.Table.from_pylist([{name: event.get(name) for name in NAMES} for event in events])


def pairs(table: pa.Table, events: int) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(events)]
    for event, rule in zip(table["event"].to_pylist(), table["subscription"].to_pylist(), strict=True):
        found[event].append(rule)
    return found


def test_the_reference_evaluator(forms: list[Form], events: list[dict[str, Any]]) -> None:
    for form in forms:
        parsed = tamis.parse(form.text)
        assert tamis.parse(str(parsed)) == parsed
        for event in events[:20]:
            assert parsed.evaluate(event, now=NOW) is form.of(event), (form.text, event)


def test_one_by_one(
    index: Index, events: list[dict[str, Any]], expected: list[list[int]], forms: list[Form]
) -> None:
    for event, rules in zip(events, expected, strict=True):
        found = index.match(event, now=NOW)
        assert found == rules, [forms[at].text for at in {*found} ^ {*rules}]
        assert index.match(to_json(event), now=NOW) == rules
        assert index.count(event, now=NOW) == len(rules)
        ranked = [match.id for match in index.top_k(event, k=5, now=NOW)]
        assert ranked == sorted(rules, key=lambda at: (-float(at % 7), at))[:5]


def test_batches(index: Index, events: list[dict[str, Any]], expected: list[list[int]]) -> None:
    table = to_table(events)
    for repeats in (1, 10):  # few, and enough for a bit per event
        many = pa.concat_tables([table] * repeats)
        assert pairs(index.match_batch(many, now=NOW), EVENTS * repeats) == expected * repeats
        assert pairs(index.match_batch(events * repeats, now=NOW), EVENTS * repeats) == expected * repeats
    lines = "\n".join(map(to_json, events))
    assert pairs(index.match_batch(lines, now=NOW), EVENTS) == expected
    best = pairs(index.top_k_batch(table, k=3, now=NOW), EVENTS)
    assert best == [sorted(rules, key=lambda at: (-float(at % 7), at))[:3] for rules in expected]


def test_snapshots_and_changes(
    index: Index, events: list[dict[str, Any]], expected: list[list[int]], forms: list[Form], tmp_path: Path
) -> None:
    index.save(tmp_path / "rules.tamis")
    opened = Index.open(tmp_path / "rules.tamis")
    grown = Index()
    for at, form in enumerate(forms):  # in the buffer, in small segments, and some removed again
        grown.add(at, form.text)
        if at % 3 == 0:
            grown.add(at + RULES, form.text)
    for at in range(0, RULES, 3):
        grown.remove(at + RULES)
    for event, rules in zip(events, expected, strict=True):
        for each in (opened, pickle.loads(pickle.dumps(index)) if event is events[0] else opened, grown):
            assert each.match(event, now=NOW) == rules
    grown.optimize()
    assert [grown.match(event, now=NOW) for event in events] == expected


def test_shards_agree(forms: list[Form], events: list[dict[str, Any]], expected: list[list[int]]) -> None:
    shards = [Index() for _ in range(3)]
    for at, form in enumerate(forms):
        shards[at % 3].add(at, form.text)
    for event, rules in zip(events, expected, strict=True):
        assert sorted(at for shard in shards for at in shard.match(event, now=NOW)) == rules


@pytest.mark.parametrize("algorithm", ["scan", "a-tree", "boolean", "counting"])
def test_other_algorithms(algorithm: str, forms: list[Form], events: list[dict[str, Any]]) -> None:
    other = Index(algorithm=algorithm)
    held = []
    for at, form in enumerate(forms[:120]):
        try:
            other.add(at, form.text)
        except tamis.UnsupportedExpressionError:
            continue
        held.append(at)
    for event in events[:25]:
        assert other.match(event, now=NOW) == [at for at in held if forms[at].of(event) is True]


def test_explanations(index: Index, events: list[dict[str, Any]], forms: list[Form]) -> None:
    for event in events[:8]:
        for at in range(0, RULES, 5):
            explained = index.explain(at, event, now=NOW)
            assert explained.matches is (forms[at].of(event) is True), forms[at].text


def test_relations_hold_on_events(forms: list[Form], events: list[dict[str, Any]]) -> None:
    generator = random.Random(19)
    for _ in range(300):
        first, second = generator.sample(forms, 2)
        covers = tamis.relate.decide_covers(tamis.parse(first.text), tamis.parse(second.text))
        overlaps = tamis.relate.decide_overlaps(tamis.parse(first.text), tamis.parse(second.text))
        for event in events:
            one, other = first.of(event) is True, second.of(event) is True
            if covers is True:
                assert one or not other, (first.text, second.text)
            if overlaps is False:
                assert not (one and other), (first.text, second.text)


def test_thousands_of_quantified_rules_in_one_index(events: list[dict[str, Any]]) -> None:
    generator = random.Random(20)
    forms = [texts_with_meaning.quantified(generator) for _ in range(3_000)]
    many = Index()
    many.add_many(
        range(len(forms)), [form.text if at % 3 else f"NOT ({form.text})" for at, form in enumerate(forms)]
    )
    for event in events[:30]:
        wanted = [at for at, form in enumerate(forms) if form.of(event) is (at % 3 > 0)]
        assert many.match(event, now=NOW) == wanted
    found = pairs(many.match_batch(to_table(events[:30]), now=NOW), 30)
    assert found == [many.match(event, now=NOW) for event in events[:30]]


# --- engines that know nothing of us --------------------------------------------------------------

PART = pa.struct([("sku", pa.string()), ("price", pa.int64())])
ITEM = pa.struct([("sku", pa.string()), ("price", pa.int64()), ("parts", pa.list_(PART))])


def engine_table(events: list[dict[str, Any]], timestamp: pa.DataType) -> pa.Table:
    types = {
        "row": pa.int64(),
        "i": pa.int64(),
        "j": pa.int64(),
        "s": pa.string(),
        "t": timestamp,
        "addr": pa.string(),
        "lat": pa.float64(),
        "lon": pa.float64(),
        "ints": pa.list_(pa.int64()),
        "items": pa.list_(ITEM),
    }
    rows = [{"row": row} | event for row, event in enumerate(events)]
    return pa.Table.from_pylist(rows, pa.schema(list(types.items())))


def said(forms: list[Form], dialect: str, count: int) -> list[tuple[Form, str]]:
    """The first forms that have a text for an engine, and do not ask for its clock."""
    found = []
    for form in forms:
        if "current_timestamp" in form.text:
            continue
        try:
            found.append((form, tamis.parse(form.text).to_sql(dialect)))  # type: ignore[arg-type]
        except tamis.ExpressionError:
            continue
    return found[:count]


def judge(asked: list[tuple[Form, str]], events: list[dict[str, Any]], answers: list[list[Any]]) -> None:
    assert len(asked) >= 25
    wrong = [
        f"{form.text}\n  for {event}\n  is {form.of(event)}, the engine says {theirs}"
        for event, row in zip(events, answers, strict=True)
        for (form, _), theirs in zip(asked, row, strict=True)
        if form.of(event) is not theirs
    ]
    assert not wrong, f"{len(wrong)} disagreements, the shortest:\n" + min(wrong, key=len)


def test_duckdb(duck: Any, forms: list[Form], events: list[dict[str, Any]]) -> None:
    asked = said(forms, "duckdb", 60)
    duck.register("texts_with_meaning", engine_table(events, pa.timestamp("us")))
    duck.execute("PRAGMA disable_optimizer")
    try:
        selected = ", ".join(f"({text}) AS c{at}" for at, (_, text) in enumerate(asked))
        answers = duck.sql(f"SELECT {selected} FROM texts_with_meaning ORDER BY row").fetchall()
    finally:
        duck.execute("PRAGMA enable_optimizer")
    judge(asked, events, [list(row) for row in answers])


@pytest.mark.spark
def test_spark(spark: Any, forms: list[Form], events: list[dict[str, Any]]) -> None:
    asked = said(forms, "spark", 25)
    frame = spark.createDataFrame(engine_table(events, pa.timestamp("us", tz="UTC")))
    selected = [f"({text}) AS c{at}" for at, (_, text) in enumerate(asked)]
    rows = frame.selectExpr("row", *selected).collect()
    judge(asked, events, [list(row)[1:] for row in sorted(rows, key=lambda row: row["row"])])
