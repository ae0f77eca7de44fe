"""What is missing between sites is told, once, as what it is, to everybody whom it may concern.

Faults: a neighbour drops what waits for a site that is away, and sites behind it never learn; the site does
not know that it was away, or finds its queue busy, and never looks; a gap is dropped in its turn and counts
as one event, or becomes a gap of another kind; what an append was refused with counts twice; a log that was
rolled back uses numbers again, or a router of the release before forgets which were used.
"""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from pubsub.logs import run
from pubsub.several_sites import Sites
from tamis.pubsub import keys
from tamis.pubsub.log import EVENTS, QUEUES, STATE, Entry, FencedError, LogFullError
from tamis.pubsub.publisher import Publisher
from tamis.pubsub.records import Drops, QueueLimits
from tamis.pubsub.router.retention import Retention
from tamis.pubsub.sites import link
from tamis.pubsub.subscriber import Subscriber

LINE = [("a", "b"), ("b", "c")]


async def publishing(sites: Sites, *readers: Subscriber) -> Publisher:
    """A publisher at a whose first event everybody has heard."""
    await sites.settle()
    bob = await sites.sites["a"].publisher("bob")
    await bob.publish({"n": 0})
    await sites.settle()
    for reader in readers:
        assert await sites.heard(reader) == [{"n": 0}]
    return bob


@pytest.mark.parametrize("first_time", [False, True])
def test_what_a_neighbour_did_not_keep_for_long_enough_is_a_gap(tmp_path: Path, first_time: bool) -> None:
    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")], link_bytes=100) as sites:
            ann = await sites.sites["b"].subscriber("ann")
            await ann.subscribe("all", "TRUE")
            await sites.settle()
            bob = await sites.sites["a"].publisher("bob")
            if not first_time:
                await bob.publish({"n": 0})
                await sites.settle()
            await sites.stop("b")
            for number in range(1, 40):
                await bob.publish({"n": number})
                await sites.step()
            await sites.keeping("a").tidy()
            await sites.start("b")
            await sites.settle()
            again = await sites.sites["b"].subscriber("ann")
            heard = await sites.heard(again)
            events = [item["n"] for item in heard if isinstance(item, dict)]
            assert ("link", None) in heard, "what is missing is visible"
            assert heard.index(("link", None)) == (0 if first_time else 1), "in its place"
            assert events == ([] if first_time else [0]) + list(
                range(40 - len(events) + (not first_time), 40)
            )
            assert sites.routers["b"].counters.missing == 40 - len(events) - first_time
            # Told once.
            await bob.publish({"n": 40})
            await sites.settle()
            assert await sites.heard(again) == [{"n": 40}]

    run(main)


@pytest.mark.parametrize("is_cut", [False, True])
def test_what_was_dropped_last_is_a_gap_before_anything_follows(tmp_path: Path, is_cut: bool) -> None:
    """It was told with the next event of the same partition, which may never come."""

    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")], link_bytes=0) as sites:
            ann = await sites.sites["b"].subscriber("ann")
            await ann.subscribe("all", "TRUE")
            bob = await publishing(sites, ann)
            if is_cut:
                sites.cut ^= {frozenset("ab")}
                await sites.step()
            else:
                await sites.stop("b")
            await bob.publish([{"n": number} for number in range(1, 4)])
            for _ in range(3):
                await sites.step()
            await sites.keeping("a").tidy()
            if is_cut:
                sites.cut.clear()
            else:
                await sites.start("b")
            await sites.settle()
            again = await sites.sites["b"].subscriber("ann")
            assert await sites.heard(again) == [{"n": 0}, ("link", None)]
            assert sites.routers["b"].counters.missing == 3
            await bob.publish({"n": 4})
            await sites.settle()
            await sites.stop("b")
            await sites.start("b")
            await sites.settle()
            again = await sites.sites["b"].subscriber("ann")
            assert [item for item in await sites.heard(again) if item != {"n": 0}] == [
                ("link", None),
                {"n": 4},
            ]

    run(main)


async def two_publishers(sites: Sites, ann: Subscriber) -> list[Publisher]:
    """Publishers at a, one of each partition, whose first events ann has heard."""
    names = {keys.partition_of(f"bob-{number}", 2): f"bob-{number}" for number in range(20)}
    publishers = [await sites.sites["a"].publisher(names[partition]) for partition in (0, 1)]
    await sites.settle()
    for publisher in publishers:
        await publisher.publish({"n": 0})
    await sites.settle()
    assert await sites.heard(ann) == [{"n": 0}] * 2
    return publishers


