"""Many changes at once, changes of some fields, and batches with names, payloads and bad events."""

import itertools
import random
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from seeds import few


def three() -> tamis.Index:
    index = tamis.Index()
    index.add_many(
        ["a", "b", "c"], ["x > 1", "x > 2", "x > 3"], priorities=[1, 2, 3], payloads=[b"A", None, b"C"]
    )
    return index


def test_upsert_many_replaces_and_adds() -> None:
    index = three()
    index.upsert_many(["c", "d"], ["x > 0", "x > 9"], priorities=pa.array([7.0, None]))
    assert index.match({"x": 1}) == ["c"]
    assert (index["c"].priority, index["c"].payload, index["d"].priority) == (7.0, None, 0.0)


def test_a_bad_row_leaves_everything_as_it_was() -> None:
    index = three()
    before = index.generation
    with pytest.raises(tamis.ExpressionError):
        index.upsert_many(["a", "z"], ["x > 100", "x >"])
    assert (index.generation, str(index["a"].expression)) == (before, "x > 1")
    refused = index.upsert_many(["a", "z"], ["x > 100", "x >"], on_error="collect")
    assert [(row.row, row.id) for row in refused] == [(1, "z")]
    assert str(index["a"].expression) == "x > 100"


def test_upsert_many_refuses_what_the_schema_refuses() -> None:
    index = tamis.Index(schema={"x": "int"})
    index.add("a", "x > 1")
    with pytest.raises(tamis.ExpressionError):
        index.upsert_many(["a"], ["x = 'one'"])
    assert str(index["a"].expression) == "x > 1"


def test_an_id_twice_in_a_batch_is_refused() -> None:
    with pytest.raises(tamis.DuplicateIdError):
        three().upsert_many(["a", "a"], ["x > 1", "x > 2"])


def test_remove_many_removes_nothing_if_one_is_missing() -> None:
    index = three()
    with pytest.raises(tamis.UnknownIdError, match='subscription "z" in the index; nothing was removed'):
        index.remove_many(["a", "z"])
    assert list(index) == ["a", "b", "c"]
    assert index.remove_many(["a", "a", "c"]) == 2
    assert list(index) == ["b"]


def test_clear_keeps_the_schema() -> None:
    index = tamis.Index(schema={"x": "int"})
    index.add("a", "x > 1")
    index.clear()
    assert (len(index), index.schema, index.match({"x": 2})) == (0, {"x": "int"}, [])


def test_update_keeps_what_is_not_named() -> None:
    index = tamis.Index()
    moment = datetime(2030, 1, 1, tzinfo=UTC)
    index.add(
        1, "x > 1", priority=2.0, weights={"x": 0.5}, tags=["t"], owner="o", payload=b"p", expires=moment
    )
    index.update(1, priority=3.0)
    held = index[1]
    assert held == tamis.Subscription(1, held.expression, 3.0, {"x": 0.5}, ("t",), b"p", moment, "o")
    index.update(1, payload=None, owner=None, expires=None)
    assert (index[1].payload, index[1].owner, index[1].expires) == (None, None, None)
    index.set_expires(1, moment)
    index.set_tags(1, [])
    assert (index[1].expires, index[1].tags) == (moment, ())


def test_a_field_that_is_not_there_is_named() -> None:
    with pytest.raises(tamis.ArgumentError, match="did you mean `priority`"):
        three().update("a", prority=3)
    with pytest.raises(tamis.UnknownIdError):
        three().update("z", priority=3)


def test_an_index_as_a_table_and_back() -> None:
    index = tamis.Index()
    moment = datetime(2030, 1, 1, 12, tzinfo=UTC)
    index.add(7, "x > 1 AND (y > 2)^0.5", priority=2.5, weights={"x": 0.5}, tags=["a", "b"], expires=moment)
    index.add(3, "name = 'x'", owner="ann", payload=b"\xff")
    copy = tamis.Index()
    copy.add_table(index.to_arrow())
    assert [copy[id] for id in copy] == [index[id] for id in index]
    assert tamis.Index().to_arrow().num_rows == 0


