"""The face of the index: what may be put in, what comes out, and what is refused with which words."""

import copy
import json
import time
from collections import UserDict
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tamis
from tamis import Index, Match, col

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def index() -> Index:
    index = Index()
    index.add("a", "x > 1", priority=1.0, tags=["t"], payload=b"\0raw", weights={"x": 0.5}, expires=NOW)
    index.add("b", "x > 2")
    return index


class TestChanges:
    def test_expressions_in_every_form(self) -> None:
        index = Index()
        index.add("text", "x > 1 AND flag")
        index.add("builder", (col("x") > 1) & col("flag"))
        index.add("column", col("flag"))
        index.add("json", json.loads(tamis.parse("x > 1").to_json()))
        assert index.match({"x": 2, "flag": True}) == ["builder", "column", "json", "text"]
        assert index["text"].expression == index["builder"].expression

    def test_everything_given_comes_back(self, index: Index) -> None:
        held = index["a"]
        assert held == tamis.Subscription("a", tamis.parse("x > 1"), 1.0, {"x": 0.5}, ("t",), b"\0raw", NOW)
        assert index["b"] == tamis.Subscription("b", tamis.parse("x > 2"))

    def test_add_replace_remove_refuse_what_would_surprise(self, index: Index) -> None:
        generation = index.generation
        with pytest.raises(tamis.DuplicateIdError, match="replace or upsert"):
            index.add("a", "x > 5")
        with pytest.raises(tamis.UnknownIdError):
            index.replace("c", "x > 5")
        with pytest.raises(KeyError):
            index.remove("c")
        assert index.generation == generation
        assert index["a"].expression == tamis.parse("x > 1")

    def test_ids_are_of_one_type(self, index: Index) -> None:
        with pytest.raises(tamis.IdError, match="strings"):
            index.add(1, "x > 1")
        numbers = Index()
        numbers.add(-(2**63), "x > 1")
        numbers.add(np.int64(5), "x > 1")
        with pytest.raises(tamis.IdError, match="integer"):
            numbers.add("a", "x > 1")
        assert numbers.match({"x": 2}) == [-(2**63), 5]

    def test_integers_sort_as_numbers_and_strings_as_bytes(self) -> None:
        numbers, strings = Index(), Index()
        for id in [10, 9, -1]:
            numbers.add(id, "TRUE")
        for id in ["é", "z", "Z", "🦀", "\uffee", ""]:
            strings.add(id, "TRUE")
        assert numbers.match({}) == list(numbers) == [-1, 9, 10]
        assert strings.match({}) == list(strings) == ["", "Z", "z", "é", "\uffee", "🦀"]

    @pytest.mark.parametrize("id", [1.5, None, True, b"a", ("a",), 2**63, "\ud800"])
    def test_bad_ids(self, id: Any) -> None:
        with pytest.raises(tamis.IdError):
            Index().add(id, "x > 1")

    @pytest.mark.parametrize("expression", [1, None, b"x > 1", ["x > 1"], object()])
    def test_no_expressions(self, expression: Any) -> None:
        with pytest.raises(TypeError, match="an expression is text"):
            Index().add("a", expression)

    def test_bad_text_says_where(self) -> None:
        with pytest.raises(tamis.ExpressionError) as caught:
            Index().add("a", "x >\n  AND y")
        assert caught.value.line == 2

    @pytest.mark.parametrize(
        ("details", "error"),
        [
            ({"priority": float("nan")}, tamis.ArgumentError),
            ({"priority": float("inf")}, tamis.ArgumentError),
            ({"priority": "high"}, TypeError),
            ({"weights": {"x": -1.0}}, tamis.ArgumentError),
            ({"weights": {"x": None}}, TypeError),
            ({"weights": [("x", 1.0)]}, TypeError),
            ({"tags": "q4"}, TypeError),
            ({"tags": [1]}, TypeError),
            ({"payload": "text"}, TypeError),
            ({"expires": "tomorrow"}, TypeError),
            ({"expires": 2**63}, tamis.ArgumentError),
        ],
    )
    def test_bad_details(self, details: dict[str, Any], error: type[Exception]) -> None:
        index = Index()
        with pytest.raises(error):
            index.add("a", "x > 1", **details)
        assert len(index) == 0

    def test_expiry(self) -> None:
        index = Index()
        index.add("datetime", "TRUE", expires=NOW)
        index.add("naive", "TRUE", expires=NOW.replace(tzinfo=None))
        index.add("date", "TRUE", expires=date(2026, 2, 1))
        index.add("number", "TRUE", expires=int(NOW.timestamp()) * 1_000_000)
        index.add("never", "TRUE")
        before, at, after = NOW - timedelta(microseconds=1), NOW, NOW + timedelta(days=1)
        assert index.count({}, now=before) == 5
        assert index.match({}, now=at) == ["date", "never"]
        assert index.match({}, now=after) == ["never"]
        assert index.match_batch([{}], now=at).column("subscription").to_pylist() == ["date", "never"]
        assert [match.id for match in index.top_k({}, now=after)] == ["never"]
        index.add("past", "TRUE", expires=datetime(2000, 1, 1))
        assert "past" in index
        assert "past" not in index.match({})


