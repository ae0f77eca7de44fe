"""Several sites: events find their way over any graph, once, in order; what was lost comes back.

Faults: a dead site in a line, a cycle, a link that is cut while events wait for it, a site restored from an
old copy, interest that cannot be read, events that would travel for ever, two sites that see the links
differently.
"""

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from pubsub.logs import run
from pubsub.several_sites import Sites
from tamis.pubsub import keys
from tamis.pubsub.log import EVENTS, QUEUES, STATE, Entry, LogFullError
from tamis.pubsub.records import Delivery, Drops, EventHeader, QueueLimits, event_body
from tamis.pubsub.router.retention import Retention
from tamis.pubsub.sites.interest import Generalising
from tamis.pubsub.sites.link import REROUTE_LANE
from tamis.pubsub.sites.ranges import Ranges
from tamis.pubsub.sites.topology import SiteLinks, Topology

LINE = [("a", "b"), ("b", "c")]
CYCLE = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("a", "c")]


@pytest.mark.parametrize("edges", [LINE, CYCLE], ids=["line", "cycle"])
def test_events_reach_who_wants_them_once_and_nobody_else(tmp_path: Path, edges: Any) -> None:
    """In a cycle, one event used to be delivered 851 times and was still running."""

    async def main() -> None:
        async with Sites(tmp_path, edges) as sites:
            readers = {}
            for name in sites.names:
                readers[name] = await sites.sites[name].subscriber("ann")
                await readers[name].subscribe("mine", f"at = '{name}' OR all")
            await sites.settle()
            for name in sites.names:
                bob = await sites.sites[name].publisher("bob")
                for target in sites.names:
                    await bob.publish([{"at": target, "from": name, "n": n} for n in range(3)])
                await bob.publish({"all": True, "from": name, "n": 9})
            await sites.settle()
            for name, reader in readers.items():
                got = await sites.heard(reader)
                assert len(got) == 4 * len(sites.names), name
                for origin in sites.names:
                    assert [e["n"] for e in got if e["from"] == origin] == [0, 1, 2, 9]
            if edges is LINE:
                # Nobody at c wants what is for a or b: of a's events, it gets its own.
                stored = await sites.sites["c"].log.read(EVENTS, topic="p0")
                stored += await sites.sites["c"].log.read(EVENTS, topic="p1")
                assert sum(b'"from":"a"' in record.body.replace(b" ", b"") for record in stored) == 4

    run(main)


def test_subscribe_says_who_has_confirmed_and_nobody_waits_for_a_dead_site(tmp_path: Path) -> None:
    async def main() -> None:
        async with Sites(tmp_path, [*LINE, ("c", "d"), ("d", "e")]) as sites:
            await sites.settle()
            ann = await sites.sites["a"].subscriber("ann")
            said = await ann.subscribe("x", "TRUE")
            assert said.confirmed == ("a",)
            assert set(said.missing) == {"b", "c", "d", "e"}
            await sites.settle()
            await sites.stop("e")
            await sites.settle()
            said = await ann.subscribe("y", "n = 1")
            await sites.settle()
            from tamis.pubsub.confirmation import confirm

            position = (await sites.sites["a"].log.last(STATE, [keys.subscription_key("ann", "y")])).popitem()
            said = await confirm(sites.sites["a"].log, "a", position[1].seq, 0)
            assert said.confirmed == ("a", "b", "c", "d")
            assert said.missing == ("e",)
            # Publishing works everywhere, and subscribers that live hear it.
            await (await sites.sites["d"].publisher("bob")).publish({"n": 1})
            await sites.settle()
            assert await sites.heard(ann) == [{"n": 1}]
            await sites.start("e")
            await (await sites.sites["e"].publisher("bob")).publish({"n": 2})
            await sites.settle()
            assert await sites.heard(ann) == [{"n": 2}]

    run(main)


def test_a_lost_link_is_routed_around_and_what_waited_for_it_goes_the_other_way(tmp_path: Path) -> None:
    async def main() -> None:
        async with Sites(tmp_path, [("a", "b"), ("b", "c"), ("a", "d"), ("d", "e"), ("e", "c")]) as sites:
            ann = await sites.sites["c"].subscriber("ann")
            await ann.subscribe("all", "TRUE")
            await sites.settle()
            bob = await sites.sites["a"].publisher("bob")
            await bob.publish({"n": 0})
            await sites.settle()
            assert await sites.heard(ann) == [{"n": 0}]
            sites.cut.add(frozenset("bc"))
            await bob.publish([{"n": n} for n in range(1, 4)])
            for _ in range(3):
                await sites.step()  # b has them, and does not know yet that c is away
            assert await sites.heard(ann) == []
            await sites.settle(30)
            assert sorted(e["n"] for e in await sites.heard(ann)) == [1, 2, 3]
            # The link is back: what waited there was taken already, and comes to nobody twice.
            sites.cut.clear()
            await bob.publish({"n": 4})
            await sites.settle(30)
            assert await sites.heard(ann) == [{"n": 4}]

    run(main)


