"""Converts columns of subscriptions of any kind to the few Arrow types that the kernel reads.

Arrow data stays Arrow data: no value becomes a Python object. Lists of ids and of expressions stay lists,
because the kernel reports errors in them more precisely than Arrow.
"""

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from tamis._lists import array
from tamis._suggest import MISSPELT, suggestion
from tamis.errors import ArgumentError, UnknownColumnWarning

DETAILS = {
    "priority": pa.float64(),
    "weights": pa.map_(pa.string(), pa.float64()),
    "tags": pa.list_(pa.string()),
    "owner": pa.string(),
    "payload": pa.large_binary(),
    "expires": pa.timestamp("us", tz="UTC"),
    "starts": pa.timestamp("us", tz="UTC"),
}

_EXPECTED = {
    "priority": "numbers",
    "weights": "a record of attribute to number for each row, such as {'age': 0.7}",
    "tags": "a list of strings for each row, such as ['q4']; of a text, split it",
    "owner": "strings",
    "payload": "bytes or strings; of anything else, its JSON",
    "expires": "timestamps, such as 2026-12-31T23:59:59Z",
    "starts": "timestamps, such as 2026-12-31T23:59:59Z",
}


def id_column(ids: Iterable[Any]) -> Any:
    """Ids as an Arrow column of int64 or large_string, or as a list."""
    column = _arrow(ids)
    if column is None:
        return _list("ids", ids)
    decoded = _decoded(column)
    if pa.types.is_floating(decoded.type):  # pandas makes them of integers as soon as one is missing
        try:
            return decoded.cast(pa.int64())
        except pa.ArrowInvalid:
            raise ArgumentError(
                "ids are integers or strings, and the column has numbers with a fraction"
            ) from None
    return decoded.cast(pa.int64() if pa.types.is_integer(decoded.type) else pa.large_string())


def text_column(expressions: Iterable[Any]) -> Any:
    """Expressions as an Arrow column of large_string, or as a list; their text is not copied."""
    column = _arrow(expressions)
    if column is None:
        return _list("expressions", expressions)
    return _decoded(column).cast(pa.large_string())


def rows_of(column: Iterable[Any]) -> list[Any]:
    """A column as a list of Python values.

    >>> rows_of(pa.array([1, 2])), rows_of(range(2))
    ([1, 2], [0, 1])
    """
    arrow = _arrow(column)
    return _list("values", column) if arrow is None else arrow.to_pylist()


def details_batch(rows: int, given: Mapping[str, Any]) -> pa.RecordBatch | None:
    """What else was given, as one batch with a column for each."""
    columns = {name: _detail(name, values) for name, values in given.items() if values is not None}
    for name, column in columns.items():
        if len(column) != rows:
            raise ArgumentError(f"{rows} ids for {len(column)} values of {name}")
    return pa.record_batch(columns) if columns else None


ARGUMENTS = {
    "id": "ids",
    "expression": "expressions",
    "priority": "priorities",
    "weights": "weights",
    "tags": "tags",
    "owner": "owners",
    "payload": "payloads",
    "expires": "expires",
    "starts": "starts",
}
"""The columns of a table of subscriptions, and the arguments of `Index.add_many` that take them."""


def columns_of(table: Any) -> dict[str, Any]:
    """The arguments of `Index.add_many` from a table with the columns of a subscription."""
    table = _table(table)
    names = table.column_names
    for name in ("id", "expression"):
        if name not in names:
            hint = suggestion(name, [one for one in names if one not in ARGUMENTS])
            raise ArgumentError(
                f"the table has no column {name!r}; it has {', '.join(names)}" + (f": {hint}" if hint else "")
            )
    for name in names:
        meant = None if name in ARGUMENTS else suggestion(name, ARGUMENTS, similarity=MISSPELT)
        if meant is not None:
            warnings.warn(f"the column `{name}` is not read: {meant}", UnknownColumnWarning, stacklevel=3)
    return {argument: table.column(name) for name, argument in ARGUMENTS.items() if name in names}


def _table(table: Any) -> pa.Table:
    try:
        return pa.table(table)
    except TypeError:
        hint = ": call .collect() first" if hasattr(table, "collect") else ""
        kind = type(table).__name__
        raise TypeError(
            f"a table of pyarrow, pandas, Polars or DuckDB is expected, not {kind}{hint}"
        ) from None


def _arrow(values: Any) -> pa.ChunkedArray | None:
    """The column, if it is Arrow data or can become it without a Python object for each value."""
    if isinstance(values, pa.Array):
        return pa.chunked_array([values])
    if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
        return pa.chunked_array([pa.array(values)])
    if hasattr(values, "__arrow_c_stream__"):
        return pa.chunked_array(values)
    if hasattr(values, "__arrow_c_array__"):
        return pa.chunked_array([pa.array(values)])
    return None


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_dictionary(column.type):
        return column
    kind = column.type.value_type
    if pa.types.is_string_view(kind):  # of which Arrow cannot take rows
        chunks = [chunk.dictionary.cast(pa.large_string()).take(chunk.indices) for chunk in column.chunks]
        return pa.chunked_array(chunks, pa.large_string())
    return column.cast(kind)


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _list(what: str, values: Iterable[Any]) -> list[Any]:
    if isinstance(values, str | bytes | Mapping):
        raise TypeError(f"{what} are a list or a column, not {type(values).__name__}")
    return values if isinstance(values, list) else list(values)


def _detail(name: str, values: Any) -> pa.Array:
    try:
        column = _arrow(values)
        if name == "weights" and (column is None or pa.types.is_struct(column.type)):
            return array(_entries(values if column is None else column.to_pylist()), DETAILS[name])
        if column is not None:
            return _one_chunk(_cast(_decoded(column), DETAILS[name]))
        rows = _list(name, values)
        if name == "tags" and (texts := [row for row in rows if isinstance(row, str)]):
            raise TypeError(f"tags are a list of strings for each row; write [{texts[0]!r}]")
        return array(rows, DETAILS[name])
    except pa.ArrowException as error:
        raise TypeError(f"{name}: {error}; expected {_EXPECTED[name]}") from error


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """The column as another type; a time as text is UTC unless it says otherwise."""
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if not (pa.types.is_timestamp(kind) and is_text):
        return column.cast(kind)
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:
        return column.cast(pa.timestamp("us")).cast(kind)


def _entries(weights: Iterable[Any]) -> list[Any]:
    """Weights as lists of (attribute, weight), which is how Arrow takes maps."""
    return [
        None if row is None else [(name, weight) for name, weight in row.items() if weight is not None]
        for row in weights
    ]
