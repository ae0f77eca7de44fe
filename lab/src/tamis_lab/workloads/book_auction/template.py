"""Expressions with holes: a tree of predicates, some of whose operands differ from one expression to the
next.

A class of subscriptions or advertisements (see `classes`) is one template. It knows the figures by which
Bittner 2008 describes a class: predicates, operators, conjunctions after translation to disjunctive normal
form, and the least number of predicates that a match fulfils.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, product

import pyarrow as pa

from tamis_lab.workloads.text import concat


@dataclass(frozen=True)
class Dollars:
    """A hole for a price between two bounds, to the cent."""

    low: int
    high: int

    @property
    def size(self) -> int:
        """How many prices there are.

        >>> Dollars(5, 10).size
        501
        """
        return 100 * (self.high - self.low) + 1


@dataclass(frozen=True)
class Name:
    """A hole for the value of an attribute whose values are names: a category, a title, an author."""

    attribute: str


Hole = Dollars | Name


class Template(ABC):
    """A predicate, or AND or OR of templates."""

    @property
    @abstractmethod
    def predicates(self) -> tuple["Predicate", ...]:
        """All predicates, in the order of the text."""

    @property
    @abstractmethod
    def operators(self) -> int:
        """How many times AND and OR occur, counting n children as one."""

    @property
    @abstractmethod
    def least_fulfilled(self) -> int:
        """How many predicates are true, at least, where the whole is true."""

    @abstractmethod
    def conjunctions(self) -> list[tuple["Predicate", ...]]:
        """The disjunctive normal form."""

    @abstractmethod
    def _pieces(self) -> Iterator["str | Hole"]:
        """The text, and the holes in it."""

    @property
    def holes(self) -> tuple[Hole, ...]:
        """What has to be filled in, in the order of the text."""
        return tuple(predicate.hole for predicate in self.predicates if predicate.hole)

    def text(self, operands: list[pa.Array]) -> pa.Array:
        """The expressions that have these operands: a column of literals for each hole.

        >>> from tamis_lab.workloads.text import texts
        >>> template = all_of(Predicate("title = ", Name("title")), Predicate("price < ", Dollars(5, 10)))
        >>> template.text([texts(["'Emma'"]), texts(["7.50"])]).to_pylist()
        ["title = 'Emma' AND price < 7.50"]
        """
        columns = iter(operands)
        return concat(*(piece if isinstance(piece, str) else next(columns) for piece in self._pieces()))


@dataclass(frozen=True)
class Predicate(Template):
    """A predicate: all of its text, or its text up to a hole."""

    start: str
    hole: Hole | None = None

    @property
    def predicates(self) -> tuple["Predicate", ...]:
        """Itself."""
        return (self,)

    @property
    def operators(self) -> int:
        """None."""
        return 0

    @property
    def least_fulfilled(self) -> int:
        """One."""
        return 1

    def conjunctions(self) -> list[tuple["Predicate", ...]]:
        """Itself."""
        return [(self,)]

    def _pieces(self) -> Iterator[str | Hole]:
        yield self.start
        if self.hole:
            yield self.hole


@dataclass(frozen=True)
class _Inner(Template):
    children: tuple[Template, ...]

    @property
    def predicates(self) -> tuple[Predicate, ...]:
        return tuple(chain.from_iterable(child.predicates for child in self.children))

    @property
    def operators(self) -> int:
        return 1 + sum(child.operators for child in self.children)

    def _joined(self, separator: str) -> Iterator[str | Hole]:
        for place, child in enumerate(self.children):
            if place:
                yield separator
            if isinstance(child, Predicate):
                yield from child._pieces()
            else:
                yield "("
                yield from child._pieces()
                yield ")"


class _And(_Inner):
    @property
    def least_fulfilled(self) -> int:
        return sum(child.least_fulfilled for child in self.children)

    def conjunctions(self) -> list[tuple[Predicate, ...]]:
        choices = product(*(child.conjunctions() for child in self.children))
        return [tuple(chain.from_iterable(choice)) for choice in choices]

    def _pieces(self) -> Iterator[str | Hole]:
        return self._joined(" AND ")


class _Or(_Inner):
    @property
    def least_fulfilled(self) -> int:
        return min(child.least_fulfilled for child in self.children)

    def conjunctions(self) -> list[tuple[Predicate, ...]]:
        return list(chain.from_iterable(child.conjunctions() for child in self.children))

    def _pieces(self) -> Iterator[str | Hole]:
        return self._joined(" OR ")


def all_of(*children: Template) -> Template:
    """AND of the children.

    >>> both = all_of(Predicate("a = 1"), Predicate("b = 2"))
    >>> both.operators, both.least_fulfilled, len(both.conjunctions())
    (1, 2, 1)
    """
    return _And(children)


def any_of(*children: Template) -> Template:
    """OR of the children.

    >>> either = any_of(Predicate("a = 1"), Predicate("b = 2"))
    >>> either.operators, either.least_fulfilled, len(either.conjunctions())
    (1, 1, 2)
    """
    return _Or(children)
