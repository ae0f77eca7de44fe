"""Random histories of several sites, from a seed: any graph, and everything that can happen to one.

Sites tell and take step by step. Between steps, from the seed: publishers publish, subscribers come, go and
vanish, advertisements change, links are cut and mended, sites stop and start, are restored from an older
copy or are lost for good with their disk, routers are of this release and the next, records of later releases
lie in the logs, and neighbours drop what waits for a site that is away.

The judge knows who had subscribed, and that every site knew it, before an event was published. After all is
calm, each of those must have heard it, once, in the order of its publisher, unless its way led over what was
lost: a site that is gone, or one that was restored from a copy. What is heard must be wanted. What neighbours
dropped must be a gap for whoever should have heard it.
"""

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tamis
from pubsub import backups, shrinking
from pubsub.jumping_clock import JumpingClock
from pubsub.several_sites import NEXT_RELEASE, TODAY, Sites
from tamis.pubsub import keys
from tamis.pubsub.log import STATE, Entry
from tamis.pubsub.log.contract import RolledBackError
from tamis.pubsub.publisher import Publisher
from tamis.pubsub.router.retention import Retention
from tamis.pubsub.sites.interest import Generalising
from tamis.pubsub.subscriber import Gap, Subscriber

SHAPES: list[list[tuple[str, str]]] = [
    [("a", "b"), ("b", "c")],
    [("a", "b"), ("b", "c"), ("c", "a")],
    [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")],
    [("a", "b"), ("a", "c"), ("a", "d"), ("c", "d")],
]
WAYS = [
    Generalising(),
    Generalising(covering=False),
    Generalising(pruning=0.7),
    Generalising(merging="imperfect", replacement=0.5),
    Generalising(predicates=1, advertisement_prunings=1),
]
LATER = [b'{"v":99,"k":1,"words":"n FROBS 7"}', b"\xff\xfe", b'{"v":1,"k":1,"expression":"x FROBS 7"}']
"""What a release ahead of this one may have written."""


@dataclass
class Settings:
    """What may happen in a history."""

    steps: int = 60
    stops_sites: bool = True
    loses_sites: bool = False
    rolls_back: bool = False
    cuts_links: bool = False
    limits: bool = False
    """Neighbours keep next to nothing for a site that is away."""
    upgrades: bool = False
    """Routers of this release and of the next, which change when a site starts again."""


@dataclass
class Reader:
    """One subscriber over the lives of its clients."""

    site: str
    name: str
    subscriber: Subscriber | None
    wanted: dict[str, str] = field(default_factory=dict)
    heard: list[dict[str, Any]] = field(default_factory=list)
    """All events that it has got, those that were not acknowledged once for each life of its client."""
    this_life: set[int] = field(default_factory=set)
    acknowledged: set[int] = field(default_factory=set)
    gaps: list[str] = field(default_factory=list)
    ever: set[str] = field(default_factory=set)
    """All that it has ever wanted."""


@dataclass
class Published:
    """An event, and who had subscribed and was known everywhere by then."""

    event: dict[str, Any]
    site: str
    known: list[tuple[Reader, dict[str, str]]]
    damages: int
    """How often a site had been lost or restored by then."""
    was_calm: bool
    """Whether everything had arrived since."""


class SitesHistory:
    """One history; `run` plays it and judges."""

    def __init__(self, seed: int, folder: Path, settings: Settings) -> None:
        self.chance = random.Random(seed)
        self.clock = JumpingClock(random.Random(seed))
        self.folder = folder / f"sites-{seed}"
        self.folder.mkdir()
        self.settings = settings
        shape, way = self.chance.choice(SHAPES), self.chance.choice(WAYS)
        network = {"link_bytes": self.chance.choice([0, 30, 200])} if settings.limits else {}
        self.sites = Sites(self.folder, shape, way, **network)
        self.readers: list[Reader] = []
        self.publishers: dict[str, Publisher] = {}
        self.published: list[Published] = []
        self.lost: set[str] = set()
        self.damaged: set[str] = set()
        """Sites that were lost or restored from a copy: what was on its way there may be gone."""
        self.damages = self.calm_since = 0
        self.arrived = 0
        """How many of the events had been published when all was calm."""
        self.is_tree = len(self.sites.edges) < len(self.sites.names)
        self.was_rerouted = False
        self.known: dict[str, dict[str, str]] = {}
        """What each reader wants and every living site knew when all was calm."""
        self.copies: set[str] = set()
        self.serial = 0

    async def run(self) -> None:
        with self.clock.used():
            await self.play()

    async def play(self) -> None:
        async with self.sites:
            for name in self.sites.names:
                self.publishers[name] = await self.sites.sites[name].publisher("bob")
                self.draw_release(name)
            for name in self.sites.names:
                await self.subscribe(name)
            await self.calm()
            for _ in range(self.settings.steps):
                await self.something()
                for _ in range(self.chance.choice([0, 1, 3])):
                    await self.sites.step()
            await self.calm()
            await self.read_all()
            self.judge()

    def living(self) -> list[str]:
        return [name for name in self.sites.names if name not in self.sites.dead]

    def draw_release(self, name: str) -> None:
        if self.settings.upgrades:
            self.sites.releases[name] = self.chance.choice([TODAY, NEXT_RELEASE])

    # --- what happens ------------------------------------------------------------------------------

    async def something(self) -> None:
        draw, living = self.chance.random(), self.living()
        name = self.chance.choice(living)
        if draw < 0.45:
            await self.publish(name)
        elif draw < 0.52:
            await self.subscribe(name)
        elif draw < 0.56:
            await self.unsubscribe()
        elif draw < 0.66:
            await self.read_some()
        elif draw < 0.70:
            await self.calm()
        elif draw < 0.74:
            await self.advertise(name)
        elif draw < 0.78:
            # Of a release ahead, or damaged: it counts as wanting, or publishing, everything.
            topic, detail = self.chance.choice(
                [(keys.INTEREST, f"{name}.later"), (keys.ADVERTISED, name), (keys.HEARD, f"x.{name}")]
            )
            body = self.chance.choice(LATER)
            await self.sites.sites[name].log.append(STATE, [Entry(topic, detail, body)])
        elif draw < 0.84 and self.settings.cuts_links:
            edge = frozenset(self.chance.choice(self.sites.edges))
            self.was_rerouted = True
            self.sites.cut ^= {edge}
        elif draw < 0.90 and len(living) > 1 and self.settings.stops_sites:
            await self.stop(name)
        elif draw < 0.94:
            await self.start_again()
        elif draw < 0.96 and self.settings.rolls_back:
            self.copy(name)
        elif draw < 0.98 and self.settings.rolls_back and name in self.copies:
            await self.restore(name)
        elif draw > 0.99:
            self.clock.jump()
        elif draw < 0.985 and self.settings.limits:
            for one in living:
                await self.tidy(one)
        elif (
            draw < 0.99
            and self.settings.loses_sites
            and len(living) > 1
            and len(self.sites.names) - len(self.lost) > 2
        ):
            await self.stop(name)
            self.lost.add(name)
            self.damage(name)

    async def tidy(self, name: str) -> None:
        """Drop what is beyond limits; events themselves stay, or the log would be read far beyond it."""
        router = self.sites.routers[name]
        keeping = Retention(
            router.log, router.settings, router.table, router.counters, least_event_seconds=1e9
        )
        await router.table.catch_up()
        await keeping.tidy()

    async def publish(self, name: str) -> None:
        events = []
        for _ in range(self.chance.choice([1, 1, 3])):
            self.serial += 1
            x, y = self.chance.randrange(4), self.chance.randrange(4)
            events.append({"x": x, "y": y, "n": self.serial, "by": name})
        known = [(reader, dict(self.known.get(reader.name, {}))) for reader in self.readers]
        try:
            await self.publishers[name].publish(events)
        except RolledBackError:
            return  # told, and not published
        is_calm = self.calm_since == self.damages
        self.published += [Published(event, name, known, self.damages, is_calm) for event in events]

    async def subscribe(self, name: str) -> None:
        there = [reader for reader in self.readers if reader.site == name and reader.subscriber is not None]
        reader = self.chance.choice(there) if there and self.chance.random() < 0.5 else None
        if reader is None:
            label = f"reader-{len(self.readers)}"
            subscriber = await self.sites.sites[name].subscriber(label)
            reader = Reader(name, label, subscriber)
            self.readers.append(reader)
        assert reader.subscriber is not None
        text = self.chance.choice(["x = {}", "x = {} AND y > 0", "x > {} OR y = 3", "x <= {}", "TRUE"])
        self.serial += 1
        id = f"s{self.serial}"
        reader.wanted[id] = text.format(self.chance.randrange(4))
        reader.ever.add(reader.wanted[id])
        await reader.subscriber.subscribe(id, reader.wanted[id])

    async def unsubscribe(self) -> None:
        there = [reader for reader in self.readers if reader.subscriber is not None and reader.wanted]
        if there:
            reader = self.chance.choice(there)
            id = self.chance.choice(sorted(reader.wanted))
            del reader.wanted[id]
            self.known.get(reader.name, {}).pop(id, None)
            for published in self.published[self.arrived :]:  # it may not be routed yet
                for other, known in published.known:
                    if other is reader:
                        known.pop(id, None)
            assert reader.subscriber is not None
            await reader.subscriber.unsubscribe(id)

    async def advertise(self, name: str) -> None:
        publisher = self.publishers[name]
        if self.chance.random() < 0.3:
            await publisher.withdraw("a")
        else:
            await publisher.advertise("a", self.chance.choice(["x < 2", "x = 1 AND y < 3", "TRUE", "FALSE"]))

    def damage(self, name: str) -> None:
        self.damaged.add(name)
        self.damages += 1

    async def stop(self, name: str) -> None:
        self.was_rerouted = True
        for reader in self.readers:
            if reader.site == name:
                reader.subscriber = None  # vanishes without a word
                reader.this_life.clear()
        await self.sites.stop(name)

    async def start_again(self) -> None:
        waiting = sorted(self.sites.dead - self.lost)
        if waiting:
            await self.start(self.chance.choice(waiting))

    async def start(self, name: str) -> None:
        await self.sites.start(name)
        self.draw_release(name)
        self.publishers[name] = await self.sites.sites[name].publisher("bob")
        for reader in self.readers:
            if reader.site == name:
                reader.subscriber = await self.sites.sites[name].subscriber(reader.name)

    def copy(self, name: str) -> None:
        backups.back_up(self.sites.path(name))
        self.copies.add(name)

    async def restore(self, name: str) -> None:
        await self.stop(name)
        self.clock.pass_time_of(self.sites.path(name))
        backups.restore(self.sites.path(name))
        self.damage(name)
        # What was subscribed since the copy is forgotten with it, and those who did not know subscribe again.
        for reader in self.readers:
            if reader.site == name:
                reader.acknowledged.clear()
                self.known.pop(reader.name, None)
        await self.start(name)
        for reader in self.readers:
            if reader.site == name and reader.subscriber is not None:
                there = await reader.subscriber.subscriptions()
                await reader.subscriber.unsubscribe(*(id for id in there if id not in reader.wanted))
                for id, text in reader.wanted.items():
                    await reader.subscriber.subscribe(id, text)

    async def calm(self) -> None:
        """End what can be ended, and let everything arrive."""
        self.sites.cut.clear()
        for name in sorted(self.sites.dead - self.lost):
            await self.start(name)
        await self.sites.settle(30)
        self.known = {reader.name: dict(reader.wanted) for reader in self.readers}
        self.calm_since = self.damages
        self.arrived = len(self.published)

    # --- reading -----------------------------------------------------------------------------------

    async def read_some(self) -> None:
        there = [reader for reader in self.readers if reader.subscriber is not None]
        if not there:
            return
        reader = self.chance.choice(there)
        await self.drain(reader)
        assert reader.subscriber is not None
        if self.chance.random() < 0.6:
            await reader.subscriber.acknowledge()
            reader.acknowledged |= reader.this_life
        if self.chance.random() < 0.3:
            reader.subscriber = await self.sites.sites[reader.site].subscriber(reader.name)
            reader.this_life.clear()

    async def drain(self, reader: Reader) -> None:
        subscriber = reader.subscriber
        assert subscriber is not None
        while subscriber._buffer or await subscriber._fill():
            item = await subscriber.next()
            if isinstance(item, Gap):
                reader.gaps.append(item.reason)
                continue
            event = item.event
            if reader.site not in self.damaged:
                assert event["n"] not in reader.this_life, (reader.name, event, "twice in one life")
                assert event["n"] not in reader.acknowledged, (reader.name, event, "was acknowledged")
            reader.this_life.add(event["n"])
            reader.heard.append(event)

    async def read_all(self) -> None:
        for reader in self.readers:
            if reader.site not in self.lost:
                await self.drain(reader)

    # --- judging -----------------------------------------------------------------------------------

    def judge(self) -> None:
        for reader in self.readers:
            if reader.site in self.lost:
                continue
            got = {event["n"] for event in reader.heard}
            wanted_ever = [tamis.parse(text) for text in reader.ever]
            for event in reader.heard:
                assert any(one.evaluate(event) is True for one in wanted_ever), (reader.name, event)
            for published in self.published:
                texts = next((texts for other, texts in published.known if other is reader), {})
                if not any(tamis.parse(text).evaluate(published.event) is True for text in texts.values()):
                    continue
                if published.event["n"] not in got and self.must_arrive(published, reader):
                    # What is missing was on its way when something was damaged, or was dropped, and told.
                    assert self.settings.limits, (reader.name, published)
                    assert "link" in reader.gaps, (reader.name, published)
            told = set(reader.gaps) - ({"link"} if self.settings.limits else set())
            if self.damaged - self.lost:
                told.discard("rollback")  # of another site, told by its neighbours
            assert not told or reader.site in self.damaged, (reader.name, reader.gaps)
            self.judge_order(reader)

    def must_arrive(self, published: Published, reader: Reader) -> bool:
        if published.site == reader.site:
            return reader.site not in self.damaged or (
                published.was_calm and published.damages == self.damages
            )
        reached, ahead = {published.site}, [published.site]
        while ahead:
            here = ahead.pop()
            for edge in self.sites.edges:
                for there in set(edge) - reached if here in edge else ():
                    if there not in self.lost:
                        reached.add(there)
                        ahead.append(there)
        is_connected = reader.site in reached and published.site not in self.lost
        return is_connected and published.was_calm and published.damages == self.damages

    def judge_order(self, reader: Reader) -> None:
        """A publisher's events come in its order, unless they took different ways."""
        if self.damaged or (self.was_rerouted and not self.is_tree):
            return
        first: dict[int, int] = {}
        for place, event in enumerate(reader.heard):
            first.setdefault(event["n"], place)
        last: dict[str, int] = {}
        for number in sorted(first, key=lambda number: first[number]):
            by = next(p.site for p in self.published if p.event["n"] == number)
            assert last.get(by, 0) < number, (reader.name, by, "a publisher's order is kept")
            last[by] = number


def play(seed: int, folder: Path, settings: Settings) -> SitesHistory:
    """Play a history from a seed."""
    return shrinking.play(SitesHistory, seed, folder, settings)