def test_what_was_dropped_is_a_gap_at_a_site_that_does_not_know_that_it_was_away(tmp_path: Path) -> None:
    """Its own log was down, or its process suspended: no link had an error."""

    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")], link_bytes=0) as sites:
            ann = await sites.sites["b"].subscriber("ann")
            await ann.subscribe("all", "TRUE")
            bob = await publishing(sites, ann)
            sites.dead.add("b")  # and its links are as they were
            await bob.publish([{"n": number} for number in range(1, 4)])
            for _ in range(3):
                await sites.step()
            await sites.keeping("a").tidy()
            sites.dead.discard("b")
            await sites.settle()
            assert await sites.heard(ann) == [("link", None)]
            assert sites.routers["b"].counters.missing == 3
            await bob.publish({"n": 4})
            await sites.settle()
            assert await sites.heard(ann) == [{"n": 4}], "told once"

    run(main)


def test_what_was_dropped_of_a_partition_is_a_gap_while_another_one_is_busy(tmp_path: Path) -> None:
    """The queue was never found empty, and so nobody looked."""

    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")], link_bytes=0) as sites:
            ann = await sites.sites["b"].subscriber("ann")
            await ann.subscribe("all", "TRUE")
            quiet, busy = await two_publishers(sites, ann)
            sites.cut.add(frozenset("ab"))
            await quiet.publish([{"n": number} for number in range(1, 4)])
            for _ in range(3):
                await sites.step()
            await sites.keeping("a").tidy()
            sites.cut.clear()
            for number in range(10, 20):
                await busy.publish({"n": number})
                await sites.step()
            heard = await sites.heard(ann)
            assert heard.count(("link", None)) == 1
            assert len(heard) == 10

    run(main)


def test_what_was_dropped_is_a_gap_if_another_partition_goes_on_while_the_link_looks(tmp_path: Path) -> None:
    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")], link_bytes=0) as sites:
            ann = await sites.sites["b"].subscriber("ann")
            await ann.subscribe("all", "TRUE")
            quiet, busy = await two_publishers(sites, ann)
            sites.cut.add(frozenset("ab"))
            await quiet.publish([{"n": number} for number in range(1, 4)])
            for _ in range(3):
                await sites.step()
            await sites.keeping("a").tidy()
            sites.cut.clear()
            there: Any = sites.networks["b"].links["a"]._there
            real, looked = there.read, list[str]()

            async def read(stream: str, **how: Any) -> Any:
                if stream == QUEUES and how.get("to_end") and not looked:
                    looked.append(stream)
                    await busy.publish({"n": 9})
                    await sites.routers["a"].step()
                return await real(stream, **how)

            there.read = read
            await sites.settle()
            assert looked
            assert sorted(await sites.heard(ann), key=repr) == [("link", None), {"n": 9}]
            assert sites.routers["b"].counters.missing == 3

    run(main)


def restore_queues(path: Path) -> None:
    """Put the stream of queues of a copy in place, and no other: NATS backs them up one by one."""
    with sqlite3.connect(path) as database:
        database.execute("ATTACH ? AS copy", (str(path.with_suffix(".backup")),))
        database.execute("DELETE FROM main.queues")
        database.execute("INSERT INTO main.queues SELECT * FROM copy.queues")
        database.execute(
            "UPDATE main.sqlite_sequence SET seq = (SELECT seq FROM copy.sqlite_sequence "
            "WHERE name = 'queues') WHERE name = 'queues'"
        )
    database.close()


