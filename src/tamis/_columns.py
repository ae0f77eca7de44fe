"""Columns of subscriptions, however they come, as the few Arrow types that the kernel reads.

Arrow data stays Arrow data: no Python object is made for a value. Lists of ids and of expressions stay lists,
because the kernel says more precisely than Arrow what is wrong with one of them.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from tamis._lists import array
from tamis.errors import ArgumentError

DETAILS = {
    "priority": pa.float64(),
    "weights": pa.map_(pa.string(), pa.float64()),
    "tags": pa.list_(pa.string()),
    "owner": pa.string(),
    "payload": pa.large_binary(),
    "expires": pa.timestamp("us", tz="UTC"),
    "starts": pa.timestamp("us", tz="UTC"),
}


def id_column(ids: Iterable[Any]) -> Any:
    """Ids as one Arrow array of int64 or large_string, or as a list."""
    column = _arrow(ids)
    if column is None:
        return _list("ids", ids)
    decoded = _decoded(column)
    return _one_chunk(decoded.cast(pa.int64() if pa.types.is_integer(decoded.type) else pa.large_string()))


def text_column(expressions: Iterable[Any]) -> Any:
    """Expressions as one Arrow array of large_string, or as a list."""
    column = _arrow(expressions)
    return _list("expressions", expressions) if column is None else _one_chunk(column.cast(pa.large_string()))


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


def columns_of(table: Any) -> dict[str, Any]:
    """The arguments of `Index.add_many` from a table with the columns of a subscription."""
    table = pa.table(table)
    missing = [name for name in ("id", "expression") if name not in table.column_names]
    if missing:
        raise ArgumentError(f"the table has no column {missing[0]!r}; it has {', '.join(table.column_names)}")
    arguments = {
        "ids": "id",
        "expressions": "expression",
        "priorities": "priority",
        "weights": "weights",
        "tags": "tags",
        "owners": "owner",
        "payloads": "payload",
        "expires": "expires",
        "starts": "starts",
    }
    return {
        argument: table.column(name) for argument, name in arguments.items() if name in table.column_names
    }


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
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


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
            return _one_chunk(_decoded(column).cast(DETAILS[name]))
        rows = _list(name, values)
        if name == "tags" and (texts := [row for row in rows if isinstance(row, str)]):
            raise TypeError(f"tags are a list of strings for each row; write [{texts[0]!r}]")
        return array(rows, DETAILS[name])
    except pa.ArrowException as error:
        raise TypeError(f"{name}: {error}") from error


def _entries(weights: Iterable[Any]) -> list[Any]:
    """Weights as lists of (attribute, weight), which is how Arrow takes maps."""
    return [
        None if row is None else [(name, weight) for name, weight in row.items() if weight is not None]
        for row in weights
    ]
