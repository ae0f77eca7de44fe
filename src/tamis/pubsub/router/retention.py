"""Keeping a site's log small: records that are too old, too many or not needed any more are removed.

One router does this at a time, the one that has partition 0. Nothing depends on that: doing it twice is
harmless. "Now" is the log's own clock, as the latest record shows it.

- Of each queue: deliveries that wait longer than `keep_seconds`; those beyond `most_bytes`, the lowest
  priority first and of it the oldest; those that were read more than `replay_seconds` ago.
- Subscribers that nobody has been for `idle_seconds`, with their subscriptions.
- Events that every partition's router has passed and no queue refers to.
- Copies for projections, old dead letters, signs of removal after a day.

A delivery that is dropped unread is first written down under `drop`, so that its subscriber learns why there
is a gap. If it was on its way over a neighbour to sites behind it, these sites are told.
"""

import logging
from collections import Counter, deque
from dataclasses import dataclass, field, replace

from tamis.pubsub import keys
from tamis.pubsub.log.contract import (
    EVENTS,
    QUEUES,
    STATE,
    BusyError,
    Entry,
    FencedError,
    Key,
    Log,
    LogFullError,
    Record,
    append_each,
)
from tamis.pubsub.names import name_of
from tamis.pubsub.records import (
    LINK,
    LINK_BYTES,
    LINK_KEEP_SECONDS,
    MOST_NUMBER,
    ROLLBACK,
    Behind,
    Cursor,
    Delivery,
    Drop,
    Drops,
    EventHeader,
    QueueLimits,
    Reading,
    RecordError,
    Settings,
    Target,
    event_body,
    read_drops,
    write,
)
from tamis.pubsub.router.counters import Counters
from tamis.pubsub.router.matching import SITE
from tamis.pubsub.router.table import Table
from tamis.pubsub.subscriber import remove_subscriber, remove_subscriptions

logger = logging.getLogger("tamis.router")

MICROS = 1_000_000
LEAST_EVENT_SECONDS = 60
"""Events are kept at least for so long: a publisher whose answer was lost asks whether its event is there."""
DEAD_LETTER_SECONDS = 30 * 86_400
MOST_DEAD_LETTERS = 10_000
"""A client that publishes rubbish must not fill the log with letters about it."""
FORGET_SECONDS = 3_600
"""Minimum time between two removals of the same subscriber; each removal reads all subscriptions."""
TOMBSTONE_SECONDS = 86_400
READ_AT_ONCE = 2_000
COPIES_TOGETHER = 256


@dataclass(slots=True)
class Item:
    """One record of a queue."""

    seq: int
    first: int
    count: int
    size: int
    oldest: int
    """The lowest event that it refers to."""
    time: int
    sites: dict[str, int]
    """Of a neighbour's queue: how many events are on their way to each site."""
    gaps: dict[int, int]
    """Places of deliveries that are gaps, and how many events each stands for at the owner of the queue."""
    rollbacks: dict[int, list[str]]
    """Those of them that say that a log was rolled back: the sites that they are on their way to."""


@dataclass(slots=True)
class Copies:
    """Neighbouring copies of one projection: an event each, as the projection shows it."""

    last: int
    """The number of the last copy."""
    newest: int
    """The highest event that one of them is of."""
    count: int = 1


@dataclass
class Queue:
    """What the log has of one queue, by lane."""

    lanes: dict[str, deque[Item]] = field(default_factory=dict)
    life: str | None = None
    """Which life of the queue these records are of; None as long as nobody has asked."""

    def begin_again(self, life: str, after: int) -> None:
        """The queue was removed and made again: leave out what was delivered before."""
        self.life = life
        for lane, items in self.lanes.items():
            self.lanes[lane] = deque(item for item in items if item.seq > after)

    def waiting(self, after: int) -> int:
        """Bytes of events behind a record."""
        return sum(item.size for lane in self.lanes.values() for item in lane if item.seq > after)


