"""Random histories of one site, from a seed: everything fails at any moment, and a judge compares at the end.

Routers, publishers and readers are tasks. Before every operation on the log a task waits for its turn; a
scheduler that draws from the seed decides who goes on. So routers are paused in the middle of a batch and
resumed after others have taken over, killed before or after an append, and lose requests and answers.

The judge knows what was acknowledged. Without limits and rollbacks, every subscriber must get every event
that it wants, once per life of its client, nothing that it had acknowledged, each publisher's events in
order, and no gap. With tiny limits, what is missing must be counted by gaps. After a rollback, what was
published afterwards must be heard.
"""

import asyncio
import random
import shutil
import sqlite3
from collections.abc import Awaitable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import tamis
from pubsub import shrinking
from pubsub.jumping_clock import JumpingClock
from tamis.pubsub import keys
from tamis.pubsub.log import EVENTS, Entry, LogError, LogUnavailableError, RolledBackError
from tamis.pubsub.log.sqlite import SqliteLog
from tamis.pubsub.publisher import Publisher
from tamis.pubsub.records import QueueLimits
from tamis.pubsub.router import router as routing
from tamis.pubsub.router.retention import Retention
from tamis.pubsub.router.router import Router
from tamis.pubsub.site import Site
from tamis.pubsub.subscriber import Delivered, Gap, Subscriber, TakenOverError

EXPRESSIONS = ["TRUE", "k = 1", "k < 3", "k >= 2", "k IN (0, 4)", "k = 1 OR by = 'bob'", "k = 99"]
HOSTILE = [b"", b"\n", b"{}\n{}", b"\xff\n{}", b'{"v":1,"p":"x"}\n[1]', b'{"v":9,"p":"x"}\n{}']


class Killed(BaseException):
    """A process ends here, without a word."""


@dataclass
class Settings:
    """What may happen in a history."""

    steps: int = 150
    limits: bool = False
    rollback: bool = False


