"""The effects that `Broker.handle` returns, to be carried out in order.

A `Persist` must be durable before any effect after it is carried out: that is all a host has to promise.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tamis_lab.brokers.messages import Frame


@dataclass(frozen=True, slots=True)
class Persist:
    """Changes to the broker's durable map; a value of None removes the key. All of them or none."""

    changes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Send:
    """Try to send a frame to a neighbour; it may be lost."""

    neighbour: str
    frame: Frame


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Hand in `TimerFired(name)` at that time; replaces a timer of the same name."""

    name: str
    at: float


@dataclass(frozen=True, slots=True)
class Deliver:
    """Notify a client of an event: once per event, with all its subscriptions that match."""

    client: str
    number: int
    event: str
    type: str | None
    subscriptions: tuple[str, ...]
    origin: str = ""


@dataclass(frozen=True, slots=True)
class DeliverGap:
    """Tell a client that the notifications from `number` to `last` were not kept for it, and why."""

    client: str
    number: int
    last: int
    reason: str


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer a client's request; `error` says why it was refused."""

    client: str
    request: int
    error: str | None = None
    value: int | None = None


Effect = Persist | Send | SetTimer | Deliver | DeliverGap | Reply
