"""Decimals are exact wherever they come from, and however they are matched.

Operands and values lie close together: they differ in a digit that a float has not. The oracle compares
fractions; DuckDB and Spark SQL read the same text as their own decimals.
"""

import decimal
import random
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from oracle import TRUE, Connective, Node, Predicate, evaluate
from seeds import few, first_of
from tamis import Index, col
from writer import to_builder, to_text

EXACT = decimal.Context(prec=100)
BASES = ["0", "0.1", "2.5", "123456.78", "900719925474099.21", "12345678901234567.89", "9007199254740993"]
WIDE = ["98765432109876543210987654321098.76", "123456789012345678901234567890123456.78"]
ORDERS = ("=", "<", "<=", ">", ">=", "<=>")


def near(rng: random.Random, bases: list[str], scales: Iterable[int]) -> Decimal:
    """A base, or one that differs from it in a late digit."""
    base = Decimal(rng.choice(bases)) * rng.choice((1, -1))
    units = Decimal(rng.choice((-2, -1, 0, 0, 1, 2)))
    return EXACT.add(base, EXACT.scaleb(units, -rng.choice(list(scales))))


def predicate(rng: random.Random, operand: Any, attribute: str = "d") -> Predicate:
    negated = rng.random() < 0.3
    match rng.randrange(5):
        case 0:
            low, high = sorted((operand(), operand()), key=Decimal)
            return Predicate(attribute, "BETWEEN", (low, high), negated)
        case 1:
            return Predicate(attribute, "IN", tuple(operand() for _ in range(rng.randint(1, 4))), negated)
        case _:
            return Predicate(attribute, rng.choice(ORDERS), (operand(),), negated)


def nodes(rng: random.Random, count: int, operand: Any) -> list[Node]:
    made: list[Node] = [predicate(rng, operand) for _ in range(count // 2)]
    for _ in range(count // 2):
        children = tuple(predicate(rng, operand, rng.choice("de")) for _ in range(rng.randint(2, 3)))
        made.append(Connective(rng.choice(("AND", "OR", "XOR")), children))
    return made


def answers(nodes: list[Node], events: list[dict[str, Any]]) -> list[list[int]]:
    return [[id for id, node in enumerate(nodes) if evaluate(node, event) == TRUE] for event in events]


def rows(matched: pa.Table, events: int) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(events)]
    for event, id in zip(*matched.to_pydict().values(), strict=True):
        found[event].append(id)
    return [sorted(ids) for ids in found]


def test_a_cent_of_a_large_amount() -> None:
    """With floats, …67.88 was equal to …67.89."""
    index = Index()
    index.add_many([1, 2, 3], [f"amount {operator} 12345678901234567.89" for operator in ("=", "<", ">")])
    amounts = [Decimal(f"12345678901234567.{cents}") for cents in (88, 89, 90)]
    assert [index.match({"amount": amount}) for amount in amounts] == [[2], [1], [3]]
    for kind in (pa.decimal128(38, 2), pa.decimal256(50, 2)):
        table = pa.table({"amount": pa.array(amounts, kind)})
        assert rows(index.match_batch(table), 3) == [[2], [1], [3]]


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("x = 0.1", 0.1, True),
        ("x = 0.1", Decimal("0.10"), True),
        ("x = 0.1", Decimal("0.1000000000000000055511151231257827"), False),
        ("x > 0.1", Decimal("0.1000000000000000055511151231257827"), True),
        ("x = 0.1000000000000000055511151231257827", 0.1, False),
        ("x = 0.1000000000000000055511151231257827D", 0.1, True),
        ("x = 0.1000000000000000055511151231257827", Decimal("0.1000000000000000055511151231257827"), True),
        ("x = 900719925474099.21", Decimal("900719925474099.20"), False),
        ("x = 900719925474099.21", Decimal("900719925474099.210"), True),
        ("x = 5", Decimal("5.000"), True),
        ("x = 5.0", Decimal("5"), True),
        ("x = 9007199254740993", Decimal("9007199254740993.0"), True),
        ("x = 9007199254740993", Decimal("9007199254740992.0"), False),
        ("x = 9007199254740993", 9007199254740992.0, False),
        ("x > 9223372036854775807", Decimal("9223372036854775807.5"), True),
        ("x < 9223372036854775808", Decimal("9223372036854775807.5"), True),
        ("x = 18446744073709551616", Decimal(2**64), True),
        ("x = 1e23", Decimal("1e23"), True),
        ("x = 1e23", 1e23, True),
        ("x > 1e300", Decimal("1.000000000000000000000000001e300"), True),
        ("x > 0", Decimal("1e-400"), True),
        ("x < double('NaN')", Decimal("1e100"), True),
        ("x = double('NaN')", Decimal("NaN"), True),
        ("x = double('-Infinity')", Decimal("-Infinity"), True),
        ("array_contains(x, 12345678901234567.89)", [1, Decimal("12345678901234567.89")], True),
        ("array_contains(x, 12345678901234567.89)", [1, Decimal("12345678901234567.88")], False),
        ("x <=> 12345678901234567.89", None, False),
        ("NOT x <=> 1234567890123456789012345678901234567.89", None, True),
    ],
    ids=str,
)
def test_numbers_stand_for_what_is_written(text: str, value: object, expected: bool) -> None:
    index = Index()
    index.add(1, text)
    event = {"x": value}
    assert index.match(event) == ([1] if expected else [])
    assert index.match(tamis.Event(event).to_json()) == ([1] if expected else [])
    assert tamis.parse(text).evaluate(event) is expected


