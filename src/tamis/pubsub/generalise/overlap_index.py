"""Finds which of many expressions overlap a given one, for both directions of advertisement routing.

For a new subscription, the question is whether *some* advertisement of a neighbour overlaps it (the decision
problem); for a new advertisement, *which* subscriptions overlap it (the function problem). Bittner (2008,
section 7.2):

1. For each alternative of the given expression (a term of its disjunctive form), find the registered
   predicates that cannot be true together with one of the alternative's.
2. An expression with t predicates, d of them disjoint, of which at least m must be true is a candidate if
   t >= d + m.
3. A candidate overlaps if its tree is true with the disjoint predicates false and all others true. If all
   predicates must be true (m = t, a conjunction), being a candidate is enough.

This never misses an overlap but may report false ones, because it compares predicates in pairs. With the
method "exact", each reported overlap is then decided.

Expressions are kept in blocks, each with its predicates sorted by attribute. Numbers and strings are compared
a whole block at a time, other predicates one by one. New expressions are compared one by one until there are
enough for a block.
"""

import math
from collections.abc import Iterator
from itertools import product
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tamis._kernel import Expression
from tamis.pubsub.generalise import trees
from tamis.pubsub.generalise.trees import Tree

BLOCK = 512
MOST_ALTERNATIVES = 64
LARGEST = 2.0**53
"""Up to here a float is what it says."""

Bits = npt.NDArray[np.bool_]


class OverlapIndex:
    """Expressions by id, and for each asking expression those that overlap it.

    >>> import tamis
    >>> index = OverlapIndex()
    >>> index.put("a1", tamis.parse("title = 'Emma' AND price > 14"))
    >>> index.put("a2", tamis.parse("price > 3"))
    >>> index.overlapping(tamis.parse("title = 'Emma' AND price < 15")), index.any(tamis.parse("price < 2"))
    (['a1', 'a2'], None)
    """

    def __init__(self, method: Literal["exact", "pairs"] = "exact", block: int = BLOCK) -> None:
        """Say how sure it should be, and how many expressions a block has."""
        self._method = method
        self._block = block
        self._known: dict[str, tuple[Expression, str | None]] = {}
        self._blocks: list[_Block] = []
        self._block_of: dict[str, _Block] = {}
        self._waiting: dict[str, None] = {}
        self.increments = 0
        """Counters that were incremented for disjoint predicates so far."""
        self.tests = 0
        """Trees that were evaluated so far, and pairs that were compared one by one."""

    def put(self, id: str, expression: Expression, type: str | None = None) -> None:
        """Add an expression, or replace the one with this id."""
        if id in self._known:
            self.remove(id)
        self._known[id] = (expression, type)
        self._waiting[id] = None
        if len(self._waiting) >= self._block:
            self._fill_block()

    def remove(self, id: str) -> None:
        """Remove the expression with this id."""
        del self._known[id]
        if id in self._waiting:
            del self._waiting[id]
            return
        block = self._block_of.pop(id)
        block.remove(id)
        if 2 * block.living < len(block.ids):
            self._blocks.remove(block)
            for left in block.living_ids():
                del self._block_of[left]
                self._waiting[left] = None

    def overlapping(self, expression: Expression, type: str | None = None) -> list[str]:
        """All ids whose expressions overlap this one: the function problem."""
        return [
            id for group in self._reported(expression, type) for id in group if self._holds(id, expression)
        ]

    def any(self, expression: Expression, type: str | None = None) -> str | None:
        """One id whose expression overlaps this one, or None: the decision problem."""
        found = (
            id for group in self._reported(expression, type) for id in group if self._holds(id, expression)
        )
        return next(found, None)

    def __len__(self) -> int:
        """How many expressions there are."""
        return len(self._known)

    def __contains__(self, id: object) -> bool:
        """Whether there is an expression with this id."""
        return id in self._known

    def _holds(self, id: str, expression: Expression) -> bool:
        return self._method == "pairs" or self._known[id][0].overlaps(expression)

    def _reported(self, expression: Expression, type: str | None) -> Iterator[list[str]]:
        """What the published test reports, block by block, so that whoever needs one can stop."""
        asking = _Asking.of(expression)
        for block in self._blocks:
            if asking is None:
                yield [id for id in block.living_ids() if self._one_by_one(id, expression, type)]
            else:
                found, increments, tests = block.overlapping(asking)
                self.increments += increments
                self.tests += tests
                yield [id for id in found if types_meet(self._known[id][1], type)]
        yield [id for id in self._waiting if self._one_by_one(id, expression, type)]

    def _one_by_one(self, id: str, expression: Expression, type: str | None) -> bool:
        known, known_type = self._known[id]
        self.tests += 1
        return types_meet(known_type, type) and known.overlaps(expression, method="pairs")

    def _fill_block(self) -> None:
        plain = {id: trees.tree_of(self._known[id][0]) for id in self._waiting}
        indexed = {id: tree for id, tree in plain.items() if _has_only_predicates(tree)}
        if len(indexed) < self._block // 2:
            self._block += BLOCK  # mostly expressions that no block can hold: wait for more
            return
        block = _Block(indexed)
        self._blocks.append(block)
        for id in indexed:
            self._block_of[id] = block
            del self._waiting[id]


