"""Relations between expressions, and how to make them smaller without losing a match.

The relations between two expressions are methods: `a.covers(b)`, `a.overlaps(b)`, `a.is_disjoint(b)`,
`a.prune(...)`, `a.merge(b)`. This module has the functions for many expressions at once, and those that
distinguish a proof from an unknown answer.

>>> import tamis
>>> pruned = tamis.relate.prune_many(
...     ["title = 'Emma' AND price < 15", "price < 9 AND signed"],
...     predicates=3,
...     selectivities={"price < 15": 0.9, "price < 9": 0.2},
... )
>>> [str(expression) for expression in pruned]
["title = 'Emma'", 'price < 9 AND signed']
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, Literal

from tamis import _kernel
from tamis._kernel import Expression
from tamis.errors import DuplicateIdError, UnknownIdError
from tamis.expr import Column

__all__ = [
    "PruningQueue",
    "Selectivities",
    "access_predicates",
    "decide_covers",
    "decide_overlaps",
    "example_of_overlap",
    "prune_many",
]

Measure = Literal["accuracy", "efficiency", "memory", "accuracy-occurrence", "accuracy-distance"]


class Selectivities:
    """How often predicates are true: given, or counted on sample events.

    Unknown ones are estimated from similar predicates, or from the kind of predicate. Picklable.

    >>> known = Selectivities({"price > 10": 0.8, "price > 20": 0.4})
    >>> round(known["price > 15"], 3)
    0.6
    """

    __slots__ = ("_kernel",)

    def __init__(self, known: "Mapping[Any, float] | Iterable[tuple[Any, float]]" = ()) -> None:
        """Take predicates, as text or as expressions, with the share of events that make them true."""
        pairs = known.items() if isinstance(known, Mapping) else known
        self._kernel = _kernel.Selectivities(list(pairs))

    @classmethod
    def from_events(
        cls, expressions: Iterable[Any], events: Any, *, intervals: Iterable[str] = ()
    ) -> "Selectivities":
        """Count on how many events each predicate of these expressions is true.

        `events` is an Arrow table or a list of events, as `Index.match_batch` takes them.

        >>> known = Selectivities.from_events(["age > 30 AND vip"], [{"age": 40}, {"age": 20, "vip": True}])
        >>> known["age > 30"], known["vip"]
        (0.5, 0.5)
        """
        made = cls.__new__(cls)
        made._kernel = _kernel.Selectivities.from_events(_column(expressions), events, list(intervals))
        return made

    def __getitem__(self, predicate: "str | Expression") -> float:
        """Return the share of events for which a predicate is true, known or estimated."""
        share = self._kernel.of(predicate)
        if share is None:
            raise KeyError(f"{predicate} is not one predicate")
        return share

    def __iter__(self) -> Iterator[tuple[str, float]]:
        """Iterate over the known predicates: the text of each and its share."""
        return iter(self._kernel.items())

    def __len__(self) -> int:
        """Return how many predicates are known."""
        return len(self._kernel)

    def __repr__(self) -> str:
        """A short description."""
        return f"<Selectivities of {len(self)} predicates>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the pairs."""
        return (Selectivities, (self._kernel.items(),))


Known = Selectivities | Mapping[Any, float] | None


def prune_many(
    expressions: Iterable[Any],
    *,
    steps: int | None = None,
    predicates: int | None = None,
    bytes: int | None = None,
    measure: Measure = "accuracy",
    selectivities: Known = None,
    to_true: bool = False,
) -> list[Expression]:
    """Generalise many expressions together, the globally best prunings first; keeps the order of results.

    Each result is true whenever its original is. Stops after this many `steps` in total, or when all together
    have at most this many `predicates` or `bytes` (5 for a predicate, 2 for an AND or OR). `expressions` is a
    list or an Arrow column of text. See `Expression.prune` for the rest.

    >>> [str(pruned) for pruned in prune_many(["a = 1 AND b = 2", "a = 1 OR b = 2"], bytes=0)]
    ['b = 2', 'a = 1 OR b = 2']
    >>> [str(pruned) for pruned in prune_many(["a = 1 AND b = 2", "a = 1 OR b = 2"], bytes=0, to_true=True)]
    ['TRUE', 'TRUE']
    """
    return _kernel.prune_many(
        _column(expressions), steps, predicates, bytes, measure, _known(selectivities), to_true
    )


def access_predicates(expressions: Iterable[Any], selectivities: Known = None) -> list[list[str]]:
    """For each expression, a few predicates; an event must satisfy one of them to satisfy the expression.

    They are chosen to be true as rarely as possible, as the production index chooses them. `['TRUE']` stands
    for every event, `[]` for an expression that is never true. Equal predicates are equal texts.

    >>> known = {"country = 'CA'": 0.1, "age > 30": 0.6, "vip": 0.05}
    >>> access_predicates(["age > 30 AND country = 'CA'", "vip OR country = 'CA' AND age > 9"], known)
    [["country = 'CA'"], ["country = 'CA'", 'vip']]
    """
    return _kernel.access_predicates(_column(expressions), _known(selectivities))


def decide_covers(
    covering: Expression | Column, covered: Expression | Column, *, budget: int | None = None
) -> bool | None:
    """`covering.covers(covered)`, with None if `budget` steps do not decide it, or patterns leave it open.

    >>> import tamis
    >>> decide_covers(tamis.parse("x RLIKE 'a+'"), tamis.parse("x RLIKE 'a{2}'")) is None
    True
    """
    return _kernel.decide_covers(covering, covered, budget)


