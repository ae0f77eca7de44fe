"""Tamis: reverse search. It stores millions of Boolean expressions and finds those that an event satisfies.

>>> import tamis
>>> from tamis import col
>>> index = tamis.Index()
>>> index.add("ad-7", "age BETWEEN 22 AND 36 AND country IN ('CA', 'US')")
>>> index.add("ad-8", (col("age") > 20) & ~col("opted_out"))
>>> index.match({"age": 27, "country": "CA", "opted_out": True})
['ad-7']
"""

import os
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, overload

from tamis import relate
from tamis._kernel import Event, Expression, Interval, Query, Where
from tamis.errors import (
    ArgumentError,
    DuplicateIdError,
    EventError,
    ExpressionError,
    IdError,
    SnapshotError,
    StaleSnapshotError,
    TamisError,
    UnknownAttributeWarning,
    UnknownColumnWarning,
    UnknownIdError,
    UnreadableValueWarning,
    UnsupportedExpressionError,
    ValueWarning,
    XmlError,
)
from tamis.explain import Explanation, WhyNot
from tamis.expr import (
    Column,
    all_strings,
    any_of,
    at_least,
    at_most,
    call,
    col,
    current_date,
    current_timestamp,
    exactly,
    exists,
    forall,
    parse,
    term,
    within_distance,
    within_polygon,
)
from tamis.xml import Xml

if TYPE_CHECKING:
    from tamis.flow import Flow
    from tamis.index import ALGORITHMS, Index, Match, RefusedRow, Subscription
    from tamis.live import LiveIndex
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
    "Flow",
    "IdError",
    "Index",
    "Interval",
    "Match",
    "Query",
    "RefusedRow",
    "SnapshotError",
    "StaleSnapshotError",
    "Subscription",
    "TamisError",
    "UnknownAttributeWarning",
    "UnknownColumnWarning",
    "UnknownIdError",
    "UnreadableValueWarning",
    "UnsupportedExpressionError",
    "ValueWarning",
    "Where",
    "WhyNot",
    "Xml",
    "XmlError",
    "all_strings",
    "any_of",
    "at_least",
    "at_most",
    "call",
    "col",
    "current_date",
    "current_timestamp",
    "exactly",
    "exists",
    "forall",
    "open",
    "parse",
    "relate",
    "term",
    "within_distance",
    "within_polygon",
]


@overload
def open(path: str | os.PathLike[str], *, copy: bool = ...) -> "Index": ...
@overload
def open(
    path: str | os.PathLike[str],
    *,
    watch: Literal[True],
    interval: float = ...,
    warm_up: Iterable[Any] = ...,
) -> "LiveIndex": ...
def open(
    path: str | os.PathLike[str],
    *,
    watch: bool = False,
    copy: bool = False,
    interval: float = 1.0,
    warm_up: Iterable[Any] = (),
) -> "Index | LiveIndex":
    """Open a snapshot file, or the latest version of a `tamis.store.RuleStore` by its folder or URL.

    With `watch`, follow it: see `tamis.live.LiveIndex`. With `copy`, a file is read into memory.

    `interval` is how often a watched file is looked at, in seconds, and `warm_up` are events that a new
    snapshot is asked about before it takes over.

    >>> open("no-such-file.tamis")
    Traceback (most recent call last):
    ...
    FileNotFoundError: ...
    """
    if watch:
        live: LiveIndex = import_module("tamis.live").LiveIndex(path, interval=interval, warm_up=warm_up)
        return live
    index: Index
    if "://" in os.fspath(path) or os.path.isdir(path):
        index = import_module("tamis.store").RuleStore(path).open()
    else:
        index = import_module("tamis.index").Index.open(path, copy=copy)
    return index


_NAMES_OF_INDEX = frozenset({"ALGORITHMS", "Index", "Match", "RefusedRow", "Subscription"})


def __dir__() -> list[str]:
    """The public names, also those that are imported on first use."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


def __getattr__(name: str) -> Any:
    """Import the index on first use: it needs NumPy and pyarrow, and `tamis --help` does not."""
    if name in _NAMES_OF_INDEX:
        return getattr(import_module("tamis.index"), name)
    if name == "Flow":
        return import_module("tamis.flow").Flow
    if name == "Candidates":
        return import_module("tamis.rank").Candidates
    raise AttributeError(f"module 'tamis' has no attribute {name!r}")
