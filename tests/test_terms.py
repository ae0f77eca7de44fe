"""Computed terms: random ones agree with DuckDB and Spark SQL, whichever way the events come in."""

from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis import call, col, term

EPOCH = datetime(2026, 3, 28)
NOW = datetime(2026, 5, 31, 17, 45, 12, 345678)
SCHEMA = pa.schema(
    [
        ("row", pa.int64()),
        ("i", pa.int64()),
        ("j", pa.int64()),
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("s", pa.string()),
        ("u", pa.string()),
        ("t", pa.timestamp("us")),
        ("l", pa.list_(pa.int64())),
        ("b", pa.bool_()),
    ]
)


SPARK_SCHEMA = (
    "row bigint, i bigint, j bigint, x double, y double, s string, u string, "
    "t timestamp, l array<bigint>, b boolean"
)


def rows() -> st.SearchStrategy[list[dict[str, Any]]]:
    integers = st.none() | st.integers(-6, 6) | st.sampled_from([2**31, -(2**31)])
    floats = st.none() | st.integers(-8, 8).map(lambda quarters: quarters / 4)
    texts = st.none() | st.sampled_from(["", "a", "A b ", " Straße", "12", "-3", "true", "x.5", "日本語"])
    times = st.none() | st.integers(0, 60 * 24 * 400).map(lambda minutes: EPOCH + timedelta(minutes=minutes))
    lists = st.none() | st.lists(st.none() | st.integers(-3, 3), max_size=3)
    row = st.fixed_dictionaries(
        {
            "i": integers,
            "j": integers,
            "x": floats,
            "y": floats,
            "s": texts,
            "u": texts,
            "t": times,
            "l": lists,
            "b": st.none() | st.booleans(),
        }
    )
    return st.lists(row, min_size=4, max_size=12)


def infix(symbols: list[str], left: Any, right: Any) -> st.SearchStrategy[str]:
    return st.tuples(left, st.sampled_from(symbols), right).map(lambda parts: f"({' '.join(parts)})")


def applied(names: list[str], *arguments: Any) -> st.SearchStrategy[str]:
    return st.tuples(st.sampled_from(names), *arguments).map(
        lambda parts: f"{parts[0]}({', '.join(parts[1:])})"
    )


