"""Quantifiers over arrays of scalars and of records: random ones agree with DuckDB and Spark SQL."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis import any_of, col, exists, forall

ITEM = pa.struct([("p", pa.int64()), ("s", pa.string()), ("n", pa.list_(pa.int64()))])
SCHEMA = pa.schema(
    [("row", pa.int64()), ("k", pa.int64()), ("l", pa.list_(pa.int64())), ("items", pa.list_(ITEM))]
)
SPARK_SCHEMA = (
    "row bigint, k bigint, l array<bigint>, items array<struct<p: bigint, s: string, n: array<bigint>>>"
)

NUMBERS = st.none() | st.integers(0, 4)
LISTS = st.none() | st.lists(NUMBERS, max_size=3)
ITEMS = st.fixed_dictionaries({"p": NUMBERS, "s": st.none() | st.sampled_from("ab"), "n": LISTS})
ROWS = st.lists(
    st.fixed_dictionaries(
        {"k": NUMBERS, "l": LISTS, "items": st.none() | st.lists(st.none() | ITEMS, max_size=3)}
    ),
    min_size=3,
    max_size=8,
)
SMALL = st.integers(0, 4).map(str)
COMPARISONS = st.sampled_from(["=", "!=", "<", ">="])


def predicates_on(*terms: str) -> st.SearchStrategy[str]:
    """Predicates on one of these terms, or on the outer attribute `k`."""
    compared = st.tuples(st.sampled_from(terms), COMPARISONS, SMALL | st.just("k")).map(" ".join)
    nulls = st.sampled_from(terms).map("{} IS NULL".format)
    return compared | nulls | st.just("k > 2")


def combined(leaves: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Such predicates, and small trees of them."""
    pair = st.tuples(leaves, st.sampled_from(["AND", "OR", "XOR"]), leaves).map(" ".join)
    return leaves | pair | pair.map("NOT ({})".format)


QUANTIFIERS = st.sampled_from(["exists", "forall"])
NESTED = st.tuples(QUANTIFIERS, combined(predicates_on("m", "i.p"))).map(
    lambda x: f"{x[0]}(i.n, m -> {x[1]})"
)
OVER_ITEMS = st.tuples(
    QUANTIFIERS,
    combined(predicates_on("i.p", "i.p + 1") | st.sampled_from(["i.s = 'a'", "i IS NULL"]) | NESTED),
).map(lambda x: f"{x[0]}(items, i -> {x[1]})")
OVER_NUMBERS = st.tuples(QUANTIFIERS, combined(predicates_on("x", "x * 2"))).map(
    lambda x: f"{x[0]}(l, x -> {x[1]})"
)
LEAVES = OVER_ITEMS | OVER_NUMBERS
EXPRESSIONS = (
    LEAVES
    | LEAVES.map("NOT {}".format)
    | LEAVES.map("{} IS NOT TRUE".format)
    | LEAVES.map("{} IS UNKNOWN".format)
    | st.tuples(LEAVES, st.sampled_from(["AND", "OR", "XOR"]), LEAVES | st.just("k < 3")).map(" ".join)
    | st.lists(LEAVES, min_size=3, max_size=3).map(lambda some: f"AT LEAST 2 OF ({', '.join(some)})")
)


def table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([{"row": row, **event} for row, event in enumerate(rows)], SCHEMA)


def without_nulls(value: Any) -> Any:
    """A record as a person would write it."""
    return {name: inner for name, inner in value.items() if inner is not None}


