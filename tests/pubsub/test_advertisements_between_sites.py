"""Sites that advertise: others tell less, and nothing is missed while advertisements come, change and go.

Faults: an event that no advertisement allows, one that is published before others have heard of its
advertisement, a site that never hears, an advertisement that cannot be read, the last one withdrawn.
"""

import random
from pathlib import Path
from typing import Any

import pytest

import tamis
from pubsub.logs import run
from pubsub.several_sites import Sites
from tamis.pubsub import keys
from tamis.pubsub.log import EVENTS, STATE, Entry
from tamis.pubsub.service.config import ConfigError, config_of
from tamis.pubsub.sites.interest import Generalising, InterestEntry

LINE = [("a", "b"), ("b", "c")]
CYCLE = [("a", "b"), ("b", "c"), ("c", "a")]


async def told(sites: Sites, at: str, of: str) -> set[str]:
    """What one site knows of another's interest."""
    records = await sites.sites[at].log.read(STATE, topic=keys.INTEREST, most=10_000)
    entries = [InterestEntry.read(r.body) for r in records if r.detail.startswith(f"{of}.")]
    return {entry.expression for entry in entries if entry.expression is not None}


async def stored(sites: Sites, at: str) -> int:
    """How many events have come to a site, its own included."""
    return len(
        [r for n in range(2) for r in await sites.sites[at].log.read(EVENTS, topic=f"p{n}", most=10_000)]
    )


@pytest.mark.parametrize("edges", [LINE, CYCLE], ids=["line", "cycle"])
def test_only_what_overlaps_is_told_and_everything_arrives(tmp_path: Path, edges: Any) -> None:
    async def main() -> None:
        async with Sites(tmp_path, edges) as sites:
            ann = await sites.sites["c"].subscriber("ann")
            await ann.subscribe_many({"books": "kind = 'book' AND price < 9", "cars": "kind = 'car'"})
            bob = await sites.sites["a"].publisher("bob")
            await bob.advertise("books", "kind = 'book'")
            for name in "bc":  # nobody publishes there
                await (await sites.sites[name].publisher("nobody")).advertise("none", "FALSE")
            await sites.settle()
            assert await told(sites, "a", "c") == {"kind = 'book' AND price < 9"}
            before = await stored(sites, "c")
            await bob.publish([{"kind": "book", "price": n} for n in range(8, 12)])
            await sites.settle()
            assert [e["price"] for e in await sites.heard(ann)] == [8]
            assert await stored(sites, "c") == before + 1, "the interest decides"
            # An event that breaks the promise goes everywhere, and is heard.
            await bob.publish({"kind": "car", "price": 1})
            await sites.settle()
            assert [e["kind"] for e in await sites.heard(ann)] == ["car"]
            # Another advertisement: what is published at once, before anybody knows, is heard.
            await bob.advertise("cars", "kind = 'car'")
            await bob.publish({"kind": "car", "price": 2})
            await sites.settle()
            assert [e["price"] for e in await sites.heard(ann)] == [2]
            assert await told(sites, "a", "c") == {"kind = 'book' AND price < 9", "kind = 'car'"}
            # All are withdrawn: anything may come again.
            await bob.withdraw("books")
            await bob.withdraw("cars")
            await bob.publish({"kind": "book", "price": 3})
            await sites.settle()
            assert [e["price"] for e in await sites.heard(ann)] == [3]
            assert len(await told(sites, "a", "c")) == 2

    run(main)


def test_a_site_that_has_not_heard_gets_everything(tmp_path: Path) -> None:
    async def main() -> None:
        async with Sites(tmp_path, LINE) as sites:
            ann = await sites.sites["c"].subscriber("ann")
            await ann.subscribe("x", "n = 1")
            await sites.settle()
            await sites.stop("c")
            bob = await sites.sites["a"].publisher("bob")
            await bob.advertise("some", "n < 5")
            await sites.settle()
            await bob.publish([{"n": n} for n in range(3)])
            await sites.settle()
            await sites.start("c")
            await sites.settle()
            again = await sites.sites["c"].subscriber("ann")
            assert [e["n"] for e in await sites.heard(again)] == [1]

    run(main)


def test_what_cannot_be_read_is_anything_for_others_and_nothing_for_its_own_site(tmp_path: Path) -> None:
    async def main() -> None:
        async with Sites(tmp_path, LINE) as sites:
            ann = await sites.sites["c"].subscriber("ann")
            await ann.subscribe("x", "n = 1")
            await sites.settle()
            unreadable = b'{"v":99,"k":9000000000000000,"words":"n FROBS 7"}'
            for name in "ab":
                await sites.sites[name].log.append(STATE, [Entry(keys.ADVERTISED, name, unreadable)])
            await (await sites.sites["a"].publisher("bob")).publish([{"n": 1}, {"n": 2}])
            await sites.settle()
            assert await told(sites, "a", "c") == {"n = 1"}
            assert [e["n"] for e in await sites.heard(ann)] == [1]

    run(main)