def test_a_site_that_was_away_catches_up(tmp_path: Path) -> None:
    async def main() -> None:
        async with Sites(tmp_path, LINE) as sites:
            ann = await sites.sites["c"].subscriber("ann")
            await ann.subscribe("all", "TRUE")
            await sites.settle()
            await sites.stop("c")
            bob = await sites.sites["a"].publisher("bob")
            await bob.publish([{"n": n} for n in range(5)])
            await sites.settle()
            await sites.stop("b")
            await bob.publish([{"n": n} for n in range(5, 10)])
            await sites.settle()
            await sites.start("b")
            await sites.settle()
            await sites.start("c")
            await sites.settle()
            again = await sites.sites["c"].subscriber("ann")
            assert [e["n"] for e in await sites.heard(again)] == list(range(10))

    run(main)


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
            router = sites.routers["a"]
            await Retention(router.log, router.settings, router.table, router.counters).tidy()
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


async def drop_and_return(sites: Sites, name: str, *, rounds: int) -> None:
    """Let a site drop what is beyond the limits of its links, and then heal them."""
    router = sites.routers[name]
    keeping = Retention(router.log, router.settings, router.table, router.counters)
    for _ in range(rounds):
        await keeping.tidy()
        await sites.step()
    sites.cut.clear()
    await sites.settle(30)


@pytest.mark.parametrize("cuts", [("ab",), ("bc", "ab")], ids=["at its origin", "on its way"])
def test_what_was_dropped_on_its_way_is_a_gap_at_sites_further_behind(
    tmp_path: Path, cuts: tuple[str, ...]
) -> None:
    """Whoever drops an event knows where it was going; the site in between does not."""

    async def main() -> None:
        async with Sites(tmp_path, [*LINE, ("c", "d")], link_bytes=100) as sites:
            readers = {name: await sites.sites[name].subscriber("ann") for name in "bcd"}
            await readers["c"].subscribe("all", "TRUE")
            await readers["b"].subscribe("few", "n = 0")
            await readers["d"].subscribe("few", "n = 0")
            await sites.settle()
            bob = await sites.sites["a"].publisher("bob")
            await bob.publish({"n": 0})
            await sites.settle()
            for name in "bcd":
                assert await sites.heard(readers[name]) == [{"n": 0}]
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
def test_a_gap_that_is_dropped_in_its_turn_still_counts_all_that_it_stood_for(
    tmp_path: Path, rounds: int
) -> None:
    """200 events lost, 51 told: a gap counted as one event when the next limit hit it."""

    async def main() -> None:
        async with Sites(tmp_path, [*LINE, ("c", "d")], link_bytes=20) as sites:
            readers = {name: await sites.sites[name].subscriber("ann") for name in "cd"}
            await readers["c"].subscribe("all", "TRUE")
            await readers["d"].subscribe("few", "n < 30")
            await sites.settle()
            bob = await sites.sites["a"].publisher("bob")
            await bob.publish({"n": 0})
            await sites.settle()
            for reader in readers.values():
                assert await sites.heard(reader) == [{"n": 0}]
            router = sites.routers["a"]
            keeping = Retention(router.log, router.settings, router.table, router.counters)
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
        async with Sites(tmp_path, [("a", "b")], link_bytes=20) as sites:
            ann = await sites.sites["b"].subscriber("ann", QueueLimits(most_bytes=0))
            await ann.subscribe("all", "TRUE", priority=9)  # as gaps have: one lane
            await sites.settle()
            bob = await sites.sites["a"].publisher("bob")
            await bob.publish({"n": 0})
            await sites.settle()
            sites.cut.add(frozenset("ab"))
            for n in range(1, 40):
                await bob.publish({"n": n})
                await sites.step()
            await drop_and_return(sites, "a", rounds=1)
            router = sites.routers["b"]
            await Retention(router.log, router.settings, router.table, router.counters).tidy()
            await (await sites.sites["b"].publisher("bob")).publish({"n": 40})
            await sites.settle()
            heard = await sites.heard(ann)
            assert [reason for reason, _ in heard[:-1]].count("link") == 1
            assert ("link", None) in heard
            assert heard[-1] == {"n": 40}

    run(main)


