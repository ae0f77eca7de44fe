"""What Spark and DuckDB lack or mean otherwise, said in their own words: they must agree there too.

The strategies of `test_sql` leave these out, as an engine that is given our text as it is would answer
something else, or nothing: XOR and XNOR, empty sets, nulls in sets and arrays, the two zeros, NUL characters;
and computed terms at the ends of what 64 bits hold.
"""

import itertools
import math
from typing import Any

import pyarrow as pa
import pytest

from tamis import Expression, parse

PLACE = pa.struct([("x", pa.struct([("y", pa.int64())]))])
SCHEMA = pa.schema(
    [
        ("row", pa.int64()),
        ("a", pa.bool_()),
        ("b", pa.bool_()),
        ("c", pa.bool_()),
        ("i", pa.int64()),
        ("f", pa.float64()),
        ("s", pa.string()),
        ("ints", pa.list_(pa.int64())),
        ("words", pa.list_(pa.string())),
        ("floats", pa.list_(pa.float64())),
        ("place", PLACE),
    ]
)
TRUTHS = (True, False, None)
LEAST, GREATEST = -(2**63), 2**63 - 1
EVENTS: list[dict[str, Any]] = [
    *({"a": a, "b": b, "c": c} for a, b, c in itertools.product(TRUTHS, repeat=3)),
    {"i": 1, "f": 0.0, "s": "a\0b", "ints": [], "words": [], "floats": [], "place": {"x": {"y": 1}}},
    {"i": 2, "f": -0.0, "s": "a\\b", "ints": [None], "words": [None], "floats": [math.nan], "place": {}},
    {"f": math.nan, "s": "É", "ints": [1, None], "words": ["a", None], "floats": [-0.0]},
    {"i": 3, "f": math.inf, "s": "50%", "ints": [1, 2], "words": ["a", "b"], "floats": [0.0, None]},
    {"f": 2.0**63},  # one more than the largest integer; Spark reads it as that
    {"f": -(2.0**63)},
    {"f": 2.0**63 - 1024},
    {"i": LEAST, "f": 0.1, "s": "it's", "ints": [LEAST], "words": ["it's"], "floats": [1.5]},
    {
        "i": GREATEST,
        "f": 0.12345678901234567,
        "s": "a\nb",
        "ints": [3],
        "words": ["\\"],
        "floats": [math.inf],
    },
]

# Spark looks up a list of more than ten in another way.
TWELVE = ", ".join(f"{number}.0" for number in range(1, 13))
EXPRESSIONS = [
    *("a XOR b XOR c", "a XNOR b XNOR c", "a XOR NOT (b XNOR c)", "(a OR b) XOR (c AND a)"),
    *("NULL XOR a", "TRUE XNOR b", "NULL", "NOT NULL", "a AND NULL", "a OR NULL", "NOT NOT a"),
    *("a IS NOT TRUE", "a IS FALSE", "b IN (TRUE)", "b > FALSE", "a = TRUE XOR b <=> NULL"),
    *("i IN ()", "i NOT IN ()", "i IN (1, NULL)", "i NOT IN (1, NULL)", "i IN (NULL)"),
    *("i = NULL", "i != NULL", "i <=> NULL", "i BETWEEN NULL AND 2", "i NOT BETWEEN NULL AND 2"),
    *(f"i = {LEAST}", f"i > {GREATEST - 1}", "(i > 1)^0.4 AND (f > 0)^2"),
    *("f = 0.0", "f = -0.0", "f IN (0.0)", f"f IN (0.0, {TWELVE})", f"f IN (double('NaN'), {TWELVE})"),
    *("f <=> double('NaN')", "f > double('Infinity')", "f = 0.12345678901234567D", "f < 5e-324"),
    *(r"s = 'a\0b'", r"s IN ('a\0b', NULL)", r"contains(s, '\0')", "contains(s, NULL)", "endswith(s, '')"),
    *(r"s LIKE '%\\\\%'", r"s LIKE '50\%'", "s LIKE 'a_b'", "s LIKE NULL", "s ILIKE 'é'"),
    *("s RLIKE 'a.b'", "s RLIKE NULL", "startswith(s, NULL)"),
    *("arrays_overlap(ints, ARRAY())", "arrays_overlap(ints, ARRAY(NULL))"),
    *("arrays_overlap(ints, ARRAY(1, NULL))", "arrays_overlap(words, ARRAY('a', NULL))"),
    *("array_contains(ints, 1)", "array_contains(ints, 9)", f"array_contains(ints, {LEAST})"),
    *(f"arrays_overlap(ints, ARRAY({LEAST}, 5))", r"array_contains(words, '\\')"),
    *("array_contains(floats, 0.0)", "array_contains(floats, double('NaN'))"),
    "arrays_overlap(floats, ARRAY(0.0, 1.5))",
    *("i + 1 > 0", "i - 1 < 0", "i * i > 0", "abs(i) > 0", "-i > 0", "i + i IS NULL", "abs(f) >= 0.0"),
    *("i % -1 = 0", "i % 3 = 1", "i % i = 0", "-5 % i = -1", "i / 0 IS NULL"),
    *("floor(f) >= 0", "ceil(f) >= 0", f"floor(f * {GREATEST}) IS NULL"),
    *(
        "CAST(f AS int) = 0",
        f"CAST(f AS int) = {LEAST}",
        "CAST(f AS int) = 9223372036854774784",
        "CAST('7.5' || s AS int) IS NULL",
        "CAST(CAST(i AS string) AS int) = i",
    ),
    *("CAST(coalesce(s, '7.5') AS int) IS NULL", "CAST(i % 5 AS timestamp) > TIMESTAMP '1970-01-01'"),
    *("CAST(CAST(i % 5 AS timestamp) - INTERVAL 1 MICROSECOND AS int) = i - 1",),
    *("exists(ints, x -> x + x > 0)", "forall(ints, x -> abs(x) >= 0)", "exists(floats, x -> floor(x) = 0)"),
    *("place IS NULL", "place.x IS NULL", "place.x.y IS NULL", "place.x.y = 1", "place.x.y <=> NULL"),
]


@pytest.fixture(scope="module")
def expressions() -> list[Expression]:
    written = [parse(text) for text in EXPRESSIONS]
    return [*written, *(~expression for expression in written)]


def table() -> pa.Table:
    return pa.Table.from_pylist([{"row": row} | event for row, event in enumerate(EVENTS)], SCHEMA)


def check(expressions: list[Expression], answers: list[list[bool | None]]) -> None:
    wrong = [
        f"{expression} for {event} is {ours}, the engine says {theirs}"
        for event, row in zip(EVENTS, answers, strict=True)
        for expression, theirs in zip(expressions, row, strict=True)
        if (ours := expression.evaluate(event)) is not theirs
    ]
    assert not wrong, "\n".join(wrong)


def test_duckdb(duck: Any, expressions: list[Expression]) -> None:
    duck.register("bridges", table())
    columns = ", ".join(
        f"({expression.to_sql('duckdb')}) AS c{at}" for at, expression in enumerate(expressions)
    )
    answers = duck.sql(f"SELECT {columns} FROM bridges ORDER BY row").fetchall()
    check(expressions, [list(row) for row in answers])


@pytest.mark.spark
def test_spark(spark: Any, expressions: list[Expression]) -> None:
    columns = [f"({expression.to_sql('spark')}) AS c{at}" for at, expression in enumerate(expressions)]
    rows = spark.createDataFrame(table()).selectExpr("row", *columns).collect()
    check(expressions, [list(row)[1:] for row in sorted(rows)])
