"""Keywords: predicates on every string of an event agree with the oracle, however the event is given."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
import tamis
from events import to_dict
from oracle import ALL_STRINGS, AtLeast, Connective, Interval, IsTruth, Node, Not, Predicate, Quantified
from strategies import like_patterns, regexes
from tamis import all_strings, any_of, col
from writer import to_text

TEXTS = st.sampled_from(["", "a", "A", "ab", "Ba", "b", "é", "a%b", "4624"])
NUMBERS = st.integers(0, 5)

TESTS = (
    st.tuples(st.sampled_from(["LIKE", "ILIKE"]), like_patterns.map(lambda text: (text,)))
    | st.tuples(st.just("RLIKE"), regexes.map(lambda text: (text,)))
    | st.tuples(
        st.sampled_from(["=", "<", ">=", "startswith", "endswith", "contains"]), TEXTS.map(lambda x: (x,))
    )
    | st.tuples(st.just("IN"), st.lists(TEXTS, max_size=3).map(tuple))
    | st.just(("IS NULL", ()))
    | st.just((">", (5,)))
)
INNER = st.builds(lambda test, negated: Predicate("s", *test, negated=negated), TESTS, st.booleans())
BODIES = INNER | st.builds(
    lambda name, parts: Connective(name, tuple(parts)),
    st.sampled_from(["AND", "OR", "XOR"]),
    st.lists(INNER, min_size=2, max_size=3),
)
OUTER = st.builds(lambda limit: Predicate("n", ">", (limit,)), NUMBERS)
LEAVES: st.SearchStrategy[Node] = BODIES.map(
    lambda body: Predicate(Quantified("exists", ALL_STRINGS, "s", body), "truth")
)
EXPRESSIONS: st.SearchStrategy[Node] = (
    LEAVES
    | LEAVES.map(Not)
    | st.builds(IsTruth, LEAVES, st.sampled_from(["TRUE", "FALSE", "UNKNOWN"]), st.booleans())
    | st.builds(
        lambda name, one, two: Connective(name, (one, two)),
        st.sampled_from(["AND", "OR", "XOR", "XNOR"]),
        LEAVES,
        LEAVES | OUTER,
    )
    | st.lists(LEAVES, min_size=3, max_size=3).map(lambda some: AtLeast(2, tuple(some)))
)

# As typed as a table is, so that every form of an event can hold it.
ITEM = pa.struct({"w": pa.string(), "deep": pa.struct({"l": pa.list_(pa.string())})})
SCHEMA = pa.schema(
    {
        "n": pa.int64(),
        "s": pa.string(),
        "l": pa.list_(pa.string()),
        "nested": pa.list_(pa.list_(pa.string())),
        "r": pa.struct({"x": pa.string(), "y": pa.struct({"z": pa.string()})}),
        "items": pa.list_(ITEM),
    }
)
MAYBE = TEXTS | st.none()
LISTS = st.lists(MAYBE, max_size=2) | st.none()
RECORDS = st.fixed_dictionaries({"x": MAYBE, "y": st.fixed_dictionaries({"z": MAYBE})})
ITEMS = st.fixed_dictionaries({"w": MAYBE, "deep": st.fixed_dictionaries({"l": LISTS})})
EVENTS = st.fixed_dictionaries(
    {},
    optional={
        "n": NUMBERS,
        "s": TEXTS,
        "l": LISTS,
        "nested": st.lists(st.lists(MAYBE, max_size=2), max_size=2),
        "r": RECORDS,
        "items": st.lists(ITEMS, max_size=2),
    },
)
# What a table cannot hold in a column.
INTERVALS = st.sampled_from([Interval("a", "b"), Interval(1, 3)])
ODD_EVENTS = st.fixed_dictionaries(
    {"odd": INTERVALS}, optional={"s": TEXTS, "n": NUMBERS | INTERVALS, "l": LISTS}
)


def index_of(nodes: list[Node], **options: Any) -> tamis.Index:
    index = tamis.Index(**options)
    for number, node in enumerate(nodes):
        index.add(number, to_text(node))
    return index


def truths(nodes: list[Node], event: dict[str, Any]) -> list[int]:
    return [number for number, node in enumerate(nodes) if oracle.evaluate(node, event).can_be_true]


def by_event(table: Any, events: int) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(events)]
    for row in table.to_pylist():
        found[row["event"]].append(row["subscription"])
    return found


@given(st.lists(EXPRESSIONS, min_size=1, max_size=8), st.lists(EVENTS, min_size=1, max_size=6))
@settings(max_examples=60)
def test_every_form_of_events(nodes: list[Node], events: list[dict[str, Any]]) -> None:
    index = index_of(nodes)
    expected = [truths(nodes, event) for event in events]
    for event, ids in zip(events, expected, strict=True):
        text = json.dumps(event, ensure_ascii=False)
        for form in (
            event,
            tamis.Event(event),
            text,
            json.dumps(event).encode(),
            tamis.Event(event).to_json(),
        ):
            assert index.match(form) == ids, form
        assert index.count(event) == len(ids)
        assert sorted(match.id for match in index.top_k(text, 99)) == ids
        for number, node in enumerate(nodes):
            expression = index[number].expression
            truth = {oracle.TRUE: True, oracle.FALSE: False, oracle.UNDEFINED: None}[
                oracle.evaluate(node, event)
            ]
            assert expression.evaluate(event) is truth
            assert index.explain(number, text).matches is (number in ids)
            assert (index.why_not(number, event).answer == "matches") is (number in ids)
            assert tamis.parse(str(expression)) == expression
            assert tamis.Expression.from_json(expression.to_json()) == expression
    table = pa.Table.from_pylist(events, SCHEMA)
    lines = "\n".join(map(json.dumps, events))
    for batch in (table, table.to_reader(2), events, lines, [tamis.Event(event) for event in events]):
        found = index.match_batch(batch)
        found = found.read_all() if isinstance(found, pa.RecordBatchReader) else found
        assert by_event(found, len(events)) == expected


@given(st.lists(EXPRESSIONS, min_size=1, max_size=8), st.lists(ODD_EVENTS, min_size=1, max_size=4))
@settings(max_examples=40)
def test_events_with_intervals(nodes: list[Node], events: list[dict[str, Any]]) -> None:
    index = index_of(nodes)
    for event in events:
        ids, given_event = truths(nodes, event), to_dict(event)
        for form in (given_event, tamis.Event(given_event), tamis.Event(given_event).to_json()):
            assert index.match(form) == ids
        assert by_event(index.match_batch([given_event]), 1) == [ids]


@pytest.mark.parametrize("algorithm", ["scan", "a-tree", "counting", "boolean"])
def test_other_algorithms(algorithm: str) -> None:
    @given(st.lists(EXPRESSIONS.filter(lambda node: not _has_xor(node)), min_size=1, max_size=6), EVENTS)
    @settings(max_examples=15)
    def check(nodes: list[Node], event: dict[str, Any]) -> None:
        assert index_of(nodes, algorithm=algorithm).match(event) == truths(nodes, event)

    check()


def _has_xor(node: Node) -> bool:
    return isinstance(node, Connective) and node.name.startswith("X")


def test_blocks_of_events() -> None:
    """Enough events, and matches of each, for whole blocks and a bit per event."""
    index = tamis.Index()
    texts = [f"ANY(all_strings()) LIKE '%{n % 10}%' AND n >= {n // 10}" for n in range(300)]
    index.add_many(range(300), texts)
    events = [{"n": n % 40, "r": {"x": str(n)}, "l": [f"-{n // 7}-"]} for n in range(1500)]
    expected = [
        [
            number
            for number in range(300)
            if event["n"] >= number // 10 and any(str(number % 10) in text for text in oracle.strings(event))
        ]
        for event in events
    ]
    table = pa.Table.from_pylist(events)
    assert by_event(index.match_batch(table), 1500) == expected
    assert by_event(index.match_batch("\n".join(map(json.dumps, events))), 1500) == expected
    assert index.ask_batch(tamis.Query("count"), table).to_pylist() == [len(ids) for ids in expected]


def test_kinds_of_columns() -> None:
    """Strings in columns of every layout, and none in names, keys and bytes."""
    index = tamis.Index()
    index.add("x", "ANY(all_strings()) = 'x'")
    index.add("none", "NOT ANY(all_strings()) = 'x'")
    strings = pa.array(["x", None, "y"])
    lists = pa.array([["x"], None, ["y"]])
    pairs = [[("k", "x")], None, [("x", "y")]]
    ends = pa.array([1, 2, 3], pa.int32())
    for column in (
        strings,
        strings.cast(pa.large_string()),
        strings.cast(pa.string_view()),
        strings.dictionary_encode(),
        pa.RunEndEncodedArray.from_arrays(ends, strings),
        lists,
        lists.cast(pa.large_list(pa.string())),
        pa.array([["x"], None, ["y"]], pa.list_view(pa.string())),
        pa.array([["x"], None, ["y"]], pa.list_(pa.string(), 1)),
        pa.array([[["x"]], None, [["y"]]]),
        pa.array([{"x": "x"}, None, {"x": "y"}]),
        pa.array([[{"a": [["x"]]}], None, [{"a": [["y"]]}]]),
        pa.array(pairs, pa.map_(pa.string(), pa.string())),
        pa.array([[(1, "x")], None, [(2, "y")]], pa.map_(pa.int64(), pa.string())),
        pa.array([[("k", ["x"])], None, [("x", ["y"])]], pa.map_(pa.string(), pa.list_(pa.string()))),
        pa.array(
            [[{"m": [("k", "x")]}], None, []], pa.list_(pa.struct({"m": pa.map_(pa.string(), pa.string())}))
        ),
    ):
        table = pa.table({"row": [0, 1, 2], "c": column, "bytes": [b"x", b"x", b"x"]})
        found = index.match_batch(table)["subscription"].to_pylist()
        assert found == ["x", "none", "none"], column.type
        assert index.match_batch(table.slice(1))["subscription"].to_pylist() == ["none", "none"], column.type
    spans = pa.table({"i": [{"low": "a", "high": "b"}, None], "row": [0, 1]})
    assert by_event(index.match_batch(spans, intervals=["i"]), 2) == [[], ["none"]]
    assert by_event(index.match_batch(spans), 2) == [["none"], ["none"]]


def test_whatever_else_the_event_holds_is_no_error() -> None:
    index = tamis.Index()
    index.add("x", "ANY(all_strings()) = 'x'")
    mixed = {"mixed": [1, "x"], "big": 2**80, "deep": [[1, ["x"]], {"a": [True, "x"]}]}
    assert index.match(mixed) == ["x"]
    assert index.match(json.dumps(mixed)) == ["x"]
    assert index.match({"object": object(), "array": np.array(["x"]), "tuple": ("a",)}) == ["x"]
    assert index.match({"set": tamis.Where("= 'x'")}) == ["x"]
    assert index.match('{"set": {"$where": "nonsense"}, "when": {"$timestamp": "x"}, "y": "x"}') == ["x"]
    assert index.match('{"$event": {"y": "z"}, "$weights": {"x": 1}}') == []
    assert index.match('{"y": "\\u0078"}') == ["x"]
    assert index.match('{"all_strings()": 5}') == []
    assert index.match('{"a":' + "[" * 100 + '"x"' + "]" * 100 + "}") == ["x"]
    with pytest.raises(tamis.EventError, match="deeper than"):
        index.match('{"a":' + "[" * 50_000 + '"x"' + "]" * 50_000 + "}")
    with pytest.raises(tamis.EventError):
        index.match('{"y": "x", "z": 01}')
    endless: list[Any] = ["x"]
    endless.append(endless)
    with pytest.raises(tamis.EventError, match="deeper than"):
        index.match({"a": endless})


def test_nothing_is_read_once_no_rule_asks() -> None:
    index = tamis.Index()
    index.add("n", "n > 1")
    index.add("x", "ANY(all_strings()) = 'x'")
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(tamis.EventError, match="deeper than"):
        index.match({"n": 2, "a": endless})
    index.remove("x")
    assert index.match({"n": 2, "a": endless}) == ["n"]


def test_text_that_a_schema_reads_as_a_time_is_a_string() -> None:
    index = tamis.Index(schema={"seen": "timestamp", "visits": "array<timestamp>", "name": "string"})
    index.add("x", "ANY(all_strings()) LIKE '2026-%'")
    index.add("late", "seen > TIMESTAMP '2026-01-01'")
    for event in ({"seen": "2026-02-01"}, {"visits": ["2026-02-01"]}):
        expected = ["late", "x"] if "seen" in event else ["x"]
        for form in (event, tamis.Event(event), json.dumps(event)):
            assert index.match(form) == expected
        assert by_event(index.match_batch(pa.Table.from_pylist([event])), 1) == [expected]
        assert by_event(index.match_batch([event]), 1) == [expected]


def test_a_snapshot_keeps_them(tmp_path: Path) -> None:
    index = tamis.Index()
    index.add("x", "ANY(all_strings()) = 'x'")
    index.add("both", "exists(items, i -> ANY(all_strings()) = i.w AND i.n > 1)")
    index.save(tmp_path / "rules.tamis")
    opened = tamis.Index.open(tmp_path / "rules.tamis")
    event = {"items": [{"w": "x", "n": 2}]}
    assert opened.match(event) == ["both", "x"]
    opened.add("y", "ANY(all_strings()) = 'y'")
    opened.remove("x")
    assert opened.match(event) == ["both"]
    assert opened.match({"a": "y"}) == ["y"]
    assert set(opened.attributes) == {"all_strings()", "items"}


def test_reasons_and_relations() -> None:
    index = tamis.Index()
    index.add("x", "ANY(all_strings()) = 'x' AND FALSE")
    index.add("y", "ANY(all_strings()) = 'y'")
    assert "is TRUE" in str(index.explain("x", {"a": "x"}))
    assert "is FALSE" in str(index.explain("y", {"a": "x"}))
    assert "needs to be TRUE" in str(index.why_not("y", {"a": "x"}))
    one, two = tamis.parse("ANY(all_strings()) = 'x' AND y > 5"), tamis.parse("ANY(all_strings()) = 'x'")
    assert two.covers(one)
    assert not one.covers(two)
    assert not tamis.parse("name = 'a'").is_disjoint(two)
    for dialect in ("spark", "duckdb"):
        with pytest.raises(tamis.ExpressionError, match="no text for"):
            two.to_sql(dialect)  # type: ignore[arg-type]


def test_the_builder() -> None:
    built = any_of(all_strings(), lambda s: s.ilike("%a%") & (col("n") > 1)).__tamis_expression__()
    assert built == tamis.parse("any(all_strings(), s -> s ILIKE '%a%' AND n > 1)")
    assert built.attributes == ["all_strings()", "n"]
    with pytest.raises(tamis.ExpressionError, match="no attribute can be called"):
        all_strings().ilike("%a%")
    with pytest.raises(tamis.ExpressionError, match="no attribute can be called"):
        assert col("all_strings()") == "a"


def test_a_schema_and_tags_beside_them() -> None:
    index = tamis.Index(schema={"n": "int"})
    index.add("x", "ANY(all_strings()) = 'x' AND n > 1", tags=["t"], priority=2)
    assert index.match({"n": 2, "undeclared": "x"}, tags=["t"]) == ["x"]
    assert index.match({"n": 2, "undeclared": "x"}, tags=["u"]) == []


def test_many_are_found_together() -> None:
    index = tamis.Index()
    index.add_many(range(3000), [f"ANY(all_strings()) LIKE '%<{n}>%'" for n in range(3000)])
    assert index.match({"a": "<3>", "b": [{"c": ".<2999>."}], "d": "3"}) == [3, 2999]
    assert index.stats()["computed_terms"] == 3000


PIPELINE_EVENTS = """
    SELECT 1L AS event_id, 'a x' AS s, map(1, 'm x') AS m, array(array('n')) AS n,
           named_struct('f', 1, 'g', 'g') AS r,
           array(named_struct('w', map('x', 'v'), 'u', X'00')) AS items, 5 AS n1
    UNION ALL SELECT 2L, 'b', map(2, 'n'), array(array('deep x')), named_struct('f', 2, 'g', NULL), array(), 5
    UNION ALL SELECT 3L, 'c', NULL, NULL, named_struct('f', 3, 'g', 'g x'), NULL, 7
    UNION ALL SELECT 4L, 'd', NULL, NULL, NULL, array(named_struct('w', map('k', 'in x'), 'u', X'00')), 5
    UNION ALL SELECT 5L, 'e', map(5, 'y'), array(), NULL,
           array(named_struct('w', map('x', 'y'), 'u', X'00')), 5
