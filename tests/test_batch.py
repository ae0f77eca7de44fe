"""Tables of events in, tables of matches out."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tamis
from tamis import Index

IDS = pa.dictionary(pa.int32(), pa.string())


@pytest.fixture
def index() -> Index:
    index = Index()
    index.add("adult", "age >= 18", priority=1.0)
    index.add("senior", "age >= 65", priority=2.0, tags=["s"])
    index.add("geneva", "city = 'Geneva'")
    return index


TABLE = pa.table({"age": [17, 70, None, 30], "city": ["Geneva", None, "Bern", "Geneva"]})
PAIRS = {"event": [0, 1, 1, 3, 3], "subscription": ["geneva", "adult", "senior", "adult", "geneva"]}


def test_the_result_is_a_table_of_pairs(index: Index) -> None:
    found = index.match_batch(TABLE)
    assert found.to_pydict() == PAIRS
    assert found.schema.types == [pa.int64(), IDS]


def test_the_dictionary_holds_only_ids_that_occur(index: Index) -> None:
    index.add_many([f"never {at}" for at in range(1000)], ["FALSE"] * 1000)
    column = index.match_batch(TABLE).column("subscription")
    assert sorted(column.chunk(0).dictionary.to_pylist()) == ["adult", "geneva", "senior"]


def test_integer_ids() -> None:
    index = Index()
    index.add_many([5, -3], ["age > 18", "age > 60"])
    found = index.match_batch(TABLE)
    assert found.schema.types == [pa.int64(), pa.int64()]
    assert found.to_pydict() == {"event": [1, 1, 3], "subscription": [-3, 5, 5]}


def test_top_k_has_scores_and_ranks(index: Index) -> None:
    best = index.top_k_batch(TABLE, k=1)
    assert best.to_pydict() == {
        "event": [0, 1, 3],
        "subscription": ["geneva", "senior", "adult"],
        "score": [0.0, 2.0, 1.0],
        "rank": [1, 1, 1],
    }
    with pytest.raises(tamis.ArgumentError, match="priority"):
        index.top_k_batch(TABLE, score="nonsense")


def test_counts(index: Index) -> None:
    counts = index.count_batch(TABLE)
    assert counts.type == pa.int64()
    assert counts.to_pylist() == [1, 2, 0, 2]
    assert TABLE.append_column("matches", counts).num_columns == 3
    assert index.count_batch(TABLE, tags=["s"]).to_pylist() == [0, 1, 0, 0]


def test_whatever_offers_arrow_data_is_a_table(index: Index, duck: Any) -> None:
    frame = pd.DataFrame(
        {"age": pd.array([17, 70, None, 30], "Int64"), "city": ["Geneva", None, "Bern", "Geneva"]}
    )
    duck.register("people", TABLE)
    for events in (
        frame,
        pl.DataFrame(TABLE),
        duck.sql("FROM people"),
        TABLE.combine_chunks().to_batches()[0],
        TABLE.cast(pa.schema({"age": pa.int8(), "city": pa.large_string()})),
        TABLE.cast(pa.schema({"age": pa.float32(), "city": pa.string_view()})),
        TABLE.set_column(1, "city", TABLE.column("city").dictionary_encode()),
    ):
        assert index.match_batch(events).to_pydict() == PAIRS


def test_lists_and_lines_of_events(index: Index) -> None:
    rows = TABLE.to_pylist()
    lines = '{"age": 17, "city": "Geneva"}\n{"age": 70}\r\n\n{"city": "Bern"}\n{"age": 30, "city": "Geneva"}'
    for events in (rows, iter(rows), [tamis.Event(row) for row in rows], lines, lines.encode() + b"\n"):
        assert index.match_batch(events).to_pydict() == PAIRS


def test_nothing_in_nothing_out(index: Index) -> None:
    for events in ([], b"", TABLE.slice(0, 0), pa.table({})):
        assert index.match_batch(events).to_pydict() == {"event": [], "subscription": []}
        assert index.match_batch(events).schema.types == [pa.int64(), IDS]
        assert index.top_k_batch(events).column_names == ["event", "subscription", "score", "rank"]
        assert index.count_batch(events).to_pylist() == []
    assert Index().match_batch(TABLE).num_rows == 0


def test_readers_are_streamed(index: Index) -> None:
    pulled = []

    def batches() -> Iterator[pa.RecordBatch]:
        for at, batch in enumerate(TABLE.to_batches(max_chunksize=1)):
            pulled.append(at)
            yield batch

    matched = index.match_batch(pa.RecordBatchReader.from_batches(TABLE.schema, batches()))
    assert pulled == []
    first = matched.read_next_batch()
    assert (first.to_pydict(), pulled) == ({"event": [0], "subscription": ["geneva"]}, [0])
    index.remove("senior")
    assert matched.read_all().to_pydict() == {
        "event": [1, 3, 3],
        "subscription": ["adult", "adult", "geneva"],
    }

    best = index.top_k_batch(pa.RecordBatchReader.from_batches(TABLE.schema, batches()), 1)
    assert best.read_all().column("event").to_pylist() == [0, 1, 3]
    counts = index.count_batch(pa.RecordBatchReader.from_batches(TABLE.schema, batches()))
    assert counts.to_pylist() == [1, 1, 0, 2]


def test_errors_in_a_stream_keep_their_type(index: Index) -> None:
    bad = pa.table({"age": pa.array([b"x"], pa.binary())})
    matched = index.match_batch(bad.to_reader())
    with pytest.raises(tamis.EventError, match="age"):
        matched.read_all()


def test_interval_columns() -> None:
    index = Index()
    index.add("long", "hours > 25")
    ends = pa.struct({"low": pa.int64(), "high": pa.int64()})
    table = pa.table({"hours": pa.array([{"low": 20, "high": 30}, {"low": 1, "high": 2}, None], ends)})
    assert index.match_batch(table, intervals=["hours"]).column("event").to_pylist() == [0]
    assert index.match_batch(table).num_rows == 0
    with pytest.raises(TypeError, match="intervals"):
        index.match_batch(table, intervals="hours")


def test_what_is_wrong_with_which_event(index: Index) -> None:
    with pytest.raises(tamis.EventError, match=r"event 1: .*age"):
        index.match_batch([{"age": 1}, {"age": object()}])
    with pytest.raises(TypeError, match="event 0"):
        index.match_batch([7])
    with pytest.raises(tamis.EventError, match="line 2"):
        index.match_batch(b'{"age": 1}\n{"age": }')
    ages = pa.chunked_array([[1, 2], [3, 2**63]], pa.uint64())
    strict = Index(strict=True)
    strict.add("a", "age > 1")
    with pytest.raises(tamis.EventError, match="row 1"):
        strict.match_batch(pa.table({"age": ages}))
    with pytest.raises(tamis.ArgumentError, match="threads"):
        index.match_batch(TABLE, threads=0)


def test_invalid_arrow_data_is_refused(index: Index) -> None:
    """A producer that lies about its text must not reach the matcher."""
    offsets, text = pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xff")
    lies = pa.Array.from_buffers(pa.string(), 1, [None, offsets, text])
    with pytest.raises(ValueError, match="Arrow"):
        index.match_batch(pa.table({"city": lies}))
    with pytest.raises(ValueError, match="Arrow"):
        Index().add_many([1], lies)


@pytest.mark.parametrize("ask", ["match_batch", "count_batch", "top_k_batch"])
def test_a_dict_is_no_batch(index: Index, ask: str) -> None:
    with pytest.raises(TypeError, match=r"write \[event\] for one event, and pyarrow\.table"):
        getattr(index, ask)({"age": [17, 70]})


def test_lists_have_a_row_for_each_event(index: Index) -> None:
    lists = index.match_batch(TABLE, lists=True)
    assert lists.to_pydict() == {
        "event": [0, 1, 2, 3],
        "subscriptions": [["geneva"], ["adult", "senior"], [], ["adult", "geneva"]],
    }
    assert lists.schema.field("subscriptions").type.value_type == IDS
    assert index.match_batch([], lists=True).num_rows == 0
    reader = pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches(max_chunksize=3))
    streamed = index.match_batch(reader, lists=True)
    assert streamed.schema == lists.schema
    assert streamed.read_all().to_pydict() == lists.to_pydict()


@pytest.mark.parametrize("ids", [list(range(300)), [f"rule {at}" for at in range(300)]])
def test_threads_and_chunks_change_no_answer(ids: list[Any]) -> None:
    # Enough matches for several chunks, and runs of events without any between them.
    index = Index()
    index.add_many(ids, [f"x >= {at}" for at in range(300)])
    values = [at % 300 if at // 700 % 2 == 0 else -1 for at in range(9_000)]
    table = pa.table({"x": values})
    lines = "\n".join(f'{{"y": [1, {{"x": 2}}], "x": {value}}}' for value in values)
    matches = [sorted(ids[: value + 1]) for value in values]
    lists = pa.table({"event": range(len(values)), "subscriptions": matches})
    pairs = [
        pa.array(at for at, found in enumerate(matches) for _ in found),
        lists.column("subscriptions").combine_chunks().flatten(),
    ]
    for events in (table, lines):
        for threads in (1, 3):
            found = index.match_batch(events, threads=threads)
            assert found.column("event").num_chunks > 1
            for column, expected in zip(found.columns, pairs, strict=True):
                assert column.combine_chunks().cast(expected.type).equals(expected)
            assert index.match_batch(events, threads=threads, lists=True).cast(lists.schema).equals(lists)


def test_small_answers_come_in_one_chunk(index: Index) -> None:
    found = index.match_batch([{"age": 20}] * 2_000, threads=4)
    assert found.num_rows == 2_000
    assert found.column("subscription").num_chunks == 1


def test_a_list_of_json_texts_is_read_as_single_events_are(index: Index) -> None:
    """Each text is a line of its own, unless it has several, is blank, or is no text at all."""
    plain = ['{"age": 17, "city": "Geneva"}', b'{"age": 70}', "{}", b'  {"city":"Gen\\u0065va","age":30}\r']
    for events in (
        plain,
        [*plain[:3], '{"age": 30,\n"city": "Geneva"}'],
        [*plain[:3], {"age": 30, "city": "Geneva"}],
        [*plain[:3], tamis.Event({"age": 30, "city": "Geneva"})],
    ):
        assert index.match_batch(events).to_pydict() == PAIRS
        assert index.count_batch(events).to_pylist() == [len(index.match(event)) for event in events]
    for blank in ("", " ", b"\t", "\n", '{"a": "\ud800"}'):
        with pytest.raises((tamis.EventError, UnicodeEncodeError)):
            index.match_batch([*plain, blank])
    assert index.match_batch([]).num_rows == 0

    class Lazy(list[Any]):
        def __iter__(self) -> Iterator[Any]:
            return iter(plain)

    assert index.match_batch(Lazy()).to_pydict() == PAIRS


def test_a_bad_text_of_a_list_is_named_by_its_row(index: Index) -> None:
    events = [b'{"age": 20}'] * 3000
    events[1234] = b'{"age": 1,, "b": 2}'
    events[2345] = b"{"
    with pytest.raises(tamis.EventError, match=r"^event 1234: .*line 1, column 11"):
        index.match_batch(events)
    with pytest.raises(tamis.EventError, match=r"^event 1: "):
        index.match_batch(['{"age": 20}\n', "{"])
    with pytest.warns(tamis.ValueWarning, match="row 1: "):
        index.match_batch(["{}", '{"age": 1e400}'])


def test_json_lines_are_read_as_single_events_are(index: Index) -> None:
    lines = ['{"age": 70, "city": "Gen\\u0065va"}', '{"city": "Geneva", "z": [1]}', "{}", '{"age": 18.5}']
    found = index.match_batch("\n\n".join(lines), lists=True)
    assert found.column("subscriptions").to_pylist() == [index.match(line) for line in lines]
    for kind in (str, str.encode):
        assert index.count_batch(kind("\n".join(lines))).to_pylist() == [index.count(line) for line in lines]


def test_a_bad_line_is_named_whichever_thread_reads_it(index: Index) -> None:
    lines = ['{"age": 20}'] * 3_000
    lines[2_900] = '{"age": nope}'
    lines[1_234] = '{"unused": 01}'
    for threads in (1, 4):
        with pytest.raises(tamis.EventError, match="must not start with 0") as refused:
            index.match_batch("\n".join(lines), threads=threads)
        assert "line 1235" in str(refused.value)
    with pytest.raises(tamis.EventError, match="expected a value"):
        index.match_batch("\n".join(lines), validate=False)
    lines[2_900] = "{}"
    assert index.match_batch("\n".join(lines), validate=False).num_rows == 2_998
