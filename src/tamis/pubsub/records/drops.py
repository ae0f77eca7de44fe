"""What was dropped, so that whoever did not get it learns why."""

from dataclasses import dataclass, field, replace
from typing import Any

from tamis.pubsub.log.contract import Record
from tamis.pubsub.records.fields import MOST_NUMBER, Fields, RecordError, is_number, is_text_list, write

MOST_RECENT_DROPS = 200


@dataclass(frozen=True, slots=True)
class Drop:
    """Deliveries of one subscriber, partition and priority that were dropped.

    >>> Drop("bytes", "0.4", 3, 9).count
    7
    """

    reason: str
    """`bytes`, `age` or `forgotten`."""
    lane: str
    first: int
    last: int

    @property
    def count(self) -> int:
        """How many."""
        return self.last - self.first + 1


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
    untold: dict[str, int] = field(default_factory=dict)
    """Of a neighbour's queue: how many dropped events were on their way to each site, which was not told."""
    telling: dict[str, int] = field(default_factory=dict)
    """Those that the sites are just being told of."""
    told: dict[str, int] = field(default_factory=dict)
    """How many gaps each site was told of, this one with them."""

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
        """The record."""
        recent = [[drop.reason, drop.lane, drop.first, drop.last] for drop in self.recent]
        behind = {"untold": self.untold, "telling": self.telling, "told": self.told}
        sites = {name: counts for name, counts in behind.items() if counts}
        return write({"totals": self.totals, "recent": recent, "next": self.next, **sites})

    @classmethod
    def read(cls, body: bytes) -> "Drops":
        """Read a record."""
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
        counts = {name: fields.counts(name) for name in ("totals", "next", "untold", "telling", "told")}
        return cls(recent=recent, **counts)


def read_drops(record: Record | None) -> Drops:
    """What was dropped; nothing, if there is no record or it cannot be read.

    >>> read_drops(None).totals
    {}
    """
    try:
        return Drops.read(record.body) if record is not None and record.body else Drops()
    except RecordError:
        return Drops()