class TestSchema:
    def test_predicates_are_checked(self) -> None:
        index = Index(schema={"age": "int", "address": {"city": str}, "seen": datetime})
        assert index.schema == {"address.city": "string", "age": "int", "seen": "timestamp"}
        index.add("a", "age > 21 AND address.city = 'Geneva'")
        with pytest.raises(tamis.ExpressionError, match="did you mean `age`"):
            index.add("b", "agee > 21")
        with pytest.raises(tamis.ExpressionError):
            index.add("b", "age > 'old'")
        assert list(index) == ["a"]

    @pytest.mark.parametrize("algorithm", ["auto", "scan"])
    def test_text_becomes_timestamps(self, algorithm: str) -> None:
        index = Index(schema={"seen": "timestamp"}, algorithm=algorithm)
        index.add("a", "seen > TIMESTAMP '2026-01-01 00:00:00'")
        event = {"seen": "2026-01-31T12:00:00Z"}
        table = pa.table({"seen": ["2026-01-31T12:00:00Z"]})
        assert index.match(event) == index.match(tamis.Event(event)) == ["a"]
        assert index.match('{"seen": "2026-01-31T12:00:00Z"}') == ["a"]
        assert index.count_batch(table).to_pylist() == index.count_batch([event]).to_pylist() == [1]

    def test_bad_schemas_and_algorithms(self) -> None:
        with pytest.raises(tamis.ArgumentError, match="age"):
            Index(schema={"age": "number of years"})
        with pytest.raises(tamis.ArgumentError, match="scan"):
            Index(algorithm="scam")
        assert tamis.ALGORITHMS[:2] == ("auto", "scan")


