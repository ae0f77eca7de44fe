"""Batch matching on Spark: whatever the plan, the shards and the batches, the oracle's answer."""

from datetime import UTC, datetime
from typing import Any

import pytest

import strategies
import tamis
import tamis.spark
from events import to_frame, to_table
from oracle import TRUE, Node, evaluate
from tamis.spark.building import build_index
from writer import to_text

pytestmark = pytest.mark.spark

RULES = "id string, expression string"


def rows(frame: Any, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[column] for column in columns) for row in frame.collect())


@pytest.fixture(scope="module")
def nodes() -> list[Node]:
    return strategies.collect(strategies.expressions(typed=True), 150)


@pytest.fixture(scope="module")
def records() -> list[dict[str, Any]]:
    return strategies.collect(strategies.events(typed=True), 80)


@pytest.fixture(scope="module")
def expected(nodes: list[Node], records: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return sorted(
        (event, rule)
        for event, record in enumerate(records)
        for rule, node in enumerate(nodes)
        if evaluate(node, record) == TRUE
    )


@pytest.fixture(scope="module")
def events(spark: Any, records: list[dict[str, Any]]) -> Any:
    table = to_table(records)
    numbered = table.append_column("event_id", [list(range(table.num_rows))])
    return to_frame(spark, numbered).repartition(3).cache()


@pytest.fixture(scope="module")
def rules(spark: Any, nodes: list[Node]) -> Any:
    written = [(rule, to_text(node), float(rule % 7)) for rule, node in enumerate(nodes)]
    return spark.createDataFrame(written, "id int, expression string, priority double")


@pytest.fixture(scope="module")
def index(rules: Any) -> tamis.spark.BuiltIndex:
    return tamis.spark.build(rules)


def test_every_match_is_found(
    index: tamis.spark.BuiltIndex, events: Any, expected: list[tuple[int, int]]
) -> None:
    assert expected
    assert rows(index.match(events), "event_id", "subscription") == expected


@pytest.mark.parametrize("size", [1, 7])
def test_the_size_of_batches_does_not_matter(
    spark: Any, index: tamis.spark.BuiltIndex, events: Any, expected: list[tuple[int, int]], size: int
) -> None:
    before = spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(size))
    try:
        assert rows(index.match(events), "event_id", "subscription") == expected
    finally:
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", before)


def test_the_best_k_with_ties(
    index: tamis.spark.BuiltIndex, events: Any, expected: list[tuple[int, int]]
) -> None:
    best = rows(index.match(events, k=3), "event_id", "rank", "subscription", "score")
    wanted = []
    for event in {event for event, _ in expected}:
        matched = sorted((-(rule % 7), rule) for of, rule in expected if of == event)
        wanted += [(event, rank, rule, -score) for rank, (score, rule) in enumerate(matched[:3], 1)]
    assert best == sorted(wanted)


def test_other_queries(
    index: tamis.spark.BuiltIndex, events: Any, records: list[Any], expected: list[tuple[int, int]]
) -> None:
    per_event = [sum(of == event for of, _ in expected) for event in range(len(records))]
    assert rows(index.count(events), "event_id", "matches") == list(enumerate(per_event))
    assert rows(index.exists(events), "event_id", "matched") == [
        (event, count > 0) for event, count in enumerate(per_event)
    ]
    assert rows(index.unmatched(events), "event_id") == [
        (event,) for event, count in enumerate(per_event) if not count
    ]
    per_rule: dict[int, int] = {}
    for _, rule in expected:
        per_rule[rule] = per_rule.get(rule, 0) + 1
    counted = rows(index.count_by_subscription(events), "subscription", "matches")
    assert counted == sorted(per_rule.items())


def test_spark_itself_agrees(spark: Any, events: Any, nodes: list[Node]) -> None:
    """The cross join that people write today."""
    # Spark writes out the whole condition again and again while it plans: long ones fill its memory.
    written = ((node, tamis.parse(to_text(node)).to_sql("spark")) for node in nodes)
    short = [(node, sql) for node, sql in written if len(sql) <= 400][:20]
    assert len(short) == 20
    some = [(str(rule), to_text(node)) for rule, (node, _) in enumerate(short)]
    cases = " ".join(f"WHEN '{rule}' THEN {sql}" for rule, (_, sql) in enumerate(short))
    pairs = events.crossJoin(spark.createDataFrame(some, RULES)).filter(f"CASE id {cases} END")
    ours = tamis.spark.match(events, spark.createDataFrame(some, RULES))
    # Spark 3.5 looks for common parts of nested conditions in exponential time.
    spark.conf.set("spark.sql.subexpressionElimination.enabled", "false")
    try:
        expected = rows(pairs, "event_id", "id")
    finally:
        spark.conf.unset("spark.sql.subexpressionElimination.enabled")
    assert rows(ours, "event_id", "subscription") == expected


