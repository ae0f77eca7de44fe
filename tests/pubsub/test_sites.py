"""Several sites: events find their way over any graph, once, in order; what was lost comes back.

Faults: a dead site in a line, a cycle, a link that is cut while events wait for it, interest that cannot be
read, events that would travel for ever, two sites that see the links differently, a neighbour that is silent,
interest that could not be written and is confirmed all the same, a state that grows as fast as it is read.
"""

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest

from pubsub.logs import run
from pubsub.several_sites import Sites
from seeds import first_of
from tamis.pubsub import keys
from tamis.pubsub.confirmation import confirm
from tamis.pubsub.log import EVENTS, QUEUES, STATE, Entry, LogUnavailableError
from tamis.pubsub.records import Delivery, Drops, EventHeader, Reading, event_body
from tamis.pubsub.sites import link as link_module
from tamis.pubsub.sites.interest import Generalising
from tamis.pubsub.sites.link_cursor import REROUTE_LANE
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


@pytest.mark.parametrize("fails", ["read", keys.INTEREST, keys.LINKS])
def test_what_could_not_be_told_is_told_later_and_not_confirmed_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    """The log fails for a moment: between two reads of subscriptions, or as interest or links are written."""

    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            await sites.settle()
            log = sites.sites["b"].log
            ann = await sites.sites["b"].subscriber("ann")
            await ann.subscribe("all", "TRUE")
            position = (await log.last(STATE, [keys.subscription_key("ann", "all")])).popitem()[1].seq
            read, append = log.read, log.append

            async def failing_read(stream: str, **how: Any) -> Any:
                if fails == "read" and how.get("topic") == keys.SUBSCRIPTION and how["after"] == position:
                    raise LogUnavailableError("for a moment")
                return await read(stream, **how)

            async def failing_append(stream: str, entries: Any, *arguments: Any) -> Any:
                if any(entry.topic == fails for entry in entries):
                    raise LogUnavailableError("for a moment")
                return await append(stream, entries, *arguments)

            with monkeypatch.context() as patched:
                patched.setattr(log, "read", failing_read)
                patched.setattr(log, "append", failing_append)
                with pytest.raises(LogUnavailableError):
                    await sites.networks["b"].step()
            assert not (await confirm(log, "b", position, 0)).is_complete
            await sites.settle()
            assert (await confirm(log, "b", position, 0)).is_complete
            await (await sites.sites["a"].publisher("bob")).publish({"n": 1})
            await sites.settle()
            assert await sites.heard(ann) == [{"n": 1}]

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


def test_a_lane_of_rerouted_events_goes_on_behind_what_was_dropped_of_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            site, network = sites.sites["a"], sites.networks["a"]
            emptied = Drops(next={REROUTE_LANE: 7})
            await site.log.append(STATE, [Entry(keys.DROP, "=40b", emptied.body())])
            await network._move("b", [(1, (("b", 1),), 10, 0, False)])
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
            await network._move("b", [(n, (("c" * 100, n),), 10, 0, False) for n in range(1, 10_001)])
            records = await site.log.read(QUEUES, topic="q-=40b")
            assert max(len(record.body) for record in records) < 1_000_000
            deliveries = [Delivery.read(record.body) for record in records]
            assert [n for delivery in deliveries for n in delivery.events] == list(range(1, 10_001))
            expected = 1
            for delivery in deliveries:
                assert delivery.first == expected
                expected += len(delivery.events)

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
                EVENTS, [Entry("p0", keys.link_detail("z"), event_body(lost.body(), b'{"n":1}'))]
            )
            await sites.settle()
            waiting = [r for name in "ab" for r in await sites.sites[name].log.read(QUEUES) if "x" in r.topic]
            assert len(waiting) == 1, "it waits for a site that nobody knows, once"

    run(main)