def decide_overlaps(
    a: Expression | Column, b: Expression | Column, *, budget: int | None = None
) -> bool | None:
    """`a.overlaps(b)`, with None if `budget` steps do not decide it, or patterns leave it open.

    >>> import tamis
    >>> decide_overlaps(tamis.parse("x > 3"), tamis.parse("x < 4"))
    True
    """
    return _kernel.decide_overlaps(a, b, budget)


def example_of_overlap(
    a: Expression | Column, b: Expression | Column, *, budget: int | None = None
) -> dict[str, Any] | None:
    """Find an event that makes both true; None if none exists or none is found.

    Also None if a timestamp would have to be outside the years 0001 to 9999, which datetime does not support.

    >>> import tamis
    >>> example_of_overlap(tamis.parse("x >= 3 AND y = 'a'"), tamis.parse("x <= 3"))
    {'x': 3, 'y': 'a'}
    """
    return _kernel.example_of_overlap(a, b, budget)


class PruningQueue:
    """Expressions that are pruned together while they are added and removed.

    With `execution="restricted"`, an outdated rank is computed again before it is used.

    >>> queue = PruningQueue(selectivities={"b > 2": 0.5, "d > 3": 0.99})
    >>> queue.add("s1", "a = 1 AND b > 2")
    >>> queue.add("s2", "c = 1 AND d > 3")
    >>> queue.prune(steps=1)
    1
    >>> {id: str(queue[id]) for id in queue}
    {'s1': 'a = 1 AND b > 2', 's2': 'c = 1'}
    >>> queue.remove("s2")
    >>> queue.bytes
    12
    """

    def __init__(
        self,
        *,
        measure: Measure = "accuracy",
        selectivities: Known = None,
        execution: Literal["strict", "restricted"] = "strict",
        to_true: bool = False,
    ) -> None:
        """Set how to prune; see `Expression.prune`."""
        self._kernel = _kernel.PruningQueue(measure, _known(selectivities), execution, to_true)
        self._entries: dict[Hashable, int] = {}

    def add(self, id: Hashable, expression: "str | Expression", *, distance: int = 1) -> None:
        """Add an expression whose subscriber is this many hops away (for the measure "accuracy-distance").

        >>> queue = PruningQueue(measure="accuracy-distance")
        >>> queue.add("near", "a = 1 AND b > 2")
        >>> queue.add("far", "a = 1 AND b > 2", distance=4)
        >>> len(queue), "far" in queue
        (2, True)
        """
        if id in self._entries:
            raise DuplicateIdError(f"{id!r} is already in the queue")
        self._entries[id] = self._kernel.add(expression, distance)

    def remove(self, id: Hashable) -> None:
        """Remove an expression, however much it was pruned.

        >>> queue = PruningQueue()
        >>> queue.add("s1", "a = 1 AND b > 2")
        >>> queue.remove("s1")
        >>> list(queue)
        []
        """
        self._kernel.remove(self._entry(id))
        del self._entries[id]

    def prune(
        self, *, steps: int | None = None, predicates: int | None = None, bytes: int | None = None
    ) -> int:
        """Prune, the globally best first, and return how many prunings were done.

        It stops after this many `steps`, or when at most this many `predicates` or `bytes` are left.

        >>> queue = PruningQueue()
        >>> queue.add("s1", "a = 1 AND b = 2 AND c = 3")
        >>> queue.prune(predicates=1), queue.predicates
        (2, 1)
        """
        return self._kernel.prune(steps, predicates, bytes)

    def learn(self, selectivities: Known) -> None:
        """Replace the known selectivities of predicates.

        Existing expressions keep their ranks, unless the execution is "restricted".

        >>> known = {"a = 1": 0.1, "b = 2": 0.9}
        >>> queue = PruningQueue(selectivities=known, execution="restricted")
        >>> queue.add("s1", "a = 1 AND b = 2")
        >>> queue.learn({"a = 1": 0.9, "b = 2": 0.1})
        >>> queue.prune(steps=1), str(queue["s1"])
        (1, 'b = 2')
        """
        self._kernel.learn(_known(selectivities))

    def __getitem__(self, id: Hashable) -> Expression:
        """Return the current expression."""
        expression = self._kernel.expression(self._entry(id))
        assert expression is not None, "an entry lives as long as its id"
        return expression

    def __iter__(self) -> Iterator[Hashable]:
        """Iterate over the ids, in the order of their addition."""
        return iter(self._entries)

    def __len__(self) -> int:
        """Return how many expressions there are."""
        return len(self._entries)

    def __contains__(self, id: object) -> bool:
        """Whether there is an expression of that id."""
        return id in self._entries

    @property
    def bytes(self) -> int:
        """The bytes of all expressions: 5 for a predicate, 2 for an AND or OR.

        >>> queue = PruningQueue()
        >>> queue.add("s1", "a = 1 AND b = 2")
        >>> queue.bytes
        12
        """
        return self._kernel.bytes

    @property
    def predicates(self) -> int:
        """The predicates of all expressions, repeated ones included.

        >>> queue = PruningQueue()
        >>> queue.add("s1", "a = 1 OR a = 1 AND b = 2")
        >>> queue.predicates
        3
        """
        return self._kernel.predicates

    def _entry(self, id: Hashable) -> int:
        try:
            return self._entries[id]
        except KeyError:
            raise UnknownIdError(f"there is no expression {id!r} in the queue") from None


def _known(selectivities: Known) -> "_kernel.Selectivities | None":
    if selectivities is None:
        return None
    if not isinstance(selectivities, Selectivities):
        selectivities = Selectivities(selectivities)
    return selectivities._kernel


def _column(expressions: Iterable[Any]) -> Any:
    from tamis._columns import text_column  # noqa: PLC0415 - needs NumPy and pyarrow

    return text_column(expressions)
