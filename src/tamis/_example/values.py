"""Values of a term for which a predicate is true, or false: guesses, the simplest first."""

from datetime import datetime, timedelta
from ipaddress import ip_address
from math import floor, isfinite
from typing import Any

from tamis._example.texts import text_found_by, text_that_fits

_FILLER = ("a", 0, 1, -1, True, False, 1_000_003.5, "other", "")


def values_for(operator: str, operands: list[Any], *, wanted: bool) -> list[Any]:
    """Guesses; the caller checks them.

    >>> values_for(">", [5], wanted=True)[0], values_for("endswith", [".exe"], wanted=True)[0]
    (6, '.exe')
    """
    constants = [constant(operand) for operand in operands]
    if operator in ("=", "<=>", "IN", "array_contains", "arrays_overlap"):
        near = [value for one in constants[:3] for value in _around(one)]
        guesses: list[Any] = [*constants, *near] if wanted else [*near, *_FILLER]
        return [[value] for value in guesses] if operator.startswith("array") else guesses
    if operator in ("<", "<=", ">", ">="):
        [bound] = constants
        up, down = _above(bound), _below(bound)
        return ([*up, bound, *down] if operator.startswith(">") == wanted else [*down, bound, *up]) + [0, 1]
    if operator == "BETWEEN":
        low, high = constants
        between = [low, *_middle(low, high), high]
        return between if wanted else [*_below(low), *_above(high)]
    if operator == "truth":
        return [wanted]
    if operator == "IS NULL":
        return [] if wanted else list(_FILLER)
    if operator in ("startswith", "endswith", "contains", "LIKE", "ILIKE", "RLIKE") and not wanted:
        return list(_FILLER)
    if operator in ("LIKE", "ILIKE"):
        return [text_that_fits(str(constants[0]))]
    if operator == "RLIKE":
        found = text_found_by(str(constants[0]))
        return [] if found is None else [found]
    if operator in ("contains", "endswith"):
        return [constants[0], f"a{constants[0]}"]
    return [*constants, *_FILLER]


def constant(operand: Any) -> Any:
    """An operand of the JSON form as a value.

    >>> constant({"$timestamp": "2026-01-01T00:00:00Z"}).year
    2026
    """
    if isinstance(operand, dict) and "$timestamp" in operand:
        try:
            return datetime.fromisoformat(operand["$timestamp"])
        except ValueError:
            return operand
    if isinstance(operand, dict) and "$float" in operand:
        return float(operand["$float"])
    return operand


def address(text: str) -> str | None:
    """The address that stands for a place in the order of addresses.

    >>> address("4:0a000000")
    '10.0.0.0'
    """
    kind, _, digits = text.partition(":")
    try:
        raw = bytes.fromhex(digits)
        return str(ip_address(raw)) if kind in ("4", "6") else None
    except ValueError:
        return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _around(value: Any) -> list[Any]:
    return [*_above(value), *_below(value)]


def _above(value: Any) -> list[Any]:
    if _is_number(value) and isfinite(value):
        return [floor(value) + 1, value + 0.5, value * 2 + 1]
    if isinstance(value, str):
        return [value + "a"]
    if isinstance(value, datetime | timedelta):
        return _moved(value, timedelta(hours=1), timedelta(days=1))
    return []


def _below(value: Any) -> list[Any]:
    if _is_number(value) and isfinite(value):
        whole = floor(value)
        return [whole if whole < value else whole - 1, value - 0.5, -abs(value) * 2 - 1]
    if isinstance(value, str):
        return [value[:-1], ""]
    if isinstance(value, datetime | timedelta):
        return _moved(value, -timedelta(seconds=1), -timedelta(hours=1), -timedelta(days=1))
    return []


def _moved(value: Any, *steps: timedelta) -> list[Any]:
    moved = []
    for step in steps:
        try:
            moved.append(value + step)
        except OverflowError:
            continue
    return moved


def _middle(low: Any, high: Any) -> list[Any]:
    if _is_number(low) and _is_number(high):
        return [low + (high - low) / 2]
    if isinstance(low, datetime) and isinstance(high, datetime):
        return [low + (high - low) / 2]
    return []
