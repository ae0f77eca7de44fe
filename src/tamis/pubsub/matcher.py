"""Finds the expressions that an event satisfies, by event type. Small sets have no index.

An index pays off from a few dozen expressions on; most tables of most brokers are smaller. An event of a type
is matched with the expressions of that type and those of any type; an event without a type only with the
latter.
"""

from collections.abc import Iterator

from tamis._kernel import Event, Expression
from tamis.index import Index

INDEXED_FROM = 24


class Matcher:
    """Expressions by id, and for each event those that it satisfies.

    >>> import tamis
    >>> matcher = Matcher()
    >>> matcher.put("s1", tamis.parse("price < 15"), "book")
    >>> matcher.put("s2", tamis.parse("price < 10"), None)
    >>> matcher.match(tamis.Event({"price": 12}), "book"), matcher.exists(tamis.Event({"price": 5}), None)
    (['s1'], True)
    """

    def __init__(self, algorithm: str = "auto") -> None:
        """Make an empty one; the algorithm is one of `tamis.ALGORITHMS`."""
        self._algorithm = algorithm
        self._by_type: dict[str | None, _OneType] = {}
        self._types: dict[str, str | None] = {}

    def put(self, id: str, expression: Expression, type: str | None) -> None:
        """Add an expression, or replace the one with this id."""
        if id in self._types and self._types[id] != type:
            self.remove(id)
        self._types[id] = type
        self._by_type.setdefault(type, _OneType(self._algorithm)).put(id, expression)

    def remove(self, id: str) -> None:
        """Remove the expression with this id."""
        type = self._types.pop(id)
        self._by_type[type].remove(id)
        if not self._by_type[type].expressions:
            del self._by_type[type]

    def match(self, event: Event, type: str | None) -> list[str]:
        """The ids of all expressions that the event satisfies."""
        return [id for part in self._asked(type) for id in part.match(event)]

    def exists(self, event: Event, type: str | None) -> bool:
        """Whether the event satisfies any: the filtering shortcut, which stops at the first."""
        return any(part.exists(event) for part in self._asked(type))

    def __getitem__(self, id: str) -> Expression:
        """The expression with this id."""
        return self._by_type[self._types[id]].expressions[id]

    def __len__(self) -> int:
        """How many expressions there are."""
        return len(self._types)

    def __iter__(self) -> Iterator[str]:
        """The ids."""
        return iter(self._types)

    def __contains__(self, id: object) -> bool:
        """Whether there is an expression with this id."""
        return id in self._types

    @property
    def predicates(self) -> int:
        """The predicates of all expressions, repeated ones included."""
        return sum(
            expression.predicates
            for part in self._by_type.values()
            for expression in part.expressions.values()
        )

    def _asked(self, type: str | None) -> Iterator["_OneType"]:
        for asked in {type, None}:
            if (part := self._by_type.get(asked)) is not None:
                yield part


class _OneType:
    def __init__(self, algorithm: str) -> None:
        self._algorithm = algorithm
        self.expressions: dict[str, Expression] = {}
        self._index: Index | None = None

    def put(self, id: str, expression: Expression) -> None:
        self.expressions[id] = expression
        if self._index is not None:
            self._index.upsert(id, expression)
        elif len(self.expressions) >= INDEXED_FROM:
            self._index = Index(algorithm=self._algorithm)
            self._index.add_many(list(self.expressions), list(self.expressions.values()))

    def remove(self, id: str) -> None:
        del self.expressions[id]
        if self._index is not None:
            self._index.remove(id)

    def match(self, event: Event) -> list[str]:
        if self._index is not None:
            return self._index.match(event)
        return [id for id, expression in self.expressions.items() if is_true(expression, event)]

    def exists(self, event: Event) -> bool:
        if self._index is not None:
            return self._index.exists(event)
        return any(is_true(expression, event) for expression in self.expressions.values())


def is_true(expression: Expression, event: Event) -> bool:
    """Whether an event, or some point of an interval event, makes an expression true.

    >>> import tamis
    >>> is_true(tamis.parse("x > 3"), tamis.Event({"x": tamis.Interval(2, 4)}))
    True
    """
    return expression.evaluate(event) in (True, "either")
