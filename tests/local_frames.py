"""DataFrames of a few rows that no Python worker has to produce.

`createDataFrame` of a list is a job of Python workers each time the frame is evaluated: a process for each
partition, a quarter of a second of processor time each. From an Arrow table, Spark reads the rows itself.
"""

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa


def created_from_arrow(create: Callable[..., Any]) -> Callable[..., Any]:
    """`createDataFrame` of a session, by way of Arrow where that gives the same frame."""

    def create_data_frame(data: Any, schema: Any = None, *arguments: Any, **options: Any) -> Any:
        struct = _struct(schema)
        table = _table(data, struct) if struct is not None and not arguments and not options else None
        if table is not None:
            return create(table, struct)
        return create(data, schema, *arguments, **options)

    return create_data_frame


def _struct(schema: Any) -> Any:
    """The columns that a schema names, if it does and none is a time."""
    from pyspark.sql.types import StructType, _parse_datatype_string

    struct = _parse_datatype_string(schema) if isinstance(schema, str) else schema
    if not isinstance(struct, StructType):
        return None
    # Spark reads times in the zone of the process, Arrow in that of the session.
    return None if re.search("time|date", struct.simpleString()) else struct


def _table(data: Any, struct: Any) -> pa.Table | None:
    """The rows as a table; None if Spark has to convert, or to refuse, them itself."""
    from pyspark.sql.pandas.types import to_arrow_schema

    if not (isinstance(data, list) and data and all(type(row) is tuple for row in data)):
        return None
    try:
        types = to_arrow_schema(struct).types
        columns = zip(zip(*data, strict=True), types, strict=True)
        arrays = [pa.array(column, kind) for column, kind in columns]
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
    return pa.Table.from_arrays(arrays, names=struct.names)
