"""The oracle's events in every form that an index takes."""

import tempfile
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import tamis
from oracle import Interval

# The columns of events from `strategies.events(typed=True)`.
SCHEMA = pa.schema(
    {
        "i": pa.int64(),
        "f": pa.float64(),
        "s": pa.string(),
        "b": pa.bool_(),
        "t": pa.timestamp("us", tz="UTC"),
        "ints": pa.list_(pa.int64()),
        "words": pa.list_(pa.string()),
        "person": pa.struct({"age": pa.int64(), "name": pa.string()}),
        "naïve key": pa.string(),
        "items": pa.list_(
            pa.struct(
                {
                    "p": pa.int64(),
                    "s": pa.string(),
                    "n": pa.list_(pa.int64()),
                    "of": pa.struct({"x": pa.float64()}),
                }
            )
        ),
    }
)


def to_dict(event: dict[str, Any]) -> dict[str, Any]:
    """As a dict, with the kernel's intervals in place of the oracle's."""
    swap: dict[type, Callable[[Any], Any]] = {
        Interval: lambda interval: tamis.Interval(interval.low, interval.high),
        dict: to_dict,
    }
    return {name: swap.get(type(value), lambda same: same)(value) for name, value in event.items()}


def to_json(event: dict[str, Any]) -> str:
    return tamis.Event(to_dict(event)).to_json()


def to_table(events: list[dict[str, Any]]) -> pa.Table:
    """Typed events as a table."""
    return pa.Table.from_pylist(events, SCHEMA)


FORMS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "dict": to_dict,
    "Event": lambda event: tamis.Event(to_dict(event)),
    "text": to_json,
    "bytes": lambda event: to_json(event).encode(),
}


def to_frame(spark: Any, table: pa.Table) -> Any:
    """As a DataFrame of Spark; releases before 4.0 take no Arrow tables."""
    if hasattr(spark.range(0), "toArrow"):
        return spark.createDataFrame(table)
    folder = tempfile.mkdtemp()
    pq.write_table(table, f"{folder}/rows.parquet")
    return spark.read.option("datetimeRebaseMode", "CORRECTED").parquet(folder)