def all_answers(expressions: list[tamis.Expression], rows: list[dict[str, Any]]) -> list[set[int]]:
    """For each event the matches: of a table, of dicts, of JSON, of other engines and by evaluation."""
    index = tamis.Index()
    index.add_many(list(range(len(expressions))), expressions)
    events = table(rows)
    found: list[set[int]] = [set() for _ in rows]
    for match in index.match_batch(events).to_pylist():
        found[match["event"]].add(match["subscription"])
    others = [tamis.Index(algorithm=name) for name in ("auto", "scan", "counting")]
    for number, expression in enumerate(expressions):
        for other in others:
            other.add(number, str(expression))
    for row, event in enumerate(rows):
        present = without_nulls(event)
        truths = {number for number, one in enumerate(expressions) if one.evaluate(present)}
        assert truths == found[row]
        assert set(index.match(present)) == truths
        assert {match.id for match in index.top_k(present, 99)} == truths
        for other in others:
            assert set(other.match(tamis.Event(present).to_json())) == truths
    lines = "\n".join(tamis.Event(without_nulls(event)).to_json() for event in rows)
    assert index.match_batch(lines).sort_by("event").to_pylist() == index.match_batch(events).to_pylist()
    return found


@given(st.lists(EXPRESSIONS, min_size=1, max_size=6), ROWS)
@settings(max_examples=60)
def test_duckdb(duck: Any, texts: list[str], rows: list[dict[str, Any]]) -> None:
    expressions = [tamis.parse(text) for text in texts]
    found = all_answers(expressions, rows)
    duck.register("events", table(rows))
    for number, expression in enumerate(expressions):
        assert tamis.parse(str(expression)) == expression
        assert tamis.Expression.from_json(expression.to_json()) == expression
        sql = f"SELECT row FROM events WHERE {expression.to_sql('duckdb')}"
        expected = {row for (row,) in duck.execute(sql).fetchall()}
        assert {row for row, ids in enumerate(found) if number in ids} == expected, sql


@pytest.mark.spark
def test_spark(spark: Any) -> None:
    drawn: list[tuple[list[str], list[dict[str, Any]]]] = []

    @given(st.lists(EXPRESSIONS, min_size=2, max_size=4), ROWS)
    @settings(max_examples=15, database=None)
    def draw(texts: list[str], rows: list[dict[str, Any]]) -> None:
        drawn.append((texts, rows))

    draw()
    texts = sorted({text for texts, _ in drawn for text in texts}, key=len)[:40]
    rows = [event for _, some in drawn for event in some][:60]
    expressions = [tamis.parse(text) for text in texts]
    found = all_answers(expressions, rows)
    frame = spark.createDataFrame(
        [(row, event["k"], event["l"], event["items"]) for row, event in enumerate(rows)], SPARK_SCHEMA
    )
    columns = [f"({one.to_sql('spark')}) AS c{number}" for number, one in enumerate(expressions)]
    for answer in frame.selectExpr("row", *columns).collect():
        expected = {number for number in range(len(expressions)) if answer[f"c{number}"]}
        assert found[answer["row"]] == expected, [texts[number] for number in found[answer["row"]] ^ expected]


@pytest.mark.spark
def test_the_pipeline(spark: Any) -> None:
    import tamis.spark

    rules = spark.createDataFrame(
        [("dear", "exists(items, i -> i.p > 2 AND i.s = 'a')")], "id string, expression string"
    )
    rows = [(0, [{"p": 3, "s": "a"}]), (1, [{"p": 3, "s": "b"}, {"p": 1, "s": "a"}]), (2, None)]
    events = spark.createDataFrame(rows, "event_id bigint, items array<struct<p: bigint, s: string>>")
    matched = tamis.spark.match(events, rules, key="event_id").collect()
    assert [row["event_id"] for row in matched] == [0]


def test_the_pipeline_reads_nested_records_and_leaves_out_what_no_predicate_reads(spark: Any) -> None:
    import tamis.spark

    events = spark.sql("""
        SELECT 1 AS event_id, array(NULL, named_struct(
            'maker', named_struct('land', 'CH', 'raw', X'00'), 'raw', map(1, 2), 'sizes', array(3, 4),
            'parts', array(named_struct('n', 7, 'raw', map(1, 2))))) AS items
        UNION ALL SELECT 2, array()
    """)
    texts = [
        "exists(items, i -> i.maker.land = 'CH')",
        "exists(items, i -> array_contains(i.sizes, 4))",
        "exists(items, i -> exists(i.parts, p -> p.n > 6))",
        "exists(items, i -> i.maker.land = 'FR')",
        "forall(items, i -> i.maker.land = 'FR')",
    ]
    rules = spark.createDataFrame(list(enumerate(texts)), "id int, expression string")
    matched = tamis.spark.match(events, rules).collect()
    found = {(row["event_id"], row["subscription"]) for row in matched}
    assert found == {(1, 0), (1, 1), (1, 2), (2, 4)}


