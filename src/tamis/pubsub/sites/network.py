"""A site among others: it tells them what it wants and which links work, and fetches its events.

One router of a site does this at a time, the one that has partition 0. Doing it twice is harmless.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping

import tamis
from tamis.errors import TamisError
from tamis.pubsub import keys
from tamis.pubsub.entry import Entry as PubsubEntry
from tamis.pubsub.generalise.advertisement_pruning import AdvertisementPruner, Worth
from tamis.pubsub.log.contract import QUEUES, STATE, Entry, Log, LogError, Record, append_each
from tamis.pubsub.names import name_of, token
from tamis.pubsub.records import (
    LINK_BYTES,
    LINK_KEEP_SECONDS,
    Advertisement,
    Delivery,
    Reading,
    RecordError,
    Settings,
    Target,
    number_of,
    read_drops,
    write,
)
from tamis.pubsub.router.arrivals import Arrivals
from tamis.pubsub.router.counters import Counters
from tamis.pubsub.router.matching import SITE
from tamis.pubsub.router.table import Table
from tamis.pubsub.sites.advertised import Advertised, heard_of, others_advertise
from tamis.pubsub.sites.interest import Generalising, Interest, InterestEntry
from tamis.pubsub.sites.link import Link
from tamis.pubsub.sites.link_cursor import REROUTE_LANE
from tamis.pubsub.sites.told import Told, Trust
from tamis.pubsub.sites.topology import SiteLinks
from tamis.pubsub.sites.ways import topology_of

logger = logging.getLogger("tamis.link")

PATIENCE_SECONDS = 1.0
READ_AT_ONCE = 1_000
MOST_MOVED = 2_000
"""Events in one record that go another way, each with its target: NATS takes a megabyte."""
WINDOW = 200
"""After so many events from other sites it is judged what generality costs."""


Moved = tuple[int, tuple[Target, ...], int, int, bool]
"""An event that goes another way: its number, where it goes, its bytes; as a gap, for how many events it
stands, and whether it says that a log was rolled back."""


class Network:
    """What one site does with its neighbours; `step` does what there is to do."""

    def __init__(
        self,
        log: Log,
        settings: Settings,
        table: Table,
        neighbours: Mapping[str, Callable[[], Awaitable[Log]]],
        counters: Counters,
        *,
        generalising: Generalising | None = None,
        link_seconds: float = 5.0,
        link_bytes: int = LINK_BYTES,
        link_keep_seconds: float = LINK_KEEP_SECONDS,
        trust: Trust | None = None,
        clock: Callable[[], float] = time.monotonic,
        patience_seconds: float = PATIENCE_SECONDS,
        arrivals: Arrivals | None = None,
    ) -> None:
        """After `link_seconds` without a sign of a neighbour, events take other ways.

        While this site is away, neighbours keep `link_bytes` for it, for `link_keep_seconds`. Other
        links wait at most `patience_seconds` for a neighbour that does not answer, until it is prompt again.
        `arrivals` are those of the router of this process: it need not read again what links have stored.
        """
        self._log = log
        self._here = settings.site
        self._table = table
        self._counters = counters
        self._generalising = generalising or Generalising()
        self._link_seconds = link_seconds
        self._clock = clock
        self._told = Told(table, settings.site, trust or Trust(), counters)
        self._has_unmarked = False
        self.links = {
            name: Link(
                log,
                settings,
                table,
                name,
                opening,
                counters=counters,
                clock=clock,
                most_bytes=link_bytes,
                keep_seconds=link_keep_seconds,
                told=self._told,
                arrivals=arrivals,
            )
            for name, opening in neighbours.items()
        }
        self._patience_seconds = patience_seconds
        self._steps: dict[str, asyncio.Task[int]] = {}
        """Links whose neighbours have not answered yet."""
        self._started: dict[str, float] = {}
        """When the last step of each link began."""
        self._copied: dict[str, tuple[int, float]] = {}
        """What each link had copied when its step began, or when this had last grown, and when that was."""
        self._slow: set[str] = set()
        """Links whose last step took longer than the others wait: they wait for it no more."""
        self._up: set[str] = set()
        """Links that were last reported to work."""
        self._interest: Interest | None = None
        self._is_interest_told = False
        """Whether all that the interest consists of was written down, for others to read."""
        self._read = 0
        self._accounted: dict[str, int] = {}
        """Which advertisements of other sites the interest accounts for."""
        self._advertisements: dict[str, str] = {}
        self._read_advertisements = 0
        self._looked_at: int | None = None
        """Up to where the table had read the state when it was last looked for what to tell."""
        self._came = (0, 0)
        self._log_life = (0, 0)
        """The connection to the log, and how often the table has found it to be an older copy of itself."""
        self._signs: dict[str, tuple[int, float]] = {}
        self._rerouted: dict[str, int] = {}
        self._links: SiteLinks | None = None
        """What was last written down of the links."""
        self._said = 0
        """The number that was last used for the links: an append that fails may be there all the same."""

    async def step(self) -> int:
        """Tell, take and reroute; returns how many events came."""
        await self._table.catch_up()
        await self._tell()
        taken = 0
        for link in self.links.values():
            taken += await self._step(link)
        await self._table.catch_up()
        if not self._has_unmarked and all(link.has_told_all for link in self.links.values()):
            await append_each(self._log, STATE, self._told.unmarked())
            self._has_unmarked = True
        await append_each(self._log, STATE, self._told.taken_back())
        await self._reroute()
        return taken

    async def _step(self, link: Link) -> int:
        """Let a link take what there is. One that must wait for its neighbour goes on while others work."""
        name, is_slow = link.neighbour, link.neighbour in self._slow
        if (step := self._steps.get(name)) is None:
            self._copied[name] = link.copied, time.monotonic()
            step = self._steps[name] = asyncio.create_task(self._timed(link))
            await asyncio.wait({step}, timeout=0 if is_slow else self._patience_seconds)
        if not step.done():
            self._slow.add(name)
            # A slow link works as long as its steps end, or copy something; a silent one is noticed later.
            if name in self._up and self._is_silent(link) and (not is_slow or self._is_late(name)):
                link.trouble = "the neighbour does not answer"
                self._report_down(name, link.trouble)
            return 0
        del self._steps[name]
        try:
            taken = await step
        except (LogError, RecordError) as error:
            self._report_down(name, str(error))
            return 0
        if name not in self._up:
            self._up.add(name)
            logger.info("link up", extra={"site": name})
        return taken

    async def _timed(self, link: Link) -> int:
        """A step of a link, and whether it was prompt."""
        name = link.neighbour
        self._started[name] = time.monotonic()
        try:
            return await link.step()
        finally:
            if self._since(name) <= self._patience_seconds:
                self._slow.discard(name)

    def _is_silent(self, link: Link) -> bool:
        """Whether a link has copied nothing since this was last asked."""
        if link.copied == self._copied[link.neighbour][0]:
            return True
        self._copied[link.neighbour] = link.copied, time.monotonic()
        return False

    def _is_late(self, name: str) -> bool:
        """Whether the step of a link has copied nothing for long."""
        return time.monotonic() - self._copied[name][1] > self._link_seconds

    def _since(self, name: str) -> float:
        """For how long the step of a link has been under way."""
        return time.monotonic() - self._started.get(name, time.monotonic())

    def _report_down(self, name: str, error: str) -> None:
        if name in self._up:
            self._up.remove(name)
            logger.warning("link down", extra={"site": name, "error": error})

    async def close(self) -> None:
        """Let go of all links."""
        for step in self._steps.values():
            step.cancel()
        await asyncio.gather(*self._steps.values(), return_exceptions=True)
        self._steps.clear()
        for link in self.links.values():
            await link.close()

    def reconnect(self, neighbours: Mapping[str, Callable[[], Awaitable[Log]]]) -> None:
        """Use other addresses for neighbours from the next step on; new names need a restart."""
        for name, link in self.links.items():
            if name in neighbours:
                link.use(neighbours[name])

    def working(self) -> tuple[str, ...]:
        """The neighbours that take our events at the moment."""
        now = self._clock()
        for name in self.links:
            record = self._table.others.get((keys.PEER, token(name)))
            if record is not None and self._signs.get(name, (0, 0.0))[0] != record.seq:
                self._signs[name] = (record.seq, now)
        return tuple(
            name
            for name in sorted(self.links)
            if name in self._signs and now - self._signs[name][1] <= self._link_seconds
        )

    # --- telling -----------------------------------------------------------------------------------

    async def _tell(self) -> None:
        """Write down what changed: new interest, then the links, then the interest that is gone."""
        log_life = (self._log.generation, self._table.rollbacks)
        if self._interest is None or self._log_life != log_life:
            self._log_life = log_life
            self._interest = Interest(self._here, self._generalising, lambda: self._table.recent)
            self._is_interest_told = False
            self._read, self._links, self._said, self._accounted = 0, None, 0, {}
            self._advertisements, self._read_advertisements = {}, 0
            self._looked_at = None
            for link in self.links.values():
                link.look_again()
        if self._looked_at != self._table.position:
            looking_at = self._table.position
            # What is not found at first is told to be gone; what comes later is found later.
            to_end = self._looked_at is None
            await self._tell_advertisements(to_end)
            is_new = to_end or self._table.last_subscription > self._read
            while is_new and (
                records := await self._log.read(
                    STATE, topic=keys.SUBSCRIPTION, after=self._read, most=READ_AT_ONCE, to_end=to_end
                )
            ):
                self._is_interest_told = False  # until it is: what fails on the way is told in a later step
                self._interest.put_many((record.detail, record.body) for record in records)
                self._read = records[-1].seq
            self._looked_at = looking_at
        heard = heard_of(self._table, self._here)
        if self._observe(self._interest):
            self._is_interest_told = False
        if not self._is_interest_told or heard != self._accounted:
            await self._tell_interest(self._interest)
            self._is_interest_told = True
        if heard != self._accounted:
            mine = token(self._here)
            told = [
                Entry(keys.HEARD, f"{token(site)}.{mine}", write({"k": number}))
                for site, number in heard.items()
            ]
            await append_each(self._log, STATE, told)
            self._accounted = heard
        now = (self.working(), tuple(sorted(self.links)), self._read)
        if self._links is None or now != (self._links.working, self._links.configured, self._links.position):
            known = self._table.others.get((keys.LINKS, token(self._here)))
            following = self._said + 1 if self._said <= self._told.latest else 1
            self._said = max(self._told.number_after(known), following)
            links = SiteLinks(self._said, *now)
            await self._log.append(STATE, [Entry(keys.LINKS, token(self._here), links.body())])
            self._links = links
            self._rerouted.clear()

    def _observe(self, interest: Interest) -> bool:
        """Tell the interest what its generality costs, from time to time; whether it has changed."""
        counters, (came, wanted) = self._counters, self._came
        if counters.came - came < WINDOW:
            return False
        self._came = counters.came, counters.came_wanted
        return interest.observe(counters.came - came, counters.came_wanted - wanted)

    async def _tell_advertisements(self, to_end: bool) -> None:
        """What publishers here advertise, as one record, if it has changed."""
        after = self._read_advertisements
        is_new = to_end or self._table.last_advertisement > after
        while is_new and (
            records := await self._log.read(
                STATE, topic=keys.ADVERTISEMENT, after=after, most=READ_AT_ONCE, to_end=to_end
            )
        ):
            for record in records:
                self._advertisements.pop(record.detail, None)
                if record.body:
                    self._advertisements[record.detail] = _advertisement(record)
            after = self._read_advertisements = records[-1].seq
        known = self._table.others.get((keys.ADVERTISED, token(self._here)))
        if known is None and not self._advertisements:
            return
        texts = tuple(sorted(set(self._generalised_advertisements())))
        try:
            if known is not None and Advertised.read(known.body).expressions == texts:
                return
        except RecordError:
            logger.warning("unreadable advertisements are told again")
        told = Advertised(self._told.number_after(known), texts)
        await self._log.append(STATE, [Entry(keys.ADVERTISED, token(self._here), told.body())])
        await self._table.catch_up()

    def _generalised_advertisements(self) -> list[str]:
        steps = self._generalising.advertisement_prunings
        if not steps or not self._advertisements:
            return list(self._advertisements.values())
        interest = []
        for detail, record in self._table.others.of(keys.INTEREST).items():
            if not detail.startswith(f"{token(self._here)}."):
                text = InterestEntry.read_or_everything(record.body).expression
                interest += [tamis.parse(text)] if text is not None else []
        pruner = AdvertisementPruner()
        for id, text in self._advertisements.items():
            pruner.originals[id] = PubsubEntry(id, tamis.parse(text), None)
        pruner.prune(steps, Worth(interest, {}).of)
        return [str(pruner.current.get(id, entry.expression)) for id, entry in pruner.originals.items()]

    async def _tell_interest(self, interest: Interest) -> None:
        mine = f"{token(self._here)}."
        advertised = others_advertise(self._table, self._here)
        records = self._table.others.of(keys.INTEREST)
        known = {
            detail: InterestEntry.read_or_everything(record.body).expression
            for detail, record in records.items()
            if detail.startswith(mine)
        }
        wanted = {f"{mine}{token(id)}": text for id, text in interest.wanted(advertised).items()}
        # Each has a number of its own: whatever others make up of one says nothing of the rest.
        shown = [
            self._interest_entry(key, text)
            for key, text in wanted.items()
            if known.get(key) != text or number_of(records[key].body) > self._told.latest
        ]
        gone = [
            self._interest_entry(key, None)
            for key, text in known.items()
            if key not in wanted and text is not None
        ]
        changes = shown + gone
        await append_each(self._log, STATE, changes)
        if changes:
            await self._table.catch_up()
        records = self._table.others.of(keys.INTEREST)
        self._told.own_bytes = sum(self._table.others.cost(records[key]) for key in wanted if key in records)

    def _interest_entry(self, key: str, text: str | None) -> Entry:
        number = self._told.number_after(self._table.others.get((keys.INTEREST, key)))
        return Entry(keys.INTEREST, key, InterestEntry(number, text).body())

    # --- rerouting ---------------------------------------------------------------------------------

    async def _reroute(self) -> None:
        """What waits for a neighbour that does not take it, and could go another way, goes that way."""
        topology = topology_of(self._table, self._here)
        working = set(self.working())
        names = {name_of(detail) for detail in self._table.others.of(keys.LINKS)}
        for name in sorted((names | set(self.links)) - working - {self._here}):
            after = self._rerouted.get(name, self._taken(name))
            topic = f"q-{SITE}{token(name)}"
            while records := await self._log.read(QUEUES, topic=topic, after=after, most=READ_AT_ONCE):
                moved: dict[str, list[Moved]] = {}
                for record in records:
                    try:
                        delivery = Delivery.read(record.body)
                    except RecordError:
                        continue
                    stands, rollbacks = dict(delivery.gaps), set(delivery.rollbacks)
                    size = delivery.size // max(1, len(delivery.events))
                    for number, targets in zip(delivery.events, delivery.targets, strict=False):
                        for target in targets:
                            hop = topology.next_hop(target[0]) if topology.is_reachable(target[0]) else None
                            if hop is not None and hop != name:
                                moved.setdefault(hop, []).append(
                                    (number, (target,), size, stands.get(number, 0), number in rollbacks)
                                )
                for hop, events in moved.items():
                    await self._move(hop, events)
                after = self._rerouted[name] = records[-1].seq

    def _taken(self, name: str) -> int:
        record = self._table.others.get((keys.READ, f"{SITE}{token(name)}"))
        try:
            return Reading.read(record.body).after if record is not None else 0
        except RecordError:
            return 0

    async def _move(self, hop: str, events: list[Moved]) -> None:
        name = f"{SITE}{token(hop)}"
        lane, drop = (f"q-{name}", REROUTE_LANE), (keys.DROP, name)
        record = (await self._log.last(QUEUES, [lane])).get(lane)
        if record is not None:
            last = Delivery.read(record.body)
            first, fence = last.first + len(last.events), record.seq
        else:  # all that was there was dropped or taken
            drops = read_drops((await self._log.last(STATE, [drop])).get(drop))
            first, fence = drops.next.get(REROUTE_LANE, 1), 0
        for start in range(0, len(events), MOST_MOVED):
            moved = events[start : start + MOST_MOVED]
            numbers, targets, sizes, *_ = zip(*moved, strict=True)
            gaps = tuple((number, count) for number, _, _, count, _ in moved if count)
            rollbacks = tuple(number for number, *_, is_rollback in moved if is_rollback)
            delivery = Delivery(first + start, numbers, sum(sizes), (), None, targets, gaps, rollbacks)
            fence = await self._log.append(QUEUES, [Entry(*lane, delivery.body())], {lane: fence})
        logger.info("rerouted", extra={"site": hop, "events": len(events)})


def _advertisement(record: Record) -> str:
    """What a publisher advertises; what cannot be read here may be anything."""
    try:
        text = Advertisement.read(record.body).expression
        tamis.parse(text)
    except (RecordError, TamisError):
        return "TRUE"
    return text