class Retention:
    """Keeps one log small; `tidy` does one round."""

    def __init__(
        self,
        log: Log,
        settings: Settings,
        table: Table,
        counters: Counters,
        *,
        least_event_seconds: float = LEAST_EVENT_SECONDS,
    ) -> None:
        """`table` is the router's, which catches up by itself."""
        self._log = log
        self._settings = settings
        self._table = table
        self._counters = counters
        self._least_event_seconds = least_event_seconds
        self._generation = 0
        self.queues: dict[str, Queue] = {}
        self._cursors: dict[str, Record] = {}
        """How far each partition was routed, by what the queues had when they were read. A later cursor says
        nothing of them: the deliveries that were written with it are not in the lists."""
        self._copies: dict[str, deque[Copies]] = {}
        """The copies of each projection, in order."""
        self._dead: deque[int] = deque()
        """The numbers of dead letters."""
        self._forgotten: dict[str, int] = {}
        """When subscribers were forgotten, within the last hour."""
        self._after = 0
        self._removals_after = 0
        """Up to where in the state removals of queues were looked at."""
        self._tombstones_at = 0

    async def tidy(self) -> None:
        """One round."""
        try:
            await self._tidy()
        except BaseException:
            self._generation = 0  # the lists may lack records that were not written down: read them again
            raise

    async def _tidy(self) -> None:
        await self._read_queues()
        # After what was delivered: whose it is was known before, and is known here now.
        await self._table.catch_up()
        await self._finish_removals()
        now = self._table.time
        for name in list(self.queues):
            await self._limit(name, now)
        for name, record in list(self._table.others.of(keys.BEHIND).items()):
            drops = read_drops(None, record)
            if name.startswith(SITE) and (drops.behind.is_open or drops.rollbacks.is_open):
                await self._tell_sites_behind(name)
        for name, limits in list(self._table.queues.items()):
            await self._forget_if_gone(name, limits, now)
        await self._trim_events(now)
        await self._trim_copies()
        await self._trim_rest(now)

    def lag(self, name: str) -> tuple[int, int]:
        """How many events wait for a subscriber, and how many bytes."""
        reading = self._reading(name)
        after = reading.after if reading is not None else 0
        # Copies, each made at once: the page of metrics is asked for from another thread.
        lanes = [list(lane) for lane in list(self._queue(name).lanes.values())]
        items = [item for lane in lanes for item in lane if item.seq > after]
        return sum(item.count for item in items), sum(item.size for item in items)

    def _queue(self, name: str) -> Queue:
        return self.queues.get(name, Queue())

    async def _read_queues(self) -> None:
        end = await self._log.end(QUEUES)
        if self._generation != self._log.generation or end < self._after:
            self._generation = self._log.generation
            self.queues.clear()
            self._cursors.clear()
            self._copies.clear()
            self._dead.clear()
            self._after = self._removals_after = 0
        while records := await self._log.read(QUEUES, after=self._after, most=READ_AT_ONCE):
            for record in records:
                if record.topic.startswith("q-"):
                    self._note(record)
                elif record.topic == keys.CURSOR:
                    self._cursors[record.detail] = record
                elif record.topic.startswith(keys.COPY) and record.detail.isdecimal():
                    self._note_copy(record.topic, record.seq, int(record.detail))
                elif record.topic == keys.DEAD:
                    self._dead.append(record.seq)
            self._after = records[-1].seq

    def _note_copy(self, topic: str, seq: int, event: int) -> None:
        copies = self._copies.setdefault(topic, deque())
        if not copies or copies[-1].count == COPIES_TOGETHER:
            copies.append(Copies(seq, event))
        else:
            copies[-1] = Copies(seq, max(event, copies[-1].newest), copies[-1].count + 1)

    def _note(self, record: Record) -> None:
        name = record.topic.removeprefix("q-")
        try:
            delivery = Delivery.read(record.body)
        except RecordError:
            delivery = Delivery(0, ())
        item = Item(
            record.seq,
            delivery.first,
            len(delivery.events),
            delivery.size,
            min(delivery.events, default=0),
            record.time,
            *_meaning(delivery, _site_of(name)),
        )
        queue = self.queues.setdefault(name, Queue())
        queue.lanes.setdefault(record.detail, deque()).append(item)

    def _reading(self, name: str) -> Reading | None:
        record = self._table.others.get((keys.READ, name))
        if record is None:
            return None
        try:
            return Reading.read(record.body)
        except RecordError:
            return None

    async def _finish_removals(self) -> None:
        """Take back what a removal that was cut off has left: subscriptions older than a queue's removal."""
        while records := await self._log.read(
            STATE, topic=keys.QUEUE, after=self._removals_after, most=READ_AT_ONCE
        ):
            for record in records:
                if not record.body and keys.is_key(record.topic, record.detail):
                    await remove_subscriptions(self._log, record.detail, record.seq)
                self._removals_after = record.seq

    # --- queues ------------------------------------------------------------------------------------

    async def _limit(self, name: str, now: int) -> None:
        queue, limits = self.queues[name], self._table.queues.get(name)
        if limits is None and name.startswith(SITE):
            limits = QueueLimits(LINK_BYTES, LINK_KEEP_SECONDS)  # a neighbour that has never been here
        if limits is None:
            await self._log.trim(QUEUES, self._after + 1, f"q-{name}")
            del self.queues[name]
            return
        if queue.life not in (None, limits.life):
            if (reading := self._reading(name)) is None:
                return  # whoever makes it again has not said yet where it begins
            queue.begin_again(limits.life, reading.after)
        queue.life = limits.life
        if (grant := self._table.grants.get(name)) is not None:
            limits = grant.capped(limits)
        reading = self._reading(name)
        after = reading.after if reading is not None else 0
        dropped: list[tuple[str, str, Item]] = []
        trimmed: dict[str, int] = {}
        waiting = queue.waiting(after)
        for lane in sorted(queue.lanes, key=_priority):
            items = queue.lanes[lane]
            while items and items[0].seq <= after and items[0].time < now - limits.replay_seconds * MICROS:
                trimmed[lane] = _behind(items.popleft())
            while waits := next((item for item in items if item.seq > after), None):
                if waits.time < now - limits.keep_seconds * MICROS:
                    reason = "age"
                elif waiting > limits.most_bytes:
                    reason = "bytes"
                else:
                    break
                # What was read before it in its lane goes, too: limits come before replays.
                while items.popleft() is not waits:
                    pass
                waiting -= waits.size
                dropped.append((reason, lane, waits))
                trimmed[lane] = _behind(waits)
        if trimmed:
            await self._write_down(name, queue, dropped, trimmed)

    async def _write_down(
        self, name: str, queue: Queue, dropped: list[tuple[str, str, Item]], trimmed: dict[str, int]
    ) -> None:
        emptied = {lane: number for lane, number in trimmed.items() if not queue.lanes[lane]}
        while dropped or emptied:
            drop, told = (keys.DROP, name), (keys.BEHIND, name)
            found = await self._log.last(STATE, [drop, told])
            drops = read_drops(found.get(drop), found.get(told))
            behind: Counter[str] = Counter()
            rollbacks: Counter[str] = Counter()
            for reason, lane, item in dropped:
                known = drops
                if item.count and item.first:
                    drops = _with_item(drops, reason, lane, item, _site_of(name))
                if drops is not known:
                    behind.update(item.sites)
                    rollbacks.update(site for sites in item.rollbacks.values() for site in sites)
            following = {lane: max(number, drops.next.get(lane, 0)) for lane, number in emptied.items()}
            drops = replace(
                drops,
                next={**drops.next, **following},
                behind=drops.behind.and_untold(behind),
                rollbacks=drops.rollbacks.and_untold(rollbacks),
            )
            entries = [Entry(*drop, drops.body())]
            if name.startswith(SITE):
                entries.append(Entry(*told, drops.behind_body()))
            fences = {entry.key: found[entry.key].seq if entry.key in found else 0 for entry in entries}
            try:
                await self._append_drops(entries, fences)
                break
            except FencedError:
                continue  # another router keeps house, too: add to what it has written
        self._counters.dropped += sum(item.count for *_, item in dropped)
        for lane in trimmed:
            items = queue.lanes[lane]
            await self._log.trim(QUEUES, items[0].seq if items else self._after + 1, f"q-{name}", lane)
        if name.startswith(SITE):
            await self._tell_sites_behind(name)
        if dropped:
            logger.warning("dropped", extra={"subscriber": name, "events": sum(i.count for *_, i in dropped)})

    async def _append_drops(self, entries: list[Entry], fences: dict[Key, int]) -> None:
        """Write down drops, and what sites behind miss by them.

        Others may use up what a log can do at once. Then the last goes first: should this router die in
        between, sites behind are told of more than they miss, and not of less.
        """
        try:
            await self._log.append(STATE, entries, fences)
        except BusyError:
            for entry in reversed(entries):
                await self._log.append(STATE, [entry], {entry.key: fences[entry.key]})

    async def _tell_sites_behind(self, name: str) -> None:
        """Send a gap to the sites that events were on their way to which were dropped of a neighbour's queue.

        The neighbour itself finds it in its queue. Like an event, a gap is taken once, by its number. What is
        being told is written down first: should this router die, the same gap is sent again.
        """
        key = (keys.BEHIND, name)
        record = (await self._log.last(STATE, [key])).get(key)
        drops = read_drops(None, record)
        if record is None or not (drops.behind.is_open or drops.rollbacks.is_open):
            return
        neighbour, seq = name_of(name).removeprefix("@"), record.seq
        ours = (neighbour, self._settings.site)
        try:
            begun = replace(drops, behind=drops.behind.begun(ours), rollbacks=drops.rollbacks.begun(ours))
            if begun != drops:
                seq = await self._log.append(STATE, [Entry(*key, begun.behind_body())], {key: seq})
            gaps = self._gaps(neighbour, begun)
            if not gaps:
                return
            try:
                await append_each(self._log, EVENTS, gaps)
            except LogFullError:
                return  # what was dropped makes room: they are told in a later round
            sites = sorted({*begun.behind.telling, *begun.rollbacks.telling})
            logger.error("dropped for sites behind", extra={"site": neighbour, "sites": sites})
            done = replace(begun, behind=begun.behind.done(), rollbacks=begun.rollbacks.done())
            await self._log.append(STATE, [Entry(*key, done.behind_body())], {key: seq})
        except FencedError:
            return  # another router keeps house, too, and tells them

    def _gaps(self, neighbour: str, drops: Drops) -> list[Entry]:
        """What the sites are told: one gap for those that miss as many events, one for each kind."""
        life = self._table.others.get(keys.LIFE)
        known_by = f"{neighbour} {life.seq if life is not None else 0}"
        behind = drops.behind
        headers = [
            EventHeader("", life=known_by, targets=_numbered(behind, count), missing=count)
            for count in sorted(set(behind.telling.values()))
        ]
        if drops.rollbacks.telling:  # of which nobody knows how many events they stand for
            targets = _numbered(drops.rollbacks)
            again = f"{known_by} {ROLLBACK}"
            headers.append(EventHeader("", life=again, targets=targets, missing=1, reason=ROLLBACK))
        return [
            Entry(
                keys.partition_topic(0),
                keys.DROPPED,
                event_body(replace(header, origin=self._settings.site).body(), b"{}"),
            )
            for header in headers
        ]

    async def _forget_if_gone(self, name: str, limits: QueueLimits, now: int) -> None:
        record = self._table.others.get((keys.READ, name))
        if record is None or record.time >= now - limits.idle_seconds * MICROS:
            return
        recently = now - FORGET_SECONDS * MICROS
        self._forgotten = {each: at for each, at in self._forgotten.items() if at > recently}
        if name in self._forgotten:
            return
        drop, behind = (keys.DROP, name), (keys.BEHIND, name)
        found = await self._log.last(STATE, [drop, behind])
        drops = read_drops(found.get(drop), found.get(behind))
        totals = {**drops.totals, "forgotten": drops.totals.get("forgotten", 0) + 1}
        left = Drops(
            totals, behind=Behind(told=drops.behind.told), rollbacks=Behind(told=drops.rollbacks.told)
        )
        entries = [Entry(*drop, left.body())]
        if behind in found:
            entries.append(Entry(*behind, left.behind_body()))
        try:
            await remove_subscriber(self._log, name_of(name), entries, record.seq)
        except FencedError:
            return  # it has just come back
        except BusyError:
            return  # others use up what the log can do at once: it is forgotten in a later round
        self._forgotten[name] = now  # now that it is done: what failed is tried again
        self.queues.pop(name, None)
        self._counters.forgotten += 1
        logger.warning("subscriber forgotten", extra={"subscriber": name})

    # --- the rest ----------------------------------------------------------------------------------

    def _first_needed(self) -> int:
        """The lowest event that a queue refers to."""
        lanes = [lane for queue in self.queues.values() for lane in queue.lanes.values()]
        return min((item.oldest for lane in lanes for item in lane), default=MOST_NUMBER)

    def _routed(self, partition: str) -> int:
        """How far a partition was routed when the queues were read; 0 if that is not known here."""
        try:
            return Cursor.read(self._cursors[partition].body).position
        except (KeyError, RecordError):  # nobody has routed it; or a later release has
            return 0

    async def _trim_events(self, now: int) -> None:
        needed = self._first_needed()
        for number in range(self._settings.partitions):
            before = min(self._routed(str(number)), needed)
            topic = keys.partition_topic(number)
            before = await self._young_from(EVENTS, topic, before, now - self._least_event_seconds * MICROS)
            if before:
                # A publisher that asks for its last event learns that it was not lost.
                entry = Entry(keys.TRIM, str(number), write({"before": before}))
                await self._log.append(STATE, [entry])
                await self._log.trim(EVENTS, before, topic)

    async def _young_from(self, stream: str, topic: str, before: int, since: float) -> int:
        """The number up to which a topic's records may go: those before a number, and older than a time."""
        after = found = 0
        while records := await self._log.read(stream, topic=topic, after=after, most=READ_AT_ONCE):
            for record in records:
                if record.seq >= before or record.time >= since:
                    return found
                found = record.seq + 1
            after = records[-1].seq
        return found

    async def _trim_copies(self) -> None:
        """A copy comes before the deliveries that refer to it, perhaps in an append before theirs.

        So it is needed while its event is not routed, or a queue may refer to it.
        """
        if not self._copies:
            return
        needed = min(self._first_needed(), await self._first_to_route())
        for topic, copies in list(self._copies.items()):
            before = 0
            while copies and copies[0].newest < needed:
                before = copies.popleft().last + 1
            if before:
                await self._log.trim(QUEUES, before, topic)
            if not copies:
                del self._copies[topic]

    async def _first_to_route(self) -> int:
        """The lowest event that was not routed when the queues were read, in any partition."""
        first = MOST_NUMBER
        for number in range(self._settings.partitions):
            topic, after = keys.partition_topic(number), self._routed(str(number))
            waiting = await self._log.read(EVENTS, topic=topic, after=after, most=1, to_end=True)
            first = min([first, *(record.seq for record in waiting)])
        return first

    async def _trim_rest(self, now: int) -> None:
        before = await self._young_from(QUEUES, keys.DEAD, self._after, now - DEAD_LETTER_SECONDS * MICROS)
        while len(self._dead) > MOST_DEAD_LETTERS:
            before = max(before, self._dead.popleft() + 1)
        if before:
            await self._log.trim(QUEUES, before, keys.DEAD)
        if now - self._tombstones_at > TOMBSTONE_SECONDS * MICROS:
            await self._trim_tombstones(now)
            self._tombstones_at = now

    async def _trim_tombstones(self, now: int) -> None:
        end = await self._log.end(STATE)
        after = 0
        while records := await self._log.read(STATE, after=after, most=READ_AT_ONCE):
            for record in records:
                # The last record stays: readers know by it that they have read everything.
                if not record.body and record.seq < end and record.time < now - TOMBSTONE_SECONDS * MICROS:
                    await self._log.trim(STATE, record.seq + 1, record.topic, record.detail)
            after = records[-1].seq


