"""One client: subscribes, reads its queue into a buffer, and acknowledges what the caller has got."""

import asyncio
import time
import uuid
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from tamis._kernel import Expression
from tamis.errors import ArgumentError
from tamis.expr import Column
from tamis.pubsub import keys
from tamis.pubsub.confirmation import Confirmation, confirm
from tamis.pubsub.log.contract import QUEUES, STATE, Entry, FencedError, Log, Record, mark
from tamis.pubsub.names import check_name, token
from tamis.pubsub.records import (
    ANY_LANE,
    DEFAULT_PRIORITY,
    ROLLBACK,
    Delivery,
    Drops,
    EventHeader,
    Grant,
    QueueLimits,
    Reading,
    RecordError,
    Settings,
    Subscription,
    is_priority,
    read_drops,
    split_event,
)
from tamis.pubsub.subscriber.deliveries import Payload, gaps_before, payloads, read_deliveries
from tamis.pubsub.subscriber.handed_out import HandedOut
from tamis.pubsub.subscriber.items import Delivered, Gap, RemovedError, TakenOverError
from tamis.pubsub.subscriber.own_subscriptions import OwnSubscriptions, wants
from tamis.pubsub.subscriber.position import is_still_there, progress, still_valid
from tamis.pubsub.subscriber.removing import remove_subscriber, remove_subscriptions

READ_AT_ONCE = 200
WAIT_SECONDS = 5.0
LOOKS_EVERY_SECONDS = 60.0
"""A client that waits looks so often whether its queue is still there."""