SMALL = st.integers(-3, 3).map(str)
PLACES = st.integers(1, 4).map(str)
ZONES = st.sampled_from(["'Europe/Berlin'", "'America/New_York'", "'Asia/Kolkata'", "'UTC'"])
INTERVALS = st.tuples(
    st.integers(0, 40), st.sampled_from(["YEAR", "MONTHS", "WEEK", "DAYS", "HOUR", "MINUTE", "SECONDS"])
).map(lambda parts: f"INTERVAL {parts[0]} {parts[1]}")
TIMES = st.deferred(
    lambda: (
        st.sampled_from(["t", "t", "current_timestamp()", "current_date()"])
        | applied(["date_trunc"], st.sampled_from(["'hour'", "'DAY'", "'week'", "'quarter'"]), TIMES)
        | applied(["from_utc_timestamp"], TIMES, ZONES)
        | st.tuples(TIMES, st.sampled_from("+-"), INTERVALS).map(" ".join).map("({})".format)
    )
)
TEXTS = st.deferred(
    lambda: (
        st.sampled_from(["s", "u"])
        | applied(["lower", "upper", "trim"], TEXTS)
        | applied(["concat"], TEXTS, st.just("'-'"), TEXTS)
        | applied(["substring"], TEXTS, PLACES, PLACES)
        | applied(["coalesce"], TEXTS, TEXTS)
        | INTEGERS.map(lambda text: f"CAST({text} AS string)")
    )
)
INTEGERS = st.deferred(
    lambda: (
        st.sampled_from(["i", "j"])
        | infix(["+", "-", "*", "%"], INTEGERS, INTEGERS | SMALL)
        | applied(["abs"], INTEGERS)
        | applied(["length"], TEXTS)
        | applied(["size"], st.just("l"))
        | applied(["element_at"], st.just("l"), PLACES)
        | applied(
            ["year", "quarter", "month", "day", "dayofweek", "dayofyear", "hour", "minute", "second"], TIMES
        )
        | TEXTS.map(lambda text: f"CAST({text} AS int)")
        | applied(["timestampdiff"], st.sampled_from(["DAY", "HOUR", "MINUTE", "MICROSECOND"]), TIMES, TIMES)
    )
)
FLOATS = st.deferred(
    lambda: (
        st.sampled_from(["x", "y"])
        | infix(["+", "-", "*"], FLOATS, FLOATS | INTEGERS)
        | infix(["/"], FLOATS | INTEGERS, FLOATS | INTEGERS)
        | applied(["abs", "floor", "ceil"], FLOATS)
        | INTEGERS.map(lambda text: f"CAST({text} AS float)")
    )
)
PREDICATES = (
    infix(["=", "!=", "<", "<=", ">", ">=", "<=>"], INTEGERS, INTEGERS | SMALL)
    | infix(["=", "<", ">="], FLOATS, FLOATS | st.just("0.5"))
    | infix(["=", "<", "<=>"], TEXTS, TEXTS | st.just("'a'"))
    | infix(["=", ">"], TIMES, TIMES | st.just("TIMESTAMP '2026-04-01 12:00:00'"))
    | st.tuples(TIMES, TIMES, INTERVALS.filter(lambda text: "YEAR" not in text and "MONTH" not in text)).map(
        lambda parts: f"{parts[0]} - {parts[1]} < {parts[2]}"
    )
    | INTEGERS.map(lambda text: f"{text} IN (0, 1, 12)")
    | INTEGERS.map(lambda text: f"{text} BETWEEN i AND 5")
    | TEXTS.map(lambda text: f"{text} LIKE 'a%'")
    | TEXTS.map(lambda text: f"{text} IS NULL")
)
EXPRESSIONS = st.one_of(
    PREDICATES,
    PREDICATES.map(lambda text: f"NOT {text}"),
    st.tuples(PREDICATES, st.sampled_from(["AND", "OR", "XOR"]), PREDICATES).map(" ".join),
)


def readable(texts: list[str]) -> list[tamis.Expression]:
    """Those that are expressions: some are nested too deeply, some name no attribute."""
    expressions = []
    for text in texts:
        try:
            expressions.append(tamis.parse(text))
        except tamis.ExpressionError as error:
            if "nested deeper" not in str(error) and "longer than the limit" not in str(error):
                raise
    return expressions


def all_answers(expressions: list[tamis.Expression], events: pa.Table) -> list[set[int]]:
    """For each event the matches: of a table, and the same of dicts, of JSON, and of a snapshot."""
    index = tamis.Index()
    index.add_many(list(range(len(expressions))), expressions)
    found: list[set[int]] = [set() for _ in range(len(events))]
    for match in index.match_batch(events, now=NOW).to_pylist():
        found[match["event"]].add(match["subscription"])
    one_by_one = tamis.Index()
    for number, expression in enumerate(expressions):
        one_by_one.add(number, str(expression))
    for row, event in enumerate(events.to_pylist()):
        present = {name: value for name, value in event.items() if value is not None}
        assert set(index.match(present, now=NOW)) == found[row]
        assert set(one_by_one.match(tamis.Event(present), now=NOW)) == found[row]
        truths = {number for number, one in enumerate(expressions) if one.evaluate(present, now=NOW)}
        assert truths == found[row]
    return found


