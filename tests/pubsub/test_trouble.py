"""What goes wrong around a router and its clients, and must not go wrong with them.

Faults: somebody holds SQLite's write lock; the limit of the log is reached by those who never named it; a
queue is larger than the memory of who reads it; two routers have one name; a batch takes longer than a lease;
a mapping is no event; a record of a later release ends what only one router does; the disk is full.
"""

import asyncio
import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pubsub.logs import run
from pubsub.nats_proxy import NatsProxy
from pubsub.router_processes import metric
from pubsub.test_site import drain, router_of
from servers import Nats
from tamis.errors import EventError
from tamis.pubsub import Delivered, LogFullError, LogUnavailableError, connect, keys
from tamis.pubsub.log import EVENTS, QUEUES, STATE, Entry
from tamis.pubsub.log import sqlite as sqlite_log
from tamis.pubsub.records import QueueLimits
from tamis.pubsub.router.counters import Counters
from tamis.pubsub.router.retention import Retention
from tamis.pubsub.router.router import Router
from tamis.pubsub.router.table import Table
from tamis.pubsub.service import server as service
from tamis.pubsub.service.config import Config
from tamis.pubsub.service.metrics import metrics_text
from tamis.pubsub.service.server import RouterServer
from tamis.pubsub.site import Site


@contextlib.contextmanager
def write_lock(path: Path) -> Iterator[None]:
    """Somebody begins to write, and is stopped."""
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        database.execute("ROLLBACK")
        database.close()


def test_a_publisher_does_not_try_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_log, "BUSY_SECONDS", 0.05)

    async def main() -> None:
        async with connect(f"sqlite:{tmp_path}/site.db") as site:
            bob = await site.publisher("bob", timeout=0.3)
            await bob.publish({"n": 1})
            with write_lock(tmp_path / "site.db"), pytest.raises(LogUnavailableError, match="unknown"):
                await bob.publish({"n": 2})
            [third] = await bob.publish({"n": 3})
            assert third == 2
            patient = await site.publisher("carl", timeout=60)
            with write_lock(tmp_path / "site.db"):
                publishing = asyncio.create_task(patient.publish({"n": 4}))
                await asyncio.sleep(0.3)
            assert await publishing == [3]

    run(main)


@pytest.mark.parametrize(
    "event",
    [
        {"a": "\ud800"},
        {"a": {"$interval": [3, 1]}},
        {"a": {"$timestamp": "no time"}},
        '{"a": "\ud800"}',
        b'{"a": "\xed\xa0\x80"}',
        b"{}{}",
    ],
)
def test_what_is_no_event_is_not_acknowledged(tmp_path: Path, event: Any) -> None:
    async def main() -> None:
        async with connect(f"sqlite:{tmp_path}/site.db") as site:
            bob = await site.publisher("bob")
            with pytest.raises(EventError):
                await bob.publish([{"n": 1}, event])
            deep: dict[str, Any] = {}
            for _ in range(5_000):
                deep = {"a": deep}
            with pytest.raises(EventError):
                await bob.publish(deep)
            assert await site.log.end(EVENTS) == 0

    run(main)


def test_a_limit_holds_for_everybody_and_a_full_log_empties_itself(log_url: str) -> None:
    async def main() -> None:
        async with connect(log_url, partitions=1, most_bytes=1_000_000) as site, connect(log_url) as other:
            ann = await site.subscriber("ann")
            await ann.subscribe("all", "TRUE")
            bob = await other.publisher("bob")  # never heard of a limit
            count, is_full = 0, False
            while not is_full and count < 1_000:
                try:
                    await bob.publish({"n": count, "text": "x" * 10_000})
                    count += 1
                except LogFullError:
                    is_full = True
            assert 20 < count < 110
            # What was accepted is routed, read, acknowledged and removed, and there is room again.
            router = router_of(other)
            await drain(router)
            heard = []
            for _ in range(count):
                item = await ann.next(10)
                assert isinstance(item, Delivered)
                heard.append(item.event["n"])
                await ann.acknowledge()
            assert heard == list(range(count))
            await site.log.append(STATE, [Entry(keys.QUEUE, "ann", b"")])
            await router.table.catch_up()
            keeping = Retention(
                other.log, other.settings, router.table, router.counters, least_event_seconds=0
            )
            await asyncio.sleep(0.01)
            await other.log.append(STATE, [Entry("tick", "tick", b"x")])
            await router.table.catch_up()
            await keeping.tidy()
            await bob.publish({"n": count, "text": "x" * 10_000})

    run(main)