class Subscriber:
    """One subscriber and its queue; made by `Site.subscriber`."""

    def __init__(self, log: Log, settings: Settings, name: str, limits: QueueLimits | None = None) -> None:
        """Use `Site.subscriber`, which also opens the queue."""
        self.name = check_name("subscriber", name)
        self._log = log
        self._settings = settings
        self._limits = None if limits is None else QueueLimits.read(limits.body())
        self._client = uuid.uuid4().hex
        self._topic = keys.queue_topic(name)
        self._buffer: deque[Delivered | Gap] = deque()
        self._reading = Reading(self._client)
        self._reading_seq = 0
        self._fetched = 0
        """The last record of the queue that is in the buffer or before it."""
        self._last: Record | None = None
        """The last record that was looked into: another one there means that the log was rolled back and has
        grown."""
        self._seen: tuple[int, int] = (0, 0)
        """Where the last item was that the caller has got."""
        self._start: tuple[int, int] = (0, 0)
        self._partly_read: int | None = None
        """The record of which the first events were read already; None until the next one is known."""
        self._places: dict[tuple[int, int], tuple[int, int, dict[str, int]]] = {}
        self._expected: dict[str, int] = {}
        self._end = 0
        self._records: dict[int, Record] = {}
        """Those whose events are in the buffer, or not acknowledged."""
        self._seen_time = 0
        self._old_until = (0, 0, 0)
        """Time, record and part: what lies before was handed out before the log was rolled back."""
        self._handed = HandedOut()
        self._own = OwnSubscriptions(log, name)
        self._idle_seconds = QueueLimits().idle_seconds
        self._wrote_at = self._looked_at = time.monotonic()

    # --- subscriptions -----------------------------------------------------------------------------

    async def subscribe(
        self,
        id: str,
        expression: "str | Expression | Column",
        *,
        priority: int = DEFAULT_PRIORITY,
        expires: datetime | int | None = None,
        wait: float = 0.0,
    ) -> Confirmation:
        """Subscribe, or replace the subscription of that id. From now on matching events are delivered.

        `priority` (0 to 9) decides what goes first when the queue is full. From `expires` on (a datetime, or
        UTC microseconds) it matches nothing. The answer says which sites know of it; `wait` is how many
        seconds to wait for those that do not yet. Nobody waits for a site that is away.
        """
        return await self.subscribe_many({id: expression}, priority=priority, expires=expires, wait=wait)

    async def subscribe_many(
        self,
        expressions: "dict[str, str] | dict[str, Any]",
        *,
        priority: int = DEFAULT_PRIORITY,
        expires: datetime | int | None = None,
        wait: float = 0.0,
    ) -> Confirmation:
        """Subscribe with many expressions by id, a thousand in one round trip."""
        if not is_priority(priority):
            raise ArgumentError(f"a priority is a whole number from 0 to 9, not {priority!r}")
        if isinstance(expires, datetime):
            expires = round(expires.timestamp() * 1_000_000)
        grant = await self._grant()
        entries = []
        for id, given in expressions.items():
            expression = self._own.checked(given, grant)
            record = Subscription(str(expression), priority, expires).body()
            Subscription.read(record)
            entries.append(Entry(*keys.subscription_key(self.name, check_name("subscription", id)), record))
        if grant is not None and grant.subscriptions is not None:
            await self._own.check_count(grant.subscriptions, {entry.detail for entry in entries})
        last = await self._own.write(entries)
        return await confirm(self._log, self._settings.site, last, wait)

    async def unsubscribe(self, *ids: str) -> None:
        """Take subscriptions back; those that are not there are no error."""
        await self._own.write([Entry(*keys.subscription_key(self.name, id), b"") for id in ids])

    async def subscriptions(self) -> dict[str, str]:
        """The subscriptions that the log has, by id."""
        return await self._own.texts()

    async def _grant(self) -> Grant | None:
        """What this client may do; asks in the same round trip whether its queue is still there."""
        grant, queue = ((topic, token(self.name)) for topic in (keys.GRANT, keys.QUEUE))
        found = await self._log.last(STATE, [grant, queue])
        if queue not in found or not found[queue].body:
            await self._look_for_queue()
        record = found.get(grant)
        return Grant.read(record.body) if record is not None and record.body else None

    # --- opening -----------------------------------------------------------------------------------

    async def open(self) -> "Subscriber":
        """Make the queue if it is missing, and take it over from whoever had it."""
        while not await self._open_once():
            self._buffer.clear()
        return self

    async def _open_once(self) -> bool:
        name = token(self.name)
        queue, read, drop = ((topic, name) for topic in (keys.QUEUE, keys.READ, keys.DROP))
        found = await self._log.last(STATE, [queue, read, drop])
        known = found.get(queue)
        is_there = known is not None and known.body
        if not is_there and drop in found and found[drop].body:
            self._buffer.append(Gap("forgotten", None, (0, 0)))
        if known is not None and not is_there:  # its removal may have been cut off
            await remove_subscriptions(self._log, name, known.seq)
        fresh_life = QueueLimits(life=uuid.uuid4().hex[:12])
        limits = QueueLimits.read(known.body) if known is not None and is_there else fresh_life
        if not is_there or self._limits not in (None, limits):
            limits = replace(self._limits or limits, life=limits.life)
            await self._log.append(STATE, [Entry(*queue, limits.body())])
        self._idle_seconds = max(0.1, limits.idle_seconds)
        fresh = Reading("")
        if not is_there:
            # Deliveries of an earlier life of this name, if there are any, are not for us. Its numbers may go
            # on, if a router was just writing.
            is_used = known is not None or drop in found
            is_used = is_used or bool(await self._log.read(QUEUES, topic=self._topic, most=1, to_end=True))
            fresh = Reading("", await self._log.end(QUEUES), 0, {ANY_LANE: 0 if is_used else 1})
        return await self._take_over(found.get(read), fresh)

    async def _take_over(self, record: Record | None, fresh: Reading | None = None) -> bool:
        """Go on from a position; false if the queue was removed meanwhile, and the position with it."""
        key = (keys.READ, token(self.name))
        while True:
            is_known = record is not None and record.body
            reading = Reading.read(record.body) if record is not None and is_known else fresh or Reading("")
            valid, last = await still_valid(self._log, self._topic, reading)
            mine = replace(valid, client=self._client, is_replay=False)
            try:
                self._reading_seq = await self._log.append(
                    STATE, [Entry(*key, mine.body())], {key: record.seq if record is not None else 0}
                )
            except FencedError:
                record = (await self._log.last(STATE, [key])).get(key)
                if record is None or not record.body:
                    return False
                continue
            self._position(mine)
            self._last = last
            if valid is not reading:
                self._buffer.append(Gap(ROLLBACK, None, self._seen))
            return True

    def _position(self, reading: Reading) -> None:
        self._reading = reading
        self._fetched, self._last = reading.after, None
        self._expected = dict(reading.expected)
        self._seen = self._start = (reading.part_of, reading.part) if reading.part_of else (reading.after, 0)
        self._places.clear()
        self._records.clear()
        self._partly_read = reading.part_of or None

    # --- reading -----------------------------------------------------------------------------------

    async def __aiter__(self) -> AsyncIterator[Delivered | Gap]:
        """Go through what is delivered, waiting for more."""
        while True:
            yield await self.next()

    async def next(self, timeout: float | None = None) -> Delivered | Gap:
        """The next event or gap; `TimeoutError` if none comes in time."""
        deadline = None if timeout is None else time.monotonic() + timeout
        async with asyncio.timeout(timeout):
            while not self._buffer:
                if not await self._fill():
                    # `asyncio.wait_for` of Python 3.11 can swallow a cancellation, and with it the timeout.
                    if deadline is not None and time.monotonic() >= deadline:
                        raise TimeoutError
                    await self._show_that_we_are_here()
                    await self._log.wait(QUEUES, self._end, min(WAIT_SECONDS, self._idle_seconds / 4))
        item = self._buffer.popleft()
        self._seen = item.place
        if (record := self._records.get(item.place[0])) is not None:
            self._seen_time = record.time
            if isinstance(item, Delivered):
                self._handed.note(record, item.number, item.time)
        return item

    async def _show_that_we_are_here(self) -> None:
        """A client that has nothing to acknowledge for long is not forgotten while it waits."""
        now = time.monotonic()
        if now - self._wrote_at > self._idle_seconds / 4:
            await self._write_reading(self._reading)
        if now - self._looked_at > LOOKS_EVERY_SECONDS:
            await self._look_for_queue()

    async def _look_for_queue(self) -> bool:
        """Whether the queue is still there. If not, nothing is delivered, and signs of why go after a day.

        A queue that was forgotten, or that a log has lost, is made again.
        """
        self._looked_at = time.monotonic()
        key = (keys.QUEUE, token(self.name))
        record = (await self._log.last(STATE, [key])).get(key)
        if record is not None and record.body:
            return True
        if await self._log.end(STATE) < self._reading_seq:
            await self._roll_back()
        else:
            await self._begin_again()
        return False

    async def _fill(self) -> bool:
        """Read more of the queue into the buffer; returns whether there was anything for the caller."""
        while (is_more := await self._read_some()) and not self._buffer:
            pass
        return is_more

    async def _read_some(self) -> bool:
        end = await self._log.end(QUEUES)
        if end < max(self._end, self._fetched):
            await self._roll_back()
            return True
        self._end = end
        # With the last record that was read: it shows that the log is still the same.
        after = self._fetched - (self._last is not None)
        records = await self._log.read(QUEUES, topic=self._topic, after=after, most=READ_AT_ONCE)
        if self._last is not None and not await self._goes_on(self._last, records):
            await self._roll_back()
            return True
        if records and records[0].seq == self._fetched:
            del records[0]
        if not records:
            return False
        deliveries = read_deliveries(records)
        records = records[: len(deliveries)]
        events = await payloads(self._log, deliveries.values())
        is_unsure = any(delivery.unsure for delivery in deliveries.values())
        expressions = await self._own.expressions() if is_unsure else []
        drops: Drops | None = None
        if any(0 < deliveries[one.seq].first < self._expected.get(one.detail, 0) for one in records):
            self._handed.roll_back()
        for record in records:
            delivery = deliveries[record.seq]
            if self._partly_read is None:
                self._partly_read = record.seq
            if (record.time, record.seq) < self._old_until[:2] and delivery.first:
                # Of a log that was rolled back, what it still has of what we had.
                self._expected[record.detail] = delivery.first + len(delivery.events)
                self._fetched, self._last = record.seq, record
                continue
            self._records[record.seq] = record
            expected = self._expected.get(record.detail, self._expected.get(ANY_LANE))
            if delivery.first and expected == 0 and record.detail not in self._expected:
                drops = drops or await self._drops()
                expected = min(drops.first(record.detail), delivery.first)
            if delivery.first and expected and delivery.first != expected:
                drops = drops or await self._drops()
                self._buffer.extend(gaps_before(record, delivery.first, expected, drops))
            # From here on nothing is waited for: a record is in the buffer as a whole, or read again.
            self._buffer_events(record, delivery, events, expressions)
            if delivery.first:
                self._expected[record.detail] = delivery.first + len(delivery.events)
            else:
                self._buffer.append(Gap("lost", None, (record.seq, 0)))
            self._fetched, self._last = record.seq, record
            self._places[record.seq, len(delivery.events)] = (record.seq, 0, dict(self._expected))
        return True

    async def _goes_on(self, last: Record, records: list[Record]) -> bool:
        """Whether the log still has the last record that was read of it, or has removed it in good order."""
        is_there = await is_still_there(self._log, last, records)
        if is_there is None:
            self._last = None
        return is_there is not False

    def _buffer_events(
        self,
        record: Record,
        delivery: Delivery,
        events: dict[Payload, Record],
        expressions: list[Expression],
    ) -> None:
        # The record that was read in part may have been dropped since: then nothing is skipped.
        skip = self._reading.part if record.seq == self._partly_read else 0
        if (record.time, record.seq) == self._old_until[:2]:
            skip = max(skip, self._old_until[2])
        for place, number in enumerate(delivery.events, 1):
            if place <= skip:
                continue
            here = (record.seq, place)
            found = events.get((delivery.copy, number))
            if found is None:
                self._buffer.append(Gap("age", 1, here))
                continue
            if self._handed.was_before(record.detail, number, found.time):
                continue
            text, body = split_event(found.body)
            try:
                header = EventHeader.read(text)
            except RecordError:
                header = EventHeader("")
            if header.missing:
                self._buffer.append(Gap(header.reason, None, here))
                continue
            if number in delivery.unsure and not wants(expressions, body):
                continue
            self._buffer.append(Delivered(number, body, header.publisher, found.time, header.origin, here))

    async def _drops(self) -> Drops:
        key = (keys.DROP, token(self.name))
        return read_drops((await self._log.last(STATE, [key])).get(key))

    async def _roll_back(self) -> None:
        """The log has lost what we have read already: say so, and go on from what it knows."""
        self._buffer.clear()
        self._end = 0
        self._old_until = (self._seen_time, *self._seen)
        self._handed.roll_back()
        queue, read = ((topic, token(self.name)) for topic in (keys.QUEUE, keys.READ))
        found = await self._log.last(STATE, [queue, read])
        is_there = queue in found and bool(found[queue].body)
        if not is_there or not await self._take_over(found.get(read)):
            await self.open()
        if not any(isinstance(item, Gap) and item.reason == ROLLBACK for item in self._buffer):
            self._buffer.append(Gap(ROLLBACK, None, self._seen))

    # --- acknowledging -----------------------------------------------------------------------------

    async def acknowledge(self, item: Delivered | Gap | None = None) -> None:
        """All up to this item, or all that was handed out, need not be delivered again.

        Who keeps the results of its work can make both one: store `Delivered.number` with them.
        """
        if item is None and self._seen == self._start:
            return
        seq, part = self._seen if item is None else item.place
        done = self._places.get((seq, part))
        if done is not None:
            after, part, expected = done
        else:
            before = [place for place in self._places if place[0] < seq]
            after, _, expected = (
                self._places[max(before)] if before else (self._reading.after, 0, self._reading.expected)
            )
        reading = Reading(self._client, after, part, expected, part_of=seq if part else 0)
        if (record := self._records.get(reading.looked_into)) is not None:
            reading = replace(reading, mark=mark(record), time=record.time)
        else:
            reading = replace(reading, mark=self._reading.mark, time=self._reading.time)
        if progress(reading) <= progress(self._reading):
            return
        if await self._write_reading(reading):
            for place in [place for place in self._places if place[0] < after]:
                del self._places[place]
            for number in [number for number in self._records if number < after]:
                del self._records[number]

    async def _write_reading(self, reading: Reading) -> bool:
        key = (keys.READ, token(self.name))
        while True:
            try:
                self._reading_seq = await self._log.append(
                    STATE, [Entry(*key, reading.body())], {key: self._reading_seq}
                )
            except FencedError:
                if not await self._is_still_ours():
                    return False
            else:
                self._reading = reading
                self._wrote_at = time.monotonic()
                return True

    async def _is_still_ours(self) -> bool:
        """Find out who has moved our position: we ourselves, an operator, a rollback, or another client."""
        key = (keys.READ, token(self.name))
        record = (await self._log.last(STATE, [key])).get(key)
        is_gone = record is None or not record.body
        if is_gone and not await self._look_for_queue():
            return False
        if record is None or record.seq < self._reading_seq:
            await self._roll_back()
            return False
        if is_gone:
            await self._begin_again()
            return False
        reading = Reading.read(record.body)
        if reading.client == self._client:
            # Nobody: the connection was made again, to what may be another log; or an answer was lost.
            if self._last is not None and not await self._goes_on(self._last, []):
                await self._roll_back()
                return False
            self._reading_seq = record.seq
            return True
        if reading.is_replay:
            self._buffer.clear()
            self._old_until, self._handed = (0, 0, 0), HandedOut()
            if not await self._take_over(record):
                await self._look_for_queue()
            return False
        raise TakenOverError(
            f"another client reads as {self.name}: a name belongs to one client at a time, give each its own"
        )

    async def _begin_again(self) -> None:
        """The queue is gone: because nobody came for too long, or somebody has removed it."""
        key = (keys.DROP, token(self.name))
        dropped = (await self._log.last(STATE, [key])).get(key)
        if dropped is None or not dropped.body:
            raise RemovedError(
                f"the subscriber {self.name} was removed, with its subscriptions: open it again to begin anew"
            )
        self._buffer.clear()
        self._own.forget_expressions()
        await self.open()

    async def remove(self) -> None:
        """Forget this subscriber: its queue, its position and its subscriptions."""
        await remove_subscriber(self._log, self.name)