def table(events: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([{"row": row, **event} for row, event in enumerate(events)], SCHEMA)


@given(st.lists(EXPRESSIONS, min_size=1, max_size=8), rows())
@settings(max_examples=120)
def test_duckdb(duck: Any, texts: list[str], events: list[dict[str, Any]]) -> None:
    expressions, given_events = readable(texts), table(events)
    found = all_answers(expressions, given_events)
    duck.register("events", given_events)
    for number, expression in enumerate(expressions):
        sql = f"SELECT row FROM events WHERE {expression.to_sql('duckdb', now=NOW)}"
        expected = {row for (row,) in duck.execute(sql).fetchall()}
        assert {row for row, ids in enumerate(found) if number in ids} == expected, sql


@pytest.mark.spark
@pytest.mark.thorough
def test_spark(spark: Any) -> None:
    """Many expressions in one query: a query costs more than what it computes."""
    drawn: list[tuple[list[str], list[dict[str, Any]]]] = []

    @given(st.lists(EXPRESSIONS, min_size=4, max_size=8), rows())
    @settings(max_examples=30, database=None)
    def draw(texts: list[str], events: list[dict[str, Any]]) -> None:
        drawn.append((texts, events))

    draw()
    expressions = readable(sorted({text for texts, _ in drawn for text in texts}, key=len)[:120])
    events = table([event for _, some in drawn for event in some][:150])
    found = all_answers(expressions, events)
    frame = spark.createDataFrame([tuple(event.values()) for event in events.to_pylist()], SPARK_SCHEMA)
    for start in range(0, len(expressions), 40):
        some = expressions[start : start + 40]
        columns = [f"({one.to_sql('spark', now=NOW)}) AS c{number}" for number, one in enumerate(some)]
        for answer in frame.selectExpr("row", *columns).collect():
            expected = {start + number for number in range(len(some)) if answer[f"c{number}"]}
            here = {number for number in found[answer["row"]] if start <= number < start + 40}
            assert here == expected, [str(expressions[number]) for number in here ^ expected]


def test_the_builder_writes_what_text_says() -> None:
    for built, text in [
        (col("price") * col("quantity") > 1000, "price * quantity > 1000"),
        (1000 - col("a") / 2 <= col("b") % 3, "1000 - a / 2 <= b % 3"),
        (-col("a") == abs(col("b")), "-a = abs(b)"),
        (col("a") != col("b"), "a != b"),
        (col("a").eq_null_safe(col("b")), "a <=> b"),
        (col("name").lower().startswith("a"), "startswith(lower(name), 'a')"),
        (col("x").cast("int").isin(1, 2), "CAST(x AS int) IN (1, 2)"),
        (term("hour(ts)").between(8, 18), "hour(ts) BETWEEN 8 AND 18"),
        (call("coalesce", col("a"), "none") == "x", "coalesce(a, 'none') = 'x'"),
        (col("a").length() > 2, "length(a) > 2"),
        (col("`odd").upper() == "X", "upper(```odd`) = 'X'"),
    ]:
        assert built == tamis.parse(text), text


def test_what_the_builder_refuses() -> None:
    for build, message in [
        (lambda: col("a").lower()["b"], "has no fields"),
        (lambda: col("a").like(col("b")), "takes values only"),
        (lambda: call("lowr", col("a")), "there is no function"),
        (lambda: call("lower", col("a"), col("b")), "takes one argument"),
        (lambda: term("5 + 3"), "at least one attribute"),
        (lambda: col("a") + object(), "object"),
    ]:
        with pytest.raises(tamis.TamisError, match=message):
            build()


def test_terms_nobody_uses_are_not_computed() -> None:
    index = tamis.Index()
    index.add("a", "lower(name) = 'ada' OR length(lower(name)) > 9")
    index.add("b", "lower(name) = 'bob'")
    assert index.stats()["computed_terms"] == 2
    index.remove("a")
    assert index.stats()["computed_terms"] == 1
    index.remove("b")
    assert index.stats()["computed_terms"] == 0
    assert index.match({"name": "Ada"}) == []


def test_weights_name_terms_by_their_text() -> None:
    index = tamis.Index()
    index.add("a", "lower(name) = 'ada' AND age > 30", weights={"lower(name)": 5.0})
    assert index.top_k({"name": "ADA", "age": 31}, 1, score="relevance")[0].score == 6.0


def test_explanations_show_the_computed_value() -> None:
    index = tamis.Index()
    index.add("a", "price * quantity > 1000")
    event = {"price": 2.5, "quantity": 4}
    assert "price * quantity is 10.0" in str(index.explain("a", event))
    assert "price * quantity is 10.0; needs to be > 1000" in str(index.why_not("a", event))


def test_a_schema_checks_the_arguments() -> None:
    index = tamis.Index(schema={"name": "string", "age": "int", "ts": "timestamp"})
    index.add("fine", "lower(name) = 'a' AND hour(ts) < 5 AND age + 1 > 3")
    for text, message in [
        ("lower(age) = 'a'", "takes a string"),
        ("lower(nme) = 'a'", "not in the schema"),
        ("age + 1 = 'a'", "is a number"),
    ]:
        with pytest.raises(tamis.ExpressionError, match=message):
            index.add("bad", text)
    assert index.match({"name": "A", "ts": "2026-01-01 01:00:00", "age": 5}) == ["fine"]


def test_terms_that_are_neither_true_nor_false_do_not_stand_alone() -> None:
    """No form writes what the text cannot: it would not be read again."""
    for make in (
        lambda: col("x").lower() & col("b"),
        lambda: tamis.Expression.from_json('{"term": "x + 1", "operator": "truth"}'),
        lambda: tamis.Expression.from_json('{"attribute": "current_timestamp()", "operator": "truth"}'),
        lambda: tamis.parse("lower(x) IS NOT TRUE"),
        lambda: tamis.parse("(x + 1) IS UNKNOWN"),
    ):
        with pytest.raises(tamis.ExpressionError, match="neither true nor false"):
            make()


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [("a = '\ud800'", 1, 6), ("a > 1\nAND é = '\udfff'", 2, 10), ("\ud83d", 1, 1)],
)
def test_text_that_is_not_unicode_is_refused_with_its_place(text: str, line: int, column: int) -> None:
    index = tamis.Index()
    for refuse in (
        lambda: tamis.parse(text),
        lambda: index.add(1, text),
        lambda: index.add_many([1], [text]),
        lambda: tamis.Expression.from_json(text),
        lambda: tamis.term(text),
    ):
        with pytest.raises(tamis.ExpressionError, match="lone surrogate") as error:
            refuse()
        assert (error.value.line, error.value.column) == (line, column)
        assert error.value.hint is not None
    with pytest.raises(tamis.ExpressionError, match="lone surrogate"):
        col("\ud800")


