"""Tamis: reverse search. Millions of standing Boolean expressions, and for each event all that it satisfies.

>>> import tamis
>>> from tamis import col
>>> index = tamis.Index()
>>> index.add("ad-7", "age BETWEEN 22 AND 36 AND country IN ('CA', 'US')")
>>> index.add("ad-8", (col("age") > 20) & ~col("opted_out"))
>>> index.match({"age": 27, "country": "CA", "opted_out": True})
['ad-7']
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tamis import relate
from tamis._kernel import Event, Expression, Interval, Query, Where
from tamis.errors import (
    ArgumentError,
    DuplicateIdError,
    EventError,
    ExpressionError,
    IdError,
    SnapshotError,
    TamisError,
    UnknownAttributeWarning,
    UnknownIdError,
    UnsupportedExpressionError,
)
from tamis.explain import Explanation, WhyNot
from tamis.expr import Column, at_least, at_most, call, col, exactly, parse, term

if TYPE_CHECKING:
    from tamis.index import ALGORITHMS, Index, Match, RefusedRow, Subscription
    from tamis.rank import Candidates

__version__ = "0.2.0"

__all__ = [
    "ALGORITHMS",
    "ArgumentError",
    "Candidates",
    "Column",
    "DuplicateIdError",
    "Event",
    "EventError",
    "Explanation",
    "Expression",
    "ExpressionError",
    "IdError",
    "Index",
    "Interval",
    "Match",
    "Query",
    "RefusedRow",
    "SnapshotError",
    "Subscription",
    "TamisError",
    "UnknownAttributeWarning",
    "UnknownIdError",
    "UnsupportedExpressionError",
    "Where",
    "WhyNot",
    "at_least",
    "at_most",
    "call",
    "col",
    "exactly",
    "parse",
    "relate",
    "term",
]

_NAMES_OF_INDEX = frozenset({"ALGORITHMS", "Index", "Match", "RefusedRow", "Subscription"})


def __dir__() -> list[str]:
    """The public names, also those that are imported on first use."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


def __getattr__(name: str) -> Any:
    """Import the index on first use: it needs NumPy and pyarrow, and `tamis --help` does not."""
    if name in _NAMES_OF_INDEX:
        return getattr(import_module("tamis.index"), name)
    if name == "Candidates":
        return import_module("tamis.rank").Candidates
    raise AttributeError(f"module 'tamis' has no attribute {name!r}")
