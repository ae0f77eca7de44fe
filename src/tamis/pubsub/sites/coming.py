"""The events of a neighbour's queue as they come: what their headers say, and how many fit into an append."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from tamis.pubsub import keys
from tamis.pubsub.log.contract import MOST_ENTRIES, Record
from tamis.pubsub.names import token
from tamis.pubsub.records import EventHeader, Place, RecordError, Target, split_event

MOST_HEADERS = 1_000
OTHER_ENTRIES = 5
"""In an append of a link, besides events and what has come: the position, two gaps, and a rollback with its
own record."""


class Came(NamedTuple):
    """What is the same for all events with one header, but for the sites that each is on its way to."""

    header: EventHeader
    """As it left the neighbour."""
    origin: str
    """Site, life and partition."""
    partition: str
    """Site and partition."""
    topic: str
    """Where it is stored here."""
    hops: int
    """The links that it may pass after this one."""
    start: bytes
    """How its header begins here."""
    for_here: EventHeader
    """Its header if it goes no further. The number for this site is left out: it has served its purpose."""


class Coming(NamedTuple):
    """An event of a neighbour's queue."""

    came: Came | None
    """None if it cannot be read."""
    event: bytes
    place: Place | None
    targets: tuple[Target, ...]


@dataclass(slots=True)
class Alike:
    """Events as nearly all are: of one partition of the neighbour, for this site alone, numbered in a row."""

    cames: list[Came]
    events: list[bytes]
    places: list[Place]
    first: int
    """The number of the first among those for this site."""

    def __len__(self) -> int:
        """How many there are."""
        return len(self.events)

    def each(self, here: str) -> Iterator[Coming]:
        """The same events one by one, for the site `here`."""
        columns = zip(self.cames, self.events, self.places, strict=True)
        for number, (came, event, place) in enumerate(columns, self.first):
            yield Coming(came, event, place, ((here, number),))


class Headers:
    """Reads the headers of events. Those of one publisher are alike, so what they say is remembered."""

    def __init__(self, neighbour: str, here: str, partitions: int, hops: int) -> None:
        """`hops` are the links that an event may pass, whatever a neighbour says."""
        self._neighbour, self._here = neighbour, here
        self._partitions, self._hops = partitions, hops
        self._plain: dict[tuple[bytes, str, str], Came] = {}
        self._starts: dict[tuple[str, str | None, str, int, int], Came] = {}

    def read(self, record: Record, life: str, targets: tuple[Target, ...]) -> Coming:
        """An event as it leaves the site where it was published, or one that travels."""
        text, event = split_event(record.body)
        key = (text, record.topic, life)
        if (known := self._plain.get(key)) is not None:  # those of one publisher are all the same
            return Coming(known, event, (record.seq, record.time), targets)
        try:
            header = EventHeader.read(text)
        except RecordError:
            return Coming(None, event, None, targets)
        if header.origin is not None:
            came = self._came_of(header) if keys.is_of_router(record.detail) else None
            return Coming(came, event, header.place, targets)
        if (partition := keys.partition_in(record.topic)) is None or header.missing:
            return Coming(None, event, None, targets)  # nothing that a publisher there may write
        came = self._came_of(
            replace(header, origin=self._neighbour, life=life, partition=partition, hops=self._hops)
        )
        if len(self._plain) >= MOST_HEADERS:
            self._plain.clear()
        self._plain[key] = came
        return Coming(came, event, (record.seq, record.time), targets)

    def read_alike(
        self, records: Sequence[Record | None], life: str, targets: Sequence[tuple[Target, ...]]
    ) -> Alike | None:
        """Many events at once, with what is the same for all looked at once; None if any is not alike."""
        if not records or len(targets) != len(records) or len(targets[0]) != 1:
            return None
        here, first = targets[0][0]
        in_a_row = range(first, first + len(targets))
        if here != self._here or list(targets) != [((here, number),) for number in in_a_row]:
            return None
        cames: list[Came] = []
        events: list[bytes] = []
        places: list[Place] = []
        came: Came | None = None
        text_before, topic_before = b"", ""
        for record in records:
            if record is None:
                return None
            number, topic, _, time, body = record
            text, _, event = body.partition(b"\n")
            if came is None or text != text_before or topic != topic_before:
                before, came = came, self._published(record, text, life)
                if came is None or came.header.hops == 0:
                    return None
                if before is not None and before.partition != came.partition:
                    return None
                text_before, topic_before = text, topic
            cames.append(came)
            events.append(event)
            places.append((number, time))
        return Alike(cames, events, places, first)

    def _published(self, record: Record, text: bytes, life: str) -> Came | None:
        """What is said of an event that was published at the neighbour; None if it is no such event."""
        key = (text, record.topic, life)
        if key not in self._plain:
            self.read(record, life, ())
        return self._plain.get(key)

    def _came_of(self, header: EventHeader) -> Came:
        """What is the same for many events."""
        key = (header.publisher, header.origin, header.life, header.partition, header.hops)
        if header.missing or (known := self._starts.get(key)) is None:
            if len(self._starts) >= MOST_HEADERS:
                self._starts.clear()
            hops = min(header.hops, self._hops) - 1  # whatever a neighbour says
            topic = keys.partition_topic(keys.partition_of(header.publisher, self._partitions))
            for_here = replace(header, hops=hops, targets=((self._here, 0),), place=None)
            partition = f"{token(header.origin or '')}.{header.partition}"
            known = Came(header, origin_of(header), partition, topic, hops, for_here.start(), for_here)
            if not header.missing:
                self._starts[key] = known
        return known


def fitting(coming: list[Coming | None]) -> list[Coming | None]:
    """The first of them, as many as an append has room for with what has come of their origins."""
    room = MOST_ENTRIES - OTHER_ENTRIES
    if len(coming) + 2 * len({one.came.origin for one in coming if one and one.came}) <= room:
        return coming
    origins: set[str] = set()
    for count, one in enumerate(coming):
        if one is not None and one.came is not None:
            origins.add(one.came.origin)
        if count + 1 + 2 * len(origins) > room:
            return coming[:count]
    return coming


def origin_of(header: EventHeader) -> str:
    """What numbers are told apart by: a partition of a site, in one life of its log."""
    return _origin_key(header.origin, header.life, header.partition)


@lru_cache(maxsize=1_000)
def _origin_key(site: str | None, life: str, partition: int) -> str:
    return f"{token(site or '')}.{token(life) or '-'}.{partition}"