def test_a_queue_may_be_larger_than_the_memory_of_who_reads_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with connect(f"sqlite:{tmp_path}/site.db", partitions=1) as site:
            ann = await site.subscriber("ann")
            await ann.subscribe("all", "TRUE")
            bob = await site.publisher("bob")
            router = router_of(site)
            for number in range(150):
                await bob.publish({"n": number, "text": "x" * 200_000})
                await router.step()
            heard: list[Any] = []
            while len(heard) < 150:
                heard.append(await ann.next(10))
                held = sum(len(item.body) for item in ann._buffer if isinstance(item, Delivered))
                assert held < 10_000_000, "30 MB wait, and never all of them at once"
            assert [item.event["n"] for item in heard] == list(range(150))

    run(main)


def test_two_routers_of_one_name_both_go_on(log_url: str) -> None:
    async def main() -> None:
        async with connect(log_url, partitions=2) as site:
            ann = await site.subscriber("ann")
            await ann.subscribe("all", "TRUE")
            now = [0.0]
            twins = [
                Router(site.log, site.settings, name="r1", batch=2, clock=lambda: now[0]) for _ in range(2)
            ]
            for _ in range(12):
                for twin in twins:
                    now[0] += 1
                    await twin.step()
            assert sorted(len(twin.leases) for twin in twins) == [1, 1], "they share, and do not quarrel"
            assert twins[1].name == "r1", "the later one has the name"
            assert twins[0].name.startswith("r1-")
            bob = await site.publisher("bob")
            await bob.publish([{"n": number} for number in range(20)])
            lost = sum(twin.counters.leases_lost for twin in twins)
            for _ in range(30):
                for twin in twins:
                    now[0] += 0.1
                    await twin.step()
            heard: list[Any] = [await ann.next(10) for _ in range(20)]
            assert [item.event["n"] for item in heard] == list(range(20))
            assert sum(twin.counters.leases_lost for twin in twins) == lost

    run(main)


def test_a_router_that_comes_back_under_its_name_goes_on_at_once(log_url: str) -> None:
    async def main() -> None:
        async with connect(log_url, partitions=2) as site:
            now = [0.0]
            first = Router(site.log, site.settings, name="r1", clock=lambda: now[0])
            await first.step()
            assert len(first.leases) == 2
            again = Router(site.log, site.settings, name="r1", clock=lambda: now[0])  # the first was killed
            await again.step()
            assert (again.name, len(again.leases)) == ("r1", 2)

    run(main)


class LosesAnswers:
    """A log that loses the answer to the next append."""

    def __init__(self, log: Any) -> None:
        self._log = log
        self.is_losing = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def append(self, stream: str, *more: Any) -> Any:
        answer = await self._log.append(stream, *more)
        if self.is_losing and stream == QUEUES:
            self.is_losing = False
            raise LogUnavailableError("the answer was lost")
        return answer


@pytest.mark.parametrize("restarts", [False, True])
def test_a_partition_that_was_let_go_without_a_word_is_not_left_alone(log_url: str, restarts: bool) -> None:
    """Its cursor names a router that is alive and does not have it: who else would take it?"""

    async def main() -> None:
        async with connect(log_url, partitions=2) as site:
            ann = await site.subscriber("ann")
            await ann.subscribe("all", "TRUE")
            now = [0.0]
            log = LosesAnswers(site.log)

            def router(name: str) -> Router:
                return Router(log, site.settings, name=name, clock=lambda: now[0])  # type: ignore[arg-type]

            one, two = router("one"), router("two")
            await one.step()
            assert set(one.leases) == {0, 1}
            for name in ("bob", "carl", "dora"):  # on both partitions
                await (await site.publisher(name)).publish({"by": name})
            await two._sign()
            if restarts:
                one = router("one")
            else:
                log.is_losing = True
                with pytest.raises(LogUnavailableError):
                    await one.step()
            for _ in range(20):
                now[0] += 1
                await one.step()
                await two.step()
            assert (len(one.leases), len(two.leases)) == (1, 1)
            heard: list[Any] = [await ann.next(10) for _ in range(3)]
            assert {item.event["by"] for item in heard} == {"bob", "carl", "dora"}

    run(main)