@pytest.mark.parametrize("restarts", [False, True])
def test_numbers_of_a_queue_that_was_restored_without_the_state_are_no_drops(
    tmp_path: Path, restarts: bool
) -> None:
    """The state says how far the lane had come before. What is taken of the copy is below that."""

    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            ann = await sites.sites["b"].subscriber("ann")
            await ann.subscribe("all", "TRUE")
            bob = await publishing(sites, ann)
            sites.back_up("a")
            for number in range(1, 10):
                await bob.publish({"n": number})
                await sites.step()
            await sites.settle()
            router = sites.routers["a"]
            keeping = Retention(
                router.log, router.settings, router.table, router.counters, least_event_seconds=0
            )
            await keeping.tidy()
            assert len(await sites.heard(ann)) == 9
            await sites.stop("a")
            restore_queues(sites.path("a"))
            await sites.start("a")
            bob = await sites.sites["a"].publisher("bob")
            heard = []
            for number in range(20, 25):
                await bob.publish({"n": number})
                await sites.settle()
                heard += await sites.heard(ann)
                if restarts:
                    await sites.stop("b")
                    await sites.start("b")
                    ann = await sites.sites["b"].subscriber("ann")  # which hears all again
                    heard = []
            heard += await sites.heard(ann)
            events = [item["n"] for item in heard if isinstance(item, dict)]
            assert [number for number in events if number >= 20] == [*range(20, 25)]
            assert heard.count(("rollback", None)) == 1
            assert ("link", None) not in heard

    run(main)


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("how", ["dropped", "restored", "kept"])
def test_a_record_that_was_taken_in_part_hides_nothing_of_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, restarts: bool
) -> None:
    """Three of its events are taken. Then it is dropped, or another one takes its place after a rollback."""
    monkeypatch.setattr(link, "MOST_EVENTS", 3)

    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")], link_bytes=200) as sites:
            ann = await sites.sites["b"].subscriber("ann")
            await ann.subscribe("all", "TRUE")
            bob = await publishing(sites, ann)
            sites.back_up("a")
            taking = sites.networks["b"].links["a"]
            store = taking._store

            async def store_and_cut(*arguments: Any, **more: Any) -> int:
                sites.cut.add(frozenset("ab"))
                return await store(*arguments, **more)

            monkeypatch.setattr(taking, "_store", store_and_cut)
            await bob.publish([{"n": n} for n in range(1, 9)])
            await sites.step()
            await sites.step()
            assert await sites.heard(ann) == [{"n": n} for n in (1, 2, 3)]
            monkeypatch.setattr(taking, "_store", store)
            if restarts:
                await sites.stop("b")
            if how == "restored":
                await sites.restore("a")
                bob = await sites.sites["a"].publisher("bob")
            await bob.publish([{"n": n} for n in range(10, 18)])
            for _ in range(2):
                await sites.routers["a"].step()
            if how == "dropped":
                await sites.keeping("a").tidy()
                await bob.publish([{"n": n} for n in (20, 21)])
            if restarts:
                await sites.start("b")
                ann = await sites.sites["b"].subscriber("ann")
            sites.cut.clear()
            await sites.settle(30)
            heard = await sites.heard(ann)
            new = [item["n"] for item in heard if isinstance(item, dict) and item["n"] > 9]
            if how == "dropped":
                missing = sites.routers["b"].counters.missing
                assert ("link", None) in heard
                assert len(new) + missing == 5 + 8 + 2, "those of the first three are not missing"
                assert new[-2:] == [20, 21]
            else:
                assert new == list(range(10, 18))
                assert (("rollback", None) in heard) == (how == "restored")

    run(main)


async def drop_and_return(sites: Sites, name: str, *, rounds: int) -> None:
    """Let a site drop what is beyond the limits of its links, and then heal them."""
    keeping = sites.keeping(name)
    for _ in range(rounds):
        await keeping.tidy()
        await sites.step()
    sites.cut.clear()
    await sites.settle(30)


@pytest.mark.parametrize("cuts", [("ab",), ("bc", "ab")], ids=["at its origin", "on its way"])
@pytest.mark.thorough
def test_what_was_dropped_on_its_way_is_a_gap_at_sites_further_behind(
    tmp_path: Path, cuts: tuple[str, ...]
) -> None:
    """Whoever drops an event knows where it was going; the site in between does not."""

    async def main() -> None:
        async with Sites(tmp_path, [*LINE, ("c", "d")], link_bytes=150) as sites:
            readers = {name: await sites.sites[name].subscriber("ann") for name in "bcd"}
            await readers["c"].subscribe("all", "TRUE")
            await readers["b"].subscribe("few", "n = 0")
            await readers["d"].subscribe("few", "n = 0")
            bob = await publishing(sites, *readers.values())
            number = 0
            for edge in cuts:
                sites.cut.add(frozenset(edge))
                for _ in range(25):
                    number += 1
                    await bob.publish({"n": number})
                    await sites.step()
                # What says that something is missing is itself within limits, or told again.
                await drop_and_return(sites, edge[0], rounds=3)
                heard = await sites.heard(readers["c"])
                events = [item["n"] for item in heard if isinstance(item, dict)]
                assert ("link", None) in heard, "what is missing is visible"
                assert len(events) < 25
                assert events == sorted(events)
                assert sites.routers["c"].counters.missing > 0
                assert await sites.heard(readers["d"]) == [], "nothing was on its way there"
            await bob.publish({"n": 0})
            await sites.settle()
            for name in "cd":
                assert (await sites.heard(readers[name]))[-1] == {"n": 0}

    run(main)