def test_thresholds_in_python_are_numbers_of_expressions() -> None:
    for count in (-1, 2**64, 1.5, "2"):
        with pytest.raises(tamis.ExpressionError, match="not a number of expressions"):
            tamis.at_least(count, col("a"), col("b"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "event", "words"),
    [
        ("size(x) = 2", {"x": "ab"}, "is a string in an event, but predicates compare it with an array"),
        ("array_contains(x, 1)", {"x": 5}, "with an array"),
        ("x = 'a'", {"x": [1]}, "is an array in an event, but predicates compare it with a string"),
        ("x = 1 OR array_contains(x, 1)", {"x": "a"}, "with a number or an array"),
    ],
)
def test_warnings_name_kinds_with_their_articles(text: str, event: dict[str, Any], words: str) -> None:
    index = tamis.Index()
    index.add(1, text)
    with pytest.warns(tamis.ValueWarning, match=words):
        index.match(event)


def test_messages_about_depth_name_the_limit_that_was_met() -> None:
    for text, words in (
        ("lower(" * 100 + "a" + ")" * 100 + " = 'x'", "functions are nested deeper than 32"),
        ("+" * 300 + "a > 1", "functions are nested deeper than 32"),
        ("exists(t, x -> " * 9 + "x" + ")" * 9, "quantifiers are nested deeper than 8"),
        ("(" * 300 + "a" + ")" * 300, "nested deeper than 256"),
        ("concat() = ''", "at least one argument, not 0"),
        ("date_trunc('century', t) > t", 'no unit "century"'),
        ("a\u200b > 1", "the character .u.200b."),
        ("\ufeffa > 1", "the character .u.feff."),
    ):
        with pytest.raises(tamis.ExpressionError, match=words) as error:
            tamis.parse(text)
        assert (error.value.line, error.value.column) != (None, None)