def test_a_lease_that_was_lost_on_a_silent_partition_is_noticed(log_url: str) -> None:
    """Who believes to have a share takes nothing else: another partition would be nobody's."""

    async def main() -> None:
        async with connect(log_url, partitions=2) as site:
            now = [0.0]
            one, two = (
                Router(site.log, site.settings, name=name, clock=lambda: now[0]) for name in ("1", "2")
            )
            for _ in range(6):
                await one.step()
                await two.step()
            assert (set(one.leases), set(two.leases)) == ({0}, {1})
            # Both were stopped for longer than a lease, and take what they believe to be nobody's.
            now[0] += 60
            for router in (one, two):
                await router._share()
            assert (set(one.leases), set(two.leases)) == ({0, 1}, {0, 1})
            ann = await site.subscriber("ann")
            await ann.subscribe("all", "TRUE")
            bob = await site.publisher("bob")
            bob._topic = "p0"
            await bob.publish({"n": 1})
            for router in (one, two) * 20:
                now[0] += 1
                await router.step()
            assert len(one.leases) == len(two.leases) == 1
            assert set(one.leases) | set(two.leases) == {0, 1}
            item = await ann.next(10)
            assert isinstance(item, Delivered)

    run(main)


class SwallowsCancellation:
    """A log whose `wait` ends when it is cancelled, and says nothing, as `asyncio.wait_for` can do."""

    def __init__(self, log: Any) -> None:
        self._log = log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def wait(self, stream: str, after: int, seconds: float) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(seconds)


def test_a_timeout_holds_though_a_cancellation_was_swallowed(tmp_path: Path) -> None:
    async def main() -> None:
        async with connect(f"sqlite:{tmp_path}/site.db") as site:
            ann = await Site(SwallowsCancellation(site.log), site.settings).subscriber("ann")  # type: ignore[arg-type]
            with pytest.raises(TimeoutError):
                await ann.next(timeout=0.1)

    run(main, 20)


class Slow:
    """A log whose events take long, by a clock of the test; meanwhile others do something."""

    def __init__(self, log: Any, now: list[float]) -> None:
        self._log, self._now = log, now
        self.meanwhile: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def read(self, stream: str, **more: Any) -> Any:
        found = await self._log.read(stream, **more)
        if stream == EVENTS and self.meanwhile is not None:
            for _ in range(len(found) // 20):
                self._now[0] += 2.0  # ten events a second
                await self.meanwhile()
        return found


def test_batches_that_take_longer_than_a_lease_become_smaller(tmp_path: Path) -> None:
    async def main() -> None:
        async with connect(f"sqlite:{tmp_path}/site.db", partitions=1) as site:
            ann = await site.subscriber("ann")
            await ann.subscribe("all", "TRUE")
            bob = await site.publisher("bob")
            await bob.publish([{"n": number} for number in range(400)])
            now = [0.0]
            logs = [Slow(site.log, now) for _ in range(2)]
            routers = [
                Router(log, site.settings, name=f"r{place}", lease_seconds=10, clock=lambda: now[0])  # type: ignore[arg-type]
                for place, log in enumerate(logs)
            ]

            def looking(router: Router) -> Any:
                async def looks() -> None:
                    """Look whether the other one, which has a batch in hand, is still alive."""
                    await router.table.catch_up()
                    await router._sign()
                    await router._share()

                return looks

            for log, other in zip(logs, reversed(routers), strict=True):
                await other.table.catch_up()
                await other._sign()
                log.meanwhile = looking(other)
            for _ in range(60):
                for router in routers:
                    await router.step()
            assert sum(router.counters.events for router in routers) == 400, "they make progress"
            heard: list[Any] = [await ann.next(10) for _ in range(400)]
            assert [item.event["n"] for item in heard] == list(range(400))

    run(main)


def test_housekeeping_survives_a_cursor_of_a_later_release(tmp_path: Path) -> None:
    async def main() -> None:
        async with connect(f"sqlite:{tmp_path}/site.db", partitions=2) as site:
            await site.log.append(QUEUES, [Entry(keys.CURSOR, "1", b'{"v":99}')])
            table = Table(site.log, site=site.name)
            await table.catch_up()
            await Retention(site.log, site.settings, table, Counters()).tidy()

    run(main)


def test_a_fault_in_housekeeping_does_not_end_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "TROUBLE_SECONDS", 0.01)

    async def main() -> None:
        server = RouterServer(Config(f"sqlite:{tmp_path}/site.db", housekeeping_seconds=0.01))
        running = asyncio.create_task(server.run())
        await server.ready.wait()
        rounds = 0

        async def tidy() -> None:
            nonlocal rounds
            rounds += 1
            raise [ValueError("a fault"), LogFullError("full"), OSError("disk")][rounds % 3]

        housekeeping = asyncio.create_task(server._leading(tidy, 0.01))
        while rounds < 5:
            await asyncio.sleep(0.01)
        server.stop()
        await housekeeping
        await running

    run(main)