def test_attributes_are_columns_paths_maps_and_spread_maps(spark: Any) -> None:
    events = spark.sql(
        """SELECT 1 AS event_id, named_struct('home', named_struct('city', 'Oslo', 'unused', 1)) AS user,
                  map('color', 'red') AS tags, map('size', 3) AS more, array('a', 'b') AS words,
                  CAST(1.50 AS DECIMAL(10, 2)) AS price, DATE'2026-01-31' AS day, 7 AS `odd.name`"""
    )
    texts = [
        "user.home.city = 'Oslo'",
        "tags.color = 'red'",
        "size = 3",
        "array_contains(words, 'b')",
        "price = 1.5",
        "day = TIMESTAMP '2026-01-31 00:00:00'",
        "odd.name = 7",
        "user IS NOT NULL AND user.away IS NULL",
    ]
    rules = spark.createDataFrame(list(enumerate(texts)), "id bigint, expression string")
    matches = tamis.spark.match(events, rules, spread="more")
    assert rows(matches, "subscription") == [(at,) for at in range(len(texts))]
    assert matches.schema["subscription"].dataType.simpleString() == "bigint"


def test_empty_on_either_side(spark: Any) -> None:
    rules = spark.createDataFrame([("a", "x > 1")], RULES)
    events = spark.createDataFrame([(1, 2)], "event_id int, x int")
    assert tamis.spark.match(events.limit(0), rules).collect() == []
    assert tamis.spark.match(events, rules.limit(0)).collect() == []
    assert tamis.spark.match(events.limit(0), rules.limit(0), k=3).collect() == []
    assert rows(tamis.spark.unmatched(events, rules.limit(0)), "event_id") == [(1,)]


def test_details_of_subscriptions_arrive(spark: Any) -> None:
    rules = spark.createDataFrame(
        [
            ("a", "x > 1", 1.0, ["q4"], b"payload of a", None),
            ("b", "x > 1", 2.0, None, None, datetime(2026, 1, 1)),
            ("c", "x > 1", 3.0, ["q4", "q5"], None, datetime(2036, 1, 1)),
        ],
        f"{RULES}, priority double, tags array<string>, payload binary, expires timestamp",
    )
    events = spark.createDataFrame([(1, 2)], "event_id int, x int")
    index = tamis.spark.build(rules)
    at = datetime(2026, 6, 1, tzinfo=UTC)
    assert rows(index.match(events, now=at), "subscription", "payload") == [
        ("a", b"payload of a"),
        ("c", None),
    ]
    early = index.match(events, now=datetime(2025, 1, 1, tzinfo=UTC), k=1, tags=["q5"], payload=False)
    assert rows(early, "subscription", "score", "rank") == [("c", 3.0, 1)]
    assert "payload" not in early.columns


@pytest.mark.parametrize("count", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
@pytest.mark.thorough
def test_very_many_matches_of_one_event(spark: Any, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_index, "ROWS_PER_FILE", count // 2)
    rules = spark.range(0, count, numPartitions=2).selectExpr("id", "'x > ' || id % 10 AS expression")
    events = spark.createDataFrame([(1, 100)], "event_id int, x int")
    index = tamis.spark.build(rules)
    assert index.version.subscriptions == count
    assert len(index.version.shards[0]) == 2  # built side by side
    summed = index.match(events).selectExpr("count(*)", "sum(subscription)").collect()[0]
    assert tuple(summed) == (count, (count - 1) * count // 2)


def test_huge_strings(spark: Any) -> None:
    events = spark.sql("SELECT 1 AS event_id, repeat('ab', 5000000) || 'needle' AS text")
    rules = spark.createDataFrame([("a", "contains(text, 'needle')"), ("b", "text LIKE 'b%'")], RULES)
    assert rows(tamis.spark.match(events, rules), "subscription") == [("a",)]


def test_keys_are_carried_through(spark: Any) -> None:
    rules = spark.createDataFrame([("a", "x > 1")], RULES)
    events = spark.createDataFrame([(1, "u", 2), (1, "u", 2)], "`event id` int, user string, x int")
    matches = tamis.spark.match(events, rules, key=["event id", "user"])
    assert matches.columns == ["event id", "user", "subscription", "version"]
    assert rows(matches, "event id", "user") == [(1, "u"), (1, "u")]
    assert tamis.spark.match(events, rules, key="*").columns == [
        "event id",
        "user",
        "x",
        "subscription",
        "version",
    ]
    assert tamis.spark.match(events, rules, key=None).count() == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"key": "id"}, "no key column 'id'; they have event_id, x"),
        ({"key": ["x", "x"]}, "named twice"),
        ({"k": -1}, "k must not be negative"),
        ({"score": "priority"}, "pass k as well"),
        ({"plan": "best"}, '"replicated", "sharded" or "by-source"'),
        ({"on_error": "ignore"}, '"fail" or "quarantine"'),
        ({"spread": "x"}, "only a map or a struct can be spread"),
        ({"spread": "z"}, "no column 'z' to spread"),
    ],
)
def test_wrong_arguments_say_what_would_be_right(spark: Any, arguments: dict[str, Any], message: str) -> None:
    rules = spark.createDataFrame([("a", "x > 1")], RULES)
    events = spark.createDataFrame([(1, 2)], "event_id int, x int")
    with pytest.raises(tamis.ArgumentError, match=message):
        tamis.spark.match(events, rules, **arguments)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("name string, expression string", "no column 'id'"),
        ("id double, expression string", "must be a string or an integer, not double"),
        ("id string, expression int", "must be a string, not int"),
    ],
)
def test_wrong_subscriptions_say_what_would_be_right(spark: Any, columns: str, message: str) -> None:
    with pytest.raises(tamis.ArgumentError, match=message):
        tamis.spark.build(spark.createDataFrame([], columns))


