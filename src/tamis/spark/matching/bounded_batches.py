"""Rows in record batches of bounded size.

A match repeats the carried columns of its event, so a few input rows can become gigabytes of output, and
offsets into an Arrow column of strings have 32 bits. So output is measured before it is created: `row_bytes`
returns the size of each row, `cuts` where a batch must end, and only then are rows collected, one batch at a
time.

```text
bytes of rows   300  300  300  9000  300  300        at most 1000 bytes and 65,536 rows a batch
cuts            |------------||----||---------|      a row that is larger than that has a batch of its own
```
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Sizes = np.ndarray[Any, np.dtype[np.int64]]

MOST_BYTES = 16 << 20
"""Of a batch, unless a single row has more. A task holds a few of them at a time, and so does the JVM."""

MOST_ROWS = 65_536


def row_bytes(column: pa.Array) -> Sizes:
    """How many bytes each row of a column takes, offsets included.

    Every element of a list counts as a byte at least: offsets count elements, also those without a width.

    >>> row_bytes(pa.array(["a", None, "éé"])).tolist(), row_bytes(pa.array([1, 2], pa.int16())).tolist()
    ([5, 4, 8], [2, 2])
    >>> row_bytes(pa.array([[], ["a", "bc"]])).tolist(), row_bytes(pa.array([[None] * 9])).tolist()
    ([4, 15], [13])
    >>> row_bytes(pa.array([{"a": 1, "b": "xyz"}])).tolist()
    [15]
    """
    kind, rows = column.type, len(column)
    if isinstance(kind, pa.BaseExtensionType):
        return row_bytes(column.storage)
    if rows == 0 or pa.types.is_null(kind):
        return np.zeros(rows, np.int64)
    if pa.types.is_struct(kind):
        return sum((row_bytes(column.field(at)) for at in range(kind.num_fields)), np.zeros(rows, np.int64))
    if pa.types.is_dictionary(kind):
        held: Sizes = np.append(row_bytes(column.dictionary), 0)  # the last is for nulls
        codes = column.indices.cast(pa.int64()).fill_null(len(held) - 1).to_numpy()
        return np.asarray(held[codes] + kind.index_type.bit_width // 8)
    if _is_list(kind):
        return _list_bytes(column)
    if pa.types.is_fixed_size_list(kind):
        inner = column.values.slice(column.offset * kind.list_size, rows * kind.list_size)
        return np.asarray(_at_least_one(row_bytes(inner)).reshape(rows, kind.list_size).sum(axis=1))
    if _has_offsets(kind):
        lengths: Sizes = pc.binary_length(column).fill_null(0).to_numpy().astype(np.int64)
        return lengths + (8 if _has_large_offsets(kind) else 4)
    try:
        return np.full(rows, -(-kind.bit_width // 8), np.int64)
    except ValueError:  # what Spark has no type for: slow, but right
        return np.array([column.slice(row, 1).nbytes for row in range(rows)], np.int64)


def batch_bytes(columns: Sequence[pa.Array], rows: int) -> Sizes:
    """How many bytes each row of several columns takes together.

    >>> batch_bytes([pa.array([1, 2]), pa.array(["a", "bc"])], 2).tolist(), batch_bytes([], 2).tolist()
    ([13, 14], [0, 0])
    """
    return sum((row_bytes(column) for column in columns), np.zeros(rows, np.int64))


def cuts(
    sizes: Sizes, most_bytes: int | None = None, most_rows: int | None = None
) -> Iterator[tuple[int, int]]:
    """The first row and the end of each batch, for rows of these sizes.

    >>> list(cuts(np.array([3, 3, 3, 90, 3]), most_bytes=10)), list(cuts(np.zeros(5, int), most_rows=2))
    ([(0, 3), (3, 4), (4, 5)], [(0, 2), (2, 4), (4, 5)])
    """
    most_bytes, most_rows = most_bytes or MOST_BYTES, most_rows or MOST_ROWS
    ends = np.cumsum(sizes)
    done, bytes_done = 0, 0
    while done < len(ends):
        end = int(np.searchsorted(ends, bytes_done + most_bytes, side="right"))
        end = min(max(end, done + 1), done + most_rows)
        yield done, end
        done, bytes_done = end, int(ends[end - 1])


def gather_rows(
    batches: Sequence[pa.RecordBatch], rows: "np.ndarray[Any, Any]"
) -> Iterator[tuple[int, int, pa.RecordBatch]]:
    """Rows of several batches, numbered through, in the order that is given.

    Each part comes with its first row and its end in that order. Arrow would join the batches first.

    >>> given = [pa.record_batch({"x": ["a", "b"]}), pa.record_batch({"x": ["c"]})]
    >>> [(first, end, part.to_pydict()) for first, end, part in gather_rows(given, np.array([2, 0, 2]))]
    [(0, 3, {'x': ['c', 'a', 'c']})]
    """
    if not len(rows):
        return
    starts = np.cumsum([0, *(batch.num_rows for batch in batches)])
    sizes = np.concatenate([batch_bytes(batch.columns, batch.num_rows) for batch in batches])
    for first, end in cuts(sizes[rows]):
        wanted = rows[first:end]
        source = np.searchsorted(starts, wanted, side="right") - 1
        parts = [
            batches[at].take(pa.array(wanted[source == at] - starts[at])) for at in np.unique(source).tolist()
        ]
        if len(parts) == 1:
            yield first, end, parts[0]
            continue
        place = np.empty(len(wanted), np.int64)
        place[np.argsort(source, kind="stable")] = np.arange(len(wanted))
        [joined] = pa.Table.from_batches(parts).combine_chunks().to_batches()
        yield first, end, joined.take(pa.array(place))


def _list_bytes(column: pa.Array) -> Sizes:
    """Of lists and maps: their offsets, and what lies between them."""
    offsets = column.offsets.to_numpy().astype(np.int64)
    first, end = int(offsets[0]), int(offsets[-1])
    inner = _at_least_one(row_bytes(column.values.slice(first, end - first)))
    ends = np.concatenate([[0], np.cumsum(inner)])
    return np.asarray(np.diff(ends[offsets - first]) + (8 if pa.types.is_large_list(column.type) else 4))


def _at_least_one(sizes: Sizes) -> Sizes:
    return np.maximum(sizes, 1)


def _has_offsets(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind) or _has_large_offsets(kind))


def _has_large_offsets(kind: pa.DataType) -> bool:
    return bool(pa.types.is_large_string(kind) or pa.types.is_large_binary(kind))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind))
