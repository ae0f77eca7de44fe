"""What a log promises. Everything that delivery promises rests on these laws and on nothing else.

A log has three streams. A stream is a sequence of records with growing numbers; each record has a *key*, a
topic and a detail.

1. *Durable.* When `append` returns, the entries survive the death of every process, and of as many servers
   as the log is replicated for.
2. *Atomic.* All entries of one `append` are there, or none. They have consecutive numbers. `append` returns
   the last one.
3. *Fenced.* An `append` with `fences` happens only if, for every key in it, the last record of that key has
   the expected number (0: there is none). Otherwise it raises `FencedError`, and nothing is written. So of
   two writers that both believe they own a key, one is refused. The first fenced append after `generation`
   has grown is refused, too: what was expected was learnt from what may be another log.
4. *Ordered.* `read` returns the records of a topic in the order of their numbers and skips none that is
   stored. It may return less than there is, never a record without those before it. Whoever takes an empty
   answer for the end, and would never look again, asks with `to_end`.
5. *Last values.* `last` and `end` know every append that had returned before they were called.
6. *Compacted.* Of the stream `STATE` only the last record of each key is kept. An empty body says that the
   key is gone.
7. *Numbers are never used twice*, unless the log itself was rolled back to an older copy.

`time` is the log's own clock when the record was stored, in UTC microseconds.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from tamis.errors import TamisError

EVENTS, QUEUES, STATE = "events", "queues", "state"
STREAMS = (EVENTS, QUEUES, STATE)
MOST_ENTRIES = 1_000
"""Entries in one `append`: what NATS takes in one atomic batch."""
MOST_READ_BYTES = 8 << 20
"""About how much one `read` returns."""

Key = tuple[str, str]
"""Topic and detail."""


class LogError(TamisError):
    """The log cannot do the operation; the message says why, and what would help.

    >>> raise LogError("the file site.db is no log")
    Traceback (most recent call last):
    ...
    tamis.pubsub.log.contract.LogError: the file site.db is no log
    """

    published: Sequence[int] = ()
    """Of `publish`: the numbers of the events that are safe nevertheless, the first ones."""


class FencedError(LogError):
    """Another writer has written under a key since the last read; nothing was written."""


class LogFullError(LogError):
    """There is no room; nothing was written."""


class LogUnavailableError(LogError):
    """The log does not answer; it is unknown whether something was written."""


class BusyError(LogUnavailableError):
    """The log cannot take several entries at once just now; nothing was written. It may take a single one."""


class ForbiddenError(LogUnavailableError):
    """The permissions of this user do not allow it; nothing was written."""


class RolledBackError(LogError):
    """The log is an older copy of itself: what it acknowledged in between is lost."""


class StreamLostError(LogError):
    """Somebody has purged or deleted a stream of the log: what it knew is gone until it is restored."""


STATE_IS_GONE = (
    "the state of this site is gone: somebody has purged or deleted the stream. Events wait. Restore the "
    "stream from a backup; or delete all streams of the site, this one too, and start afresh"
)


@dataclass(slots=True)
class Entry:
    """What is to be appended under a key. Nobody changes one; to say so costs time for each.

    >>> Entry("p0", "session-1", b"{}").key
    ('p0', 'session-1')
    """

    topic: str
    detail: str
    body: bytes

    @property
    def key(self) -> Key:
        """Topic and detail."""
        return self.topic, self.detail


class Record(NamedTuple):
    """What is stored: an entry with its number and its time. A tuple, since millions are made of them.

    >>> Record(1, "p0", "session-1", 0, b"{}").seq
    1
    """

    seq: int
    topic: str
    detail: str
    time: int
    body: bytes


def mark(record: Record) -> str:
    """A digest by which a record is known again.

    >>> mark(Record(1, "p0", "s", 0, b"x")) == mark(Record(1, "p0", "s", 9, b"y"))
    False
    """
    content = f"{record.topic}.{record.detail} {record.time} ".encode() + record.body
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def check_name(topic: str | None, name: str) -> None:
    """A name is looked for within a topic.

    >>> check_name(None, "ann")
    Traceback (most recent call last):
    ...
    tamis.pubsub.log.contract.LogError: records of the name ann are read of one topic: say which
    """
    if name and not topic:
        raise LogError(f"records of the name {name} are read of one topic: say which")


class Log(Protocol):
    """One site's log. See the laws at the head of this file."""

    identity: str
    """Made with the log and never again: another log under the same name has another one."""
    generation: int
    """Grows whenever the connection was made again: then what is remembered must be compared with the log."""

    @property
    def largest(self) -> int:
        """How many bytes the body of a record may have."""
        ...

    async def append(
        self, stream: str, entries: Sequence[Entry], fences: Mapping[Key, int] | None = None
    ) -> int:
        """Write all entries or none; returns the number of the last."""
        ...

    async def read(
        self,
        stream: str,
        *,
        topic: str | None = None,
        name: str = "",
        after: int = 0,
        most: int = 1_000,
        to_end: bool = False,
    ) -> list[Record]:
        """Records behind a number, in order: of one topic, or of all.

        With a `name`, those of a topic whose details begin with that name and a dot. That costs what they
        are, however many other records the topic has. An empty answer says that there is nothing yet, or that
        a replica lags behind. With `to_end`, it says that there is nothing.
        """
        ...

    async def fetch(self, stream: str, numbers: Iterable[int]) -> dict[int, Record]:
        """Records by number; those that are gone are left out."""
        ...

    async def last(self, stream: str, keys: Iterable[Key]) -> dict[Key, Record]:
        """The last record of each key; keys without one are left out."""
        ...

    async def end(self, stream: str) -> int:
        """The highest number that was ever given in a stream."""
        ...

    async def trim(self, stream: str, before: int, topic: str, detail: str | None = None) -> None:
        """Remove the records of a key, or of a topic, with numbers below `before`."""
        ...

    async def wait(self, stream: str, after: int, seconds: float) -> None:
        """Return when a stream may have records behind a number, at the latest after so many seconds."""
        ...

    async def size(self) -> int:
        """The bytes that the log takes."""
        ...

    async def close(self) -> None:
        """Let go of files and connections."""
        ...


async def append_each(log: Log, stream: str, entries: Sequence[Entry]) -> int:
    """Write any number of entries that need not be there all at once, in their order; the last one's number.

    Others may use up what a log can do at once: then they are written one by one.
    """
    last = 0
    for start in range(0, len(entries), MOST_ENTRIES):
        part = entries[start : start + MOST_ENTRIES]
        try:
            last = await log.append(stream, part)
        except BusyError:
            for entry in part:
                last = await log.append(stream, [entry])
    return last


async def last_by(log: Log, stream: str, topic: str, time: int) -> int:
    """The number of the last record of a topic that was stored by a time; 0 if there is none.

    In a log that was rolled back, what is stored later than what was read before is new.
    """
    number = 0
    while records := await log.read(stream, topic=topic, after=number, to_end=True):
        for record in records:
            if record.time > time:
                return number
            number = record.seq
    return number