@pytest.mark.parametrize("rounds", [1, 40])
@pytest.mark.thorough
def test_a_gap_that_is_dropped_in_its_turn_still_counts_all_that_it_stood_for(
    tmp_path: Path, rounds: int
) -> None:
    """200 events lost, 51 told: a gap counted as one event when the next limit hit it."""

    async def main() -> None:
        async with Sites(tmp_path, [*LINE, ("c", "d")], link_bytes=20) as sites:
            readers = {name: await sites.sites[name].subscriber("ann") for name in "cd"}
            await readers["c"].subscribe("all", "TRUE")
            await readers["d"].subscribe("few", "n < 30")
            bob = await publishing(sites, *readers.values())
            keeping = sites.keeping("a")
            sites.cut.add(frozenset("ab"))
            for start in range(1, 201, 200 // rounds):
                await bob.publish([{"n": n} for n in range(start, min(201, start + 200 // rounds))])
                await sites.step()
                await keeping.tidy()
            sites.cut.clear()
            await sites.settle(30)
            missing = {name: sites.routers[name].counters.missing for name in "bcd"}
            events = {}
            for name, reader in readers.items():
                heard = await sites.heard(reader)
                assert ("link", None) in heard
                events[name] = sum(isinstance(item, dict) for item in heard)
            assert missing["c"] + events["c"] == 200
            assert missing["d"] + events["d"] == 29
            assert missing["b"] == missing["c"], "all of it was to pass the site in between"

    run(main)


def test_a_gap_that_is_dropped_of_a_subscribers_queue_is_still_a_gap_of_its_kind(tmp_path: Path) -> None:
    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")], link_bytes=60) as sites:
            ann = await sites.sites["b"].subscriber("ann", QueueLimits(most_bytes=0))
            await ann.subscribe("all", "TRUE", priority=9)  # as gaps have: one lane
            bob = await publishing(sites)
            sites.cut.add(frozenset("ab"))
            for n in range(1, 40):
                await bob.publish({"n": n})
                await sites.step()
            await drop_and_return(sites, "a", rounds=1)
            await sites.keeping("b").tidy()
            await (await sites.sites["b"].publisher("bob")).publish({"n": 40})
            await sites.settle()
            heard = await sites.heard(ann)
            assert [reason for reason, _ in heard[:-1]].count("link") == 1
            assert ("link", None) in heard
            assert heard[-1] == {"n": 40}

    run(main)


def test_gaps_that_stood_for_many_are_counted_whatever_comes_after_them() -> None:
    """The oldest was forgotten if 200 others came in other lanes."""
    drops = Drops().and_gap("1.0", 1, 50)
    for number in range(300):
        drops = drops.and_gap("0.0", 1 + number, 3)
    assert len(drops.stood) <= 200
    assert drops.beyond("1.0", 1, 2) == 49
    assert drops.beyond("0.0", 1, 400) == 600


def test_gaps_that_a_site_is_told_of_are_numbered_without_holes(tmp_path: Path) -> None:
    """What was seen is kept as ranges: a hole for each gap would stay for ever."""

    async def main() -> None:
        async with Sites(tmp_path, LINE, link_bytes=400) as sites:
            ann = await sites.sites["c"].subscriber("ann")
            await ann.subscribe("all", "TRUE")
            bob = await publishing(sites)
            for number in range(4):
                sites.cut.add(frozenset("ab"))
                for _ in range(60):
                    await bob.publish({"n": number})
                await sites.step()
                await drop_and_return(sites, "a", rounds=2)
            seen = await sites.routers["c"].log.read(EVENTS, topic=keys.SEEN, most=10_000)
            ranges = {record.detail: json.loads(record.body)["r"] for record in seen}
            [gaps] = [found for origin, found in ranges.items() if origin.startswith("a.b=")]
            assert gaps == [[1, 4]]

    run(main)


@pytest.mark.thorough
def test_a_router_of_the_release_before_does_not_make_gaps_repeat(tmp_path: Path) -> None:
    """It writes what was dropped without what it does not know: the next gap had the number of the first."""

    async def main() -> None:
        async with Sites(tmp_path, [*LINE, ("c", "d")], link_bytes=100) as sites:
            readers = {name: await sites.sites[name].subscriber("ann") for name in "cd"}
            for reader in readers.values():
                await reader.subscribe("all", "TRUE")
            bob = await publishing(sites, *readers.values())
            log, key, events = sites.sites["a"].log, (keys.DROP, "=40b"), dict.fromkeys("cd", 0)
            for _ in range(3):
                sites.cut.add(frozenset("ab"))
                await bob.publish([{"n": number} for number in range(30)])
                await bob.publish({"n": 40})
                await sites.step()
                await drop_and_return(sites, "a", rounds=2)
                for name, reader in readers.items():
                    heard = await sites.heard(reader)
                    assert heard.count(("link", None)) == 1
                    events[name] += len(heard) - 1
                found = json.loads((await log.last(STATE, [key]))[key].body)
                as_before = {name: found[name] for name in ("v", "totals", "recent", "next")}
                await log.append(STATE, [Entry(*key, json.dumps(as_before).encode())])
            for name in "cd":
                assert sites.routers[name].counters.missing + events[name] == 3 * 31

    run(main)


def test_a_full_log_drops_nevertheless_and_sites_behind_are_told_when_there_is_room(tmp_path: Path) -> None:
    """What frees room must not need any."""

    async def main() -> None:
        async with Sites(tmp_path, LINE, link_bytes=100) as sites:
            ann = await sites.sites["c"].subscriber("ann")
            await ann.subscribe("all", "TRUE")
            await sites.settle()
            bob = await sites.sites["a"].publisher("bob")
            sites.cut.add(frozenset("ab"))
            await bob.publish([{"n": number} for number in range(40)])
            await bob.publish({"n": 40})
            await sites.step()
            router = sites.routers["a"]

            class Full:
                """Takes no event."""

                is_full = True

                def __getattr__(self, name: str) -> Any:
                    return getattr(router.log, name)

                async def append(self, stream: str, *more: Any) -> int:
                    if stream == EVENTS and self.is_full:
                        raise LogFullError("no room")
                    return await router.log.append(stream, *more)

            log: Any = Full()
            keeping = sites.keeping("a", log)
            before = router.counters.dropped
            await keeping.tidy()
            assert router.counters.dropped > before
            await sites.step()
            log.is_full = False
            for _ in range(3):
                await keeping.tidy()
                await sites.step()
            sites.cut.clear()
            await sites.settle(30)
            heard = await sites.heard(ann)
            assert ("link", None) in heard
            assert heard.count(("link", None)) == 1, "told once"

    run(main)


def test_a_neighbour_that_was_rolled_back_is_noticed_and_heard_again(tmp_path: Path) -> None:
    """The numbers of the lost events are used again; they must not count as repeats."""

    async def main() -> None:
        async with Sites(tmp_path, LINE) as sites:
            ann = await sites.sites["b"].subscriber("ann")
            await ann.subscribe("all", "TRUE")
            carl = await sites.sites["c"].subscriber("carl")
            await carl.subscribe("few", "n = 104")
            bob = await publishing(sites)
            sites.back_up("a")
            await bob.publish([{"n": n} for n in range(1, 4)])
            await sites.settle()
            assert [e["n"] for e in await sites.heard(ann)] == [0, 1, 2, 3]
            await sites.restore("a")
            bob = await sites.sites["a"].publisher("bob")
            await bob.publish([{"n": n} for n in range(101, 106)])
            await sites.settle(30)
            assert await sites.heard(ann) == [("rollback", None), *({"n": n} for n in range(101, 106))]
            assert await sites.heard(carl) == [("rollback", None), {"n": 104}], "behind it, too"
            assert sites.routers["b"].counters.rollbacks > 0
            await sites.stop("b")
            await sites.start("b")
            await bob.publish({"n": 106})
            await sites.settle()
            again = await sites.sites["b"].subscriber("ann")
            assert [item for item in await sites.heard(again) if not isinstance(item, dict)] == [
                ("rollback", None)
            ], "told once"

    run(main)


async def roll_back(sites: Sites, bob: Publisher) -> None:
    """Let site a lose what its neighbours have taken already."""
    sites.back_up("a")
    await bob.publish([{"n": n} for n in range(1, 4)])
    await sites.settle()
    await sites.restore("a")


def test_a_dropped_gap_of_a_rollback_stays_one_in_a_subscribers_queue(tmp_path: Path) -> None:
    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            ann = await sites.sites["b"].subscriber("ann", QueueLimits(most_bytes=0))
            await ann.subscribe("all", "TRUE", priority=9)  # as gaps have: one lane
            bob = await publishing(sites, ann)
            await roll_back(sites, bob)
            await sites.settle(30)
            await sites.keeping("b").tidy()
            await (await sites.sites["b"].publisher("bob")).publish({"n": 40})
            await sites.settle()
            heard = await sites.heard(ann)
            assert ("rollback", None) in heard
            assert not any(item[0] == "link" for item in heard if isinstance(item, tuple))
            assert heard[-1] == {"n": 40}

    run(main)


def test_a_dropped_gap_of_a_rollback_stays_one_at_sites_behind(tmp_path: Path) -> None:
    """Site c finds it missing in its queue; d and e, further behind, are told."""

    async def main() -> None:
        async with Sites(tmp_path, [*LINE, ("c", "d"), ("d", "e")], link_bytes=1) as sites:
            readers = {name: await sites.sites[name].subscriber("ann") for name in "cde"}
            for reader in readers.values():
                await reader.subscribe("all", "TRUE")
            bob = await publishing(sites, *readers.values())
            sites.cut.add(frozenset("bc"))
            await roll_back(sites, bob)
            for _ in range(20):
                await sites.step()
            assert sites.routers["b"].counters.rollbacks == 1
            missing = {name: sites.routers[name].counters.missing for name in "cde"}
            await drop_and_return(sites, "b", rounds=3)
            await (await sites.sites["b"].publisher("bob")).publish({"n": 40})
            await sites.settle(30)
            for name, reader in readers.items():
                heard = await sites.heard(reader)
                assert ("rollback", None) in heard, name
                assert heard.index(("rollback", None)) < heard.index({"n": 40})
                # The three events that were on their way went, too.
                assert sites.routers[name].counters.missing == missing[name] + 3
                assert ("link", None) in heard

    run(main)


class RefusedOnce:
    """A log that refuses the next append of events, once it is told to."""

    def __init__(self, log: Any) -> None:
        self._log = log
        self.refuses = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def append(self, stream: str, *more: Any) -> int:
        if stream == EVENTS and self.refuses:
            self.refuses = False
            raise FencedError("somebody else was here")
        return int(await self._log.append(stream, *more))


def test_what_an_append_was_refused_with_counts_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with Sites(tmp_path, LINE, link_bytes=1) as sites:
            ann = await sites.sites["c"].subscriber("ann")
            await ann.subscribe("all", "TRUE")
            bob = await publishing(sites, ann)
            sites.cut.add(frozenset("ab"))
            await bob.publish([{"n": n} for n in range(1, 31)])
            await sites.step()
            link = sites.networks["c"].links["b"]
            link._log = log = RefusedOnce(link._log)
            log.refuses = True
            await drop_and_return(sites, "a", rounds=2)
            assert not log.refuses
            assert sites.routers["c"].counters.missing == 30
            assert await sites.heard(ann) == [("link", None)]
            log.refuses = True
            await bob.publish({"n": 40})
            await sites.settle(30)
            assert not log.refuses
            assert sites.routers["c"].counters.repeated == 0
            assert sites.routers["c"].counters.forwarded == 3  # both events, and the gap

    run(main)


def test_deliveries_that_were_refused_count_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            ann = await sites.sites["a"].subscriber("ann")
            await ann.subscribe("all", "TRUE")
            bob = await publishing(sites, ann)
            router: Any = sites.routers["a"]
            real, refused = router.log.append, []

            async def append(stream: str, entries: Any, fences: Any = None) -> int:
                if fences and len(entries) > 1 and not refused:
                    refused.append(stream)
                    raise FencedError("somebody else was here")
                return int(await real(stream, entries, fences))

            router.log.append = append
            await bob.publish({"n": 1})
            await sites.settle()
            assert refused
            assert router.counters.deliveries == 2

    run(main)
