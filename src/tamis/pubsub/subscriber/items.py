"""What a subscriber gets: events and gaps, and the errors that end its reading."""

import json
from dataclasses import dataclass
from typing import Any

from tamis.errors import TamisError


class RemovedError(TamisError):
    """Somebody has removed this subscriber: its queue, its position and its subscriptions are gone."""


class TakenOverError(TamisError):
    """Another client has this subscriber's queue now: a name belongs to one client at a time."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """An event for this subscriber."""

    number: int
    """The event's number in the log: with the subscriber, the id of this delivery."""
    body: bytes
    """The event as JSON."""
    publisher: str
    time: int
    """When it was stored, in UTC microseconds."""
    origin: str | None
    """The site where it was published, if that is another one."""
    place: tuple[int, int]
    """Where it is in the queue: for `acknowledge`."""

    @property
    def event(self) -> Any:
        """The event as a dict."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Gap:
    """Something is missing here, and why: `bytes`, `age`, `forgotten`, `link`, `rollback` or `lost`."""

    reason: str
    count: int | None
    """How many events, if that is known."""
    place: tuple[int, int]
