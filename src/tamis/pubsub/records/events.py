"""Events: a header, and the JSON of the event on a second line."""

import json
import json.encoder
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tamis.pubsub.names import MOST_NAME_BYTES, is_name
from tamis.pubsub.records import fields as layout
from tamis.pubsub.records.fields import Fields, is_number, write

DEFAULT_HOPS = 16
LINK, ROLLBACK = "link", "rollback"
"""Why events are missing that were on their way."""
Target = tuple[str, int]
"""A site that an event is on its way to, and its number among the events from its origin to that site."""
Place = tuple[int, int]
"""Where an event lies in the log of its origin: its number there, and when it was stored."""


_is_name = lru_cache(maxsize=10_000)(is_name)
"""Of short texts: there are few sites, and each is named with every event."""


def _is_site(value: object) -> bool:
    return type(value) is str and len(value) <= MOST_NAME_BYTES and _is_name(value)


def is_target_list(value: object) -> bool:
    """Whether a value is a list of targets.

    >>> is_target_list([["rome", 3]]), is_target_list([["rome"]])
    (True, False)
    """
    return isinstance(value, list) and all(
        type(one) is list and len(one) == 2 and _is_site(one[0]) and is_number(one[1]) for one in value
    )


MOST_LIFE = 256
"""Characters that tell the lives of an origin apart."""
_CHARACTER, _NUMBER = rb"[ !#-\[\]-~]", rb"(0|[1-9][0-9]{0,14})"
_TEXT = rb'"(%s{0,%d})"' % (_CHARACTER, MOST_NAME_BYTES)
_NAME = rb'"(%s{1,%d})"' % (_CHARACTER, MOST_NAME_BYTES)
_LIFE = rb'"(%s{0,%d})"' % (_CHARACTER, MOST_LIFE)
_TARGET = re.compile(rb"\[" + _NAME + rb"," + _NUMBER + rb"\]")
_ONE = rb'\["%s{1,%d}",(?:0|[1-9][0-9]{0,14})\]' % (_CHARACTER, MOST_NAME_BYTES)
_START = re.compile(rb'\{"v":1,"p":%s,"o":%s,"l":%s,"n":%s,"h":%s' % (_TEXT, _NAME, _LIFE, _NUMBER, _NUMBER))
_TO = b',"to":['
_TARGETS = re.compile(
    rb'((?:%s(?:,%s)*)?)\](?:,"at":\[([1-9][0-9]{0,14}),([1-8][0-9]{0,15})\])?\}' % (_ONE, _ONE)
)
"""The header of an event from another site as `body` writes it, of ASCII characters without escapes: what is
the same for all of a publisher's events, and the sites that one is on its way to."""
_MOST_START = 1_000
_quoted = json.encoder.encode_basestring


@dataclass(slots=True)
class EventHeader:
    """What is known of an event besides its attributes. Nobody changes one; to say so costs time for each.

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
    place: Place | None = None
    """Of an event that goes on to further sites."""

    def body(self) -> bytes:
        """The header line."""
        if self.origin is not None and not self.missing and self.reason == LINK:  # nearly all that travel
            return self.start() + to_targets(self.targets, self.place)
        travelled: dict[str, Any] = {}
        if self.origin is not None:
            travelled = {"o": self.origin, "l": self.life, "n": self.partition, "h": self.hops}
            travelled["to"] = self.targets
        reason = "" if self.reason == LINK else self.reason
        return write({"p": self.publisher, **travelled}, {"g": self.missing, "w": reason, "at": self.place})

    def start(self) -> bytes:
        """The header line of an event that travels, up to the sites that it is on its way to.

        >>> EventHeader("bob", "rome").start() + to_targets([("bonn", 7)]) == EventHeader(
        ...     "bob", "rome", targets=(("bonn", 7),)
        ... ).body()
        True
        """
        publisher, origin, life = (_quoted(text) for text in (self.publisher, self.origin or "", self.life))
        return (
            f'{{"v":{layout.WRITTEN},"p":{publisher},"o":{origin},"l":{life},"n":{self.partition},"h":{self.hops}'
        ).encode("utf-8", "surrogatepass")

    @classmethod
    def read(cls, body: bytes) -> "EventHeader":
        """Read a header line."""
        start, found, rest = body.partition(_TO)
        is_usual = found and len(start) < _MOST_START  # what is longer is not kept
        if is_usual and (known := _started(start)) is not None and (targets := _TARGETS.fullmatch(rest)):
            return cls(
                *known,
                tuple([(site.decode(), int(number)) for site, number in _TARGET.findall(targets[1])]),
                place=(int(targets[2]), int(targets[3])) if targets[2] else None,
            )
        fields = Fields(body, "header of an event")
        return cls(
            fields.take("p", lambda value: value == "" or is_name(value)),
            fields.optional("o", is_name),
            fields.take("l", _is_life, ""),
            fields.number("n", 0),
            fields.number("h", DEFAULT_HOPS),
            tuple((site, number) for site, number in fields.take("to", is_target_list, [])),
            fields.number("g", 0),
            fields.text("w", LINK),
            tuple(place) if (place := fields.optional("at", _is_place)) is not None else None,
        )


def to_targets(targets: Iterable[Target], place: Place | None = None) -> bytes:
    """The end of the header line of an event that travels: see `EventHeader.start`.

    >>> to_targets([("rome", 3)]), to_targets([("rome", 3)], (20, 500))
    (b',"to":[["rome",3]]}', b',"to":[["rome",3]],"at":[20,500]}')
    """
    at = "" if place is None else f',"at":[{place[0]},{place[1]}]'
    sites = ",".join([f"[{_quoted(site)},{number}]" for site, number in targets])
    return f',"to":[{sites}]{at}}}'.encode()


@lru_cache(maxsize=1_000)
def _started(start: bytes) -> tuple[str, str, str, int, int] | None:
    """Publisher, origin, life, partition and hops of a header that begins so; None if it is no usual one."""
    plain = _START.fullmatch(start)
    if plain is None:
        return None
    publisher, origin, life, partition, hops = plain.groups()
    return publisher.decode(), origin.decode(), life.decode(), int(partition), int(hops)


def _is_place(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(is_number, value))


def _is_life(value: object) -> bool:
    return isinstance(value, str) and value.isprintable() and len(value) <= MOST_LIFE


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
