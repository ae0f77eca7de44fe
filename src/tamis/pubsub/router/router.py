"""A router: takes events in batches, matches each batch at once, and writes deliveries.

A router has no state of its own. Which partitions are its, and how far they are routed, is one record per
partition, the *cursor*. Deliveries and the cursor that says "these events are routed" are one append, fenced
by the last cursor:

- a router that dies has written a batch with its cursor, or nothing of it;
- a router that has lost a partition without knowing is refused, as somebody else has written the cursor.

So nothing is lost and nothing is written twice, whatever dies when. Who is alive is judged by each router's
own clock, from signs of life that change; no two clocks are compared.
"""

import asyncio
import logging
import time
import uuid
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from tamis.pubsub import keys
from tamis.pubsub.log.contract import (
    EVENTS,
    MOST_ENTRIES,
    QUEUES,
    STATE,
    Entry,
    FencedError,
    Key,
    Log,
    LogError,
    LogFullError,
    LogUnavailableError,
    Record,
    StreamLostError,
    last_by,
    mark,
)
from tamis.pubsub.names import token
from tamis.pubsub.records import (
    Cursor,
    DeadLetter,
    Delivery,
    Fields,
    RecordError,
    Settings,
    Target,
    delivery_to_one,
    plain_delivery,
    read_drops,
    write,
)
from tamis.pubsub.router.arrivals import Arrivals
from tamis.pubsub.router.counters import Counters
from tamis.pubsub.router.event_reader import EventReader
from tamis.pubsub.router.matching import Matched, Wanted, match
from tamis.pubsub.router.projection import project, projection_id
from tamis.pubsub.router.table import Table
from tamis.pubsub.sites.advertised import Promise
from tamis.pubsub.sites.ways import site_deliveries

logger = logging.getLogger("tamis.router")

MOST_DELIVERIES = MOST_ENTRIES - 10
MOST_TARGET_BYTES = 500_000
"""What one record says of the sites that its events are on their way to: NATS takes a megabyte in all."""
NUMBER_BYTES = 17
"""A number and a comma."""
TRIM_CURSOR_EVERY = 64
FIRST_BATCH = 1_000
"""A batch may have many matches: the first is small, and while they are quick the next is larger."""
SAMPLED = 32
"""Of a batch, so many events are remembered."""
LONGEST_PAUSE = 5.0
Projected = Mapping[str, tuple[str, ...]]
"""Clients that may see some attributes only, with these."""


@dataclass
class Lease:
    """A partition that this router has."""

    partition: int
    cursor: Cursor
    seq: int
    """The number of the cursor's record: the fence."""
    numbers: dict[Key, int] = field(default_factory=dict)
    """The next delivery number of each lane, as far as they were needed."""
    written: int = 0
    empty_at: int | None = None
    """The end of all events when there was nothing left in this partition."""

    @property
    def key(self) -> Key:
        """Where the cursor is."""
        return keys.CURSOR, str(self.partition)


