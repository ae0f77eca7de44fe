"""A site's log is replaced by an older copy: nothing comes twice to other sites, and nothing new is lost.

Faults: an event that the copy has, and that was routed after the copy was made, is routed again and comes a
second time, straight or over other sites, before or after the copies of its first life that are late. What is
published afterwards has the numbers of lost events and counts as a repeat, also where the site that it comes
over has lost nothing and does not notice. More lives, holes or origins than are kept make records grow
without bound, or an append too large.
"""

import random
import shutil
import sqlite3
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pubsub.backups import back_up, restore
from pubsub.logs import heard, run
from pubsub.several_sites import Sites
from servers import NatsServer
from tamis.pubsub import keys
from tamis.pubsub.confirmation import confirm
from tamis.pubsub.log import EVENTS, QUEUES, STATE, Entry
from tamis.pubsub.log.contract import MOST_ENTRIES
from tamis.pubsub.operating import replay
from tamis.pubsub.publisher import Publisher
from tamis.pubsub.records import Delivery, EventHeader, Fields, Reading, event_body
from tamis.pubsub.router.router import Router
from tamis.pubsub.site import Site, connect
from tamis.pubsub.sites import taken as taken_module
from tamis.pubsub.sites.coming import Came, Coming, fitting
from tamis.pubsub.sites.ranges import Ranges
from tamis.pubsub.sites.taken import Life, Taken
from tamis.pubsub.subscriber import Delivered, Subscriber

LINE = [("a", "b"), ("b", "c")]
SQUARE = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
ROLLBACK = ("rollback", None)


async def wanting(sites: Sites, *names: str) -> list[Subscriber]:
    """A subscriber at each of these sites that wants everything."""
    readers = [await sites.sites[name].subscriber(f"ann-{name}") for name in names]
    for reader in readers:
        await reader.subscribe("all", "TRUE")
    await sites.settle()
    return readers


async def publish(publisher: Publisher, *numbers: int) -> None:
    await publisher.publish([{"n": number} for number in numbers])


@asynccontextmanager
async def one_is_routed(path: Path) -> AsyncIterator[tuple[Site, Subscriber, Router, Publisher]]:
    """A site whose client ann wants everything, with the first event of bob in her queue."""
    async with connect(f"sqlite:{path}", partitions=1) as site:
        ann = await site.subscriber("ann")
        await ann.subscribe("all", "TRUE")
        router, bob = Router(site.log, site.settings), await site.publisher("bob")
        await publish(bob, 1)
        await router.step()
        yield site, ann, router, bob


async def route_each(router: Router, bob: Publisher, numbers: Iterable[int]) -> None:
    """Publish and route one event after another, by a router that may have to take the partition again."""
    for number in numbers:
        await publish(bob, number)
        for _ in range(3):
            await router.step()


def test_what_a_copy_routes_again_comes_once(tmp_path: Path) -> None:
    """At the neighbour, and behind it."""

    async def main() -> None:
        async with Sites(tmp_path, LINE) as sites:
            readers = await wanting(sites, "b", "c")
            bob = await sites.sites["a"].publisher("bob")
            await publish(bob, 1, 2)
            await sites.settle()
            await publish(bob, 3, 4, 5)
            sites.back_up("a")  # which has them, and not where they went
            await publish(bob, 6, 7)
            await sites.settle()
            for reader in readers:
                assert await sites.heard(reader) == [{"n": n} for n in range(1, 8)]
            for new in (range(10, 20), range(20, 30), range(30, 40)):  # from the same copy again
                await sites.restore("a")
                bob = await sites.sites["a"].publisher("bob")
                await publish(bob, *new)
                await sites.settle(30)
                for reader in readers:
                    assert await sites.heard(reader) == [ROLLBACK, *({"n": n} for n in new)], reader.name

    run(main)