def test_the_builder_writes_what_text_says() -> None:
    for built, text in [
        (
            exists("tags", lambda t: t.ilike("a%")) & (col("x") > 1),
            "exists(tags, t -> t ILIKE 'a%') AND x > 1",
        ),
        (
            exists(
                "items", lambda i: (i["price"] > col("least")) & exists(i["tags"], lambda t: t == i["sku"])
            ),
            "exists(items, i -> i.price > least AND exists(i.tags, t -> t = i.sku))",
        ),
        (~forall("tags", lambda t: t.is_null()), "NOT forall(tags, t -> t IS NULL)"),
        (any_of("tags", lambda t: t == "a").boost(2), "(any(tags, t -> t = 'a'))^2"),
    ]:
        expression = built if isinstance(built, tamis.Expression) else built.__tamis_expression__()
        assert expression == tamis.parse(text), text


@pytest.mark.parametrize(
    "body", ["(x > 1 XOR x < 3) IS TRUE", "(NOT x <=> 3) IS UNKNOWN", "(x > k XNOR x < 3) IS NOT FALSE"]
)
def test_truth_tests_that_write_weights_stand_inside(body: str) -> None:
    """What is only there for the sake of an XOR weighs nothing; inside a quantifier nothing has a weight."""
    expression = tamis.parse(f"exists(l, x -> {body})")
    assert tamis.parse(str(expression)) == expression
    index = tamis.Index()
    index.add(0, expression)
    index.optimize()
    for array in ([2], [5], [None], [3], [None, 1]):
        alone = [tamis.parse(body).evaluate({"x": x, "k": 2}) for x in array]
        expected = True if True in alone else None if None in alone else False
        assert expression.evaluate({"l": array, "k": 2}) is expected
        assert index.match({"l": array, "k": 2}) == ([0] if expected else [])


def test_changes_one_by_one() -> None:
    """Quantifiers that come and go between events, also those that are asked whether they are false."""
    index, held = tamis.Index(), {}
    event = {"items": [{"p": number, "s": "a"} for number in range(0, 60, 7)], "tags": ["x"]}
    for number in range(60):
        text = f"exists(items, i -> i.p = {number})"
        if number % 5 == 0:
            text = f"NOT {text}"
        if number % 7 == 3:
            text = f"{text} OR forall(tags, t -> t = 'x')"
        index.add(number, text)
        held[number] = tamis.parse(text)
        if number % 3 == 2:
            index.remove(number - 1)
            del held[number - 1]
        expected = sorted(id for id, expression in held.items() if expression.evaluate(event))
        assert index.match(event) == expected
        assert sorted(row["subscription"] for row in index.match_batch([event]).to_pylist()) == expected


def test_a_snapshot_keeps_them(tmp_path: Path) -> None:
    index = tamis.Index()
    index.add("some", "exists(items, i -> i.p > 2)")
    index.add("none", "NOT exists(items, i -> i.p > 2)")
    index.save(tmp_path / "rules.tamis")
    opened = tamis.Index.open(tmp_path / "rules.tamis")
    assert opened.match({"items": [{"p": 3}]}) == ["some"]
    assert opened.match({"items": [{"p": 1}]}) == ["none"]
    assert opened.match({"items": [{"q": 1}]}) == []
    opened.add("more", "exists(items, i -> i.p = 3)")
    opened.remove("none")
    assert opened.match({"items": [{"p": 3}]}) == ["more", "some"]