def test_bad_subscriptions_fail_or_are_set_aside(spark: Any) -> None:
    written = [("a", "x > 1"), ("b", "x >"), ("c", None), ("d", "x > 2"), ("d", "x > 3")]
    rules = spark.createDataFrame(written, RULES)
    events = spark.createDataFrame([(1, 9)], "event_id int, x int")
    with pytest.raises(tamis.spark.InvalidSubscriptionsError, match="3 subscriptions") as raised:
        tamis.spark.match(events, rules)
    assert "x >\n" in str(raised.value)
    assert "^" in str(raised.value)
    matches, bad = tamis.spark.match(events, rules, on_error="quarantine")
    assert rows(matches, "subscription") == [("a",), ("d",)]
    assert [row[0] for row in rows(bad, "id")] == ["b", "c", "d"]
    places = {row.id: (row.line, row.column) for row in tamis.spark.validate(rules).collect()}
    assert places["b"] == (1, 4)


def test_values_of_the_wrong_type_are_counted(spark: Any) -> None:
    rules = spark.createDataFrame([("a", "x > 1 AND m.k = 2")], RULES)
    events = spark.sql("SELECT 1 AS event_id, 'text' AS x, map('k', 'v') AS m UNION ALL SELECT 2, NULL, NULL")
    matches = tamis.spark.match(events, rules)
    assert matches.collect() == []
    report = tamis.spark.explain(matches)
    assert report.wrong_types() == {"x": 1, "m.k": 1}
    assert "column x is string, but every predicate on it expects number" in str(report)


def test_a_snapshot_file_is_as_good(spark: Any, tmp_path: Any) -> None:
    index = tamis.Index()
    index.add("a", "x > 1", payload=b"p")
    index.save(tmp_path / "rules.tamis")
    events = spark.createDataFrame([(1, 2)], "event_id int, x int")
    matches = tamis.spark.match(events, str(tmp_path / "rules.tamis"))
    assert rows(matches, "subscription", "payload") == [("a", b"p")]
    assert [path.name for path in tmp_path.iterdir()] == ["rules.tamis"]
    with pytest.raises(tamis.SnapshotError, match=r"other\.tamis: there is no such file where the executors"):
        tamis.spark.match(events, str(tmp_path / "other.tamis"))


def test_an_index_is_found_again_by_its_directory(spark: Any, tmp_path: Any) -> None:
    rules = spark.createDataFrame([("a", "x > 1")], RULES)
    events = spark.createDataFrame([(1, 2)], "event_id int, x int")
    first = tamis.spark.build(rules, directory=tmp_path)
    second = tamis.spark.build(rules.selectExpr("'b' AS id", "expression"), directory=tmp_path)
    assert (first.version.number, second.version.number) == (1, 2)
    assert rows(tamis.spark.match(events, tmp_path), "subscription", "version") == [("b", 2)]
    assert rows(first.match(events), "subscription", "version") == [("a", 1)]
    with pytest.raises(Exception, match="holds no index"):
        tamis.spark.match(events, tmp_path / "nowhere")


