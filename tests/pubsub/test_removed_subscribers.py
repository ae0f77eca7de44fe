"""A subscriber that is removed, and one that comes back under its name: nothing is lost, and no gap lies.

Faults: only the last record of a key is kept, so a router may never see that a queue was removed and goes on
with its numbers, and the new reader believes that those before them are lost; a delivery that was under way
has a number of the life before; whoever keeps house knows a queue's deliveries before the queue itself, or
still that it is gone, and removes what was delivered to the new one, or writes down numbers of the life
before; removing takes subscriptions and deliveries that came while it was under way; a client that comes back
while it is being forgotten; a client that was forgotten and does not know; a removal that was cut off leaves
subscriptions, which nobody takes back, or which count for the next client of that name.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from pubsub.logs import read_by_ann, run
from pubsub.test_site import drain, heard, router_of
from tamis.pubsub import keys
from tamis.pubsub.log import QUEUES, STATE, Entry
from tamis.pubsub.records import Drop, Drops, QueueLimits, plain_delivery
from tamis.pubsub.router.retention import Retention
from tamis.pubsub.site import Site, connect
from tamis.pubsub.subscriber import RemovedError, Subscriber, remove_subscriber
from tamis.pubsub.subscriber import subscriber as reading


def keeping_of(site: Site, router: Any) -> Retention:
    return Retention(site.log, site.settings, router.table, router.counters, least_event_seconds=0)


async def again(site: Site, limits: QueueLimits | None = None) -> Subscriber:
    ann = await site.subscriber("ann", limits)
    await ann.subscribe("all", "TRUE")
    return ann


def test_a_router_that_did_not_see_the_removal(log_url: str) -> None:
    async def main() -> None:
        async with read_by_ann(log_url, partitions=1) as (site, first):
            ann, bob, router = first, await site.publisher("bob"), router_of(site)
            for life in range(3):
                await bob.publish([{"n": n} for n in range(7)])
                await drain(router)
                assert len(await heard(ann)) == 7, life
                await ann.remove()
                ann = await again(site)
            await bob.publish({"n": 8})
            await drain(router)
            assert await heard(ann) == [{"n": 8}]

    run(main)


def test_a_delivery_that_was_under_way(tmp_path: Path) -> None:
    async def main() -> None:
        async with read_by_ann(f"sqlite:{tmp_path}/site.db", partitions=1) as (site, first):
            ann, bob, router = first, await site.publisher("bob"), router_of(site)
            await bob.publish([{"n": n} for n in range(7)])
            await drain(router)
            await heard(ann)
            await ann.remove()
            ann = await again(site)
            late = Entry("q-ann", "0.4", plain_delivery(8, [7], 10))
            await site.log.append(QUEUES, [late])
            await bob.publish({"n": 8})
            await drain(router)
            assert await heard(ann) == [{"n": 6}, {"n": 8}]

    run(main)


def test_what_is_dropped_of_the_new_queue_is_told(tmp_path: Path) -> None:
    async def main() -> None:
        async with read_by_ann(f"sqlite:{tmp_path}/site.db", partitions=1) as (site, first):
            ann, bob, router = first, await site.publisher("bob"), router_of(site)
            keeping = keeping_of(site, router)
            await bob.publish([{"n": n} for n in range(7)])
            await drain(router)
            await ann.remove()
            ann = await again(site, QueueLimits(most_bytes=0))
            for n in range(3):
                await bob.publish({"n": n})
                await drain(router)
            await keeping.tidy()
            for limits in (QueueLimits(), None):
                ann = await site.subscriber("ann", limits)
            await bob.publish({"n": 9})
            await drain(router)
            assert await heard(ann) == [("bytes", 3), {"n": 9}]

    run(main)


def test_who_keeps_house_has_not_heard_of_the_queue(log_url: str) -> None:
    """Another router delivers to a queue that was just made: it must not count as nobody's."""

    async def main() -> None:
        async with connect(log_url, partitions=1) as site:
            keeper, router = router_of(site), router_of(site)
            keeping = keeping_of(site, keeper)
            await keeper.table.catch_up()
            for _ in range(2):
                ann = await again(site)
                await (await site.publisher("bob")).publish({"n": 1})
                await drain(router)
                await keeping.tidy()
                assert await heard(ann) == [{"n": 1}]
                await ann.remove()
                await keeper.table.catch_up()

    run(main)


