"""Finds attributes that give a computed term a value: `price * 2` is 10 if `price` is 5."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from tamis._example.term_text import Attribute, Call, Constant, Tree
from tamis._example.values import address, values_for

Event = dict[str, Any]
_MOST = 24
_PARTS = ("year", "quarter", "month", "day", "dayofweek", "dayofyear", "hour", "minute", "second")
_UNCHANGED = (
    "lower",
    "trim",
    "date_trunc",
    "round",
    "floor",
    "ceil",
    "from_utc_timestamp",
    "to_utc_timestamp",
)
_FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)


def inverse(tree: Tree, value: Any, event: Event | None = None) -> Iterator[Event]:
    """Attributes for which a term probably has a value; the caller checks them.

    Where `event` has a text, an array or a time already, it is made longer, or another part of it changed.

    >>> from tamis._example.term_text import read_term
    >>> next(inverse(read_term("price * 2 + 1"), 11))
    {'price': 5}
    """
    if isinstance(tree, Attribute):
        yield {tree.path: value}
    elif isinstance(tree, Call):
        yield from islice(_of_call(tree, value, event or {}), _MOST)


def _of_call(call: Call, value: Any, event: Event) -> Iterator[Event]:
    name, given = call.name, call.given
    if name in _UNCHANGED:
        yield from inverse(given[-1] if name == "date_trunc" else given[0], value, event)
    elif name == "upper" and isinstance(value, str):
        yield from inverse(given[0], value, event)
        yield from inverse(given[0], value.lower(), event)
    elif name == "abs":
        yield from inverse(given[0], value, event)
        if _is_number(value):
            yield from inverse(given[0], -value, event)
    elif name == "coalesce":
        for one in given:
            yield from inverse(one, value, event)
    elif name == "CAST":
        for one in _casts(value):
            yield from inverse(given[0], one, event)
    elif name == "ip" and isinstance(value, str):
        found = address(value)
        if found is not None:
            yield from inverse(given[0], found, event)
    elif name in ("length", "size") and _is_number(value) and 0 <= value <= 10_000:
        for one in _of_length(given[0], int(value), event, "" if name == "length" else []):
            yield from inverse(given[0], one, event)
    elif name == "substring":
        yield from _of_substring(given, value)
    elif name == "element_at":
        yield from _of_element(given, value)
    elif name == "concat" and isinstance(value, str):
        yield from _of_concat(given, value)
    elif name in _PARTS:
        for moment in _moments(name, value, _present(given[0], event)):
            yield from inverse(given[0], moment, event)
    elif name == "timestampdiff" and _is_number(value):
        for unit in _interval(Call("INTERVAL", (Constant(1), Constant(getattr(given[0], "path", ""))))):
            yield from _together((given[1], _FIRST_DAY), (given[2], _FIRST_DAY + unit * value))
    elif name in _ARITHMETIC:
        yield from _of_arithmetic(call, value)
    elif name in ("=", "!=", "<", "<=", ">", ">=", "<=>"):
        yield from _of_comparison(call, value)
    elif name == "within_distance" and value is True:
        for latitude in _worth(given[2]):
            for longitude in _worth(given[3]):
                yield from _together((given[0], latitude), (given[1], longitude))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _casts(value: Any) -> Iterator[Any]:
    yield value
    if isinstance(value, datetime):
        yield value.isoformat()
    elif isinstance(value, bool):
        yield str(value).lower()
    elif _is_number(value):
        yield str(value)
    elif isinstance(value, str):
        for kind in (int, float):
            try:
                yield kind(value)
            except ValueError:
                continue


def _worth(tree: Tree) -> list[Any]:
    """What a term without attributes is worth, as far as it is known here."""
    if isinstance(tree, Constant):
        return [tree.value]
    if isinstance(tree, Call):
        if tree.name in ("TIMESTAMP", "DATE"):
            try:
                moment = datetime.fromisoformat(tree.given[0].value)
            except ValueError:
                return []
            return [moment if moment.tzinfo else moment.replace(tzinfo=UTC)]
        if tree.name == "current_timestamp":
            return [datetime.now(UTC).replace(microsecond=0)]
        if tree.name == "INTERVAL":
            return _interval(tree)
        if tree.name in _ARITHMETIC:
            forward = _ARITHMETIC[tree.name][0]
            return [
                made
                for one in _worth(tree.given[0])
                for other in _worth(tree.given[1])
                if (made := _tried(forward, one, other)) is not None
            ]
    return []


_UNITS = {"DAY": 86_400, "HOUR": 3_600, "MINUTE": 60, "SECOND": 1, "WEEK": 604_800}


def _interval(tree: Call) -> list[timedelta]:
    number, unit = (part.value for part in tree.given)
    try:
        return [timedelta(seconds=float(number) * _UNITS[str(unit).upper().removesuffix("S")])]
    except (KeyError, ValueError, OverflowError):
        return []


def _present(tree: Tree, event: Event) -> Any:
    return event.get(tree.path) if isinstance(tree, Attribute) else None


def _of_length(tree: Tree, length: int, event: Event, empty: Any) -> Iterator[Any]:
    """What is there, made longer, or a new one."""
    present = _present(tree, event)
    if isinstance(present, type(empty)) and 0 < len(present) < length:
        yield present + present[-1:] * (length - len(present))
    yield "a" * length if isinstance(empty, str) else ["a"] * length


def _of_substring(given: tuple[Tree, ...], value: Any) -> Iterator[Event]:
    starts = _worth(given[1])
    if not isinstance(value, str) or not starts or not isinstance(starts[0], int):
        return
    start = starts[0]
    yield from inverse(given[0], "a" * (start - 1) + value if start > 0 else value.ljust(-start, "a"))


def _of_element(given: tuple[Tree, ...], value: Any) -> Iterator[Event]:
    places = _worth(given[1])
    if places and isinstance(places[0], int) and 0 < abs(places[0]) <= 1_000:
        yield from inverse(given[0], [value] * abs(places[0]))


def _of_concat(given: tuple[Tree, ...], value: str) -> Iterator[Event]:
    """The constants are taken off at both ends; the first of the others gets the rest."""
    parts = list(given)
    while parts and isinstance(first := parts[0], Constant):
        value = value.removeprefix(str(first.value))
        parts.pop(0)
    while parts and isinstance(last := parts[-1], Constant):
        value = value.removesuffix(str(last.value))
        parts.pop()
    if not parts:
        return
    event: Event = {}
    for at, part in enumerate(parts):
        if isinstance(part, Constant):
            continue
        following = parts[at + 1] if at + 1 < len(parts) else None
        text, value = (
            (value, "")
            if following is None
            else _split(value, str(following.value))
            if isinstance(following, Constant)
            else (value[:1], value[1:])
        )
        found = next(inverse(part, text), None)
        if found is None:
            return
        event |= found
    yield event


def _split(text: str, mark: str) -> tuple[str, str]:
    before, _, after = text.partition(mark)
    return before, after


def _moments(part: str, value: Any, present: Any) -> Iterator[datetime]:
    if not _is_number(value) or value != int(value):
        return
    whole = int(value)
    start = present if isinstance(present, datetime) else _FIRST_DAY
    try:
        if part in ("year", "month", "day", "hour", "minute", "second"):
            yield start.replace(**{part: whole})  # type: ignore[arg-type]
        elif part == "quarter":
            yield start.replace(month=3 * whole - 2)
        elif part == "dayofyear":
            yield start.replace(month=1, day=1) + timedelta(days=whole - 1)
        else:
            yield from (start + timedelta(days=days) for days in range(7))
    except (ValueError, OverflowError):
        return


_Operation = Callable[[Any, Any], Any]
_ARITHMETIC: dict[str, tuple[_Operation, _Operation, _Operation]] = {
    # the operator; the left side from the result and the right one; the right side from both others
    "+": (lambda a, b: a + b, lambda v, b: v - b, lambda v, a: v - a),
    "-": (lambda a, b: a - b, lambda v, b: v + b, lambda v, a: a - v),
    "*": (lambda a, b: a * b, lambda v, b: _exact(v / b), lambda v, a: _exact(v / a)),
    "/": (lambda a, b: a / b, lambda v, b: v * b, lambda v, a: _exact(a / v)),
    "%": (lambda a, b: a % b, lambda v, b: v, lambda v, a: abs(a - v)),
}


def _exact(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _tried(operation: _Operation, one: Any, other: Any) -> Any:
    try:
        return operation(one, other)
    except (TypeError, ArithmeticError, ValueError):
        return None


def _of_arithmetic(call: Call, value: Any) -> Iterator[Event]:
    left, right = call.given
    _, to_left, to_right = _ARITHMETIC[call.name]
    for known in _worth(right):
        if (wanted := _tried(to_left, value, known)) is not None:
            yield from inverse(left, wanted)
    for known in _worth(left):
        if (wanted := _tried(to_right, value, known)) is not None:
            yield from inverse(right, wanted)
    if _worth(left) or _worth(right):
        return
    for other in (1, 0, 2, -1, 10, timedelta(hours=1), _FIRST_DAY):
        if (wanted := _tried(to_left, value, other)) is not None:
            yield from _together((left, wanted), (right, other))
    if _is_number(value):  # both sides may look at one attribute: x * x
        for guess in (value, value / 2, abs(value) ** 0.5, abs(value) ** 0.5 + 1):
            yield from inverse(left, _exact(guess))


def _of_comparison(call: Call, value: Any) -> Iterator[Event]:
    if not isinstance(value, bool):
        return
    left, right = call.given
    operator, wanted = ("=", not value) if call.name == "!=" else (call.name, value)
    turned = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(operator, operator)
    for known in _worth(right):
        for guess in values_for(operator, [known], wanted=wanted):
            yield from inverse(left, guess)
    for known in _worth(left):
        for guess in values_for(turned, [known], wanted=wanted):
            yield from inverse(right, guess)
    if _worth(left) or _worth(right):
        return
    for other in (1, "b", _FIRST_DAY):
        for guess in values_for(operator, [other], wanted=wanted)[:3]:
            yield from _together((left, guess), (right, other))


def _together(*sides: tuple[Tree, Any]) -> Iterator[Event]:
    event: Event = {}
    for tree, value in sides:
        found = next(inverse(tree, value), None)
        if found is None:
            return
        event |= found
    yield event
