"""What a site wants, as it tells others: entries that are true for every event that someone there wants.

Interest spreads per site: it is generalised where the subscriptions are and nowhere else. If it were combined
again at every site on its way, two sites of a cycle could keep each other's interest alive for ever.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import tamis
from tamis.errors import TamisError
from tamis.pubsub.entry import Entry
from tamis.pubsub.outgoing import Covering, Merging, Outgoing, PrePruner, Stage, Summaries
from tamis.pubsub.records import Fields, RecordError, Subscription, write
from tamis.relate import Measure


@dataclass(frozen=True, slots=True)
class InterestEntry:
    """One entry of a site's interest; a later number replaces an earlier one.

    >>> InterestEntry.read_or_everything(b"garbage").expression
    'TRUE'
    """

    number: int
    expression: str | None
    """None: the entry is gone."""

    def body(self) -> bytes:
        """The record."""
        fields: dict[str, Any] = {"k": self.number, "expression": self.expression}
        return write(fields)

    @classmethod
    def read(cls, body: bytes) -> "InterestEntry":
        """Read a record."""
        fields = Fields(body, "interest")
        return cls(fields.number("k"), fields.optional("expression", lambda value: isinstance(value, str)))

    @classmethod
    def read_or_everything(cls, body: bytes) -> "InterestEntry":
        """Read a record; one that cannot be read or parsed here wants everything."""
        try:
            entry = cls.read(body)
            if entry.expression is not None:
                tamis.parse(entry.expression)
        except (RecordError, TamisError):
            return cls(0, "TRUE")
        return entry


@dataclass(frozen=True)
class Generalising:
    """How a site makes its interest smaller before it tells others. None of it loses an event.

    >>> Generalising().covering
    True
    """

    covering: bool = True
    """Do not tell what another entry covers."""
    subsumption: bool = False
    """Nor what several cover together."""
    merging: Literal["off", "perfect", "imperfect"] = "off"
    merge_prunings: int = 1
    summaries: int | None = None
    """Tell, for entries over the same attributes, which values any wants: at most so many of each."""
    predicates: int | None = None
    """Prune each entry to at most so many predicates."""
    measure: Measure = "accuracy"

    def stages(self, site: str, selectivities: Callable[[], Any]) -> list[Stage]:
        """The stages between subscriptions and interest."""
        stages: list[Stage] = []
        if self.covering:
            stages.append(Covering(by_sets=self.subsumption))
        if self.merging != "off":
            stages.append(Merging(self.merging, site, self.merge_prunings))
        if self.summaries is not None:
            stages.append(Summaries(site, self.summaries))
        if self.predicates is not None:
            stages.append(PrePruner(self.predicates, self.measure, selectivities))
        return stages


class Interest:
    """The interest of one site, kept through all changes of its subscriptions.

    >>> interest = Interest("paris", Generalising())
    >>> interest.put("ann.s1", Subscription("price < 15").body())
    >>> interest.put("eve.s1", Subscription("price < 9").body())
    >>> interest.wanted()
    {'ann.s1': 'price < 15'}
    """

    def __init__(self, site: str, how: Generalising, selectivities: Callable[[], Any] = lambda: None) -> None:
        """Start with nothing."""
        self._outgoing = Outgoing(how.stages(site, selectivities))
        self._unreadable: set[str] = set()

    def put(self, id: str, body: bytes) -> None:
        """A subscription comes, is replaced, or goes (an empty body)."""
        self._unreadable.discard(id)
        if not body:
            self._outgoing.hide(id)
            return
        try:
            expression = tamis.parse(Subscription.read(body).expression)
        except (RecordError, TamisError):
            self._unreadable.add(id)
            self._outgoing.hide(id)
            return
        self._outgoing.show(Entry(id, expression, None))

    def wanted(self) -> dict[str, str]:
        """What others should know: expressions by id. What cannot be read here wants everything."""
        shown = {id: str(entry.expression) for id, entry in self._outgoing.shown.items()}
        if self._unreadable:
            shown["everything"] = "TRUE"
        return shown

    def put_many(self, records: Iterable[tuple[str, bytes]]) -> None:
        """Many subscriptions come or go."""
        for id, body in records:
            self.put(id, body)
