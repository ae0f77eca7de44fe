"""What a neighbour makes up about other sites: it is corrected by them, limited, and can be forbidden.

Faults: a neighbour says that another site wants nothing any more, and acknowledged events do not arrive
there, for ever, also after it has stopped; it says that a site wants what it does not; it uses a number that
nobody can exceed; it speaks of sites that do not lie behind it; it makes up sites and interest until memory
is full; what has no room is left out, and the events with it; a mark outlives its reason.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from pubsub.logs import run
from pubsub.several_sites import Sites
from tamis.pubsub import keys
from tamis.pubsub.log import STATE, Entry
from tamis.pubsub.records import MOST_NUMBER
from tamis.pubsub.service.config import ConfigError, config_of
from tamis.pubsub.sites.advertised import Advertised
from tamis.pubsub.sites.interest import InterestEntry
from tamis.pubsub.sites.told import HIGHEST, Trust
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
