"""Selects from a DataFrame of events exactly the columns that matching needs.

A column is an attribute; a field of a struct is the dotted path to it; a map column `m` gives `m.key` for
each of its keys; arrays stay arrays. Only data that some subscription uses travels to the Python workers.
Columns named in `spread` lose their name: their fields or keys become attributes. If a subscription uses all
strings, all columns with strings travel; those that cannot be attributes travel as separate columns.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql.types import ArrayType, MapType, StructType

from tamis._suggest import closest
from tamis.errors import ArgumentError
from tamis.expr import ALL_STRINGS
from tamis.spark.events.names import ambiguous_paths, ignores_case, spark_paths, spellings
from tamis.spark.matching.answer import KEY_PREFIX, SPREAD_PREFIX, STRINGS_PREFIX, column_alias

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KINDS = {
    "boolean": "boolean",
    "tinyint": "number",
    "smallint": "number",
    "int": "number",
    "bigint": "number",
    "float": "number",
    "double": "number",
    "decimal": "number",
    "string": "string",
    "char": "string",
    "varchar": "string",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp",
    "date": "timestamp",
}


RESERVED = "__tamis_"
"""How columns are named on their way through tasks."""

_RENAME = "several columns or fields of the events have this name. Rename or drop all but one"


@dataclass(frozen=True)
class Projected:
    """Events reduced to keys and needed attributes, and what is odd about them.

    `warnings` say which needed columns hold values that no predicate on them expects.
    """

    events: "DataFrame"
    keys: list[str]
    key_types: list[str]
    warnings: list[str]


def key_columns(events: "DataFrame", key: str | Sequence[str] | None) -> list[str]:
    """The names of the key columns; `"*"` stands for all columns."""
    names: list[str] = list(events.columns)
    if key is None:
        return []
    if key == "*":
        refuse_ambiguous(events, names)
        return names
    wanted = [key] if isinstance(key, str) else list(key)
    for name in wanted:
        if name not in names:
            example = closest(name, names) or next(iter(names), "event_id")
            raise ArgumentError(
                f"the events have no key column {name!r}; they have {', '.join(names)}. Name the column(s) "
                f'that tell events apart, for example key="{example}".'
            )
    if len(set(wanted)) < len(wanted):
        raise ArgumentError(f"a key column is named twice: {', '.join(wanted)}")
    refuse_ambiguous(events, wanted)
    return wanted


def refuse_ambiguous(events: "DataFrame", keys: Iterable[str]) -> None:
    """Refuse keys that Spark cannot tell apart from another column."""
    ignore_case = ignores_case(events.sparkSession)
    folded = [name.lower() if ignore_case else name for name in events.columns]
    for name in keys:
        if folded.count(name.lower() if ignore_case else name) > 1:
            raise ArgumentError(f"the key {name!r} is ambiguous: {_RENAME}")


def project(
    events: "DataFrame",
    attributes: dict[str, list[str]] | None,
    keys: list[str],
    spread: Iterable[str] = (),
    *,
    taken: Iterable[str] = (),
    also: str | None = None,
    ignore_case: bool = False,
) -> Projected:
    """The key columns, renamed, and the columns of the attributes; all columns when those may still change.

    `taken` are names that keys must not have; columns whose names begin with `also` come along.
    """
    refuse_taken(keys, taken, ignore_case=ignore_case)
    selected = [f"{quoted(name)} AS {KEY_PREFIX}{at}" for at, name in enumerate(keys)]
    asked, warnings = attribute_values(events.schema, attributes, spread, also=also, ignore_case=ignore_case)
    selected += asked
    types = {field.name: ddl(field.dataType) for field in events.schema.fields}
    key_types = [f"{quoted(name)} {types[name]}" for name in keys]
    if not selected:  # rows must still be counted
        selected = ["CAST(NULL AS boolean) AS __tamis_nothing"]
    return Projected(events.selectExpr(*selected), keys, key_types, warnings)


def refuse_taken(keys: Iterable[str], taken: Iterable[str], *, ignore_case: bool = False) -> None:
    """Refuse keys with names that the result has for itself."""
    for name in (key for key in keys if (key.lower() if ignore_case else key) in taken):
        raise ArgumentError(
            f"the key column {name!r} has the name of a column of the result; rename it with "
            f'events.withColumnRenamed("{name}", "event_{name}")'
        )


def attribute_values(
    schema: StructType,
    attributes: dict[str, list[str]] | None,
    spread: Iterable[str] = (),
    *,
    also: str | None = None,
    ignore_case: bool = False,
) -> tuple[list[str], list[str]]:
    """What subscriptions ask of the events as SQL with aliases, and what is odd about it."""
    asked, warnings = asked_values(schema, attributes, spread, also=also, ignore_case=ignore_case)
    return [f"{value} AS {quoted(alias)}" for alias, value in asked.items()], warnings


def asked_values(
    schema: StructType,
    attributes: dict[str, list[str]] | None,
    spread: Iterable[str] = (),
    *,
    also: str | None = None,
    ignore_case: bool = False,
) -> tuple[dict[str, str], list[str]]:
    """The same as SQL by alias.

    >>> from pyspark.sql.types import LongType, StructField
    >>> record = StructType([StructField("X", LongType()), StructField("y", LongType())])
    >>> asked_values(record, {"x": ["number"]}, ignore_case=True)
    ({'X': '`X`'}, [])
    """
    warnings: list[str] = []
    if reserved := [name for name in schema.names if name.lower().startswith(RESERVED)]:
        raise ArgumentError(f"names that begin with {RESERVED} are taken: rename the column {reserved[0]!r}")
    ambiguous = ambiguous_paths(schema, ignore_case=ignore_case)
    asked = attributes
    if attributes is not None and ignore_case:
        spelt = spellings(attributes, spark_paths(schema))
        asked = attributes | {
            path: attributes[name] for name, path in spelt.items() if path not in attributes
        }
    for name in asked or ():
        refused = name if name in ambiguous else next((p for p in _records_of(name) if p in ambiguous), None)
        if refused is not None:
            raise ArgumentError(f"rules ask for {name}, and {refused} is ambiguous: {_RENAME}")
    wanted = None if asked is None else _Wanted.of(asked)
    all_strings = asked is None or ALL_STRINGS in asked
    if asked is not None and all_strings and ambiguous:
        shown = ", ".join(sorted(ambiguous))
        warnings.append(f"keywords are not looked for in columns with ambiguous names ({shown}): {_RENAME}")
    columns: dict[str, str] = {}
    for at, column in enumerate(_spread(schema, spread)):
        if column.path in ambiguous:  # Spark could not read it
            if wanted is not None and (column.name in wanted.kinds or column.name in wanted.records):
                raise ArgumentError(f"rules ask for {column.name}, and {column.path} is ambiguous: {_RENAME}")
            continue
        if also is not None and column.name.startswith(also):
            columns[column.name] = column.value
            continue
        needed = _needed(column.value, column.type, column.name, wanted, warnings, ambiguous=ambiguous)
        whole = not any(path.startswith((f"{column.path}.", f"{column.path}[]")) for path in ambiguous)
        if all_strings and whole and (texts := strings_of(column.value, column.type)) is not None:
            if wanted is not None and not column.name.startswith(SPREAD_PREFIX):
                needed = _needed(column.value, column.type, column.name, None, [], ambiguous=ambiguous)
            if _loses_strings(column.type):
                columns[f"{STRINGS_PREFIX}{at}"] = texts
        if needed is not None:
            columns[column.name] = needed
    return {column_alias(name): value for name, value in columns.items()}, warnings


def orderable(events: "DataFrame") -> list[str]:
    """The columns by which rows can be sorted: all but maps, VARIANT and shapes, and records of them."""
    return [quoted(field.name) for field in events.schema.fields if _is_ordered(field.dataType)]


def _is_ordered(data_type: Any) -> bool:
    """Whether Spark can sort by values of a type."""
    if isinstance(data_type, StructType):
        return all(_is_ordered(field.dataType) for field in data_type.fields)
    if isinstance(data_type, ArrayType):
        return _is_ordered(data_type.elementType)
    kind = data_type.simpleString().split("(", 1)[0]
    return not isinstance(data_type, MapType) and kind not in ("variant", "geometry", "geography", "interval")


def quoted(name: str) -> str:
    """A column name as Spark reads it, whatever it contains.

    >>> quoted("a.b`c")
    '`a.b``c`'
    """
    return "`" + name.replace("`", "``") + "`"


def ddl(data_type: Any) -> str:
    """A type as Spark reads it in a schema, whatever the names of its fields contain.

    >>> from pyspark.sql.types import LongType, StructField
    >>> ddl(ArrayType(StructType([StructField("first name", LongType())])))
    'array<struct<`first name`:bigint>>'
    """
    if isinstance(data_type, StructType):
        fields = (f"{quoted(field.name)}:{ddl(field.dataType)}" for field in data_type.fields)
        return f"struct<{','.join(fields)}>"
    if isinstance(data_type, ArrayType):
        return f"array<{ddl(data_type.elementType)}>"
    if isinstance(data_type, MapType):
        return f"map<{ddl(data_type.keyType)},{ddl(data_type.valueType)}>"
    text: str = data_type.simpleString()
    return text


class _Source(NamedTuple):
    """A column of the events, or a field that was spread from one.

    Its value is SQL: an object for each of a thousand columns would be four calls of the JVM for each.
    """

    name: str
    type: Any
    value: str
    path: str
    """Where it is in the events."""


def _spread(schema: StructType, spread: Iterable[str]) -> Iterator[_Source]:
    """The columns, with structs that are to be spread replaced by their fields.

    The keys of a map are spread in the task, where they are known.
    """
    wanted = [spread] if isinstance(spread, str) else list(spread)
    for name in wanted:
        if name not in schema.names:
            raise ArgumentError(f"the events have no column {name!r} to spread")
    for field in schema.fields:
        column = quoted(field.name)
        if field.name not in wanted:
            yield _Source(field.name, field.dataType, column, field.name)
        elif isinstance(field.dataType, StructType):
            for inner in field.dataType.fields:
                if inner.name not in schema.names:
                    path = f"{field.name}.{inner.name}"
                    yield _Source(inner.name, inner.dataType, _field(column, inner.name), path)
        elif isinstance(field.dataType, MapType):
            yield _Source(f"{SPREAD_PREFIX}{field.name}", field.dataType, column, field.name)
        else:
            raise ArgumentError(
                f"only a map or a struct can be spread, and {field.name!r} is {field.dataType.simpleString()}"
            )


class _Wanted(NamedTuple):
    """The attributes that subscriptions ask for with the kinds they expect, and the records around them."""

    kinds: dict[str, list[str]]
    records: set[str]

    @classmethod
    def of(cls, attributes: dict[str, list[str]]) -> "_Wanted":
        """Every beginning of a dotted path is a record: a thousand columns must not search all attributes."""
        return cls(attributes, {record for name in attributes for record in _records_of(name)})


def _records_of(name: str) -> Iterator[str]:
    """The records around an attribute."""
    return (name[:at] for at, letter in enumerate(name) if letter == ".")


def _field(record: str, name: str) -> str:
    """A field of a record; in parentheses the record cannot be taken for the name of a table."""
    return f"({record}).{quoted(name)}"


def _presence(column: str) -> str:
    """A record that is there when the column is not null."""
    return f"CASE WHEN {column} IS NOT NULL THEN struct(TRUE AS __tamis_present) END"


def _needed(
    column: str,
    data_type: Any,
    path: str,
    wanted: _Wanted | None,
    warnings: list[str],
    *,
    ambiguous: Collection[str],
) -> str | None:
    """The part of a column that subscriptions ask for, or None."""
    if path.startswith(SPREAD_PREFIX):
        return column
    below = wanted is not None and path in wanted.records
    if wanted is not None and path not in wanted.kinds and not below:
        return None
    if isinstance(data_type, StructType):
        kept = []
        for field in data_type.fields:
            inner = f"{path}.{field.name}"
            if inner in ambiguous:
                continue
            part = _needed(
                _field(column, field.name), field.dataType, inner, wanted, warnings, ambiguous=ambiguous
            )
            if part is not None:
                kept.append(f"{part} AS {quoted(field.name)}")
        # Without fields, only whether the record is there can matter.
        if not kept:
            return _presence(column)
        return f"CASE WHEN {column} IS NOT NULL THEN struct({', '.join(kept)}) END"
    if isinstance(data_type, MapType) and kind_of(data_type.keyType) == "string":
        if wanted is not None:
            warnings += odd_inside(path, data_type)
        return column
    if isinstance(data_type, ArrayType) and isinstance(data_type.elementType, StructType):
        if below and wanted is not None:
            warnings.append(_unreadable(path, data_type, below))
        elif wanted is not None:
            warnings += odd_inside(path, data_type)
        if wanted is None or path in wanted.kinds:
            return _records(column, data_type, path, ambiguous)
        return _presence(column)
    kind = kind_of(data_type.elementType if isinstance(data_type, ArrayType) else data_type)
    if kind is None:
        if wanted is not None:
            warnings.append(_unreadable(path, data_type, below))
        return _presence(column)
    if below and wanted is not None and path not in wanted.kinds:
        return None  # a value has nothing inside
    if (collation := collation_of(data_type)) is not None:
        if wanted is not None:
            warnings.append(
                f"column {path} has the collation {collation}, but {BYTE_BY_BYTE}. Compare lower({path}), or "
                "another normal form, in events and rules"
            )
        column = f"CAST({column} AS {_without_collation(data_type)})"
    expected = None if wanted is None else wanted.kinds.get(path)
    kind = "array" if isinstance(data_type, ArrayType) else kind
    if expected and kind not in expected:
        warnings.append(
            f"column {path} is {data_type.simpleString()}, but every predicate on it expects "
            f"{' or '.join(expected)}: they are undefined for its values"
        )
    return column


BYTE_BY_BYTE = "rules compare its values byte by byte: what is equal by the collation only does not match"


def odd_inside(path: str, data_type: Any) -> list[str]:
    """What rules cannot see, or see otherwise than Spark, inside a map or an array of records.

    Which fields of an element a rule asks for is not known here, so that these may be fields it does not.

    >>> from pyspark.sql.types import BinaryType, LongType, StringType, StructField
    >>> record = StructType([StructField("price", LongType()), StructField("image", BinaryType())])
    >>> print(*odd_inside("items", ArrayType(record)))
    column items has values that no predicate can read: items.image (binary); predicates on them are undefined
    >>> odd_inside("m", MapType(StringType(), LongType()))
    []
    """
    found: list[tuple[str, str, bool]] = []
    _find_odd(path, data_type, found, in_array=False)
    unreadable = [f"{where} ({what})" for where, what, readable in found if not readable]
    said = []
    if unreadable:
        said.append(
            f"column {path} has values that no predicate can read: {', '.join(unreadable)}; "
            "predicates on them are undefined"
        )
    if collated := [f"{where} ({what})" for where, what, readable in found if readable]:
        said.append(f"column {path} has strings with a collation, {', '.join(collated)}, but {BYTE_BY_BYTE}")
    return said


def _find_odd(path: str, data_type: Any, found: list[tuple[str, str, bool]], *, in_array: bool) -> None:
    """Append where, which type or collation, and whether predicates can read it all the same."""
    if isinstance(data_type, StructType):
        for field in data_type.fields:
            _find_odd(f"{path}.{field.name}", field.dataType, found, in_array=in_array)
    elif isinstance(data_type, MapType) and kind_of(data_type.keyType) == "string" and not in_array:
        if (collation := collation_of(data_type.keyType)) is not None:
            found.append((f"the keys of {path}", collation, True))
        _find_odd(f"{path}.*", data_type.valueType, found, in_array=False)
    elif isinstance(data_type, ArrayType) and isinstance(data_type.elementType, StructType):
        _find_odd(path, data_type.elementType, found, in_array=True)
    elif kind_of(data_type.elementType if isinstance(data_type, ArrayType) else data_type) is None:
        shown = data_type.simpleString()
        found.append((path, shown if len(shown) < 40 else shown[:37] + "...", False))
    elif (collation := collation_of(data_type)) is not None:
        found.append((path, collation, True))


def _records(column: str, data_type: Any, path: str, ambiguous: Collection[str], depth: int = 0) -> str:
    """An array of records, without the fields that no predicate can read."""
    element = f"e{depth}"
    kept = []
    for field in data_type.elementType.fields:
        inner = f"{path}[].{field.name}"
        if inner in ambiguous:
            continue
        value = _readable(_field(element, field.name), field.dataType, inner, ambiguous, depth + 1)
        if value is not None:
            kept.append(f"{value} AS {quoted(field.name)}")
    record = f"struct({', '.join(kept)})" if kept else "struct(TRUE AS __tamis_present)"
    return f"transform({column}, {element} -> CASE WHEN {element} IS NOT NULL THEN {record} END)"


def _readable(value: str, data_type: Any, path: str, ambiguous: Collection[str], depth: int) -> str | None:
    """A field of an element, or None if no predicate can read it."""
    if isinstance(data_type, StructType):
        paths = ((field, f"{path}.{field.name}") for field in data_type.fields)
        parts = [
            (field.name, _readable(_field(value, field.name), field.dataType, inner, ambiguous, depth))
            for field, inner in paths
            if inner not in ambiguous
        ]
        kept = [f"{part} AS {quoted(name)}" for name, part in parts if part is not None]
        return f"CASE WHEN {value} IS NOT NULL THEN struct({', '.join(kept)}) END" if kept else None
    if isinstance(data_type, ArrayType) and isinstance(data_type.elementType, StructType):
        return _records(value, data_type, path, ambiguous, depth)
    if kind_of(data_type.elementType if isinstance(data_type, ArrayType) else data_type) is None:
        return None
    return f"CAST({value} AS {_without_collation(data_type)})" if collation_of(data_type) else value


def strings_of(value: str, data_type: Any, depth: int = 0) -> str | None:
    """All strings of a value, in whatever records and arrays, or None if it can hold none.

    >>> from pyspark.sql.types import LongType, StringType, StructField
    >>> strings_of("m", MapType(LongType(), StringType()))
    'map_values(m)'
    >>> strings_of("l", ArrayType(LongType())) is None
    True
    """
    if kind_of(data_type) == "string":
        return f"CAST({value} AS string)" if collation_of(data_type) else value
    if isinstance(data_type, StructType):
        parts = [strings_of(_field(value, field.name), field.dataType, depth) for field in data_type.fields]
        kept = [f"{part} AS f{at}" for at, part in enumerate(parts) if part is not None]
        return f"CASE WHEN {value} IS NOT NULL THEN struct({', '.join(kept)}) END" if kept else None
    if isinstance(data_type, MapType):
        return strings_of(f"map_values({value})", ArrayType(data_type.valueType), depth)
    if isinstance(data_type, ArrayType):
        element = f"t{depth}"
        inner = strings_of(element, data_type.elementType, depth + 1)
        if inner in (None, element):
            return value if inner else None
        return f"transform({value}, {element} -> {inner})"
    return None


def _loses_strings(data_type: Any, *, in_array: bool = False) -> bool:
    """Whether `_needed` drops strings of a column that is wanted as a whole."""
    if strings_of("x", data_type) is None or kind_of(data_type) == "string":
        return False
    if isinstance(data_type, StructType):
        return any(_loses_strings(field.dataType, in_array=in_array) for field in data_type.fields)
    if isinstance(data_type, MapType):  # one with strings for keys travels as it is
        return in_array or kind_of(data_type.keyType) != "string"
    element = data_type.elementType
    if isinstance(element, StructType):
        return _loses_strings(element, in_array=True)
    return kind_of(element) != "string"


def _unreadable(path: str, data_type: Any, below: bool) -> str:
    """Why predicates on a column, or on something in it, are never true, and what to do."""
    shown = data_type.simpleString()
    what = f"column {path} is {shown if len(shown) < 80 else shown[:77] + '...'}"
    if shown == "variant":
        return (
            f"{what}, which no predicate can read: predicates on it are undefined. Give its fields columns "
            f"of their own, for example with try_variant_get({path}, '$.name', 'double')"
        )
    if shown.startswith("array<struct"):
        return (
            f"{what}: a predicate on a field of its elements must say whether one or all elements are meant, "
            f"and is undefined without: write exists({path}, i -> i.price > 5), or forall"
        )
    inside = "; what is inside is undefined" if below else ""
    return f"{what}, which no predicate can read; only its presence counts{inside}"


def collation_of(data_type: Any) -> str | None:
    """The collation of a type of strings, or of arrays of them, other than by bytes.

    >>> from pyspark.sql.types import StringType
    >>> collation_of(StringType()) is None
    True
    """
    element = data_type.elementType if isinstance(data_type, ArrayType) else data_type
    collation = getattr(element, "collation", None)
    return None if collation in (None, "UTF8_BINARY") else str(collation)


def _without_collation(data_type: Any) -> str:
    return "array<string>" if isinstance(data_type, ArrayType) else "string"


def kind_of(data_type: Any) -> str | None:
    """The kind of values that a Spark type holds, or None for types that no predicate can read.

    >>> from pyspark.sql.types import BinaryType, LongType
    >>> kind_of(LongType()), kind_of(BinaryType())
    ('number', None)
    """
    return _KINDS.get(data_type.simpleString().split("(", 1)[0].split(" collate ", 1)[0])