class Router:
    """One router of a site; `step` does what there is to do, `run` does it until `stop`.

    >>> import tempfile
    >>> from tamis.pubsub.site import connect
    >>> async def example(folder):
    ...     async with connect(f"sqlite:{folder}/site.db") as site:
    ...         ann = await site.subscriber("ann")
    ...         _ = await ann.subscribe("cheap", "price < 15")
    ...         _ = await (await site.publisher("bob")).publish({"price": 12})
    ...         router = Router(site.log, site.settings)
    ...         routed = await router.step()
    ...         return routed, (await anext(aiter(ann))).event
    >>> asyncio.run(example(tempfile.mkdtemp()))
    (1, {'price': 12})
    """

    def __init__(
        self,
        log: Log,
        settings: Settings,
        *,
        name: str | None = None,
        batch: int = 10_000,
        lease_seconds: float = 10.0,
        snapshot: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`lease_seconds` without a sign of life, and others take over this router's partitions."""
        self.name = token(name or f"router-{uuid.uuid4().hex[:12]}")
        self.log = log
        self.settings = settings
        self.table = Table(log, snapshot, settings.site)
        self.counters = Counters()
        self.arrivals = Arrivals(settings.site)
        """What the links of this process have stored: see `Network`."""
        self._events = EventReader(log, self.arrivals)
        self._promise = Promise(self.table)
        self.leases: dict[int, Lease] = {}
        self._batch, self._most = batch, min(batch, FIRST_BATCH)
        """How many events are matched at once: at most, and as far as a lease allows."""
        self._lease_seconds = lease_seconds
        self._clock = clock
        self._generation = log.generation
        self._incarnation = uuid.uuid4().hex
        self._life = 0
        self._signed_seq = 0
        self._signed_at: float | None = None
        self._has_looked = False
        """Whether all cursors that name us are known to be leases of ours."""
        self._signs: dict[str, tuple[int, float]] = {}
        """The last sign of life of each router, and when it was noticed."""
        self._complaints: dict[int, str] = {}
        self._stopping = asyncio.Event()

    # --- running -----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Route until `stop` is called, then finish the batch at hand and give the partitions back."""
        pause = 0.05
        while not self._stopping.is_set():
            try:
                if not await self.step():
                    end = await self.log.end(EVENTS)
                    if not await self.step():  # nothing up to that end
                        await self._wait(end)
                pause = 0.05
                self.counters.trouble = None
            except (LogUnavailableError, LogFullError, StreamLostError) as error:
                self.counters.trouble = str(error)
                logger.warning("waiting for the log", extra={"error": str(error)})
                await self._pause(pause)
                pause = min(LONGEST_PAUSE, pause * 2)
        await self.release()

    def stop(self) -> None:
        """Let `run` end."""
        self._stopping.set()

    async def step(self) -> int:
        """Renew and take leases, and route one batch of each partition; returns how many events."""
        await self.table.catch_up()
        if self._generation != self.log.generation:
            # Another file, or another server: whose the partitions are, only the log knows.
            self.leases.clear()
            self.arrivals.clear()
            self._has_looked = False
            self._generation = self.log.generation
            self._signed_seq = 0
            await self._fix_settings()
        await self._keep_name()
        await self._sign()
        await self._share()
        self.arrivals.topics = frozenset(map(keys.partition_topic, self.leases))
        end = await self.log.end(EVENTS)
        routed = 0
        for lease in list(self.leases.values()):
            if lease.empty_at != end:
                more = await self.route(lease)
                lease.empty_at = None if more else end
                routed += more
        self.arrivals.forget(
            {keys.partition_topic(lease.partition): lease.cursor.position for lease in self.leases.values()}
        )
        return routed

    async def _fix_settings(self) -> None:
        """A log that was deleted and made again under our hands needs settings; ours are as good as any."""
        if keys.SETTINGS not in self.table.others:
            try:
                await self.log.append(
                    STATE, [Entry(*keys.SETTINGS, self.settings.body())], {keys.SETTINGS: 0}
                )
            except FencedError:
                return  # somebody else has fixed them, or will in the next step

    async def _wait(self, end: int) -> None:
        waiting = asyncio.create_task(self.log.wait(EVENTS, end, self._lease_seconds / 4))
        stopping = asyncio.create_task(self._stopping.wait())
        await asyncio.wait({waiting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        await asyncio.gather(waiting, stopping, return_exceptions=True)

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return

    async def release(self) -> None:
        """Give all partitions back, so that others need not wait for the leases to end."""
        await self._give_back()
        try:
            await self.log.append(STATE, [Entry(keys.ROUTER, self.name, b"")])
        except LogError as error:
            logger.warning("still listed", extra={"error": str(error)})

    async def _give_back(self) -> None:
        for lease in list(self.leases.values()):
            try:
                await self._write_cursor(lease, replace(lease.cursor, router=""))
            except LogError as error:
                logger.warning("lease not given back", extra={"error": str(error)})
        self.leases.clear()

    # --- leases ------------------------------------------------------------------------------------

    async def _sign(self) -> None:
        """Show that we are alive, and look who else is."""
        now = self._clock()
        if self._signed_at is None or now - self._signed_at >= self._lease_seconds / 3:
            await self.table.check()
            self._life += 1
            sign = write({"life": self._life, "by": self._incarnation})
            self._signed_seq = await self.log.append(STATE, [Entry(keys.ROUTER, self.name, sign)])
            self._signed_at = now
            self._has_looked = False
            for lease in self.leases.values():
                lease.empty_at = None  # a replica that lagged behind may have been asked
        signs = self.table.others.of(keys.ROUTER)
        for name, record in signs.items():
            if self._signs.get(name, (0, 0.0))[0] != record.seq:
                self._signs[name] = (record.seq, now)
        for name in [name for name in self._signs if name not in signs]:
            del self._signs[name]

    async def _keep_name(self) -> None:
        """Two routers with one name would take each other's partitions: the earlier one takes another name.

        A sign behind ours that we have not written is from somebody else who is alive.
        """
        record = self.table.others.get((keys.ROUTER, self.name))
        if record is None or not 0 < self._signed_seq < record.seq:
            return
        try:
            by = Fields(record.body, "sign of life").text("by", "")
        except RecordError:
            by = ""
        if by == self._incarnation:  # an answer was lost
            return
        await self._give_back()
        before, self.name = self.name, f"{self.name}-{self._incarnation[:6]}"
        logger.error(
            "another router has this name: names are unique within a site",
            extra={"router": before, "now": self.name},
        )
        self._signed_at, self._signed_seq = None, 0

    def living(self) -> set[str]:
        """The routers that have shown a sign of life lately, this one included."""
        now = self._clock()
        return {
            name for name, (_, noticed) in self._signs.items() if now - noticed <= self._lease_seconds
        } | {self.name}

    async def _share(self) -> None:
        """Take partitions that nobody living has, up to a fair share; give one back that is beyond it."""
        living = self.living()
        share = -(-self.settings.partitions // len(living))
        if self._has_looked and len(self.leases) == share:
            return
        cursors = [(keys.CURSOR, str(number)) for number in range(self.settings.partitions)]
        found = await self.log.last(QUEUES, cursors)
        for lease in list(self.leases.values()):
            record = found.get(lease.key)
            if record is None or record.seq != lease.seq:
                self._lose(lease)  # a partition without events would not show it for long
        if len(self.leases) > share:
            lease = list(self.leases.values())[-1]
            try:
                await self._write_cursor(lease, replace(lease.cursor, router=""))
            except FencedError:
                self._lose(lease)
            else:
                del self.leases[lease.partition]
                logger.info("partition given back", extra={"partition": lease.partition})
            return
        for number in [number for number in range(self.settings.partitions) if number not in self.leases]:
            record = found.get((keys.CURSOR, str(number)))
            try:
                cursor = Cursor("", 0) if record is None else Cursor.read(record.body)
            except RecordError as error:
                # A later release routes it, or will: to begin again would deliver everything twice.
                self._complain(number, str(error))
                continue
            self._complaints.pop(number, None)
            # What is ours and was let go without a word is taken beyond our share, too: others believe that
            # we have it. It is given back in the next step.
            if cursor.router == self.name or (len(self.leases) < share and cursor.router not in living):
                await self._take(number, record, cursor)
        self._has_looked = True

    def _complain(self, partition: int, error: str) -> None:
        if self._complaints.get(partition) != error:
            self._complaints[partition] = error
            logger.error("cursor cannot be read", extra={"partition": partition, "error": error})

    async def _take(self, partition: int, record: Record | None, cursor: Cursor) -> None:
        lease = Lease(partition, cursor, record.seq if record else 0)
        try:
            await self._write_valid(lease, replace(cursor, router=self.name))
        except FencedError:
            return  # another router was faster
        self.leases[partition] = lease
        self.counters.leases_taken += 1
        logger.info("partition taken", extra={"partition": partition, "position": cursor.position})

    async def _write_cursor(self, lease: Lease, cursor: Cursor) -> None:
        entry = Entry(*lease.key, cursor.body())
        lease.seq = await self.log.append(QUEUES, [entry], {lease.key: lease.seq})
        lease.cursor = cursor

    async def _write_valid(self, lease: Lease, cursor: Cursor) -> None:
        """Write a cursor, moved back if the log was rolled back behind it."""
        valid = await self._still_valid(lease.partition, cursor)
        await self._write_cursor(lease, valid)
        self.counters.rollbacks += valid is not cursor

    async def _still_valid(self, partition: int, cursor: Cursor) -> Cursor:
        """A cursor as it is, or moved back if the events were rolled back behind it."""
        if not cursor.position:
            return cursor
        found = (await self.log.fetch(EVENTS, [cursor.position])).get(cursor.position)
        is_same = found is not None and mark(found) == cursor.mark
        is_trimmed = found is None and await self.log.end(EVENTS) >= cursor.position
        if is_same or is_trimmed or not cursor.mark:
            return cursor
        # What was stored since then is new, whatever its number.
        logger.error("the log was rolled back", extra={"stream": EVENTS, "routed": cursor.position})
        position = await last_by(self.log, EVENTS, keys.partition_topic(partition), cursor.time)
        return replace(cursor, position=position, mark="", done="", until=0)

    # --- routing -----------------------------------------------------------------------------------

    async def route(self, lease: Lease) -> int:
        """Route one batch of a partition; returns how many events."""
        began = self._clock()
        try:
            return await self._route(lease)
        finally:
            self._adapt(self._clock() - began)

    def _adapt(self, seconds: float) -> None:
        """A batch that takes longer than a lease would be lost, and so would the next: take fewer events."""
        if seconds > self._lease_seconds / 3:
            self._most = max(1, self._most // 2)
        elif seconds < self._lease_seconds / 12:
            self._most = min(self._batch, self._most * 2)

    async def _route(self, lease: Lease) -> int:
        records, known = await self._events.next(lease.partition, lease.cursor, self._most)
        if not records:
            await self._check_end(lease)
            return 0
        # After the events were read: who was acknowledged before any of them was published is known now.
        await self.table.catch_up()
        if known and _expires_within(self.table.expiries, records):
            records = await self._events.as_stored(records)
        started = time.perf_counter()
        matched = match(self.table, records, self.settings.site, self._promise.sites, known)
        self.counters.match_seconds += time.perf_counter() - started
        try:
            await self._deliver(lease, matched, 0, len(records))
        except FencedError:
            self._lose(lease)
            return 0
        except LogUnavailableError:
            # Written or not: the log knows. It is asked when the partition is taken again.
            del self.leases[lease.partition]
            self._has_looked = False
            raise
        self._remember(matched)
        self.counters.events += len(records)
        self.counters.dead += len(matched.dead)
        return len(records)

    def _remember(self, matched: Matched) -> None:
        """Keep some events to learn from; count those that came from other sites, and those wanted here."""
        rows = [row for row in range(len(matched.records)) if row not in matched.dead]
        self.table.recent.extend(matched.events[row] for row in rows[:: max(1, len(rows) // SAMPLED)])
        if matched.came:
            self.counters.came += len(matched.came)
            self.counters.came_wanted += len(
                matched.came.intersection(chain.from_iterable(one.rows for one in matched.wanted))
            )

    async def _check_end(self, lease: Lease) -> None:
        if lease.cursor.position and await self.log.end(EVENTS) < lease.cursor.position:
            try:
                await self._write_valid(lease, lease.cursor)
            except FencedError:
                self._lose(lease)

    def _lose(self, lease: Lease) -> None:
        """Somebody else has written the cursor: the partition is not ours any more."""
        self.leases.pop(lease.partition, None)
        self.counters.leases_lost += 1
        logger.warning("partition lost", extra={"partition": lease.partition})

    async def _deliver(self, lease: Lease, matched: Matched, start: int, stop: int) -> None:
        """Write the deliveries of some rows and move the cursor behind them.

        That is one append if it has room. Otherwise the rows are written queue by queue, so that each queue
        has one record for all of them, and the cursor says which queues have it; or in halves, if what
        fills the append belongs to the events themselves.
        """
        to_sites, sites = site_deliveries(
            self.table, self.settings.site, matched, range(start, stop), lease.cursor
        )
        is_all = stop - start == len(matched.records)
        wanted_now = matched.wanted if is_all else _within(matched.wanted, start, stop)
        queues = _by_queue(wanted_now, lease.cursor.done)
        dead = [row for row in sorted(matched.dead) if start <= row < stop]
        is_heavy = (
            len(dead) + len(to_sites) > MOST_DELIVERIES // 2
            or max(map(len, queues.values()), default=0) > MOST_DELIVERIES // 4
            or max(map(self._target_bytes, to_sites), default=0) > MOST_TARGET_BYTES
            or (
                _bytes_with(2 * (stop - start)) > self.log.largest  # a delivery with all rows, all unsure
                and max(map(_bytes_of, [*to_sites, *chain(*queues.values())]), default=0) > self.log.largest
            )
        )
        if is_heavy and stop - start > 1 and not lease.cursor.done:
            middle = (start + stop) // 2
            await self._deliver(lease, matched, start, middle)
            await self._deliver(lease, matched, middle, stop)
            return
        last = matched.records[stop - 1]
        if stop < len(matched.records):  # only the last of a batch has the time that the log gave it
            [last] = await self._events.as_stored([last])
        cursor = Cursor(self.name, last.seq, "", last.time, mark(last), sites)
        letters = [Entry(keys.DEAD, str(lease.partition), self._dead_letter(matched, row)) for row in dead]
        deliveries = [wanted for runs in queues.values() for wanted in runs]
        # As they are now: a delivery must not refer to copies by a grant that came after these were made.
        grants = self.table.grants.items()
        projected = {name: grant.attributes for name, grant in grants if grant.attributes is not None}
        copies = _copies(matched, [*deliveries, *to_sites], projected)
        if len(deliveries) + len(to_sites) + len(letters) + len(copies) <= MOST_DELIVERIES:
            every = [*deliveries, *to_sites]
            await self._write(lease, matched, [*letters, *copies], every, cursor, projected=projected)
            return
        for first in range(0, len(copies), MOST_DELIVERIES):  # a copy that is written again does no harm
            some = copies[first : first + MOST_DELIVERIES]
            await self._write(lease, matched, some, [], lease.cursor, projected=projected)
        *parts, rest = _parts(queues, MOST_DELIVERIES - len(letters) - len(to_sites))
        for part in parts:
            begun = replace(lease.cursor, done=part[-1].name, until=last.seq)
            await self._write(lease, matched, [], part, begun, projected=projected)
        await self._write(lease, matched, letters, [*rest, *to_sites], cursor, projected=projected)

    def _target_bytes(self, wanted: Wanted) -> int:
        """How many bytes the targets of a delivery take in its record, at most."""
        longest = max((len(site.encode()) for site in self.table.sites), default=0)
        targets = len(wanted.rows) if wanted.to else sum(map(len, wanted.targets.values()))
        return targets * (longest + 24)

    async def _write(
        self,
        lease: Lease,
        matched: Matched,
        entries: list[Entry],
        deliveries: list[Wanted],
        cursor: Cursor,
        *,
        projected: Projected,
    ) -> None:
        await self._sign()
        if removed := self.table.take_removed():
            for other in self.leases.values():
                other.numbers = {
                    lane: number for lane, number in other.numbers.items() if lane[0] not in removed
                }
        lanes = [(f"q-{wanted.name}", keys.lane(lease.partition, wanted.priority)) for wanted in deliveries]
        await self._learn_numbers(lease, lanes)
        now: dict[Key, int] = {}
        numbers, sizes = matched.numbers, matched.sizes
        are_usual = not (matched.gaps or projected)
        for lane, wanted in zip(lanes, deliveries, strict=True):
            first = now.get(lane) or lease.numbers.get(lane, 1)
            rows = wanted.rows
            if are_usual and not wanted.unsure and not wanted.targets:  # nearly all
                events, size = [numbers[row] for row in rows], sum([sizes[row] for row in rows])
                if (to := wanted.to) is None:
                    body = plain_delivery(first, events, size)
                else:
                    body = delivery_to_one(first, events, size, to[0], range(to[1], to[1] + len(rows)))
            else:
                body = _delivery(matched, wanted, first, projected.get(wanted.name))
            entries.append(Entry(lane[0], lane[1], body))
            now[lane] = first + len(rows)
        entries.append(Entry(*lease.key, cursor.body()))
        lease.seq = await self.log.append(QUEUES, entries, {lease.key: lease.seq})
        lease.cursor = cursor
        lease.numbers |= now
        self.counters.deliveries += sum(len(wanted.rows) for wanted in deliveries)
        lease.written += 1
        if lease.written % TRIM_CURSOR_EVERY == 0:
            await self.log.trim(QUEUES, lease.seq, *lease.key)

    async def _learn_numbers(self, lease: Lease, lanes: list[Key]) -> None:
        unknown = [lane for lane in lanes if lane not in lease.numbers]
        if not unknown:
            return
        # With a key that is there, a log can say that it knows all of them.
        for lane, record in (await self.log.last(QUEUES, [*unknown, lease.key])).items():
            if lane == lease.key:
                continue
            try:
                last = Delivery.read(record.body)
            except RecordError as error:
                logger.error("unreadable delivery", extra={"queue": lane[0], "error": str(error)})
                if (number := await self._behind_what_can_be_read(lane)) is not None:
                    lease.numbers[lane] = number
                continue
            lease.numbers[lane] = last.first + len(last.events)
        empty = [lane for lane in unknown if lane not in lease.numbers]
        drops = {(keys.DROP, topic.removeprefix("q-")) for topic, _ in empty}
        known = await self.log.last(STATE, [*drops, keys.SETTINGS]) if empty else {}
        for topic, detail in empty:
            emptied = read_drops(known.get((keys.DROP, topic.removeprefix("q-")))).next
            lease.numbers[topic, detail] = emptied.get(detail, 1)

    async def _behind_what_can_be_read(self, lane: Key) -> int | None:
        """Somebody else has written into a queue: go on behind the last delivery that is one."""
        after, number = 0, None
        while records := await self.log.read(QUEUES, topic=lane[0], after=after, to_end=True):
            after = records[-1].seq
            for record in records:
                try:
                    delivery = Delivery.read(record.body)
                except RecordError:
                    continue
                if record.detail == lane[1]:
                    number = delivery.first + len(delivery.events)
        return number

    def _dead_letter(self, matched: Matched, row: int) -> bytes:
        record, reason = matched.records[row], matched.dead[row]
        logger.warning("dead letter", extra={"event": record.seq, "error": reason})
        return DeadLetter(record.seq, reason).body()


def _delivery(matched: Matched, wanted: Wanted, first: int, attributes: tuple[str, ...] | None) -> bytes:
    """The record of a delivery that has more than events."""
    numbers, rows = matched.numbers, wanted.rows
    return Delivery(
        first,
        tuple([numbers[row] for row in rows]),
        sum([matched.sizes[row] for row in rows]),
        tuple([numbers[row] for row in rows if row in wanted.unsure]) if wanted.unsure else (),
        None if attributes is None else projection_id(attributes),
        _targets(wanted),
        tuple([(numbers[row], matched.gaps[row]) for row in rows if row in matched.gaps]),
        tuple([numbers[row] for row in rows if row in matched.rollbacks]) if matched.rollbacks else (),
    ).body()


def _copies(matched: Matched, deliveries: list[Wanted], projected: Projected) -> list[Entry]:
    """For clients that may see some attributes only: one copy for each distinct choice of them."""
    if not projected:
        return []
    wanted: dict[tuple[str, ...], set[int]] = {}
    for delivery in deliveries:
        attributes = projected.get(delivery.name)
        if attributes is not None:
            wanted.setdefault(tuple(sorted(attributes)), set()).update(delivery.rows)
    return [
        Entry(
            f"{keys.COPY}{projection_id(attributes)}",
            str(matched.records[row].seq),
            project(matched.records[row].body, attributes),
        )
        for attributes, rows in wanted.items()
        for row in sorted(rows)
    ]


def _targets(wanted: Wanted) -> tuple[tuple[Target, ...], ...]:
    """Where each row goes."""
    if wanted.to is not None:
        site, first = wanted.to
        return tuple([((site, number),) for number in range(first, first + len(wanted.rows))])
    return tuple([wanted.targets[row] for row in wanted.rows]) if wanted.targets else ()


def _bytes_of(wanted: Wanted) -> int:
    """How many bytes the record of a delivery takes, at most, but for its targets."""
    return _bytes_with(len(wanted.rows) + len(wanted.unsure))


def _bytes_with(numbers: int) -> int:
    return 200 + NUMBER_BYTES * numbers


def _expires_within(expiries: list[int], records: list[Record]) -> bool:
    """Whether it matters that some records are a moment later than the times which they were given."""
    first, last = (bisect_right(expiries, record.time) for record in (records[0], records[-1]))
    return first != last


def _within(wanted: list[Wanted], start: int, stop: int) -> list[Wanted]:
    """What is wanted of some rows."""
    found = []
    for one in wanted:
        if not one.rows or one.rows[0] >= stop or one.rows[-1] < start:
            continue
        if start <= one.rows[0] and one.rows[-1] < stop:
            found.append(one)
            continue
        rows = [row for row in one.rows if start <= row < stop]
        if rows:
            found.append(replace(one, rows=rows))
    return found


def _by_queue(wanted: list[Wanted], done: str) -> dict[str, list[Wanted]]:
    """What is wanted for each queue, in the order of their names, behind those that have it already."""
    queues: dict[str, list[Wanted]] = {}
    for one in wanted:  # which are in the order of their names
        if one.name in queues:
            queues[one.name].append(one)
        elif one.name > done:
            queues[one.name] = [one]
    return queues


def _parts(queues: dict[str, list[Wanted]], most: int) -> list[list[Wanted]]:
    """Deliveries in parts of so many at most; what one queue gets is in one part.

    >>> runs = [Wanted("ann", 4, [0]), Wanted("ann", 5, [1])]
    >>> parts = _parts({"ann": runs, "bob": [Wanted("bob", 4, [0])]}, 2)
    >>> [[wanted.name for wanted in part] for part in parts]
    [['ann', 'ann'], ['bob']]
    """
    parts: list[list[Wanted]] = [[]]
    for runs in queues.values():
        # More runs than a part has room for come from subscriptions that changed meanwhile: one will do.
        fitting = runs if len(runs) <= most else [_together(runs)]
        if len(parts[-1]) + len(fitting) > most:
            parts.append([])
        parts[-1] += fitting
    return parts


def _together(runs: list[Wanted]) -> Wanted:
    """Runs of one queue as one, under their highest priority."""
    return Wanted(
        runs[0].name,
        max(run.priority for run in runs),
        [row for run in runs for row in run.rows],
        set().union(*(run.unsure for run in runs)),
    )