def test_what_waited_for_a_site_and_went_another_way_comes_once(tmp_path: Path) -> None:
    """In the copy it waits for the site itself; before, it went around: the seed 5015 of random histories."""

    async def main() -> None:
        async with Sites(tmp_path, SQUARE) as sites:
            [ann] = await wanting(sites, "d")
            bob = await sites.sites["a"].publisher("bob")
            sites.cut.add(frozenset("ad"))
            await publish(bob, 1, 2)
            await sites.step()
            sites.back_up("a")
            await sites.settle(30)
            assert await sites.heard(ann) == [{"n": 1}, {"n": 2}], "over b and c"
            sites.cut.clear()
            await sites.settle(30)
            await publish(bob, 3)
            await sites.settle(30)
            assert await sites.heard(ann) == [{"n": 3}], "from a itself, which d will find rolled back"
            await sites.restore("a")
            bob = await sites.sites["a"].publisher("bob")
            await publish(bob, 4)
            await sites.settle(30)
            assert await sites.heard(ann) == [ROLLBACK, {"n": 4}]

    run(main)


@pytest.mark.parametrize("first", ["before", "after"])
def test_what_is_late_from_before_the_rollback_comes_once(tmp_path: Path, first: str) -> None:
    """The same event comes over c with a number of the first life, and from a with one of the second."""

    async def main() -> None:
        async with Sites(tmp_path, SQUARE) as sites:
            [ann] = await wanting(sites, "d")
            bob = await sites.sites["a"].publisher("bob")
            sites.cut.add(frozenset("ad"))
            await sites.settle(30)
            await publish(bob, 1, 2)
            sites.back_up("a")
            await publish(bob, 3)
            sites.cut.add(frozenset("cd"))
            await sites.settle(30)
            assert await sites.heard(ann) == [], "they are at c"
            await sites.restore("a")
            bob = await sites.sites["a"].publisher("bob")
            await publish(bob, 4)
            sites.cut.discard(frozenset("cd" if first == "before" else "ad"))
            await sites.settle(30)
            sites.cut.clear()
            await sites.settle(30)
            heard = [item["n"] for item in await sites.heard(ann) if item != ROLLBACK]
            # What a has lost, and c still has, may take the number of what is new: either is right.
            assert sorted(set(heard) - {3}) == [1, 2, 4]
            assert len(set(heard)) == len(heard)

    run(main)


def test_a_site_that_does_not_notice_passes_on_what_is_new(tmp_path: Path) -> None:
    """Of the lost events, b has none: what it takes next has their numbers, and d knows these."""

    async def main() -> None:
        async with Sites(tmp_path, SQUARE) as sites:
            [ann] = await wanting(sites, "d")
            bob = await sites.sites["a"].publisher("bob")
            await publish(bob, 1)
            await sites.settle()
            sites.back_up("a")
            await publish(bob, 2, 3)
            await sites.settle()
            assert await sites.heard(ann) == [{"n": n} for n in (1, 2, 3)], "straight from a"
            await sites.restore("a")
            sites.cut.add(frozenset("ad"))
            bob = await sites.sites["a"].publisher("bob")
            await publish(bob, 4, 5, 6, 7)
            await sites.settle(30)
            assert [item for item in await sites.heard(ann) if item != ROLLBACK] == [
                {"n": n} for n in (4, 5, 6, 7)
            ]

    run(main)


async def subscribe_at_a(sites: Sites, text: str) -> Subscriber:
    """A subscriber at a that wants little, known at b."""
    ann = await sites.sites["a"].subscriber("ann")
    await ann.subscribe("few", text)
    await sites.settle()
    return ann


async def change_state(site: Site, times: int) -> None:
    """Let the state of a site grow by records that say nothing new."""
    for number in range(times):
        await site.log.append(STATE, [Entry(keys.READ, "carl", Reading("c", number).body())])


@pytest.mark.parametrize("grows", [False, True])
def test_what_a_restored_neighbour_tells_is_read_under_the_numbers_that_were_read_before(
    tmp_path: Path, grows: bool
) -> None:
    """Its file, or its server, is the same: the link asked for what lies behind the old end."""

    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            await subscribe_at_a(sites, "n = 0")
            sites.back_up("a")
            await change_state(sites.sites["a"], 200)
            await sites.settle()
            link = sites.networks["b"].links["a"]
            looked_at = link._state_until
            generation = link._generation
            await sites.stop("a")
            await sites.step()
            restore(sites.path("a"), is_in_place=True)
            sites.dead.add("b")
            await sites.start("a")
            eve = await sites.sites["a"].subscriber("eve")
            await eve.subscribe("few", "n > 100")
            await sites.step()
            assert looked_at is not None
            assert await sites.sites["a"].log.end(STATE) < looked_at
            await change_state(sites.sites["a"], 300 if grows else 0)
            sites.dead.discard("b")
            await sites.settle()
            assert link._generation == generation, "the connection is the same"
            bob = await sites.sites["b"].publisher("bob")
            await publish(bob, 200)
            await sites.settle()
            assert await sites.heard(eve) == [{"n": 200}]

    run(main)


