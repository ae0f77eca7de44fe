"""Post-pruning: generalise the entries of all neighbours together, the best prunings first.

Local subscriptions are never pruned, so clients receive exactly what they want; a pruned entry lets some
unwanted events travel. The originals are kept: a subscription that must be forwarded later is forwarded
unchanged, and pruning can be undone.

How far to go is a share of the way from the original predicates to the fewest that pruning can leave. When
that share changes, and when it first becomes known how often predicates are true, everything is ranked and
pruned again from the originals; otherwise only new entries are.
"""

from collections.abc import Iterable
from typing import Literal

from tamis._kernel import Expression
from tamis.pubsub.entry import Entry
from tamis.pubsub.generalise.combined_pruning import CombinedQueue, Weights
from tamis.relate import Measure, PruningQueue, Selectivities

Key = tuple[str, str]
"""A neighbour and the id of its entry."""


class PostPruner:
    """Entries of all neighbours, and how far they are pruned.

    >>> import tamis
    >>> pruner = PostPruner("accuracy")
    >>> pruner.put("b2", Entry("s1", tamis.parse("x = 1 AND y > 2 AND z > 3"), None))
    >>> pruner.prune(1.0)
    2
    >>> pruner.prunings
    2
    >>> [(key, expression.predicates) for key, expression in pruner.changed()]
    [(('b2', 's1'), 1)]
    >>> pruner.prune(0.0)
    0
    >>> [expression.predicates for _, expression in pruner.changed()]
    [3]
    """

    def __init__(
        self,
        measure: Measure | Literal["combined"],
        execution: Literal["strict", "restricted"] = "strict",
        weights: Weights | None = None,
    ) -> None:
        """Say how prunings are ranked; the weights are for the measure "combined"."""
        self._measure = measure
        self._execution = execution
        self._weights = weights
        self._originals: dict[Key, Entry] = {}
        self._matched: dict[Key, Expression] = {}
        self._known: Selectivities | None = None
        self._queue = self._new_queue()
        self._fewest: int | None = None
        self._is_outdated = False
        self.share = 0.0
        """How far the entries are pruned now; those that came later are whole until the next `prune`."""
        self.prunings = 0
        """How many prunings led to the entries as they are now."""

    @property
    def original_predicates(self) -> int:
        """The predicates of all entries before any pruning."""
        return sum(entry.expression.predicates for entry in self._originals.values())

    @property
    def predicates(self) -> int:
        """The predicates of all entries as they are matched."""
        return self._queue.predicates

    def put(self, neighbour: str, entry: Entry) -> None:
        """Add or replace an entry; it is matched whole until the next `prune`."""
        key = (neighbour, entry.id)
        if key in self._originals:
            self._queue.remove(key)
        self._originals[key] = entry
        self._matched[key] = entry.expression
        self._queue.add(key, entry.expression, distance=max(1, entry.hops))
        self._fewest = None

    def remove(self, neighbour: str, id: str) -> None:
        """Take an entry out, however much it was pruned."""
        key = (neighbour, id)
        if self._originals.pop(key, None) is not None:
            del self._matched[key]
            self._queue.remove(key)
            self._fewest = None

    def learn(self, known: Selectivities | None) -> None:
        """Use newer knowledge of how often predicates are true."""
        if self._known is None and known is not None:
            # Ranks compare with the original, which was judged without knowledge.
            self._is_outdated = True
            self._fewest = None
        self._known = known
        self._queue.learn(known)

    def prune(self, share: float) -> int:
        """Prune so far, or take prunings back; returns how many prunings were done."""
        share = min(1.0, max(0.0, share))
        if share != self.share or self._is_outdated:
            self._queue = self._new_queue()
            for key, entry in self._originals.items():
                self._queue.add(key, entry.expression, distance=max(1, entry.hops))
            self._is_outdated = False
            self.prunings = 0
        self.share = share
        originally = self.original_predicates
        target = round(originally - share * (originally - self._fewest_predicates()))
        if share == 1.0:
            target = 0
        done = self._queue.prune(predicates=target) if target < self._queue.predicates else 0
        self.prunings += done
        return done

    def changed(self) -> Iterable[tuple[Key, Expression]]:
        """Entries whose form has changed since the last call."""
        for key, before in self._matched.items():
            now = self._queue[key]
            if now != before:
                self._matched[key] = now
                yield key, now

    def _fewest_predicates(self) -> int:
        if self._fewest is None:
            queue = self._new_queue()
            for key, entry in self._originals.items():
                queue.add(key, entry.expression)
            queue.prune(predicates=0)
            self._fewest = queue.predicates
        return self._fewest

    def form(self, neighbour: str, id: str) -> Expression:
        """An entry as pruning has left it."""
        return self._matched[neighbour, id]

    def _new_queue(self) -> PruningQueue | CombinedQueue:
        if self._measure == "combined":
            return CombinedQueue(self._weights, self._known)
        return PruningQueue(measure=self._measure, selectivities=self._known, execution=self._execution)
