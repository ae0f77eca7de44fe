"""Limits: bytes, age, priorities, replay, clients that vanish; and that a log does not grow without end.

Faults: limits in items instead of bytes; default priorities that are never dropped; a drop that nobody learns
of; clients that are never forgotten; dead records that stay; events that go though deliveries refer to them.
"""

from pathlib import Path
from typing import Any

import pytest

from pubsub.logs import read_by_ann, run
from pubsub.test_site import drain, heard, router_of
from tamis.pubsub import keys
from tamis.pubsub.log import EVENTS, QUEUES, STATE, Entry
from tamis.pubsub.records import QueueLimits, Reading
from tamis.pubsub.router.retention import Retention
from tamis.pubsub.router.router import Router
from tamis.pubsub.site import Site, connect


def retention(site: Site, router: Router, **more: Any) -> Retention:
    return Retention(site.log, site.settings, router.table, router.counters, **more)


async def tidy(keeping: Retention, router: Router) -> None:
    await router.table.catch_up()
    await keeping.tidy()
    await router.table.catch_up()


def test_beyond_its_bytes_a_queue_drops_the_lowest_priority_and_says_so(log_url: str) -> None:
    async def main() -> None:
        async with connect(log_url, partitions=1) as site:
            ann = await site.subscriber("ann", QueueLimits(most_bytes=3_000))
            await ann.subscribe("low", "kind = 'low'", priority=1)
            await ann.subscribe("default", "kind = 'default'")
            await ann.subscribe("high", "kind = 'high'", priority=9)
            bob, router = await site.publisher("bob"), router_of(site, batch=1)
            for n in range(4):
                for kind in ("low", "default", "high"):
                    await bob.publish({"kind": kind, "n": n, "text": "x" * 450})
            await drain(router)
            keeping = retention(site, router)
            await tidy(keeping, router)
            assert keeping.lag("ann")[0] == 6
            assert keeping.lag("ann")[1] <= 3_000
            got = await heard(ann)
            assert [e["kind"] + str(e["n"]) for e in got if isinstance(e, dict)] == [
                "high0",
                "high1",
                "default2",
                "high2",
                "default3",
                "high3",
            ]
            assert ("bytes", 2) in got
            assert router.counters.dropped == 6
            # The lane that was emptied goes on with the right number: its gap is seen with its next event.
            await bob.publish({"kind": "low", "n": 4})
            other = router_of(site, name=router.name)
            await drain(other)
            assert await heard(ann) == [("bytes", 4), {"kind": "low", "n": 4}]

    run(main)


def test_a_tiny_limit_drops_everything_visibly(log_url: str) -> None:
    async def main() -> None:
        async with connect(log_url, partitions=1) as site:
            ann = await site.subscriber("ann", QueueLimits(most_bytes=0))
            await ann.subscribe("all", "TRUE")
            bob, router = await site.publisher("bob"), router_of(site)
            keeping = retention(site, router)
            for n in range(3):
                await bob.publish([{"n": n}, {"n": n}])
                await drain(router)
                await tidy(keeping, router)
            assert await heard(ann) == []
            await bob.publish({"n": 9})
            await drain(router)
            assert await heard(ann) == [("bytes", 6), {"n": 9}]

    run(main)


def test_what_waits_too_long_is_dropped_and_what_was_read_can_be_replayed(log_url: str) -> None:
    async def main() -> None:
        async with connect(log_url, partitions=1) as site:
            ann = await site.subscriber("ann", QueueLimits(keep_seconds=100, replay_seconds=1_000))
            await ann.subscribe("all", "TRUE")
            bob, router = await site.publisher("bob"), router_of(site, batch=1)
            await bob.publish([{"n": n} for n in range(6)])
            await drain(router)
            first = [await ann.next(10) for _ in range(3)]
            await ann.acknowledge(first[1])
            keeping = retention(site, router)
            await tidy(keeping, router)
            router.table.time += 200 * 1_000_000
            await keeping.tidy()
            again = await site.subscriber("ann")
            assert await heard(again) == []
            await bob.publish({"n": 6})
            await drain(router)
            assert await heard(again) == [("age", 4), {"n": 6}]
            await again.acknowledge()
            await tidy(keeping, router)
            # What was acknowledged can be replayed, for a time.
            key = (keys.READ, "ann")
            await site.log.append(STATE, [Entry(*key, Reading("operator", is_replay=True).body())])
            third = await site.subscriber("ann")
            assert await heard(third) == [{"n": 6}]
            await third.acknowledge()
            await router.table.catch_up()
            router.table.time += 2_000 * 1_000_000
            await keeping.tidy()
            assert await site.log.read(QUEUES, topic="q-ann") == []

    run(main)


def test_an_operator_can_move_a_running_client_back(log_url: str) -> None:
    async def main() -> None:
        async with read_by_ann(log_url, partitions=1) as (site, ann):
            bob, router = await site.publisher("bob"), router_of(site, batch=1)
            await bob.publish([{"n": n} for n in range(3)])
            await drain(router)
            assert len(await heard(ann)) == 3
            await ann.acknowledge()
            await site.log.append(STATE, [Entry(keys.READ, "ann", Reading("op", is_replay=True).body())])
            await bob.publish({"n": 3})
            await drain(router)
            await heard(ann)
            await ann.acknowledge()
            assert [event["n"] for event in await heard(ann)] == [0, 1, 2, 3]

    run(main)


