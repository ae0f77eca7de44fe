"""Any replica of a stream answers reads, and one that lags behind may know nothing yet.

Faults: an empty answer counts as the end where nobody looks again. The subscriptions of a subscriber that was
removed stay; a router that starts tells other sites that nobody here wants anything, and their events do not
come; after a rollback, what was routed before is routed again; a partition counts as empty, and nobody looks
for seconds, though a link has just stored an event in it, or some queues have its next batch already. A
client may have more subscriptions than it is granted; a subscription counts as confirmed by all sites, since
none is known.
"""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pubsub.logs import read_by_ann, run
from pubsub.several_sites import Sites
from tamis.errors import ArgumentError
from tamis.pubsub import keys
from tamis.pubsub.confirmation import confirm
from tamis.pubsub.log import EVENTS, STATE, Entry, Log
from tamis.pubsub.log.nats import NatsLog
from tamis.pubsub.log.nats_answers import Answers
from tamis.pubsub.records import Cursor, Grant
from tamis.pubsub.router.arrivals import Arrivals
from tamis.pubsub.router.event_reader import EventReader
from tamis.pubsub.router.router import Router
from tamis.pubsub.sites.network import Network
from tamis.pubsub.subscriber import Subscriber, remove_subscriber


class Lagging:
    """A log whose replicas have not heard of anything yet; those who ask for more ask the leader."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.has_caught_up = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def read(self, stream: str, *, to_end: bool = False, **how: Any) -> Any:
        if not (self.has_caught_up or to_end or how.get("topic") is None):
            return []
        return await self._log.read(stream, to_end=to_end, **how)


class OneByOne:
    """A log whose answers have room for one record only."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def read(self, stream: str, **how: Any) -> Any:
        return await self._log.read(stream, **{**how, "most": 1})


