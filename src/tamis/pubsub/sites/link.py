"""One link: what a site takes from a neighbour. Each site pulls; nobody writes events into another's log.

A link takes two things from the neighbour's log. What sites tell of themselves (interest, links, who knows
what) is copied as far as it is newer, and so reaches every site over any graph. And the neighbour's queue for
this site is read, as any subscriber reads its own; the events, the position in that queue and what has come
are one fenced append. So a link that breaks anywhere goes on where it was, and takes nothing twice.
"""

import logging
import re
import time
import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from tamis.pubsub import keys
from tamis.pubsub.log.contract import (
    EVENTS,
    MOST_ENTRIES,
    MOST_READ_BYTES,
    QUEUES,
    STATE,
    Entry,
    FencedError,
    Key,
    Log,
    LogError,
    Record,
    append_each,
    last_by,
    mark,
)
from tamis.pubsub.names import token
from tamis.pubsub.records import (
    ANY_LANE,
    DEFAULT_HOPS,
    LINK,
    LINK_BYTES,
    LINK_KEEP_SECONDS,
    MOST_NUMBER,
    ROLLBACK,
    Delivery,
    Drops,
    EventHeader,
    Fields,
    Place,
    QueueLimits,
    Reading,
    RecordError,
    Settings,
    Target,
    are_pairs,
    event_body,
    number_of,
    read_drops,
    to_targets,
    write,
)
from tamis.pubsub.router.arrivals import Arrival, Arrivals
from tamis.pubsub.router.counters import Counters
from tamis.pubsub.router.table import Table
from tamis.pubsub.sites.coming import Alike, Came, Coming, Headers, fitting, origin_of
from tamis.pubsub.sites.link_cursor import LinkCursor
from tamis.pubsub.sites.ranges import Ranges
from tamis.pubsub.sites.taken import Taken
from tamis.pubsub.sites.told import Told, Trust

logger = logging.getLogger("tamis.link")

TAKE_AT_ONCE = 40
MOST_EVENTS = MOST_ENTRIES - 20
"""Taken in one append; fewer if they are of many origins."""
STEP_SECONDS = 0.3
"""After so long a step ends with the record at hand: one that takes longer counts as a silent neighbour."""
SIGN_SECONDS = 1.0
GOSSIP_SECONDS = 0.2
"""While events come, the link asks for news about sites at most this often."""
DROPS_SECONDS = 1.0
"""The link looks this often for what its neighbour has dropped."""
NEWS_AT_ONCE = 1_000
"""If a neighbour's state has changed in so many places, its topics are asked for one by one."""
TOLD_TOPICS = (keys.INTEREST, keys.ADVERTISED, keys.LINKS, keys.HEARD, keys.APPLIED)
"""In the order in which they are written here: what vouches for a record comes behind it."""
VOUCHING_TOPICS = (keys.LINKS, keys.HEARD)
"""Their records say that all which a site told before is known."""
TRIM_EVERY = 50
TRIM_BYTES = 8 << 20
"""Old records of positions and seen numbers are removed after so many appends, or bytes of them."""
MOST_PARTITIONS = 1_000
MOST_REMEMBERED = 1_000
"""Origins whose seen numbers are in memory."""
MOST_ORIGINS = 10_000
"""The maximum number of new origins a link accepts: partitions of a site, in one life of its log."""
_LANE = re.compile(r"(?:0|[1-9][0-9]{0,2})\.[0-9]|x\.0")
"""The lanes of a queue, with a partition below `MOST_PARTITIONS`. A neighbour can make up others, and the
next number of each lane is remembered."""


class Missing(NamedTuple):
    """How much was dropped before this site took it."""

    events: int = 0
    rollbacks: int = 0
    """Gaps that said that a log was rolled back."""


_NOTHING = Missing()


class Stored(NamedTuple):
    """An event as it is stored here."""

    topic: str
    body: bytes
    header: EventHeader
    event: bytes