def test_time_and_sets_inside() -> None:
    index = tamis.Index()
    index.add("old", "exists(visits, v -> v < now() - INTERVAL 1 DAY)")
    index.add("dear", "exists(items, i -> i.p > least)")
    index.add("any", "exists(items, i -> i.p > 1)")
    visits = [datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)]
    assert index.match({"visits": visits}, now=datetime(2026, 1, 1, 12)) == []
    assert index.match({"visits": visits}, now=datetime(2026, 1, 3)) == ["old"]
    event = {"items": [{"p": 5}], "least": tamis.Interval(1, 9)}
    assert index.match(event) == ["any"]
    assert index.match({**event, "least": 4}) == ["any", "dear"]


def test_reasons() -> None:
    index = tamis.Index()
    index.add("a", "exists(items, i -> i.p > 2)")
    assert "exists(items, i -> i.p > 2) is FALSE" in str(index.explain("a", {"items": [{"p": 1}]}))
    assert index.explain("a", {"items": [{"p": 3}]}).matches
    assert "needs to be" in str(index.why_not("a", {"items": [{"p": 1}]}))


def test_relations_treat_them_as_independent() -> None:
    one, two = tamis.parse("exists(a, x -> x > 1) AND y > 5"), tamis.parse("exists(a, x -> x > 1)")
    assert two.covers(one)
    assert not one.covers(two)
    assert one.is_disjoint(tamis.parse("y < 3"))
    assert tamis.relate.example_of_overlap(one, two) is None


def test_a_schema() -> None:
    index = tamis.Index(schema={"items": "array<struct<p:int>>", "k": "int", "tags": "array<string>"})
    index.add("a", "exists(items, i -> i.p > k) OR exists(tags, t -> t = 'x')")
    assert index.match({"items": [{"p": 3}], "k": 2}) == ["a"]
    with pytest.raises(tamis.ExpressionError, match="not in the schema"):
        index.add("b", "exists(itms, i -> i.p > 1)")


def test_records_in_events_come_back() -> None:
    event = tamis.Event({"items": [{"p": 1, "in": {"q": [1, 2]}}, None]})
    assert event["items"] == [{"in": {}, "in.q": [1, 2], "p": 1}, None]
    assert tamis.Event(event.to_json()) == event
    assert tamis.parse("exists(items, i -> exists(i.in.q, q -> q = 2))").evaluate(event) is True
    deep: Any = 1
    for _ in range(2000):
        deep = [{"a": deep}]
    with pytest.raises(tamis.TamisError, match="nested"):
        tamis.Event({"a": deep})


def test_many_are_found_without_trying_each() -> None:
    """With 3,000 quantifiers over one array, an event says of a handful that they are true."""
    index = tamis.Index()
    index.add_many(
        range(3000), [f"exists(items, i -> i.sku = 'A{n}' AND i.p > {n % 7})" for n in range(3000)]
    )
    event = {"items": [{"sku": f"A{n}", "p": 5} for n in (3, 6, 13, 2999)]}
    assert index.match(event) == [3, 2999]
    assert index.stats()["computed_terms"] == 3000


# --- elements of Arrow tables, which are looked up column by column -------------------------------