class _Asking:
    """An asking expression: its different predicates, and its alternatives as sets of them."""

    def __init__(self, predicates: list[Tree], alternatives: list[frozenset[int]]) -> None:
        self.predicates = predicates
        self.alternatives = alternatives

    @classmethod
    def of(cls, expression: Expression) -> "_Asking | None":
        tree = trees.tree_of(expression)
        if not _has_only_predicates(tree):
            return None
        places: dict[str, int] = {}
        predicates: list[Tree] = []

        def alternatives(tree: Tree) -> list[frozenset[int]]:
            kind, children = trees.joint(tree)
            if kind is None:
                place = places.setdefault(repr(tree), len(places))
                if place == len(predicates):
                    predicates.append(tree)
                return [frozenset([place])]
            below = [alternatives(child) for child in children]
            if kind == "or":
                return [one for child in below for one in child]
            if math.prod(len(child) for child in below) > MOST_ALTERNATIVES:
                raise OverflowError
            return [frozenset().union(*chosen) for chosen in product(*below)]

        try:
            found = alternatives(tree)
        except OverflowError:
            return None
        return cls(predicates, list(dict.fromkeys(found)))


class _Block:
    """Some expressions, laid out for questions to all of them at once."""

    def __init__(self, by_id: dict[str, Tree]) -> None:
        self.ids = list(by_id)
        self._place = {id: place for place, id in enumerate(self.ids)}
        self._alive = np.ones(len(self.ids), dtype=bool)
        self.living = len(self.ids)
        predicates: dict[str, int] = {}
        by_attribute: dict[str, list[tuple[int, Tree]]] = {}
        uses: list[int] = []
        owners: list[int] = []
        layout = _Layout()
        for owner, tree in enumerate(by_id.values()):
            for leaf in trees.leaves(tree):
                key = repr(leaf)
                if key not in predicates:
                    predicates[key] = len(predicates)
                    by_attribute.setdefault(leaf["attribute"], []).append((predicates[key], leaf))
                uses.append(predicates[key])
                owners.append(owner)
            layout.add(tree)
        self._predicates = len(predicates)
        self._attributes = {name: _Attribute(known) for name, known in by_attribute.items()}
        self._uses = np.array(uses)
        self._owners = np.array(owners)
        self._evaluate = layout.finish(len(uses))
        self._total = np.bincount(self._owners, minlength=len(self.ids))
        self._least = np.array([trees.least_true(tree) for tree in by_id.values()])

    def remove(self, id: str) -> None:
        self._alive[self._place[id]] = False
        self.living -= 1

    def living_ids(self) -> list[str]:
        return [id for id, alive in zip(self.ids, self._alive, strict=True) if alive]

    def overlapping(self, asking: _Asking) -> tuple[list[str], int, int]:
        """The ids that the published test reports; how many counters and trees that took."""
        masks = [self._disjoint(predicate) for predicate in asking.predicates]
        found = np.zeros(len(self.ids), dtype=bool)
        increments = tests = 0
        for alternative in asking.alternatives:
            disjoint = np.zeros(self._predicates, dtype=bool)
            for place in alternative:
                if (mask := masks[place]) is not None:
                    disjoint[mask[0]] |= mask[1]
            is_out = disjoint[self._uses]
            hits = np.bincount(self._owners[is_out], minlength=len(self.ids))
            increments += int(is_out.sum())
            candidates = self._alive & ~found & (self._total >= hits + self._least)
            conjunctions = candidates & (self._least == self._total)
            others = candidates & ~conjunctions
            found |= conjunctions
            if others.any():
                tests += int(others.sum())
                found |= others & self._evaluate(~is_out)
        return [self.ids[place] for place in np.flatnonzero(found)], increments, tests

    def _disjoint(self, predicate: Tree) -> tuple[npt.NDArray[np.int64], Bits] | None:
        attribute = self._attributes.get(predicate["attribute"])
        return None if attribute is None else (attribute.predicates, attribute.disjoint(predicate))


