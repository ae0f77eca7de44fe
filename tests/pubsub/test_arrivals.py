"""A router takes what a link of its process has just stored from memory instead of reading it again.

Faults: an event that somebody else has stored before it, or in between, is passed over; events come in
another order; events of a time at which the partition was another router's are missing; a log that was
replaced is not noticed; an event is delivered for a subscription that had expired when it was stored; a
cursor has another time than the event, so that the log looks rolled back; memory grows without end; all is
read again nevertheless; a batch ends where the append of a link ends, and has a few events.
"""

import asyncio
import gc
import random
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pubsub.logs import run
from pubsub.several_sites import Sites
from seeds import first_of
from tamis.pubsub import keys
from tamis.pubsub.log import EVENTS, QUEUES, Entry, FencedError, open_log
from tamis.pubsub.records import Cursor, EventHeader, event_body
from tamis.pubsub.router import arrivals as module
from tamis.pubsub.router import event_reader
from tamis.pubsub.router.arrivals import Arrival, Arrivals
from tamis.pubsub.router.event_reader import EventReader
from tamis.pubsub.router.router import Router


def arrived(first: int, topics: list[str]) -> dict[str, list[Arrival]]:
    """Events in the topics of their numbers, from `first` on, as a link knows them."""
    found: dict[str, list[Arrival]] = {}
    for number, topic in enumerate(topics, first):
        if topic != keys.LINK:
            body = event_body(EventHeader("bob", "rome").body(), b'{"n":%d}' % number)
            arrival = Arrival(number, "link-rome", body, EventHeader("bob", "rome"), b'{"n":%d}' % number)
            found.setdefault(topic, []).append(arrival)
    return found


@pytest.mark.parametrize("seed", first_of(range(20), 6))
def test_it_is_what_the_log_has(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(event_reader, "WORTH_A_READ", (1, 3, 10)[seed % 3])

    async def main() -> None:
        log, arrivals = await open_log(f"sqlite:{tmp_path}/site.db"), Arrivals("bonn")
        reader, cursors = EventReader(log, arrivals), {0: Cursor("r", 0), 1: Cursor("r", 0)}
        from_memory = 0

        async def route(partition: int) -> int:
            cursor, most = cursors[partition], chance.choice([1, 3, 10, 1_000])
            records, known = await reader.next(partition, cursor, most)
            stored = await log.read(EVENTS, topic=f"p{partition}", after=cursor.position, most=len(records))
            if records:
                assert [r[:3] + r[4:] for r in records] == [r[:3] + r[4:] for r in stored]
                assert (records[0], records[-1]) == (stored[0], stored[-1])
                assert all(r.time <= s.time for r, s in zip(records, stored, strict=True))
                for number, arrival in known.items():
                    assert arrival.body == event_body(arrival.header.body(), arrival.event)
                    assert arrival.seq == number
                cursors[partition] = Cursor("r", records[-1].seq, time=records[-1].time)
            arrivals.forget({f"p{number}": cursor.position for number, cursor in cursors.items()})
            return len(known)

        for _ in range(150):
            arrivals.topics = frozenset(f"p{n}" for n in range(2) if chance.random() < 0.8)
            puts: list[tuple[int, int, dict[str, list[Arrival]]]] = []
            for _ in range(chance.choice([1, 1, 4])):
                topics = [chance.choice(["p0", "p1"]) for _ in range(chance.choice([0, 1, 5, 30]))]
                topics.append(keys.LINK)
                entries = [Entry(topic, "s.carl.a1", event_body(b"{}", b'{"n":0}')) for topic in topics]
                by_link = chance.random() < 0.7
                first = await log.end(EVENTS) + 1
                found = arrived(first, topics)
                if by_link:
                    bodies = {arrival.seq: arrival for several in found.values() for arrival in several}
                    entries = [
                        Entry(topic, "link-rome", bodies[number].body if number in bodies else b"{}")
                        for number, topic in enumerate(topics, first)
                    ]
                last = await log.append(EVENTS, entries)
                if by_link and chance.random() < 0.9:  # or it died, and another process does not know
                    puts.append((first, last, found))
            if chance.random() < 0.2:  # two links, whose answers come in another order
                chance.shuffle(puts)
            for put in puts:
                arrivals.put(*put)
            from_memory += await route(chance.randrange(2))
        for partition in (0, 1):
            before = -1
            while cursors[partition].position != before:
                before = cursors[partition].position
                from_memory += await route(partition)
            assert await log.read(EVENTS, topic=f"p{partition}", after=before) == []
        assert from_memory > 300
        await log.close()

    asyncio.run(main())


def test_another_log_is_noticed(tmp_path: Path) -> None:
    async def main() -> None:
        log, arrivals = await open_log(f"sqlite:{tmp_path}/site.db"), Arrivals("bonn")
        arrivals.topics = frozenset(["p0"])
        other = [Entry("p0", "link-rome", b"{}\n{}")] * 5
        await log.append(EVENTS, other)
        arrivals.put(1, 5, arrived(1, ["p0"] * 5))
        records, known = await EventReader(log, arrivals).next(0, Cursor("r", 0), 100)
        assert [record.body for record in records] == [b"{}\n{}"] * 5
        assert known == {}
        await log.close()

    run(main)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 10_000)
    monkeypatch.setattr(module, "MOST_JOINED", 20)
    arrivals, first = Arrivals("bonn"), 1
    arrivals.topics = frozenset(["p0"])
    for _ in range(100):
        arrivals.put(first, first + 9, arrived(first, ["p0"] * 10))
        first += 10
    assert arrivals._size <= 10_000
    assert arrivals._size == sum(run.size for run in arrivals._runs) > 5_000
    assert arrivals.behind("p0", 0)[0].first > 500


