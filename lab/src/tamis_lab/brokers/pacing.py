"""Paces notifications to a client: a few MiB at a time, and more as it acknowledges.

The backlog of a client that was away may be more than a connection can buffer. Numbers must arrive in order,
because a client drops those below the highest it has seen; so while one is held back, later ones are too.
"""

from collections import deque
from collections.abc import Iterable

from tamis_lab.brokers.effects import Deliver, DeliverGap

Notification = Deliver | DeliverGap

MOST_BYTES = 4 << 20
"""What may be under way. JSON in JSON takes up to twice that on a connection."""
HEAD_BYTES = 100


class Pacing:
    """What one client is still to be told, and what it was told and has not acknowledged.

    >>> pacing = Pacing(most_bytes=250)
    >>> pacing.begin(Deliver("ann", number, "{}", None, ("s",)) for number in (1, 2, 3))
    >>> [note.number for note in pacing.take()]
    [1, 2]
    >>> pacing.acknowledge(1)
    >>> [note.number for note in pacing.take()]
    [3]
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        """At most this many bytes are under way, or one notification that is larger."""
        self._most_bytes = most_bytes
        self._held: deque[Notification] = deque()
        self._under_way: deque[tuple[int, int]] = deque()
        self._bytes_under_way = 0

    def begin(self, waiting: Iterable[Notification]) -> None:
        """The client is there, on a connection on which it was told nothing yet."""
        self._held = deque(waiting)
        self._under_way.clear()
        self._bytes_under_way = 0

    def add(self, note: Notification) -> None:
        """Something new waits; a gap may have grown."""
        if self._held and self._held[-1].number == note.number:
            self._held.pop()
        self._held.append(note)

    def acknowledge(self, number: int) -> None:
        """The client has dealt with all up to a number."""
        while self._under_way and self._under_way[0][0] <= number:
            self._bytes_under_way -= self._under_way.popleft()[1]
        while self._held and last_number(self._held[0]) <= number:
            self._held.popleft()

    def take(self) -> list[Notification]:
        """What can be told now."""
        taken: list[Notification] = []
        while self._held:
            size = _size(self._held[0])
            if self._under_way and self._bytes_under_way + size > self._most_bytes:
                break
            note = self._held.popleft()
            self._under_way.append((last_number(note), size))
            self._bytes_under_way += size
            taken.append(note)
        return taken


def last_number(notification: Notification) -> int:
    """The last number that a notification stands for.

    >>> last_number(DeliverGap("ann", 3, 7, "buffer full"))
    7
    """
    return notification.last if isinstance(notification, DeliverGap) else notification.number


def _size(note: Notification) -> int:
    if isinstance(note, DeliverGap):
        return HEAD_BYTES
    return HEAD_BYTES + len(note.event.encode()) + sum(len(id.encode()) + 4 for id in note.subscriptions)