def test_a_copy_with_our_last_sign_is_noticed_by_the_number_of_the_next(tmp_path: Path) -> None:
    """It was made after the link had signed, and lacks what the link has read since."""

    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            await subscribe_at_a(sites, "n = 0")
            link = sites.networks["b"].links["a"]
            sites.now += 2
            await link.step()
            sites.back_up("a")
            await change_state(sites.sites["a"], 20)
            sites.now += 0.25
            await link.step()
            restore(sites.path("a"), is_in_place=True)
            eve = await sites.sites["a"].subscriber("eve")
            await eve.subscribe("few", "n > 100")
            sites.now += 2
            await sites.settle()
            await publish(await sites.sites["b"].publisher("bob"), 200)
            await sites.settle()
            assert await sites.heard(eve) == [{"n": 200}]

    run(main)


def test_a_site_tells_what_is_wanted_after_its_state_was_restored_under_it(tmp_path: Path) -> None:
    """What it tells went on behind the number that was read last, and others know what it has forgotten."""

    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            ann = await subscribe_at_a(sites, "TRUE")
            sites.back_up("a")
            for number in range(50):
                await ann.subscribe("few", f"n > {number}")
            await sites.settle()
            restore(sites.path("a"), is_in_place=True)
            await sites.step()
            eve = await sites.sites["a"].subscriber("eve")
            await eve.subscribe("few", "n < 0")
            wanted = await sites.sites["a"].log.end(STATE)
            assert not (await confirm(sites.sites["a"].log, "a", wanted, 0)).is_complete
            await sites.settle()
            assert (await confirm(sites.sites["a"].log, "a", wanted, 0)).is_complete
            await publish(await sites.sites["b"].publisher("bob"), -1)
            await sites.settle()
            assert await sites.heard(eve) == [{"n": -1}]

    run(main)


@pytest.mark.parametrize("grows", [False, True])
def test_a_client_gets_nothing_twice_that_its_own_log_routes_again(tmp_path: Path, grows: bool) -> None:
    """In the copy, the events are not routed; what the client has got is in records that are gone."""

    async def main() -> None:
        path = tmp_path / "site.db"
        async with connect(f"sqlite:{path}", partitions=1) as site:
            ann = await site.subscriber("ann")
            await ann.subscribe("all", "TRUE")
            await ann.subscribe("urgent", "n = 4", priority=9)
            router = Router(site.log, site.settings)
            bob = await site.publisher("bob")
            await publish(bob, 1, 2)
            await router.step()
            await publish(bob, 3, 4, 5, 6)
            back_up(path)
            await router.step()
            got = [await ann.next(timeout=10) for _ in range(5)]
            assert [item.event["n"] for item in got if isinstance(item, Delivered)] == [1, 2, 3, 4, 5]
            restore(path)
            if not grows:
                assert await heard(ann) == [{"n": 6}, ROLLBACK], "noticed before anything is routed"
            bob = await site.publisher("bob")
            await publish(bob, 7)
            while await router.step():
                pass
            found = await heard(ann)
            assert not grows or ROLLBACK in found
            assert [item["n"] for item in found if item != ROLLBACK] == ([6, 7] if grows else [7])
            await replay(site, "ann")
            await ann.acknowledge()  # and learns of it
            assert [item["n"] for item in await heard(ann)] == [1, 2, 3, 4, 5, 6, 7], "if somebody wants it"

    run(main)


