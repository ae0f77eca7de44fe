"""Two engines that know nothing of us must select the events that we select.

`to_sql` writes an expression for the engine; each engine answers all expressions for all events in a few
queries. What no text can bridge is left out by the strategies: types that do not agree, integers compared
with floats, and regular expressions beyond what all dialects share.
"""

from typing import Any

import pyarrow as pa
import pytest

import strategies
from oracle import FALSE, TRUE, UNDEFINED, Node, evaluate
from tamis import parse
from writer import to_text

EXPRESSIONS = 240
EVENTS = 40
COLUMNS_PER_QUERY = 60
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
}


@pytest.fixture(scope="module")
def events() -> list[dict[str, Any]]:
    return strategies.collect(strategies.events(typed=True), EVENTS)


@pytest.fixture(scope="module")
def nodes() -> list[Node]:
    single = strategies.collect(strategies.predicates(typed=True), EXPRESSIONS // 2)
    return [*single, *strategies.collect(strategies.expressions(typed=True), EXPRESSIONS // 2)]


def table(events: list[dict[str, Any]], timestamp: pa.DataType) -> pa.Table:
    schema = pa.schema([("row", pa.int64()), ("t", timestamp), *TYPES.items()])
    return pa.Table.from_pylist([{"row": row} | event for row, event in enumerate(events)], schema)


def chunks(nodes: list[Node]) -> list[list[Node]]:
    return [nodes[at : at + COLUMNS_PER_QUERY] for at in range(0, len(nodes), COLUMNS_PER_QUERY)]


def check(nodes: list[Node], events: list[dict[str, Any]], answers: list[list[bool | None]]) -> None:
    """`answers[row]` has one truth per node."""
    assert len(answers) == len(events)
    wrong = [
        f"{to_text(node)}\n  for {event}\n  is {ours}, the engine says {theirs}"
        for event, row in zip(events, answers, strict=True)
        for node, theirs in zip(nodes, row, strict=True)
        if (ours := parse(to_text(node)).evaluate(event)) is not theirs
        or ours is not SHOWN[evaluate(node, event)]
    ]
    assert not wrong, f"{len(wrong)} disagreements, the shortest:\n" + min(wrong, key=len)


def test_duckdb(duck: Any, nodes: list[Node], events: list[dict[str, Any]]) -> None:
    duck.register("events", table(events, pa.timestamp("us")))
    duck.execute("PRAGMA disable_optimizer")  # which takes longer than these queries
    try:
        for chunk in chunks(nodes):
            selected = ", ".join(
                f"({parse(to_text(node)).to_sql('duckdb')}) AS c{at}" for at, node in enumerate(chunk)
            )
            answers = duck.sql(f"SELECT {selected} FROM events ORDER BY row").fetchall()
            check(chunk, events, [list(row) for row in answers])
    finally:
        duck.execute("PRAGMA enable_optimizer")


@pytest.mark.spark
def test_spark(spark: Any, nodes: list[Node], events: list[dict[str, Any]]) -> None:
    frame = spark.createDataFrame(table(events, pa.timestamp("us", tz="UTC"))).cache()
    for chunk in chunks(nodes):
        selected = [f"({parse(to_text(node)).to_sql('spark')}) AS c{at}" for at, node in enumerate(chunk)]
        rows = frame.selectExpr("row", *selected).collect()
        check(chunk, events, [list(row)[1:] for row in sorted(rows)])
