"""What is stored in a log, with its version; and the only place that reads and writes it.

Every record is a JSON object with its version `v`, except that the JSON of an event follows its own header on
a second line, so that it can be matched where it lies. A reader takes every version up to its own. What it
cannot read is a `RecordError`, whatever the bytes; its callers say what then counts.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tamis.errors import TamisError
from tamis.pubsub.log.contract import Record

VERSION = 1
"""Records of this version and of all before it can be read."""
WRITTEN = 1
"""The version in which records are written. It follows VERSION one release later, so that routers of the last
release, which read up to their own VERSION, work beside those of this one while a site is upgraded."""
HIGHEST_PRIORITY = 9
DEFAULT_PRIORITY = 4
MOST_NUMBER = 1 << 53
DEFAULT_HOPS = 16
LINK_BYTES = 1 << 30
LINK_KEEP_SECONDS = 7 * 86_400.0
LAST_MOMENT = 253_402_300_800_000_000
"""The year 10000, in UTC microseconds."""


class RecordError(TamisError, ValueError):
    """A stored record cannot be read: it is damaged, hostile, or of a later version.

    >>> Reading.read(b"[]")
    Traceback (most recent call last):
    ...
    tamis.pubsub.records.RecordError: a reading position is a JSON object with a version, not b'[]'
    """


def write(fields: Mapping[str, Any]) -> bytes:
    """A record's bytes.

    >>> write({"after": 3})
    b'{"v":1,"after":3}'
    """
    return json.dumps({"v": WRITTEN, **fields}, separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )


class Fields:
    """The fields of a record as they are taken out of it, each checked.

    >>> fields = Fields(b'{"v": 1, "after": 3}', "position")
    >>> fields.number("after")
    3
    >>> fields.text("router")
    Traceback (most recent call last):
    ...
    tamis.pubsub.records.RecordError: the position has no good `router`: None
    """

    def __init__(self, body: bytes, what: str) -> None:
        """Parse a body; `what` is for errors."""
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            found = None
        version = found.get("v") if isinstance(found, dict) else None
        if not isinstance(found, dict) or type(version) is not int or version < 1:
            raise RecordError(f"a {what} is a JSON object with a version, not {body[:60]!r}")
        if version > VERSION:
            raise RecordError(
                f"this {what} has version {version}, and this release reads up to {VERSION}: upgrade it"
            )
        self._found: dict[str, Any] = found
        self._what = what

    def take(self, name: str, good: Callable[[Any], bool], default: Any = None) -> Any:
        """A field that is as it should be, or is not there and has a default."""
        value = self._found.get(name, default)
        if value is default and default is not None:
            return value
        if not good(value):
            raise RecordError(f"the {self._what} has no good `{name}`: {str(value)[:60]}")
        return value

    def number(self, name: str, default: int | None = None) -> int:
        """A whole number that is not negative."""
        return int(self.take(name, is_number, default))

    def text(self, name: str, default: str | None = None) -> str:
        """A text."""
        return str(self.take(name, lambda value: isinstance(value, str), default))

    def numbers(self, name: str, default: list[int] | None = None) -> list[int]:
        """A list of whole numbers."""
        return list(
            self.take(name, lambda value: isinstance(value, list) and all(map(is_number, value)), default)
        )

    def optional(self, name: str, good: Callable[[Any], bool]) -> Any:
        """A field that may be missing or null."""
        return None if self._found.get(name) is None else self.take(name, good)

    def counts(self, name: str) -> dict[str, int]:
        """A map of text to numbers; empty if it is missing."""
        found = self.optional(
            name, lambda value: isinstance(value, dict) and all(map(is_number, value.values()))
        )
        return dict(found or {})


def is_number(value: object) -> bool:
    """Whether a value is a whole number that is not negative and that JSON keeps.

    >>> is_number(3), is_number(True), is_number(-1), is_number(1e3)
    (True, False, False, False)
    """
    return type(value) is int and 0 <= value <= MOST_NUMBER


def number_of(body: bytes) -> int:
    """The number that says what is newer, even of a record of a later version.

    >>> number_of(b'{"v":99,"k":7}'), number_of(b"garbage")
    (7, 0)
    """
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return 0
    number = found.get("k") if isinstance(found, dict) else None
    return number if isinstance(number, int) and is_number(number) else 0


def is_text_list(value: object) -> bool:
    """Whether a value is a list of texts.

    >>> is_text_list(["a"]), is_text_list("a")
    (True, False)
    """
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


# --- events --------------------------------------------------------------------------------------------


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

    def body(self) -> bytes:
        """The header line."""
        fields: dict[str, Any] = {"p": self.publisher}
        if self.missing:
            fields["g"] = self.missing
        if self.origin is not None:
            fields |= {"o": self.origin, "l": self.life, "n": self.partition, "h": self.hops}
            fields["to"] = [list(target) for target in self.targets]
        return write(fields)

    @classmethod
    def read(cls, body: bytes) -> "EventHeader":
        """Read a header line."""
        fields = Fields(body, "header of an event")
        return cls(
            fields.text("p"),
            fields.optional("o", lambda value: isinstance(value, str)),
            fields.text("l", ""),
            fields.number("n", 0),
            fields.number("h", DEFAULT_HOPS),
            tuple((site, number) for site, number in fields.take("to", is_target_list, [])),
            fields.number("g", 0),
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


# --- subscriptions and queues --------------------------------------------------------------------------


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

    def body(self) -> bytes:
        """The record."""
        return write(
            {
                "most_bytes": self.most_bytes,
                "keep_seconds": self.keep_seconds,
                "replay_seconds": self.replay_seconds,
                "idle_seconds": self.idle_seconds,
            }
        )

    @classmethod
    def read(cls, body: bytes) -> "QueueLimits":
        """Read a record."""
        fields = Fields(body, "queue")
        return cls(
            fields.number("most_bytes"),
            *(fields.take(name, is_seconds) for name in ("keep_seconds", "replay_seconds", "idle_seconds")),
        )


def is_seconds(value: object) -> bool:
    """Whether a value is a duration: finite and not negative.

    >>> is_seconds(0.5), is_seconds(float("nan")), is_seconds(-1)
    (True, False, False)
    """
    return type(value) in (int, float) and math.isfinite(value) and 0 <= value <= 1e12  # type: ignore[operator, arg-type]


_PLAIN_DELIVERY = re.compile(
    rb'\{"v":1,"n":([1-9][0-9]{0,14}),"e":\[((?:[1-9][0-9]{0,14},)*[1-9][0-9]{0,14})\],"b":([1-9][0-9]{0,14})\}'
)
"""A delivery as `plain_delivery` writes it."""


def plain_delivery(first: int, events: Sequence[int], size: int) -> bytes:
    """The record of a delivery without anything unusual; see `Delivery`.

    >>> plain_delivery(1, (7, 9), 20)
    b'{"v":1,"n":1,"e":[7,9],"b":20}'
    """
    return f'{{"v":{WRITTEN},"n":{first},"e":[{",".join(map(str, events))}],"b":{size}}}'.encode()


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

    def body(self) -> bytes:
        """The record."""
        if not (self.unsure or self.copy or self.targets):
            return plain_delivery(self.first, self.events, self.size)
        fields: dict[str, Any] = {"n": self.first, "e": list(self.events), "b": self.size}
        if self.unsure:
            fields["u"] = list(self.unsure)
        if self.copy is not None:
            fields["c"] = self.copy
        if self.targets:
            fields["to"] = [[list(target) for target in targets] for targets in self.targets]
        return write(fields)

    @classmethod
    def read(cls, body: bytes) -> "Delivery":
        """Read a record."""
        plain = _PLAIN_DELIVERY.fullmatch(body)
        if plain is not None:  # nearly all, and there are many
            first, events, size = plain.groups()
            return cls(int(first), tuple([int(number) for number in events.split(b",")]), int(size))
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
            tuple(tuple((site, number) for site, number in one) for one in targets or ()),
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
        fields: dict[str, Any] = {
            "router": self.router,
            "position": self.position,
            "done": self.done,
            "time": self.time,
            "mark": self.mark,
            "sites": self.sites,
        }
        return write(fields | {"until": self.until} if self.until else fields)

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

    def body(self) -> bytes:
        """The record."""
        fields: dict[str, Any] = {
            "client": self.client,
            "after": self.after,
            "part": self.part,
            "expected": self.expected,
        }
        if self.is_replay:
            fields["replay"] = True
        if self.part_of:
            fields["of"] = self.part_of
        return write(fields)

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
        )


@dataclass(frozen=True, slots=True)
class Drop:
    """Deliveries of one subscriber, partition and priority that were dropped.

    >>> Drop("bytes", "0.4", 3, 9).count
    7
    """

    reason: str
    """`bytes`, `age` or `forgotten`."""
    lane: str
    first: int
    last: int

    @property
    def count(self) -> int:
        """How many."""
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class Drops:
    """What happened to what a subscriber did not get.

    >>> drops = Drops().and_drop(Drop("bytes", "0.4", 1, 3)).and_drop(Drop("bytes", "0.4", 4, 4))
    >>> drops.totals, len(drops.recent)
    ({'bytes': 4}, 1)
    """

    totals: dict[str, int] = field(default_factory=dict)
    recent: tuple[Drop, ...] = ()
    next: dict[str, int] = field(default_factory=dict)
    """The next delivery number of lanes that are empty."""
    untold: dict[str, int] = field(default_factory=dict)
    """Of a neighbour's queue: how many dropped events were on their way to each site, which was not told."""
    telling: dict[str, int] = field(default_factory=dict)
    """Those that the sites are just being told of."""
    told: dict[str, int] = field(default_factory=dict)
    """How many gaps each site was told of, this one with them."""

    def and_drop(self, drop: Drop) -> "Drops":
        """These and another one."""
        if any(
            known.lane == drop.lane and known.first <= drop.first and drop.last <= known.last
            for known in self.recent
        ):
            return self  # somebody else has written it down
        totals = {**self.totals, drop.reason: self.totals.get(drop.reason, 0) + drop.count}
        recent = list(self.recent)
        for place, known in enumerate(recent):
            if (known.reason, known.lane, known.last + 1) == (drop.reason, drop.lane, drop.first):
                recent[place] = Drop(drop.reason, drop.lane, known.first, drop.last)
                break
        else:
            recent.append(drop)
        return replace(self, totals=totals, recent=tuple(recent[-MOST_RECENT_DROPS:]))

    def run(self, lane: str, number: int) -> tuple[str, int]:
        """Why a delivery is missing, and the last one after it for which that holds.

        >>> Drops().and_drop(Drop("age", "0.4", 3, 9)).run("0.4", 4)
        ('age', 9)
        """
        for drop in self.recent:
            if drop.lane == lane and drop.first <= number <= drop.last:
                return drop.reason, drop.last
        later = [drop.first for drop in self.recent if drop.lane == lane and drop.first > number]
        return "lost", min(later) - 1 if later else MOST_NUMBER

    def body(self) -> bytes:
        """The record."""
        recent = [[drop.reason, drop.lane, drop.first, drop.last] for drop in self.recent]
        behind = {"untold": self.untold, "telling": self.telling, "told": self.told}
        sites = {name: counts for name, counts in behind.items() if counts}
        return write({"totals": self.totals, "recent": recent, "next": self.next, **sites})

    @classmethod
    def read(cls, body: bytes) -> "Drops":
        """Read a record."""
        fields = Fields(body, "list of what was dropped")

        def good(value: Any) -> bool:
            return isinstance(value, list) and all(
                isinstance(row, list)
                and len(row) == 4
                and is_text_list(row[:2])
                and all(map(is_number, row[2:]))
                for row in value
            )

        recent = tuple(Drop(*row) for row in fields.take("recent", good, []))
        counts = {name: fields.counts(name) for name in ("totals", "next", "untold", "telling", "told")}
        return cls(recent=recent, **counts)


