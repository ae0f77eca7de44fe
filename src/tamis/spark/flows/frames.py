"""From DataFrames of events to the columns that a flow needs, one DataFrame for each stream.

```text
__tamis_time     microseconds since the epoch; null where an event has no usable time
__tamis_order_0  what decides among equal times, as `order=` names it, ...
__tamis_tie      a hash of the event: decides where nothing else does; a repeated task does the same
__tamis_key      a hash of the key: equal keys have equal hashes, also in streams with other types of numbers
__tamis_event    the event, a struct of attributes
```
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import ArrayType, MapType, StructType

from tamis._suggest import closest, did_you_mean
from tamis.errors import ArgumentError
from tamis.spark.events.columns import attribute_values, kind_of, quoted
from tamis.spark.events.names import ambiguous_paths, ignores_case, spark_paths
from tamis.spark.flows.definition import Stream
from tamis.spark.flows.keys import Key

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TIME, TIE, KEY, EVENT = "__tamis_time", "__tamis_tie", "__tamis_key", "__tamis_event"
ORDER_PREFIX = "__tamis_order_"

_UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}
_FIRST_TIME, _LAST_TIME = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The years 1 to 9999, as `Flow` takes them."""


def order_names(order: Sequence[str]) -> list[str]:
    """The columns by which events are sorted, but for their stream.

    >>> order_names(["seq"])
    ['__tamis_time', '__tamis_order_0', '__tamis_tie']
    """
    return [TIME, *(f"{ORDER_PREFIX}{at}" for at in range(len(order))), TIE]


def stream_frame(events: "DataFrame", stream: Stream, key: Key, order: Sequence[str]) -> "DataFrame":
    """The events of one stream, in the columns above."""
    schema = events.schema
    ignore_case = ignores_case(events.sparkSession)
    values, _ = attribute_values(schema, None, ignore_case=ignore_case)
    unreadable = ambiguous_paths(schema, ignore_case=ignore_case)
    selected = [f"{_time(schema, stream)} AS {TIME}"]
    for at, name in enumerate(order):
        value, data_type = _column(schema, name, f"the order of stream {stream.name!r}")
        if kind_of(data_type) is None:
            raise ArgumentError(
                f"the order {name!r} of stream {stream.name!r} is {data_type.simpleString()}; it must be a "
                "number, a string, a boolean, a date or a timestamp"
            )
        selected.append(f"{value} AS {ORDER_PREFIX}{at}")
    readable = [field for field in schema.fields if field.name not in unreadable]
    hashed = [part for field in readable for part in _hashed(quoted(field.name), field.dataType)]
    selected.append(f"xxhash64({', '.join(hashed) or '0'}) AS {TIE}")
    selected.append(f"{_hash_of_key(schema, stream, key)} AS {KEY}")
    selected.append(f"struct({', '.join(values)}) AS {EVENT}")
    return events.selectExpr(*selected)


def key_kinds(events: Mapping[str, "DataFrame"], key: Key) -> None:
    """Refuse a key that has values of different kinds in different streams: they never join."""
    _one_kind(events, key, "key", "a value of one never equals one of the other")


def order_kinds(events: Mapping[str, "DataFrame"], order: Sequence[str]) -> None:
    """Refuse an order by values of different kinds in different streams."""
    _one_kind(events, order, "order", "a value of one is neither before nor after one of the other")


def _one_kind(events: Mapping[str, "DataFrame"], names: Sequence[str], what: str, why: str) -> None:
    for name in names:
        kinds = {
            stream: kind_of(_column(frame.schema, name, f"the {what} of stream {stream!r}")[1])
            for stream, frame in events.items()
        }
        if len(set(kinds.values())) > 1:
            shown = ", ".join(f"{kind or 'of another kind'} in {stream}" for stream, kind in kinds.items())
            raise ArgumentError(f"the {what} {name!r} is {shown}: {why}")


def possible_keys(events: Mapping[str, "DataFrame"]) -> set[str]:
    """The attributes that all streams have, with values of one kind that can be a key."""
    kinds = [
        {(path, kind_of(_column(frame.schema, path, "a key")[1])) for path in spark_paths(frame.schema)}
        for frame in events.values()
    ]
    return {path for path, kind in set.intersection(*kinds) if kind is not None}


