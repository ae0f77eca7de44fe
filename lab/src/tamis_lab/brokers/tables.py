"""The two tables of a broker.

The *event routing table* holds, for each neighbour, the subscriptions that came from there: an event goes
to those neighbours of which it satisfies at least one. The *subscription routing table* holds the
advertisements that came from each neighbour: a subscription goes to those of which it overlaps at least
one.

Entries remember in which conversation with the neighbour they were last told, so that those from before a
restart can be dropped once everything has been told again.
"""

from typing import Literal

from tamis._kernel import Event, Expression
from tamis.pubsub.entry import Entry
from tamis.pubsub.generalise.advertisement_pruning import AdvertisementPruner
from tamis.pubsub.generalise.overlap_index import OverlapIndex
from tamis.pubsub.matcher import Matcher
from tamis_lab.brokers.counters import Counters


class FromNeighbour:
    """Entries of one neighbour, each with the conversation that told it.

    >>> import tamis
    >>> table = FromNeighbour()
    >>> table.put(Entry("s1", tamis.parse("x > 1"), None), conversation=1)
    >>> table.stale(conversation=2)
    ['s1']
    """

    def __init__(self) -> None:
        """Start with nothing."""
        self.entries: dict[str, Entry] = {}
        self._told: dict[str, int] = {}

    def put(self, entry: Entry, conversation: int) -> None:
        """Add an entry or replace it."""
        self.entries[entry.id] = entry
        self._told[entry.id] = conversation

    def tell_again(self, id: str, conversation: int) -> None:
        """An entry was told again, unchanged."""
        self._told[id] = conversation

    def remove(self, id: str) -> Entry | None:
        """Remove an entry; None if there was none."""
        self._told.pop(id, None)
        return self.entries.pop(id, None)

    def stale(self, conversation: int) -> list[str]:
        """The ids that were not told in this conversation."""
        return [id for id, told in self._told.items() if told != conversation]

    def __len__(self) -> int:
        """How many entries there are."""
        return len(self.entries)


class Subscriptions(FromNeighbour):
    """The part of the event routing table that one neighbour filled.

    What is matched may be a pruned form of what was told (see `replace`).

    >>> import tamis
    >>> table = Subscriptions()
    >>> table.put(Entry("s1", tamis.parse("x > 1 AND y > 1"), None), conversation=1)
    >>> table.replace("s1", tamis.parse("x > 1"))
    >>> table.wants(tamis.Event({"x": 2}), None)
    True
    """

    def __init__(self, algorithm: str = "auto") -> None:
        """Start with nothing."""
        super().__init__()
        self.matcher = Matcher(algorithm)

    def put(self, entry: Entry, conversation: int) -> None:
        """Add an entry or replace it; it is matched as it is."""
        super().put(entry, conversation)
        self.matcher.put(entry.id, entry.expression, entry.type)

    def replace(self, id: str, expression: Expression) -> None:
        """Match a more general form of an entry from now on."""
        self.matcher.put(id, expression, self.entries[id].type)

    def remove(self, id: str) -> Entry | None:
        """Remove an entry, whatever form it is matched in."""
        entry = super().remove(id)
        if entry is not None:
            self.matcher.remove(id)
        return entry

    def wants(self, event: Event, type: str | None, shortcut: bool = True) -> bool:
        """Whether the event satisfies any entry. Without the shortcut, all of them are found first."""
        if shortcut:
            return self.matcher.exists(event, type)
        return bool(self.matcher.match(event, type))


class Advertisements(FromNeighbour):
    """The part of the subscription routing table that one neighbour filled.

    >>> import tamis
    >>> table = Advertisements("exact", Counters())
    >>> table.put(Entry("a1", tamis.parse("price > 10"), None), conversation=1)
    >>> table.overlapping(Entry("s1", tamis.parse("price < 15"), None))
    'a1'
    """

    def __init__(self, method: Literal["exact", "pairs"], counters: Counters) -> None:
        """Say how to compare."""
        super().__init__()
        self._counters = counters
        self._index = OverlapIndex(method)
        self.pruner = AdvertisementPruner()

    def overlapping(self, subscription: Entry) -> str | None:
        """The id of one advertisement that overlaps the subscription: the decision problem."""
        self._counters.overlap_checks += 1
        return self._index.any(subscription.expression, subscription.type)

    def put(self, entry: Entry, conversation: int) -> None:
        """Add an entry or replace it; it is compared as it is."""
        super().put(entry, conversation)
        self._index.put(entry.id, entry.expression, entry.type)
        self.pruner.originals[entry.id] = entry
        self.pruner.current.pop(entry.id, None)

    def remove(self, id: str) -> Entry | None:
        """Remove an entry, whatever form it is compared in."""
        self.pruner.originals.pop(id, None)
        self.pruner.current.pop(id, None)
        if id in self._index:
            self._index.remove(id)
        return super().remove(id)

    def generalise(self, id: str, expression: Expression) -> None:
        """Compare a more general form of an entry from now on."""
        entry = self.entries[id]
        self.entries[id] = Entry(id, expression, entry.type, entry.hops)
        self._index.put(id, expression, entry.type)
