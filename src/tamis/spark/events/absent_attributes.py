"""Attributes that subscriptions use and that no column of the events can hold.

This is not an error, because rules may be written for many kinds of events. But it is also what a misspelt
name looks like, and such a rule would silently never be true.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql.types import MapType, StructType

from tamis._suggest import MISSPELT, closest, did_you_mean
from tamis.expr import ALL_STRINGS, parse
from tamis.spark.events.names import Paths, ignores_case, spark_paths, spellings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NAMED = 5
"""How many attributes a warning names."""

LOOKED_AT = 50
"""Suggest corrections for at most this many absent attributes: among many columns, that takes long."""


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


def absent_attributes(
    schema: StructType, attributes: Iterable[str], spread: Iterable[str] = (), *, ignore_case: bool = False
) -> Absent:
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
    paths = spark_paths(schema)
    for name in spread:
        paths = {path.removeprefix(f"{name}."): is_map for path, is_map in paths.items() if path != name}
    return compared(attributes, paths, ignore_case=ignore_case)


def compared(attributes: Iterable[str], paths: Paths, *, ignore_case: bool = False) -> Absent:
    """Compare what subscriptions ask for with what events can have; the keys of a map are not known.

    >>> compared(["age", "contry", "m.kind"], {"country": False, "age": False, "m": True})
    Absent(names=['contry'], meant={'contry': 'country'})
    """
    asked = [name for name in attributes if name != ALL_STRINGS]
    spelt = spellings(asked, paths) if ignore_case else {}
    below = tuple(f"{path}." for path, is_map in paths.items() if is_map)
    known = {*paths, *spelt}
    names = sorted(name for name in asked if name not in known and not name.startswith(below))
    close = {name: closest(name, dict.fromkeys(paths), similarity=MISSPELT) for name in names[:LOOKED_AT]}
    return Absent(names, {name: meant for name, meant in close.items() if meant})


class EventColumns(NamedTuple):
    """The columns of the events that rules are for, and whether the case of names counts."""

    paths: dict[str, bool]
    ignore_case: bool

    @classmethod
    def of(cls, events: "DataFrame") -> "EventColumns":
        """Those of a DataFrame or a stream."""
        return cls(spark_paths(events.schema), ignores_case(events.sparkSession))

    def problem(self, expression: str) -> str | None:
        """What is wrong with a rule that asks for columns which are not there; None where all are.

        >>> columns = EventColumns({"country": False, "m": True}, ignore_case=True)
        >>> columns.problem("contry = 'CA' AND m.kind = 1")
        'no column of the events holds contry (did you mean `country`?): the rule would never be true of them'
        >>> columns.problem("COUNTRY = 'CA'") is None
        True
        """
        absent = compared(parse(expression).attributes, self.paths, ignore_case=self.ignore_case)
        if not absent.names:
            return None
        shown = [
            f"{name} ({did_you_mean(absent.meant[name])})" if name in absent.meant else name
            for name in absent.names
        ]
        return f"no column of the events holds {', '.join(shown)}: the rule would never be true of them"