def test_numbers_of_the_life_before_are_not_written_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A router begins to count while another one, which keeps house, writes down where the lane had been."""

    async def main() -> None:
        url = f"sqlite:{tmp_path}/site.db"
        async with read_by_ann(url, partitions=1) as (site, first), connect(url) as other:
            bob, router, keeper = await site.publisher("bob"), router_of(site), router_of(other)
            keeping = keeping_of(other, keeper)
            await bob.publish([{"n": n} for n in range(7)])
            await drain(router)
            await keeper.table.catch_up()
            await keeping.tidy()  # it has the deliveries in its lists
            await first.remove()
            await router.table.catch_up()
            ann = await again(site, QueueLimits(replay_seconds=0))
            last, events = other.log.last, [{"n": 1}, {"n": 2}, {"n": 3}]

            async def route_first(stream: str, wanted: Any) -> Any:
                asked = list(wanted)
                if (keys.DROP, "ann") in asked and len(events) == 3:
                    await bob.publish(events.pop(0))
                    await drain(router)
                return await last(stream, asked)

            monkeypatch.setattr(other.log, "last", route_first)
            got: list[Any] = []
            for _ in range(6):
                await keeper.table.catch_up()
                keeper.table.time += 10**9
                await keeping.tidy()
                await router.release()
                router = router_of(site)  # it learns the numbers from the log
                if not await site.log.read(QUEUES, topic="q-ann") and events:
                    await bob.publish(events.pop(0))
                    await drain(router)
                got += await heard(ann)
                await ann.acknowledge()
            assert got == [{"n": 1}, {"n": 2}, {"n": 3}]

    run(main)


def before_the_append_of(
    monkeypatch: pytest.MonkeyPatch, log: Any, topic: str, do: Callable[[], Awaitable[Any]]
) -> None:
    """Let others act once, just before something is removed under a topic."""
    append, done = log.append, []

    async def acting_first(stream: str, entries: Any, fences: Any = None) -> int:
        if not done and any(entry.topic == topic and not entry.body for entry in entries):
            done.append(True)
            await do()
        number: int = await append(stream, entries, fences)
        return number

    monkeypatch.setattr(log, "append", acting_first)


@pytest.mark.parametrize("moment", [keys.QUEUE, keys.SUBSCRIPTION])
def test_a_client_that_comes_back_while_it_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Whatever it subscribes after its queue was made again counts, and what it gets is not removed."""

    async def main() -> None:
        url = f"sqlite:{tmp_path}/site.db"
        async with read_by_ann(url, partitions=1) as (site, _), connect(url) as other:
            router = router_of(other)
            found: list[Subscriber] = []

            async def come_back() -> None:
                found.append(await again(other))
                await (await other.publisher("bob")).publish({"n": 1})
                await drain(router)

            before_the_append_of(monkeypatch, site.log, moment, come_back)
            await remove_subscriber(site.log, "ann")
            if moment == keys.QUEUE:  # it came before: all that is gone, and it learns so
                await heard(found[0])
                with pytest.raises(RemovedError):
                    await found[0].acknowledge()
                return
            assert await heard(found[0]) == [{"n": 1}]
            await (await other.publisher("bob")).publish({"n": 2})
            await drain(router)
            assert await heard(found[0]) == [{"n": 2}]
            assert await found[0].subscriptions() == {"all": "TRUE"}

    run(main)


def test_a_client_that_comes_back_just_before_it_is_forgotten_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        url = f"sqlite:{tmp_path}/site.db"
        async with connect(url, partitions=1) as site, connect(url) as other:
            ann = await again(site, QueueLimits(idle_seconds=1_000))
            router = router_of(site)
            await router.table.catch_up()
            router.table.time += 10**10
            found: list[Subscriber] = []

            async def come_back() -> None:
                found.append(await other.subscriber("ann"))

            before_the_append_of(monkeypatch, site.log, keys.QUEUE, come_back)
            await keeping_of(site, router).tidy()
            assert found
            assert router.counters.forgotten == 0
            await (await site.publisher("bob")).publish({"n": 1})
            await drain(router)
            assert await heard(found[0]) == [{"n": 1}]
            assert await ann.subscriptions() == {"all": "TRUE"}

    run(main)


def test_a_client_that_was_forgotten_while_it_slept_is_told(tmp_path: Path) -> None:
    async def main() -> None:
        async with connect(f"sqlite:{tmp_path}/site.db", partitions=1) as site:
            ann = await again(site, QueueLimits(idle_seconds=1_000))
            router = router_of(site)
            await (await site.publisher("bob")).publish({"n": 1})
            await drain(router)
            assert await heard(ann) == [{"n": 1}]
            router.table.time += 10**10
            await keeping_of(site, router).tidy()
            assert router.counters.forgotten == 1
            await ann.acknowledge()
            assert await heard(ann) == [("forgotten", None)]
            await ann.subscribe("all", "TRUE")
            await (await site.publisher("bob")).publish({"n": 2})
            await drain(router)
            assert await heard(ann) == [{"n": 2}]

    run(main)