class Link:
    """Takes from one neighbour; `step` does what there is to do."""

    def __init__(
        self,
        log: Log,
        settings: Settings,
        table: Table,
        neighbour: str,
        open_log: Callable[[], Awaitable[Log]],
        *,
        counters: Counters,
        clock: Callable[[], float] = time.monotonic,
        hops: int = DEFAULT_HOPS,
        most_bytes: int = LINK_BYTES,
        keep_seconds: float = LINK_KEEP_SECONDS,
        told: Told | None = None,
        arrivals: Arrivals | None = None,
    ) -> None:
        """`open_log` opens the neighbour's log, as often as it is needed.

        While this site is away, the neighbour keeps so many bytes for it, for so many seconds. `arrivals` get
        what is stored here, for the router of this process.
        """
        self.neighbour = neighbour
        self._detail = keys.link_detail(neighbour)
        self.trouble: str | None = "not yet connected"
        """Why the link is down; None while it works."""
        self._log = log
        self._here = settings.site
        self._topic = keys.queue_topic(f"@{self._here}")
        """Our queue at the neighbour."""
        self._to_here = to_targets([(self._here, 0)]).removesuffix(b"0]]}")
        self._table = table
        self._open_log = open_log
        self._counters = counters
        self._clock = clock
        self._hops = hops
        self._limits = QueueLimits(most_bytes, keep_seconds, replay_seconds=0, idle_seconds=1e9).body()
        self._there: Log | None = None
        self._is_outdated = False
        self._generation = 0
        self._signed_at: float | None = None
        self._gossiped_at: float | None = None
        self._signs = 0
        self._last_sign: int | None = None
        """The number that our last sign has in the neighbour's log."""
        self._looks_again = False
        """Whether all that the neighbour tells is to be looked at again."""
        self._arrivals = arrivals
        self._news = told or Told(table, settings.site, Trust(), counters)
        self._told: dict[str, int] = {}
        """Of each topic, the last record that was looked at."""
        self._state_until: int | None = None
        """All that the neighbour told up to this number was looked at; None if that is not known."""
        self.copied = 0
        """How many parts of what sites tell were copied: a step that does this is slow, but not silent."""
        self.has_told_all = False
        """Whether all that the neighbour knows of sites was looked at since this router began."""
        self._cursor: LinkCursor | None = None
        self._headers = Headers(neighbour, self._here, settings.partitions, hops)
        self._is_older = False
        """Whether a lane of the neighbour's queue has begun again."""
        self._looked_for_drops_at: float | None = None
        self._fences: dict[Key, int] = {}
        self._seen: dict[str, Ranges] = {}
        self._taken: dict[str, Taken] = {}
        self._new_origins, self._life = 0, ""
        self._written: dict[Key, int] = {}
        """The last records of keys that were written since old ones were removed."""
        self._appends = self._untrimmed = 0

    async def step(self) -> int:
        """Take what there is; returns how many events. A neighbour that is away raises `LogError`."""
        try:
            there = await self._connected()
            await self._sign(there)
            if self._gossiped_at is None or self._clock() - self._gossiped_at >= GOSSIP_SECONDS:
                await self._gossip(there)
                self._gossiped_at = self._clock()
            taken = await self._take(there)
        except (LogError, RecordError) as error:
            self.trouble = str(error)
            raise
        self.trouble = None
        return taken

    def use(self, open_log: Callable[[], Awaitable[Log]]) -> None:
        """Open the neighbour's log another way from the next step on."""
        self._open_log = open_log
        self._is_outdated = True

    def look_again(self) -> None:
        """Look at all that the neighbour tells again: less may be known here than before."""
        self._looks_again = True

    async def close(self) -> None:
        """Let go of the neighbour's log."""
        if self._there is not None:
            await self._there.close()
            self._there = None

    async def _connected(self) -> Log:
        if self._is_outdated:
            await self.close()
            self._is_outdated = False
            self._generation = 0
        if self._there is None:
            there = await self._open_log()
            try:
                found = (await there.last(STATE, [keys.SETTINGS])).get(keys.SETTINGS)
                name = Settings.read(found.body).site if found is not None else None
                if name != self.neighbour:
                    raise LogError(
                        f"the site at the address of {self.neighbour} is "
                        f"{name or 'empty'}: start a router there first, with that name"
                    )
            except RecordError as error:
                await there.close()
                raise LogError(str(error)) from None
            except LogError:
                await there.close()
                raise
            self._there = there
        end = await self._there.end(QUEUES)  # notices another file, or another server
        is_shorter = self._cursor is not None and end < self._cursor.after
        if self._generation != self._there.generation or is_shorter:
            self._generation = self._there.generation
            self._look_at_all_again()
            self._cursor = None
            self._signed_at = self._gossiped_at = None
        return self._there

    async def _sign(self, there: Log) -> None:
        """Show the neighbour that somebody takes its events, and look whether the last sign is still there.

        Nobody else writes it: if it is not there, or if the next one has a number that was there before, the
        log is an older copy of itself, even where its server and its connection are the same. Or another
        router of this site has signed, and may know more.
        """
        now = self._clock()
        if self._signed_at is not None and now - self._signed_at < SIGN_SECONDS:
            return
        me = token(self._here)
        self._signs += 1
        sign = Entry(keys.PEER, me, write({"life": self._signs, "by": uuid.uuid4().hex}))
        queue = (keys.QUEUE, f"=40{me}")
        if not (record := (await there.last(STATE, [queue])).get(queue)) or record.body != self._limits:
            await there.append(STATE, [Entry(*queue, self._limits)])
        try:
            fences = {} if self._last_sign is None else {sign.key: self._last_sign}
            number = await there.append(STATE, [sign], fences)
        except FencedError:
            self._looks_again = True
            number = await there.append(STATE, [sign])
        if self._state_until is not None and number <= self._state_until:
            self._looks_again = True
        self._last_sign = number
        self._signed_at = now

    # --- what sites tell of themselves -------------------------------------------------------------

    async def _gossip(self, there: Log) -> None:
        """Copy what is new: with one request, as long as little has changed."""
        if self._news.looks_again(self.neighbour) or self._looks_again:
            self._look_at_all_again()
            self._looks_again = False
        if not await self._gossip_at_once(there):
            await self._gossip_by_topic(there)
        self.has_told_all = True

    async def _gossip_at_once(self, there: Log) -> bool:
        """Copy what is new in all of the neighbour's state; False if that is too much, or not known.

        A record that is replaced while others are read moves behind those that vouch for it. So if anything
        was told, all that was there after the first read is read. No more: a busy state grows for ever.
        """
        if (after := self._state_until) is None:
            return False
        told: list[Record] = []
        until = end = 0
        while records := await there.read(STATE, after=after, most=NEWS_AT_ONCE, to_end=bool(told)):
            after = records[-1].seq
            told += [record for record in records if record.topic in TOLD_TOPICS]
            is_much = len(told) > NEWS_AT_ONCE or sum(len(record.body) for record in told) > MOST_READ_BYTES
            if is_much or len(records) == NEWS_AT_ONCE:
                self._state_until = None
                return False
            if not until:
                until, end = after, await there.end(STATE) if told else after
            if after >= end:
                break
        for topic in TOLD_TOPICS:
            # Those that came later may vouch for what comes later still: they are looked at again.
            last = until if topic in VOUCHING_TOPICS else after
            await self._copy(topic, [one for one in told if one.topic == topic and one.seq <= last])
        self._state_until = until or after
        return True

    async def _gossip_by_topic(self, there: Log) -> None:
        """Copy what is new, in parts: a neighbour may tell more than this machine's memory holds.

        A record comes before those that vouch for it. So these are read first, some at a time, and written
        when all that was there by then is copied.
        """
        end, copied = await there.end(STATE), self.copied
        vouching = {topic: await self._new_of(there, topic) for topic in VOUCHING_TOPICS}
        for topic in (keys.INTEREST, keys.ADVERTISED):
            while records := await self._new_of(there, topic):
                await self._copy(topic, records)
                await self._sign(there)  # it may take longer than a site without a sign counts as there
        for topic, records in vouching.items():
            await self._copy(topic, records)
        while records := await self._new_of(there, keys.APPLIED):
            await self._copy(keys.APPLIED, records)
        if self.copied == copied and not await self._has_news(there):
            self._state_until = end

    async def _has_news(self, there: Log) -> bool:
        """Whether the neighbour tells anything that was not looked at, whatever a lagging replica says."""
        for topic in TOLD_TOPICS:
            if await there.read(STATE, topic=topic, after=self._told.get(topic, 0), most=1, to_end=True):
                return True
        return False

    def _look_at_all_again(self) -> None:
        self._told.clear()
        self._state_until = None

    async def _new_of(self, there: Log, topic: str) -> list[Record]:
        return await there.read(STATE, topic=topic, after=self._told.get(topic, 0))

    async def _copy(self, topic: str, records: list[Record]) -> None:
        """Write what is newer than what is known here."""
        if not records:
            return
        me = token(self._here)
        await self._table.catch_up()
        entries = self._news.choose(self.neighbour, topic, records)
        entries += [
            Entry(
                keys.APPLIED,
                f"{entry.detail}.{me}",
                write({"k": number_of(entry.body), "position": position}),
            )
            for entry in entries
            if topic == keys.LINKS and entry.detail != me and (position := _position(entry.body)) is not None
        ]
        try:
            await append_each(self._log, STATE, entries)
        except LogError:
            self._look_at_all_again()  # it is unknown what is written
            raise
        self._told[topic] = records[-1].seq
        self.copied += 1

    # --- events ------------------------------------------------------------------------------------

    async def _take(self, there: Log) -> int:
        await self._look_for_drops(there)
        cursor, life = await self._position(there)
        records = await there.read(QUEUES, topic=self._topic, after=cursor.after, most=TAKE_AT_ONCE)
        taken, began = 0, self._clock()
        for record in records:
            if record is not records[0] and self._clock() - began > STEP_SECONDS:
                break
            delivery, is_lane = _delivery(record), _LANE.fullmatch(record.detail) is not None
            if there.generation != self._generation:
                return taken  # what was read may be of another log: look again
            start = cursor.taken_of(record)
            if not start and cursor.counts_back(record.detail, delivery.first):
                self._cursor, self._is_older = None, True
                return taken  # begin with what is new in it
            missing = _NOTHING if start else await self._missing(there, cursor, record.detail, delivery.first)
            digest = mark(record)
            while True:
                stop = min(start + MOST_EVENTS, len(delivery.events))
                # Not all at once: a neighbour may list more than this machine's memory holds.
                events = await there.fetch(EVENTS, delivery.events[start:stop])
                if there.generation != self._generation:
                    return taken
                coming = self._coming(
                    [events.get(number) for number in delivery.events[start:stop]],
                    life,
                    delivery.targets[start:stop],
                )
                stop = start + len(coming)
                if not isinstance(coming, Alike):
                    missing = missing._replace(events=missing.events + coming.count(None))
                is_last = stop >= len(delivery.events)
                expected = cursor.expected
                if is_lane:
                    expected = {**expected, record.detail: min(delivery.first + stop, MOST_NUMBER)}
                cursor = (
                    LinkCursor(record.seq, 0, life, digest, record.time, expected, outdated=cursor.outdated)
                    if is_last
                    else replace(cursor, part=stop, part_of=digest, expected=expected)
                )
                taken += await self._store(coming, life, cursor, missing)
                start, missing = stop, _NOTHING
                if is_last:
                    break
        if records:
            reading = Reading(self._here, cursor.after)
            await there.append(STATE, [Entry(keys.READ, self._topic.removeprefix("q-"), reading.body())])
        return taken

    def _coming(
        self, events: list[Record | None], life: str, targets: Sequence[tuple[Target, ...]]
    ) -> Alike | list[Coming | None]:
        """The first of some events of the neighbour's queue, as many as an append has room for."""
        if (alike := self._headers.read_alike(events, life, targets)) is not None:
            return alike
        read = self._headers.read
        return fitting(
            [
                None if event is None else read(event, life, targets[place] if targets else ())
                for place, event in enumerate(events)
            ]
        )

    async def _missing(self, there: Log, cursor: LinkCursor, lane: str, first: int) -> Missing:
        """How much is missing before a delivery: a dropped gap may have stood for many events."""
        numbers = cursor.missing(lane, first)
        return _missing_of(await self._drops(there), lane, numbers) if numbers else _NOTHING

    async def _drops(self, there: Log) -> Drops:
        drop, behind = ((topic, f"=40{token(self._here)}") for topic in (keys.DROP, keys.BEHIND))
        found = await there.last(STATE, [drop, behind])
        return read_drops(found.get(drop), found.get(behind))

    async def _look_for_drops(self, there: Log) -> None:
        """Tell what was dropped at the end of a lane: it may be long until another event shows the gap.

        From time to time, however it came about: a site need not notice that it was away.
        """
        now = self._clock()
        if self._looked_for_drops_at is not None and now - self._looked_for_drops_at < DROPS_SECONDS:
            return
        cursor, life = await self._position(there)
        drops = await self._drops(there)
        missing: dict[str, range] = {}
        is_empty: dict[str, bool] = {}
        for lane, following in _lanes(drops).items():
            numbers = cursor.missing(lane, following)
            if not numbers or following <= cursor.outdated.get(lane, 0):
                continue
            # What is written down as dropped may still be there, or more behind it: then it is taken.
            partition = lane.partition(".")[0]
            if partition not in is_empty:
                await self._sign(there)  # a queue may have many partitions
                is_empty[partition] = not await there.read(
                    QUEUES, topic=self._topic, name=partition, after=cursor.after, most=1, to_end=True
                )
            if is_empty[partition]:
                missing[lane] = numbers
        if there.generation != self._generation:
            return
        if missing:
            each = [_missing_of(drops, lane, numbers) for lane, numbers in missing.items()]
            expected = {**cursor.expected, **{lane: numbers.stop for lane, numbers in missing.items()}}
            told = Missing(sum(one.events for one in each), sum(one.rollbacks for one in each))
            await self._store([], life, replace(cursor, expected=expected), told)
        self._looked_for_drops_at = now

    async def _position(self, there: Log) -> tuple[LinkCursor, str]:
        """Where we are in the neighbour's queue, and which life its log has."""
        key = (keys.LINK, token(self.neighbour))
        if self._cursor is None:
            found = (await self._log.last(EVENTS, [key])).get(key)
            self._forget_seen()
            self._fences = {key: found.seq if found is not None else 0}
            fresh = LinkCursor(expected={ANY_LANE: 1})
            cursor = LinkCursor.read(found.body) if found is not None else fresh
            cursor, is_rolled_back = await self._with_life(there, cursor)
            if is_rolled_back:
                await self._store([], cursor.life, cursor, is_rolled_back=True)
            self._cursor, self._is_older = cursor, False
        return self._cursor, self._cursor.life

    async def _with_life(self, there: Log, cursor: LinkCursor) -> tuple[LinkCursor, bool]:
        """Notice a neighbour's log that was rolled back: its numbers begin a new life."""
        record = (await there.last(STATE, [keys.LIFE])).get(keys.LIFE)
        life = Fields(record.body, "life").text("life") if record is not None else ""
        is_rolled_back = False
        if cursor.after:
            found = (await there.fetch(QUEUES, [cursor.after])).get(cursor.after)
            end = await there.end(QUEUES)
            is_other = found is not None and bool(cursor.mark) and mark(found) != cursor.mark
            is_rolled_back = end < cursor.after or is_other or self._is_older
        # Another neighbour may have begun one already; that of the copy is older than what was lost.
        is_old = record is None or life == cursor.life or record.time <= cursor.time
        if not life or (is_rolled_back and is_old):
            life = uuid.uuid4().hex[:12]
            fence = {keys.LIFE: record.seq if record is not None else 0}
            await there.append(STATE, [Entry(*keys.LIFE, write({"life": life}))], fence)
        if is_rolled_back:
            logger.error("a neighbour's log was rolled back", extra={"site": self.neighbour})
            after = await last_by(there, QUEUES, self._topic, cursor.time)
            cursor = LinkCursor(after, time=cursor.time, outdated=_lanes(await self._drops(there)))
        return replace(cursor, life=life), is_rolled_back

    async def _store(
        self,
        coming: Alike | Sequence[Coming | None],
        life: str,
        cursor: LinkCursor,
        missing: Missing = _NOTHING,
        *,
        is_rolled_back: bool = False,
    ) -> int:
        """Write what has come, with the position behind it."""
        # A neighbour may claim more than a record can say.
        missing = Missing(*(min(count, MOST_NUMBER) for count in missing))
        self._life = life
        counted = Counters(missing=missing.events)  # apart, until it is written: a refused append is repeated
        touched: set[Key] = set()
        if len(self._seen) > MOST_REMEMBERED:
            self._forget_seen()
        arrivals = None
        if isinstance(coming, Alike):
            arrivals = await self._arrived_together(coming, touched)
            coming = [] if arrivals is not None else list(coming.each(self._here))
        if arrivals is None:
            arrivals = await self._arrived_each(coming, touched=touched, counted=counted)
        entries = [Entry(topic, self._detail, body) for topic, body, _, _ in arrivals]
        taken = len(entries)
        topic = entries[0].topic if entries else keys.partition_topic(0)
        if missing.rollbacks:
            entries.insert(0, self._told_missing(topic, missing.rollbacks, ROLLBACK))
        if missing.events:
            entries.insert(0, self._told_missing(topic, missing.events, LINK))
        if is_rolled_back:
            entries += await self._told_rollback(life, touched)
        known = [Entry(*key, self._known(key)) for key in sorted(touched)]
        entries += known
        link = (keys.LINK, token(self.neighbour))
        entries.append(Entry(*link, cursor.body()))
        fences = {key: self._fences[key] for key in [link, *touched]}
        try:
            last = await self._log.append(EVENTS, entries, fences)
        except BaseException:
            # Another router has gone on here, or nobody knows: our memory is out of date.
            self._cursor = None
            raise
        if counted.dead:  # over too many links, or with an invalid origin
            logger.error("events refused", extra={"site": self.neighbour, "events": counted.dead})
        self._cursor = cursor
        if self._arrivals is not None and len(entries) == taken + len(touched) + 1:  # and nothing was told
            self._arrivals.put(
                last - len(entries) + 1, last, self._by_topic(arrivals, last - len(entries) + 1)
            )
        counted.forwarded = taken
        counted.rollbacks = int(is_rolled_back)
        self._counters.add(counted)
        self._new_origins += sum(key[0] == keys.SEEN and not self._fences[key] for key in touched)
        for place, entry in enumerate(reversed(entries[-len(fences) :])):  # these come last
            self._fences[entry.key] = self._written[entry.key] = last - place
        await self._trim(known)
        ranges = [self._seen[origin] for topic, origin in touched if topic == keys.SEEN]
        if closed := sum(one.closed for one in ranges):
            logger.warning("too many holes", extra={"site": self.neighbour, "closed": closed})
            for found in ranges:
                found.closed = 0
        return taken

    async def _trim(self, known: list[Entry]) -> None:
        """Remove old records of positions and of what has come, from time to time."""
        self._appends += 1
        self._untrimmed += sum(len(entry.body) for entry in known)
        if self._appends % TRIM_EVERY == 0 or self._untrimmed > TRIM_BYTES:
            written, self._written, self._untrimmed = self._written, {}, 0
            for key, number in written.items():
                await self._log.trim(EVENTS, number, *key)

    def _told_missing(self, topic: str, count: int, reason: str) -> Entry:
        """Tell every subscriber here that the neighbour dropped events before we took them."""
        logger.error(
            "dropped before it was taken", extra={"site": self.neighbour, "events": count, "reason": reason}
        )
        header = EventHeader("", self.neighbour, targets=((self._here, 0),), missing=count, reason=reason)
        return Entry(topic, self._detail, event_body(header.body(), b"{}"))

    async def _told_rollback(self, life: str, touched: set[Key]) -> list[Entry]:
        """The events that the neighbour has lost may have been for anyone, here or behind.

        All its neighbours tell that. It is known by the life that the log has begun, so a site takes it once.
        """
        others = sorted(self._table.sites - {self._here, self.neighbour})
        header = EventHeader(
            "",
            self.neighbour,
            life=f"rollback {life}",
            hops=self._hops,
            targets=tuple((site, 1) for site in others),
            missing=1,
            reason=ROLLBACK,
        )
        origin = origin_of(header)
        await self._load({(keys.SEEN, origin)})
        if self._seen[origin].add(1):
            touched.add((keys.SEEN, origin))
            header = replace(header, targets=((self._here, 1), *header.targets))
        if not header.targets:
            return []
        body = event_body(header.body(), b"{}")
        return [Entry(keys.partition_topic(0), self._detail, body)]

    def _forget_seen(self) -> None:
        """The log has it."""
        self._seen.clear()
        self._taken.clear()
        self._fences = {key: seq for key, seq in self._fences.items() if key[0] == keys.LINK}

    async def _load(self, wanted: set[Key]) -> None:
        """Read what has come of these origins and partitions already, unless it is known."""
        missing = [
            key for key in wanted if key[1] not in (self._seen if key[0] == keys.SEEN else self._taken)
        ]
        found = await self._log.last(EVENTS, missing) if missing else {}
        for key in missing:
            record, (topic, detail) = found.get(key), key
            self._fences[key] = record.seq if record is not None else 0
            if topic == keys.SEEN:
                self._seen[detail] = _ranges(record)
            else:
                self._taken[detail] = Taken() if record is None else Taken.read(record.body)

    def _known(self, key: Key) -> bytes:
        """The record of what has come of an origin, or of a partition."""
        topic, detail = key
        return write({"r": self._seen[detail].pairs}) if topic == keys.SEEN else self._taken[detail].body()

    async def _arrived_each(
        self, coming: Sequence[Coming | None], *, touched: set[Key], counted: Counters
    ) -> list[Stored]:
        """Events as they are stored here, those that are new."""
        await self._load(
            {
                key
                for one in coming
                if one is not None
                and one.came is not None
                and (one.came.origin not in self._seen or one.came.partition not in self._taken)
                and any(site == self._here for site, _ in one.targets)
                for key in ((keys.SEEN, one.came.origin), (keys.TAKEN, one.came.partition))
            }
        )
        stored = [self._arrived(one, touched=touched, counted=counted) for one in coming if one is not None]
        return [one for one in stored if one is not None]

    async def _arrived_together(self, alike: Alike, touched: set[Key]) -> list[Stored] | None:
        """Events as they are stored here, if all are new; None if each must be looked at."""
        cames, events, places, first = alike.cames, alike.events, alike.places, alike.first
        came = cames[0]
        seen, taken = (keys.SEEN, came.origin), (keys.TAKEN, came.partition)
        await self._load({seen, taken})
        ranges = self._seen[came.origin]
        is_new = self._may_be_of(came.header, came.origin) and ranges.follows(first)
        if not is_new or not self._taken[came.partition].extend(came.header.life, first, places):
            return None
        ranges.extend(first, first + len(events) - 1)
        touched |= {seen, taken}
        to_here, stored = self._to_here, Stored._make
        return [
            stored(
                (came.topic, b"%s%s%d]]}\n%s" % (came.start, to_here, number, event), came.for_here, event)
            )
            for number, (came, event) in enumerate(zip(cames, events, strict=True), first)
        ]

    def _arrived(self, coming: Coming, *, touched: set[Key], counted: Counters) -> Stored | None:
        """An event that came over the link, as it is stored here; None if nothing is left to do with it."""
        came, event, place, targets = coming
        if came is None or came.header.hops == 0:
            counted.dead += 1
            return None
        header, origin, _, topic, hops, start, onward = came
        left: list[Target] = []
        for target in targets:
            if target[0] == self._here:
                if not self._may_be_of(header, origin):
                    counted.dead += 1
                    continue
                if not self._is_new(came, target[1], place, touched):
                    counted.repeated += 1
                    continue
                counted.missing += header.missing if header.reason == LINK else 0
            left.append(target)
        if not left:
            return None
        if header.missing:
            onward = replace(header, hops=hops, targets=tuple(left))
            text = onward.body()
        elif len(left) == 1 and left[0][0] == self._here:  # nearly all
            text = b"%s%s%d]]}" % (start, self._to_here, left[0][1])
        else:
            onward = replace(onward, targets=tuple(left), place=place)
            text = start + to_targets(left, place)
        # The event is one line already.
        return Stored(topic, b"%s\n%s" % (text, event), onward, event)

    def _by_topic(self, stored: Sequence[Stored], first: int) -> dict[str, list[Arrival]]:
        """The events of an append by topic; `first` is the number of the first."""
        found: dict[str, list[Arrival]] = defaultdict(list)
        detail, arrival = self._detail, Arrival._make
        for number, (topic, body, header, event) in enumerate(stored, first):
            found[topic].append(arrival((number, detail, body, header, event)))
        return found

    def _is_new(self, came: Came, number: int, place: Place | None, touched: set[Key]) -> bool:
        """Whether an event for this site has not come yet, neither under its number nor under another."""
        _, origin, partition, *_ = came
        is_new = self._seen[origin].add(number)
        if is_new:
            touched.add((keys.SEEN, origin))
        if place is None or came.header.missing:
            return is_new
        taken = self._taken[partition]
        is_new = (taken.add if is_new else taken.begins_again)(came.header.life, number, place)
        if is_new:
            touched.add((keys.TAKEN, partition))
        return is_new

    def _may_be_of(self, header: EventHeader, origin: str) -> bool:
        """Whether an event for this site can have its origin: this site sends none to itself over others.

        A neighbour can make up as many origins as it likes, and each is remembered for ever. Its own are few.
        """
        if header.origin == self._here:
            return False
        if self._fences[keys.SEEN, origin] or self._new_origins < MOST_ORIGINS:
            return True
        is_its_own = (header.origin, header.life) == (self.neighbour, self._life)
        return is_its_own and header.partition < MOST_PARTITIONS