@pytest.mark.parametrize("new", [1, 2, 3, 7])
@pytest.mark.parametrize("is_in_place", [False, True])
@pytest.mark.parametrize("acknowledges", ["nothing", "before the copy", "all", "all, and begins again"])
def test_a_client_misses_nothing_if_its_queue_grows_before_it_looks(
    tmp_path: Path, acknowledges: str, is_in_place: bool, new: int
) -> None:
    """Its queue is behind its position, at it or beyond it; its lanes count back, or go on by chance."""

    async def main() -> None:
        path = tmp_path / "site.db"
        async with one_is_routed(path) as routed:
            site, ann, router, bob = routed
            eve = await site.subscriber("eve")
            await eve.subscribe("all", "TRUE")
            assert await heard(ann) == [{"n": 1}]
            if acknowledges == "before the copy":
                await ann.acknowledge()
            back_up(path)
            for number in (2, 3):
                await publish(bob, number)
                await router.step()
            assert await heard(ann) == [{"n": 2}, {"n": 3}]
            if acknowledges.startswith("all"):
                await ann.acknowledge()
            begins_again = acknowledges.endswith("again")
            if begins_again:
                ann = await site.subscriber("ann")
                assert await heard(ann) == []
            restore(path, is_in_place=is_in_place)
            bob = await site.publisher("bob")
            await route_each(router, bob, range(10, 10 + new))
            found = await heard(ann)
            assert [item["n"] for item in found if item != ROLLBACK] == [
                *([1] if begins_again else []),  # which it does not remember, nor does the copy
                *range(10, 10 + new),
            ]
            assert found.count(ROLLBACK) == 1
            await publish(bob, 20)
            await router.step()
            assert await heard(ann) == [{"n": 20}], "and what follows"
            await ann.acknowledge()
            assert await heard(await site.subscriber("ann")) == []

    run(main)


@pytest.mark.parametrize("acknowledges", [None, 2, 3])
@pytest.mark.parametrize("is_in_place", [False, True])
def test_a_client_that_acknowledges_what_is_lost_hides_nothing_new(
    tmp_path: Path, is_in_place: bool, acknowledges: int | None
) -> None:
    """All of it, or a part of a delivery; then it dies, before it reads what the log has now."""

    async def main() -> None:
        path = tmp_path / "site.db"
        async with one_is_routed(path) as routed:
            site, ann, router, bob = routed
            back_up(path)
            await publish(bob, 2, 3, 4)
            await router.step()
            items = [await ann.next(timeout=10) for _ in range(4)]
            restore(path, is_in_place=is_in_place)
            bob = await site.publisher("bob")
            for numbers in ((10, 11, 12), (13,)):
                await publish(bob, *numbers)
                for _ in range(3):
                    await router.step()
            await ann.acknowledge(None if acknowledges is None else items[acknowledges - 1])
            new = [{"n": n} for n in range(10, 14)]
            found = await heard(await site.subscriber("ann"))
            assert [item for item in found if item != ROLLBACK] in (new, [{"n": 1}, *new])
            assert not is_in_place or ROLLBACK in found, "written before it was noticed"
            found = await heard(await site.subscriber("ann"))
            assert found in (new, [{"n": 1}, *new]), "nobody has acknowledged anything"

    run(main)


@pytest.mark.thorough
def test_a_client_of_a_server_that_is_restored_misses_nothing(nats_program: str, tmp_path: Path) -> None:
    """The store of a NATS server is replaced by a copy; the client connects again, and looks late."""
    store, copy = tmp_path / "store", tmp_path / "copy"

    async def main() -> None:
        server = NatsServer(nats_program, tmp_path).start()
        url = f"{server.url}/paris"
        try:
            async with connect(url, partitions=1) as site, connect(url) as other:
                ann = await other.subscriber("ann")
                await ann.subscribe("all", "TRUE")
                router = Router(site.log, site.settings)

                async def route(*numbers: int) -> None:
                    await route_each(router, await site.publisher("bob"), numbers)

                await route(1)
                assert await heard(ann) == [{"n": 1}]
                server.stop()
                shutil.copytree(store, copy)
                server.start()
                await route(2, 3)
                assert await heard(ann) == [{"n": 2}, {"n": 3}]
                server.stop()
                shutil.rmtree(store)
                copy.rename(store)
                server.start()
                await route(*range(10, 17))
                found = await heard(ann)
                assert found.count(ROLLBACK) == 1
                assert [item for item in found if item != ROLLBACK] == [{"n": n} for n in range(10, 17)]
        finally:
            server.stop()

    run(main)


