"""Arrow arrays from Python lists, assembled from their buffers.

If pandas is installed, `pyarrow.array` imports it to find out whether a list is a pandas column. That is most
of the time of a short command. Lists that do not fit here still use `pyarrow.array`.

```text
["q4", None, "north"]     validity  1 0 1 (bits)     offsets  0 2 2 7     bytes  q4north
```
"""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa


def array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """The values as an array of this type; None is null.

    >>> array([1.5, None], pa.float64()).to_pylist(), array([["a"], None], pa.list_(pa.string())).to_pylist()
    ([1.5, None], [['a'], None])
    """
    try:
        return _array(values, kind)
    except (TypeError, ValueError, AttributeError, OverflowError):
        return pa.array(values, kind)  # which says what is wrong, if anything is


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    held = [value for value in values if value is not None]
    validity = None if len(held) == len(values) else _bits([value is not None for value in values])
    if pa.types.is_int64(kind) or pa.types.is_float64(kind):
        numbers = _numbers(held, kind)
        if validity is not None:
            spaced = np.zeros(len(values), numbers.dtype)
            spaced[[row for row, value in enumerate(values) if value is not None]] = numbers
            numbers = spaced
        return pa.Array.from_buffers(kind, len(values), [validity, pa.py_buffer(numbers)])
    if pa.types.is_string(kind) or pa.types.is_large_binary(kind):
        texts = [value.encode() for value in held] if pa.types.is_string(kind) else held
        if not all(isinstance(text, bytes) for text in texts):
            raise TypeError("bytes are expected")
        ends = _offsets(values, texts, np.int32 if pa.types.is_string(kind) else np.int64)
        return pa.Array.from_buffers(kind, len(values), [validity, ends, pa.py_buffer(b"".join(texts))])
    if pa.types.is_map(kind):
        items = list(chain.from_iterable(held))
        names, weights = (_array([item[at] for item in items], part) for at, part in _parts(kind))
        if names.null_count:
            raise TypeError("names are expected")
        fields = [kind.key_field, kind.item_field]
        inside = pa.StructArray.from_arrays([names, weights], fields=fields)
    elif pa.types.is_list(kind):
        inside = _array(list(chain.from_iterable(held)), kind.value_type)
    else:
        raise TypeError(f"{kind} is not made here")
    ends = _offsets(values, held, np.int32)
    return pa.Array.from_buffers(kind, len(values), [validity, ends], children=[inside])


def _parts(kind: pa.MapType) -> list[tuple[int, pa.DataType]]:
    return [(0, kind.key_type), (1, kind.item_type)]


def _numbers(values: list[Any], kind: pa.DataType) -> "np.ndarray[Any, Any]":
    expected = (int,) if pa.types.is_int64(kind) else (int, float)
    if not all(isinstance(value, expected) for value in values):
        raise TypeError("numbers are expected")
    return np.array(values, np.int64 if pa.types.is_int64(kind) else np.float64)


def _offsets(values: Sequence[Any], held: list[Any], width: Any) -> pa.Buffer:
    """Where each value ends; a null takes no room."""
    lengths = np.zeros(len(values) + 1, np.int64)
    rows = [row for row, value in enumerate(values, 1) if value is not None]
    lengths[rows] = [len(value) for value in held]
    ends = np.cumsum(lengths)
    if ends[-1] > np.iinfo(width).max:
        raise OverflowError("too long for its offsets")
    return pa.py_buffer(ends.astype(width))


def _bits(valid: list[bool]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(valid, bitorder="little"))
