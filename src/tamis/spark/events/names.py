"""Resolves the name of an attribute to a column: exactly or, like Spark, case-insensitively.

Spark ignores case unless `spark.sql.caseSensitive` says otherwise; the kernel does not. So a column that
rules spell differently is added under the name that the rules use.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import ArrayType, MapType, StructType

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Paths = Mapping[str, bool]
"""The attributes that events can have, by their dotted paths, and whether each is a map."""


def ignores_case(spark: "SparkSession") -> bool:
    """Whether a session ignores the case of names, as Spark does by default."""
    return str(spark.conf.get("spark.sql.caseSensitive", "false")).lower() != "true"


def spellings(asked: Iterable[str], paths: Paths) -> dict[str, str]:
    """For attributes that no column has as they are written: what they are called, if one column only fits.

    The keys of a map are values, so their case counts.

    >>> paths = {"Amount": False, "user": False, "user.age": False, "m": True}
    >>> spellings(["AMOUNT", "User.Age", "M.key", "m.key", "x"], paths)
    {'AMOUNT': 'Amount', 'User.Age': 'user.age', 'M.key': 'm.key'}
    >>> spellings(["AMOUNT"], {"Amount": False, "amount": False})
    {}
    """
    meant: dict[str, list[str]] = {}
    for path in paths:
        meant.setdefault(path.lower(), []).append(path)
    found = {}
    for name in asked:
        if name in paths:
            continue
        head, dot, rest = _at_map(name, meant, paths)
        fits = meant.get(head.lower(), [])
        if len(fits) == 1 and fits[0] != head:
            found[name] = fits[0] + dot + rest
    return found


def _at_map(name: str, meant: Mapping[str, list[str]], paths: Paths) -> tuple[str, str, str]:
    """A name cut after the map that it looks into; whole where it looks into none."""
    for at, letter in enumerate(name):
        if letter == "." and any(paths[path] for path in meant.get(name[:at].lower(), [])):
            return name[:at], ".", name[at + 1 :]
    return name, "", ""


def spark_paths(schema: StructType, prefix: str = "") -> dict[str, bool]:
    """Every attribute that a record of this type can have.

    >>> from pyspark.sql.types import LongType, StringType, StructField
    >>> record = StructType([StructField("b", LongType())])
    >>> entries = MapType(StringType(), StringType())
    >>> spark_paths(StructType([StructField("a", record), StructField("m", entries)]))
    {'a': False, 'a.b': False, 'm': True}
    """
    found: dict[str, bool] = {}
    for field in schema.fields:
        found[prefix + field.name] = isinstance(field.dataType, MapType)
        if isinstance(field.dataType, StructType):
            found |= spark_paths(field.dataType, f"{prefix}{field.name}.")
    return found


def ambiguous_paths(schema: StructType, *, ignore_case: bool) -> set[str]:
    """Attributes that no name can tell apart: several columns, or several fields of a record, give them.

    Spark lets a table have the columns `a` and `A`, or `id` twice after a join, and refuses to read either.
    A column `a.b` beside a record `a` with a field `b`, or beside a map `a`, is the same attribute twice. A
    field of the elements of an array `l` is written `l[].field`.

    >>> from pyspark.sql.types import LongType, StructField
    >>> record = StructType([StructField("b", LongType())])
    >>> columns = [StructField("x", LongType()), StructField("X", LongType()), StructField("a", record)]
    >>> sorted(ambiguous_paths(StructType(columns), ignore_case=True))
    ['X', 'x']
    >>> sorted(ambiguous_paths(StructType([*columns, StructField("a.b", LongType())]), ignore_case=False))
    ['a.b']
    """
    seen: list[str] = []
    maps: list[str] = []
    found: set[str] = set()

    def visit(record: StructType, prefix: str) -> None:
        names = Counter(field.name.lower() if ignore_case else field.name for field in record.fields)
        for field in record.fields:
            path, kind = prefix + field.name, field.dataType
            seen.append(path)
            if names[field.name.lower() if ignore_case else field.name] > 1:
                found.add(path)
            while isinstance(kind, ArrayType):
                path, kind = f"{path}[]", kind.elementType
            if isinstance(kind, StructType):
                visit(kind, f"{path}.")
            elif isinstance(kind, MapType) and kind is field.dataType:
                maps.append(f"{path}.")

    visit(schema, "")
    found |= {path for path, times in Counter(seen).items() if times > 1}
    if maps:
        found |= {path for path in seen if path.startswith(tuple(maps))}
    return found


def arrow_paths(fields: Iterable[pa.Field], prefix: str = "") -> dict[str, bool]:
    """The same of Arrow fields.

    >>> fields = {"a": pa.struct({"b": pa.int64()}), "m": pa.map_(pa.string(), pa.string())}
    >>> arrow_paths(pa.schema(fields))
    {'a': False, 'a.b': False, 'm': True}
    """
    found: dict[str, bool] = {}
    for field in fields:
        found[prefix + field.name] = pa.types.is_map(field.type)
        if pa.types.is_struct(field.type):
            found |= arrow_paths(field.type.fields, f"{prefix}{field.name}.")
    return found


def named_as_asked(batch: pa.RecordBatch, attributes: Iterable[str]) -> pa.RecordBatch:
    """The batch with further columns for attributes that rules spell otherwise than it does.

    >>> named_as_asked(pa.record_batch({"Amount": [1], "u": [{"a": 2}]}), ["AMOUNT", "U.A"]).to_pydict()
    {'Amount': [1], 'u': [{'a': 2}], 'AMOUNT': [1], 'U.A': [2]}
    """
    paths = arrow_paths(batch.schema)
    columns: dict[str, Any] = {}
    for asked, path in spellings(attributes, paths).items():
        if path in paths:
            columns[asked] = _value(batch, path)
        else:  # a key of a map: the map itself, under the name that it is asked by
            head = next(held for held, is_map in paths.items() if is_map and path.startswith(f"{held}."))
            columns[asked[: len(head)]] = _value(batch, head)
    if not columns:
        return batch
    return pa.record_batch(dict(zip(batch.schema.names, batch.columns, strict=True)) | columns)


def _value(batch: pa.RecordBatch, path: str) -> pa.Array:
    """The column of a path: names of columns, and of fields, may have dots, too."""
    names = batch.schema.names
    held = max((name for name in names if path == name or path.startswith(f"{name}.")), key=len)
    value, rest = batch.column(names.index(held)), path[len(held) + 1 :]
    while rest:
        fields = [field.name for field in value.type]
        held = max((name for name in fields if rest == name or rest.startswith(f"{name}.")), key=len)
        value, rest = pc.struct_field(value, [fields.index(held)]), rest[len(held) + 1 :]
    return value
