"""What was dropped, so that whoever did not get it learns why.

Of a neighbour's queue there are two records. What the sites behind it are told is one of its own: routers of
the release before do not know it and leave it alone, and would lose what they do not know of a record that
they write again. The numbers of gaps must survive: a gap whose number was used before counts as a repeat.
"""

from collections import Counter
from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tamis.pubsub.log.contract import Record
from tamis.pubsub.records.events import ROLLBACK
from tamis.pubsub.records.fields import MOST_NUMBER, Fields, RecordError, is_number, is_text_list, write

MOST_RECENT_DROPS = 200
Stood = tuple[str, int, int]
"""A lane, the number of a dropped delivery that was a gap, and how many events more than one it stood for."""


@dataclass(frozen=True, slots=True)
class Drop:
    """Deliveries of one subscriber, partition and priority that were dropped.

    >>> Drop("bytes", "0.4", 3, 9).count
    7
    """

    reason: str
    """`bytes` or `age`. Of a delivery that was itself a gap: the reason of that gap, `link` or `rollback`."""
    lane: str
    first: int
    last: int

    @property
    def count(self) -> int:
        """How many."""
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class Behind:
    """What sites behind a neighbour are told of what was dropped of its queue.

    >>> behind = Behind().and_untold({"rome": 2}).begun({"bonn"})
    >>> behind.telling, behind.told, behind.done().is_open
    ({'rome': 2}, {'rome': 1}, False)
    """

    untold: dict[str, int] = field(default_factory=dict)
    """How many dropped events were on their way to each site, which was not told."""
    telling: dict[str, int] = field(default_factory=dict)
    """Those that the sites are just being told of."""
    told: dict[str, int] = field(default_factory=dict)
    """How many gaps each site was told of, this one with them."""

    @property
    def is_open(self) -> bool:
        """Whether somebody is still to be told."""
        return bool(self.untold or self.telling)

    def and_untold(self, more: Mapping[str, int]) -> "Behind":
        """This, and what else was dropped."""
        both = Counter(self.untold) + Counter(more)
        # Gaps of a neighbour may claim to stand for more than a record can say.
        return replace(self, untold={site: min(count, MOST_NUMBER) for site, count in both.items()})

    def begun(self, but: Container[str]) -> "Behind":
        """What was untold is being told, but to some sites; unless something is under way already."""
        if self.telling:
            return self
        telling = {site: count for site, count in self.untold.items() if site not in but}
        told = {**self.told, **{site: self.told.get(site, 0) + 1 for site in telling}}
        return Behind({}, telling, told)

    def done(self) -> "Behind":
        """They were told."""
        return replace(self, telling={})

    def fields(self) -> dict[str, dict[str, int]]:
        """As fields of a record, those that say something."""
        counts = {"untold": self.untold, "telling": self.telling, "told": self.told}
        return {name: count for name, count in counts.items() if count}