def _site_of(queue: str) -> str | None:
    """The site whose queue it is; None if it is a subscriber's, or nobody's."""
    try:
        return name_of(queue.removeprefix(SITE)) if queue.startswith(SITE) else None
    except ValueError:
        return None


def _numbered(behind: Behind, count: int | None = None) -> tuple[Target, ...]:
    """The sites that are told, each with the number of this gap; those alone that miss so many events."""
    telling = behind.telling
    return tuple((site, behind.told[site]) for site in sorted(telling) if count in (None, telling[site]))


def _meaning(
    delivery: Delivery, site: str | None
) -> tuple[dict[str, int], dict[int, int], dict[int, list[str]]]:
    """How many events are on their way to each site; and for how many events each gap stands here.

    A gap that is on its way to others only says nothing new to the site whose queue it is in.
    """
    if not (delivery.targets or delivery.gaps):
        return {}, {}, {}
    stands, of_rollbacks = dict(delivery.gaps), set(delivery.rollbacks)
    going: Counter[str] = Counter()
    gaps: dict[int, int] = {}
    rollbacks: dict[int, list[str]] = {}
    for place, number in enumerate(delivery.events):
        targets = [target for target, _ in delivery.targets[place]] if delivery.targets else []
        if number in stands and number in of_rollbacks:
            gaps[place], rollbacks[place] = 0, targets
            continue
        going.update(dict.fromkeys(targets, stands.get(number, 1)))
        if number in stands:
            gaps[place] = stands[number] if site is None or site in targets else 0
    return dict(going), gaps, rollbacks


def _with_item(drops: Drops, reason: str, lane: str, item: Item, site: str | None) -> Drops:
    """Add a record of a subscriber's or a site's queue to the drops: gaps stay gaps."""
    before, start = drops, item.first
    for place in sorted(item.gaps):
        if place in item.rollbacks and (site is None or site in item.rollbacks[place]):
            kind = ROLLBACK
        elif site is None:
            kind = LINK
        else:
            continue  # it counts, below
        number = item.first + place
        if start < number:
            drops = drops.and_drop(Drop(reason, lane, start, number - 1))
        drops = drops.and_drop(Drop(kind, lane, number, number))
        start = number + 1
    if start < item.first + item.count:
        drops = drops.and_drop(Drop(reason, lane, start, item.first + item.count - 1))
    for place, events in item.gaps.items() if site is not None and drops is not before else ():
        drops = drops.and_gap(lane, item.first + place, events)
    return drops


def _priority(lane: str) -> int:
    return int(lane.rpartition(".")[2] or 0) if lane.rpartition(".")[2].isdecimal() else 0


def _behind(item: Item) -> int:
    return item.first + item.count
