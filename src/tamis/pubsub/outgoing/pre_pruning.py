"""Pre-pruning: entries are generalised before they are sent, so that the neighbour stores the small form.

The decision is based on the events of this broker, not of the neighbour. Post-pruning, which generalises
received entries, is `tamis.pubsub.generalise.pruning`; both can be enabled.
"""

from collections.abc import Callable
from typing import Any

from tamis.pubsub.entry import Entry
from tamis.pubsub.outgoing.contract import Change, Hide, Show
from tamis.relate import Measure


class PrePruner:
    """Prunes each entry until it has at most so many predicates.

    >>> import tamis
    >>> [change] = PrePruner(predicates=1).show(Entry("s", tamis.parse("x = 1 AND y > 2"), None))
    >>> change.entry.expression.predicates
    1
    """

    def __init__(
        self,
        predicates: int,
        measure: Measure = "accuracy",
        selectivities: Callable[[], Any] = lambda: None,
    ) -> None:
        """`selectivities` is asked for what is known at the time of each pruning."""
        self._predicates = predicates
        self._measure = measure
        self._selectivities = selectivities

    def show(self, entry: Entry) -> list[Change]:
        """An entry comes: show its pruned form."""
        if entry.expression.predicates <= self._predicates:
            return [Show(entry)]
        pruned = entry.expression.prune(
            predicates=self._predicates, measure=self._measure, selectivities=self._selectivities()
        )
        return [Show(Entry(entry.id, pruned, entry.type, entry.hops))]

    def hide(self, id: str) -> list[Change]:
        """An entry goes."""
        return [Hide(id)]