ITEM_RULES = [
    "exists(items, i -> i.p = 1)",
    "forall(items, i -> i.p > 0)",
    "NOT exists(items, i -> i.p = 1 AND i.s = 'a')",
    "exists(items, i -> i.p = 1) IS UNKNOWN",
    "any(items, i -> i.p > k)",
    "exists(items, i -> i.p + 1 = 2 XOR i.s = 'b')",
    "exists(items, i -> i IS NULL)",
    "exists(items, i -> i.p IS NULL AND k > 1)",
    "exists(items, i -> exists(i.n, m -> m > i.p AND m < k))",
    "forall(items, i -> forall(i.n, m -> m IS NOT NULL))",
    "exists(items, i -> i.of.x > 1.5)",
    "exists(items, i -> i.of IS NULL)",
    "exists(items, i -> exists(l, m -> m = i.p))",
    "exists(items, i -> i.at > current_timestamp() - INTERVAL 1 DAY)",
    "exists(l, m -> m = 2) XOR k = 2",
    "forall(l, m -> m > k)",
    "ANY(l) = 1 AND ANY(k) = 2",
    "exists(items, i -> startswith(lower(i.s), 'a') AND ANY(all_strings()) = i.s)",
    "items IS NULL",
    "size(items) = 2",
]
MOMENT = datetime(2026, 1, 31, 12, tzinfo=UTC)
ITEM_ROWS: list[dict[str, Any]] = [
    {"k": 2, "l": [1, 2], "items": [{"p": 1, "s": "a", "n": [1, 2], "of": {"x": 2.5}, "at": MOMENT}]},
    {"k": None, "l": [], "items": []},
    {"k": 1, "l": None, "items": None},
    {"k": 3, "l": [None], "items": [None]},
    {"k": 2, "l": [2, None], "items": [{"p": None, "s": "B", "n": None, "of": None, "at": None}, None]},
    {"k": 4, "l": [4], "items": [{"p": 2, "s": "A", "n": [3, None], "of": {"x": None}, "at": None}] * 2},
    {
        "k": 0,
        "l": [0, 1, 2],
        "items": [{"p": 1, "s": "b", "n": [], "of": {"x": 1.0}, "at": datetime(2026, 1, 1)}],
    },
]
INNER = pa.struct(
    [
        ("p", pa.int64()),
        ("s", pa.string()),
        ("n", pa.list_(pa.int64())),
        ("of", pa.struct([("x", pa.float64())])),
        ("at", pa.timestamp("us", "UTC")),
    ]
)


def items_table(rows: list[dict[str, Any]], items: pa.DataType) -> pa.Table:
    fields = [("k", pa.int64()), ("l", pa.list_(pa.int64())), ("items", items)]
    return pa.Table.from_pylist(rows, pa.schema(fields))


def listed(table: pa.Table, events: int) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(events)]
    for event, rule in zip(table["event"].to_pylist(), table["subscription"].to_pylist(), strict=True):
        found[event].append(rule)
    return found


@pytest.mark.parametrize(
    "items",
    [
        pa.list_(INNER),
        pa.large_list(INNER),
        pa.list_view(INNER),
        pa.list_(pa.struct([*INNER][1:2] + [*INNER][:1] + [*INNER][2:])),
        pa.list_(
            pa.struct([("s", pa.dictionary(pa.int8(), pa.string())), *[f for f in INNER if f.name != "s"]])
        ),
        pa.list_(pa.struct([("s", pa.string_view()), ("p", pa.int8()), *[*INNER][2:]])),
    ],
    ids=str,
)
def test_elements_of_tables(items: pa.DataType) -> None:
    """As the same events as dicts say, however the lists lie in memory: whole, sliced, in many blocks."""
    index = tamis.Index()
    index.add_many(range(len(ITEM_RULES)), ITEM_RULES)
    expected = [index.match(row, now=MOMENT) for row in ITEM_ROWS]
    for rule, text in enumerate(ITEM_RULES):
        truths = [tamis.parse(text).evaluate(row) for row in ITEM_ROWS] if "current" not in text else []
        assert all((rule in found) is (truth is True) for found, truth in zip(expected, truths, strict=False))
    table = items_table(ITEM_ROWS, items)
    assert listed(index.match_batch(table, now=MOMENT), len(ITEM_ROWS)) == expected
    assert index.count_batch(table, now=MOMENT).to_pylist() == [len(found) for found in expected]
    sliced = index.match_batch(table.slice(2, 4), now=MOMENT)
    assert listed(sliced, 4) == expected[2:6]
    many = pa.concat_tables([table] * 150).combine_chunks()
    assert listed(index.match_batch(many, now=MOMENT), many.num_rows) == expected * 150
    index.optimize()
    assert listed(index.match_batch(many.slice(3), now=MOMENT), many.num_rows - 3) == (expected * 150)[3:]