@pytest.mark.parametrize(
    "how",
    first_of(
        [
            Generalising(covering=False),
            Generalising(subsumption=True, merging="perfect"),
            Generalising(merging="imperfect", summaries=2),
            *(
                Generalising(predicates=1, measure=measure)  # type: ignore[arg-type]
                for measure in (
                    "accuracy",
                    "efficiency",
                    "memory",
                    "accuracy-occurrence",
                    "accuracy-distance",
                )
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
        4,
    ),
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


def test_a_link_with_much_to_take_ends_its_step_in_time(tmp_path: Path) -> None:
    """It counted as down, and as slow: then nobody waits for it, and little is taken at a time."""

    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            ann = await sites.sites["b"].subscriber("ann")
            await ann.subscribe("all", "TRUE")
            await sites.settle()
            bob = await sites.sites["a"].publisher("bob")
            for start in range(0, 90, 45):
                await bob.publish([{"n": n} for n in range(start, start + 45)])
                while await sites.routers["a"].step():
                    pass
            link = sites.networks["b"].links["a"]
            ticks = itertools.count()
            link._clock = lambda: float(next(ticks))  # each record takes a second
            taken = []
            while sum(taken) < 90:
                taken.append(await link.step())
            assert taken == [45, 45], "not all at once"
            await sites.settle()
            assert await sites.heard(ann) == [{"n": n} for n in range(90)]

    run(main)


def test_a_link_takes_events_however_fast_the_neighbours_state_grows(tmp_path: Path) -> None:
    """Clients acknowledge all the time. It read until there was no more, and took nothing meanwhile."""

    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            ann = await sites.sites["b"].subscriber("ann")
            await ann.subscribe("all", "TRUE")
            await sites.settle()
            link, log = sites.networks["b"].links["a"], sites.sites["a"].log
            there: Any = link._there
            real, ends, reads, is_busy = there.read, there.end, list[int](), False

            async def read(stream: str, **how: Any) -> Any:
                found = await real(stream, **how)
                if stream == STATE:
                    reads.append(how["after"])
                    assert len(reads) < 10 or not is_busy, "this never ends"
                    if is_busy:
                        await log.append(STATE, [Entry(keys.READ, "carl", Reading("c", len(reads)).body())])
                return found

            async def end(stream: str) -> int:
                if stream == STATE:
                    reads.append(-1)
                return int(await ends(stream))

            there.read, there.end = read, end
            sites.now += 0.5
            await link.step()
            assert len(reads) == 1, "a quiet round is one request"
            is_busy, sites.now = True, sites.now + 0.5
            for n in range(3):
                eve = await sites.sites["a"].subscriber(f"eve-{n}")
                await eve.subscribe("own", f"n = {n}")
                await (await sites.sites["a"].publisher("bob")).publish({"n": n})
                reads.clear()
                await sites.step()
                assert 1 <= len(reads) <= 4
            assert await sites.heard(ann) == [{"n": n} for n in range(2)], "the last one is at b's router"
            is_busy = False
            for _ in range(3):
                reads.clear()
                await sites.step()
            bob = await sites.sites["b"].publisher("bob")
            await bob.publish([{"n": n} for n in range(3)])
            await sites.settle()
            assert await sites.heard(eve) == [{"n": 2}] * 2, "all that was told is known"

    run(main)


def test_what_is_replaced_while_it_is_read_comes_before_what_vouches_for_it(tmp_path: Path) -> None:
    """A part of an answer is lost: links say that interest is known that comes behind them by now."""

    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            await sites.settle()
            link, log = sites.networks["b"].links["a"], sites.sites["a"].log
            there: Any = link._there
            real, told, is_short = there.read, list[str](), True

            async def read(stream: str, **how: Any) -> Any:
                nonlocal is_short
                found = await real(stream, **how)
                if stream != STATE or not is_short or not found:
                    return found
                is_short = False
                links = await log.last(STATE, [(keys.LINKS, "a")])
                [interest] = await log.read(STATE, topic=keys.INTEREST, after=how["after"])
                await log.append(STATE, [Entry(*interest[1:3], interest.body)])
                return [
                    one
                    for one in found
                    if one.topic != keys.INTEREST and one.seq <= links[keys.LINKS, "a"].seq
                ]

            there.read = read
            copy = link._copy

            async def copying(topic: str, records: Any) -> None:
                told.extend([topic] if records else [])
                await copy(topic, records)

            link._copy = copying  # type: ignore[method-assign]
            eve = await sites.sites["a"].subscriber("eve")
            await eve.subscribe("own", "n = 1")
            await sites.step()
            assert not is_short
            assert told[:2] == [keys.INTEREST, keys.LINKS]

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
    assert seen.follows(300)
    assert not seen.follows(299)
    assert not seen.follows(301)
    seen.extend(300, 320)
    assert seen.pairs == [(1, 320)]
    first = Ranges()
    assert first.follows(7)
    first.extend(7, 9)
    assert first.pairs == [(7, 9)]


def test_a_neighbour_that_was_never_heard_of_is_missing(tmp_path: Path) -> None:
    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            await sites.stop("b")
            sites.path("b").unlink()
            await sites.settle()
            told = await (await sites.sites["a"].subscriber("ann")).subscribe("s", "TRUE")
            assert (told.confirmed, told.missing) == (("a",), ("b",))

    run(main)


def test_a_neighbour_that_does_not_answer_holds_up_no_other_link(tmp_path: Path) -> None:
    """Its server takes connections and is silent: a step of its link takes half a minute, or for ever."""

    async def main() -> None:
        async with Sites(tmp_path, [("a", "b"), ("a", "c"), ("b", "d")]) as sites:
            readers = {name: await sites.sites[name].subscriber("ann") for name in "bd"}
            for reader in readers.values():
                await reader.subscribe("all", "TRUE")
            await sites.settle()
            silent: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

            async def opening() -> Any:
                return await silent

            sites.networks["a"].reconnect({"c": opening})
            sites.networks["a"]._patience_seconds = 0.05
            bob = await sites.sites["a"].publisher("bob")
            for number in range(3):
                await bob.publish({"n": number})
                await sites.settle()
            for name, reader in readers.items():
                assert await sites.heard(reader) == [{"n": number} for number in range(3)], name
            links = sites.networks["a"].links
            assert links["c"].trouble == "the neighbour does not answer"
            while links["b"].trouble is not None:  # on a busy machine it may just be waiting, too
                await sites.step()
            silent.set_exception(LogUnavailableError("gone"))
            while links["c"].trouble != "gone":
                await sites.step()
            sites.networks["a"].reconnect({"c": sites._opening("a", "c")})
            while links["c"].trouble is not None:
                await sites.step()

    run(main, 120)


def test_a_link_that_copies_much_interest_is_not_down(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copying takes longer than others wait, and longer than a site counts as there without a sign."""
    caplog.set_level("INFO", "tamis.link")

    async def main() -> None:
        async with Sites(tmp_path, [("a", "c")], Generalising(covering=False)) as sites:
            await sites.settle()
            network = sites.networks["a"]
            link = network.links["c"]
            new_of, copy, wait = link._new_of, link._copy, asyncio.wait
            copied: list[str] = []

            async def one_of(there: Any, topic: str) -> Any:
                await asyncio.sleep(0)
                sites.now += 1.0
                return (await new_of(there, topic))[:1]

            async def copying(topic: str, records: Any) -> None:
                await copy(topic, records)
                copied.append(topic)

            async def impatient(what: Any, *, timeout: float | None = None) -> Any:
                """The time is over when the next part is copied."""
                before = len(copied)
                while len(copied) == before and not all(one.done() for one in what):
                    await asyncio.sleep(0)
                return await wait(what, timeout=0)

            monkeypatch.setattr(link_module, "NEWS_AT_ONCE", 1)  # this is too much to be copied at once
            monkeypatch.setattr(link, "_new_of", one_of)
            monkeypatch.setattr(link, "_copy", copying)
            monkeypatch.setattr(asyncio, "wait", impatient)
            network._link_seconds = 0
            ann = await sites.sites["c"].subscriber("ann")
            await ann.subscribe_many({f"s{n}": f"x = {n}" for n in range(20)})
            await sites.routers["c"].step()
            await sites.networks["c"].step()
            caplog.clear()
            waits, was_away = 0, False
            while len(sites.routers["a"].table.others.of(keys.INTEREST)) < 20:
                await sites.step()
                waits += bool(network._steps)
                was_away |= sites.networks["c"].working() != ("a",)
            assert waits > 2
            assert not was_away, "its neighbour had signs of life all the time"
            assert [record.message for record in caplog.records if record.__dict__.get("site") == "c"] == []

    run(main)


def test_a_slow_link_works_and_is_waited_for_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of its steps takes longer than others wait: it was down for ever, and held them up each time."""
    caplog.set_level("INFO", "tamis.link")

    def told() -> list[str]:
        return [record.message for record in caplog.records if record.__dict__.get("site") == "c"]

    async def main() -> None:
        async with Sites(tmp_path, [("a", "c")]) as sites:
            await sites.settle()
            network = sites.networks["a"]
            link, waits = network.links["c"], []
            original, wait = link.step, asyncio.wait
            ends: list[asyncio.Event] = []

            async def slow() -> int:
                ends.append(asyncio.Event())
                await ends[-1].wait()
                return await original()

            async def noting(what: Any, *, timeout: float | None = None) -> Any:
                waits.append(timeout)
                return await wait(what, timeout=timeout)

            monkeypatch.setattr(link, "step", slow)
            monkeypatch.setattr(asyncio, "wait", noting)
            network._patience_seconds, network._link_seconds = 0.001, 500
            caplog.clear()
            for _ in range(3):
                await network.step()
                await asyncio.sleep(0.002)
                ends[-1].set()
                while network._steps and not network._steps["c"].done():
                    await asyncio.sleep(0)
                assert link.trouble is None
                await network.step()
            assert told() == ["link down", "link up"], "the first time; then it is known to be slow"
            assert waits == [0.001, 0, 0]
            network._link_seconds = 0.001
            await network.step()
            await asyncio.sleep(0.002)
            await network.step()
            assert link.trouble == "the neighbour does not answer"
            assert told() == ["link down", "link up", "link down"]
            network._patience_seconds = 500
            ends[-1].set()
            monkeypatch.setattr(link, "step", original)
            while link.trouble is not None or network._steps:
                await network.step()
            await network.step()
            assert told() == ["link down", "link up"] * 2
            assert waits[-1] == 500, "prompt again"

    run(main)
