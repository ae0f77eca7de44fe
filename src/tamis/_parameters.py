"""Values for the `?` of an expression: written as literals, so that nothing in a value is read as syntax."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from math import isfinite, isnan
from typing import Any

from tamis.errors import ArgumentError

_TOKEN = re.compile(
    r"""
      r'[^']*' | r"[^"]*"                           # raw strings
    | '(?:\\.|''|[^'\\])*' | "(?:\\.|""|[^"\\])*"   # strings
    | `(?:``|[^`])*`                                # names in backquotes
    | --[^\n]* | /\*.*?\*/                          # comments
    | \?                                            # a parameter
    """,
    re.VERBOSE | re.DOTALL,
)


def with_values(text: str, values: Sequence[Any]) -> str:
    """The text with a literal in the place of each `?` that is not in a string, a name or a comment.

    >>> with_values("name = ? AND note != 'why?'", ["Joe's Diner"])
    "name = 'Joe\\\\'s Diner' AND note != 'why?'"
    >>> with_values("x IN (?) AND at > ?", [[1, 2], date(2026, 1, 31)])
    "x IN (1, 2) AND at > TIMESTAMP '2026-01-31 00:00:00'"
    """
    if isinstance(values, str | bytes):
        raise ArgumentError(f"parameters are a list of values; write [{values!r}]")
    given = list(values)
    places = list(_places(text))
    if len(places) != len(given):
        raise ArgumentError(
            f"{len(places)} parameters for {len(given)} values: each ? outside of quotes takes one"
        )
    parts, end = [], 0
    for place, value in zip(places, given, strict=True):
        parts += [text[end:place], written(value)]
        end = place + 1
    return "".join([*parts, text[end:]])


def written(value: Any) -> str:
    r"""A value as a literal; a list as literals with commas between them.

    >>> written("a\\b"), written(None), written(float("nan")), written(Decimal("1.50"))
    ("'a\\\\b'", 'NULL', "double('NaN')", '1.50')
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, float) and not isfinite(value):
        return "double('NaN')" if isnan(value) else f"double('{'-' if value < 0 else ''}Infinity')"
    if isinstance(value, int | float | Decimal):
        return format(value, "f") if isinstance(value, Decimal) else repr(value)
    if isinstance(value, datetime):
        moment = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        return f"TIMESTAMP '{moment.isoformat(' ')}'"
    if isinstance(value, date):
        return f"TIMESTAMP '{value.isoformat()} 00:00:00'"
    if hasattr(value, "item"):  # a scalar of NumPy
        return written(value.item())
    if isinstance(value, Iterable) and not isinstance(value, bytes | dict):
        return ", ".join(written(member) for member in value)
    raise ArgumentError(f"a parameter is a value or a list of values, not {type(value).__name__}")


def _places(text: str) -> Iterator[int]:
    return (token.start() for token in _TOKEN.finditer(text) if token[0] == "?")
