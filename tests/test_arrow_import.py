"""Arrow data is read where it lies, in every layout that producers use.

The judge is pyarrow: the rows of a table as dicts (`to_pylist`) must match what the table matches.
"""

import ctypes
import gc
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis import Index

OF_OFFSETS = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_map,
)
PAIRS = pa.struct({"name": pa.string(), "size": pa.int64()})
TAGGED = pa.struct({"tags": pa.list_(pa.string())})


def nothing(memory: bytes | bytearray = b"\xff" * 64) -> pa.Buffer:
    """A buffer of no bytes, in memory where whoever reads on finds negative offsets."""
    return pa.py_buffer(memory).slice(16, 0)


def trimmed(array: pa.Array, memory: bytes | bytearray = b"\xff" * 64) -> pa.Array:
    """The same array as Arrow for Java writes it: without elements, it has no offsets."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(array.indices, trimmed(array.dictionary, memory))
    children: list[pa.Array] = []
    if pa.types.is_map(kind):
        # Those of the map, and not only those of the entries in the slice.
        entries = pa.StructArray.from_arrays(
            [array.keys, array.items], fields=[kind.key_field, kind.item_field]
        )
        children = [trimmed(entries, memory)]
    elif pa.types.is_struct(kind):
        if array.offset > 0:
            return array  # Its fields have elements.
        children = [trimmed(array.field(at), memory) for at in range(kind.num_fields)]
    elif kind.num_fields == 1:
        children = [trimmed(array.values, memory)]
    buffers = array.buffers()[: 3 if _is_text(kind) else kind.num_buffers]
    if len(array) == 0 and any(has_offsets(kind) for has_offsets in OF_OFFSETS):
        buffers[1:] = [nothing(memory) for _ in buffers[1:]]
    return pa.Array.from_buffers(kind, len(array), buffers, array.null_count, array.offset, children)


def _is_text(kind: pa.DataType) -> bool:
    return any(is_text(kind) for is_text in OF_OFFSETS[:4])


@pytest.fixture(scope="module")
def index() -> Index:
    index = Index()
    index.add_many(
        [
            "tag",
            "tags",
            "size",
            "name",
            "key",
            "number",
            "inner",
            "missing",
            "word",
            "pair",
            "record",
            "deep",
        ],
        [
            "array_contains(tags, 'a')",
            "arrays_overlap(tags, array('b', 'c'))",
            "array_contains(sizes, 2)",
            "name = 'a'",
            "labels.a = 'b'",
            "counts.b > 1",
            "inner.name = 'a' OR inner.size = 1",
            "tags IS NULL OR labels IS NULL OR inner IS NULL",
            "word IN ('a', 'b')",
            "array_contains(pairs, 'a')",
            "exists(records, r -> r.name = 'a' OR r.size = 1)",
            "exists(deep, d -> array_contains(d.tags, 'a'))",
        ],
    )
    return index


def check(index: Index, table: pa.Table | pa.RecordBatch) -> None:
    """The table, as a whole and as a stream of batches, matches what its rows match as dicts."""
    table.validate(full=True)
    expected = index.match_batch(_as_dicts(table)).to_pydict()
    assert index.match_batch(table).to_pydict() == expected
    if isinstance(table, pa.Table):
        assert index.match_batch(table.to_reader()).read_all().to_pydict() == expected


def _as_dicts(table: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    rows = table.to_pylist()
    for row in rows:
        row.update({name: dict(row[name]) for name in ("labels", "counts") if row.get(name)})
    return rows


EMPTY: dict[str, pa.Array] = {
    "utf8": pa.array([], pa.string()),
    "large utf8": pa.array([], pa.large_string()),
    "list": pa.array([], pa.list_(pa.int64())),
    "large list": pa.array([], pa.large_list(pa.int64())),
    "map": pa.array([], pa.map_(pa.string(), pa.int64())),
    "list of texts": pa.array([[], None, []], pa.list_(pa.string())),
    "large list of large texts": pa.array([[], None], pa.large_list(pa.large_string())),
    "list of lists": pa.array([[], [[], []]], pa.list_(pa.list_(pa.string()))),
    "list of structs": pa.array([[], None], pa.list_(PAIRS)),
    "list of maps": pa.array([[], None], pa.list_(pa.map_(pa.string(), pa.string()))),
    "map of texts": pa.array([[], None], pa.map_(pa.string(), pa.string())),
    "map of lists": pa.array([[("a", [])], []], pa.map_(pa.string(), pa.list_(pa.string()))),
    "struct of lists": pa.array([{"x": []}, None], pa.struct({"x": pa.list_(pa.string())})),
    "dictionary": pa.array([None, None], pa.string()).dictionary_encode(),
    "list of dictionaries": pa.ListArray.from_arrays([0, 0], pa.array([], pa.string()).dictionary_encode()),
    "list of binaries": pa.array([[], []], pa.list_(pa.binary())),
    "list of large binaries": pa.array([[], []], pa.list_(pa.large_binary())),
    "fixed-size list": pa.array([None, [None, None]], pa.list_(pa.list_(pa.string()), 2)),
}


@pytest.mark.parametrize("name", EMPTY)
def test_an_array_without_elements_may_have_no_offsets(name: str) -> None:
    """As Arrow for Java writes it, and with it Spark 4.0 and 4.1: a buffer of no bytes."""
    array = trimmed(EMPTY[name])
    array.validate(full=True)
    assert array.equals(EMPTY[name])
    index = Index()
    index.add_many([1, 2], ["x IS NOT NULL", "y = 1"])
    present = [row for row, value in enumerate(EMPTY[name].to_pylist()) if value is not None]
    numbers = pa.array([1] * len(array), pa.int64())
    batch = pa.record_batch([array, numbers], names=["x", "y"])
    supported = "binar" not in name
    for table in (batch, pa.Table.from_batches([batch])):
        if supported:
            matched = index.match_batch(table)
            found = sorted(zip(*matched.to_pydict().values(), strict=True))
            assert found == sorted([(row, 1) for row in present] + [(row, 2) for row in range(len(array))])
        elif present:
            with pytest.raises(tamis.EventError, match="cannot be matched"):
                index.match_batch(table)


class CArray(ctypes.Structure):
    """`struct ArrowArray` of the C data interface."""

    _fields_ = [
        *[(name, ctypes.c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")],
        *[(name, ctypes.c_void_p) for name in ("buffers", "children", "dictionary", "release", "private")],
    ]

    def child(self, at: int) -> "CArray":
        return CArray.from_address(ctypes.c_void_p.from_address(self.children + 8 * at).value)


class Changed:
    """A table of another producer than pyarrow: `change` gets its structure."""

    def __init__(self, array: pa.Array | pa.RecordBatch, change: Any) -> None:
        self.array, self.change = array, change

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        schema, array = self.array.__arrow_c_array__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        self.change(CArray.from_address(pointer(array, b"arrow_array")))
        return schema, array


def test_an_array_without_elements_may_have_no_buffers() -> None:
    """pyarrow makes no such array; others do."""
    index = Index()
    index.add_many([1, 2], ["array_contains(x, 'a')", "y = 2 AND x IS NULL"])
    batch = pa.record_batch([pa.array([[], None], pa.list_(pa.string())), [1, 2]], names=["x", "y"])

    def change(array: CArray) -> None:
        texts = array.child(0).child(0)
        assert (texts.length, texts.n_buffers) == (0, 3)
        for at in range(3):
            ctypes.c_void_p.from_address(texts.buffers + 8 * at).value = None

    assert index.match_batch(Changed(batch, change)).to_pydict() == {"event": [1], "subscription": [2]}


def test_what_was_imported_is_released_once() -> None:
    memory = bytearray(b"\xff" * 64)
    index = Index()
    index.add(1, "array_contains(x, 'a')")
    before = sys.getrefcount(memory)
    batch = pa.record_batch([trimmed(pa.array([[], []], pa.list_(pa.string())), memory)], names=["x"])
    assert sys.getrefcount(memory) > before
    for _ in range(10):
        assert index.match_batch(batch).num_rows == 0
        assert index.match_batch(pa.Table.from_batches([batch])).num_rows == 0
    del batch
    gc.collect()
    assert sys.getrefcount(memory) == before


TEXTS = st.none() | st.sampled_from(["", "a", "b", "c", "äöü"])
NUMBERS = st.none() | st.integers(0, 3)
TAGS = st.none() | st.lists(TEXTS, max_size=3)
NAMED = st.none() | st.fixed_dictionaries({"name": TEXTS, "size": NUMBERS})


def maps_of(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | st.dictionaries(st.sampled_from("abc"), values, max_size=2).map(
        lambda map: [*map.items()]
    )


COLUMNS: dict[str, tuple[list[pa.DataType], st.SearchStrategy[Any]]] = {
    "tags": (
        [pa.list_(pa.string()), pa.large_list(pa.large_string()), pa.list_view(pa.string())],
        TAGS,
    ),
    "sizes": ([pa.list_(pa.int64()), pa.large_list(pa.int8())], st.none() | st.lists(NUMBERS, max_size=3)),
    "name": ([pa.string(), pa.large_string(), pa.string_view()], TEXTS),
    "labels": (
        [pa.map_(pa.string(), pa.string()), pa.map_(pa.large_string(), pa.large_string())],
        st.none()
        | st.dictionaries(st.sampled_from("abc"), TEXTS, max_size=2).map(lambda map: [*map.items()]),
    ),
    "counts": (
        [pa.map_(pa.string(), pa.int64())],
        st.none()
        | st.dictionaries(st.sampled_from("abc"), NUMBERS, max_size=2).map(lambda map: [*map.items()]),
    ),
    "inner": ([PAIRS], NAMED),
    "word": ([pa.dictionary(pa.int8(), pa.string())], TEXTS),
    "records": ([pa.list_(PAIRS), pa.large_list(PAIRS)], st.none() | st.lists(NAMED, max_size=2)),
    "pairs": ([pa.list_(pa.string(), 2)], st.none() | st.lists(TEXTS, min_size=2, max_size=2)),
    "deep": (
        [pa.list_(TAGGED), pa.large_list(TAGGED), pa.list_(TAGGED, 1)],
        st.none() | TAGS.map(lambda tags: [{"tags": tags}]),
    ),
}


@pytest.mark.thorough
@given(data=st.data())
def test_slices_of_nested_arrays_are_what_pyarrow_reads_in_them(index: Index, data: st.DataObject) -> None:
    rows = data.draw(st.integers(0, 12), "rows")
    first = data.draw(st.integers(0, rows), "first")
    length = data.draw(st.integers(0, rows - first), "length")
    columns = {}
    for name in data.draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, unique=True), "columns"):
        kinds, values = COLUMNS[name]
        kind = data.draw(st.sampled_from(kinds), name)
        array = pa.array(data.draw(st.lists(values, min_size=rows, max_size=rows), name), kind)
        array = array.slice(first, length)
        if not pa.types.is_list_view(kind) and not pa.types.is_string_view(kind):
            array = trimmed(array)
        columns[name] = array
    batch = pa.record_batch(columns)
    check(index, batch)
    table = pa.Table.from_batches([batch, batch.slice(length // 2)])
    check(index, table)
    check(index, table.slice(first // 2))


NO_TEXT = pa.StringArray.from_buffers(2, pa.array([0, 1, 2], pa.int32()).buffers()[1], pa.py_buffer(b"\xffa"))
AS_STRUCT = pa.StructArray.from_arrays([NO_TEXT], ["name"])
OF_TWO: dict[str, tuple[pa.Array, str]] = {
    "list": (pa.ListArray.from_arrays([0, 1, 2], NO_TEXT), "array_contains(x, 'a')"),
    "large list": (pa.LargeListArray.from_arrays([0, 1, 2], NO_TEXT), "array_contains(x, 'a')"),
    "fixed-size list": (pa.FixedSizeListArray.from_arrays(NO_TEXT, 1), "array_contains(x, 'a')"),
    "map": (pa.MapArray.from_arrays([0, 1, 2], ["k", "k"], NO_TEXT), "x.k = 'a'"),
    "list of structs": (pa.ListArray.from_arrays([0, 1, 2], AS_STRUCT), "exists(x, e -> e.name = 'a')"),
    "struct of lists": (
        pa.StructArray.from_arrays([pa.ListArray.from_arrays([0, 1, 2], NO_TEXT)], ["y"]),
        "array_contains(x.y, 'a')",
    ),
}


@pytest.mark.parametrize("kind", OF_TWO)
def test_what_a_slice_does_not_show_is_not_read(kind: str) -> None:
    """Fault: every slice of a table costs as much as the whole table."""
    column, rule = OF_TWO[kind]
    index = Index()
    index.add(1, rule)
    batch = pa.record_batch([column], names=["x"])
    assert index.match_batch(batch.slice(1)).to_pydict() == {"event": [0], "subscription": [1]}
    assert index.match_batch(batch.slice(2)).num_rows == 0
    for table in (batch, batch.slice(0, 1)):
        with pytest.raises(ValueError, match="cannot be read"):
            index.match_batch(table)


def test_offsets_that_lead_outside_are_refused_in_every_slice() -> None:
    index = Index()
    index.add(1, "array_contains(x, 'a')")
    texts = pa.array(["a", "b", "c"])
    for hostile in (
        [0, 2, 1, 3],
        [0, -1, 2, 3],
        [0, 1, 2, 4],
        [0, 2**31 - 1, 2, 3],
        [-(2**31), 1, 2, 3],
        [1, 0, 1, 0],
    ):
        offsets = np.array([0, 1, 2, 3], np.int32)
        column = pa.Array.from_buffers(
            pa.list_(pa.string()), 3, [None, pa.py_buffer(offsets)], children=[texts]
        )
        batch = pa.record_batch([column], names=["x"])
        offsets[:] = hostile  # pyarrow would not make such an array
        for first in range(3):
            for rows in range(1, 4 - first):
                bounds = hostile[first : first + rows + 1]
                if bounds == sorted(bounds) and bounds[0] >= 0 and bounds[-1] <= 3:
                    assert index.match_batch(batch.slice(first, rows)).num_rows == (bounds[0] == 0)
                else:
                    with pytest.raises(ValueError, match="cannot be read"):
                        index.match_batch(batch.slice(first, rows))


COLUMNS_OF_A_WIDE_TABLE = 700


def wide(rows: int, texts: pa.Array | None = None) -> pa.Table:
    """A table with so many columns that several threads read it; the last one is `texts`, if given."""
    numbers = {f"n{at}": [row if (row + at) % 3 else None for row in range(rows)] for at in range(500)}
    lists = {f"l{at}": pa.array([["a"] * (row % 2) for row in range(rows)]) for at in range(199)}
    return pa.table({**numbers, **lists, "t": texts if texts is not None else ["a"] * rows})


@pytest.fixture(scope="module")
def wide_index() -> Index:
    index = Index()
    rules = ["n0 >= 1", "n499 < 5", "n250 IS NULL", "array_contains(l198, 'a')", "t = 'a'"]
    index.add_many(range(len(rules)), rules)
    return index


@pytest.mark.parametrize("threads", [1, 2, 16])
def test_wide_tables_are_read_on_several_threads(wide_index: Index, threads: int) -> None:
    table = wide(9)
    assert table.num_columns == COLUMNS_OF_A_WIDE_TABLE
    for part in (table, table.slice(2, 5), table.slice(9), pa.concat_tables([table, table.slice(3)])):
        expected = wide_index.match_batch(part.to_pylist()).to_pydict()
        assert wide_index.match_batch(part, threads=threads).to_pydict() == expected
        batches = part.combine_chunks().to_batches()
        for batch in batches:
            assert wide_index.match_batch(batch, threads=threads).to_pydict() == expected


@pytest.mark.parametrize("threads", [1, 16])
def test_what_is_wrong_in_a_wide_table_is_refused_by_every_thread(wide_index: Index, threads: int) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        wide_index.match_batch(wide(2, NO_TEXT), threads=threads)


def test_a_wide_table_is_released_once_by_whoever_reads_it_last(wide_index: Index) -> None:
    memory = bytearray(b"ab")
    before = sys.getrefcount(memory)
    offsets = pa.array([0, 1, 2], pa.int32()).buffers()[1]
    table = wide(2, pa.StringArray.from_buffers(2, offsets, pa.py_buffer(memory)))
    assert sys.getrefcount(memory) > before
    for _ in range(10):
        assert wide_index.count_batch(table, threads=8).to_pylist()[0] > 0
        assert wide_index.count_batch(table.to_batches()[0], threads=8).to_pylist()[0] > 0
    del table
    gc.collect()
    assert sys.getrefcount(memory) == before


@pytest.mark.parametrize("said", [-1, 2, 1, 3])
def test_a_wrong_number_of_nulls_is_refused(said: int) -> None:
    """Fault: nulls are not counted where a producer says how many there are."""
    index = Index()
    index.add(1, "x = 0")
    batch = pa.record_batch({"x": pa.array([None, 0, None, 1])})

    def change(array: CArray) -> None:
        array.child(0).null_count = said

    if said in (-1, 2):
        assert index.match_batch(Changed(batch, change)).to_pydict() == {"event": [1], "subscription": [1]}
    else:
        with pytest.raises(ValueError, match="null_count"):
            index.match_batch(Changed(batch, change))


@pytest.mark.parametrize("path", [[], [0], [1], [1, 0]])
def test_an_array_whose_buffers_are_nowhere_is_refused(path: list[int]) -> None:
    """Fault: the pointers to the buffers are read, whether there are any or not."""
    index = Index()
    index.add(1, "x = 0")
    batch = pa.record_batch({"x": [0, 1], "y": [["a"], []], "z": pa.array([[], []], pa.list_(pa.string()))})

    def change(array: CArray) -> None:
        for at in path:
            array = array.child(at)
        array.buffers = None

    with pytest.raises(ValueError, match="no pointers to its buffers"):
        index.match_batch(Changed(batch, change))


def test_a_slice_of_an_array_of_structs_is_a_table() -> None:
    """Fault: the columns of a table that begins further down are read from the top."""
    index = Index()
    index.add_many([1, 2], ["x = 3", "array_contains(y, 'b')"])
    array = pa.StructArray.from_arrays(
        [pa.array([3, 4, 3, None, 3]), pa.array([["a"], [], ["b"], None, ["b"]])], ["x", "y"]
    ).slice(1, 3)
    rows = [row if row is not None else {} for row in array.to_pylist()]
    expected = index.match_batch(rows).to_pydict()
    assert expected == {"event": [1, 1], "subscription": [1, 2]}

    def nothing_at_all(array: CArray) -> None:
        assert (array.offset, array.length) == (1, 3)

    assert index.match_batch(Changed(array, nothing_at_all)).to_pydict() == expected


@pytest.mark.parametrize(("field", "value"), [("length", 5), ("offset", 3), ("offset", -1), ("length", -1)])
def test_a_table_with_more_rows_than_its_columns_is_refused(field: str, value: int) -> None:
    index = Index()
    index.add(1, "x >= 0")
    batch = pa.record_batch({"x": pa.array([1, 2, 3, 4])})
    with pytest.raises(ValueError, match="cannot be read"):
        index.match_batch(Changed(batch, lambda array: setattr(array, field, value)))
