"""Subscribing, and reading a queue: each event once, in the order of its publisher, with every gap visible.

A queue is read from where it was last acknowledged. What is missing in between (dropped because of a limit,
or lost with a log that was rolled back) is a `Gap` in its place.
"""

import asyncio
import json
import time
import uuid
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import tamis
from tamis._kernel import Expression
from tamis.errors import ArgumentError, TamisError
from tamis.expr import Column
from tamis.pubsub import keys
from tamis.pubsub.confirmation import Confirmation, confirm
from tamis.pubsub.log.contract import (
    EVENTS,
    MOST_ENTRIES,
    MOST_READ_BYTES,
    QUEUES,
    STATE,
    BusyError,
    Entry,
    FencedError,
    Key,
    Log,
    Record,
    append_each,
    last_by,
    mark,
)
from tamis.pubsub.names import check_name, name_of, token
from tamis.pubsub.records import (
    DEFAULT_PRIORITY,
    LINK,
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

READ_AT_ONCE = 200
WAIT_SECONDS = 5.0
RETRY_SECONDS = 0.05
IDS_SECONDS = 43_200.0
"""After such a rest all subscriptions are read again: signs of removal are kept for a day."""
LOOKS_EVERY_SECONDS = 60.0
"""A client that waits looks so often whether its queue is still there."""
ANY_LANE = "*"
"""In `Reading.expected`: lanes that are not named begin with this number. 0: with any, but for what is known
to have been dropped."""
MOST_EXPRESSION_BYTES = 64 << 10
MOST_ROLLBACKS = 16


class RemovedError(TamisError):
    """Somebody has removed this subscriber: its queue, its position and its subscriptions are gone."""


class TakenOverError(TamisError):
    """Another client has this subscriber's queue now: a name belongs to one client at a time."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """An event for this subscriber."""

    number: int
    """The event's number in the log: with the subscriber, the id of this delivery."""
    body: bytes
    """The event as JSON."""
    publisher: str
    time: int
    """When it was stored, in UTC microseconds."""
    origin: str | None
    """The site where it was published, if that is another one."""
    place: tuple[int, int]
    """Where it is in the queue: for `acknowledge`."""

    @property
    def event(self) -> Any:
        """The event as a dict."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Gap:
    """Something is missing here, and why: `bytes`, `age`, `forgotten`, `link`, `rollback` or `lost`."""

    reason: str
    count: int | None
    """How many events, if that is known."""
    place: tuple[int, int]


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
        self._handed: dict[str, tuple[int, int]] = {}
        """Number and time of the last event that the caller has got, by partition."""
        self._handed_before: list[dict[str, tuple[int, int]]] = []
        """The same at each rollback: the log may route again what it had, into other records."""
        self._expressions: list[Expression] | None = None
        self._changes = 0
        """How often our subscriptions were changed: what was read of them before may be out of date."""
        self._ids: set[str] = set()
        """The keys of our subscriptions up to a number of the state, where a grant limits how many."""
        self._ids_until = self._ids_generation = 0
        self._ids_at = 0.0
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
            expression = self._checked(given, grant)
            record = Subscription(str(expression), priority, expires).body()
            Subscription.read(record)
            entries.append(Entry(*keys.subscription_key(self.name, check_name("subscription", id)), record))
        if grant is not None and grant.subscriptions is not None:
            await self._check_count(grant.subscriptions, {entry.detail for entry in entries})
        last = await self._append_state(entries)
        return await confirm(self._log, self._settings.site, last, wait)

    async def unsubscribe(self, *ids: str) -> None:
        """Take subscriptions back; those that are not there are no error."""
        await self._append_state([Entry(*keys.subscription_key(self.name, id), b"") for id in ids])

    async def subscriptions(self) -> dict[str, str]:
        """The subscriptions that the log has, by id."""
        found: dict[str, str] = {}
        for record in await self._own_subscriptions():
            try:
                found[name_of(record.detail.partition(".")[2])] = Subscription.read(record.body).expression
            except ValueError:
                continue
        return found

    async def _own_subscriptions(self) -> list[Record]:
        found: dict[str, Record] = {}
        after, mine = 0, token(self.name)
        while records := await self._log.read(
            STATE, topic=keys.SUBSCRIPTION, name=mine, after=after, most=5_000, to_end=True
        ):
            after = records[-1].seq
            for record in records:
                found.pop(record.detail, None)  # it was changed between two reads
                if record.body:
                    found[record.detail] = record
        return list(found.values())

    async def _append_state(self, entries: list[Entry]) -> int:
        try:
            return await append_each(self._log, STATE, entries)
        finally:  # some may be there, whatever happened
            self._forget_expressions()

    async def _grant(self) -> Grant | None:
        """What this client may do; asks in the same round trip whether its queue is still there."""
        grant, queue = ((topic, token(self.name)) for topic in (keys.GRANT, keys.QUEUE))
        found = await self._log.last(STATE, [grant, queue])
        if queue not in found or not found[queue].body:
            await self._look_for_queue()
        record = found.get(grant)
        return Grant.read(record.body) if record is not None and record.body else None

    async def _check_count(self, most: int, more: set[str]) -> None:
        there = await self._own_ids()
        wanted = len(there) + len(more - there)
        if wanted > most:
            raise ArgumentError(f"{self.name} may have {most:,} subscriptions, these would be {wanted:,}")

    async def _own_ids(self) -> set[str]:
        """The keys of our subscriptions: all are read once, and then what has changed."""
        now = time.monotonic()
        is_older = await self._log.end(STATE) < self._ids_until
        if is_older or self._log.generation != self._ids_generation or now - self._ids_at > IDS_SECONDS:
            self._ids, self._ids_until, self._ids_generation = set(), 0, self._log.generation
        mine = token(self.name)
        while records := await self._log.read(
            STATE, topic=keys.SUBSCRIPTION, name=mine, after=self._ids_until, most=5_000, to_end=True
        ):
            for record in records:
                (self._ids.add if record.body else self._ids.discard)(record.detail)
            self._ids_until = records[-1].seq
        self._ids_at = now
        return self._ids

    def _checked(self, given: Any, grant: Grant | None) -> Expression:
        expression = tamis.parse(given) if isinstance(given, str) else tamis.parse(str(given))
        if len(str(expression).encode()) > MOST_EXPRESSION_BYTES:
            raise ArgumentError(f"an expression has at most {MOST_EXPRESSION_BYTES:,} bytes")
        if grant is not None and grant.attributes is not None:
            hidden = sorted(set(expression.attributes) - set(grant.attributes))
            if hidden:
                raise ArgumentError(
                    f"{self.name} may not name {', '.join(hidden)}, only {', '.join(grant.attributes)}"
                )
        return expression

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
            valid, last = await self._still_valid(reading)
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

    async def _still_valid(self, reading: Reading) -> tuple[Reading, Record | None]:
        """A position as it is, or moved back if the queue was rolled back behind it; and its record."""
        number = reading.looked_into
        found = (await self._log.fetch(QUEUES, [number])).get(number) if number else None
        if found is not None:
            is_same = reading.mark in ("", mark(found))
        else:  # removed in good order, or lost
            is_same = not number or await self._log.end(QUEUES) >= number
        if is_same:
            return reading, found if found is not None and found.topic == self._topic else None
        after = await last_by(self._log, QUEUES, self._topic, reading.time)
        return Reading(reading.client, after, time=reading.time), None

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
                self._handed[keys.partition_of_lane(record.detail)] = (item.number, item.time)
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
        deliveries: dict[int, Delivery] = {}
        size = 0
        for record in records:
            try:
                delivery = Delivery.read(record.body)
            except RecordError:
                delivery = Delivery(0, ())
            size += delivery.size
            if deliveries and size > MOST_READ_BYTES:
                break  # a queue can be larger than this machine's memory
            deliveries[record.seq] = delivery
        records = records[: len(deliveries)]
        events = await self._payloads(deliveries.values())
        is_unsure = any(delivery.unsure for delivery in deliveries.values())
        expressions = await self._learn_expressions() if is_unsure else []
        drops: Drops | None = None
        if any(0 < deliveries[one.seq].first < self._expected.get(one.detail, 0) for one in records):
            self._note_rollback()
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
                self._gap(record, delivery.first, expected, drops)
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
        there = records[0] if records and records[0].seq == last.seq else None
        if there is None and (there := (await self._log.fetch(QUEUES, [last.seq])).get(last.seq)) is None:
            if await self._log.end(QUEUES) < last.seq:
                return False
            self._last = None
            return True
        return there == last

    def _gap(self, record: Record, first: int, expected: int, drops: Drops) -> None:
        place = (record.seq, 0)
        if first < expected:
            # A lane never counts back, unless the log is an older copy that has grown again.
            self._buffer.append(Gap(ROLLBACK, None, place))
            return
        counts: dict[str, int] = {}
        number = expected
        while number < first:
            reason, last = drops.run(record.detail, number)
            last = min(last, first - 1)
            counts[reason] = counts.get(reason, 0) + last - number + 1
            number = last + 1
        for reason, count in counts.items():
            # How many a gap stood for, and who wanted them, is not known.
            self._buffer.append(Gap(reason, None if reason in (LINK, ROLLBACK) else count, place))

    def _buffer_events(
        self,
        record: Record,
        delivery: Delivery,
        events: dict[tuple[str | None, int], Record],
        expressions: list[Expression],
    ) -> None:
        # The record that was read in part may have been dropped since: then nothing is skipped.
        skip = self._reading.part if record.seq == self._partly_read else 0
        if (record.time, record.seq) == self._old_until[:2]:
            skip = max(skip, self._old_until[2])
        partition = keys.partition_of_lane(record.detail)
        before = [handed[partition] for handed in self._handed_before if partition in handed]
        for place, number in enumerate(delivery.events, 1):
            if place <= skip:
                continue
            here = (record.seq, place)
            found = events.get((delivery.copy, number))
            if found is None:
                self._buffer.append(Gap("age", 1, here))
                continue
            if any(number <= last and found.time <= time for last, time in before):
                continue
            text, body = split_event(found.body)
            try:
                header = EventHeader.read(text)
            except RecordError:
                header = EventHeader("")
            if header.missing:
                self._buffer.append(Gap(header.reason, None, here))
                continue
            if number in delivery.unsure and not _wants(expressions, body):
                continue
            self._buffer.append(Delivered(number, body, header.publisher, found.time, header.origin, here))

    async def _payloads(self, deliveries: Any) -> dict[tuple[str | None, int], Record]:
        wanted: dict[str | None, set[int]] = {}
        for delivery in deliveries:
            wanted.setdefault(delivery.copy, set()).update(delivery.events)
        found: dict[tuple[str | None, int], Record] = {}
        for copy, numbers in wanted.items():
            if copy is None:
                fetched = await self._log.fetch(EVENTS, numbers)
                found |= {(None, number): record for number, record in fetched.items()}
            else:
                topic = f"{keys.COPY}{copy}"
                lasts = await self._log.last(QUEUES, [(topic, str(number)) for number in numbers])
                found |= {(copy, int(detail)): record for (_, detail), record in lasts.items()}
        return found

    async def _learn_expressions(self) -> list[Expression]:
        """What this subscriber wants, to decide about events where a router could not."""
        if self._expressions is not None:
            return self._expressions
        changes = self._changes
        learnt = [_parsed_or_everything(text) for text in (await self.subscriptions()).values()]
        if changes == self._changes:
            self._expressions = learnt
        return learnt

    def _forget_expressions(self) -> None:
        self._expressions = None
        self._changes += 1

    async def _drops(self) -> Drops:
        key = (keys.DROP, token(self.name))
        return read_drops((await self._log.last(STATE, [key])).get(key))

    async def _roll_back(self) -> None:
        """The log has lost what we have read already: say so, and go on from what it knows."""
        self._buffer.clear()
        self._end = 0
        self._old_until = (self._seen_time, *self._seen)
        self._note_rollback()
        queue, read = ((topic, token(self.name)) for topic in (keys.QUEUE, keys.READ))
        found = await self._log.last(STATE, [queue, read])
        is_there = queue in found and bool(found[queue].body)
        if not is_there or not await self._take_over(found.get(read)):
            await self.open()
        if not any(isinstance(item, Gap) and item.reason == ROLLBACK for item in self._buffer):
            self._buffer.append(Gap(ROLLBACK, None, self._seen))

    def _note_rollback(self) -> None:
        self._handed_before = [*self._handed_before, dict(self._handed)][-MOST_ROLLBACKS:]

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
        if _progress(reading) <= _progress(self._reading):
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
            self._old_until, self._handed, self._handed_before = (0, 0, 0), {}, []
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
        self._forget_expressions()
        await self.open()

    async def remove(self) -> None:
        """Forget this subscriber: its queue, its position and its subscriptions."""
        await remove_subscriber(self._log, self.name)


def _parsed_or_everything(text: str) -> Expression:
    """An expression; one of a later release that cannot be parsed here wants everything."""
    try:
        return tamis.parse(text)
    except TamisError:
        return tamis.parse("TRUE")


def _wants(expressions: list[Expression], body: bytes) -> bool:
    return any(expression.evaluate(body) in (True, "either") for expression in expressions)


def _progress(reading: Reading) -> tuple[int, int, int]:
    """Positions in their order."""
    return reading.after, reading.part_of, reading.part


async def remove_subscriber(log: Log, name: str, left: Sequence[Entry] = (), read: int | None = None) -> None:
    """Forget a subscriber. What comes under its name after its queue is gone stays.

    `left` is what is written instead; with `read`, the number of its last position, only if it has not come
    back since: otherwise that is a `FencedError`, and nothing is removed.

    >>> import tempfile
    >>> from tamis.pubsub.site import connect
    >>> async def example(folder):
    ...     async with connect(f"sqlite:{folder}/site.db") as site:
    ...         ann = await site.subscriber("ann")
    ...         _ = await ann.subscribe("cheap", "price < 15")
    ...         await remove_subscriber(site.log, "ann")
    ...         return await ann.subscriptions()
    >>> asyncio.run(example(tempfile.mkdtemp()))
    {}
    """
    mine = token(name)
    entries = {(topic, mine): Entry(topic, mine, b"") for topic in (keys.QUEUE, keys.READ, keys.DROP)}
    entries |= {entry.key: entry for entry in left}
    delivered = await log.end(QUEUES)
    fences = None if read is None else {(keys.READ, mine): read}
    removed = await log.append(STATE, list(entries.values()), fences)
    await remove_subscriptions(log, mine, removed)
    await log.trim(QUEUES, delivered + 1, keys.queue_topic(name))


async def remove_subscriptions(log: Log, subscriber: str, before: int) -> None:
    """Take back the subscriptions of a subscriber (as a part of a key) with numbers below `before`."""
    after = 0
    while records := await log.read(
        STATE, topic=keys.SUBSCRIPTION, name=subscriber, after=after, most=MOST_ENTRIES, to_end=True
    ):
        gone = {(r.topic, r.detail): r.seq for r in records if r.body and r.seq < before}
        try:
            if gone:
                await _take_back(log, gone)
        except FencedError:
            await asyncio.sleep(RETRY_SECONDS)  # some were written again: look again
            continue
        after = records[-1].seq
        if after >= before:
            return


async def _take_back(log: Log, numbers: dict[Key, int]) -> None:
    """Take back records of the state, unless they were written again since."""
    try:
        await log.append(STATE, [Entry(*key, b"") for key in numbers], numbers)
    except BusyError:
        for key, number in numbers.items():
            await log.append(STATE, [Entry(*key, b"")], {key: number})