def test_a_lane_of_rerouted_events_goes_on_behind_what_was_dropped_of_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            site, network = sites.sites["a"], sites.networks["a"]
            emptied = Drops(next={REROUTE_LANE: 7})
            await site.log.append(STATE, [Entry(keys.DROP, "=40b", emptied.body())])
            await network._move("b", [(1, (("b", 1),), 10, 0)])
            [record] = await site.log.read(QUEUES, topic="q-=40b")
            assert Delivery.read(record.body).first == 7
            assert Delivery.read(record.body).size == 10

    run(main)


def test_what_goes_to_other_sites_fits_into_a_message(tmp_path: Path) -> None:
    """NATS takes a megabyte: a large batch, with all sites that its events are on their way to, is more."""

    async def main() -> None:
        far = [letter * 100 for letter in "cde"]
        async with Sites(tmp_path, [("a", "b"), *(("b", name) for name in far)]) as sites:
            for name in far:
                await (await sites.sites[name].subscriber("ann")).subscribe("all", "TRUE")
            await sites.settle()
            bob = await sites.sites["a"].publisher("bob")
            for start in range(0, 4_000, 1_000):
                await bob.publish([{"n": n} for n in range(start, start + 1_000)])
            sites.routers["a"]._most = 4_000
            assert await sites.routers["a"].step() == 4_000
            records = await sites.sites["a"].log.read(QUEUES, topic="q-=40b")
            deliveries = [Delivery.read(record.body) for record in records]
            assert sum(len(delivery.events) for delivery in deliveries) == 4_000
            assert all(len(targets) == 3 for delivery in deliveries for targets in delivery.targets)
            assert max(len(record.body) for record in records) < 1_000_000

    run(main)


def test_what_goes_another_way_fits_into_a_message(tmp_path: Path) -> None:
    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            site, network = sites.sites["a"], sites.networks["a"]
            await network._move("b", [(n, (("c" * 100, n),), 10, 0) for n in range(1, 10_001)])
            records = await site.log.read(QUEUES, topic="q-=40b")
            assert max(len(record.body) for record in records) < 1_000_000
            deliveries = [Delivery.read(record.body) for record in records]
            assert [n for delivery in deliveries for n in delivery.events] == list(range(1, 10_001))
            expected = 1
            for delivery in deliveries:
                assert delivery.first == expected
                expected += len(delivery.events)

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
            await sites.settle()
            bob = await sites.sites["a"].publisher("bob")
            await bob.publish({"n": 0})
            await sites.settle()
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
            keeping = Retention(log, router.settings, router.table, router.counters)
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
            await sites.settle()
            bob = await sites.sites["a"].publisher("bob")
            await bob.publish({"n": 0})
            await sites.settle()
            path = sites.path("a")
            source, target = sqlite3.connect(path), sqlite3.connect(tmp_path / "backup.db")
            with target:
                source.backup(target)
            source.close()
            target.close()
            await bob.publish([{"n": n} for n in range(1, 4)])
            await sites.settle()
            assert [e["n"] for e in await sites.heard(ann)] == [0, 1, 2, 3]
            await sites.stop("a")
            await sites.step()
            for suffix in ("-wal", "-shm"):
                Path(f"{path}{suffix}").unlink(missing_ok=True)
            path.unlink()
            shutil.copy(tmp_path / "backup.db", path)
            await sites.start("a")
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


def test_interest_that_cannot_be_read_wants_everything(tmp_path: Path) -> None:
    async def main() -> None:
        async with Sites(tmp_path, LINE) as sites:
            ann = await sites.sites["c"].subscriber("ann")
            await ann.subscribe("few", "n = 7")
            await sites.settle()
            # c is a release ahead: its interest has a version, or an operator, that nobody else knows.
            await sites.sites["c"].log.append(
                STATE,
                [
                    Entry(keys.INTEREST, "c.x", b'{"v":99,"k":9000000000000000,"words":"n FROBS 7"}'),
                    Entry(keys.INTEREST, "c.y", b"\xff\xfe"),
                ],
            )
            await ann.subscribe("all", "TRUE")
            await sites.sites["c"].log.append(
                STATE,
                [Entry(keys.INTEREST, "c.ann=2Eall", b'{"v":1,"k":9000000000000000,"expression":null}')],
            )
            await sites.settle()
            await (await sites.sites["a"].publisher("bob")).publish([{"n": 1}, {"n": 7}])
            await sites.settle()
            assert [e["n"] for e in await sites.heard(ann)] == [1, 7]

    run(main)


