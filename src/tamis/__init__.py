"""Tamis: reverse search. Millions of standing Boolean expressions, and for each event all that it satisfies.

>>> import tamis
>>> from tamis import col
>>> index = tamis.Index()
>>> index.add("ad-7", "age BETWEEN 22 AND 36 AND country IN ('CA', 'US')")
>>> index.add("ad-8", (col("age") > 20) & ~col("opted_out"))
>>> index.match({"age": 27, "country": "CA", "opted_out": True})
['ad-7']
"""

from tamis._kernel import Event, Expression, Interval
from tamis.errors import (
    ArgumentError,
    DuplicateIdError,
    EventError,
    ExpressionError,
    IdError,
    SnapshotError,
    TamisError,
    UnknownIdError,
    UnsupportedExpressionError,
)
from tamis.explain import Explanation, WhyNot
from tamis.expr import Column, col, parse
from tamis.index import ALGORITHMS, Index, Match, RowError, Subscription

__version__ = "0.1.0"

__all__ = [
    "ALGORITHMS",
    "ArgumentError",
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
    "RowError",
    "SnapshotError",
    "Subscription",
    "TamisError",
    "UnknownIdError",
    "UnsupportedExpressionError",
    "WhyNot",
    "col",
    "parse",
]
