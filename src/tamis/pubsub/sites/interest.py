"""What a site wants, as it tells others: entries that are true for every event that someone there wants.

Interest spreads per site: it is generalised where the subscriptions are and nowhere else. If it were combined
again at every site on its way, two sites of a cycle could keep each other's interest alive for ever.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import tamis
from tamis._kernel import Expression
from tamis.errors import TamisError
from tamis.pubsub.entry import Entry
from tamis.pubsub.generalise.cut_off import CutOff
from tamis.pubsub.generalise.overlap_index import OverlapIndex
from tamis.pubsub.generalise.pruning import PostPruner
from tamis.pubsub.generalise.replacement import choose_replacements, replace_all
from tamis.pubsub.outgoing import Covering, Merging, Outgoing, PrePruner, Stage, Summaries
from tamis.pubsub.records import Fields, RecordError, Subscription, write
from tamis.relate import Measure, Selectivities

LEAST_SAMPLE = 50
"""Of fewer events nothing is learnt."""


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
    pruning: float | Literal["auto"] = 0.0
    """Prune all entries together, the best prunings first: 0 is not at all, 1 as far as it goes. "auto" looks
    for the share at which the events that come needlessly and what others must know cost least."""
    measure: Measure | Literal["combined"] = "accuracy"
    """What the best pruning is."""
    replacement: float = 0.0
    """Let this share of the comparisons that can give way to a wider one in use do so."""
    table_weight: float = 1.0
    """For "auto": what the predicates that others know count, beside the events that come."""
    advertisements: bool = True
    """Do not tell what overlaps nothing that other sites advertise."""
    advertisement_prunings: int = 0
    """How many prunings make what this site advertises shorter and wider."""

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
            measure: Measure = "accuracy" if self.measure == "combined" else self.measure
            stages.append(PrePruner(self.predicates, measure, selectivities))
        return stages


class Interest:
    """The interest of one site, kept through all changes of its subscriptions.

    >>> interest = Interest("paris", Generalising())
    >>> interest.put("ann.s1", Subscription("price < 15").body())
    >>> interest.put("eve.s1", Subscription("price < 9").body())
    >>> interest.wanted()
    {'ann.s1': 'price < 15'}
    """

    def __init__(self, site: str, how: Generalising, sample: Callable[[], Sequence[bytes]] = tuple) -> None:
        """Start with nothing; `sample` has some late events, from which it is learnt what is often true."""
        self._outgoing = Outgoing(how.stages(site, lambda: self._known))
        self._unreadable: set[str] = set()
        self._how = how
        self._sample = sample
        self._known: Selectivities | None = None
        self._pruner = PostPruner(how.measure) if how.pruning else None
        self._pruned: dict[str, Expression] = {}
        self._cut_off = CutOff() if how.pruning == "auto" else None
        self.original_predicates = 0
        self.told_predicates = 0
        """Of what was last wanted, before and after it was pruned."""

    @property
    def share(self) -> float:
        """How far entries are pruned together now."""
        if self._cut_off is not None:
            return self._cut_off.share
        return 0.0 if self._how.pruning == "auto" else self._how.pruning

    def observe(self, came: int, wanted: int) -> bool:
        """So many events came lately, and so many of them somebody wanted; whether the share has changed.

        >>> interest = Interest("paris", Generalising(pruning="auto"))
        >>> interest.observe(100, 100), interest.share
        (True, 0.25)
        """
        if self._cut_off is None:
            return False
        before = self._cut_off.share
        told = self.told_predicates / max(1, self.original_predicates)
        return self._cut_off.observe(came / max(1, wanted) + self._how.table_weight * told) != before

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

    def wanted(self, advertised: Sequence[Expression] | None = None) -> dict[str, str]:
        """What others should know: expressions by id. What cannot be read here wants everything.

        `advertised` is all that other sites advertise; None if some site may publish anything.

        >>> interest = Interest("paris", Generalising(pruning=1.0))
        >>> interest.put("ann.s1", Subscription("x = 1 AND y > 2").body())
        >>> interest.put("ann.s2", Subscription("x = 1 AND y > 3 AND z = 4").body())
        >>> interest.wanted([tamis.parse("x = 1 AND z = 5")])
        {'ann.s1': 'x = 1'}
        """
        shown = {id: entry.expression for id, entry in self._outgoing.shown.items()}
        if advertised is not None and self._how.advertisements:
            overlapping = OverlapIndex()
            for number, expression in enumerate(advertised):
                overlapping.put(str(number), expression)
            shown = {id: one for id, one in shown.items() if overlapping.any(one) is not None}
        self.original_predicates = sum(expression.predicates for expression in shown.values())
        self._learn(shown.values())
        general = self._replaced(self._with_prunings(shown))
        texts: dict[str, str] = {}
        for id in sorted(general):  # what has become the same is told once
            texts.setdefault(str(general[id]), id)
        self.told_predicates = sum(general[id].predicates for id in texts.values())
        told = {id: text for text, id in texts.items()}
        return told | {"everything": "TRUE"} if self._unreadable else told

    def _with_prunings(self, shown: dict[str, Expression]) -> dict[str, Expression]:
        pruner = self._pruner
        if pruner is None:
            return shown
        for id in [id for id in self._pruned if id not in shown]:
            pruner.remove("", id)
            del self._pruned[id]
        for id, expression in shown.items():
            if self._pruned.get(id) != expression:
                pruner.put("", Entry(id, expression, None))
                self._pruned[id] = expression
        pruner.learn(self._known)
        pruner.prune(self.share)
        for _ in pruner.changed():
            pass
        return {id: pruner.form("", id) for id in shown}

    def _replaced(self, expressions: dict[str, Expression]) -> dict[str, Expression]:
        if not self._how.replacement:
            return expressions
        chosen = choose_replacements(expressions.values(), self._how.replacement, selectivities=self._known)
        return expressions | replace_all(expressions, chosen)

    def _learn(self, expressions: Iterable[Expression]) -> None:
        events = list(self._sample())
        needs = self._pruner is not None or self._how.replacement or self._how.predicates is not None
        if not needs or len(events) < LEAST_SAMPLE:
            return
        try:
            self._known = Selectivities.from_events(list(expressions), events)
        except TamisError:
            return  # some event is none; what was learnt before stays

    def put_many(self, records: Iterable[tuple[str, bytes]]) -> None:
        """Many subscriptions come or go."""
        for id, body in records:
            self.put(id, body)