def test_every_way_to_write_a_decimal() -> None:
    exact = Decimal("12345678901234567.89")
    text = "x = 12345678901234567.89"
    assert (col("x") == exact) == tamis.parse(text) == tamis.parse(text + "BD")
    assert str(col("x") == exact) == text
    assert tamis.Expression.from_json(tamis.parse(text).to_json()) == tamis.parse(text)
    assert '{"$decimal":"12345678901234567.89"}' in tamis.parse(text).to_json()
    event = tamis.Event({"x": exact, "y": tamis.Interval(exact, 10**18)})
    assert event["x"] == exact
    assert isinstance(event["x"], Decimal)
    assert tamis.Event(event.to_json()) == event
    index = Index()
    index.add(1, text)
    for form in (
        '{"x": 12345678901234567.89}',
        '{"x": {"$decimal": "12345678901234567.890"}}',
        {"x": tamis.Interval(Decimal("12345678901234567.88"), exact)},
        {"x": tamis.Where(">= 12345678901234567.89")},
    ):
        assert index.match(form) == [1], form
    assert index.match({"x": tamis.Interval(0, Decimal("12345678901234567.88"))}) == []
    assert index.match({"x": tamis.Where("> 12345678901234567.89")}) == []


def test_what_cannot_be_exact_is_refused() -> None:
    many = "1." + "3" * 100
    with pytest.raises(tamis.ExpressionError, match="more than 100 digits"):
        tamis.parse(f"x = {many}")
    with pytest.raises(tamis.ExpressionError, match="nearer to zero"):
        tamis.parse("x = 1e-401")
    index = Index(strict=True)
    index.add(1, "x > 1")
    for wrong in (Decimal(many), Decimal("1e-401"), Decimal("1e400")):
        with pytest.raises(tamis.EventError, match="cannot be compared"):
            index.match({"x": wrong})
    assert index.match({"x": Decimal("1." + "3" * 99)}) == [1]


@pytest.mark.parametrize("seed", few(range(2)))
def test_all_ways_to_match_agree_with_fractions(seed: int, tmp_path: Path) -> None:
    """Single events, batches of dicts and of columns, one by one and bit-parallel, and a snapshot."""
    rng = random.Random(seed)
    bases = BASES + WIDE
    scales = (1, 2, 17, 18) if seed % 2 else (2, 20, 30, 40)

    def operand() -> Any:
        exact = near(rng, bases, scales)
        return rng.choice((exact, exact, exact, float(exact), int(exact) if abs(exact) < 2**63 else exact))

    subscriptions = nodes(rng, 120, operand)
    events = [{"d": operand(), "e": operand()} for _ in range(300)]
    events += [{"d": None, "e": operand()} for _ in range(8)]
    expected = answers(subscriptions, events)
    built = Index()
    built.add_many(range(len(subscriptions)), [to_builder(node) for node in subscriptions])
    read = Index()
    read.add_many(range(len(subscriptions)), [to_text(node) for node in subscriptions])
    built.save(tmp_path / "index.tamis")
    for index in (built, read, Index.open(tmp_path / "index.tamis")):
        assert [index.match(event) for event in events[:50]] == expected[:50]
        assert [index.match(tamis.Event(event).to_json()) for event in events[:50]] == expected[:50]
        assert rows(index.match_batch(events), len(events)) == expected
    columns = {
        name: pa.array([event[name] if isinstance(event[name], Decimal) else None for event in events], kind)
        for name, kind in (("d", pa.decimal256(76, 40)), ("e", pa.decimal256(76, 40)))
    }
    only_decimals = [
        {name: value for name, value in event.items() if isinstance(value, Decimal)} for event in events
    ]
    expected = answers(subscriptions, only_decimals)
    table = pa.table(columns)
    for index in (built, Index.open(tmp_path / "index.tamis")):
        assert rows(index.match_batch(table), len(events)) == expected
        # Many events of which all match a lot: bit-parallel pays.
        many = pa.concat_tables([table] * 3)
        assert rows(index.match_batch(many), len(many)) == expected * 3