def test_events_with_sets_of_values_go_everywhere(tmp_path: Path) -> None:
    async def main() -> None:
        async with Sites(tmp_path, LINE) as sites:
            ann = await sites.sites["c"].subscriber("ann")
            await ann.subscribe("x", "n > 5")
            await sites.settle()
            await (await sites.sites["a"].publisher("bob")).publish('{"n": {"$interval": [1, 9]}}')
            await sites.settle()
            assert len(await sites.heard(ann)) == 1

    run(main)


def test_an_event_does_not_travel_for_ever(tmp_path: Path) -> None:
    """Two sites that each believe the other to be on the way."""

    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            await sites.settle()
            lost = EventHeader("bob", "nowhere", "life", 0, 3, (("x", 1),))
            for name, other in (("a", "b"), ("b", "a")):
                # What x itself said of its links a moment ago, as each of the two remembers it.
                links = SiteLinks(1, (other,), (other,))
                await sites.sites[name].log.append(STATE, [Entry(keys.LINKS, "z", links.body())])
            topology = {
                "a": SiteLinks(9_000_000_000_000_000, ("b",), ("b", "x")),
                "b": SiteLinks(9_000_000_000_000_000, ("a",), ("a", "x")),
            }
            assert Topology("a", topology).next_hop("x") == "x"
            await sites.sites["a"].log.append(
                EVENTS, [Entry("p0", "evil", event_body(lost.body(), b'{"n":1}'))]
            )
            await sites.settle()
            waiting = [r for name in "ab" for r in await sites.sites[name].log.read(QUEUES) if "x" in r.topic]
            assert len(waiting) == 1, "it waits for a site that nobody knows, once"

    run(main)


@pytest.mark.parametrize(
    "how",
    [
        Generalising(covering=False),
        Generalising(subsumption=True, merging="perfect"),
        Generalising(merging="imperfect", summaries=2),
        *(
            Generalising(predicates=1, measure=measure)  # type: ignore[arg-type]
            for measure in ("accuracy", "efficiency", "memory", "accuracy-occurrence", "accuracy-distance")
        ),
        *(
            Generalising(pruning=share, measure=measure)  # type: ignore[arg-type]
            for share, measure in [
                (1.0, "memory"),
                (0.5, "accuracy-occurrence"),
                (1.0, "combined"),
            ]
        ),
        Generalising(pruning=0.5, replacement=0.5, merging="imperfect"),
    ],
)
def test_however_interest_is_generalised_nothing_is_missed_and_nothing_else_heard(
    tmp_path: Path, how: Generalising
) -> None:
    async def main() -> None:
        async with Sites(tmp_path, LINE, how) as sites:
            ann = await sites.sites["c"].subscriber("ann")
            await ann.subscribe_many({f"s{n}": f"x = {n} AND y > {n}" for n in range(6)})
            await ann.subscribe("wide", "x BETWEEN 2 AND 4 AND y > 0 AND z = 1")
            await ann.unsubscribe("s3")
            await sites.settle()
            events = [{"x": x, "y": y, "z": z} for x in range(7) for y in range(7) for z in range(2)]
            await (await sites.sites["a"].publisher("bob")).publish(events)
            await sites.settle()
            wanted = [
                e
                for e in events
                if (e["x"] != 3 and e["x"] < 6 and e["y"] > e["x"])
                or (2 <= e["x"] <= 4 and e["y"] > 0 and e["z"] == 1)
            ]
            assert await sites.heard(ann) == wanted
            await ann.unsubscribe(*(f"s{n}" for n in range(6)), "wide")
            await sites.settle()
            before = await sites.sites["b"].log.end(QUEUES)
            await (await sites.sites["a"].publisher("bob")).publish(events)
            await sites.settle()
            assert not [
                r for r in await sites.sites["b"].log.read(QUEUES, after=before) if r.topic.startswith("q-")
            ], "interest that is gone keeps no event going"

    run(main)


def test_ranges() -> None:
    import random

    numbers = list(range(1, 300))
    random.Random(3).shuffle(numbers)
    seen, plain = Ranges(), set()
    for number in numbers[:200] + numbers[:50]:
        assert seen.add(number) == (number not in plain)
        plain.add(number)
        assert number in seen
        assert 0 not in seen
    assert {n for first, last in seen.pairs for n in range(first, last + 1)} == plain
    assert Ranges(seen.pairs).pairs == seen.pairs
    for number in numbers:
        seen.add(number)
    assert seen.pairs == [(1, 299)]


def test_a_neighbour_that_was_never_heard_of_is_missing(tmp_path: Path) -> None:
    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            await sites.stop("b")
            sites.path("b").unlink()
            await sites.settle()
            told = await (await sites.sites["a"].subscriber("ann")).subscribe("s", "TRUE")
            assert (told.confirmed, told.missing) == (("a",), ("b",))

    run(main)