MOST_RECENT_DROPS = 200


def read_drops(record: Record | None) -> Drops:
    """What was dropped; nothing, if there is no record or it cannot be read.

    >>> read_drops(None).totals
    {}
    """
    try:
        return Drops.read(record.body) if record is not None and record.body else Drops()
    except RecordError:
        return Drops()


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


@dataclass(frozen=True, slots=True)
class Settings:
    """What is fixed with the log.

    >>> Settings.read(Settings("paris", 8).body()).partitions
    8
    """

    site: str
    partitions: int

    def body(self) -> bytes:
        """The record."""
        return write({"site": self.site, "partitions": self.partitions})

    @classmethod
    def read(cls, body: bytes) -> "Settings":
        """Read a record."""
        fields = Fields(body, "site's settings")
        return cls(
            fields.text("site"),
            fields.take("partitions", lambda value: is_number(value) and 1 <= value <= 256),
        )


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

    def body(self) -> bytes:
        """The record."""
        attributes = None if self.attributes is None else list(self.attributes)
        return write({"filter": self.filter, "attributes": attributes, "subscriptions": self.subscriptions})

    @classmethod
    def read(cls, body: bytes) -> "Grant":
        """Read a record."""
        fields = Fields(body, "grant")
        attributes: Sequence[str] | None = fields.optional("attributes", is_text_list)
        return cls(
            fields.optional("filter", lambda value: isinstance(value, str)),
            None if attributes is None else tuple(attributes),
            fields.optional("subscriptions", is_number),
        )
