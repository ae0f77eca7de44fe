"""Two engines that know nothing of us must select the events that we select.

`to_sql` writes an expression for the engine; each engine answers all expressions for all events in a few
queries. What no text can bridge is left out by the strategies: types that do not agree, integers compared
with floats, and regular expressions beyond what all dialects share.
"""

from typing import Any

import pyarrow as pa
import pytest

import strategies
from events import SCHEMA
from oracle import FALSE, TRUE, UNDEFINED, Node, evaluate
from tamis import Expression, parse
from writer import to_text

EXPRESSIONS = 240
EVENTS = 40
COLUMNS_PER_QUERY = 60
# Engines plan a text in time and memory that grow faster than its length. They are asked only what they can
# plan in a blink, and at least this part of all expressions must be among that.
LONGEST, PART_ASKED = 2_000, 0.9
SHOWN = {TRUE: True, FALSE: False, UNDEFINED: None}

PERSON = pa.struct([("age", pa.int64()), ("name", pa.string())])
TYPES = {
    "i": pa.int64(),
    "f": pa.float64(),
    "s": pa.string(),
    "b": pa.bool_(),
    "ints": pa.list_(pa.int64()),
    "words": pa.list_(pa.string()),
    "person": PERSON,
    "naïve key": pa.string(),
    "items": SCHEMA.field("items").type,
}


@pytest.fixture(scope="module")
def events() -> list[dict[str, Any]]:
    return strategies.collect(strategies.events(typed=True), EVENTS)


@pytest.fixture(scope="module")
def nodes() -> list[Node]:
    single = strategies.collect(strategies.predicates(typed=True), EXPRESSIONS // 2)
    return [*single, *strategies.collect(strategies.expressions(typed=True, depth=3), EXPRESSIONS // 2)]


def table(events: list[dict[str, Any]], timestamp: pa.DataType) -> pa.Table:
    schema = pa.schema([("row", pa.int64()), ("t", timestamp), *TYPES.items()])
    return pa.Table.from_pylist([{"row": row} | event for row, event in enumerate(events)], schema)


Judged = tuple[Expression, list[bool | None]]


@pytest.fixture(scope="module")
def judged(nodes: list[Node], events: list[dict[str, Any]]) -> list[Judged]:
    """What the oracle says about each expression, for every event."""
    return [(parse(to_text(node)), [SHOWN[evaluate(node, event)] for event in events]) for node in nodes]


def questions(judged: list[Judged], engine: str) -> list[list[tuple[Judged, str]]]:
    """What an engine is asked, a list for each query: expressions with their columns."""
    written = [(each, f"({each[0].to_sql(engine)})") for each in judged]
    asked = [(each, sql) for each, sql in written if len(sql) <= LONGEST]
    assert len(asked) >= PART_ASKED * len(judged), "too many texts are too long to be judged"
    return [asked[at : at + COLUMNS_PER_QUERY] for at in range(0, len(asked), COLUMNS_PER_QUERY)]


def check(
    asked: list[tuple[Judged, str]], events: list[dict[str, Any]], answers: list[list[bool | None]]
) -> None:
    """`answers[row]` has one truth per expression."""
    assert len(answers) == len(events)
    wrong = [
        f"{expression}\n  for {event}\n  is {ours}, the oracle says {truths[at]}, the engine {theirs}"
        for at, (event, row) in enumerate(zip(events, answers, strict=True))
        for ((expression, truths), _), theirs in zip(asked, row, strict=True)
        if (ours := expression.evaluate(event)) is not theirs or ours is not truths[at]
    ]
    assert not wrong, f"{len(wrong)} disagreements, the shortest:\n" + min(wrong, key=len)


def test_duckdb(duck: Any, judged: list[Judged], events: list[dict[str, Any]]) -> None:
    duck.register("events", table(events, pa.timestamp("us")))
    duck.execute("PRAGMA disable_optimizer")  # which takes longer than these queries
    try:
        for asked in questions(judged, "duckdb"):
            columns = ", ".join(f"{sql} AS c{at}" for at, (_, sql) in enumerate(asked))
            answers = duck.sql(f"SELECT {columns} FROM events ORDER BY row").fetchall()
            check(asked, events, [list(row) for row in answers])
    finally:
        duck.execute("PRAGMA enable_optimizer")


@pytest.mark.spark
@pytest.mark.thorough
def test_spark(spark: Any, judged: list[Judged], events: list[dict[str, Any]]) -> None:
    frame = spark.createDataFrame(table(events, pa.timestamp("us", tz="UTC"))).cache()
    for asked in questions(judged, "spark"):
        columns = [f"{sql} AS c{at}" for at, (_, sql) in enumerate(asked)]
        rows = frame.selectExpr("row", *columns).collect()
        check(asked, events, [list(row)[1:] for row in sorted(rows)])