@pytest.mark.parametrize("algorithm", first_of(tamis.ALGORITHMS, 4))
def test_every_algorithm_agrees_with_fractions(algorithm: str) -> None:
    rng = random.Random(algorithm)
    bases = BASES + WIDE
    operand = lambda: near(rng, bases, (1, 2, 18, 30))  # noqa: E731
    index = Index(algorithm=algorithm)
    held: dict[int, Node] = {}
    for id, node in enumerate(nodes(rng, 120, operand)):
        try:
            index.add(id, to_text(node))
        except tamis.UnsupportedExpressionError:
            continue
        held[id] = node
    assert len(held) > 20
    for _ in range(100):
        event = {"d": operand(), "e": rng.choice((operand(), float(operand())))}
        expected = [id for id, node in held.items() if evaluate(node, event) == TRUE]
        assert index.match(event) == expected, event


def plain(rng: random.Random, scale: int) -> Predicate:
    """In SQL, both sides become one decimal type, so that operands have no more digits behind the point."""
    bases = [base for base in BASES + WIDE if -Decimal(base).as_tuple().exponent <= scale]
    return predicate(
        rng, lambda: near(rng, bases, (scale,)).quantize(Decimal(1).scaleb(-scale), context=EXACT)
    )


def sql(node: Predicate) -> str:
    return to_text(node).replace("BD", "")


@pytest.fixture(scope="module")
def judged() -> tuple[list[Predicate], list[dict[str, Any]]]:
    rng = random.Random(16)
    bases = BASES + WIDE
    values = [near(rng, bases, (2,)).quantize(Decimal("0.01"), context=EXACT) for _ in range(300)]
    return [plain(rng, 2) for _ in range(120)], [{"d": value} for value in values]


def test_duckdb_reads_the_same_numbers(
    duck: Any, judged: tuple[list[Predicate], list[dict[str, Any]]]
) -> None:
    predicates, events = judged
    table = pa.table(
        {"row": range(len(events)), "d": pa.array([e["d"] for e in events], pa.decimal128(38, 2))}
    )
    duck.register("amounts", table)
    index = Index()
    index.add_many(range(len(predicates)), [sql(node) for node in predicates])
    ours = rows(index.match_batch(table), len(events))
    assert ours == answers([*predicates], events)
    for id, node in enumerate(predicates):
        text = sql(node).replace("<=>", "IS NOT DISTINCT FROM")
        selected = duck.sql(f"SELECT row FROM amounts WHERE {text} ORDER BY row").fetchall()
        assert [row for row, ids in enumerate(ours) if id in ids] == [row for (row,) in selected], text


@pytest.mark.spark
def test_spark_reads_the_same_numbers(
    spark: Any, judged: tuple[list[Predicate], list[dict[str, Any]]]
) -> None:
    predicates, events = judged
    table = pa.table(
        {"row": range(len(events)), "d": pa.array([e["d"] for e in events], pa.decimal128(38, 2))}
    )
    frame = spark.createDataFrame(
        [(row, event["d"]) for row, event in enumerate(events)], "row long, d decimal(38, 2)"
    )
    index = Index()
    index.add_many(range(len(predicates)), [sql(node) for node in predicates])
    ours = rows(index.match_batch(table), len(events))
    columns = [f"({sql(node)}) AS c{id}" for id, node in enumerate(predicates)]
    for row in frame.selectExpr("row", *columns).collect():
        theirs = [id for id in range(len(predicates)) if row[f"c{id}"]]
        assert ours[row["row"]] == theirs, events[row["row"]]