async def cut_off_removal(site: Site) -> None:
    """The queue is gone, its subscriptions are not."""
    await site.log.append(STATE, [Entry(topic, "ann", b"") for topic in (keys.QUEUE, keys.READ)])


@pytest.mark.parametrize("is_delivered", [False, True])
def test_a_removal_that_was_cut_off_is_finished(tmp_path: Path, is_delivered: bool) -> None:
    """Whether or not anything is delivered for it."""

    async def main() -> None:
        async with read_by_ann(f"sqlite:{tmp_path}/site.db", partitions=1) as (site, _):
            await cut_off_removal(site)
            router = router_of(site)
            if is_delivered:
                await (await site.publisher("bob")).publish({"n": 1})
            await drain(router)
            assert len(router.table.index) == 1
            await keeping_of(site, router).tidy()
            await router.table.catch_up()
            assert len(router.table.index) == 0
            assert not await site.log.read(QUEUES, topic="q-ann")

    run(main)


def test_a_client_does_not_inherit_what_a_removal_has_left(log_url: str) -> None:
    async def main() -> None:
        async with read_by_ann(log_url, partitions=1) as (site, _):
            await cut_off_removal(site)
            ann, router = await site.subscriber("ann"), router_of(site)
            assert await ann.subscriptions() == {}
            await ann.subscribe("mine", "n = 2")
            await (await site.publisher("bob")).publish([{"n": 1}, {"n": 2}])
            await drain(router)
            await keeping_of(site, router).tidy()
            assert await heard(ann) == [{"n": 2}]
            assert await ann.subscriptions() == {"mine": "n = 2"}

    run(main)


def test_first_of_a_lane() -> None:
    drops = Drops().and_drop(Drop("bytes", "0.4", 8, 9)).and_drop(Drop("age", "0.5", 3, 3))
    assert [drops.first(lane) for lane in ("0.4", "0.5", "0.6")] == [8, 3, 0]


def test_a_client_that_opens_while_it_is_being_forgotten_has_a_queue(tmp_path: Path) -> None:
    """Fault: it goes on from its old position without a queue: all deliveries are dropped in silence."""

    async def main() -> None:
        url = f"sqlite:{tmp_path}/site.db"
        async with read_by_ann(url, partitions=1) as (site, _), connect(url) as elsewhere:
            router, bob = router_of(site), await site.publisher("bob")
            await router.step()
            looked_up = elsewhere.log.last

            async def last(stream: str, wanted: Any) -> Any:
                found = await looked_up(stream, wanted)
                if (keys.READ, "ann") in found and found[keys.QUEUE, "ann"].body:
                    dropped = Entry(keys.DROP, "ann", Drops({"forgotten": 1}).body())
                    await remove_subscriber(site.log, "ann", [dropped], found[keys.READ, "ann"].seq)
                    elsewhere.log.last = looked_up
                return found

            elsewhere.log.last = last
            ann = await again(elsewhere)
            await bob.publish([{"n": 1}, {"n": 2}])
            await drain(router)
            await keeping_of(site, router).tidy()
            assert await heard(ann) == [("forgotten", None), {"n": 1}, {"n": 2}]

    run(main)


def test_a_client_that_waits_hears_that_it_was_removed(log_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Faults: it waits for ever; what it subscribes to is acknowledged and never delivered; a day later, when
    the signs of the removal are gone, it is told of a rollback."""

    async def main() -> None:
        async with read_by_ann(log_url, partitions=1) as (site, ann):
            await remove_subscriber(site.log, "ann")
            with pytest.raises(RemovedError):
                await ann.next(timeout=10)
            with pytest.raises(RemovedError):
                await ann.subscribe("more", "TRUE")
            end = await site.log.end(STATE)
            for topic in (keys.QUEUE, keys.READ, keys.DROP):
                await site.log.trim(STATE, end + 1, topic, "ann")
            await site.log.append(STATE, [Entry(keys.DROP, "other", b"")])
            with pytest.raises(RemovedError):
                await ann.next(timeout=10)
            ann._wrote_at -= ann._idle_seconds
            monkeypatch.setattr(reading, "LOOKS_EVERY_SECONDS", 1e9)
            with pytest.raises(RemovedError):
                await ann.next(timeout=10)
            assert await site.log.last(STATE, [(keys.READ, "ann")]) == {}
            await again(site)

    monkeypatch.setattr(reading, "LOOKS_EVERY_SECONDS", 0)
    run(main)
