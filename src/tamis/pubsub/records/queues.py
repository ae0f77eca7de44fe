"""Queues: their limits, what is delivered into them, and how far they are written and read."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from json.encoder import encode_basestring

from tamis.pubsub.names import MOST_NAME_BYTES, is_name
from tamis.pubsub.records import fields as layout
from tamis.pubsub.records.events import Target, is_target_list
from tamis.pubsub.records.fields import Fields, are_pairs, is_seconds, write

LINK_BYTES = 1 << 30
LINK_KEEP_SECONDS = 7 * 86_400.0
ANY_LANE = "*"
"""In `Reading.expected`: lanes that are not named begin with this number. 0: with any, but for what is known
to have been dropped."""
_PLAIN_DELIVERY = re.compile(
    rb'\{"v":1,"n":([1-9][0-9]{0,14}),"e":\[((?:[1-9][0-9]{0,14},)*[1-9][0-9]{0,14})\],"b":([1-9][0-9]{0,14})\}'
)
"""A delivery as `plain_delivery` writes it."""
_SITE = rb'("[ !#-\[\]-~]{1,%d}",)' % MOST_NAME_BYTES
_DELIVERY_TO_ONE = re.compile(
    rb'\{"v":1,"n":([1-9][0-9]{0,14}),"e":\[((?:[1-9][0-9]{0,14},)*[1-9][0-9]{0,14})\],"b":([1-9][0-9]{0,14})'
    rb',"to":\[\[\[' + _SITE + rb"[1-9][0-9]{0,14}\]\](?:,\[\[\4[1-9][0-9]{0,14}\]\])*\]\}"
)
"""A delivery whose events are all on their way to one site: nearly all between neighbours."""


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """How much is kept for one subscriber.

    >>> QueueLimits.read(QueueLimits(most_bytes=1000).body()).most_bytes
    1000
    """

    most_bytes: int = 64 << 20
    """Bytes of events that wait; beyond, the lowest priority is dropped first, then the oldest."""
    keep_seconds: float = 7 * 86_400
    """An event that has waited so long is dropped."""
    replay_seconds: float = 3_600
    """So long an event can be replayed after it was read."""
    idle_seconds: float = 30 * 86_400
    """A subscriber that has not been there for so long is forgotten, with its subscriptions."""
    life: str = field(default="", compare=False, repr=False)
    """Another one for each time that the queue is made: it may have been removed in between."""

    def body(self) -> bytes:
        """The record."""
        return write(
            {
                "most_bytes": self.most_bytes,
                "keep_seconds": self.keep_seconds,
                "replay_seconds": self.replay_seconds,
                "idle_seconds": self.idle_seconds,
            },
            {"life": self.life},
        )

    @classmethod
    def read(cls, body: bytes) -> "QueueLimits":
        """Read a record."""
        fields = Fields(body, "queue")
        return cls(
            fields.number("most_bytes"),
            fields.take("keep_seconds", is_seconds),
            fields.take("replay_seconds", is_seconds),
            fields.take("idle_seconds", is_seconds),
            fields.text("life", ""),
        )


def delivery_to_one(first: int, events: Sequence[int], size: int, site: str, numbers: Sequence[int]) -> bytes:
    """The record of a delivery whose events are all on their way to one site, with these numbers.

    >>> delivery_to_one(1, (7, 9), 20, "rome", (4, 5))
    b'{"v":1,"n":1,"e":[7,9],"b":20,"to":[[["rome",4]],[["rome",5]]]}'
    """
    start = f"[[{encode_basestring(site)},"
    to = f"{start}{f']],{start}'.join(map(str, numbers))}]]"
    return f'{plain_delivery(first, events, size)[:-1].decode()},"to":[{to}]}}'.encode()


def plain_delivery(first: int, events: Sequence[int], size: int) -> bytes:
    """The record of a delivery without anything unusual; see `Delivery`.

    >>> plain_delivery(1, (7, 9), 20)
    b'{"v":1,"n":1,"e":[7,9],"b":20}'
    """
    return f'{{"v":{layout.WRITTEN},"n":{first},"e":[{",".join(map(str, events))}],"b":{size}}}'.encode()


@dataclass(frozen=True, slots=True)
class Delivery:
    """Some events of one partition for one subscriber, in their order.

    `first` numbers them, within subscriber, partition and priority, from 1: a missing number is a gap. The
    number of an event and the subscriber are the id of its delivery, whichever router wrote it.

    >>> Delivery.read(Delivery(1, (7, 9), size=20).body()).events
    (7, 9)
    """

    first: int
    events: tuple[int, ...]
    size: int = 0
    """How large these events are: the payload itself is stored once, in the stream of events."""
    unsure: tuple[int, ...] = ()
    """Those that go out because a subscription could not be read here: the subscriber decides."""
    copy: str | None = None
    """The projection whose copies the subscriber gets instead of the events."""
    targets: tuple[tuple[Target, ...], ...] = ()
    """Between sites: for each event, the sites that it is on its way to."""
    gaps: tuple[tuple[int, int], ...] = ()
    """Of what is no event but says that some are missing: its number, and for how many it stands."""
    rollbacks: tuple[int, ...] = ()
    """Those of them that say that a log was rolled back."""

    def body(self) -> bytes:
        """The record."""
        if not (self.unsure or self.copy or self.targets or self.gaps):
            return plain_delivery(self.first, self.events, self.size)
        if self.targets and not (self.unsure or self.copy or self.gaps or self.rollbacks):
            to = {target[0][0] for target in self.targets if len(target) == 1}
            if len(to) == 1 and all(len(target) == 1 for target in self.targets):
                numbers = [target[0][1] for target in self.targets]
                return delivery_to_one(self.first, self.events, self.size, to.pop(), numbers)
        return write(
            {"n": self.first, "e": self.events, "b": self.size},
            {"u": self.unsure, "c": self.copy, "to": self.targets, "g": self.gaps, "r": self.rollbacks},
        )

    @classmethod
    def read(cls, body: bytes) -> "Delivery":
        """Read a record."""
        plain = _PLAIN_DELIVERY.fullmatch(body)
        if plain is not None:  # nearly all, and there are many
            first, events, size = plain.groups()
            return cls(int(first), tuple([int(number) for number in events.split(b",")]), int(size))
        if (to_one := _DELIVERY_TO_ONE.fullmatch(body)) is not None:
            first, events, size, site = to_one.groups()
            numbers = tuple([int(number) for number in events.split(b",")])
            ends = body[to_one.start(4) + len(site) : -len(b"]]]}")].split(b"]],[[" + site)
            name = site[1:-2].decode()
            targets = tuple([((name, int(end)),) for end in ends])
            if len(targets) == len(numbers) and is_name(name):
                return cls(int(first), numbers, int(size), targets=targets)
        fields = Fields(body, "delivery")
        events = tuple(fields.numbers("e"))
        targets = fields.optional(
            "to",
            lambda value: (
                isinstance(value, list) and len(value) == len(events) and all(map(is_target_list, value))
            ),
        )
        return cls(
            fields.number("n"),
            events,
            fields.number("b", 0),
            tuple(fields.numbers("u", [])),
            fields.optional("c", lambda value: isinstance(value, str)),
            tuple([tuple([(site, number) for site, number in one]) for one in targets or ()]),
            tuple((number, count) for number, count in fields.take("g", are_pairs, [])),
            tuple(fields.numbers("r", [])),
        )


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a partition is routed, and by whom: position, lease and fence in one record.

    >>> Cursor.read(Cursor("r1", 12).body()).position
    12
    """

    router: str
    """Who has the lease; empty if nobody."""
    position: int
    """All events of the partition up to this number are routed."""
    done: str = ""
    """The events behind the position, up to `until`, are in the queues up to this one already."""
    time: int = 0
    """When the event at the position was stored."""
    mark: str = ""
    """A digest of the event at the position: another one there means that the log was rolled back."""
    sites: dict[str, int] = field(default_factory=dict)
    """How many events of this partition have left for each other site."""
    until: int = 0
    """See `done`; 0 is the event behind the position alone."""

    def body(self) -> bytes:
        """The record."""
        position = {"router": self.router, "position": self.position, "done": self.done}
        known = {"time": self.time, "mark": self.mark, "sites": self.sites}
        return write({**position, **known}, {"until": self.until})

    @classmethod
    def read(cls, body: bytes) -> "Cursor":
        """Read a record."""
        fields = Fields(body, "cursor")
        return cls(
            fields.text("router"),
            fields.number("position"),
            fields.text("done", ""),
            fields.number("time", 0),
            fields.text("mark", ""),
            fields.counts("sites"),
            fields.number("until", 0),
        )