"""
PIPELINE_RULES = ["ANY(all_strings()) LIKE '% x'", "NOT ANY(all_strings()) LIKE '% x'", "r.f = 3 AND n1 > 6"]
PIPELINE_FOUND = {(1, 0), (2, 0), (3, 0), (4, 0), (5, 1), (3, 2)}


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.spark_since("4.1")
@pytest.mark.thorough
def test_the_pipeline(spark: Any, tmp_path: Path) -> None:
    import tamis.spark

    events = spark.sql(PIPELINE_EVENTS)
    rules = spark.createDataFrame(list(enumerate(PIPELINE_RULES)), "id int, expression string")

    def pairs(frame: Any) -> set[tuple[int, int]]:
        return {(row["event_id"], row["subscription"]) for row in frame.collect()}

    assert pairs(tamis.spark.match(events, rules)) == PIPELINE_FOUND
    ranked = tamis.spark.match(events, rules, k=5, shape="column")
    assert pairs(ranked) == PIPELINE_FOUND
    index = tamis.spark.build(rules, plan="sharded", shards=2, directory=tmp_path / "sharded")
    assert pairs(index.match(events)) == PIPELINE_FOUND
    plain = events.drop("m", "n", "items")
    plain.coalesce(1).sortWithinPartitions("event_id").write.parquet(str(tmp_path / "events"))
    in_files = tamis.spark.match_files(spark, tmp_path / "events", rules).collect()
    assert {(row["row"] + 1, row["subscription"]) for row in in_files} == {
        *((1, 0), (2, 1), (3, 0), (3, 2), (4, 1), (5, 1))
    }
    spread = spark.sql("SELECT 1L AS event_id, map('k', 'an x') AS m UNION ALL SELECT 2L, map('x', 'y')")
    assert pairs(tamis.spark.match(spread, rules, spread="m")) == {(1, 0), (2, 1)}
    tamis.spark.register(spark)
    built = tamis.spark.build(rules, directory=tmp_path / "replicated").url
    events.createOrReplaceTempView("keyword_events")
    sql = f"SELECT * FROM tamis_match(TABLE(keyword_events), '{built}', 'event_id')"
    assert pairs(spark.sql(sql)) == PIPELINE_FOUND


def test_keywords_beside_cells_that_rules_read_as_different_kinds() -> None:
    index = tamis.Index()
    index.add("keyword", "ANY(all_strings()) ILIKE '%mimi%'")
    index.add("text", "zip = '02134'")
    index.add("number", "zip > 5")
    events = pa.table({"zip": ["02134", "7"], "cmd": ["run Mimikatz", "x"]})
    found = index.ask_batch(tamis.Query("all"), events, cells=True).to_pydict()
    assert found == {"event": [0, 0, 0, 1], "subscription": ["keyword", "number", "text", "number"]}


def test_keywords_beside_intervals_in_json_lines() -> None:
    index = tamis.Index()
    index.add("keyword", "ANY(all_strings()) ILIKE '%mimi%' AND n > 1")
    line = '{"n": {"$interval": [0, 5]}, "cmd": "Mimikatz"}'
    alone = index.match(line)
    assert alone == ["keyword"]
    assert index.match_batch(line).to_pydict() == {"event": [0], "subscription": alone}


@pytest.mark.parametrize("algorithm", ["auto", "scan"])
def test_keywords_are_there_for_whoever_evaluates_again(algorithm: str) -> None:
    """The scan evaluates rules as they were written, and so do scores: in a batch, the strings must last."""
    index = tamis.Index(algorithm=algorithm)
    index.add(0, "ANY(all_strings()) = 'x' AND n > 1")
    index.add(1, "NOT ANY(all_strings()) = 'x'")
    index.add(2, "forall(all_strings(), s -> length(s) = 1)")
    events = [{"n": 2, "a": "x"}, {"n": 2, "a": "yy"}, {"n": 2}]
    lines = "\n".join(map(json.dumps, events))
    for optimized in (False, True) if algorithm == "auto" else (False,):
        if optimized:
            index.optimize()
        for batch in (events, lines, pa.Table.from_pylist(events)):
            assert by_event(index.match_batch(batch), 3) == [[0, 2], [1], [1, 2]]
            for score in ("relevance", "relaxed", "priority"):
                found = by_event(index.top_k_batch(batch, 3, score), 3)
                alone = [[match.id for match in index.top_k(event, 3, score)] for event in events]
                assert found == alone, (score, optimized)
        assert by_event(index.top_k_batch(lines, 3, "relevance"), 3) == [[0, 2], [1], [1, 2]]