@pytest.mark.parametrize(
    ("at_once", "size", "others"),
    [
        *((1, 0, 0), (50, 0, 0), (1, 3_000, 0), (1, 0, 1), (50, 0, 1), (20, 100, 1), (20, 100, 2)),
        *((20, 100, 30), (50, 0, None), (20, 100, None)),
    ],
)
def test_what_is_counted_is_what_is_held(
    monkeypatch: pytest.MonkeyPatch, at_once: int, size: int, others: int | None
) -> None:
    """Small events, and those on their way to other sites, take more memory than their bytes.

    None: they go no further, and each has a header of its own, since publishers are too many to remember.
    """
    monkeypatch.setattr(module, "MOST_BYTES", 1_000_000)
    arrivals = Arrivals("bonn")
    arrivals.topics = frozenset(["p0"])
    shared = EventHeader("bob", "rome", targets=(("bonn", 0),))

    def arrival(number: int) -> Arrival:
        event = b'{"n":%d,"t":"%s"}' % (number, b"x" * size)
        header = replace(shared) if others is None else shared
        if others:
            names = (f"a site with quite a long name {n}" for n in range(others))
            header = EventHeader("bob", "rome", targets=tuple((name, number) for name in names))
        return Arrival(number, "link-rome", event_body(header.body(), event), header, event)

    gc.collect()  # what earlier tests left in free lists would be taken without being counted
    tracemalloc.start()
    try:
        first = 1_000
        while not arrivals._size or arrivals._runs[0].first == 1_000:
            arrivals.put(first, first + at_once, {"p0": [arrival(first + n) for n in range(at_once)]})
            first += at_once + 10
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert arrivals._size < 1.6 * held
    assert held < 1.05 * module.MOST_BYTES


def counting(log: Any) -> list[int]:
    """How many records of events are read of a log from now on."""
    count, read = [0], log.read

    async def counted(stream: str, **how: Any) -> Any:
        found = await read(stream, **how)
        count[0] += len(found) if stream == EVENTS else 0
        return found

    log.read = counted
    return count


def test_it_is_not_read_again(tmp_path: Path) -> None:
    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            ann = await sites.sites["b"].subscriber("ann")
            await ann.subscribe("all", "TRUE")
            await sites.settle()
            count = counting(sites.sites["b"].log)
            bob = await sites.sites["a"].publisher("bob")
            for start in range(0, 600, 100):
                await bob.publish([{"n": start + n} for n in range(100)])
                await sites.step()
            await sites.settle()
            assert [event["n"] for event in await sites.heard(ann)] == list(range(600))
            assert count[0] < 50

    run(main)


@pytest.mark.parametrize("at_once", [1, 10, 150])
def test_batches_stay_large_where_local_publishers_write_between_links(tmp_path: Path, at_once: int) -> None:
    """A router that is behind takes as many events at once as it may, whoever has stored them."""

    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            site, rounds = sites.sites["b"], 10
            ann = await site.subscriber("ann")
            await ann.subscribe("all", "TRUE")
            await sites.settle()
            far, near = await sites.sites["a"].publisher("bob"), await site.publisher("bob")
            for number in range(rounds):
                await far.publish([{"n": number * at_once + n} for n in range(at_once)])
                while await sites.routers["a"].step():
                    pass
                assert await sites.networks["b"].step() == at_once
                await near.publish({"m": number})
            router, events, batches = sites.routers["b"], rounds * (at_once + 1), 0
            router._batch = router._most = 10_000
            while routed := await router.step():
                batches += 1
                assert batches > 1 or routed >= events - 1  # one may follow the last run
            assert batches <= 2
            heard = await sites.heard(ann)
            assert [event["n"] for event in heard if "n" in event] == list(range(rounds * at_once))
            assert [event["m"] for event in heard if "m" in event] == list(range(rounds))
            assert [place for place, event in enumerate(heard) if "m" in event] == [
                (at_once + 1) * (number + 1) - 1 for number in range(rounds)
            ]

    run(main)


