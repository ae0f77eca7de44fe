"""Advertisement pruning: smaller advertisements, at the cost of some additional overlap.

The operation is that of subscription pruning, the removal of a child of an AND. The measure differs, because
it should preserve which *subscriptions* an advertisement overlaps (Bittner 2008, section 7.3). A predicate of
an advertisement is valuable if it excludes predicates that many subscriptions use and few events satisfy. Its
worth (*overlapping characteristic*) is summed up the tree as a triple (least, average, most), and the pruning
that loses the smallest share of the original triple comes first.

If a denominator is 0, nothing is lost; ties go to the pruning that frees more bytes. Zero-valued children of
an OR count, as in the published algorithm.
"""

import heapq
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import tamis
from tamis._kernel import Expression
from tamis.pubsub.entry import Entry
from tamis.pubsub.generalise import trees
from tamis.pubsub.generalise.trees import Tree

Triple = tuple[float, float, float]


class Worth:
    """How much each predicate of an advertisement excludes, judged by the registered subscriptions.

    `hits` is how many events have satisfied a predicate.

    >>> worth = Worth([tamis.parse("title = 'Emma' AND price < 12")], {"price < 12": 3})
    >>> worth.of(tamis.parse("price > 14")), worth.of(tamis.parse("price > 4"))
    (0.25, 0.0)
    """

    def __init__(self, subscriptions: Iterable[Expression], hits: Mapping[str, float]) -> None:
        """Count how often each predicate is used."""
        uses: dict[str, int] = {}
        for expression in subscriptions:
            for leaf in trees.leaves(trees.tree_of(expression)):
                text = str(trees.expression_of(leaf))
                uses[text] = uses.get(text, 0) + 1
        self._total = sum(uses.values())
        self._known = [
            (tamis.parse(text), count / math.sqrt(hits.get(text, 0) + 1)) for text, count in uses.items()
        ]
        self._cache: dict[str, float] = {}

    def of(self, predicate: Expression) -> float:
        """The worth of one predicate, from 0 to 1."""
        text = str(predicate)
        if text not in self._cache:
            excluded = sum(weight for known, weight in self._known if predicate.is_disjoint(known))
            self._cache[text] = excluded / self._total if self._total else 0.0
        return self._cache[text]


@dataclass(frozen=True)
class Pruning:
    """One valid pruning of an advertisement: what is left, what it loses, and how many bytes it frees."""

    left: Expression
    loss: float
    freed: int


def prunings(
    expression: Expression, original: Expression, worth: Callable[[Expression], float]
) -> list[Pruning]:
    """All valid prunings of an advertisement, best first; the loss is against the original.

    >>> sold = tamis.parse("title = 'Emma' AND price > 14")
    >>> best = prunings(sold, sold, Worth([tamis.parse("price < 12")], {}).of)[0]
    >>> str(best.left), best.loss
    ('price > 14', 0.0)
    """
    tree = trees.tree_of(expression)
    before = _triple(trees.tree_of(original), worth)
    size = trees.bytes_of(tree)
    found = []
    for left in map(trees.flat, trees.prunings(tree)):
        loss = _loss(before, _triple(left, worth))
        found.append(Pruning(trees.expression_of(left), loss, size - trees.bytes_of(left)))
    return sorted(found, key=lambda pruning: (pruning.loss, -pruning.freed, str(pruning.left)))


class AdvertisementPruner:
    """Prunes many advertisements together, the globally best prunings first.

    >>> pruner = AdvertisementPruner()
    >>> pruner.originals["a1"] = Entry("a1", tamis.parse("title = 'Emma' AND price > 14"), None)
    >>> pruner.prune(1, Worth([tamis.parse("price < 12")], {}).of)
    {'a1': tamis.parse('price > 14')}
    """

    def __init__(self) -> None:
        """Start with nothing."""
        self.originals: dict[str, Entry] = {}
        self.current: dict[str, Expression] = {}
        self.done = 0
        """How many prunings were done so far."""

    def prune(self, steps: int, worth: Callable[[Expression], float]) -> dict[str, Expression]:
        """Do so many prunings; returns the new form of each advertisement that changed."""
        changed: dict[str, Expression] = {}
        queue: list[tuple[float, int, str, Expression]] = []

        def rank(id: str) -> None:
            original = self.originals[id].expression
            for best in prunings(self.current.get(id, original), original, worth)[:1]:
                heapq.heappush(queue, (best.loss, -best.freed, id, best.left))

        for id in self.originals if steps > 0 else ():
            rank(id)
        for _ in range(steps):
            if not queue:
                break
            _, _, id, left = heapq.heappop(queue)
            changed[id] = self.current[id] = left
            self.done += 1
            rank(id)
        return changed


def overlapping_characteristic(expression: Expression, worth: Callable[[Expression], float]) -> Triple:
    """The triple (least, average, most) of what an advertisement excludes.

    >>> overlapping_characteristic(tamis.parse("a = 1 AND b = 2"), lambda predicate: 0.5)
    (0.5, 0.75, 1.0)
    """
    return _triple(trees.tree_of(expression), worth)


def _triple(tree: Tree, worth: Callable[[Expression], float]) -> Triple:
    kind, children = trees.joint(tree)
    if kind is None:
        value = worth(trees.expression_of(tree))
        return value, value, value
    parts = [_triple(child, worth) for child in children]
    average = 0.0
    for _, share, _ in parts:
        average = average + share - average * share
    least = (max if kind == "and" else min)(low for low, _, _ in parts)
    return least, average, min(1.0, sum(high for _, _, high in parts))


def _loss(before: Triple, after: Triple) -> float:
    return max((b - a) / b if b > 0 else 0.0 for b, a in zip(before, after, strict=True))
