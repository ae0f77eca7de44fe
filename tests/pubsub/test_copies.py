"""Copies for clients that may see some attributes only: they stay as long as somebody can still read them.

Faults: a copy lies before the delivery that refers to it, and is removed while that one waits; copies of a
large batch are in an append of their own, and are removed before the deliveries are written; one partition is
idle and keeps the copies of all others; copies of a grant that is gone stay for ever; a grant comes while a
batch is written, and deliveries refer to copies that nobody has made. Cursors are trimmed, so housekeeping
that begins again must not need them to know which partition a copy is of.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from pubsub.logs import heard, run
from pubsub.test_limits_of_queues import retention
from pubsub.test_site import drain, router_of
from tamis.pubsub import keys
from tamis.pubsub.log import QUEUES, STATE, Entry, Log
from tamis.pubsub.records import Grant, QueueLimits
from tamis.pubsub.router import router as routing
from tamis.pubsub.router.router import Lease
from tamis.pubsub.site import Site, connect
from tamis.pubsub.subscriber import Subscriber


async def projected(site: Site, name: str, **limits: Any) -> Subscriber:
    """A subscriber that wants everything and may see `n`."""
    await site.log.append(STATE, [Entry(keys.GRANT, name, Grant(attributes=("n",)).body())])
    subscriber = await site.subscriber(name, QueueLimits(**limits))
    await subscriber.subscribe("all", "n >= 0")
    return subscriber


async def copies(site: Site) -> int:
    records = await site.log.read(QUEUES, most=10_000)
    return sum(record.topic.startswith(keys.COPY) for record in records)


def test_a_copy_stays_while_its_delivery_waits(log_url: str) -> None:
    async def main() -> None:
        async with connect(log_url, partitions=1) as site:
            ann, router = await projected(site, "ann"), router_of(site)
            bob = await site.publisher("bob")
            for n in range(3):
                await bob.publish([{"n": 2 * n, "secret": 1}, {"n": 2 * n + 1}])
                await drain(router)
                await retention(site, router).tidy()
            assert await heard(ann) == [{"n": n} for n in range(6)]

    run(main)


class Watched:
    """A log that lets somebody else work after each append to the queues."""

    def __init__(self, log: Log, meanwhile: Callable[[], Awaitable[None]]) -> None:
        self._log, self._meanwhile = log, meanwhile

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def append(self, stream: str, *arguments: Any) -> int:
        last = await self._log.append(stream, *arguments)
        if stream == QUEUES:
            await self._meanwhile()
        return last


@pytest.mark.parametrize("at_once", [1, 3, 1_000])
def test_copies_stay_between_the_appends_of_a_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(routing, "MOST_DELIVERIES", 8)
    monkeypatch.setattr("tamis.pubsub.router.retention.READ_AT_ONCE", at_once)

    async def main() -> None:
        async with connect(f"sqlite:{tmp_path}/site.db", partitions=1) as site:
            readers = [await projected(site, f"ann-{place}") for place in range(12)]
            keeping = retention(site, router_of(site))
            router = router_of(site)
            router.log = Watched(site.log, keeping.tidy)  # type: ignore[assignment]
            await (await site.publisher("bob")).publish([{"n": n, "secret": n} for n in range(20)])
            await drain(router)
            for reader in readers:
                assert await heard(reader) == [{"n": n} for n in range(20)], reader.name

    run(main)


@pytest.mark.parametrize("together", [1, 256])
def test_housekeeping_that_begins_again_keeps_what_is_needed_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    monkeypatch.setattr(routing, "MOST_DELIVERIES", 8)
    monkeypatch.setattr(routing, "TRIM_CURSOR_EVERY", 2)
    monkeypatch.setattr("tamis.pubsub.router.retention.COPIES_TOGETHER", together)

    async def main() -> None:
        async with connect(f"sqlite:{tmp_path}/site.db", partitions=4) as site:
            readers = [await projected(site, f"ann-{place}", replay_seconds=0) for place in range(12)]
            publishers = [await site.publisher(name) for name in ("bob", "carl", "dora", "emil")]
            expected: list[dict[str, int]] = []
            keeping = router_of(site)

            async def tidy() -> None:
                await retention(site, keeping).tidy()

            for turn in range(3):
                # Another one: it writes all cursors, behind the copies that are there.
                router = router_of(site)
                router.log = Watched(site.log, tidy)  # type: ignore[assignment]
                for place, publisher in enumerate(publishers[: turn + 1]):
                    events = [{"n": 100 * turn + 20 * place + n, "secret": n} for n in range(20)]
                    await publisher.publish(events)
                    expected += [{"n": event["n"]} for event in events]
                await drain(router)
                await router.release()
            for reader in readers:
                got = await heard(reader)
                assert sorted(got, key=repr) == sorted(expected, key=repr), reader.name
                await reader.acknowledge()
            await publishers[0].publish({"n": 1000})  # the log's clock shows that the others are older
            router = router_of(site)
            await drain(router)
            await retention(site, router).tidy()
            assert 1 <= await copies(site) <= together

    run(main)


def test_copies_go_when_nobody_can_read_them_any_more(log_url: str) -> None:
    async def main() -> None:
        async with connect(log_url, partitions=3) as site:
            ann = await projected(site, "ann", replay_seconds=0)
            router = router_of(site)
            keeping = retention(site, router)
            bob = await site.publisher("bob")  # whose partition is the only one with events
            for n in range(5):
                await bob.publish({"n": n})
                await drain(router)
            await keeping.tidy()
            assert await copies(site) == 5
            await heard(ann)
            await ann.acknowledge()
            await site.log.append(STATE, [Entry(keys.GRANT, "ann", b"")])
            await bob.publish({"n": 6})  # the log's clock shows that the others are older
            await drain(router)
            await keeping.tidy()
            assert await copies(site) == 0

    run(main)


@pytest.mark.parametrize("is_first", [True, False])
def test_a_grant_that_comes_while_a_batch_is_written_loses_no_event(tmp_path: Path, is_first: bool) -> None:
    """Housekeeping or a network of the same process reads it, after the copies were made."""

    async def main() -> None:
        async with connect(f"sqlite:{tmp_path}/site.db", partitions=1) as site:
            router, bob = router_of(site), await site.publisher("bob")
            if not is_first:
                await projected(site, "eve")
            ann = await site.subscriber("ann")
            await ann.subscribe("all", "n >= 0")
            await router.step()
            real, grants = router._learn_numbers, [Grant(attributes=("n",))]

            async def learning(lease: Lease, lanes: list[Any]) -> None:
                await real(lease, lanes)
                if lanes and grants:
                    await site.log.append(STATE, [Entry(keys.GRANT, "ann", grants.pop().body())])
                    await router.table.catch_up()

            router._learn_numbers = learning  # type: ignore[method-assign]
            for n in range(2):
                await bob.publish([{"n": n, "secret": n}])
                await drain(router)
            assert not grants
            assert await heard(ann) == [{"n": 0, "secret": 0}, {"n": 1}]

    run(main)
