"""Attributes that subscriptions ask for and that no column of the events can hold.

That is no error: rules may be written for events of many kinds. But it is also what a misspelt name looks
like, and such a rule is silently never true.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql.types import MapType, StructType

from tamis._suggest import MISSPELT, closest, did_you_mean

NAMED = 5

LOOKED_AT = 50
"""Of how many absent attributes it is asked what was meant: among many columns, that takes long."""
"""How many attributes a warning names."""


class Absent(NamedTuple):
    """Attributes without a column, and for each that looks misspelt the name that was probably meant."""

    names: list[str]
    meant: dict[str, str]

    def warning(self) -> str | None:
        """One line for people, those that look misspelt first; None where nothing is absent.

        >>> Absent(["age", "contry"], {"contry": "country"}).warning()
        'no column of the events holds contry (did you mean `country`?), age: predicates on them are ...'
        """
        if not self.names:
            return None
        ordered = sorted(self.names, key=lambda name: name not in self.meant)
        shown = [
            f"{name} ({did_you_mean(self.meant[name])})" if name in self.meant else name
            for name in ordered[:NAMED]
        ]
        more = f" and {len(ordered) - NAMED:,} more" if len(ordered) > NAMED else ""
        what = "them" if len(ordered) > 1 else "it"
        return f"no column of the events holds {', '.join(shown)}{more}: predicates on {what} are undefined"


def absent_attributes(schema: StructType, attributes: Iterable[str], spread: Iterable[str] = ()) -> Absent:
    """Compare what subscriptions ask for with the columns of the events.

    >>> from pyspark.sql.types import IntegerType, StructField
    >>> events = StructType([StructField("country", IntegerType()), StructField("user", StructType(
    ...     [StructField("age", IntegerType())]))])
    >>> absent_attributes(events, ["contry", "user.age", "user.aeg", "vip"])
    Absent(names=['contry', 'user.aeg', 'vip'], meant={'contry': 'country', 'user.aeg': 'user.age'})
    """
    spread = [spread] if isinstance(spread, str) else list(spread)
    types = {field.name: field.dataType for field in schema.fields}
    if any(isinstance(types.get(name), MapType) for name in spread):
        return Absent([], {})  # only the rows tell which attributes there are
    known = dict(_paths(types, spread))
    maps = [path for path, data_type in known.items() if isinstance(data_type, MapType)]
    return compared(attributes, known, maps)


def compared(attributes: Iterable[str], known: Iterable[str], maps: Iterable[str]) -> Absent:
    """Compare what subscriptions ask for with what is known, `maps` being attributes whose keys are not.

    >>> compared(["age", "contry", "m.kind"], ["country", "age", "m"], ["m"])
    Absent(names=['contry'], meant={'contry': 'country'})
    """
    there = dict.fromkeys(known)
    below = tuple(f"{path}." for path in maps)
    names = sorted(name for name in attributes if name not in there and not name.startswith(below))
    close = {name: closest(name, there, similarity=MISSPELT) for name in names[:LOOKED_AT]}
    return Absent(names, {name: meant for name, meant in close.items() if meant})


def arrow_paths(fields: Iterable[pa.Field], prefix: str = "") -> Iterator[tuple[str, bool]]:
    """Every attribute that a record of these Arrow fields can have, and whether it is a map.

    >>> fields = {"a": pa.struct({"b": pa.int64()}), "m": pa.map_(pa.string(), pa.string())}
    >>> list(arrow_paths(pa.schema(fields)))
    [('a', False), ('a.b', False), ('m', True)]
    """
    for field in fields:
        yield prefix + field.name, pa.types.is_map(field.type)
        if pa.types.is_struct(field.type):
            yield from arrow_paths(field.type.fields, f"{prefix}{field.name}.")


def _paths(types: dict[str, Any], spread: list[str], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every attribute that a record of these fields can have."""
    for name, data_type in types.items():
        spreads = not prefix and name in spread
        if not spreads:
            yield prefix + name, data_type
        if isinstance(data_type, StructType):
            inside = {field.name: field.dataType for field in data_type.fields}
            yield from _paths(inside, [], "" if spreads else f"{prefix}{name}.")
