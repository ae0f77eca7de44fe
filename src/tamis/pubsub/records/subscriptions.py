"""What subscribers want, what publishers advertise, and what clients are granted."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tamis.pubsub.records.fields import Fields, is_number, is_seconds, is_text_list, write
from tamis.pubsub.records.queues import QueueLimits

HIGHEST_PRIORITY = 9
DEFAULT_PRIORITY = 4
LAST_MOMENT = 253_402_300_800_000_000
"""The year 10000, in UTC microseconds."""
_PLAIN_SUBSCRIPTION = re.compile(r'\{"v":1,"expression":"([ !#-\[\]-~]*)","priority":([0-9])\}')
"""A subscription as `body` writes it, of ASCII characters without escapes."""


def plain_subscription(body: bytes) -> tuple[str, str] | None:
    """Expression and priority of a subscription without anything else; None if it must be read as a whole.

    >>> plain_subscription(Subscription("price < 15").body())
    ('price < 15', '4')
    """
    plain = _PLAIN_SUBSCRIPTION.fullmatch(body.decode("latin-1"))  # other bytes than ASCII do not fit
    return None if plain is None else (plain[1], plain[2])


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a subscriber wants.

    >>> Subscription.read(Subscription("price < 15").body()).priority
    4
    """

    expression: str
    priority: int = DEFAULT_PRIORITY
    expires: int | None = None
    """UTC microseconds from which on it matches nothing."""

    def body(self) -> bytes:
        """The record."""
        fields: dict[str, Any] = {"expression": self.expression, "priority": self.priority}
        if self.expires is not None:
            fields["expires"] = self.expires
        return write(fields)

    @classmethod
    def read(cls, body: bytes) -> "Subscription":
        """Read a record."""
        if (plain := plain_subscription(body)) is not None:
            return cls(plain[0], int(plain[1]))
        fields = Fields(body, "subscription")
        return cls(
            fields.text("expression"),
            fields.take("priority", is_priority, DEFAULT_PRIORITY),
            fields.optional("expires", lambda value: is_number(value) and value < LAST_MOMENT),
        )


@dataclass(frozen=True, slots=True)
class Advertisement:
    """What a publisher says of its future events: each satisfies one of its advertisements.

    >>> Advertisement.read(Advertisement("price > 10").body()).expression
    'price > 10'
    """

    expression: str

    def body(self) -> bytes:
        """The record."""
        return write({"expression": self.expression})

    @classmethod
    def read(cls, body: bytes) -> "Advertisement":
        """Read a record."""
        return cls(Fields(body, "advertisement").text("expression"))


def is_priority(value: object) -> bool:
    """Whether a value is a priority: 0 (dropped first) to 9.

    >>> is_priority(9), is_priority(10), is_priority(float("nan")), is_priority(True)
    (True, False, False, False)
    """
    return type(value) is int and 0 <= value <= HIGHEST_PRIORITY


@dataclass(frozen=True, slots=True)
class Grant:
    """What a client may have: events that pass a filter, and of those some attributes.

    >>> Grant.read(Grant(attributes=("price",)).body()).attributes
    ('price',)
    """

    filter: str | None = None
    """Only events that satisfy it are delivered."""
    attributes: tuple[str, ...] | None = None
    """Only these are delivered, and only these may be named in subscriptions; None is all."""
    subscriptions: int | None = None
    """How many subscriptions there may be."""
    most_bytes: int | None = None
    """What is kept in its queue at most, whatever limits the client gives it."""
    keep_seconds: float | None = None
    """For so long at most, the same."""

    def body(self) -> bytes:
        """The record."""
        seen = {"filter": self.filter, "attributes": self.attributes}
        most = {"subscriptions": self.subscriptions, "most_bytes": self.most_bytes}
        return write({**seen, **most, "keep_seconds": self.keep_seconds})

    def capped(self, limits: QueueLimits) -> QueueLimits:
        """The limits of a queue, within what is granted.

        >>> Grant(most_bytes=10).capped(QueueLimits()).most_bytes
        10
        """
        most = limits.most_bytes if self.most_bytes is None else min(limits.most_bytes, self.most_bytes)
        keep = limits.keep_seconds if self.keep_seconds is None else self.keep_seconds
        return replace(
            limits,
            most_bytes=most,
            keep_seconds=min(limits.keep_seconds, keep),
            replay_seconds=min(limits.replay_seconds, keep),
        )

    @classmethod
    def read(cls, body: bytes) -> "Grant":
        """Read a record."""
        fields = Fields(body, "grant")
        attributes: Sequence[str] | None = fields.optional("attributes", is_text_list)
        return cls(
            fields.optional("filter", lambda value: isinstance(value, str)),
            None if attributes is None else tuple(attributes),
            fields.optional("subscriptions", is_number),
            fields.optional("most_bytes", is_number),
            fields.optional("keep_seconds", is_seconds),
        )
