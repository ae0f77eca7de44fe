"""Events: a header, and the JSON of the event on a second line."""

import json
import json.encoder
import re
from dataclasses import dataclass
from typing import Any

from tamis.pubsub.records import fields as layout
from tamis.pubsub.records.fields import Fields, is_number, write

DEFAULT_HOPS = 16
LINK, ROLLBACK = "link", "rollback"
"""Why events are missing that were on their way."""
Target = tuple[str, int]
"""A site that an event is on its way to, and its number among the events from its origin to that site."""


def is_target_list(value: object) -> bool:
    """Whether a value is a list of targets.

    >>> is_target_list([["rome", 3]]), is_target_list([["rome"]])
    (True, False)
    """
    return isinstance(value, list) and all(
        isinstance(one, list) and len(one) == 2 and isinstance(one[0], str) and is_number(one[1])
        for one in value
    )


_TEXT, _NUMBER = rb'"([ !#-\[\]-~]*)"', rb"(0|[1-9][0-9]{0,14})"
_TARGET = re.compile(rb"\[" + _TEXT + rb"," + _NUMBER + rb"\]")
_ONE = rb'\["[ !#-\[\]-~]*",(?:0|[1-9][0-9]{0,14})\]'
_TRAVELLED = re.compile(
    rb'\{"v":1,"p":%s,"o":%s,"l":%s,"n":%s,"h":%s,"to":\[((?:%s(?:,%s)*)?)\]\}'
    % (_TEXT, _TEXT, _TEXT, _NUMBER, _NUMBER, _ONE, _ONE)
)
"""The header of an event from another site as `body` writes it, of ASCII characters without escapes."""
_quoted = json.encoder.encode_basestring


@dataclass(frozen=True, slots=True)
class EventHeader:
    """What is known of an event besides its attributes.

    Once it has left the site where it was published it also carries its `origin`: site, life of that site's
    log, and partition; how many links it may still pass; and the sites that it is on its way to.

    >>> EventHeader.read(EventHeader("bob").body()).publisher
    'bob'
    """

    publisher: str
    origin: str | None = None
    life: str = ""
    partition: int = 0
    hops: int = DEFAULT_HOPS
    targets: tuple[Target, ...] = ()
    missing: int = 0
    """This is no event: so many were dropped on their way here, and every subscriber is told."""
    reason: str = LINK
    """Why they are missing: `link`; or `rollback`, and then nobody knows how many."""

    def body(self) -> bytes:
        """The header line."""
        if self.origin is not None and not self.missing and self.reason == LINK:  # nearly all that travel
            publisher, origin, life = (_quoted(text) for text in (self.publisher, self.origin, self.life))
            targets = ",".join([f"[{_quoted(site)},{number}]" for site, number in self.targets])
            return (
                f'{{"v":{layout.WRITTEN},"p":{publisher},"o":{origin},"l":{life},"n":{self.partition},'
                f'"h":{self.hops},"to":[{targets}]}}'
            ).encode("utf-8", "surrogatepass")
        travelled: dict[str, Any] = {}
        if self.origin is not None:
            travelled = {"o": self.origin, "l": self.life, "n": self.partition, "h": self.hops}
            travelled["to"] = self.targets
        reason = "" if self.reason == LINK else self.reason
        return write({"p": self.publisher, **travelled}, {"g": self.missing, "w": reason})

    @classmethod
    def read(cls, body: bytes) -> "EventHeader":
        """Read a header line."""
        if (plain := _TRAVELLED.fullmatch(body)) is not None:
            publisher, origin, life, partition, hops, targets = plain.groups()
            return cls(
                publisher.decode(),
                origin.decode(),
                life.decode(),
                int(partition),
                int(hops),
                tuple([(site.decode(), int(number)) for site, number in _TARGET.findall(targets)]),
            )
        fields = Fields(body, "header of an event")
        return cls(
            fields.text("p"),
            fields.optional("o", lambda value: isinstance(value, str)),
            fields.text("l", ""),
            fields.number("n", 0),
            fields.number("h", DEFAULT_HOPS),
            tuple((site, number) for site, number in fields.take("to", is_target_list, [])),
            fields.number("g", 0),
            fields.text("w", LINK),
        )


def event_body(header: bytes, event: bytes) -> bytes:
    """An event's record: its header, and its JSON on one line.

    >>> event_body(b"{}", b'{"x":1}')
    b'{}\\n{"x":1}'
    """
    # A line break inside JSON can only be white space: strings have none.
    return header + b"\n" + event.replace(b"\n", b" ").replace(b"\r", b" ")


def split_event(body: bytes) -> tuple[bytes, bytes]:
    """Header and JSON of an event's record.

    >>> split_event(b'{}\\n{"x":1}')
    (b'{}', b'{"x":1}')
    """
    header, _, event = body.partition(b"\n")
    return header, event