def test_a_client_that_looks_while_its_log_is_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has asked for the end of the lost log, and reads the copy: the seed 1081 of random histories."""

    async def main() -> None:
        path = tmp_path / "site.db"
        async with connect(f"sqlite:{path}", partitions=1) as site, connect(f"sqlite:{path}") as other:
            ann = await other.subscriber("ann")
            await ann.subscribe("all", "TRUE")
            router = Router(site.log, site.settings)
            bob = await site.publisher("bob")
            back_up(path)
            await publish(bob, 1)
            await router.step()
            assert await heard(ann) == [{"n": 1}]
            read = other.log.read

            async def restored(*what: Any, **how: Any) -> Any:
                monkeypatch.setattr(other.log, "read", read)
                restore(path)
                return await read(*what, **how)

            monkeypatch.setattr(other.log, "read", restored)
            found = await heard(ann)
            bob = await site.publisher("bob")
            await route_each(router, bob, range(10, 17))
            found += await heard(ann)
            assert found == [ROLLBACK, *({"n": n} for n in range(10, 17))]

    run(main)


def restore_queues_alone(path: Path) -> None:
    """A copy of the queues in a log that has gone on: streams of NATS are backed up one by one."""
    with sqlite3.connect(path) as database:
        database.execute("ATTACH ? AS copy", (str(path.with_suffix(".backup")),))
        database.execute("DELETE FROM queues WHERE seq > (SELECT max(seq) FROM copy.queues)")
        database.execute(
            "UPDATE sqlite_sequence SET seq = (SELECT max(seq) FROM copy.queues) WHERE name = 'queues'"
        )
    database.close()


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("grows", [False, True])
def test_a_position_that_is_newer_than_its_queue_holds_up_nobody(
    tmp_path: Path, is_open: bool, grows: bool
) -> None:
    async def main() -> None:
        path = tmp_path / "site.db"
        async with one_is_routed(path) as routed:
            site, ann, router, bob = routed
            back_up(path)
            for number in (2, 3):
                await publish(bob, number)
                await router.step()
            assert await heard(ann) == [{"n": n} for n in (1, 2, 3)]
            await ann.acknowledge()
            restore_queues_alone(path)
            await route_each(router, bob, range(10, 17 if grows else 11))
            ann = ann if is_open else await site.subscriber("ann")
            found = await heard(ann)
            assert found.count(ROLLBACK) == 1
            assert [item["n"] for item in found if item != ROLLBACK] == [
                *(() if is_open else (2, 3)),  # routed again, and the next client does not know them
                *range(10, 17 if grows else 11),
            ]
            await ann.acknowledge()
            assert await heard(await site.subscriber("ann")) == []

    run(main)


@pytest.mark.parametrize("seed", range(20))
def test_what_has_come_is_what_a_list_of_it_says(seed: int) -> None:
    """Events come in order or late, twice, and again in other lives with other numbers."""
    chance = random.Random(seed)
    log: list[tuple[int, int]] = []  # places, of which some are for this site in each life
    clock, come, taken = 0, set(), Taken()
    sent: list[tuple[str, int, tuple[int, int]]] = []
    for life in range(chance.choice([1, 3, 6])):
        if log:
            clock += 1
            del log[chance.randrange(len(log)) :]  # an older copy of it
        routed = chance.randrange(len(log) + 1)
        for _ in range(chance.choice([5, 30])):
            clock += chance.choice([0, 0, 1])
            log.append((len(log) + 1, clock))
        interesting = [place for place in log[routed:] if (place[0] * 7 + place[1] * 5 + seed) % 3]
        now = [(str(life), number, place) for number, place in enumerate(interesting, routed + 1)]
        chance.shuffle(late := [one for one in now if chance.random() < 0.3])
        sent += [one for one in now if one not in late] + late
        chance.shuffle(held := [one for one in sent if chance.random() < 0.2])
        for name, number, place in [*(one for one in sent if one not in held), *sent[-3:]]:
            known = taken._latest(name)
            if known is not None and known.has(number):
                continue  # its number says so
            is_new = taken.add(name, number, place)
            assert not (is_new and place in come), (name, number, place)
            # What is late and not in the log any more is lost, and may look like what took its place.
            assert is_new or place in come or place not in log, (name, number, place)
            come |= {place} if is_new else set()
        sent = held
        clock += 1
        taken = Taken.read(taken.body())
    assert come


@pytest.mark.parametrize("seed", range(40))
def test_events_that_come_at_once_are_remembered_as_those_that_come_one_by_one(seed: int) -> None:
    """In order or not, with times that stand still or go back, in several lives: else events were lost."""
    chance = random.Random(seed)
    together, one_by_one, extended = Taken(), Taken(), 0
    number = lies = time = 0
    for _ in range(60):
        life = chance.choice(["first", "first", "first", "second"])
        number += chance.choice([0, 0, 0, 0, 3, -2])
        places = []
        for _ in range(chance.choice([1, 2, 30])):
            lies += chance.choice([1, 1, 2, 5]) if chance.random() < 0.99 else -1
            time += chance.choice([0, 1, 1, 50]) if chance.random() < 0.99 else -3
            places.append((max(1, lies), max(0, time)))
        numbers = range(max(1, number + 1), max(1, number + 1) + len(places))
        number = numbers[-1]
        known = [one for one in one_by_one.lives if one.name == life]
        if any(one.has(each) for one in known for each in numbers):
            continue  # `Ranges` says so
        are_new = [one_by_one.add(life, each, place) for each, place in zip(numbers, places, strict=True)]
        if together.extend(life, numbers[0], places):
            assert all(are_new)
            extended += 1
        else:
            each_new = [together.add(life, *one) for one in zip(numbers, places, strict=True)]
            assert each_new == are_new
        assert together.body() == one_by_one.body()
    assert extended > 5


def test_what_has_come_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taken_module, "MOST_RUNS", 20)
    taken = Taken()
    for life in range(30):
        for number in range(2, 100, 2):  # each other one is missing
            assert taken.add(str(life), number, (number * 7, life * 1_000 + number))
    assert [one.name for one in taken.lives] == [str(life) for life in range(14, 30)]
    assert sum(len(one.runs) for one in taken.lives) <= 20
    assert not taken.add("new", 1, (50 * 7, 29 * 1_000 + 50)), "the last ones are known"


def test_an_event_out_of_order_tells_nothing_of_others() -> None:
    life = Life("x")
    for number, place in [(5, 50), (7, 70), (6, 90), (6, 60), (8, 65), (5, 51)]:
        life.add(number, (place, number))
    assert life.runs == [[5, 7, 50, 70]]


@pytest.mark.parametrize("origins", [1, 200, 400, 980])
def test_an_append_has_room_for_what_has_come_of_all_origins(origins: int) -> None:
    header = EventHeader("bob", "rome")
    coming: list[Coming | None] = [
        Coming(Came(header, f"rome.x.{n % origins}", "rome", "p0", 1, b"", header), b"", None, ())
        for n in range(980)
    ]
    found = fitting(coming)
    used = {one.came.origin for one in found if one is not None and one.came is not None}
    assert len(found) + 2 * len(used) + 5 <= MOST_ENTRIES
    assert len(found) == 980 or len(found) + 2 * len(used) + 5 > MOST_ENTRIES - 3


def test_old_records_of_what_has_come_are_removed(tmp_path: Path) -> None:
    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            await wanting(sites, "b")
            bob = await sites.sites["a"].publisher("bob")
            for number in range(120):
                await publish(bob, number)
                await sites.step()
            await sites.settle()
            found = await sites.sites["b"].log.read(EVENTS, topic=keys.TAKEN, most=10_000)
            assert 0 < len(found) <= 60

    run(main)


def test_an_event_that_overtakes_others_after_an_unnoticed_rollback_hides_none() -> None:
    """Events 2 and 3 are lost and their numbers used again; the next one comes first, over another way."""
    taken = Taken()
    for number in (1, 2, 3):
        assert taken.add("life", number, (20 + number, 100 * number))
    assert taken.add("life", 4, (24, 900))  # looks like the event that follows
    taken = Taken.read(taken.body())
    assert taken.begins_again("life", 2, (22, 700))
    assert taken.begins_again("life", 3, (23, 800))
    assert taken.add("life", 5, (25, 950))
    for number, place in [(1, (21, 100)), (2, (22, 200)), (3, (23, 300))]:
        assert not taken.begins_again("life", number, place), "it came before the rollback"
    for number, place in [(2, (22, 700)), (3, (23, 800)), (4, (24, 900)), (5, (25, 950))]:
        assert not taken.begins_again("life", number, place), "it has come"


@pytest.mark.parametrize("seed", range(30))
def test_what_comes_over_two_ways_around_an_unnoticed_rollback(seed: int) -> None:
    """Each way keeps the order; some events go both ways. What is in the log comes once."""
    chance = random.Random(seed)
    log: list[tuple[int, int]] = []
    ways: list[list[tuple[int, tuple[int, int]]]] = [[], []]
    seen, taken, come = Ranges(), Taken(), list[tuple[int, int]]()
    clock = 0

    def publish_some() -> None:
        nonlocal clock
        for _ in range(chance.randrange(60)):
            clock += chance.choice([0, 1, 5])
            log.append((len(log) + 1, clock))
            for way in chance.choice([[0], [0], [1], [1], [0, 1]]):
                ways[way].append((len(log), log[-1]))

    def let_come(way: int, count: int) -> None:
        nonlocal taken
        for number, place in ways[way][:count]:
            if (taken.add if seen.add(number) else taken.begins_again)("life", number, place):
                come.append(place)
        del ways[way][:count]
        if chance.random() < 0.3:
            taken = Taken.read(taken.body())

    publish_some()
    for way in (0, 1):
        let_come(way, 1_000)
    if log:
        del log[chance.randrange(len(log)) :]
    clock += 1_000
    for _ in range(4):
        publish_some()
        for way in chance.sample([0, 1, 0, 1], 4):
            let_come(way, chance.randrange(40))
    for way in (0, 1):
        let_come(way, 1_000)
    assert set(log) <= set(come), "nothing that the log has is missing"
    assert len(set(come)) == len(come), "and nothing came twice"


def test_numbers_that_are_used_again_where_one_was_missing_are_new() -> None:
    """Number 4 was on its way when the log was rolled back to its third event; nobody noticed."""
    taken = Taken()
    for number in (1, 2, 3, 5):
        assert taken.add("life", number, (10 * number, 100 * number))
    assert taken.add("life", 4, (40, 900))  # one batch, so one time
    assert taken.begins_again("life", 5, (50, 900))
    assert taken.add("life", 6, (60, 900))
    assert not taken.begins_again("life", 5, (50, 900)), "it has come"
    assert not taken.begins_again("life", 2, (20, 200)), "it has come"


def test_an_event_under_the_life_of_a_rollback_stops_no_link(tmp_path: Path) -> None:
    """That life has numbers of its own, and no event; a neighbour that is restored may claim otherwise."""

    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            [ann] = await wanting(sites, "b")
            bob = await sites.sites["a"].publisher("bob")
            sites.back_up("a")
            await publish(bob, 1)
            await sites.settle()
            await sites.restore("a")
            await sites.settle(30)
            assert await sites.heard(ann) == [{"n": 1}, ROLLBACK]
            log = sites.sites["a"].log
            life = Fields((await log.last(STATE, [keys.LIFE]))[keys.LIFE].body, "life").text("life")
            header = EventHeader("bob", "a", f"rollback {life}", 0, 5, (("b", 2),), place=(10, 20))
            number = await log.append(
                EVENTS, [Entry("p0", keys.link_detail("x"), event_body(header.body(), b'{"n":2}'))]
            )
            lane = (keys.queue_topic("@b"), keys.lane(0, 0))
            delivery = Delivery(1, (number,), 9, targets=((("b", 2),),))
            await log.append(QUEUES, [Entry(*lane, delivery.body())])
            await publish(await sites.sites["a"].publisher("bob"), 3)
            await sites.settle(30)
            assert sites.networks["b"].links["a"].trouble is None
            assert (await sites.heard(ann))[-1] == {"n": 3}

    run(main)


def test_a_delivery_that_cannot_be_read_is_no_rollback(tmp_path: Path) -> None:
    """Neither for a neighbour nor for a client: nobody knows its number."""

    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            here, there = await wanting(sites, "a", "b")
            bob = await sites.sites["a"].publisher("bob")
            await publish(bob, 1, 2)
            await sites.settle()
            log = sites.sites["a"].log
            found = await log.read(QUEUES)
            lanes = {(one.topic, one.detail) for one in found if one.topic.startswith("q-")}
            assert len(lanes) == 2
            await log.append(QUEUES, [Entry(*lane, b"no delivery") for lane in sorted(lanes)])
            await publish(bob, 3)
            await sites.settle(30)
            assert await sites.heard(here) == [{"n": 1}, {"n": 2}, ("lost", None), {"n": 3}]
            assert await sites.heard(there) == [{"n": n} for n in (1, 2, 3)]
            assert sites.routers["b"].counters.rollbacks == 0

    run(main)