@dataclass(frozen=True, slots=True)
class Reading:
    """How far a subscriber has read its queue.

    >>> Reading.read(Reading("c1", 5, 1, {"0.4": 8}).body()).expected
    {'0.4': 8}
    """

    client: str
    """Which client has the queue; a later one takes it over."""
    after: int = 0
    """The last record of the queue that was read to its end."""
    part: int = 0
    """How many events of the next record were read."""
    expected: dict[str, int] = field(default_factory=dict)
    """The next delivery number, by partition and priority."""
    is_replay: bool = False
    """An operator has set it: the client goes on from here."""
    part_of: int = 0
    """Which record `part` is of; 0 in records of releases that did not say, where it is the next one."""
    mark: str = ""
    """A digest of the last record that was read, to its end or in part: another one there means that the log
    was rolled back."""
    time: int = 0
    """When that record was stored: what was stored since then is new."""

    def body(self) -> bytes:
        """The record."""
        position = {"after": self.after, "part": self.part, "expected": self.expected}
        known = {"mark": self.mark, "time": self.time}
        return write(
            {"client": self.client, **position}, {"replay": self.is_replay, "of": self.part_of, **known}
        )

    @property
    def looked_into(self) -> int:
        """The last record that was read, to its end or in part."""
        return self.part_of or self.after

    @classmethod
    def read(cls, body: bytes) -> "Reading":
        """Read a record."""
        fields = Fields(body, "reading position")
        return cls(
            fields.text("client"),
            fields.number("after"),
            fields.number("part", 0),
            fields.counts("expected"),
            fields.optional("replay", lambda value: isinstance(value, bool)) or False,
            fields.number("of", 0),
            fields.text("mark", ""),
            fields.number("time", 0),
        )


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An event that could not be processed, and why.

    >>> DeadLetter.read(DeadLetter(7, "no JSON").body()).reason
    'no JSON'
    """

    event: int
    reason: str

    def body(self) -> bytes:
        """The record."""
        return write({"event": self.event, "reason": self.reason[:1_000]})

    @classmethod
    def read(cls, body: bytes) -> "DeadLetter":
        """Read a record."""
        fields = Fields(body, "dead letter")
        return cls(fields.number("event"), fields.text("reason"))
