"""Routers of two releases beside each other while a site is upgraded, and one that was left behind.

The next release reads a version more. It writes that version only once no router of this release is left.
"""

from pathlib import Path
from typing import Any
from unittest import mock

from pubsub.logs import run
from tamis.pubsub import Delivered, connect
from tamis.pubsub.log import QUEUES
from tamis.pubsub.records import fields
from tamis.pubsub.router.router import Router
from tamis.pubsub.site import Site

THIS = {"VERSION": 1, "WRITTEN": 1}
NEXT = {"VERSION": 2, "WRITTEN": 1}
AFTER = {"VERSION": 2, "WRITTEN": 2}


class Released:
    """A router of some release: whatever it does, it does with that release's versions."""

    def __init__(self, site: Site, release: dict[str, int], name: str, clock: list[float]) -> None:
        self.release = release
        self.router = Router(site.log, site.settings, name=name, batch=3, clock=lambda: clock[0])

    async def step(self) -> int:
        with mock.patch.multiple(fields, **self.release):
            return await self.router.step()


async def heard(site: Site, release: dict[str, int]) -> list[Any]:
    with mock.patch.multiple(fields, **release):
        ann = await site.subscriber("ann")
        found: list[Any] = []
        while ann._buffer or await ann._fill():
            item = await ann.next()
            found.append(item.event if isinstance(item, Delivered) else item)
        await ann.acknowledge()
        return found


def test_routers_of_this_release_and_the_next_share_a_site(tmp_path: Path) -> None:
    async def main() -> None:
        async with connect(f"sqlite:{tmp_path}/site.db", partitions=4) as site:
            clock = [0.0]
            await (await site.subscriber("ann")).subscribe("all", "TRUE")
            publishers = [await site.publisher(f"bob-{n}") for n in range(6)]
            old = Released(site, THIS, "old", clock)
            new = Released(site, NEXT, "new", clock)
            sent = []

            async def publish() -> None:
                for publisher in publishers:
                    events = [{"by": publisher.name, "n": len(sent) + place} for place in range(4)]
                    await publisher.publish(events)
                    sent.extend(events)

            async def settle(*routers: Released) -> None:
                quiet = 0
                while quiet < 15:  # longer than a lease
                    clock[0] += 1
                    done = sum([await router.step() for router in routers])
                    quiet = 0 if done else quiet + 1

            await publish()
            await settle(old)
            assert len(old.router.leases) == 4
            await publish()
            await settle(old, new)
            assert (len(old.router.leases), len(new.router.leases)) == (2, 2)
            # The old one ends without a word: the new one takes over, in the middle of a batch.
            await publish()
            await old.step()
            clock[0] += 60
            await settle(new)
            assert len(new.router.leases) == 4
            # And back: the upgrade is taken back, with what the new one wrote.
            await publish()
            again = Released(site, THIS, "again", clock)
            await new.step()
            clock[0] += 60
            await settle(again)
            got = await heard(site, THIS)
            assert sorted(e["n"] for e in got) == [e["n"] for e in sent]
            for publisher in publishers:
                mine = [e["n"] for e in got if e["by"] == publisher.name]
                assert mine == sorted(mine)

    run(main)


def test_a_router_that_was_left_behind_touches_nothing_of_the_next_release(tmp_path: Path) -> None:
    async def main() -> None:
        async with connect(f"sqlite:{tmp_path}/site.db", partitions=2) as site:
            clock = [0.0]
            await (await site.subscriber("ann")).subscribe("all", "TRUE")
            bob = await site.publisher("bob")
            await bob.publish([{"n": n} for n in range(3)])
            old = Released(site, THIS, "old", clock)
            await old.step()
            await old.router.release()
            upgraded = Released(site, AFTER, "upgraded", clock)
            await bob.publish([{"n": n} for n in range(3, 6)])
            while await upgraded.step():
                pass
            # Gone without a word: the one left behind cannot read the cursors, and does not begin again.
            clock[0] += 60
            end = await site.log.end(QUEUES)
            left_behind = Released(site, THIS, "left-behind", clock)
            await bob.publish({"n": 6})
            for _ in range(4):
                clock[0] += 1
                assert await left_behind.step() == 0
            assert left_behind.router.leases == {}
            assert await site.log.end(QUEUES) == end
            back = Released(site, AFTER, "back", clock)
            for _ in range(30):  # until the signs of life of those that are gone are old
                clock[0] += 1
                await back.step()
            assert [e["n"] for e in await heard(site, AFTER)] == list(range(7))

    run(main)