@dataclass(frozen=True, slots=True)
class Drops:
    """What happened to what a subscriber did not get.

    >>> drops = Drops().and_drop(Drop("bytes", "0.4", 1, 3)).and_drop(Drop("bytes", "0.4", 4, 4))
    >>> drops.totals, len(drops.recent)
    ({'bytes': 4}, 1)
    """

    totals: dict[str, int] = field(default_factory=dict)
    recent: tuple[Drop, ...] = ()
    next: dict[str, int] = field(default_factory=dict)
    """The next delivery number of lanes that are empty."""
    behind: Behind = field(default_factory=Behind)
    """Of a neighbour's queue: dropped events that were on their way to other sites."""
    rollbacks: Behind = field(default_factory=Behind)
    """The same of gaps that said that a log was rolled back."""
    stood: tuple[Stood, ...] = ()
    """Of a neighbour's queue: dropped deliveries that do not count as one event, for they were gaps."""

    def and_drop(self, drop: Drop) -> "Drops":
        """These and another one."""
        if any(
            known.lane == drop.lane and known.first <= drop.first and drop.last <= known.last
            for known in self.recent
        ):
            return self  # somebody else has written it down
        totals = {**self.totals, drop.reason: self.totals.get(drop.reason, 0) + drop.count}
        recent = list(self.recent)
        for place, known in enumerate(recent):
            if (known.reason, known.lane, known.last + 1) == (drop.reason, drop.lane, drop.first):
                recent[place] = Drop(drop.reason, drop.lane, known.first, drop.last)
                break
        else:
            recent.append(drop)
        return replace(self, totals=totals, recent=tuple(recent[-MOST_RECENT_DROPS:]))

    def and_gap(self, lane: str, number: int, events: int) -> "Drops":
        """These, and that one of the dropped deliveries stood for so many events.

        >>> drops = Drops().and_gap("0.0", 3, 50).and_gap("0.0", 9, 0)
        >>> drops.beyond("0.0", 1, 9), drops.beyond("0.0", 1, 10), drops.beyond("0.0", 4, 9)
        (49, 48, 0)
        """
        stood = [*self.stood, (lane, number, events - 1)]
        if len(stood) > MOST_RECENT_DROPS:
            # The oldest counts with the next of its lane: whoever has missed it has missed that one, too. One
            # that is alone in its lane stays.
            lanes = [each for each, _, _ in stood]
            place = next((place for place, each in enumerate(lanes) if each in lanes[place + 1 :]), None)
            lane, _, beyond = stood.pop(place or 0)
            if place is not None:
                later = lanes.index(lane, place + 1) - 1
                stood[later] = (lane, stood[later][1], min(stood[later][2] + beyond, MOST_NUMBER))
        return replace(self, stood=tuple(stood))

    def beyond(self, lane: str, first: int, end: int) -> int:
        """How many events more than deliveries are missing, of those from a number up to before another."""
        return sum(more for other, number, more in self.stood if other == lane and first <= number < end)

    def rolled_back(self, lane: str, first: int, end: int) -> int:
        """How many of the missing deliveries said that a log was rolled back.

        >>> Drops().and_drop(Drop("rollback", "0.0", 3, 3)).rolled_back("0.0", 1, 9)
        1
        """
        return sum(
            max(0, min(drop.last + 1, end) - max(drop.first, first))
            for drop in self.recent
            if drop.reason == ROLLBACK and drop.lane == lane
        )

    def first(self, lane: str) -> int:
        """The lowest number that is known to have been dropped of a lane; 0 if none is.

        >>> Drops().and_drop(Drop("age", "0.4", 3, 9)).first("0.4")
        3
        """
        return min((drop.first for drop in self.recent if drop.lane == lane), default=0)

    def run(self, lane: str, number: int) -> tuple[str, int]:
        """Why a delivery is missing, and the last one after it for which that holds.

        >>> Drops().and_drop(Drop("age", "0.4", 3, 9)).run("0.4", 4)
        ('age', 9)
        """
        for drop in self.recent:
            if drop.lane == lane and drop.first <= number <= drop.last:
                return drop.reason, drop.last
        later = [drop.first for drop in self.recent if drop.lane == lane and drop.first > number]
        return "lost", min(later) - 1 if later else MOST_NUMBER

    def body(self) -> bytes:
        """The record, without what sites behind a neighbour are told."""
        recent = [[drop.reason, drop.lane, drop.first, drop.last] for drop in self.recent]
        return write({"totals": self.totals, "recent": recent, "next": self.next})

    def behind_body(self) -> bytes:
        """The record of what sites behind a neighbour are told."""
        return write({}, {**self.behind.fields(), "rollbacks": self.rollbacks.fields(), "stood": self.stood})

    @classmethod
    def read(cls, body: bytes) -> "Drops":
        """Read a record, without what sites behind a neighbour are told."""
        fields = Fields(body, "list of what was dropped")

        def good(value: Any) -> bool:
            return isinstance(value, list) and all(
                isinstance(row, list)
                and len(row) == 4
                and is_text_list(row[:2])
                and all(map(is_number, row[2:]))
                for row in value
            )

        recent = tuple(Drop(*row) for row in fields.take("recent", good, []))
        return cls(fields.counts("totals"), recent, fields.counts("next"))

    def and_read_behind(self, body: bytes) -> "Drops":
        """These, with the record of what sites behind a neighbour are told."""
        fields = Fields(body, "list of what sites are told")
        stood = tuple((lane, number, more) for lane, number, more in fields.take("stood", _are_stood, []))
        rollbacks = fields.part("rollbacks")
        return replace(
            self,
            stood=stood,
            behind=_behind(fields),
            rollbacks=Behind() if rollbacks is None else _behind(rollbacks),
        )


def _behind(fields: Fields) -> Behind:
    return Behind(*(fields.counts(name) for name in ("untold", "telling", "told")))


def _are_stood(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(row, list)
        and len(row) == 3
        and isinstance(row[0], str)
        and is_number(row[1])
        and type(row[2]) is int
        and abs(row[2]) <= MOST_NUMBER
        for row in value
    )


def read_drops(record: Record | None, behind: Record | None = None) -> Drops:
    """What was dropped; nothing, if there is no record or it cannot be read.

    >>> read_drops(None).totals
    {}
    """
    try:
        drops = Drops.read(record.body) if record is not None and record.body else Drops()
    except RecordError:
        drops = Drops()
    try:
        return drops if behind is None or not behind.body else drops.and_read_behind(behind.body)
    except RecordError:
        return drops