@pytest.mark.parametrize("of", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
@pytest.mark.parametrize("name", [lambda row: row, lambda row: f"r{row}"])
def test_tables_may_come_in_chunks(of: pa.DataType, name: Callable[[int], int | str]) -> None:
    ids = [name(row) for row in range(7)]
    texts: list[str | None] = [f"x > {row}" for row in range(7)]
    texts[3] = None
    cuts = [0, 0, 1, 3, 3, 6, 7, 7]  # some are empty
    chunks = [pa.array(texts[start:end], pa.string()).cast(of) for start, end in itertools.pairwise(cuts)]
    other = [pa.array(ids[start:end], pa.array(ids).type) for start, end in itertools.pairwise([0, 2, 2, 7])]
    table = pa.table(
        {"id": pa.chunked_array(other), "expression": pa.chunked_array(chunks), "priority": range(7)}
    )
    index = tamis.Index()
    [refused] = index.add_table(table, on_error="collect")
    assert (refused.row, refused.id) == (3, ids[3])
    assert index.match({"x": 5}) == sorted(ids[row] for row in [0, 1, 2, 4])
    assert [index[ids[row]].priority for row in (0, 6)] == [0, 6]
    part = tamis.Index()
    part.add_table(table.slice(4))
    assert part.match({"x": 9}) == ids[4:]
    nothing = tamis.Index()
    nothing.add_table(table.slice(7))
    assert len(nothing) == 0


def test_the_text_of_a_table_in_chunks_is_not_copied() -> None:
    padding = " " * 10_000
    chunk = pa.array([f"x > {row}{padding}" for row in range(500)])
    table = pa.table({"id": range(1000), "expression": pa.chunked_array([chunk, chunk])})
    pool = pa.default_memory_pool()
    before = max(pool.bytes_allocated(), pool.max_memory())
    filled = pa.allocate_buffer(before - pool.bytes_allocated() + 1)  # so that any more becomes the maximum
    highest = pool.max_memory()
    index = tamis.Index()
    index.add_table(table)
    assert index.count({"x": 1}) == 2
    assert pool.max_memory() - highest < 1_000_000 < table.nbytes
    del filled


def test_events_named_by_a_key_with_payloads() -> None:
    index, events = three(), [{"id": "e1", "x": 2}, {"id": "e2", "x": 4}]
    rows = index.match_batch(events, key="id", payloads=True).to_pylist()
    assert [(row["event"], row["subscription"], row["payload"]) for row in rows] == [
        ("e1", "a", b"A"),
        ("e2", "a", b"A"),
        ("e2", "b", None),
        ("e2", "c", b"C"),
    ]
    best = index.top_k_batch(pa.table({"id": ["e1", "e2"], "x": [2, 4]}), k=1, key="id", payloads=True)
    assert best.select(["event", "payload"]).to_pydict() == {"event": ["e1", "e2"], "payload": [b"A", b"C"]}
    with pytest.raises(tamis.ArgumentError, match="no attribute 'key'"):
        index.match_batch(pa.table({"x": [1]}), key="key")


def test_bad_events_are_collected_with_their_rows() -> None:
    lines = b'{"x": 4}\n{"x": \n{"x": 2}\n'
    found, refused = three().match_batch(lines, on_error="collect")
    assert found["event"].to_pylist() == [0, 0, 0, 2]
    assert [bad.row for bad in refused] == [1]
    with pytest.raises(tamis.EventError):
        three().match_batch(lines)


@pytest.mark.parametrize(
    "value",
    ["Joe's Diner", 'say "hi"', "back\\slash", "new\nline", "?", "' OR TRUE --", "", -3, 2.5, True],
)
def test_a_parameter_is_a_value_whatever_it_holds(value: object) -> None:
    expression = tamis.parse("x = ? AND y != 'why?' -- really?", [value])
    assert expression.evaluate({"x": value, "y": ""}) is True


def test_parameters_are_counted() -> None:
    with pytest.raises(tamis.ArgumentError, match="2 parameters for 1 values"):
        tamis.parse("x = ? AND y = ?", [1])
    assert tamis.parse("x IN (?) AND `a?` = 1", [[1, 2]]).evaluate({"x": 2, "a?": 1}) is True
    assert tamis.parse("at > ?", [datetime(2026, 1, 31, tzinfo=UTC)]).evaluate({"at": datetime(2027, 1, 1)})


@pytest.mark.parametrize("seed", few(range(3)))
def test_an_index_that_puts_itself_together_answers_the_same(tmp_path: Path, seed: int) -> None:
    """Changes, removals of ids that come again, and a saved file, while small segments are merged."""
    source = random.Random(seed)
    index, rules, merges, asked = tamis.Index(), dict[int, int](), 0, 0
    while merges < 3:
        for _ in range(source.choice([1, 60, 300])):
            id, least = source.randrange(2_000), source.randrange(100)
            if id in rules and source.random() < 0.4:
                index.remove(id)
                del rules[id]
            else:
                index.upsert_many([id], [f"x >= {least}"])
                rules[id] = least
        for _ in range(1_200):
            x = source.randrange(20)
            found = index.match({"x": x})
            asked += 1
            if asked % 60 == 0:
                assert found == sorted(id for id, least in rules.items() if least <= x)
        merges = index.stats()["automatic_optimizations"]
        assert asked < 1_000_000, "it never puts itself together"
    index.save(tmp_path / "rules.tamis")
    opened = tamis.Index.open(tmp_path / "rules.tamis")
    for x in range(100):
        assert opened.match({"x": x}) == sorted(id for id, least in rules.items() if least <= x)
