"""What computed terms are, in plain Python: the oracle's half of `docs/expressions.md`, Computed terms.

A term is an attribute (its name), a `Literal`, a `Call` of a function, or something Boolean that `oracle`
knows. A function gives None where it is undefined: for arguments that are absent, are intervals, or are of a
kind that it does not take.
"""

import math
import operator
import re
from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from oracle_values import Interval, are_comparable, kind, order


class Literal(NamedTuple):
    value: Any
    type: str  # so that 1, 1.0 and TRUE are different literals


class Call(NamedTuple):
    """`name` is a function, an infix operator, or one of "cast as int", "+ interval" ..."""

    name: str
    arguments: tuple[Any, ...]


def literal_of(value: Any) -> Literal:
    return Literal(value, type(value).__name__)


NOW = Call("current_timestamp", ())


def moment() -> datetime:
    """When queries are asked. Random timestamps do not lie near it."""
    return datetime.now(UTC)


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def call(name: str, values: list[Any]) -> Any:
    """The value of a function of these values."""
    if any(isinstance(value, Interval) for value in values):
        return None
    if name == "current_timestamp":
        return moment()
    if name == "coalesce":
        return next((value for value in values if value is not None), None)
    if name == "<=>" and None in values:
        return values == [None, None]
    if None in values:
        return None
    if name in COMPARISONS or name == "<=>":
        if not are_comparable(*values):
            return None
        left, right = map(order, values)
        return COMPARISONS["=" if name == "<=>" else name](left, right)
    takes, function = FUNCTIONS[name]
    kinds = (takes * len(values))[: len(values)] if len(takes) == 1 else takes
    if any(wanted not in ("any", kind(value)) for wanted, value in zip(kinds, values, strict=False)):
        return None
    return function(*values)


# --- numbers --------------------------------------------------------------------------------------


def fits(number: int) -> int | None:
    return number if -(2**63) <= number < 2**63 else None