def test_a_client_that_vanished_is_forgotten_and_learns_it_when_it_returns(log_url: str) -> None:
    async def main() -> None:
        async with connect(log_url, partitions=1) as site:
            ann = await site.subscriber("ann", QueueLimits(idle_seconds=1_000))
            await ann.subscribe("all", "TRUE")
            bob, router = await site.publisher("bob"), router_of(site)
            await bob.publish({"n": 1})
            await drain(router)
            keeping = retention(site, router)
            await tidy(keeping, router)
            router.table.time += 2_000 * 1_000_000
            await keeping.tidy()
            await router.table.catch_up()
            assert router.counters.forgotten == 1
            assert len(router.table.index) == 0
            assert await site.log.read(QUEUES, topic="q-ann") == []
            await bob.publish({"n": 2})
            await drain(router)
            again = await site.subscriber("ann")
            assert [(gap.reason, gap.count) for gap in again._buffer] == [("forgotten", None)]  # type: ignore[union-attr]
            await again.subscribe("all", "TRUE")
            await bob.publish({"n": 3})
            await drain(router)
            assert await heard(again) == [("forgotten", None), {"n": 3}]

    run(main)


def test_a_log_does_not_grow_with_what_everybody_has_read(tmp_path: Path) -> None:
    """28 MiB of dead log after 150 acknowledged events, it used to be."""

    async def main() -> None:
        async with connect(f"sqlite:{tmp_path}/site.db", partitions=1) as site:
            ann = await site.subscriber("ann", QueueLimits(replay_seconds=0))
            await ann.subscribe("all", "TRUE")
            bob, router = await site.publisher("bob"), router_of(site)
            keeping = retention(site, router, least_event_seconds=0)
            for n in range(150):
                await bob.publish({"n": n, "text": "x" * 100_000})
                if n % 10 == 9:
                    await drain(router)
                    assert len(await heard(ann)) == 10
                    await ann.acknowledge()
                    await tidy(keeping, router)
                    router.table.time += 1
                    await tidy(keeping, router)
            assert await site.log.size() < 5 << 20
            assert len(await site.log.read(EVENTS)) < 25
            # The publisher whose last event was removed goes on, and nobody takes that for a loss.
            router.table.time += 1_000_000
            await tidy(keeping, router)
            await bob.publish({"n": 150})
            await drain(router)
            assert [event["n"] for event in await heard(ann)] == [150]

    run(main)


def test_what_is_routed_while_the_log_is_tidied_stays(log_url: str) -> None:
    """Old events that waited for a router: their deliveries come after the queues were read."""

    async def main() -> None:
        async with read_by_ann(log_url, partitions=1) as (site, ann):
            await (await site.publisher("bob")).publish([{"n": n} for n in range(3)])
            router = router_of(site)

            class RoutedMeanwhile:
                """A log whose router gets to work as soon as there was nothing more in the queues."""

                def __getattr__(self, name: str) -> Any:
                    return getattr(site.log, name)

                async def read(self, stream: str, **how: Any) -> Any:
                    found = await site.log.read(stream, **how)
                    if stream == QUEUES and not found and not router.counters.events:
                        assert await drain(router) == 3
                        router.table.time += 200 * 1_000_000
                    return found

            keeping = Retention(RoutedMeanwhile(), site.settings, router.table, router.counters)  # type: ignore[arg-type]
            await keeping.tidy()
            assert await heard(ann) == [{"n": n} for n in range(3)]
            await ann.acknowledge()
            await tidy(keeping, router)
            router.table.time += 2_000_000 * 1_000_000
            await keeping.tidy()
            assert await site.log.read(QUEUES, topic="q-ann") == []
            assert [record.seq for record in await site.log.read(EVENTS, topic="p0")] == [3]

    run(main)


@pytest.mark.parametrize("name", ["ann", "@paris"])
def test_a_queue_without_a_subscriber_is_removed(tmp_path: Path, name: str) -> None:
    async def main() -> None:
        async with connect(f"sqlite:{tmp_path}/site.db", partitions=1) as site:
            ann = await site.subscriber(name)
            await ann.subscribe("all", "TRUE")
            await (await site.publisher("bob")).publish({"n": 1})
            router = router_of(site)
            await drain(router)
            await ann.remove()
            await router.table.catch_up()
            await retention(site, router).tidy()
            assert await site.log.read(QUEUES, topic=keys.queue_topic(name)) == []
            assert len(router.table.index) == 0

    run(main)


def test_a_record_that_was_read_in_part_and_dropped_hides_nothing_of_the_next(log_url: str) -> None:
    async def main() -> None:
        async with connect(log_url, partitions=1) as site:
            ann = await site.subscriber("ann", QueueLimits(most_bytes=0))
            await ann.subscribe("all", "TRUE")
            bob, router = await site.publisher("bob"), router_of(site)
            await bob.publish([{"n": n} for n in range(4)])
            await drain(router)
            first = [await ann.next(10) for _ in range(2)]
            await ann.acknowledge(first[1])  # two of the four events of a record
            await tidy(retention(site, router), router)
            await bob.publish([{"n": n} for n in range(4, 9)])
            await drain(router)
            again = await site.subscriber("ann")
            assert await heard(again) == [("bytes", 4), *({"n": n} for n in range(4, 9))]
            await again.acknowledge()
            assert await heard(await site.subscriber("ann")) == []

    run(main)


def test_positions_of_a_release_that_did_not_name_the_record(log_url: str) -> None:
    async def main() -> None:
        async with read_by_ann(log_url, partitions=1) as (site, _):
            bob, router = await site.publisher("bob"), router_of(site)
            await bob.publish([{"n": n} for n in range(4)])
            await drain(router)
            old = Reading("", 0, 3, {"*": 1})  # without `part_of`: of the next record
            await site.log.append(STATE, [Entry(keys.READ, "ann", old.body())])
            again = await site.subscriber("ann")
            await again.acknowledge()
            assert await heard(again) == [{"n": 3}]
            await again.acknowledge()
            assert await heard(await site.subscriber("ann")) == []

    run(main)
