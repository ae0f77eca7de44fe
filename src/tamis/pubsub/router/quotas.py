"""Which subscriptions of a client count, where its grant limits their number.

The rule: of the subscriptions of a client that the stream holds and the grant allows otherwise, **those that
were written first count**. A subscription that is written again takes its place at the end. So the answer
depends on what the stream holds, not on when a router has read it, and all routers of a site give the same.

Those that do not count wait in their order. When one that counts goes, the next takes its place. A client can
write as many as it likes, so of each only its key and its number are remembered, not its text, and beyond
`MOST_BYTES` of keys only the number of the first that is not. When those that are remembered have been used
up, the stream is read again from there. To get that far the client must have written that many keys, tens of
thousands of usual length, so each reading costs it as many writes.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

MOST_BYTES = 16 << 20
"""What is remembered of the subscriptions of one client that do not count."""
OVERHEAD = 200
"""What it costs to remember a key and a number, beside the text of the key."""


def client_of(id: str) -> str:
    """Whose a subscription is.

    >>> client_of("ann.s1")
    'ann'
    """
    return id.partition(".")[0]


@dataclass(slots=True)
class Refused:
    """The subscriptions of one client that do not count, the first ones with their numbers.

    >>> refused = Refused()
    >>> refused.add("ann.s1", 7)
    >>> refused.numbers
    {'ann.s1': 7}
    >>> refused.remove("ann.s1")
    >>> bool(refused)
    False
    """

    numbers: dict[str, int] = field(default_factory=dict)
    """By id, in their order."""
    size: int = 0
    more_from: int | None = None
    """From this number on there may be others, which are not remembered."""

    def __bool__(self) -> bool:
        """Whether there may be any."""
        return bool(self.numbers) or self.more_from is not None

    def add(self, id: str, number: int) -> None:
        """One more, written after all others."""
        size = OVERHEAD + len(id)
        if self.more_from is None and self.numbers and self.size + size > MOST_BYTES:
            self.more_from = number
        if self.more_from is None:
            self.numbers[id] = number
            self.size += size

    def remove(self, id: str) -> None:
        """One less, if it is among those that are remembered."""
        if self.numbers.pop(id, None) is not None:
            self.size -= OVERHEAD + len(id)


class Quotas:
    """The clients whose subscriptions are limited in number, and which of them count.

    >>> quotas = Quotas()
    >>> quotas.limit("ann", 1)
    >>> for seq, id in enumerate(["ann.a", "ann.b", "bob.c"]):
    ...     if quotas.has_room(id):
    ...         quotas.count(id)
    ...     else:
    ...         quotas.refuse(id, seq)
    >>> quotas.refused_ids(), quotas.next_refused(10)
    (['ann.b'], {})
    >>> quotas.release("ann.a")
    >>> quotas.next_refused(10)
    {'ann.b': 1}
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

    def refuse(self, id: str, number: int) -> None:
        """A subscription that was written after all others does not count."""
        self._refused.setdefault(client_of(id), Refused()).add(id, number)

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

    def next_refused(self, most: int) -> dict[str, int]:
        """Refused subscriptions that have room now, if the grant allows them otherwise; in their order.

        With their numbers. They stay refused until `take` is called.
        """
        following: dict[str, int] = {}
        for name in list(self._freed):
            refused, room = self._refused.get(name), self._room(name) if name in self.limits else 0
            if not (refused and room):
                self._freed.discard(name)
            if refused:
                following.update(islice(refused.numbers.items(), min(room, most - len(following))))
            else:
                self._refused.pop(name, None)
        return following

    def take(self, id: str, number: int) -> bool:
        """A subscription is not refused any more; False if it was not, or was written again since."""
        refused = self._refused.get(client_of(id))
        if refused is None or refused.numbers.get(id) != number:
            return False
        refused.remove(id)
        return True

    def forgotten(self) -> dict[str, int]:
        """Clients with room whose refused subscriptions must be read again, each with a first number."""
        return {
            name: more
            for name in self._freed
            if (refused := self._refused.get(name)) is not None
            and not refused.numbers
            and (more := refused.more_from) is not None
        }

    def remember(self, read: dict[str, Refused]) -> None:
        """What was read again of some clients."""
        self._refused.update(read)

    def refused_ids(self) -> list[str]:
        """The subscriptions that do not count, as far as they are remembered."""
        return [id for refused in self._refused.values() for id in refused.numbers]

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
                name: {"numbers": refused.numbers, "more_from": refused.more_from}
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
            for id, number in about["numbers"].items():
                refused.add(id, number)
            if refused.more_from is None:
                refused.more_from = about["more_from"]
            quotas._refused[name] = refused
            quotas._freed.add(name)
        return quotas