def _lanes(drops: Drops) -> dict[str, int]:
    """The next number of each lane of the queue, as far as the neighbour has written it down."""
    return {lane: number for lane, number in drops.next.items() if _LANE.fullmatch(lane)}


def _missing_of(drops: Drops, lane: str, numbers: range) -> Missing:
    """How much is missing with some deliveries."""
    events = max(0, len(numbers) + drops.beyond(lane, numbers.start, numbers.stop))
    return Missing(events, drops.rolled_back(lane, numbers.start, numbers.stop))


def _ranges(record: Record | None) -> Ranges:
    if record is None:
        return Ranges()
    fields = Fields(record.body, "list of seen numbers")

    return Ranges((first, last) for first, last in fields.take("r", are_pairs, []))


def _delivery(record: Record) -> Delivery:
    """A delivery of a neighbour; an empty one if it cannot be read, or is in no lane."""
    try:
        if not _LANE.fullmatch(record.detail):
            raise RecordError(f"a queue has no lane {record.detail[:100]}")
        return Delivery.read(record.body)
    except RecordError as error:
        logger.error("unreadable delivery", extra={"seq": record.seq, "error": str(error)})
        return Delivery(0, ())


def _position(body: bytes) -> int | None:
    try:
        return Fields(body, "list of links").number("position", 0)
    except RecordError:
        return None
