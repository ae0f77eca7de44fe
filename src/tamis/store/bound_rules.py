"""Subscriptions that are bound to a source: their expression restricts them to its events."""

from tamis.errors import ExpressionError
from tamis.expr import col, parse


def from_source(text: str | None, source: str | None) -> str | None:
    """An expression for events of one source; one that cannot be read stays, to be reported as it is.

    The source adds nothing to a score: the score is that of the expression as it was written.

    >>> from_source("x > 1 OR y > 2", "shop")
    "(x > 1 OR y > 2) AND (source = 'shop')^0"
    """
    if source is None or text is None:
        return text
    try:
        return str(parse(text) & (col("source") == source).boost(0.0))
    except ExpressionError:
        return text


def is_bound(text: str | None) -> bool:
    """Whether an expression was made by `from_source`.

    >>> is_bound(from_source("x > 1", "shop")), is_bound("x > 1")
    (True, False)
    """
    return text is not None and text.endswith(")^0") and "AND (source = " in text
