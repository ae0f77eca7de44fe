"""Expressions as trees of numbered literals, for counting what algorithms would do with them.

A *literal* is a predicate or its negation; equal ones have one number in all expressions. What is left of an
expression are AND and OR: negations are pushed down, XOR and XNOR are written out, an AND in an AND is one.
"""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tamis._kernel import Expression
from tamis.index import Index
from tamis_lab.workloads.base import EventDict

Tree = int | tuple[str, tuple["Tree", ...]]
"""The number of a literal, or `and` or `or` with its children."""

Truth = np.ndarray[tuple[int], np.dtype[np.bool_]]
"""For each literal, whether an event makes it true."""

NEGATED = {"!=": "=", "<>": "="}
INTERVAL_RANK = 2
RANKS = {"=": 0, "<=>": 0, "IN": 1, "array_contains": 1, "arrays_overlap": 1, "BETWEEN": INTERVAL_RANK}
RANKS |= {"<": 3, "<=": 3, ">": 3, ">=": 3}
RANK_OF_OTHERS, RANK_OF_NEGATIONS = 4, 5


@dataclass
class Literals:
    """All literals that some expressions have, each once.

    >>> literals = Literals()
    >>> literals.tree("a = 1 AND NOT (b = 2 OR a = 1)")
    ('and', (0, 1, 2))
    >>> literals.truth([{"a": 1, "b": 3}])[0].tolist()
    [True, True, False]
    """

    numbers: dict[tuple[str, str, str, bool], int] = field(default_factory=dict)
    """By attribute, operator, operands, and whether it is negated."""
    expressions: list[Expression] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)
    """How good each is at ruling conjunctions out, by its operator alone: 0 is best."""

    def tree(self, expression: str | Expression) -> Tree:
        """The tree of an expression; literals not seen before get the next numbers."""
        parsed = Expression.parse(expression) if isinstance(expression, str) else expression
        return self._tree(json.loads(parsed.to_json()), False)

    def truth(self, events: Iterable[EventDict]) -> list[Truth]:
        """Which literals each event satisfies, found by an index of the literals."""
        index = Index(optimize="manual")
        index.add_many(list(range(len(self.expressions))), self.expressions)
        found = []
        for event in events:
            holds = np.zeros(len(self.expressions), dtype=np.bool_)
            holds[index.match(event)] = True
            found.append(holds)
        return found

    def rarities(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """How often, in proportion, to expect what no event of a sample satisfied.

        An equality is the rarer, the more values its attribute is compared with.

        >>> literals = Literals()
        >>> literals.tree("a = 1 OR a = 2 OR b < 3")
        ('or', (0, 1, 2))
        >>> literals.rarities().tolist()
        [0.25, 0.25, 0.5]
        """
        values = Counter(attribute for (attribute, *_), rank in self._ranked() if rank == 0)
        return np.array([0.5 / values[key[0]] if rank == 0 else 0.5 for key, rank in self._ranked()])

    def _ranked(self) -> Iterable[tuple[tuple[str, str, str, bool], int]]:
        return zip(self.numbers, self.ranks, strict=True)

    def _tree(self, node: Any, negated: bool) -> Tree:
        if isinstance(node, bool):
            return ("and", ()) if node != negated else ("or", ())
        if "attribute" in node:
            return self._literal(node, negated)
        operator, children = next((name, inside) for name, inside in node.items() if name != "boost")
        if operator not in ("not", "and", "or", "xor", "xnor"):
            raise ValueError(f"the cost models know predicates, AND, OR, NOT, XOR and XNOR, not {operator}")
        if operator == "not":
            return self._tree(children, not negated)
        if operator in ("and", "or"):
            joined = {"and": "or", "or": "and"}[operator] if negated else operator
            return join(joined, [self._tree(child, negated) for child in children])
        return self._different(children, (operator == "xor") != negated)

    def _literal(self, predicate: dict[str, Any], negated: bool) -> int:
        operator = predicate["operator"]
        negated ^= predicate.get("negated", False)
        if operator in NEGATED:
            operator, negated = NEGATED[operator], not negated
        key = (predicate["attribute"], operator, repr(predicate["operands"]), negated)
        number = self.numbers.setdefault(key, len(self.expressions))
        if number == len(self.expressions):
            plain = {"attribute": key[0], "operator": operator, "operands": predicate["operands"]}
            self.expressions.append(Expression.from_json(json.dumps({"not": plain} if negated else plain)))
            self.ranks.append(RANK_OF_NEGATIONS if negated else RANKS.get(operator, RANK_OF_OTHERS))
        return number

    def _different(self, children: list[Any], wanted: bool) -> Tree:
        yes, no = (self._tree(children[0], negated) for negated in (False, True))
        for child in children[1:]:
            true, false = (self._tree(child, negated) for negated in (False, True))
            yes, no = (
                join("or", [join("and", [yes, false]), join("and", [no, true])]),
                join("or", [join("and", [yes, true]), join("and", [no, false])]),
            )
        return yes if wanted else no


def join(operator: str, children: Iterable[Tree]) -> Tree:
    """AND or OR of some trees, without repetitions, and one with the children that have the same operator.

    >>> join("and", [1, ("and", (2, 3)), 1]), join("or", [4])
    (('and', (1, 2, 3)), 4)
    """
    flat: dict[Tree, None] = {}
    for child in children:
        inside = child[1] if isinstance(child, tuple) and child[0] == operator else (child,)
        flat |= dict.fromkeys(inside)
    return next(iter(flat)) if len(flat) == 1 else (operator, tuple(flat))


def leaves(tree: Tree) -> list[int]:
    """The literals of a tree, as often as it has them.

    >>> leaves(("and", (1, ("or", (2, 1)))))
    [1, 2, 1]
    """
    if isinstance(tree, int):
        return [tree]
    return [leaf for child in tree[1] for leaf in leaves(child)]


def is_conjunction(tree: Tree) -> bool:
    """Whether the tree is an AND of literals.

    >>> is_conjunction(("and", (1, 2))), is_conjunction(("or", (1, 2))), is_conjunction(1)
    (True, False, False)
    """
    return not isinstance(tree, int) and tree[0] == "and" and all(isinstance(one, int) for one in tree[1])


def minimum(tree: Tree) -> int:
    """The least number of true literals with which the tree can be true.

    >>> minimum(("and", (1, ("or", (2, ("and", (3, 4)))))))
    2
    """
    if isinstance(tree, int):
        return 1
    of_children = [minimum(child) for child in tree[1]]
    return sum(of_children) if tree[0] == "and" else min(of_children, default=1)


def conjunctions(tree: Tree) -> int:
    """How many conjunctions the disjunctive normal form has, without making it.

    >>> conjunctions(("and", (("or", (1, 2)), ("or", (3, 4)))))
    4
    """
    if isinstance(tree, int):
        return 1
    product, total = 1, 0
    for child in tree[1]:
        count = conjunctions(child)
        product *= count
        total += count
    return product if tree[0] == "and" else total


def translate(tree: Tree) -> list[tuple[int, ...]]:
    """The disjunctive normal form: different conjunctions of different literals, in ascending order.

    >>> translate(("and", (1, ("or", (2, 3)))))
    [(1, 2), (1, 3)]
    """
    return list(dict.fromkeys(tuple(sorted(choice)) for choice in _choices(tree)))


def _choices(tree: Tree) -> list[frozenset[int]]:
    if isinstance(tree, int):
        return [frozenset((tree,))]
    parts = [_choices(child) for child in tree[1]]
    if tree[0] == "or":
        return [choice for part in parts for choice in part]
    found = [frozenset[int]()]
    for part in parts:
        found = [left | right for left in found for right in part]
    return found


def tests(tree: Tree, holds: bytes) -> tuple[bool, int]:
    """Whether the tree is true, and how many literals were looked at until that was clear.

    >>> tests(("and", (0, ("or", (1, 2)))), np.array([True, False, True]).tobytes())
    (True, 3)
    """
    if isinstance(tree, int):
        return holds[tree] == 1, 1
    decides = tree[0] == "or"
    looked = 0
    for child in tree[1]:
        value, more = tests(child, holds)
        looked += more
        if value == decides:
            return decides, looked
    return not decides, looked
