"""Pruning by several criteria at once, each with a weight.

Bittner (2008, section 6.4.7) leaves the combination of criteria as future work. Here the rank of a pruning is
a weighted sum of its costs, each about 0 to 1, smaller first:

    accuracy    how much more often the expression becomes true, at least, on average or at most;
                times (occurrence before / after) ^ `occurrence`, and divided by distance ^ `distance`
    efficiency  the share of the original's predicates that must be true which no longer must
    memory      the share of its present bytes that the pruning leaves

Ties go to accuracy, then efficiency, then memory. With all the weight on one of them, the order is that of
the measure of that name, except that prunings by memory are not limited to the leaves here.
"""

import heapq
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import reduce

from tamis._kernel import Expression
from tamis.errors import DuplicateIdError, UnknownIdError
from tamis.pubsub.generalise import trees
from tamis.pubsub.generalise.trees import Tree
from tamis.relate import Selectivities

Triple = tuple[float, float, float]
Rank = tuple[float, float, float, int]


@dataclass(frozen=True)
class Weights:
    """How much each criterion counts."""

    accuracy: float = 1.0
    efficiency: float = 0.05
    memory: float = 0.05
    occurrence: float = 1.0
    """An exponent: 0 leaves out how common predicates are."""
    distance: float = 0.0
    """An exponent: 0 leaves out how far away subscribers are."""


@dataclass
class _Entry:
    tree: Tree
    original: Triple
    original_least: int
    distance: int
    version: int = 0
    best: Tree | None = None


class CombinedQueue:
    """Expressions that are pruned together; the face of `tamis.relate.PruningQueue`.

    >>> queue = CombinedQueue(Weights(occurrence=0.0), Selectivities({"b > 2": 0.5, "d > 3": 0.99}))
    >>> queue.add("s1", "a = 1 AND b > 2")
    >>> queue.add("s2", "c = 1 AND d > 3")
    >>> queue.prune(predicates=3)
    1
    >>> {id: str(queue[id]) for id in queue}
    {'s1': 'a = 1 AND b > 2', 's2': 'c = 1'}
    """

    def __init__(self, weights: Weights | None = None, selectivities: Selectivities | None = None) -> None:
        """Start with nothing."""
        self._weights = weights or Weights()
        self._known = selectivities or Selectivities()
        self._shares: dict[str, float] = {}
        self._uses: dict[str, int] = {}
        self._predicates = 0
        self._entries: dict[Hashable, _Entry] = {}
        self._queue: list[tuple[Rank, int, int, Hashable]] = []
        self._pushed = 0
        self._is_ranked = True

    def add(self, id: Hashable, expression: "str | Expression", *, distance: int = 1) -> None:
        """Add an expression whose subscriber is so many hops away."""
        if id in self._entries:
            raise DuplicateIdError(f"{id!r} is already in the queue")
        if isinstance(expression, str):
            expression = Expression.parse(expression)
        tree = trees.tree_of(expression)
        self._count(tree, 1)
        self._entries[id] = _Entry(tree, self._estimate(tree), trees.least_true(tree), max(1, distance))
        self._is_ranked = False

    def remove(self, id: Hashable) -> None:
        """Take an expression out, however much it was pruned."""
        self._count(self._entry(id).tree, -1)
        del self._entries[id]

    def learn(self, selectivities: Selectivities | None) -> None:
        """Replace what is known of how often predicates are true."""
        self._known = selectivities or Selectivities()
        self._shares.clear()
        self._is_ranked = False

    def prune(self, *, predicates: int) -> int:
        """Prune, the globally best first, until at most so many predicates are left; returns how often."""
        if not self._is_ranked:
            self._queue.clear()
            for id in self._entries:
                self._rank(id)
            self._is_ranked = True
        done = 0
        while self.predicates > predicates and self._queue:
            _, _, version, id = heapq.heappop(self._queue)
            entry = self._entries.get(id)
            if entry is None or entry.version != version or entry.best is None:
                continue
            self._count(entry.tree, -1)
            entry.tree = entry.best
            self._count(entry.tree, 1)
            self._rank(id)
            done += 1
        return done

    @property
    def predicates(self) -> int:
        """The predicates of all expressions, repeated ones included."""
        return self._predicates

    def __getitem__(self, id: Hashable) -> Expression:
        """Return the expression as it is now."""
        return trees.expression_of(self._entry(id).tree)

    def __iter__(self) -> Iterator[Hashable]:
        """Go through the ids, in the order of their addition."""
        return iter(self._entries)

    def _entry(self, id: Hashable) -> _Entry:
        try:
            return self._entries[id]
        except KeyError:
            raise UnknownIdError(f"there is no expression {id!r} in the queue") from None

    def _rank(self, id: Hashable) -> None:
        entry = self._entries[id]
        entry.version += 1
        ranked = [(self._rank_of(entry, left), left) for left in map(trees.flat, trees.prunings(entry.tree))]
        rank, entry.best = min(ranked, key=lambda one: one[0], default=(None, None))
        if rank is not None:
            self._pushed += 1
            heapq.heappush(self._queue, (rank, self._pushed, entry.version, id))

    def _rank_of(self, entry: _Entry, left: Tree) -> Rank:
        weights = self._weights
        after = self._estimate(left)
        accuracy = max(now - once for now, once in zip(after, entry.original, strict=True))
        efficiency = (entry.original_least - trees.least_true(left)) / entry.original_least
        before_bytes, bytes_left = trees.bytes_of(entry.tree), trees.bytes_of(left)
        common = (self._occurrence(entry.tree) / max(1, self._occurrence(left))) ** weights.occurrence
        cost = (
            weights.accuracy * accuracy * common / entry.distance**weights.distance
            + weights.efficiency * efficiency
            + weights.memory * bytes_left / before_bytes
        )
        return round(cost, 12), round(accuracy, 12), efficiency, bytes_left - before_bytes

    def _estimate(self, tree: Tree) -> Triple:
        kind, children = trees.joint(tree)
        if kind is None:
            share = self._share(tree)
            return share, share, share
        parts = [self._estimate(child) for child in children]
        if kind == "and":
            least = max(0.0, sum(low for low, _, _ in parts) - (len(parts) - 1))
            average = reduce(lambda so_far, part: so_far * part[1], parts, 1.0)
            return least, average, min(high for _, _, high in parts)
        average = 1 - reduce(lambda so_far, part: so_far * (1 - part[1]), parts, 1.0)
        return max(low for low, _, _ in parts), average, min(1.0, sum(high for _, _, high in parts))

    def _share(self, leaf: Tree) -> float:
        key = repr(leaf)
        if key not in self._shares:
            try:
                self._shares[key] = self._known[trees.expression_of(leaf)]
            except KeyError:
                self._shares[key] = 0.5  # no single predicate: nothing is known of it
        return self._shares[key]

    def _occurrence(self, tree: Tree) -> int:
        return sum(self._uses.get(repr(leaf), 0) for leaf in trees.leaves(tree))

    def _count(self, tree: Tree, by: int) -> None:
        for leaf in trees.leaves(tree):
            self._predicates += by
            key = repr(leaf)
            self._uses[key] = self._uses.get(key, 0) + by
            if not self._uses[key]:
                del self._uses[key]