class TestAddMany:
    EXPRESSIONS = ("x > 1", "x > 2", "x > 3")

    @pytest.mark.parametrize(
        "ids",
        [
            [3, 1, 2],
            range(1, 4),
            np.array([1, 2, 3], dtype=np.int32),
            pa.array([1, 2, 3], pa.uint8()),
            pa.chunked_array([[1], [2, 3]]),
            pd.Series([1, 2, 3]),
            pl.Series([1, 2, 3]),
        ],
        ids=lambda ids: type(ids).__module__ + "." + type(ids).__name__,
    )
    def test_columns_of_integers(self, ids: Any) -> None:
        index = Index()
        assert index.add_many(ids, list(self.EXPRESSIONS)) == []
        assert list(index) == [1, 2, 3]

    @pytest.mark.parametrize("make", [list, tuple, np.array, pa.array, pd.Series, pl.Series])
    def test_columns_of_strings(self, make: Any) -> None:
        index = Index()
        index.add_many(make(["c", "a", "b"]), make(self.EXPRESSIONS))
        assert index.match({"x": 3}) == ["a", "c"]

    def test_encoded_and_large_columns(self) -> None:
        index = Index()
        ids = pa.array(["a", "b", "c"]).dictionary_encode()
        index.add_many(ids, pa.array(self.EXPRESSIONS, pa.large_string()))
        index.add_many(pa.array(["d"], pa.string_view()), pa.array(["x > 4"]).dictionary_encode())
        assert list(index) == ["a", "b", "c", "d"]

    def test_expressions_in_every_form(self) -> None:
        index = Index()
        index.add_many([1, 2, 3], ["x > 1", col("x") > 1, col("flag")])
        assert index.match({"x": 2, "flag": True}) == [1, 2, 3]

    def test_details(self) -> None:
        index = Index()
        index.add_many(
            ["a", "b"],
            ["TRUE", "TRUE"],
            priorities=[2, None],
            weights=[{"x": 0.5, "y": 1}, None],
            tags=[["t", "u"], []],
            payloads=[b"raw", None],
            expires=[NOW, None],
        )
        assert index["a"] == tamis.Subscription(
            "a", tamis.parse("TRUE"), 2.0, {"x": 0.5, "y": 1.0}, ("t", "u"), b"raw", NOW
        )
        assert index["b"] == tamis.Subscription("b", tamis.parse("TRUE"))

    def test_tables(self) -> None:
        rows = {
            "id": ["a", "b"],
            "expression": ["x > 1", "x > 2"],
            "priority": [1.0, 2.0],
            "weights": [{"x": 0.5}, {"x": 1.0}],
            "tags": [["t"], []],
            "payload": [b"1", b"2"],
            "expires": [NOW, NOW],
            "comment": ["ignored", ""],
        }
        by_table, by_frame, by_polars = Index(), Index(), Index()
        assert by_table.add_table(pa.table(rows)) == []
        assert by_frame.add_table(pd.DataFrame(rows)) == []
        assert by_polars.add_table(pl.DataFrame(rows)) == []
        assert dict(by_table.items()) == dict(by_frame.items()) == dict(by_polars.items())
        assert by_table["a"].weights == {"x": 0.5}
        with pytest.raises(tamis.ArgumentError, match="'expression'"):
            Index().add_table(pa.table({"id": [1], "rule": ["x > 1"]}))

    def test_all_or_nothing(self) -> None:
        index = Index()
        index.add("b", "TRUE")
        for ids, expressions, error, words in [
            (["a", "c"], ["x > 1", "x >"], tamis.ExpressionError, r"row 1 \(id \"c\"\)"),
            (["a", "b"], ["x > 1", "x > 1"], tamis.DuplicateIdError, "row 1"),
            (["a", "a"], ["x > 1", "x > 1"], tamis.DuplicateIdError, "row 1 .*row 0 has the same id"),
            (["a", 7], ["x > 1", "x > 1"], tamis.IdError, "row 1"),
            (["a", None], ["x > 1", "x > 1"], tamis.IdError, "row 1"),
        ]:
            with pytest.raises(error, match=words):
                index.add_many(ids, expressions)
            assert list(index) == ["b"]

    def test_errors_can_be_collected(self) -> None:
        index = Index()
        index.add("taken", "TRUE")
        failed = index.add_many(
            ["ok", "bad", "taken", None, "null", 5, "late"],
            ["x > 1", "x >", "TRUE", "TRUE", None, "TRUE", "x > 2"],
            priorities=[0, 0, 0, 0, 0, 0, float("nan")],
            on_error="collect",
        )
        assert [(bad.row, bad.id, type(bad.error)) for bad in failed] == [
            (1, "bad", tamis.ExpressionError),
            (2, "taken", tamis.DuplicateIdError),
            (3, None, tamis.IdError),
            (4, "null", tamis.ExpressionError),
            (5, 5, tamis.IdError),
            (6, "late", tamis.ArgumentError),
        ]
        assert failed[0].error.column == 4  # type: ignore[attr-defined]
        assert list(index) == ["ok", "taken"]

    def test_nulls_in_columns(self) -> None:
        index = Index()
        failed = index.add_many(
            pa.array(["a", None, "c"]), pa.array([None, "TRUE", "TRUE"]), on_error="collect"
        )
        assert [(bad.row, bad.id) for bad in failed] == [(0, "a"), (1, None)]

    def test_what_is_no_column(self) -> None:
        index = Index()
        with pytest.raises(TypeError, match="ids"):
            index.add_many("ab", ["TRUE", "TRUE"])
        with pytest.raises(tamis.ArgumentError, match="2 ids for 1 expressions"):
            index.add_many(["a", "b"], ["TRUE"])
        with pytest.raises(tamis.ArgumentError, match="priority"):
            index.add_many(["a", "b"], ["TRUE", "TRUE"], priorities=[1.0])
        with pytest.raises(TypeError, match="tags"):
            index.add_many(["a"], ["TRUE"], tags=["not a list"])
        with pytest.raises(tamis.ArgumentError, match="collect"):
            index.add_many(["a"], ["TRUE"], on_error="ignore")  # type: ignore[arg-type]
        assert len(index) == 0

    def test_nothing_is_something(self) -> None:
        index = Index()
        assert index.add_many([], []) == []
        assert index.add_many(pa.array([], pa.string()), pa.array([], pa.string())) == []
        assert len(index) == 0