def test_elements_of_tables_with_a_schema() -> None:
    """Text in the records of a table is read as the declared timestamp, and so are arrays of text."""
    index = tamis.Index(
        schema={"items": "array<struct<at:timestamp,p:int>>", "times": "array<timestamp>", "k": "int"}
    )
    index.add(1, "exists(items, i -> i.at > TIMESTAMP '2026-01-01 00:00:00' AND i.p > k)")
    index.add(2, "forall(times, t -> t < TIMESTAMP '2026-01-01 00:00:00')")
    rows: list[dict[str, Any]] = [
        {"k": 1, "items": [{"at": "2026-02-01", "p": 2}], "times": ["2025-01-01T00:00:00Z"]},
        {"k": 1, "items": [{"at": "2025-02-01", "p": 2}, {"at": "x", "p": 2}], "times": ["2027-01-01"]},
        {"k": None, "items": [{"at": "2026-02-01", "p": 2}], "times": []},
    ]
    expected = [index.match(row) for row in rows]
    assert expected == [[1, 2], [], [2]]
    assert listed(index.match_batch(pa.Table.from_pylist(rows)), 3) == expected


def test_what_cannot_be_read_in_elements_of_tables() -> None:
    """A field that does not fit is absent from its record; an array of such numbers is absent and counted."""
    index = tamis.Index()
    index.add(1, "exists(items, i -> i.p IS NULL)")
    index.add(2, "exists(big, x -> x > 0)")
    index.add(3, "big IS NULL")
    table = pa.table(
        {
            "items": pa.array([[{"p": 2**64 - 1}], [{"p": 1}]], pa.list_(pa.struct([("p", pa.uint64())]))),
            "big": pa.array([[1, 2**64 - 1], [1]], pa.list_(pa.uint64())),
        }
    )
    with pytest.warns(tamis.ValueWarning):
        assert listed(index.match_batch(table), 2) == [[1, 3], [2]]


def test_array_operators_without_case() -> None:
    """`lower` around an array is asked of its elements, with the three-valued rules of the operators."""
    cases = [
        ("array_contains(lower(tags), 'new')", "exists(tags, element -> lower(element) = 'new')"),
        ("NOT array_contains(upper(tags), 'NEW')", "NOT exists(tags, element -> upper(element) = 'NEW')"),
        (
            "arrays_overlap(lower(a.tags), ARRAY('new', NULL))",
            "exists(a.tags, element -> lower(element) IN ('new', NULL))",
        ),
        ("arrays_overlap(lower(tags), ARRAY())", "arrays_overlap(tags, ARRAY())"),
    ]
    for text, printed in cases:
        assert str(tamis.parse(text)) == printed
        assert tamis.parse(printed) == tamis.parse(text)
    assert tamis.Expression.from_json(
        '{"term": "lower(tags)", "operator": "array_contains", "operands": ["new"]}'
    ) == tamis.parse(cases[0][0])
    assert col("tags").lower().array_contains("new") == tamis.parse(cases[0][0])
    plain = tamis.parse("array_contains(tags, 'new')")
    for tags in (["new"], ["hot"], [], [None], ["new", None], "new", None, [1], 5):
        assert tamis.parse(cases[0][0]).evaluate({"tags": tags}) is plain.evaluate({"tags": tags}), tags
    assert tamis.parse(cases[0][0]).evaluate({"tags": ["NeW"]}) is True
    for wrong in ("array_contains(length(tags), 3)", "arrays_overlap(lower(concat(a, b)), ARRAY('x'))"):
        with pytest.raises(
            tamis.ExpressionError, match=r"takes an array, but .* is a (number|string)"
        ) as error:
            tamis.parse(wrong)
        assert error.value.hint is not None


def test_a_weight_of_nothing_inside_is_dropped() -> None:
    """It would count nothing, so the text without it is the same term; any other weight is refused."""
    for text in ("exists(t, e -> e > 1 ^ 0)", "exists(t, e -> (e > 1)^0.0 AND (e < 5)^0)", "ANY(t) > 1 ^ 0"):
        parsed = tamis.parse(text)
        assert "^" not in str(parsed).replace(")^0", "") or text.startswith("ANY")
        assert tamis.parse(str(parsed)) == parsed
        assert tamis.Expression.from_json(parsed.to_json()) == parsed