class _Attribute:
    """The predicates of one attribute: intervals of numbers, single strings, and all others."""

    def __init__(self, known: list[tuple[int, Tree]]) -> None:
        self.predicates = np.array([number for number, _ in known])
        intervals = [(at, _interval(leaf)) for at, (_, leaf) in enumerate(known)]
        self._numbers = np.array([at for at, interval in intervals if interval is not None], dtype=int)
        ends = np.array([interval for _, interval in intervals if interval is not None], dtype=float)
        self._low, self._low_open, self._high, self._high_open = ends.reshape(-1, 4).T
        strings = [(at, _string(leaf)) for at, (_, leaf) in enumerate(known)]
        self._strings = np.array([at for at, value in strings if value is not None], dtype=int)
        self._string_values = np.array([value for _, value in strings if value is not None], dtype=object)
        self._all = [trees.expression_of(leaf) for _, leaf in known]

    def disjoint(self, leaf: Tree) -> Bits:
        found = np.zeros(len(self._all), dtype=bool)
        interval, string = _interval(leaf), _string(leaf)
        left = np.ones(len(self._all), dtype=bool)
        if interval is not None and len(self._numbers):
            low, low_open, high, high_open = interval
            apart = (self._low > high) | ((self._low == high) & ((self._low_open + high_open) > 0))
            apart |= (low > self._high) | ((low == self._high) & ((self._high_open + low_open) > 0))
            found[self._numbers] = apart
            left[self._numbers] = False
        elif string is not None and len(self._strings):
            found[self._strings] = self._string_values != string
            left[self._strings] = False
        if left.any():
            asking = trees.expression_of(leaf)
            for place in np.flatnonzero(left):
                found[place] = asking.is_disjoint(self._all[place])
        return found


class _Layout:
    """The trees of a block, with their nodes by height, so that each height is evaluated in one go."""

    def __init__(self) -> None:
        self._leaves = 0
        self._inner = 0
        self._roots: list[tuple[bool, int]] = []
        self._by_height: dict[tuple[int, str], list[tuple[int, list[tuple[bool, int]]]]] = {}

    def add(self, tree: Tree) -> None:
        self._roots.append(self._place(tree)[0])

    def finish(self, leaves: int) -> Any:
        """A function from the values of all leaves to those of all roots."""

        def at(node: tuple[bool, int]) -> int:
            is_leaf, number = node
            return number if is_leaf else leaves + number

        steps = []
        for (_, kind), nodes in sorted(self._by_height.items()):
            children = np.array([at(child) for _, below in nodes for child in below])
            starts = np.cumsum([0] + [len(below) for _, below in nodes[:-1]])
            targets = np.array([leaves + number for number, _ in nodes])
            steps.append((np.logical_and if kind == "and" else np.logical_or, children, starts, targets))
        roots = np.array([at(root) for root in self._roots])
        size = leaves + self._inner

        def evaluate(values: Bits) -> Bits:
            nodes = np.empty(size, dtype=bool)
            nodes[:leaves] = values
            for combine, children, starts, targets in steps:
                nodes[targets] = combine.reduceat(nodes[children], starts)
            found: Bits = nodes[roots]
            return found

        return evaluate

    def _place(self, tree: Tree) -> tuple[tuple[bool, int], int]:
        """The node, as whether it is a leaf and its number; and its height."""
        kind, children = trees.joint(tree)
        if kind is None:
            self._leaves += 1
            return (True, self._leaves - 1), 0
        below = [self._place(child) for child in children]
        height = 1 + max(one for _, one in below)
        number, self._inner = self._inner, self._inner + 1
        self._by_height.setdefault((height, kind), []).append((number, [node for node, _ in below]))
        return (False, number), height


def _has_only_predicates(tree: Tree) -> bool:
    return all(isinstance(leaf, dict) and "attribute" in leaf for leaf in trees.leaves(tree))


def _interval(leaf: Tree) -> tuple[float, int, float, int] | None:
    """The numbers that a comparison allows: low, whether it is open, high, whether it is open."""
    operands = leaf.get("operands", ())
    if leaf.get("negated") or not operands or not all(_is_exact(operand) for operand in operands):
        return None
    first = float(operands[0])
    match leaf["operator"], len(operands):
        case "=", 1:
            return first, 0, first, 0
        case "<", 1:
            return -np.inf, 1, first, 1
        case "<=", 1:
            return -np.inf, 1, first, 0
        case ">", 1:
            return first, 1, np.inf, 1
        case ">=", 1:
            return first, 0, np.inf, 1
        case "BETWEEN", 2 if first <= operands[1]:
            return first, 0, float(operands[1]), 0
    return None


def _is_exact(operand: object) -> bool:
    return isinstance(operand, (int, float)) and not isinstance(operand, bool) and abs(operand) <= LARGEST


def _string(leaf: Tree) -> str | None:
    operands = leaf.get("operands", ())
    if leaf.get("operator") == "=" and not leaf.get("negated") and len(operands) == 1:
        return operands[0] if isinstance(operands[0], str) else None
    return None


def types_meet(a: str | None, b: str | None) -> bool:
    """Whether an event can be of both types; None stands for any.

    >>> types_meet("book", None), types_meet("book", "car")
    (True, False)
    """
    return a is None or b is None or a == b