class TestLookups:
    def test_it_is_a_collection(self, index: Index) -> None:
        assert len(index) == 2
        assert "a" in index
        assert "z" not in index
        assert 1 not in index
        assert [1] not in index  # type: ignore[comparison-overlap]
        assert index.get("z") is None
        assert index.get("z", 7) == 7
        assert [id for id, _ in index.items()] == ["a", "b"]
        with pytest.raises(KeyError):
            index["z"]
        assert repr(index) == "<tamis.Index with 2 subscriptions>"

    @pytest.mark.parametrize("algorithm", ["auto", "scan"])
    def test_changes_during_a_walk(self, algorithm: str) -> None:
        index = Index(algorithm=algorithm)
        index.add_many(range(100), ["TRUE"] * 100)
        for id in index:
            index.remove(id)
        assert len(index) == 0

    def test_every_change_raises_the_generation(self, index: Index) -> None:
        generations = [index.generation]
        for change in (
            lambda: index.add("c", "TRUE"),
            lambda: index.replace("c", "FALSE"),
            lambda: index.upsert("c", "TRUE"),
            lambda: index.remove("c"),
            lambda: index.add_many(["d"], ["TRUE"]),
        ):
            change()
            generations.append(index.generation)
        assert generations == sorted(set(generations))


class TestQuestions:
    @pytest.mark.parametrize(
        "event", [{"x": 3}, tamis.Event({"x": 3}), '{"x": 3}', b'{"x": 3}', UserDict(x=3)]
    )
    def test_events_in_every_form(self, index: Index, event: Any) -> None:
        early = NOW - timedelta(1)
        assert index.match(event, now=early) == ["a", "b"]
        assert index.count(event, now=early) == 2
        assert index.exists(event)
        assert index.top_k(event, 1, now=early) == [Match("a", 1.0, 1)]
        assert index.match(event, tags=["t"], now=early) == ["a"]

    @pytest.mark.parametrize("event", ["[]", "{", b"\xff", {"x": object()}, {"x": {"y"}, 1: 2}])
    @pytest.mark.parametrize("algorithm", ["auto", "scan"])
    def test_bad_events(self, event: Any, algorithm: str) -> None:
        index = Index(algorithm=algorithm)
        index.add("a", "x > 1")
        with pytest.raises(tamis.EventError):
            index.match(event)

    def test_no_events(self, index: Index) -> None:
        for event in (None, 7, ["x", 3]):
            with pytest.raises(TypeError, match="an event is a dict"):
                index.match(event)  # type: ignore[arg-type]

    def test_attributes_that_nobody_uses_may_be_anything(self, index: Index) -> None:
        assert index.match({"x": 3, "unused": object()}) == ["b"]

    def test_top_k(self, index: Index) -> None:
        assert index.top_k({"x": 3}, 0) == []
        with pytest.raises(tamis.ArgumentError, match="priority"):
            index.top_k({"x": 3}, 1, "nonsense")
        with pytest.raises(tamis.ArgumentError, match="negative"):
            index.top_k({"x": 3}, -1)
        index.add("c", "x > 1", priority=-0.0)
        assert [(match.id, match.rank) for match in index.top_k({"x": 3})] == [("b", 1), ("c", 2)]

    def test_tags_must_be_a_list(self, index: Index) -> None:
        with pytest.raises(TypeError, match=r"tags=\['t'\]"):
            index.match({"x": 3}, tags="t")

    def test_questions_inside_a_question(self, index: Index) -> None:
        class Curious(UserDict[str, int]):
            def items(self) -> Any:
                assert index.match({"x": 3}) == ["b"]
                return super().items()

        assert index.match(Curious(x=3)) == ["b"]

    def test_unsupported_expressions_have_an_error(self) -> None:
        assert issubclass(tamis.UnsupportedExpressionError, tamis.TamisError)


