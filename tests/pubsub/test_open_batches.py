"""A client that may write to a stream begins atomic batches and never ends them, until no more are opened.

Faults: nobody can publish several events at once, or subscribe with several expressions; a publisher tries
again without a pause; what is written one by one comes twice, or in another order; a client that may not
write the last entry of a batch leaves it open, or one that is cancelled before it has sent all; a log is not
kept small any more, or a neighbour's queue not limited, because of one subscriber that cannot be forgotten
just now.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import nats as nats_client
import pytest

from pubsub.logs import run
from pubsub.test_site import drain, heard, router_of
from servers import NatsServer
from tamis.pubsub import connect, keys
from tamis.pubsub.log import EVENTS, STATE, BusyError, Entry, ForbiddenError, Log, LogFullError, open_log
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


async def is_busy(log: Log) -> bool:
    """Whether a log refuses a batch: a server takes a moment to open those that use it up."""
    try:
        await log.append(EVENTS, [Entry("p0", "s.x.y", b"{}\n{}")] * 2)
    except BusyError:
        return True
    return False


def test_publishers_and_subscribers_are_not_held_up(nats_program: str, tmp_path: Path) -> None:
    config = tmp_path / "nats.conf"
    config.write_text(f"jetstream {{ limits {{ batch {{ max_inflight_per_stream: {MOST} }} }} }}")

    async def main(url: str) -> None:
        async with (
            connect(f"{url}/site", partitions=1) as site,
            used_up(url, "tamis.site.events.p0.s.eve.a1", "tamis.site.state.sub.eve.s1"),
        ):
            while not await is_busy(site.log):
                await asyncio.sleep(0.01)
            first = await site.log.end(EVENTS) + 1
            ann, router = await site.subscriber("ann"), router_of(site)
            wanted = {f"s{n}": f"n = {n}" for n in range(60)}
            await ann.subscribe_many(wanted)
            assert list((await ann.subscriptions()).items()) == list(wanted.items())
            bob = await site.publisher("bob", timeout=20)
            numbers = []
            for start in (0, 5, 6):
                numbers += await bob.publish([{"n": start + n} for n in range(1 if start == 5 else 5)])
            assert numbers == list(range(first, first + 11))
            await drain(router)
            assert await heard(ann) == [{"n": n} for n in range(11)]

    with NatsServer(nats_program, tmp_path, "-c", str(config)) as server:
        run(lambda: main(server.url))


def test_what_was_published_before_the_log_was_full_is_said(tmp_path: Path) -> None:
    """Fault: events that are written one by one look as if none was published, and come twice."""

    async def main() -> None:
        async with connect(f"sqlite:{tmp_path}/site.db", partitions=1) as site:
            bob = await site.publisher("bob", timeout=20)
            really, singles = site.log.append, count(1)

            async def append(stream: str, entries: list[Entry], fences: Any = None) -> int:
                if stream == EVENTS and len(entries) > 1:
                    raise BusyError("too many batches")
                if stream == EVENTS and next(singles) == 3:
                    raise LogFullError("there is no room")
                return await really(stream, entries, fences)

            site.log.append = append  # type: ignore[method-assign]
            events = [{"n": n} for n in range(5)]
            with pytest.raises(LogFullError) as full:
                await bob.publish(events)
            assert full.value.published == [1, 2]
            assert full.value.__notes__ == ["the first 2 of 5 events are published"]
            assert await bob.publish(events[2:]) == [3, 4, 5]
            singles = count(3)
            with pytest.raises(LogFullError) as full:
                await bob.publish(events[:1])
            assert full.value.published == []

    run(main)


@pytest.mark.parametrize("names", ["bob eve", "bob eve eve", "bob bob eve", "eve eve"])
def test_a_batch_whose_last_entry_is_forbidden_is_ended(
    nats_program: str, tmp_path: Path, names: str
) -> None:
    config = tmp_path / "nats.conf"
    config.write_text(
        f"jetstream {{ limits {{ batch {{ max_inflight_per_stream: {MOST} }} }} }}\n"
        "authorization { users = [{user: root, password: secret}, {user: bob, password: his, permissions: "
        '{publish: {allow: ">", deny: "tamis.site.events.p0.eve"}, subscribe: ">"}}] }\n'
    )

    async def main(address: str) -> None:
        root, log = [await open_log(f"nats://{user}@{address}/site") for user in ("root:secret", "bob:his")]
        for _ in range(2 * MOST):
            with pytest.raises(ForbiddenError, match=r"p0\.eve"):
                await log.append(EVENTS, [Entry("p0", detail, b"{}") for detail in names.split()])
        assert await root.append(EVENTS, [Entry("p0", "eve", b"{}")] * 2) == 2
        for each in (root, log):
            await each.close()

    with NatsServer(nats_program, tmp_path, "-c", str(config)) as server:
        run(lambda: main(server.url.removeprefix("nats://")))


def test_a_batch_whose_append_is_cancelled_is_ended(nats_program: str, tmp_path: Path) -> None:
    config = tmp_path / "nats.conf"
    config.write_text(f"jetstream {{ limits {{ batch {{ max_inflight_per_stream: {MOST} }} }} }}")

    async def main(url: str) -> None:
        log, other = await open_log(f"{url}/site"), await open_log(f"{url}/site")
        client: Any = log._client  # type: ignore[attr-defined]
        entries, sent, publish = [Entry("p0", "s.bob.a1", b"{}\n{}")] * 100, [], client.publish

        async def slowly(*message: Any, **more: Any) -> None:
            sent.append(message)
            await asyncio.sleep(0)
            await publish(*message, **more)

        client.publish = slowly
        for _ in range(2 * MOST):
            sent.clear()
            appending = asyncio.create_task(log.append(EVENTS, entries))
            while len(sent) < 3:
                await asyncio.sleep(0)
            appending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await appending
        assert await log.end(EVENTS) == 0
        assert await other.append(EVENTS, entries) == 100
        for each in (log, other):
            await each.close()

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
