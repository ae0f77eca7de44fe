"""Reads the optional columns of rules, with an error that says what would be right."""

import json
import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any


def priority(value: Any) -> float:
    """A priority is a number.

    >>> priority("high")
    Traceback (most recent call last):
    ValueError: expected a number, such as 1.5, not 'high'
    """
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"expected a number, such as 1.5, not {_shown(value)}") from None
    if not math.isfinite(number):
        raise ValueError(f"expected a finite number, not {value}")
    return number


def weights(value: Any) -> dict[str, float]:
    """Weights are a JSON object, or a record or map of a table.

    >>> weights('{"age": 0.7}'), weights([("age", 0.7)])
    ({'age': 0.7}, {'age': 0.7})
    """
    parsed = _from_json(value) if isinstance(value, str) else value
    if isinstance(parsed, list) and all(isinstance(pair, tuple) for pair in parsed):  # an Arrow map
        parsed = dict(parsed)
    if not isinstance(parsed, Mapping):
        raise ValueError(f'expected a JSON object, such as {{"age": 0.7}}, not {_shown(value)}')
    known = {str(name): priority(weight) for name, weight in parsed.items() if weight is not None}
    for name, weight in known.items():
        if weight < 0:
            raise ValueError(f"the weight of {name} is {weight}, and weights are not negative")
    return known


def tags(value: Any) -> list[str]:
    """Tags are a list, or text with `;` between them.

    >>> tags("q4; north"), tags('["q4"]')
    (['q4', 'north'], ['q4'])
    """
    if isinstance(value, str):
        value = _from_json(value) if value.lstrip().startswith("[") else value.split(";")
    if not isinstance(value, list):
        raise ValueError(f"expected a list, or text such as 'q4;north', not {_shown(value)}")
    return [str(tag).strip() for tag in value]


def owner(value: Any) -> str:
    """An owner is text; numbers become text.

    >>> owner("ann"), owner(7)
    ('ann', '7')
    """
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"expected text, not {_shown(value)}")
    return str(value)


def payload(value: Any) -> bytes:
    """A payload is bytes or text; anything else that JSON can say is kept as JSON.

    >>> payload("campaign 1"), payload({"a": 1})
    (b'campaign 1', b'{"a": 1}')
    """
    if isinstance(value, bytes):
        return value
    try:
        return value.encode() if isinstance(value, str) else json.dumps(value).encode()
    except TypeError:
        raise ValueError(f"expected text or bytes, not {_shown(value)}") from None


def moment(value: Any) -> datetime:
    """A start and an expiry are timestamps; UTC unless they say otherwise.

    >>> moment("2026-12-31").isoformat()
    '2026-12-31T00:00:00+00:00'
    """
    try:
        given = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        raise ValueError(f"expected a timestamp, such as 2026-12-31T23:59:59Z, not {_shown(value)}") from None
    return given if given.tzinfo else given.replace(tzinfo=UTC)


OPTIONAL: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "priority": ("priorities", priority),
    "weights": ("weights", weights),
    "tags": ("tags", tags),
    "owner": ("owners", owner),
    "payload": ("payloads", payload),
    "expires": ("expires", moment),
    "starts": ("starts", moment),
}
"""For each optional column, the argument of `Index.add_many` that takes it, and how a value is read."""


def _from_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"not valid JSON: {error}") from None


def _shown(value: Any, most: int = 60) -> str:
    shown = repr(value)
    return shown if len(shown) <= most else f"{shown[:most]}..."