class Turns:
    """Lets one task at a time go on, chosen from the seed."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.is_calm = False
        self._waiting: dict[asyncio.Task[Any], asyncio.Future[None]] = {}

    async def turn(self) -> None:
        if self.is_calm:
            return
        task = asyncio.current_task()
        assert task is not None
        self._waiting[task] = asyncio.get_running_loop().create_future()
        await self._waiting[task]

    async def step(self, tasks: list["asyncio.Task[Any]"]) -> None:
        """Let one of the waiting tasks go to its next turn, or to its end."""
        ready = [task for task in tasks if task in self._waiting]
        if not ready:
            return
        task = self.chance.choice(ready)
        self._waiting.pop(task).set_result(None)
        while task not in self._waiting and not task.done():
            await asyncio.sleep(0.0002)

    def kill(self, task: "asyncio.Task[Any]") -> None:
        if task in self._waiting:
            self._waiting.pop(task).set_exception(Killed())


class Faulty:
    """A log as one process sees it: operations take turns, and requests or answers are lost."""

    def __init__(self, log: SqliteLog, turns: Turns, loss: float) -> None:
        self._log, self._turns, self._loss = log, turns, loss

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._log, name)
        if not callable(found) or name == "close":
            return found

        async def call(*arguments: Any, **more: Any) -> Any:
            await self._turns.turn()
            chance, calm = self._turns.chance, self._turns.is_calm
            if name == "wait":
                if calm:
                    raise LogUnavailableError("the history ends")
                return None
            if not calm and chance.random() < self._loss / 2:
                raise LogUnavailableError("the request was lost")
            answer = await found(*arguments, **more)
            if name == "append":
                await self._turns.turn()  # killed or paused here, it has written and does not know it
            if not self._turns.is_calm and chance.random() < self._loss / 2:
                raise LogUnavailableError("the answer was lost")
            return answer

        return call


@dataclass
class Reader:
    """One subscriber over the lives of its clients."""

    name: str
    wanted: dict[str, str]
    subscriber: Subscriber | None = None
    acknowledged: set[int] = field(default_factory=set)
    heard: list[int] = field(default_factory=list)
    """Serials of this life."""
    of_client: set[int] = field(default_factory=set)
    """Serials that this client has got, also before a rollback."""
    all_heard: set[int] = field(default_factory=set)
    gaps: dict[str, int] = field(default_factory=dict)
    rollbacks: int = 0


class History:
    """One history; `run` plays it and judges."""

    def __init__(self, seed: int, folder: Path, settings: Settings) -> None:
        self.seed, self.folder, self.settings = seed, folder, settings
        self.chance = random.Random(seed)
        self.turns = Turns(self.chance)
        self.clock = JumpingClock(random.Random(seed))
        self.path = folder / f"history-{seed}.db"
        self.published: list[dict[str, Any]] = []
        """Acknowledged, in order."""
        self.unknown: set[int] = set()
        """Serials of which it is unknown whether they were published."""
        self.serial = 0
        self.readers: list[Reader] = []
        self.tasks: list[asyncio.Task[Any]] = []
        self.routers: dict[asyncio.Task[Any], Router] = {}
        self.logs: list[SqliteLog] = []
        self.is_ending = False
        self.told_rollbacks = 0
        self.restored_at: int | None = None
        self.copied_at: int | None = None
        self.in_copy: set[int] = set()
        """What had been acknowledged when the log was copied: nobody may miss it."""

    async def process(self) -> Site:
        """What one process has: a log of its own."""
        log = await SqliteLog.open(self.path)
        self.logs.append(log)
        loss = self.chance.choice([0.0, 0.0, 0.02, 0.1])
        return Site(Faulty(log, self.turns, loss), self.site.settings)  # type: ignore[arg-type]

    async def run(self) -> None:
        # Of an append with little room, batches are written queue by queue.
        room = self.chance.choice([8, 16, routing.MOST_DELIVERIES])
        with mock.patch.object(routing, "MOST_DELIVERIES", room), self.clock.used():
            await self.play()

    async def play(self) -> None:
        self.site = await Site.open(f"sqlite:{self.path}", partitions=self.chance.randint(1, 3))
        try:
            await self.make_readers()
            for _ in range(2):
                await self.start_router()
            for name in ("bob", "bob", "carl"):
                await self.start(self.publish(await self.process(), name))
            for reader in self.readers:
                await self.start(self.read(await self.process(), reader))
            for _ in range(self.settings.steps):
                await self.something()
            await self.finish()
            self.judge()
        finally:
            for task in self.tasks:
                task.cancel()
            await asyncio.gather(*self.tasks, return_exceptions=True)
            for log in [*self.logs, self.site.log]:
                await log.close()

    async def make_readers(self) -> None:
        for number in range(self.chance.randint(1, 4)):
            wanted = {
                f"s{place}": self.chance.choice(EXPRESSIONS) for place in range(self.chance.randint(1, 3))
            }
            limits = QueueLimits()
            if self.settings.limits and number % 2 == 0:
                limits = QueueLimits(most_bytes=self.chance.choice([0, 60, 400]), replay_seconds=0)
            reader = Reader(f"reader-{number}", wanted)
            subscriber = await self.site.subscriber(reader.name, limits)
            for id, text in wanted.items():
                await subscriber.subscribe(id, text, priority=self.chance.randint(0, 9))
            self.readers.append(reader)

    async def start(self, work: Awaitable[Any]) -> "asyncio.Task[Any]":
        task = asyncio.ensure_future(work)
        self.tasks.append(task)
        while task not in self.turns._waiting and not task.done():
            await asyncio.sleep(0.0002)
        return task

    async def start_router(self) -> None:
        site = await self.process()
        offset, speed = self.chance.random() * 1e6, self.chance.choice([0.5, 1.0, 20.0])
        self.ticks = getattr(self, "ticks", 0)
        router = Router(
            site.log,
            site.settings,
            batch=self.chance.choice([1, 3, 50]),
            lease_seconds=20,
            clock=lambda: offset + self.ticks * speed,
        )
        task = await self.start(self.route(router))
        self.routers[task] = router

    # --- processes ---------------------------------------------------------------------------------

    async def route(self, router: Router) -> None:
        keeping = Retention(
            router.log, router.settings, router.table, router.counters, least_event_seconds=1e9
        )
        while True:
            try:
                await router.step()
                if self.settings.limits and 0 in router.leases and not self.is_ending:
                    await keeping.tidy()
            except LogError:
                await self.turns.turn()
            if self.is_ending:
                return

    async def publish(self, site: Site, name: str) -> None:
        publisher: Publisher = await site.publisher(name, timeout=0.0)
        while not self.is_ending:
            events = []
            for _ in range(self.chance.choice([1, 1, 2, 5])):
                self.serial += 1
                events.append({"k": self.chance.randrange(5), "by": name, "serial": self.serial})
            session = publisher.session
            for event in events:
                event["session"] = session
            serials = {event["serial"] for event in events}
            self.unknown |= serials
            try:
                await publisher.publish(events)
            except LogUnavailableError:
                continue  # unknown it stays; a new session has begun
            except RolledBackError:
                self.told_rollbacks += 1
                self.unknown -= serials
                continue
            self.unknown -= serials
            self.published += events

    async def read(self, site: Site, reader: Reader) -> None:
        while True:
            try:
                reader.subscriber = await site.subscriber(reader.name)
                reader.heard, reader.of_client = [], set()
                while True:
                    await self.read_some(reader)
                    if self.is_ending:
                        return
                    if self.chance.random() < 0.05:
                        break  # vanishes without a word, and comes back
            except TakenOverError:
                raise AssertionError("nobody else reads under this name") from None
            except LogError:
                await self.turns.turn()
                if self.is_ending:
                    return

    async def read_some(self, reader: Reader) -> None:
        assert reader.subscriber is not None
        try:
            item = await reader.subscriber.next(timeout=0.001 if self.turns.is_calm else None)
        except TimeoutError:
            return
        self.note(reader, item)
        if self.chance.random() < 0.4:
            before = set(reader.heard)
            await reader.subscriber.acknowledge()
            reader.acknowledged |= before

    def note(self, reader: Reader, item: Delivered | Gap) -> None:
        if isinstance(item, Gap):
            if item.reason == "rollback":
                reader.rollbacks += 1
                reader.heard = []
                reader.acknowledged.clear()
            else:
                reader.gaps[item.reason] = reader.gaps.get(item.reason, 0) + (item.count or 0)
            return
        serial = item.event["serial"]
        assert serial not in reader.of_client, f"{reader.name} got {serial} twice from one client"
        reader.of_client.add(serial)
        if self.restored_at is not None:
            # Routed again from the older copy: a rollback is visible, and may repeat for another client.
            reader.all_heard.add(serial)
            return
        assert serial not in reader.heard, f"{reader.name} heard {serial} twice in one life"
        assert serial not in reader.acknowledged, f"{reader.name} had acknowledged {serial}"
        reader.heard.append(serial)
        reader.all_heard.add(serial)

    # --- what happens ------------------------------------------------------------------------------

    async def something(self) -> None:
        self.ticks += 1
        draw = self.chance.random()
        living = [task for task in self.routers if not task.done()]
        if draw < 0.02 and living:
            victim = self.chance.choice(living)
            self.turns.kill(victim)
            await asyncio.gather(victim, return_exceptions=True)
        elif draw < 0.04 and len(living) < 3:
            await self.start_router()
        elif draw < 0.05:
            body = self.chance.choice(HOSTILE)
            await self.site.log.append(EVENTS, [Entry("p0", "evil", body)])
        elif draw < 0.053:
            self.clock.jump()
        elif self.settings.rollback and draw < 0.06 and self.copied_at is None:
            self.back_up()
        elif self.settings.rollback and draw < 0.08 and self.copied_at and self.restored_at is None:
            self.restore()
        else:
            for _ in range(8):
                await self.turns.step([task for task in self.tasks if not task.done()])
        for task in self.tasks:
            if task.done() and not task.cancelled() and task.exception() is not None:
                error = task.exception()
                if not isinstance(error, Killed):
                    raise error  # type: ignore[misc]

    def back_up(self) -> None:
        source, target = sqlite3.connect(self.path), sqlite3.connect(self.path.with_suffix(".backup"))
        with target:
            source.backup(target)
        source.close()
        target.close()
        self.copied_at = self.serial
        self.in_copy = {event["serial"] for event in self.published}
        self.acknowledged = {reader.name: set(reader.acknowledged) for reader in self.readers}

    def restore(self) -> None:
        self.clock.pass_time_of(self.path)
        for suffix in ("-wal", "-shm"):
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)
        shutil.copy(self.path.with_suffix(".backup"), self.path.with_suffix(".restored"))
        shutil.move(self.path.with_suffix(".restored"), self.path)
        self.restored_at = self.serial
        for reader in self.readers:
            reader.acknowledged &= self.acknowledged[reader.name]

    async def finish(self) -> None:
        """End all faults and let everything arrive."""
        self.is_ending = self.turns.is_calm = True
        for task in list(self.tasks):
            if task in self.turns._waiting:
                self.turns._waiting.pop(task).set_result(None)
        await asyncio.gather(*self.tasks, return_exceptions=True)
        self.tasks.clear()
        now = [0.0]
        last = Router(self.site.log, self.site.settings, clock=lambda: now[0])
        await last.step()
        now[0] = 1e6
        quiet = 0
        while quiet < 3:
            quiet = 0 if await last.step() else quiet + 1
        if self.settings.limits:
            # One more event for each lane shows what is missing before it.
            marker = await self.site.publisher("bob")
            await marker.publish({"k": 1, "by": "bob", "serial": 0})
            for partition in range(self.site.settings.partitions):
                publisher = await self.site.publisher("bob")
                publisher._topic = keys.partition_topic(partition)
                for k in range(5):
                    await publisher.publish({"k": k, "by": "bob", "serial": -1 - k - 5 * partition})
            while await last.step():
                pass
        for reader in self.readers:
            subscriber = reader.subscriber
            assert subscriber is not None
            while subscriber._buffer or await subscriber._fill():
                self.note(reader, await subscriber.next())

    # --- judging -----------------------------------------------------------------------------------

    def wants(self, reader: Reader, event: dict[str, Any]) -> bool:
        return any(tamis.parse(text).evaluate(event) is True for text in reader.wanted.values())

    def judge(self) -> None:
        lost: set[int] = set()
        if self.restored_at is not None:
            lost = {e["serial"] for e in self.published if e["serial"] <= self.restored_at} - self.in_copy
        for reader in self.readers:
            wanted = [e for e in self.published if self.wants(reader, e)]
            missing = {e["serial"] for e in wanted} - reader.all_heard
            known = {e["serial"] for e in wanted} | self.unknown
            heard = {serial for serial in reader.all_heard if serial > 0}
            assert heard <= known or self.restored_at is not None, (reader.name, heard - known)
            if self.settings.limits:
                # A gap is told again to a client that comes back without having acknowledged.
                counted = sum(reader.gaps.get(reason, 0) for reason in ("bytes", "age"))
                assert len(missing) <= counted, (reader.name, len(missing), reader.gaps)
                assert not reader.gaps.get("lost"), reader.gaps
            elif self.restored_at is None:
                assert not missing, (reader.name, sorted(missing))
                assert not reader.gaps, (reader.name, reader.gaps)
                assert not reader.rollbacks
            else:
                assert missing <= lost, (reader.name, sorted(missing - lost))
            self.judge_order(reader)

    def judge_order(self, reader: Reader) -> None:
        session = {e["serial"]: e["session"] for e in self.published}
        place = {e["serial"]: number for number, e in enumerate(self.published)}
        by_session: dict[str, int] = {}
        for serial in reader.heard:
            if serial in session:
                assert by_session.get(session[serial], -1) < place[serial], "a publisher's order is kept"
                by_session[session[serial]] = place[serial]


def play(seed: int, folder: Path, settings: Settings) -> History:
    """Play a history from a seed."""
    return shrinking.play(History, seed, folder, settings)