def test_a_snapshot_that_cannot_be_written_is_no_reason_to_end(tmp_path: Path) -> None:
    async def main() -> None:
        blocked = tmp_path / "file"
        blocked.write_text("")
        server = RouterServer(
            Config(f"sqlite:{tmp_path}/site.db", snapshot=str(blocked / "x.tamis"), snapshot_seconds=0.01)
        )
        running = asyncio.create_task(server.run())
        await server.ready.wait()
        await asyncio.sleep(1.2)  # the first snapshot fails, and operators are still heard
        async with connect(f"sqlite:{tmp_path}/site.db") as site:
            name = server.router.name
            await site.log.append(STATE, [Entry(keys.DRAIN, name, b'{"v":1}')])
        await running

    run(main)


def test_a_connection_that_is_made_again_repeats_nothing_and_acknowledges(nats: Nats) -> None:
    async def main() -> None:
        async with NatsProxy(nats.url) as proxy, connect(f"{proxy.url}/reconnected", partitions=1) as site:
            ann = await site.subscriber("ann")
            await ann.subscribe("all", "TRUE")
            bob = await site.publisher("bob")
            await bob.publish([{"n": number} for number in range(6)])
            router = router_of(site)
            await drain(router)
            heard: list[Any] = [await ann.next(10) for _ in range(3)]
            for place in range(2):
                generation = site.log.generation
                proxy.cut()
                proxy.mend()
                while site.log.generation == generation:
                    await asyncio.sleep(0.05)
                await ann.acknowledge(heard[place])
            heard += [await ann.next(10) for _ in range(3)]
            assert [item.event["n"] for item in heard] == list(range(6)), "once in the life of a client"
            again = await site.subscriber("ann")
            first = await again.next(10)
            assert isinstance(first, Delivered)
            assert first.event["n"] == 2, "what was acknowledged stays so"

    run(main)


def test_metrics_are_exact_above_a_million_and_can_be_read_while_a_router_works(tmp_path: Path) -> None:
    """They used to be printed with six digits."""

    async def main() -> None:
        server = RouterServer(Config(f"sqlite:{tmp_path}/site.db", housekeeping_seconds=0.01))
        running = asyncio.create_task(server.run())
        await server.ready.wait()
        server.router.counters.came = 123_456_789
        async with connect(f"sqlite:{tmp_path}/site.db") as site:
            ann = await site.subscriber("ann", QueueLimits(most_bytes=200))
            await ann.subscribe("all", "TRUE")
            bob = await site.publisher("bob")
            for number in range(60):
                await bob.publish([{"n": number}] * 3)
                text = (await asyncio.to_thread(metrics_text, server)).decode()
                assert metric(text, "tamis_router_came_total") == 123_456_789
            assert "tamis_queue_lag_bytes" in text
        server.stop()
        await running

    run(main)