class TestStatistics:
    def test_counts_and_slow_events(self, index: Index) -> None:
        for x in range(50):
            index.match({"x": x})
        stats = index.stats()
        assert stats["subscriptions"] == 2
        assert stats["algorithm"] == "auto"
        observed = stats["observed"]
        assert observed["events"] == 50
        assert 0 < len(observed["slowest"]) <= 50
        assert all(slow["event"].startswith('{"x":') for slow in observed["slowest"])
        times = [slow["microseconds"] for slow in observed["slowest"]]
        assert times == sorted(times, reverse=True)
        index.reset_stats()
        assert index.stats()["observed"]["events"] == 0

    def test_an_index_lays_itself_out_again_once_it_knows_events(self) -> None:
        ids = list(range(10_000))
        texts = [f"a{i % 40} = {i % 7} AND b > {i % 100}" for i in ids]
        events = [{f"a{i % 40}": i % 7, "b": i % 100} for i in range(1_100)]
        left_alone, index = tamis.Index(optimize="manual"), tamis.Index()
        for each in (left_alone, index):
            each.add_many(ids, texts)
            for event in events:
                each.count(event)
            while each.is_optimizing:
                time.sleep(0.001)
        assert index.stats()["optimize"] == "auto"
        assert index.stats()["automatic_optimizations"] == 1
        assert left_alone.stats()["automatic_optimizations"] == 0
        assert all(index.match(event) == left_alone.match(event) for event in events[:50])

    def test_how_to_optimize_is_one_of_two(self) -> None:
        with pytest.raises(tamis.TamisError, match='optimize is "auto" or "manual"'):
            tamis.Index(optimize="never")  # type: ignore[arg-type]

    def test_a_diagram_shows_neighbours(self) -> None:
        index = tamis.Index()
        index.add_many([1, 2, 3], ["(x = 1 OR y = 2) AND z = 3", "(y = 2 OR x = 1) AND u = 4", "w = 5"])
        picture = index.diagram(1, "dot", neighbours=5)
        assert "subscription 2" in picture
        assert "subscription 3" not in picture
        assert "subscription 2" not in index.diagram(1, "dot")
        with pytest.raises(tamis.TamisError, match="not both"):
            index.diagram(1, event={"x": 1}, neighbours=1)

    def test_optimizing_changes_no_answer(self) -> None:
        index = Index()
        for at in range(500):
            index.add(at, f"x > {at}")
        before = index.match({"x": 250})
        index.optimize()
        index.optimize(background=True)
        while index.is_optimizing:
            pass
        assert index.match({"x": 250}) == before == list(range(250))

    def test_times(self, index: Index) -> None:
        for events in ([{"x": 3}, {"x": 0}], pa.table({"x": [3, 0]})):
            times = index.time_events(events, mode="match", repeats=3)
            assert times.dtype == np.int64
            assert len(times) == 2
        with pytest.raises(tamis.ArgumentError, match="count"):
            index.time_events([], mode="guess")  # type: ignore[arg-type]


