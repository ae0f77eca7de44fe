"""What a neighbour makes up about other sites: it is corrected by them, limited, and can be forbidden.

Faults: a neighbour says that another site wants nothing any more, and acknowledged events do not arrive
there, for ever, also after it has stopped; it says that a site wants what it does not; it uses a number that
nobody can exceed; it speaks of sites that do not lie behind it; it makes up sites and interest until memory
is full; what has no room is left out, and the events with it; a mark outlives its reason; a site that exceeds
a lie is not believed itself from then on, or for other interest either; corrections fill the memory; what is
made up leaves no room for the links of honest sites; a mark that nobody has made stays for ever; a mark that
is needed behind a site without room does not get there.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from pubsub.logs import run
from pubsub.several_sites import Sites
from seeds import first_of
from tamis.pubsub import keys
from tamis.pubsub.log import STATE, Entry
from tamis.pubsub.records import MOST_NUMBER
from tamis.pubsub.service.config import ConfigError, config_of
from tamis.pubsub.sites.advertised import Advertised
from tamis.pubsub.sites.interest import InterestEntry
from tamis.pubsub.sites.told import HIGHEST, NOBODY_AFTER, Trust
from tamis.pubsub.sites.topology import SiteLinks

LINE = [("a", "b"), ("b", "c")]
LATER = 10**16 // 4
"""A number beyond those that honest sites use today."""


async def known_at(sites: Sites, site: str, topic: str = keys.INTEREST) -> dict[str, Any]:
    table = sites.routers[site].table
    await table.catch_up()
    return {detail: json.loads(record.body) for detail, record in table.others.of(topic).items()}


def live(entries: dict[str, Any]) -> dict[str, str]:
    return {key: entry["expression"] for key, entry in entries.items() if entry["expression"] is not None}


@pytest.mark.parametrize("is_honest_again", [False, True])
def test_a_site_corrects_what_a_neighbour_says_of_it(tmp_path: Path, is_honest_again: bool) -> None:
    async def main() -> None:
        async with Sites(tmp_path, LINE) as sites:
            carl = await sites.sites["c"].subscriber("carl")
            await carl.subscribe("s", "n < 10")
            await (await sites.sites["c"].publisher("dora")).advertise("x", "n > 100")
            await sites.settle()
            lies = [
                Entry(keys.INTEREST, "c.carl=2Es", InterestEntry(LATER, None).body()),
                Entry(keys.INTEREST, "c.evil", InterestEntry(LATER, "n = 77").body()),
                Entry(keys.LINKS, "c", SiteLinks(LATER, ("oslo",), ("oslo",)).body()),
                Entry(keys.ADVERTISED, "c", Advertised(LATER, ("FALSE",)).body()),
                Entry(keys.HEARD, "a.c", json.dumps({"v": 1, "k": LATER}).encode()),
            ]
            [key] = [key for key in await known_at(sites, "b") if key.startswith("c.")]
            lies[0].detail = key
            await sites.sites["b"].log.append(STATE, lies)
            await sites.settle()
            for site in sites.names:
                assert live(await known_at(sites, site)) == {key: "n < 10"}
                assert (await known_at(sites, site, keys.LINKS))["c"]["working"] == ["b"]
                assert (await known_at(sites, site, keys.ADVERTISED))["c"]["expressions"] == ["n > 100"]
            if is_honest_again:  # what was said before counts as before
                await carl.subscribe("s", "n < 20")
                await sites.settle()
            await (await sites.sites["a"].publisher("bob")).publish([{"n": 77}, {"n": 7}, {"n": 17}])
            await sites.settle()
            assert await sites.heard(carl) == [{"n": 7}, {"n": 17}][: 1 + is_honest_again]

    run(main)


def test_a_number_that_nobody_can_exceed_is_not_believed(tmp_path: Path) -> None:
    async def main() -> None:
        async with Sites(tmp_path, LINE) as sites:
            await sites.settle()
            lies = [
                Entry(keys.INTEREST, "c.evil", InterestEntry(MOST_NUMBER, "n = 7").body()),
                Entry(keys.INTEREST, "z.evil", InterestEntry(HIGHEST + 1, "n = 7").body()),
            ]
            await sites.sites["b"].log.append(STATE, lies)
            await sites.settle()
            assert live(await known_at(sites, "a")) == {}
            assert sites.routers["a"].counters.disbelieved == 2
            assert sites.networks["a"].links["b"].trouble is None

    run(main)


def test_a_neighbour_speaks_of_the_sites_behind_it_alone(tmp_path: Path) -> None:
    async def main() -> None:
        trust = Trust({"b": ("c",), "a": ("b", "c"), "c": ("a", "b")})
        async with Sites(tmp_path, LINE, trust=trust) as sites:
            carl = await sites.sites["c"].subscriber("carl")
            await carl.subscribe("s", "n < 10")
            lies = [Entry(keys.INTEREST, "z.evil", InterestEntry(1, "TRUE").body())]
            lies += [Entry(keys.LINKS, "z", SiteLinks(1, ("a",)).body())]
            lies += [
                Entry(keys.HEARD, "a.z", b'{"v":1,"k":5}'),
                Entry(keys.ADVERTISED, "z", b'{"v":1,"k":5}'),
            ]
            await sites.sites["b"].log.append(STATE, lies)
            await sites.settle()
            assert "z" not in sites.routers["a"].table.sites
            for topic in (keys.INTEREST, keys.LINKS, keys.HEARD, keys.ADVERTISED):
                assert not any("z" in key.split(".") for key in await known_at(sites, "a", topic)), topic
            await (await sites.sites["a"].publisher("bob")).publish({"n": 7})
            await sites.settle()
            assert await sites.heard(carl) == [{"n": 7}]

    run(main)


def test_what_has_no_room_counts_as_everything(tmp_path: Path) -> None:
    async def main() -> None:
        trust = Trust(most_bytes=60_000)
        async with Sites(tmp_path, LINE, trust=trust) as sites:
            await sites.settle()
            made_up = [Entry(keys.INTEREST, f"z.e{n}", InterestEntry(1, "n = 1").body()) for n in range(900)]
            await sites.sites["b"].log.append(STATE, made_up)
            await sites.settle()
            others = sites.routers["a"].table.others
            assert others.size(keys.INTEREST) < 62_000
            assert live(await known_at(sites, "a"))["z.=2Aa"] == "TRUE"
            carl = await sites.sites["c"].subscriber("carl")
            for n in range(3):
                await carl.subscribe(f"s{n}", f"n = {n}")
                await sites.settle()
            assert live(await known_at(sites, "a"))["c.=2Aa"] == "TRUE"
            await (await sites.sites["a"].publisher("bob")).publish([{"n": n} for n in range(4)])
            await sites.settle()
            assert await sites.heard(carl) == [{"n": 0}, {"n": 1}, {"n": 2}]
            size = others.size(keys.INTEREST)
            for _ in range(3):
                await carl.subscribe("s0", "n = 0 OR n = 9")
                await sites.settle()
            assert others.size(keys.INTEREST) <= size + 1_000
            # More room, and another start: marks are taken back when all was looked at.
            await carl.acknowledge()
            sites._network["trust"] = Trust()
            for name in ("a", "b", "c"):
                await sites.stop(name)
                await sites.start(name)
            await sites.settle()
            for name in sites.names:
                assert not any("=2A" in key for key in live(await known_at(sites, name))), name
            assert len(await known_at(sites, "a")) > 900
            carl = await sites.sites["c"].subscriber("carl")
            await (await sites.sites["a"].publisher("bob")).publish([{"n": 2}, {"n": 5}, {"n": 9}])
            await sites.settle()
            assert await sites.heard(carl) == [{"n": 2}, {"n": 9}]

    run(main)


def test_sites_have_a_number(tmp_path: Path) -> None:
    async def main() -> None:
        async with Sites(tmp_path, LINE, trust=Trust(most_sites=10)) as sites:
            await sites.settle()
            made_up = [Entry(keys.LINKS, f"z{n}", SiteLinks(1, ("a",)).body()) for n in range(100)]
            made_up += [Entry(keys.INTEREST, f"y{n}.s", InterestEntry(1, "TRUE").body()) for n in range(100)]
            made_up += [Entry(keys.APPLIED, f"x{n}.b", b'{"v":1,"k":1,"position":1}') for n in range(100)]
            await sites.sites["b"].log.append(STATE, made_up)
            await sites.settle()
            told = [
                name
                for topic in (keys.LINKS, keys.INTEREST, keys.APPLIED)
                for key in await known_at(sites, "a", topic)
                for name in key.split(".")
            ]
            assert len(set(told)) <= 11
            carl = await sites.sites["c"].subscriber("carl")
            await carl.subscribe("s", "n < 10")
            await sites.settle()
            await (await sites.sites["a"].publisher("bob")).publish({"n": 7})
            await sites.settle()
            assert await sites.heard(carl) == [{"n": 7}]

    run(main)


@pytest.mark.parametrize("beyond", first_of([60_000_000, -1, 0, 1, 2], 1))
@pytest.mark.parametrize("what", ["c.evil", "c.carl=2Es"])
def test_no_number_makes_others_deaf_for_a_site(tmp_path: Path, what: str, beyond: int) -> None:
    """A lie at the limit of what is believed, or beyond it, and then a new subscription."""

    async def main() -> None:
        async with Sites(tmp_path, LINE) as sites:
            carl = await sites.sites["c"].subscriber("carl")
            await carl.subscribe("s0", "n = 0")
            await sites.settle()
            number = sites.networks["a"]._told.latest + beyond
            lies = [Entry(keys.INTEREST, what, InterestEntry(number, None).body())]
            lies += [Entry(keys.INTEREST, "c.evil2", InterestEntry(number, "n = 77").body())]
            lies += [Entry(keys.INTEREST, "c.evil3", InterestEntry(HIGHEST + 1, "n = 77").body())]
            lies += [Entry(keys.LINKS, "c", SiteLinks(number, ("oslo",), ("oslo",)).body())]
            await sites.sites["b"].log.append(STATE, lies)
            await sites.settle()
            await carl.subscribe("s", "n = 7")
            await sites.settle()
            await (await sites.sites["a"].publisher("bob")).publish([{"n": 7}, {"n": 0}, {"n": 77}])
            await sites.settle()
            assert await sites.heard(carl) == [{"n": 7}, {"n": 0}]

    run(main)


def test_what_came_too_early_is_looked_at_again(tmp_path: Path) -> None:
    """A site with a clock that is a bit behind refuses what others believe, but not for ever."""

    async def main() -> None:
        async with Sites(tmp_path, LINE) as sites:
            await sites.settle()
            table = sites.routers["a"].table
            number = sites.networks["a"]._told.latest + 60_000_000
            said = [Entry(keys.INTEREST, "z.s", InterestEntry(number, "n = 7").body())]
            said += [Entry(keys.INTEREST, "z.never", InterestEntry(HIGHEST + 1, "n = 7").body())]
            await sites.sites["b"].log.append(STATE, said)
            await sites.settle(4)
            assert live(await known_at(sites, "a")) == {}
            refused = sites.routers["a"].counters.disbelieved
            await sites.settle(4)
            assert sites.routers["a"].counters.disbelieved == refused
            for name in ("a", "b"):
                sites.routers[name].table.time += 61_000_000
            await sites.settle(4)
            assert live(await known_at(sites, "a")) == {"z.s": "n = 7"}
            # Whoever lets records come too early again and again does not have all looked at each time.
            refused = sites.routers["a"].counters.disbelieved
            number = sites.networks["a"]._told.latest + 60_000_000
            early = [Entry(keys.INTEREST, "z.t", InterestEntry(number, "n = 7").body())]
            await sites.sites["b"].log.append(STATE, early)
            await sites.settle(4)
            table.time += 61_000_000
            await sites.settle(4)
            assert sites.routers["a"].counters.disbelieved == refused + 1

    run(main)


def test_corrections_have_room_or_are_left_out(tmp_path: Path) -> None:
    async def main() -> None:
        trust = Trust(most_bytes=20_000)
        async with Sites(tmp_path, LINE, trust=trust) as sites:
            carl = await sites.sites["c"].subscriber("carl")
            await carl.subscribe("s0", "n = 0")
            await sites.settle(4)
            [key] = [key for key in await known_at(sites, "c") if key.startswith("c.")]
            for part in range(2):
                made_up = [
                    Entry(keys.INTEREST, f"c.e{part}x{n}", InterestEntry(LATER, "n = 1").body())
                    for n in range(200)
                ]
                await sites.sites["b"].log.append(STATE, made_up)
                await sites.settle(4)
                assert sites.routers["c"].table.others.size(keys.INTEREST) < 22_000
            assert sites.routers["c"].counters.disbelieved > 300
            # Without room for its correction: that what it will want later is gone.
            later = key.replace("s0", "s1")
            assert later != key
            gone = [Entry(keys.INTEREST, each, InterestEntry(LATER, None).body()) for each in (key, later)]
            await sites.sites["b"].log.append(STATE, gone)
            await sites.settle(4)
            await carl.subscribe("s1", "n = 1")
            await sites.settle(4)
            sites._network["trust"] = Trust()
            for name in ("a", "b"):
                await sites.stop(name)
                await sites.start(name)
            await sites.settle()
            assert {k: v for k, v in live(await known_at(sites, "a")).items() if k in (key, later)} == {
                key: "n = 0",
                later: "n = 1",
            }

    run(main)


def test_own_interest_takes_no_room(tmp_path: Path) -> None:
    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")], trust=Trust(most_bytes=20_000)) as sites:
            ann = await sites.sites["a"].subscriber("ann")
            await ann.subscribe_many({f"s{n}": f"n = {n}" for n in range(100)})
            await sites.settle(4)
            bert = await sites.sites["b"].subscriber("bert")
            await bert.subscribe("s", "m = 1")
            await sites.settle(4)
            assert {k: v for k, v in live(await known_at(sites, "a")).items() if k[0] == "b"} == {
                "b.bert=2Es": "m = 1"
            }

    run(main)


def test_links_have_room(tmp_path: Path) -> None:
    async def main() -> None:
        sites = Sites(tmp_path, [("a", "b"), ("b", "c"), ("c", "d")], trust=Trust(most_bytes=20_000))
        async with sites:
            await sites.stop("d")
            await sites.settle(4)
            for size in (60, 1):  # large ones, then small ones: no byte is left
                made_up = [
                    Entry(keys.INTEREST, f"z.e{size}x{n}", InterestEntry(1, "n = " + "1" * size).body())
                    for n in range(100)
                ]
                await sites.sites["b"].log.append(STATE, made_up)
                await sites.settle(4)
            await sites.start("d")
            await sites.settle()
            links = await known_at(sites, "a", keys.LINKS)
            assert links["d"]["working"] == ["c"]
            assert set(links["c"]["working"]) == {"b", "d"}
            dan = await sites.sites["d"].subscriber("dan")
            await dan.subscribe("s", "n = 7")
            await sites.settle()
            await (await sites.sites["a"].publisher("bob")).publish({"n": 7})
            await sites.settle()
            assert await sites.heard(dan) == [{"n": 7}]
            huge = Entry(keys.LINKS, "c", SiteLinks(LATER, ("b",), ("x" * 20_000,)).body())
            await sites.sites["b"].log.append(STATE, [huge])
            await sites.networks["a"].step()
            assert (await known_at(sites, "a", keys.LINKS))["c"]["k"] < LATER

    run(main)


@pytest.mark.parametrize("lie", [None, InterestEntry(LATER, None)])
def test_sites_behind_one_without_room_send_everything(tmp_path: Path, lie: InterestEntry | None) -> None:
    """The relay cannot tell all that is wanted behind it: its mark must get through, also after a lie."""

    async def main() -> None:
        edges = [*LINE, ("c", "d")]
        async with Sites(tmp_path, edges) as sites:
            await sites.stop("c")
            sites._network["trust"] = Trust(most_bytes=5_000)
            await sites.start("c")
            await sites.settle(4)
            if lie is not None:
                await sites.sites["b"].log.append(STATE, [Entry(keys.INTEREST, "d.=2Ac", lie.body())])
                await sites.settle(4)
            dora = await sites.sites["d"].subscriber("dora")
            await dora.subscribe_many({f"s{n}": f"n = {n}" for n in range(20)})
            await sites.settle()
            assert live(await known_at(sites, "a"))["d.=2Ac"] == "TRUE"
            if lie is not None:
                lies = [Entry(keys.INTEREST, "d.=2Ac", InterestEntry(LATER + 9, None).body())]
                await sites.sites["b"].log.append(STATE, lies)
                await sites.settle()
            await (await sites.sites["a"].publisher("bob")).publish([{"n": n} for n in range(20)])
            await sites.settle()
            assert await sites.heard(dora) == [{"n": n} for n in range(20)]

    run(main)


def test_marks_that_nobody_has_made_are_taken_back(tmp_path: Path) -> None:
    async def main() -> None:
        async with Sites(tmp_path, LINE) as sites:
            carl = await sites.sites["c"].subscriber("carl")
            await carl.subscribe("s", "n < 10")
            await sites.settle(4)
            for number in (LATER, LATER + 1_000):
                marks = [
                    Entry(keys.INTEREST, f"c.=2A{maker}", InterestEntry(number, "TRUE").body())
                    for maker in ("a", "c", "zzz")
                ]
                await sites.sites["b"].log.append(STATE, marks)
                await sites.settle(4)
                found = live(await known_at(sites, "a"))
                assert found == {"c.carl=2Es": "n < 10", "c.=2Azzz": "TRUE"}
                sites.routers["c"].table.time += NOBODY_AFTER
                await sites.settle(4)
                assert live(await known_at(sites, "a")) == {"c.carl=2Es": "n < 10"}

    run(main)


def test_a_subscriber_with_a_star_is_no_mark(tmp_path: Path) -> None:
    async def main() -> None:
        trust = Trust({"b": ("c",), "a": ("b", "c"), "c": ("a", "b")})
        async with Sites(tmp_path, LINE, trust=trust) as sites:
            star = await sites.sites["c"].subscriber("*a")
            await star.subscribe("s", "n < 10")
            await sites.settle(4)
            await (await sites.sites["a"].publisher("bob")).publish({"n": 7})
            await sites.settle(4)
            assert await sites.heard(star) == [{"n": 7}]

    run(main)


def test_the_config_of_relays() -> None:
    base = {"log": "sqlite:x.db", "site": "a", "neighbours": {"b": "sqlite:b.db"}}
    assert config_of({**base, "relays": {"b": ["c"]}}).relays == {"b": ["c"]}
    for wrong in (
        {"relays": {"x": ["c"]}},
        {"relays": {"b": "c"}},
        {"relays": {"b": [""]}},
        {"told_bytes": 0},
    ):
        with pytest.raises(ConfigError):
            config_of({**base, **wrong})