def test_keys_may_be_records_with_odd_names(spark: Any) -> None:
    rules = spark.createDataFrame([("a", "x > 1")], RULES)
    events = spark.sql("SELECT array(named_struct('first name', 1, 'a:b`c', 2)) AS who, 2 AS x")
    [found] = tamis.spark.match(events, rules, key="who").collect()
    assert found.who[0]["first name"] == 1
    assert found.who[0]["a:b`c"] == 2


@pytest.mark.thorough
def test_a_detail_that_cannot_be_read_is_as_bad_as_an_expression(spark: Any) -> None:
    written = [("a", "x > 1", "high"), ("b", "x > 1", "2.5")]
    rules = spark.createDataFrame(written, f"{RULES}, priority string")
    events = spark.createDataFrame([(1, 2)], "event_id int, x int")
    with pytest.raises(tamis.spark.InvalidSubscriptionsError, match="'a': priority is high, which is not a"):
        tamis.spark.match(events, rules)
    matches, bad = tamis.spark.match(events, rules, k=1, on_error="quarantine")
    assert rows(matches, "subscription", "score") == [("b", 2.5)]
    assert rows(bad, "id") == [("a",)]


def test_a_source_adds_nothing_to_a_score(spark: Any) -> None:
    rules = spark.createDataFrame([("a", "x > 1", "shop"), ("b", "x > 1", None)], f"{RULES}, source string")
    events = spark.createDataFrame([(1, 2, "shop"), (2, 2, "web")], "event_id int, x int, source string")
    index = tamis.spark.build(rules)
    best = index.match(events, k=2, score="relevance")
    assert rows(best, "event_id", "subscription", "score") == [(1, "a", 1.0), (1, "b", 1.0), (2, "b", 1.0)]
    with pytest.raises(tamis.ArgumentError, match="would match events of other sources"):
        index.match(events, k=2, score="relaxed")


def test_a_misspelt_attribute_is_named_once(spark: Any, tmp_path: Any) -> None:
    rules = spark.createDataFrame([("a", "contry = 'CA'"), ("b", "user.age > 21 AND vip")], RULES)
    index = tamis.spark.build(rules, directory=tmp_path / "index")
    events = spark.sql("SELECT 1 AS event_id, 'CA' AS country, named_struct('age', 27) AS user")
    with pytest.warns(UserWarning, match=r"contry \(did you mean `country`\?\), vip") as noted:
        matches = index.match(events)
    assert sum(warning.category is UserWarning for warning in noted) == 1
    contry = "contry (did you mean `country`?)"
    expected = f"no column of the events holds {contry}, vip: predicates on them are undefined"
    assert tamis.spark.explain(matches).warnings == [expected]
    assert str(tamis.spark.explain(matches)).count("did you mean `country`?") == 1
    assert matches.collect() == []
    with pytest.warns(UserWarning, match=r"did you mean `country`"):
        tamis.spark.count_by_subscription(events, index)
    (tmp_path / "events").mkdir()
    stream = spark.readStream.schema(events.schema).json(str(tmp_path / "events"))
    following = tamis.spark.open_index(spark, tmp_path / "index")
    with pytest.warns(UserWarning, match=r"did you mean `country`"):
        streamed = following.match(stream)
    assert tamis.spark.explain(streamed).warnings == [expected]


@pytest.mark.filterwarnings("error::UserWarning")
def test_attributes_that_events_may_have_are_not_called_absent(spark: Any) -> None:
    rules = spark.createDataFrame(
        [("a", "m.kind = 'x' AND wide = 1"), ("b", "near = 1 AND other IS NULL AND `a.b` = 1")], RULES
    )
    index = tamis.spark.build(rules)
    maps = spark.sql("SELECT 1 AS event_id, map('k', 'x') AS m, map('wide', 1) AS loose")
    assert tamis.spark.explain(index.match(maps, spread="loose")).warnings == []
    structs = spark.sql(
        "SELECT 1 AS event_id, map('k', 'x') AS m, named_struct('near', 1, 'wide', 1) AS s, 1 AS `a.b`"
    )
    report = tamis.spark.explain(index.match(structs, spread=["s"]))
    # Unlike everything that there is: perhaps written for other events, and worth no more than a line there.
    assert report.warnings == ["no column of the events holds other: predicates on it are undefined"]


@pytest.mark.slow
def test_files_may_have_any_name(spark: Any, tmp_path: Any) -> None:
    folder = tmp_path / "my 100% events %20"
    spark.createDataFrame([(0,), (2,)], "x int").coalesce(1).write.parquet(str(folder))
    [part] = folder.glob("*.parquet")
    part.rename(folder / "a b%41.parquet")
    rules = spark.createDataFrame([("a", "x > 1")], RULES)
    for path in (str(folder), f"file://{folder}"):
        [row] = tamis.spark.match_files(spark, path, rules).collect()
        assert (row.path, row.row, row.subscription) == (f"{path}/a b%41.parquet", 1, "a")


