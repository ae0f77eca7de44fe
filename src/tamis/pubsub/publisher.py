"""Publishing: events that are safe in the log when `publish` returns.

Each publisher has a *session* with an id of its own, however many have the same name. A session's events
lie under a key of their own, and each batch is fenced by the last of them. So a batch whose answer was lost
can be repeated: it is there, or it is not, and the log knows which.
"""

import asyncio
import json
import time
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

import tamis
from tamis._kernel import Event, Expression
from tamis.errors import ArgumentError
from tamis.expr import Column
from tamis.pubsub import keys
from tamis.pubsub.log.contract import (
    EVENTS,
    MOST_ENTRIES,
    STATE,
    BusyError,
    Entry,
    FencedError,
    ForbiddenError,
    Key,
    Log,
    LogError,
    LogUnavailableError,
    RolledBackError,
)
from tamis.pubsub.names import check_name
from tamis.pubsub.records import Advertisement, EventHeader, Fields, Settings, event_body

MOST_EVENT_BYTES = 256 << 10
SESSION_SECONDS = 600.0
"""After such a rest a new session begins: the old one's events may be gone, and the fence with them."""
RETRY_SECONDS = 0.1
MOST_REFUSALS = 5

EventLike = Mapping[str, Any] | Event | str | bytes


class Publisher:
    """Publishes under a name; made by `Site.publisher`."""

    def __init__(
        self,
        log: Log,
        settings: Settings,
        name: str,
        *,
        timeout: float = 30.0,
        most_event_bytes: int = MOST_EVENT_BYTES,
    ) -> None:
        """A log that does not answer is tried again for this many seconds."""
        self.name = check_name("publisher", name)
        self._log = log
        self._timeout = timeout
        self._most_event_bytes = most_event_bytes
        self._header = EventHeader(self.name).body()
        self._topic = keys.partition_topic(keys.partition_of(self.name, settings.partitions))
        self._lock = asyncio.Lock()
        self._cancelled: list[bytes] | None = None
        """The last events, if the call was cancelled: they may be in the log."""
        self._begin()

    def _begin(self) -> None:
        self.session = uuid.uuid4().hex
        self._last = 0
        self._used_at = time.monotonic()

    @property
    def _key(self) -> Key:
        return self._topic, keys.session_detail(self.name, self.session)

    async def publish(self, events: EventLike | Iterable[EventLike]) -> list[int]:
        """Publish an event or several; they are safe when it returns their numbers, and in this order.

        Up to a thousand are one round trip. An invalid event raises `tamis.EventError`, and nothing is
        published. `RolledBackError` says that the log has lost events that it had acknowledged to this
        publisher; these events are not published then, and the next call begins a new session. If a log fails
        after some of the events are safe, the error has their numbers (`LogError.published`). If the call is
        cancelled, they may be published; the same call, repeated at once, finds out.
        """
        given = [events] if isinstance(events, (Mapping, Event, str, bytes)) else list(events)
        bodies = [event_body(self._header, self._checked(event)) for event in given]
        numbers: list[int] = []
        async with self._lock:
            try:
                for start in range(0, len(bodies), MOST_ENTRIES):
                    await self._append_to(numbers, bodies[start : start + MOST_ENTRIES])
            except LogError as error:
                error.published = numbers
                if numbers:
                    error.add_note(f"the first {len(numbers):,} of {len(bodies):,} events are published")
                raise
        return numbers

    async def advertise(self, id: str, expression: "str | Expression | Column") -> None:
        """Declare which events will be published: each satisfies one of the advertisements of this site.

        Other sites then need not announce interest in anything else. If some publishers of a site advertise,
        all should: an event that satisfies no advertisement goes to every site, as do all events until the
        other sites have heard of a new advertisement. Nothing is missed.
        """
        text = str(tamis.parse(expression) if isinstance(expression, str) else tamis.parse(str(expression)))
        key = keys.advertisement_key(self.name, id)
        await self._log.append(STATE, [Entry(*key, Advertisement(text).body())])

    async def withdraw(self, id: str) -> None:
        """Withdraw an advertisement; if none is left, anything may be published again."""
        await self._log.append(STATE, [Entry(*keys.advertisement_key(self.name, id), b"")])

    def _checked(self, event: EventLike) -> bytes:
        if isinstance(event, Event):
            content = event.to_json().encode()
        elif isinstance(event, Mapping):
            try:
                content = json.dumps(event, separators=(",", ":"), allow_nan=False).encode()
            except (TypeError, ValueError, RecursionError):
                content = tamis.Event(event).to_json().encode()  # intervals, times and the like
        else:
            content = event.encode("utf-8", "surrogatepass") if isinstance(event, str) else event
        tamis.Event(content)  # what a router could not read would be acknowledged and never delivered
        if len(content) > self._most_event_bytes:
            raise ArgumentError(
                f"an event has at most {self._most_event_bytes:,} bytes, this one {len(content):,}: "
                "store what is large elsewhere and publish where it is"
            )
        return content

    async def _append_to(self, numbers: list[int], bodies: list[bytes]) -> None:
        deadline = time.monotonic() + self._timeout
        if self._cancelled not in (None, bodies):
            self._begin()  # what becomes of these must not depend on what became of those
        self._cancelled = None
        try:
            numbers += await self._append(bodies, deadline)
        except BusyError:
            if len(bodies) == 1:
                raise
            # Others use up what the log can do at once: slower, but they cannot hold us up.
            for body in bodies:
                numbers += await self._append([body], deadline)

    async def _append(self, bodies: list[bytes], deadline: float) -> list[int]:
        try:
            return await self._append_until(bodies, deadline)
        except asyncio.CancelledError:
            self._cancelled = bodies
            raise

    async def _append_until(self, bodies: list[bytes], deadline: float) -> list[int]:
        """Write events all at once; a `BusyError` says that there are too many of them for that, just now."""
        if time.monotonic() - self._used_at > SESSION_SECONDS:
            self._begin()
        entries = [Entry(*self._key, body) for body in bodies]
        refused, busy, is_unsure = 0, 0, False
        while True:
            try:
                last = await self._log.append(EVENTS, entries, {self._key: self._last})
            except FencedError:
                refused += 1
                if not is_unsure and self._last and await self._was_trimmed(self._last):
                    self._begin()
                    stored = None
                else:
                    stored = await self._stored(bodies)
                if stored is None and refused > MOST_REFUSALS:
                    raise
                if stored is None:
                    if refused > 1:  # whoever was asked may not know yet what the leader knows
                        await asyncio.sleep(RETRY_SECONDS * 2 ** (refused - 2))
                    entries = [Entry(*self._key, body) for body in bodies]
                    continue
                last = stored
            except BusyError as error:
                is_late = time.monotonic() >= deadline
                if is_late and is_unsure:
                    raise self._unknown(error, bodies) from None
                busy += 1
                if is_late or (busy > 1 and len(bodies) > 1 and not is_unsure):
                    raise
                await asyncio.sleep(RETRY_SECONDS)
                continue
            except ForbiddenError as error:
                if is_unsure:
                    raise self._unknown(error, bodies) from None
                self._begin()
                raise
            except LogUnavailableError as error:
                is_unsure = True  # they may be there
                found = await self._ask_until(deadline, bodies)
                if found is None and time.monotonic() >= deadline:
                    raise self._unknown(error, bodies) from None
                if found is None:
                    entries = [Entry(*self._key, body) for body in bodies]
                    continue
                last = found
            self._last = last
            self._used_at = time.monotonic()
            return list(range(last - len(bodies) + 1, last + 1))

    async def _ask_until(self, deadline: float, bodies: list[bytes]) -> int | None:
        """After a lost answer: the last number if the batch is there, None if it can be sent again."""
        while True:
            try:
                return await self._stored(bodies)
            except LogUnavailableError as error:
                if time.monotonic() >= deadline:
                    raise self._unknown(error, bodies) from None
                await asyncio.sleep(RETRY_SECONDS)

    def _unknown(self, error: LogUnavailableError, bodies: list[bytes]) -> LogUnavailableError:
        self._begin()  # a later batch must not depend on what became of this one
        return LogUnavailableError(
            f"{error}; it is unknown whether the last {len(bodies)} events were published"
        )

    async def _stored(self, bodies: list[bytes]) -> int | None:
        found = (await self._log.last(EVENTS, [self._key])).get(self._key)
        if self._last and (found is None or found.seq < self._last):
            before = self._last
            self._begin()
            if await self._was_trimmed(before):
                return None
            raise RolledBackError(
                f"the log was rolled back: it acknowledged event {before} of {self.name} and has lost it. "
                "Publish again what followed the last event that you know to be there"
            )
        if found is None or found.seq == self._last:
            return None
        # Only this session writes here, so this is the batch whose answer was lost.
        return found.seq if found.body == bodies[-1] else None

    async def _was_trimmed(self, number: int) -> bool:
        """Whether an event is gone because nobody needs it any more."""
        key = (keys.TRIM, self._topic.removeprefix("p"))
        record = (await self._log.last(STATE, [key])).get(key)
        return record is not None and Fields(record.body, "trim").number("before") > number
