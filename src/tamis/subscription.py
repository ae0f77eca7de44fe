"""A subscription: the expression that an index holds under an id, and its other data."""

from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, NamedTuple

from tamis._kernel import Expression
from tamis.expr import Column

Id = int | str
ExpressionLike = str | Expression | Column | dict[str, Any]
Moment = datetime | date | int


@dataclass(frozen=True)
class Subscription:
    """A subscription of an index.

    >>> from tamis import Index
    >>> index = Index()
    >>> index.add("ad-7", "age > 21", priority=3.5, tags=["q4"])
    >>> index["ad-7"].expression, index["ad-7"].priority, index["ad-7"].tags
    (tamis.parse('age > 21'), 3.5, ('q4',))
    """

    id: Id
    expression: Expression
    priority: float = 0.0
    weights: dict[str, float] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    payload: bytes | None = None
    expires: datetime | None = None
    owner: str | None = None
    starts: datetime | None = None


class RefusedRow(NamedTuple):
    """A row that `add_many` did not add: its number, its id if it has one, and what is wrong with it.

    >>> from tamis import Index
    >>> index = Index()
    >>> [bad] = index.add_many(["a", "b"], ["x > 1", "x >"], on_error="collect")
    >>> bad.row, bad.id, type(bad.error).__name__
    (1, 'b', 'ExpressionError')
    """

    row: int
    id: Id | None
    error: Exception