@pytest.mark.parametrize("ask", [tamis.spark.match_files, tamis.spark.count_files])
def test_attributes_that_no_file_holds_are_named(spark: Any, tmp_path: Any, ask: Any) -> None:
    rules = spark.createDataFrame(
        [("a", "contry = 'CA' AND user.aeg > 3 AND vip"), ("b", "later = 1 AND m.kind = 'x'")], RULES
    )
    spark.sql("SELECT 'CA' AS country, named_struct('age', 4) AS user, map('k', 'x') AS m").write.parquet(
        str(tmp_path / "events" / "old")
    )
    spark.sql("SELECT 1 AS later").write.parquet(str(tmp_path / "events" / "new"))
    with pytest.warns(UserWarning, match=r"contry \(did you mean `country`\?\)") as caught:
        answer = ask(spark, str(tmp_path / "events"), rules)
    assert [told.filename for told in caught if told.category is UserWarning] == [__file__]
    assert tamis.spark.explain(answer).warnings == [
        "no column of the events holds contry (did you mean `country`?), "
        "user.aeg (did you mean `user.age`?), vip: predicates on them are undefined"
    ]


def test_matches_of_files_are_counted_without_pairs(spark: Any, tmp_path: Any) -> None:
    rules = [("a", "x > 1", ["q4"]), ("b", "x > 2", []), ("c", "x > 2", ["q4"])]
    index = tamis.spark.build(
        spark.createDataFrame(rules, "id string, expression string, tags array<string>")
    )
    folder = str(tmp_path / "events")
    spark.createDataFrame([(value,) for value in (1, 2, 3)], "x int").coalesce(1).write.parquet(folder)
    counted = tamis.spark.count_files(spark, folder, index)
    assert counted.columns == ["path", "row", "matches", "version"]
    assert sorted((row.row, row.matches) for row in counted.collect()) == [(0, 0), (1, 1), (2, 3)]
    tagged = tamis.spark.count_files(spark, folder, index, tags=["q4"])
    assert sorted((row.row, row.matches) for row in tagged.collect()) == [(0, 0), (1, 1), (2, 2)]
    assert tamis.spark.explain(tagged).version.number == 1


def test_queries_of_files_are_checked_as_others_are(spark: Any, tmp_path: Any) -> None:
    index = tamis.spark.build(spark.createDataFrame([("a", "x > 1")], RULES))
    with pytest.raises(tamis.ArgumentError, match="score ranks the best k"):
        tamis.spark.match_files(spark, str(tmp_path), index, score="relevance")
    with pytest.raises(TypeError, match="tags are a list"):
        tamis.spark.count_files(spark, str(tmp_path), index, tags="q4")


def test_a_repeated_id_is_shown_with_the_other_expression(spark: Any) -> None:
    rules = spark.createDataFrame([("a", "x > 1"), ("b", "x > 2"), ("a", "x > 3")], RULES)
    [problem] = tamis.spark.validate(rules).collect()
    shown = {problem.expression, problem.error.removeprefix("this id is also that of: ")}
    assert (problem.id, shown) == ("a", {"x > 1", "x > 3"})
    with pytest.raises(
        tamis.spark.InvalidSubscriptionsError, match=r"'a': this id is also that of: x > [13]\n"
    ):
        tamis.spark.build(rules)


@pytest.mark.thorough
def test_footers_of_many_files_are_read_side_by_side_and_small_ones_share_tasks(
    spark: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tamis.spark.events import parquet_files

    spark.range(0, 60, 1, 6).selectExpr("id AS x").write.parquet(str(tmp_path / "events"))
    rules = spark.createDataFrame([("a", "x IN (0, 10, 59)")], "id string, expression string")
    index = tamis.spark.build(rules)
    few = tamis.spark.match_files(spark, tmp_path / "events", index)
    expected = sorted((row.path, row.row) for row in few.collect())
    assert len(expected) == 3
    # A task for each small file took longer than reading them: two for each of two cores.
    assert [task["rows"] for task in tamis.spark.explain(few).tasks()] == [20, 20, 10, 10]
    monkeypatch.setattr(parquet_files, "FOOTERS_PER_TASK", 2)
    many = tamis.spark.match_files(spark, tmp_path / "events", index)
    assert sorted((row.path, row.row) for row in many.collect()) == expected
