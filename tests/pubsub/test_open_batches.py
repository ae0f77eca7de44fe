"""A client that may write to a stream begins atomic batches and never ends them, until no more are opened.

Faults: nobody can publish several events at once, or subscribe with several expressions; a publisher tries
again without a pause; what is written one by one comes twice, or in another order; a log is not kept small
any more, or a neighbour's queue not limited, because of one subscriber that cannot be forgotten just now.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import nats as nats_client
import pytest

from pubsub.logs import run
from pubsub.test_site import drain, heard, router_of
from servers import NatsServer
from tamis.pubsub import connect, keys
from tamis.pubsub.log import EVENTS, STATE, BusyError, Entry
from tamis.pubsub.records import QueueLimits, read_drops
from tamis.pubsub.router.retention import Retention

MOST = 3
"""Opening one costs a server milliseconds, so this one opens few; by default it is 50 for each stream."""


@asynccontextmanager
async def used_up(url: str, *subjects: str) -> AsyncIterator[None]:
    """All batches that a server opens for the streams of these subjects are in use, and stay so."""
    eve = await nats_client.connect(url)

    async def begin(round: int) -> None:
        for subject in subjects:
            for n in range(MOST):
                headers = {"Nats-Batch-Id": f"{round}-{n}", "Nats-Batch-Sequence": "1"}
                await eve.publish(subject, b"{}\n{}", headers=headers)
        await eve.flush()

    async def again() -> None:
        for round in range(1, 10_000):
            await begin(round)
            await asyncio.sleep(0.05)

    await begin(0)
    hostile = asyncio.create_task(again())
    try:
        yield
    finally:
        hostile.cancel()
        await asyncio.gather(hostile, return_exceptions=True)
        await eve.close()


def test_publishers_and_subscribers_are_not_held_up(nats_program: str, tmp_path: Path) -> None:
    config = tmp_path / "nats.conf"
    config.write_text(f"jetstream {{ limits {{ batch {{ max_inflight_per_stream: {MOST} }} }} }}")

    async def main(url: str) -> None:
        async with (
            connect(f"{url}/site", partitions=1) as site,
            used_up(url, "tamis.site.events.p0.s.eve.a1", "tamis.site.state.sub.eve.s1"),
        ):
            with pytest.raises(BusyError):
                await site.log.append(EVENTS, [Entry("p0", "s.x.y", b"{}\n{}")] * 2)
            ann, router = await site.subscriber("ann"), router_of(site)
            wanted = {f"s{n}": f"n = {n}" for n in range(60)}
            await ann.subscribe_many(wanted)
            assert list((await ann.subscriptions()).items()) == list(wanted.items())
            bob = await site.publisher("bob", timeout=20)
            numbers = []
            for start in (0, 5, 6):
                numbers += await bob.publish([{"n": start + n} for n in range(1 if start == 5 else 5)])
            assert numbers == list(range(1, 12))
            await drain(router)
            assert await heard(ann) == [{"n": n} for n in range(11)]

    with NatsServer(nats_program, tmp_path, "-c", str(config)) as server:
        run(lambda: main(server.url))


def test_a_log_is_kept_small(nats_program: str, tmp_path: Path) -> None:
    config = tmp_path / "nats.conf"
    config.write_text(f"jetstream {{ limits {{ batch {{ max_inflight_per_stream: {MOST} }} }} }}")

    async def main(url: str) -> None:
        async with connect(f"{url}/site", partitions=1) as site:
            old = await site.subscriber("old", QueueLimits(idle_seconds=1_000))
            await old.subscribe_many({"s1": "n = 1", "s2": "n = 2"})
            rome = await site.subscriber("@rome", QueueLimits(most_bytes=10, replay_seconds=0))
            await rome.subscribe("all", "TRUE")
            await (await site.publisher("bob")).publish([{"n": n} for n in range(10, 20)])
            router = router_of(site)
            await drain(router)
            keeping = Retention(site.log, site.settings, router.table, router.counters, least_event_seconds=0)
            await router.table.catch_up()
            router.table.time += 2_000 * 1_000_000
            async with used_up(url, "tamis.site.state.sub.eve.s1"):
                for _ in range(2):
                    await keeping.tidy()
                    router.table.time += 1_000_000
                assert len(await site.log.read(EVENTS, topic="p0")) <= 1
                assert router.counters.dropped == 10
                drop, behind = (keys.DROP, "=40rome"), (keys.BEHIND, "=40rome")
                found = await site.log.last(STATE, [drop, behind])
                assert read_drops(found[drop], found[behind]).totals == {"bytes": 10}

    with NatsServer(nats_program, tmp_path, "-c", str(config)) as server:
        run(lambda: main(server.url))
