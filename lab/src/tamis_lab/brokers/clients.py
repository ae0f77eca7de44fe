"""The state of one client of a broker: its subscriptions, advertisements and pending notifications.

Notifications are numbered per client. They stay until the client acknowledges them, and are delivered again
when it comes back, as fast as `pacing` allows; the client drops numbers it has seen. When too many wait,
further ones are replaced by a *gap*, which says which numbers were not kept.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from tamis.pubsub.entry import Entry
from tamis_lab.brokers.effects import Deliver, DeliverGap
from tamis_lab.brokers.pacing import Notification, Pacing, last_number
from tamis_lab.brokers.refusals import Refusals


@dataclass
class LocalSubscription:
    """A client's own subscription: exact, whatever the network does to its copies."""

    entry: Entry
    priority: float
    pending: list[int] = field(default_factory=list)
    """Requests to answer once it has spread, or is taken back."""


@dataclass
class LocalAdvertisement:
    """A client's own advertisement; publications may rely on it once it has spread."""

    entry: Entry
    spread: bool = False
    pending: list[int] = field(default_factory=list)


class Client:
    """One client, attached or not.

    >>> client = Client("ann", most_waiting=2)
    >>> for text in ["1", "2", "3", "4"]:
    ...     kept = client.notify(text, None, ("s1",), "")
    >>> client.waiting[-1]
    DeliverGap(client='ann', number=3, last=4, reason='buffer full')
    >>> client.acknowledge(2)
    [1, 2]
    """

    def __init__(self, name: str, most_waiting: int) -> None:
        """`most_waiting` notifications are kept."""
        self.name = name
        self.attached = False
        self.most_entries: int | None = None
        self.published = 0
        self.refusals = Refusals()
        self.last = 0
        self.waiting: deque[Notification] = deque()
        self.pacing = Pacing()
        self.subscriptions: dict[str, LocalSubscription] = {}
        self.advertisements: dict[str, LocalAdvertisement] = {}
        self._most_waiting = most_waiting

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing to remember of this client."""
        nothing_kept = not (self.subscriptions or self.advertisements or self.waiting)
        return nothing_kept and self.published == self.last == 0

    def notify(
        self, event: str, type: str | None, subscriptions: tuple[str, ...], origin: str
    ) -> Notification:
        """Queue an event, or a gap in its place; returns what is last in the queue now."""
        if len(self.waiting) >= self._most_waiting:
            return self.skip("buffer full")
        self.last += 1
        kept = Deliver(self.name, self.last, event, type, subscriptions, origin)
        self.waiting.append(kept)
        return kept

    def skip(self, reason: str) -> DeliverGap:
        """Number a notification that is not kept; neighbouring gaps for one reason become one."""
        self.last += 1
        before = self.waiting[-1] if self.waiting else None
        if isinstance(before, DeliverGap) and before.reason == reason:
            self.waiting.pop()
            gap = DeliverGap(self.name, before.number, self.last, reason)
        else:
            gap = DeliverGap(self.name, self.last, self.last, reason)
        self.waiting.append(gap)
        return gap

    def acknowledge(self, number: int) -> list[int]:
        """Forget what the client has dealt with; returns the numbers of the records to remove."""
        self.pacing.acknowledge(number)
        gone: list[int] = []
        while self.waiting and last_number(self.waiting[0]) <= number:
            gone.append(self.waiting.popleft().number)
        return gone


def to_record(notification: Notification) -> list[Any]:
    """Write a notification as it is persisted.

    >>> to_record(DeliverGap("ann", 3, 7, "buffer full"))
    [7, 'buffer full']
    """
    if isinstance(notification, DeliverGap):
        return [notification.last, notification.reason]
    return [notification.event, notification.type, list(notification.subscriptions), notification.origin]


def from_record(client: str, number: int, record: list[Any]) -> Notification:
    """Read what `to_record` wrote.

    >>> from_record("ann", 3, [7, "buffer full"]).last
    7
    """
    if len(record) == 2:
        return DeliverGap(client, number, *record)
    event, type, subscriptions, origin = record
    return Deliver(client, number, event, type, tuple(subscriptions), origin)
