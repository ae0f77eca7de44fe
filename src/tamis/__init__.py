"""Tamis: reverse search. Millions of standing Boolean expressions, and for each event all that it satisfies.

>>> import tamis
>>> from tamis import col
>>> rule = (col("age") > 30) & ~col("opted_out")
>>> rule.evaluate({"age": 42, "opted_out": False})
True
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
from tamis.expr import Column, col, parse

__version__ = "0.1.0"

__all__ = [
    "ArgumentError",
    "Column",
    "DuplicateIdError",
    "Event",
    "EventError",
    "Expression",
    "ExpressionError",
    "IdError",
    "Interval",
    "SnapshotError",
    "TamisError",
    "UnknownIdError",
    "UnsupportedExpressionError",
    "col",
    "parse",
]