class TestWrongKinds:
    """Values of a kind that no predicate on their attribute expects are counted, wherever those are."""

    @staticmethod
    def wrong(index: Index) -> int:
        return int(index.stats()["observed"]["type_mismatches"])

    @pytest.mark.parametrize("copies", [1, 200])
    def test_they_are_counted_once_per_value(self, copies: int) -> None:
        index = Index()
        for number in range(copies):
            index.add(f"n{number}", f"age > {number} AND name IS NOT NULL")
        index.count({"age": "old", "name": 3})
        index.exists({"age": 30, "name": "a"})
        index.match({"age": [1]})
        index.top_k({"age": "old"}, 1)
        assert self.wrong(index) == 3

    def test_another_segment_may_expect_the_value(self) -> None:
        index = Index()
        index.add_many(["number"], ["age > 3"])
        assert index.count({"age": "old"}) == 0
        assert self.wrong(index) == 1
        index.add("text", "age = 'old'")
        assert index.count({"age": "old"}) == 1
        assert self.wrong(index) == 1

    def test_in_batches_of_any_size(self) -> None:
        index = Index()
        index.add_many([f"s{n}" for n in range(300)], [f"age > {n % 3} OR x = {n}" for n in range(300)])
        events = pa.table({"age": ["old"] * 1000, "x": list(range(1000))})
        index.count_batch(events)
        assert self.wrong(index) == 1000


@pytest.mark.parametrize("given", [range(3), range(9_000, 9_003), range(19_000, 20_000)])
def test_priorities_and_expiries_of_few_rows_belong_to_those_rows(given: range) -> None:
    """Nothing is stored before the first unusual value, wherever it is among the rows that threads share."""
    rows = 20_000
    index = tamis.Index()
    index.add_many(
        range(rows),
        [f"x = {row % 7}" for row in range(rows)],
        priorities=[float(row) if row in given else None for row in range(rows)],
        expires=[row if row in given else None for row in range(rows)],
    )
    for row in (0, 1, 8_999, *given[:3], 9_003, rows - 1):
        subscription = index[row]
        assert subscription.priority == (row if row in given else 0.0)
        assert (subscription.expires is not None) == (row in given)


@pytest.mark.parametrize("name", [int, str])
def test_ids_are_right_while_rows_move(name: Any) -> None:
    # Objects of ids are kept from answer to answer; segments are added, merged and emptied meanwhile.
    index = tamis.Index()
    expected: set[Any] = set()
    for start in range(0, 6_000, 1_500):
        index.add_many([name(at) for at in range(start, start + 1_500)], ["x > 1"] * 1_500)
        expected.update(name(at) for at in range(start, start + 1_500))
        assert index.match({"x": 2}) == sorted(expected)
        for at in range(start, start + 1_500, 7):
            index.remove(name(at))
            expected.remove(name(at))
        index.add(name(-1 - start), "x > 1")
        expected.add(name(-1 - start))
        for _ in range(2):
            assert index.match({"x": 2}) == sorted(expected)
    index.optimize()
    assert index.match({"x": 2}) == sorted(expected)
    first, second = index.match({"x": 2}), index.match({"x": 2})
    # Those in the buffer, which are the last ones added, are made each time.
    assert sum(one is other for one, other in zip(first, second, strict=True)) >= len(first) - 4


def test_a_subclass_may_answer_in_its_own_way() -> None:
    class Loud(Index):
        def match(self, event: Any, **options: Any) -> list[Any]:
            return [f"{found}!" for found in super().match(event, **options)]

    index = Loud()
    index.add("a", "x > 1", tags=["t"])
    assert index.match({"x": 2}) == ["a!"]
    assert index.match({"x": 2}, tags=["other"]) == []
    assert index.count({"x": 2}) == 1
    assert copy.copy(index).match(b'{"x": 2}') == ["a!"]


def test_an_index_answers_once_it_is_initialized_and_is_so_once() -> None:
    bare = Index.__new__(Index)
    for ask in (bare.match, bare.count, bare.exists):
        with pytest.raises(tamis.ArgumentError, match="was not initialized"):
            ask({})
    index = Index()
    index.add("a", "x > 1")
    with pytest.raises(tamis.ArgumentError, match="initialized once"):
        index.__init__()  # type: ignore[misc]