@pytest.mark.parametrize("seed", [1, 3])
def test_random_advertisements_subscriptions_and_events_in_any_order(tmp_path: Path, seed: int) -> None:
    """Whoever's subscription was known before an event was published hears it, as without advertisements."""
    chance = random.Random(seed)
    how = Generalising(pruning=chance.choice([0.0, 0.5]), advertisement_prunings=chance.choice([0, 2]))

    async def main() -> None:
        async with Sites(tmp_path, chance.choice([LINE, CYCLE]), how) as sites:
            readers, wanted, publishers, published = {}, {}, {}, []
            for name in sites.names:
                readers[name] = await sites.sites[name].subscriber("ann")
                texts = [f"x = {chance.randrange(4)} AND y > {chance.randrange(4)}" for _ in range(2)]
                wanted[name] = texts
                await readers[name].subscribe_many({f"s{n}": text for n, text in enumerate(texts)})
                publishers[name] = await sites.sites[name].publisher("bob")
            await sites.settle()
            for serial in range(40):
                name = chance.choice(sites.names)
                match chance.randrange(5):
                    case 0:
                        text = f"x <= {chance.randrange(4)} AND y >= {chance.randrange(3)}"
                        await publishers[name].advertise(f"a{chance.randrange(2)}", text)
                    case 1:
                        await publishers[name].withdraw(f"a{chance.randrange(2)}")
                    case 2:
                        await sites.step()
                    case _:
                        event = {"x": chance.randrange(4), "y": chance.randrange(5), "n": serial, "by": name}
                        await publishers[name].publish(event)
                        published.append(event)
            await sites.settle()
            for name, reader in readers.items():
                parsed = [tamis.parse(text) for text in wanted[name]]
                right = [e for e in published if any(one.evaluate(e) is True for one in parsed)]
                got = await sites.heard(reader)
                assert sorted(e["n"] for e in got) == [e["n"] for e in right], name
                for by in sites.names:
                    assert [e["n"] for e in got if e["by"] == by] == [e["n"] for e in right if e["by"] == by]

    run(main)


@pytest.mark.parametrize(
    "how",
    [Generalising(pruning=1.0), Generalising(pruning=0.6, measure="memory"), Generalising(replacement=1.0)],
)
def test_what_is_told_becomes_less(tmp_path: Path, how: Generalising) -> None:
    """Fewer different predicates reach other sites, and no event is missed."""
    plain, less = tmp_path / "plain", tmp_path / "less"

    async def main() -> None:
        sizes = []
        for folder, generalising in ((plain, None), (less, how)):
            folder.mkdir()
            async with Sites(folder, LINE, generalising) as sites:
                ann = await sites.sites["c"].subscriber("ann")
                await ann.subscribe_many(
                    {f"s{n}": f"k = {n % 5} AND price < {n} AND (m > {n % 7} OR z)" for n in range(40)}
                )
                await sites.settle()
                known = await told(sites, "a", "c")
                used = {
                    leaf for text in known for leaf in text.replace("(", "").replace(")", "").split(" AND ")
                }
                sizes.append((sum(map(len, known)), len(used)))
                events = [{"k": n % 6, "price": n, "m": n % 9, "z": n % 2 == 0} for n in range(60)]
                await (await sites.sites["a"].publisher("bob")).publish(events)
                await sites.settle()
                heard = await sites.heard(ann)
                right = [
                    e
                    for e in events
                    if any(
                        e["k"] == n % 5 and e["price"] < n and (e["m"] > n % 7 or e["z"]) for n in range(40)
                    )
                ]
                assert heard == right
        assert sizes[1] < sizes[0]

    run(main)


def test_the_automatic_cut_off_moves_with_what_comes(tmp_path: Path) -> None:
    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")], Generalising(pruning="auto", table_weight=5.0)) as sites:
            ann = await sites.sites["b"].subscriber("ann")
            await ann.subscribe_many({f"s{n}": f"k = {n} AND price < 50 AND m = {n % 3}" for n in range(20)})
            await sites.settle()
            before = await told(sites, "a", "b")
            bob = await sites.sites["a"].publisher("bob")
            sent = []
            for _ in range(6):
                events = [{"k": n % 20, "price": n % 60, "m": (n % 20) % 3} for n in range(300)]
                await bob.publish(events)
                sent += events
                await sites.settle(4)
            assert sites.networks["b"]._interest.share > 0  # type: ignore[union-attr]
            after = await told(sites, "a", "b")
            assert sum(map(len, after)) < sum(map(len, before))
            assert await sites.heard(ann) == [e for e in sent if e["price"] < 50]

    run(main)


def test_the_config_says_how_interest_is_generalised() -> None:
    how = {"pruning": "auto", "replacement": 0.5, "measure": "combined", "advertisements": False}
    made = config_of({"log": "sqlite:x", "interest": how}).interest
    assert made == Generalising(pruning="auto", replacement=0.5, measure="combined", advertisements=False)
    for wrong in ({"pruning": 2}, {"pruning": "much"}, {"replacement": True}, {"table_weight": -1}):
        with pytest.raises(ConfigError, match=f"interest.{next(iter(wrong))}"):
            config_of({"log": "sqlite:x", "interest": wrong})