def lag(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a replica answer that has no message."""

    async def nothing(self: NatsLog, stream: str, requests: Any, *, are_batches: bool, **how: Any) -> Answers:
        answers = Answers(len(requests), are_batches, 0)
        for _ in requests:
            answers.take({"Status": "404", "Description": "No Messages"}, b"")
        return answers

    monkeypatch.setattr(NatsLog, "_direct", nothing)


def test_to_end_asks_the_leader(nats: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with read_by_ann(f"{nats.url}/lagging-read") as (site, ann):
            await ann.subscribe("more", "n > 1")
            lag(monkeypatch)
            read = partial(site.log.read, STATE, topic="sub", name="ann")
            assert await read() == []
            found, after = [], 0
            while records := await read(after=after, to_end=True):
                found += records
                after = records[-1].seq
            assert [record.detail for record in found] == ["ann.all", "ann.more"]

    run(main)


def test_all_subscriptions_of_a_removed_subscriber_go(nats: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with read_by_ann(f"{nats.url}/lagging-removal") as (site, ann):
            await ann.subscribe("more", "n > 1")
            with monkeypatch.context() as patched:
                lag(patched)
                await remove_subscriber(site.log, "ann")
            assert await ann.subscriptions() == {}
            router = Router(site.log, site.settings)
            await router.table.catch_up()
            assert len(router.table.index) == 0

    run(main)


def test_a_router_that_starts_does_not_take_back_what_its_site_wants(tmp_path: Path) -> None:
    """Until its replica has caught up, other sites go on sending."""

    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            site = sites.sites["b"]
            ann = await site.subscriber("ann")
            await ann.subscribe("all", "TRUE")
            await sites.settle()
            lagging = Lagging(site.log)
            await sites.networks["b"].close()
            router = sites.routers["b"]
            sites.networks["b"] = Network(
                lagging,
                site.settings,
                router.table,
                {"a": sites._opening("b", "a")},
                router.counters,
                clock=lambda: sites.now,
                patience_seconds=500,
            )
            await sites.settle()
            await (await sites.sites["a"].publisher("bob")).publish({"n": 1})
            await sites.settle()
            lagging.has_caught_up = True
            await sites.settle()
            assert await sites.heard(ann) == [{"n": 1}]

    run(main)


@pytest.mark.parametrize("runs", [1, 2])
def test_what_a_link_has_stored_is_routed_at_once(tmp_path: Path, runs: int) -> None:
    """The router knows that there is something, so an empty answer is none. It reads several small runs."""

    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            site = sites.sites["b"]
            ann = await site.subscriber("ann")
            await ann.subscribe("all", "TRUE")
            await sites.settle()
            near, far = await site.publisher("bob"), await sites.sites["a"].publisher("bob")
            for n in range(runs):
                await near.publish({"n": 2 * n})
                await far.publish({"n": 2 * n + 1})
                await sites.routers["a"].step()
                assert await sites.networks["b"].step() == 1
            router = sites.routers["b"]
            router._events = EventReader(Lagging(site.log), router.arrivals)
            assert await router.step() == 2 * runs
            assert await sites.heard(ann) == [{"n": n} for n in range(2 * runs)]

    run(main)


@pytest.mark.parametrize("most", [2, 100])
def test_a_batch_that_some_queues_have_is_read_to_its_end_at_once(tmp_path: Path, most: int) -> None:
    """Its events were there when it was begun."""

    async def main() -> None:
        async with read_by_ann(f"sqlite:{tmp_path}/site.db", partitions=1) as (site, _):
            numbers = await (await site.publisher("bob")).publish([{"n": n} for n in range(6)])
            reader = EventReader(Lagging(site.log), Arrivals("site"))  # type: ignore[arg-type]
            begun = Cursor("router", numbers[0], "ann", until=numbers[4])
            records, _ = await reader.next(0, begun, most)
            assert [record.seq for record in records] == numbers[1:5]

    run(main)


def test_after_a_rollback_nothing_is_routed_again(tmp_path: Path) -> None:
    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            site = sites.sites["a"]
            await (await site.publisher("bob")).publish([{"n": 1}, {"n": 2}])
            partition, *_ = [n for n in range(2) if await site.log.read(EVENTS, topic=f"p{n}")]
            end = await site.log.end(EVENTS)
            time = max(record.time for record in await site.log.read(EVENTS))
            router = Router(Lagging(site.log), site.settings)
            valid = await router._still_valid(partition, Cursor("r", end + 5, "", time, "other"))
            assert valid.position == end

    run(main)


def test_a_client_counts_its_subscriptions_where_a_replica_lags(tmp_path: Path) -> None:
    async def main() -> None:
        async with read_by_ann(f"sqlite:{tmp_path}/site.db") as (site, _):
            await site.log.append(STATE, [Entry(keys.GRANT, "ann", Grant(subscriptions=1).body())])
            ann = Subscriber(Lagging(site.log), site.settings, "ann")
            with pytest.raises(ArgumentError, match="may have 1 subscriptions, these would be 2"):
                await ann.subscribe("more", "n > 1")

    run(main)


def test_sites_that_a_lagging_replica_does_not_know_are_not_left_out(tmp_path: Path) -> None:
    """Some are known by their links, some by what they have confirmed; an answer may not have all of them."""

    async def main() -> None:
        async with Sites(tmp_path, [("a", "b"), ("b", "c"), ("c", "d")]) as sites:
            site = sites.sites["a"]
            ann = await site.subscriber("ann")
            await sites.settle()
            await ann.subscribe("all", "TRUE")
            await sites.settle()
            record = (await site.log.last(STATE, [keys.subscription_key("ann", "all")])).popitem()[1]
            for log in (Lagging(site.log), OneByOne(site.log)):
                said = await confirm(log, "a", record.seq, 0)
                assert (said.confirmed, said.missing) == (("a", "b", "c", "d"), ())
                said = await confirm(log, "a", record.seq + 10**6, 0)
                assert (said.confirmed, said.missing) == (("a",), ("b", "c", "d"))

    run(main)
