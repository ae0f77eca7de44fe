"""Rules that are valid for a period: their expression restricts them to events of that period."""

from datetime import datetime

from tamis.errors import ExpressionError
from tamis.expr import col, parse


def valid_between(
    text: str | None, event_time: str, start: datetime | None, end: datetime | None
) -> str | None:
    """An expression for events from `start` on and before `end`; one that cannot be read stays as it is.

    The bounds add nothing to a score. An event without a time matches no rule that has a bound.

    >>> from datetime import UTC
    >>> valid_between("x > 1 OR y > 2", "ts", datetime(2026, 5, 1, tzinfo=UTC), None)
    "(x > 1 OR y > 2) AND (ts >= TIMESTAMP '2026-05-01 00:00:00')^0"
    >>> valid_between("x > 1", "ts", None, None)
    'x > 1'
    """
    if text is None or (start is None and end is None):
        return text
    time = col(event_time)
    try:
        expression = parse(text)
    except ExpressionError:
        return text
    if start is not None:
        expression &= (time >= start).boost(0.0)
    if end is not None:
        expression &= (time < end).boost(0.0)
    return str(expression)
