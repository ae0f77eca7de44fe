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
from dataclasses import dataclass, field
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
    LogFullError,
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


@dataclass(slots=True)
class _Call:
    """A call of `publish`: all its events, and how far they got."""

    bodies: list[bytes]
    numbers: list[int] = field(default_factory=list)
    """Of the first events, which are safe."""
    in_doubt: int = 0
    """How many of the next ones were sent at once, without an answer: all are in the log, or none."""


class _UnsureFullError(Exception):
    """The log is full, and before that an answer was lost: the events may be there, or come still."""

    def __init__(self, full: LogFullError, count: int) -> None:
        super().__init__(str(full))
        self.full = LogFullError(
            f"{full}; before that an answer was lost: it is unknown whether {count} events were published. "
            "Repeat the same call next, within a minute: it finds out, and publishes each of them once"
        )


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
        self._begin()

    def _begin(self) -> None:
        self.session = uuid.uuid4().hex
        self._last = 0
        self._used_at = time.monotonic()
        self._unfinished: _Call | None = None
        """The last call, if it is unknown how far it got: it is taken up where it was, if it is repeated."""

    @property
    def _key(self) -> Key:
        return self._topic, keys.session_detail(self.name, self.session)

    async def publish(self, events: EventLike | Iterable[EventLike]) -> list[int]:
        """Publish an event or several; they are safe when it returns their numbers, and in this order.

        Up to a thousand are one round trip. An invalid event raises `tamis.EventError`, and nothing is
        published. `RolledBackError` says that the log has lost events that it had acknowledged to this
        publisher; these events are not published then, and the next call begins a new session. If a log fails
        after some of the events are safe, the error has their numbers (`LogError.published`). If the call is
        cancelled, or the log is full after an answer was lost, some may be published, or all. The same call,
        if it is the next one and comes at once, publishes only the others, and returns all numbers.
        """
        given = [events] if isinstance(events, (Mapping, Event, str, bytes)) else list(events)
        bodies = [event_body(self._header, self._checked(event)) for event in given]
        async with self._lock:
            call = self._taken_up(bodies)
            try:
                while len(call.numbers) < len(bodies):
                    await self._append_some(call)
            except LogError as error:
                error.published = list(call.numbers)
                if call.numbers:
                    error.add_note(f"the first {len(call.numbers):,} of {len(bodies):,} events are published")
                raise
        return call.numbers

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

    def _taken_up(self, bodies: list[bytes]) -> _Call:
        if self._unfinished is not None and self._unfinished.bodies == bodies:
            return self._unfinished
        if self._unfinished is not None:
            self._begin()  # what becomes of these must not depend on what became of those
        return _Call(bodies)

    async def _append_some(self, call: _Call) -> None:
        deadline = time.monotonic() + self._timeout
        # What is in doubt is repeated as it was: its last event says whether all of it is there.
        most = min(call.in_doubt or MOST_ENTRIES, len(call.bodies) - len(call.numbers))
        try:
            await self._append(call, most, deadline)
        except BusyError:
            if most == 1:
                raise
            # Others use up what the log can do at once: slower, but they cannot hold us up.
            for _ in range(most):
                await self._append(call, 1, deadline)

    async def _append(self, call: _Call, count: int, deadline: float) -> None:
        done = len(call.numbers)
        bodies = call.bodies[done : done + count]
        try:
            numbers = await self._append_until(bodies, deadline, is_unsure=call.in_doubt > 0)
        except asyncio.CancelledError:
            call.in_doubt = count
            self._unfinished = call
            raise
        except _UnsureFullError as error:
            # What is on its way may be written when there is room again. The next call must not wait for it.
            call.in_doubt = count
            self._unfinished = call
            raise error.full from None
        call.numbers += numbers
        call.in_doubt = 0
        self._unfinished = None

    async def _append_until(self, bodies: list[bytes], deadline: float, *, is_unsure: bool) -> list[int]:
        """Write events all at once; a `BusyError` says that there are too many of them for that, just now.

        `is_unsure`: they may be there already, from a call that was cancelled.
        """
        if not is_unsure and time.monotonic() - self._used_at > SESSION_SECONDS:
            self._begin()
        entries = [Entry(*self._key, body) for body in bodies]
        refused = busy = 0
        while True:
            try:
                last = await self._log.append(EVENTS, entries, {self._key: self._last})
            except FencedError:
                refused += 1
                found = await self._after_refusal(bodies, refused, is_unsure=is_unsure)
                if found is None and refused > MOST_REFUSALS:
                    self._begin()  # whatever is there under this session, it must not hold up the next call
                    raise
                if found is None:
                    entries = [Entry(*self._key, body) for body in bodies]
                    continue
                last = found
            except BusyError as error:
                is_late = time.monotonic() >= deadline
                if is_late and is_unsure:
                    raise self._unknown(error, bodies) from None
                busy += 1
                if is_late or (busy > 1 and len(bodies) > 1 and not is_unsure):
                    raise
                await asyncio.sleep(RETRY_SECONDS)
                continue
            except LogFullError as error:
                if not is_unsure:
                    raise
                if (found := await self._ask_until(deadline, bodies)) is None:
                    raise _UnsureFullError(error, len(bodies)) from None
                last = found
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

    async def _after_refusal(self, bodies: list[bytes], refused: int, *, is_unsure: bool) -> int | None:
        """After a fence: the last number if the batch is there, None if it can be sent again."""
        if not is_unsure and self._last and await self._was_trimmed(self._last):
            self._begin()
        elif (found := await self._stored(bodies)) is not None:
            return found
        if 1 < refused <= MOST_REFUSALS:  # whoever was asked may not know yet what the leader knows
            await asyncio.sleep(RETRY_SECONDS * 2 ** (refused - 2))
        return None

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
            was_trimmed = await self._was_trimmed(before)
            self._begin()
            if was_trimmed:
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
