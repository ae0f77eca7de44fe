"""Events that a link of this process has just stored: its router need not read them from the log again.

An append has consecutive numbers. So whoever wrote it knows every record from its first to its last; what
lies before it, only the log knows. A router reads up to the first of these events and takes the others from
here. It also looks at the last: that one's time becomes part of its position, and the log shows that it still
has them.

          position            first                             last
    log  ────●──────────────────●─────────────────────────────────●───────────▶
               read in order         taken from here
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tamis.pubsub.records import EventHeader

MOST_BYTES = 32 << 20
"""Beyond this, the oldest are left to the log."""
EVENT_BYTES, HEADER_BYTES, TARGET_BYTES, RUN_BYTES = 220, 140, 150, 700
"""What Python needs for the objects of an event, of its header, of each site that it is on its way to, and of
a run."""
MOST_JOINED = 10_000


class Arrival(NamedTuple):
    """An event as it is stored, and what the link that stored it knows of it."""

    seq: int
    detail: str
    body: bytes
    header: EventHeader
    event: bytes


@dataclass(slots=True)
class Run:
    """Consecutive numbers that this process has written, with the events of some topics among them."""

    first: int
    last: int
    topics: frozenset[str]
    """All events of these topics are here."""
    events: dict[str, list[Arrival]]
    count: int
    size: int

    def behind(self, topic: str, position: int) -> list[Arrival]:
        """The events of a topic behind a number."""
        events = self.events.get(topic, [])
        return events[bisect_right(events, position, key=_number) :]


class Arrivals:
    """What links have stored and routers have not taken yet.

    >>> arrivals = Arrivals("bonn")
    >>> arrivals.topics = frozenset(["p0"])
    >>> arrivals.put(7, 9, {"p0": [Arrival(8, "link-rome", b"", EventHeader("bob", "rome"), b"{}")]})
    >>> [run.first for run in arrivals.behind("p0", 5)], arrivals.behind("p0", 8)
    ([7], [])
    """

    def __init__(self, here: str) -> None:
        """Nothing has come yet to the site `here`."""
        self._shared = ((here, 0),)
        """The targets of events that go no further: one header serves many of them."""
        self.topics: frozenset[str] = frozenset()
        """The partitions of this router: events of others are not kept."""
        self._runs: deque[Run] = deque()
        self._size = 0

    def put(self, first: int, last: int, events: Mapping[str, list[Arrival]]) -> None:
        """An append of the numbers from `first` to `last`, and all events in it, by topic."""
        kept = {topic: found for topic, found in events.items() if topic in self.topics}
        count = sum(map(len, kept.values()))
        size = sum(map(self._held, kept.values()))
        before = self._runs[-1] if self._runs else None
        if (
            before is not None
            and before.last + 1 == first
            and before.topics == self.topics
            and before.count + count <= MOST_JOINED
        ):
            for topic, found in kept.items():
                before.events.setdefault(topic, []).extend(found)
            before.last = last
            before.count += count
            before.size += size
        elif kept:
            size += RUN_BYTES
            self._runs.append(Run(first, last, self.topics, kept, count, size))
        else:
            return
        self._size += size
        while self._size > MOST_BYTES:
            self._size -= self._runs.popleft().size

    def behind(self, topic: str, position: int) -> list[Run]:
        """The runs with events of a topic behind a number, in order: two links may put theirs in another."""
        found = [run for run in self._runs if run.events.get(topic) and run.events[topic][-1].seq > position]
        return sorted(found, key=_first)

    def forget(self, routed: Mapping[str, int]) -> None:
        """Let go of runs whose events are routed, up to a number of each topic."""
        while self._runs and all(
            found[-1].seq <= routed.get(topic, found[-1].seq) for topic, found in self._runs[0].events.items()
        ):
            self._size -= self._runs.popleft().size

    def clear(self) -> None:
        """The log may be another one."""
        self._runs.clear()
        self._size = 0

    def _held(self, arrivals: list[Arrival]) -> int:
        """The bytes of memory that events take: their JSON is held twice."""
        size = EVENT_BYTES * len(arrivals) + sum([len(one[2]) + len(one[4]) for one in arrivals])
        # Those that go no further share headers, unless there are more publishers than a link remembers.
        headers = {id(one[3]): one[3] for one in arrivals}
        size += HEADER_BYTES * len(headers)
        for header in headers.values():
            if header.targets != self._shared:  # one event has it alone
                size += sum([TARGET_BYTES + len(site) for site, _ in header.targets])
        return size


def _number(arrival: Arrival) -> int:
    return arrival.seq


def _first(run: Run) -> int:
    return run.first
