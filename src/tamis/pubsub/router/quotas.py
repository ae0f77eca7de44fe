"""Which subscriptions of a client count, where its grant limits their number.

The rule: of the subscriptions of a client that the stream holds and the grant allows otherwise, **those that
were written first count**. A subscription that is written again takes its place at the end. So the answer
depends on what the stream holds, not on when a router has read it, and all routers of a site give the same.

Those that do not count wait in their order. When one that counts goes, the next takes its place. A client can
write as many as it likes, so few of them are remembered: beyond some bytes, only the number of the first that
is not. When those that are remembered have been used up, the stream is read again from there. To get that far
the client must have written as many records, so it cannot make a router read for nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from tamis.pubsub.log.contract import Record

MOST_BYTES = 1 << 20
"""What is remembered of the subscriptions of one client that do not count."""
OVERHEAD = 300
"""What it costs to remember a record, beside its text."""


def client_of(id: str) -> str:
    """Whose a subscription is.

    >>> client_of("ann.s1")
    'ann'
    """
    return id.partition(".")[0]


@dataclass(slots=True)
class Refused:
    """The subscriptions of one client that do not count, the first ones with their text.

    >>> refused = Refused()
    >>> refused.add(Record(7, "sub", "ann.s1", 0, b"{}"))
    >>> refused.take(3), bool(refused)
    ([Record(seq=7, topic='sub', detail='ann.s1', time=0, body=b'{}')], False)
    """

    records: dict[str, Record] = field(default_factory=dict)
    """By id, in the order of their numbers."""
    size: int = 0
    more_from: int | None = None
    """From this number on there may be others, which are not remembered."""

    def __bool__(self) -> bool:
        """Whether there may be any."""
        return bool(self.records) or self.more_from is not None

    def add(self, record: Record) -> None:
        """One more, written after all others."""
        size = _size(record)
        if self.more_from is None and self.records and self.size + size > MOST_BYTES:
            self.more_from = record.seq
        if self.more_from is None:
            self.records[record.detail] = record
            self.size += size

    def remove(self, id: str) -> None:
        """One less, if it is among those that are remembered."""
        record = self.records.pop(id, None)
        if record is not None:
            self.size -= _size(record)

    def take(self, most: int) -> list[Record]:
        """The first ones; they are not refused any more."""
        taken = list(islice(self.records.values(), most))
        for record in taken:
            self.remove(record.detail)
        return taken


def _size(record: Record) -> int:
    return OVERHEAD + len(record.detail) + len(record.body)


class Quotas:
    """The clients whose subscriptions are limited in number, and which of them count.

    >>> quotas = Quotas()
    >>> quotas.limit("ann", 1)
    >>> for seq, id in enumerate(["ann.a", "ann.b", "bob.c"]):
    ...     if quotas.has_room(id):
    ...         quotas.count(id)
    ...     else:
    ...         quotas.refuse(Record(seq, "sub", id, 0, b"{}"))
    >>> quotas.refused_ids(), quotas.take_next()
    (['ann.b'], [])
    >>> quotas.release("ann.a")
    >>> [record.detail for record in quotas.take_next()]
    ['ann.b']
    """

    def __init__(self) -> None:
        """Nobody is limited."""
        self.limits: dict[str, int] = {}
        self._counted: dict[str, set[str]] = {}
        self._refused: dict[str, Refused] = {}
        self._freed: set[str] = set()
        """Clients some of whose refused subscriptions may count now."""

    def limit(self, name: str, most: int | None) -> None:
        """A client may have so many; None is any number. What counts is decided again after `restart`."""
        self.limits.pop(name, None)
        if most is not None:
            self.limits[name] = most

    def restart(self) -> None:
        """Nothing counts and nothing is refused: all subscriptions are read again."""
        self._counted.clear()
        self._refused.clear()
        self._freed.clear()

    def _room(self, name: str) -> int:
        return max(0, self.limits[name] - len(self._counted.get(name, ())))

    def has_room(self, id: str) -> bool:
        """Whether a subscription that was written after all others counts."""
        name = client_of(id)
        return name not in self.limits or (not self._refused.get(name) and self._room(name) > 0)

    def count(self, id: str) -> None:
        """A subscription counts, if its client is limited."""
        name = client_of(id)
        if name in self.limits:
            self._counted.setdefault(name, set()).add(id)

    def refuse(self, record: Record) -> None:
        """A subscription that was written after all others does not count."""
        self._refused.setdefault(client_of(record.detail), Refused()).add(record)

    def release(self, id: str) -> None:
        """A subscription is gone, or was written again."""
        if not self.limits:
            return
        name = client_of(id)
        counted, refused = self._counted.get(name), self._refused.get(name)
        if refused is not None:
            refused.remove(id)
        if counted is not None and id in counted:
            counted.remove(id)
            if refused:
                self._freed.add(name)

    def take_next(self) -> list[Record]:
        """Refused subscriptions that have room now, if the grant allows them otherwise; in their order."""
        taken: list[Record] = []
        for name in list(self._freed):
            refused, room = self._refused.get(name), self._room(name) if name in self.limits else 0
            if refused and room:
                taken += refused.take(room)
            if not (refused and room):
                self._freed.discard(name)
            if not refused:
                self._refused.pop(name, None)
        return taken

    def forgotten(self) -> dict[str, int]:
        """Clients with room whose refused subscriptions must be read again, each with a first number."""
        return {
            name: more
            for name in self._freed
            if (refused := self._refused.get(name)) is not None
            and not refused.records
            and (more := refused.more_from) is not None
        }

    def remember(self, read: dict[str, Refused]) -> None:
        """What was read again of some clients."""
        self._refused.update(read)

    def refused_ids(self) -> list[str]:
        """The subscriptions that do not count, as far as they are remembered."""
        return [id for refused in self._refused.values() for id in refused.records]

    @property
    def refuses_any(self) -> bool:
        """Whether anything is refused."""
        return bool(self._refused)

    # --- snapshots ---------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """All but the limits, which are those of the grants."""
        return {
            "counted": {name: sorted(ids) for name, ids in self._counted.items()},
            "refused": {
                name: {
                    "records": [
                        [r.seq, r.topic, r.detail, r.time, r.body.decode("latin-1")]
                        for r in refused.records.values()
                    ],
                    "more_from": refused.more_from,
                }
                for name, refused in self._refused.items()
            },
        }

    @classmethod
    def from_json(cls, limits: Iterable[tuple[str, int | None]], found: dict[str, Any]) -> "Quotas":
        """As a snapshot knows them."""
        quotas = cls()
        for name, most in limits:
            quotas.limit(name, most)
        quotas._counted = {name: set(ids) for name, ids in found["counted"].items()}
        for name, about in found["refused"].items():
            refused = Refused()
            for seq, topic, detail, at, text in about["records"]:
                refused.add(Record(seq, topic, detail, at, text.encode("latin-1")))
            if refused.more_from is None:
                refused.more_from = about["more_from"]
            quotas._refused[name] = refused
            quotas._freed.add(name)
        return quotas
