"""Events on their way to neighbours: numbered across restarts, kept until acknowledged, and taken once.

Numbers of a link's events go on across restarts, unlike those of frames, so that an event that a neighbour
had taken before a crash is recognised after it. They only grow: each life of a broker begins far above the
one before, so that a broker that comes back with an older copy of its disk gives no number twice.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tamis_lab.brokers.messages import Forward

NUMBERS_OF_A_LIFE = 1 << 32


class Forwarding:
    """What waits for each neighbour, and how far each neighbour's own events were taken.

    `persist` is told what must be durable: keys under `out/`, `sent/` and `got/`.

    >>> disk = {}
    >>> forwarding = Forwarding(["b2"], disk.__setitem__)
    >>> forwarding.add("b2", '{"x": 1}', None, False, "b1/ann/1").number
    1
    >>> forwarding.acknowledged("b2", 1)
    >>> disk
    {'out/b2/1': None, 'sent/b2': 1}
    """

    def __init__(self, neighbours: Iterable[str], persist: Callable[[str, Any], None]) -> None:
        """Start with nothing."""
        self._persist = persist
        self.waiting: dict[str, dict[int, Forward]] = {neighbour: {} for neighbour in neighbours}
        self._sent = dict.fromkeys(self.waiting, 0)
        self._got = dict.fromkeys(self.waiting, 0)

    def restore(self, stored: Mapping[str, Any], epoch: int = 1) -> None:
        """Take back what was persisted before a crash; what waited for those who left the overlay goes."""
        for key, value in stored.items():
            kind, _, rest = key.partition("/")
            if kind == "sent" and rest in self._sent:
                self._sent[rest] = value
            elif kind == "got" and rest in self._got:
                self._got[rest] = value
            elif kind == "out":
                neighbour, _, number = rest.rpartition("/")
                if neighbour in self.waiting:
                    self.waiting[neighbour][int(number)] = Forward(int(number), *value)
                else:
                    self._persist(key, None)
        for neighbour, waiting in self.waiting.items():
            self.waiting[neighbour] = dict(sorted(waiting.items()))
            self._sent[neighbour] = max(self._sent[neighbour], (epoch - 1) * NUMBERS_OF_A_LIFE)

    def add(self, neighbour: str, event: str, type: str | None, everywhere: bool, origin: str) -> Forward:
        """Number an event for a neighbour and keep it."""
        number = self._sent[neighbour] = self._sent[neighbour] + 1
        forward = Forward(number, event, type, everywhere, origin)
        self.waiting[neighbour][number] = forward
        self._persist(f"out/{neighbour}/{number}", [event, type, everywhere, origin])
        self._persist(f"sent/{neighbour}", number)
        return forward

    def acknowledged(self, neighbour: str, number: int) -> None:
        """A neighbour has taken an event."""
        if self.waiting[neighbour].pop(number, None) is not None:
            self._persist(f"out/{neighbour}/{number}", None)

    def is_new(self, neighbour: str, number: int) -> bool:
        """Whether an event of a neighbour was not taken before."""
        return number > self._got[neighbour]

    def taken(self, neighbour: str, number: int) -> None:
        """An event of a neighbour is being taken."""
        self._got[neighbour] = number
        self._persist(f"got/{neighbour}", number)
