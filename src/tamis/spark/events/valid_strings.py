"""Strings that are not UTF-8, which Spark can hold (`CAST(X'FF' AS STRING)`) and Arrow and the kernel refuse.

One such value would stop a stream for good. Invalid bytes become U+FFFD, as in Spark's own `make_valid_utf8`.
Strings are checked only after a batch was refused. Keys are returned unchanged.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tamis.spark.matching.answer import KEY_PREFIX


def with_valid_strings(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with every string valid, in whatever records, arrays and maps.

    >>> text = pa.array([b"a", b"b\\xff", None]).view(pa.string())
    >>> lists = pa.ListArray.from_arrays(pa.array([0, None, 2, 3]), text)
    >>> batch = pa.record_batch({"s": text, "l": lists, "r": pa.StructArray.from_arrays([text], ["f"])})
    >>> with_valid_strings(batch).to_pydict()["s"]
    ['a', 'b\ufffd', None]
    >>> with_valid_strings(batch.slice(1)).to_pydict()["l"]
    [None, [None]]
    >>> with_valid_strings(batch).to_pydict()["r"][1]
    {'f': 'b\ufffd'}
    """
    rows = pa.array(range(batch.num_rows), pa.int64())
    # Taken, so that no array is a part of another: offsets and children then belong together.
    names = batch.schema.names
    columns = [
        column if name.startswith(KEY_PREFIX) else _valid(column.take(rows))
        for name, column in zip(names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=names)


def _valid(array: Any) -> Any:
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _valid_texts(array)
    if pa.types.is_struct(kind):
        parts = [_valid(array.field(at)) for at in range(kind.num_fields)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=array.is_null())
    if pa.types.is_map(kind):
        return pa.MapArray.from_arrays(_offsets(array), _valid(array.keys), _valid(array.items))
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(_offsets(array), _valid(array.values), type=kind)
    return array


def _valid_texts(array: Any) -> Any:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        is_large = pa.types.is_large_string(array.type)
        texts = array.view(pa.large_binary() if is_large else pa.binary()).to_pylist()
        decoded = [None if text is None else text.decode("utf-8", "replace") for text in texts]
        return pa.array(decoded, array.type)
    return array


def _offsets(array: Any) -> Any:
    """Where the elements of each list begin; null for a list that is null."""
    nulls = pa.concat_arrays([array.is_null(), pa.array([False])])
    return pc.if_else(nulls, pa.scalar(None, pa.int32()), array.offsets)