def test_an_event_that_came_after_a_subscription_had_expired(tmp_path: Path) -> None:
    """Those before it came in time; all of them are routed at once."""

    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            ann = await sites.sites["b"].subscriber("ann")
            await ann.subscribe("all", "TRUE")
            await sites.settle()
            bob, carl = [await sites.sites["a"].publisher(name) for name in ("bob", "bob")]
            b, network = sites.sites["b"].log, sites.networks["b"]
            for number, publisher in enumerate((bob, carl)):
                await publisher.publish([{"n": 3 * number + n} for n in range(3)])
                await sites.routers["a"].step()
                assert await network.step() == 3
            records = [r for topic in ("p0", "p1") for r in await b.read(EVENTS, topic=topic)]
            assert len(records) == 6
            times = sorted({record.time for record in records})
            assert len(times) == 2
            await ann.subscribe("all", "TRUE", expires=times[1])
            await sites.routers["b"].step()
            assert [event["n"] for event in await sites.heard(ann)] == [0, 1, 2]

    run(main)


def test_a_replica_that_lags_behind_delays_nothing_for_long(tmp_path: Path) -> None:
    """Fault: a partition in which nothing was found is not looked at until something else is published."""

    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            site, now = sites.sites["a"], [0.0]
            ann = await site.subscriber("ann")
            await ann.subscribe("all", "TRUE")
            router = Router(site.log, site.settings, clock=lambda: now[0])
            await router.step()
            await (await site.publisher("bob")).publish({"n": 1})
            read = site.log.read

            async def lagging(stream: str, **how: Any) -> Any:
                return [] if stream == EVENTS else await read(stream, **how)

            site.log.read = lagging  # type: ignore[method-assign]
            assert await router.step() == 0
            site.log.read = read  # type: ignore[method-assign]
            for _ in range(5):
                now[0] += 1
                await router.step()
            assert await sites.heard(ann) == [{"n": 1}]

    run(main)


def test_the_cursor_of_a_part_of_a_batch_is_no_rollback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch is written in parts, each with a cursor; the partition is lost after the first ones."""
    monkeypatch.setattr("tamis.pubsub.router.router.MOST_DELIVERIES", 8)

    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            ann = await sites.sites["b"].subscriber("ann")
            await ann.subscribe("even", "n % 2 = 0", priority=1)
            await ann.subscribe("odd", "n % 2 = 1", priority=2)
            await sites.settle()
            bob = await sites.sites["a"].publisher("bob")
            b, network = sites.sites["b"].log, sites.networks["b"]
            for number in range(4):
                await bob.publish([{"n": 12 * number + n} for n in range(12)])
                await sites.routers["a"].step()
                assert await network.step() == 12
            append, written = b.append, 0

            async def fenced_once(stream: str, entries: Any, *arguments: Any) -> Any:
                nonlocal written
                written += stream == QUEUES and any(entry.topic == "q-ann" for entry in entries)
                if written == 16:  # behind the first events of the link, which have the time of the first
                    written += 1
                    raise FencedError("connected again")
                return await append(stream, entries, *arguments)

            monkeypatch.setattr(b, "append", fenced_once)
            await sites.settle()
            assert written > 16
            assert sites.routers["b"].counters.leases_lost == 1
            assert sites.routers["b"].counters.rollbacks == 0
            heard = [event["n"] for event in await sites.heard(ann)]
            assert sorted(heard) == list(range(48))

    run(main)


def test_a_subscription_expires_while_a_replica_lags_behind(tmp_path: Path) -> None:
    """The times of events are asked for by number, which finds them also where a read finds none yet."""

    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            ann = await sites.sites["b"].subscriber("ann")
            await ann.subscribe("all", "TRUE")
            await sites.settle()
            bob = await sites.sites["a"].publisher("bob")
            b, network = sites.sites["b"].log, sites.networks["b"]
            for number in range(2):
                await bob.publish([{"n": 3 * number + n} for n in range(3)])
                await sites.routers["a"].step()
                assert await network.step() == 3
            times = sorted({r.time for topic in ("p0", "p1") for r in await b.read(EVENTS, topic=topic)})
            await ann.subscribe("all", "TRUE", expires=times[1])
            read = b.read

            async def lagging(stream: str, **how: Any) -> Any:
                return [] if stream == EVENTS else await read(stream, **how)

            b.read = lagging  # type: ignore[method-assign]
            await sites.routers["b"].step()
            b.read = read  # type: ignore[method-assign]
            await sites.settle()
            assert [event["n"] for event in await sites.heard(ann)] == [0, 1, 2]

    run(main)