def arithmetic(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Of two integers an integer that fits, otherwise a float."""

    def compute(a: Any, b: Any) -> Any:
        if isinstance(a, int) and isinstance(b, int):
            whole = function(a, b)
            return None if whole is None else fits(whole)
        return function(float(a), float(b))

    return compute


def quotient(a: Any, b: Any) -> float | None:
    return None if b == 0 else float(a) / float(b)


def remainder(a: Any, b: Any) -> Any:
    if b == 0:
        return None
    if isinstance(a, int):
        return abs(a) % abs(b) * (1 if a >= 0 else -1)
    if math.isinf(a) or math.isnan(a) or math.isnan(b):
        return math.nan
    return math.fmod(a, b)


def absolute(a: Any) -> Any:
    return fits(abs(a)) if isinstance(a, int) else abs(a)


def rounded(a: Any, places: int = 0) -> Any:
    """Half away from zero, by the digits that the number is written with."""
    if isinstance(a, float) and not math.isfinite(a):
        return a
    with localcontext(prec=800):
        unit = Decimal(1).scaleb(-places)
        near = (Decimal(repr(a)) / unit).to_integral_value(ROUND_HALF_UP) * unit
    if isinstance(a, int):
        return a if places >= 0 else fits(int(near))
    return float(near)


def whole(to_whole: Callable[[float], int]) -> Callable[[Any], int | None]:
    return lambda a: fits(to_whole(a)) if math.isfinite(a) else None


# --- text -----------------------------------------------------------------------------------------


def substring(text: str, start: int, length: int | None = None) -> str:
    first = start - 1 if start > 0 else 0 if start == 0 else len(text) + start
    end = len(text) if length is None else first + length
    return text[max(first, 0) : max(end, 0)]


def concat(*texts: str) -> str | None:
    joined = "".join(texts)
    return joined if len(joined.encode()) <= 1 << 20 else None


# --- time -----------------------------------------------------------------------------------------


def truncated(unit: str, time: datetime) -> datetime:
    start = time.replace(microsecond=0)
    for name, parts in {
        "minute": {"second": 0},
        "hour": {"minute": 0},
        "day": {"hour": 0},
        "month": {"day": 1},
        "year": {"month": 1},
    }.items():
        if unit == "second" or (unit in ("week", "quarter") and name == "month"):
            break
        start = start.replace(**parts)  # type: ignore[arg-type]
        if unit == name:
            break
    if unit == "week":
        return start - timedelta(days=start.weekday())
    return start.replace(day=1, month=(start.month - 1) // 3 * 3 + 1) if unit == "quarter" else start


def moved(time: datetime, count: int, unit: str) -> datetime:
    if unit not in ("MONTH", "YEAR"):
        return time + timedelta(**{unit.lower() + "s": count})
    months = time.year * 12 + time.month - 1 + count * (12 if unit == "YEAR" else 1)
    year, month = divmod(months, 12)
    return time.replace(year=year, month=month + 1, day=min(time.day, monthrange(year, month + 1)[1]))


def difference(unit: str, start: datetime, end: datetime) -> int:
    length = timedelta(**{unit.lower() + "s": 1})
    whole_units = abs(end - start) // length
    return whole_units if end >= start else -whole_units


def shown_in(time: datetime, zone: str) -> datetime:
    return time.astimezone(ZoneInfo(zone)).replace(tzinfo=UTC)


def seconds(time: datetime) -> int:
    return (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)


def micros(time: datetime) -> int:
    return (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


# --- casts ----------------------------------------------------------------------------------------

SPACES = " \t\n\r\f"


def to_bool(value: Any) -> bool | None:
    match value:
        case bool():
            return value
        case str():
            text = value.strip(SPACES).lower()
            known = {"t": True, "true": True, "y": True, "yes": True, "1": True}
            return (known | {"f": False, "false": False, "n": False, "no": False, "0": False}).get(text)
        case int() | float():
            return value != 0
    return None


def to_int(value: Any) -> int | None:
    match value:
        case bool() | int():
            return int(value)
        case float():
            return fits(math.trunc(value)) if math.isfinite(value) else None
        case str() if re.fullmatch(r"[+-]?[0-9]+", text := value.strip(SPACES)):
            return fits(int(text))
        case datetime():
            return seconds(value)
    return None


FLOAT = re.compile(r"[+-]?(inf|infinity|nan|([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?)", re.IGNORECASE)


def to_float(value: Any) -> float | None:
    match value:
        case bool() | int() | float():
            return float(value)
        case str() if FLOAT.fullmatch(text := value.strip(SPACES)):
            return float(text)
        case datetime():
            return micros(value) / 1_000_000
    return None


def to_string(value: Any) -> str | None:
    """None for floats: engines write them differently."""
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case str():
            return value
        case datetime():
            shown, _, fraction = value.replace(tzinfo=None).isoformat(sep=" ").partition(".")
            return f"{shown}.{fraction.rstrip('0')}" if fraction else shown
    return None


def to_timestamp(value: Any) -> datetime | None:
    """Of seconds and of timestamps; texts are not drawn."""
    match value:
        case datetime():
            return value
        case bool():
            return None
        case int():
            return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=value)
        case float() if math.isfinite(value):
            moment = math.floor(value * 1_000_000.0)
            return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=moment)
    return None


# --- arrays ---------------------------------------------------------------------------------------


def element_at(items: list[Any], at: int) -> Any:
    place = at - 1 if at > 0 else len(items) + at
    return items[place] if at != 0 and 0 <= place < len(items) else None


# --- the table ------------------------------------------------------------------------------------

NUMBER, TEXT, TIME, ARRAY, ANY = "number", "string", "timestamp", "array", "any"

# Name -> the kinds of its arguments (one for all of them, or each) and what it computes.
FUNCTIONS: dict[str, tuple[tuple[str, ...], Callable[..., Any]]] = {
    "+": ((NUMBER,), arithmetic(operator.add)),
    "-": ((NUMBER,), arithmetic(operator.sub)),
    "*": ((NUMBER,), arithmetic(operator.mul)),
    "/": ((NUMBER,), quotient),
    "%": ((NUMBER,), arithmetic(remainder)),
    "abs": ((NUMBER,), absolute),
    "round": ((NUMBER,), rounded),
    "floor": ((NUMBER,), whole(math.floor)),
    "ceil": ((NUMBER,), whole(math.ceil)),
    "lower": ((TEXT,), str.lower),
    "upper": ((TEXT,), str.upper),
    "trim": ((TEXT,), lambda text: text.strip(" ")),
    "length": ((TEXT,), len),
    "substring": ((TEXT, NUMBER, NUMBER), substring),
    "concat": ((TEXT,), concat),
    "year": ((TIME,), lambda time: time.year),
    "quarter": ((TIME,), lambda time: (time.month + 2) // 3),
    "month": ((TIME,), lambda time: time.month),
    "day": ((TIME,), lambda time: time.day),
    "dayofweek": ((TIME,), lambda time: time.isoweekday() % 7 + 1),
    "dayofyear": ((TIME,), lambda time: time.timetuple().tm_yday),
    "hour": ((TIME,), lambda time: time.hour),
    "minute": ((TIME,), lambda time: time.minute),
    "second": ((TIME,), lambda time: time.second),
    "date_trunc": ((TEXT, TIME), truncated),
    "from_utc_timestamp": ((TIME, TEXT), shown_in),
    "size": ((ARRAY,), len),
    "element_at": ((ARRAY, NUMBER), element_at),
    "cast as bool": ((ANY,), to_bool),
    "cast as int": ((ANY,), to_int),
    "cast as float": ((ANY,), to_float),
    "cast as string": ((ANY,), to_string),
    "cast as timestamp": ((ANY,), to_timestamp),
    "+ interval": ((TIME, NUMBER, TEXT), moved),
    "timestampdiff": ((TEXT, TIME, TIME), difference),
}