def declared_schema(
    schema: StructType, unreadable: Collection[str] = (), prefix: str = ""
) -> dict[str, Any] | None:
    """The columns as `Flow.stream` takes them, to find misspelt names; None if they do not tell all.

    Those that Spark cannot read are left out: a query that asks for one is refused.

    >>> from pyspark.sql.types import LongType, StringType, StructField
    >>> record = StructType([StructField("id", StringType())])
    >>> declared_schema(StructType([StructField("n", LongType()), StructField("user", record)]))
    {'n': 'float', 'user': {'id': 'string'}}
    """
    found: dict[str, Any] = {}
    for field in schema.fields:
        if prefix + field.name in unreadable:
            continue
        declared = _declared(field.dataType, unreadable, f"{prefix}{field.name}.")
        if declared is None or "." in field.name:
            return None
        found[field.name] = declared
    return found


def _declared(data_type: Any, unreadable: Collection[str] = (), prefix: str = "") -> Any:
    if isinstance(data_type, StructType):
        return declared_schema(data_type, unreadable, prefix)
    if data_type.simpleString().startswith("array<"):
        inner = _declared(data_type.elementType)
        if isinstance(inner, dict):
            return "array<record>"
        return f"array<{inner}>" if isinstance(inner, str) and not inner.startswith("array") else None
    kind = kind_of(data_type)
    # Integers and floats compare: a rule may say n > 1.5 of whole numbers.
    return {"number": "float", "boolean": "bool"}.get(kind, kind) if kind else None


def _time(schema: StructType, stream: Stream) -> str:
    """The time of an event in microseconds, as `Flow` would read it; null where it has none."""
    value, data_type = _column(schema, stream.time, f"the time of stream {stream.name!r}")
    micros = _micros(value, data_type.simpleString(), _UNITS[stream.unit])
    if micros is None:
        raise ArgumentError(
            f"the time of stream {stream.name!r}, {stream.time}, is {data_type.simpleString()}; it must be a "
            f'timestamp, a date or a number. Convert text with to_timestamp({stream.time}, "...")'
        )
    return f"CASE WHEN {micros} BETWEEN {_FIRST_TIME} AND {_LAST_TIME} THEN {micros} END"


def _micros(value: str, kind: str, unit: int) -> str | None:
    if kind == "timestamp":
        return f"unix_micros({value})"
    if kind == "timestamp_ntz":
        return f"timestampdiff(MICROSECOND, TIMESTAMP_NTZ '1970-01-01 00:00:00', {value})"
    if kind == "date":
        return f"CAST(unix_date({value}) AS bigint) * 86400000000"
    if kind in ("tinyint", "smallint", "int", "bigint"):
        return f"try_multiply(CAST({value} AS bigint), {unit}L)"
    if kind in ("float", "double") or kind.startswith("decimal"):
        return f"try_cast(round(CAST({value} AS double) * {unit}) AS bigint)"
    return None


def _hash_of_key(schema: StructType, stream: Stream, key: Key) -> str:
    parts = []
    for name in key:
        value, data_type = _column(schema, name, f"the key of stream {stream.name!r}")
        kind = kind_of(data_type)
        if kind is None:
            raise ArgumentError(
                f"the key {name!r} of stream {stream.name!r} is {data_type.simpleString()}; a key is a "
                "number, a string, a boolean, a date or a timestamp"
            )
        if kind == "number":  # 1 and 1.0 are one key; two keys may well have one hash
            value = f"CAST({value} AS double) + 0D"
        elif kind == "timestamp":
            value = _micros(value, data_type.simpleString(), 1) or value
        elif kind == "string":
            value = f"CAST({value} AS string)"
        parts.append(value)
    return f"xxhash64({', '.join(parts)})" if parts else "0L"


def _column(schema: StructType, path: str, what: str) -> tuple[str, Any]:
    """A column, or a field of a struct, as SQL, and its type."""
    names = schema.names
    if path in names:
        return quoted(path), schema[path].dataType
    head, _, rest = path.partition(".")
    value, data_type = quoted(head), schema[head].dataType if head in names else None
    for part in rest.split("."):
        if not isinstance(data_type, StructType) or part not in data_type.names:
            meant = closest(path, names)
            hint = did_you_mean(meant) if meant else f"there is {', '.join(names)}"
            raise ArgumentError(f"there is no column {path!r} for {what}; {hint}")
        value, data_type = f"({value}).{quoted(part)}", data_type[part].dataType
    return value, data_type


def _hashed(value: str, data_type: Any) -> list[str]:
    """What is hashed of a column: Spark's hash leaves nulls out, so that (NULL, 1) would be (1, NULL)."""
    if isinstance(data_type, StructType | ArrayType | MapType):
        value = f"to_json(struct({value}))"  # maps have no hash, and fields of records may be null
    return [f"isnull({value})", value]
