"""One site: publishers, routers and subscribers on a log, both implementations.

The faults that are tried here: the same name twice, a lost lease, redelivery, a crash between output and
acknowledgement, a lost answer, an unparsable subscription, hostile bytes, an event for more subscribers than
one append takes, clients that take each other's queue, a rolled-back log.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import tamis
from pubsub.backups import back_up, restore
from pubsub.logs import heard, read_by_ann, run
from tamis.pubsub import keys
from tamis.pubsub.log import EVENTS, QUEUES, STATE, Entry, LogFullError, LogUnavailableError, RolledBackError
from tamis.pubsub.records import Cursor, DeadLetter, Delivery, Grant, QueueLimits, Subscription, write
from tamis.pubsub.router.router import Router
from tamis.pubsub.site import Site, connect
from tamis.pubsub.subscriber import Gap, TakenOverError


def router_of(site: Site, **more: Any) -> Router:
    return Router(site.log, site.settings, **more)


async def drain(router: Router) -> int:
    """Route all that is there."""
    routed = quiet = 0
    while quiet < 2:  # a router that finds that it lost a partition looks again
        more = await router.step()
        routed += more
        quiet = 0 if more else quiet + 1
    return routed


def test_each_subscriber_gets_what_it_wants_in_order(log_url: str) -> None:
    async def main() -> None:
        async with connect(log_url) as site:
            ann, eve = await site.subscriber("ann"), await site.subscriber("eve")
            await ann.subscribe("cheap", "price < 15")
            await ann.subscribe("emma", "title = 'Emma'", priority=8)
            await eve.subscribe("dear", "price >= 15")
            bob = await site.publisher("bob")
            numbers = await bob.publish([{"price": n, "title": "Emma" if n % 3 else "x"} for n in range(30)])
            assert numbers == list(range(1, 31))
            router = router_of(site)
            assert await drain(router) == 30
            got = await heard(ann)
            assert [event["price"] for event in got if event["title"] == "Emma"] == [
                n for n in range(30) if n % 3
            ]
            assert sorted(event["price"] for event in got) == [n for n in range(30) if n < 15 or n % 3]
            assert [event["price"] for event in await heard(eve)] == list(range(15, 30))
            assert await heard(eve) == []
            await eve.unsubscribe("dear")
            await bob.publish({"price": 99})
            await drain(router)
            assert await heard(eve) == []
            assert await ann.subscriptions() == {"cheap": "price < 15", "emma": "title = 'Emma'"}

    run(main)


def test_what_was_acknowledged_is_not_delivered_again(log_url: str) -> None:
    async def main() -> None:
        async with read_by_ann(log_url) as (site, ann):
            await (await site.publisher("bob")).publish([{"n": n} for n in range(10)])
            await drain(router_of(site))
            items = [await ann.next(10) for _ in range(7)]
            await ann.acknowledge(items[3])
            again = await site.subscriber("ann")
            assert [event["n"] for event in await heard(again)] == [4, 5, 6, 7, 8, 9]
            await again.acknowledge()
            third = await site.subscriber("ann")
            assert await heard(third) == []

    run(main)


def test_two_publishers_of_one_name_do_not_collide(log_url: str) -> None:
    async def main() -> None:
        async with read_by_ann(log_url) as (site, ann):
            one, two = await site.publisher("bob"), await site.publisher("bob")
            for n in range(5):
                await one.publish({"from": 1, "n": n})
                await two.publish({"from": 2, "n": n})
            await drain(router_of(site))
            got = await heard(ann)
            assert len(got) == 10
            for sender in (1, 2):
                assert [event["n"] for event in got if event["from"] == sender] == list(range(5))

    run(main)


def test_a_second_client_of_one_name_takes_the_queue_over(log_url: str) -> None:
    async def main() -> None:
        async with connect(log_url) as site:
            first = await site.subscriber("ann")
            await first.subscribe("all", "TRUE")
            await (await site.publisher("bob")).publish([{"n": 1}, {"n": 2}])
            await drain(router_of(site))
            item = await first.next(10)
            second = await site.subscriber("ann")
            with pytest.raises(TakenOverError, match="a name belongs to one client"):
                await first.acknowledge(item)
            assert len(await heard(second)) == 2

    run(main)


def test_a_router_that_lost_its_lease_is_fenced_off(log_url: str) -> None:
    """Paused while it holds a batch, and somebody else goes on: nothing twice, nothing lost."""

    async def main() -> None:
        async with read_by_ann(log_url, partitions=1) as (site, ann):
            bob = await site.publisher("bob")
            await bob.publish([{"n": n} for n in range(5)])
            clock = [0.0]
            old = router_of(site, clock=lambda: clock[0], lease_seconds=10, batch=2)
            assert await old.step() == 2
            new = router_of(site, clock=lambda: clock[0], lease_seconds=10)
            assert await new.step() == 0, "the old one is alive"
            clock[0] = 11.0
            assert await new.step() == 3
            [lease] = list(old.leases.values())
            assert await old.route(lease) == 0
            await bob.publish({"n": 5})
            assert await old.route(lease) == 0 if lease.partition in old.leases else True
            assert await new.step() == 1
            assert old.counters.leases_lost <= 1
            assert [event["n"] for event in await heard(ann)] == [0, 1, 2, 3, 4, 5]

    run(main)


def test_a_zombie_with_a_batch_in_hand_is_refused(log_url: str) -> None:
    async def main() -> None:
        async with read_by_ann(log_url, partitions=1) as (site, ann):
            await (await site.publisher("bob")).publish([{"n": n} for n in range(3)])
            clock = [0.0]
            old = router_of(site, clock=lambda: clock[0])
            await old.table.catch_up()
            await old._sign()
            await old._share()
            new = router_of(site, clock=lambda: clock[0])
            await new.table.catch_up()
            await new._sign()
            clock[0] = 100.0
            assert await new.step() == 3
            [lease] = old.leases.values()
            assert await old.route(lease) == 0
            assert old.counters.leases_lost == 1
            assert old.leases == {}
            assert [event["n"] for event in await heard(ann)] == [0, 1, 2]

    run(main)


def test_routers_share_the_partitions_and_give_them_back(log_url: str) -> None:
    async def main() -> None:
        async with connect(log_url, partitions=4) as site:
            clock = [0.0]
            routers = [router_of(site, clock=lambda: clock[0]) for _ in range(3)]
            for _ in range(6):
                for router in routers:
                    await router.step()
            assert sorted(len(router.leases) for router in routers) == [0, 2, 2] or sorted(
                len(router.leases) for router in routers
            ) == [1, 1, 2]
            held = [partition for router in routers for partition in router.leases]
            assert sorted(held) == [0, 1, 2, 3]
            await routers[0].release()
            for _ in range(4):
                for router in routers[1:]:
                    await router.step()
            assert sorted(p for router in routers[1:] for p in router.leases) == [0, 1, 2, 3]

    run(main)


class Cut:
    """A log whose answers can be lost after, or before, something was written."""

    def __init__(self, log: Any) -> None:
        self._log = log
        self.lose_next: str | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def append(self, stream: str, *rest: Any) -> int:
        lose, self.lose_next = (self.lose_next, None) if stream != STATE else (None, self.lose_next)
        if lose == "request":
            raise LogUnavailableError("the request was lost")
        last = await self._log.append(stream, *rest)
        if lose == "answer":
            raise LogUnavailableError("the answer was lost")
        return int(last)


@pytest.mark.parametrize("lost", ["request", "answer"])
def test_a_lost_answer_neither_loses_nor_repeats(log_url: str, lost: str) -> None:
    """Of a publisher, and of a router between its output and its acknowledgement, which are one append."""

    async def main() -> None:
        async with read_by_ann(log_url, partitions=1) as (site, ann):
            cut = Cut(site.log)
            bob = await Site(cut, site.settings).publisher("bob")  # type: ignore[arg-type]
            router = router_of(Site(cut, site.settings))  # type: ignore[arg-type]
            await bob.publish({"n": 0})
            await drain(router)
            cut.lose_next = lost
            assert await bob.publish([{"n": 1}, {"n": 2}]) == [2, 3]
            cut.lose_next = lost
            with pytest.raises(LogUnavailableError):
                await drain(router)
            await drain(router)
            await bob.publish({"n": 3})
            await drain(router)
            assert [event["n"] for event in await heard(ann)] == [0, 1, 2, 3]

    run(main)


def test_a_publisher_says_when_it_cannot_know(log_url: str) -> None:
    async def main() -> None:
        async with connect(log_url) as site:
            cut = Cut(site.log)
            bob = await Site(cut, site.settings).publisher("bob", timeout=0.0)  # type: ignore[arg-type]

            async def away(*_: Any) -> Any:
                raise LogUnavailableError("nobody is there")

            cut.last = away  # type: ignore[attr-defined]
            cut.lose_next = "answer"
            with pytest.raises(LogUnavailableError, match="unknown whether the last 1 events were published"):
                await bob.publish({"n": 1})

    run(main)


def test_what_cannot_be_parsed_here_wants_everything_and_the_client_decides(log_url: str) -> None:
    """A subscription of a later version, or with an operator that this router does not know."""

    async def main() -> None:
        async with connect(log_url) as site:
            ann, eve = await site.subscriber("ann"), await site.subscriber("eve")
            await ann.subscribe("mine", "n > 1")
            await site.log.append(
                STATE,
                [
                    Entry(*keys.subscription_key("ann", "later"), b'{"v":99,"expression":"n > 1"}'),
                    Entry(*keys.subscription_key("eve", "odd"), write({"expression": "n FROBS 3"})),
                ],
            )
            await (await site.publisher("bob")).publish([{"n": 1}, {"n": 2}])
            router = router_of(site)
            await drain(router)
            assert router.table.unreadable == 2
            assert router.counters.deliveries == 4
            assert [event["n"] for event in await heard(ann)] == [2]
            eve._own._expressions = [tamis.parse("n = 1")]  # what a later client makes of `n FROBS 3`
            assert [event["n"] for event in await heard(eve)] == [1]

    run(main)


HOSTILE = [b"", b"\n", b"{}\n", b"\xff\xfe\n{}", b'{"v":1,"p":"x"}', b'{"v":1,"p":"x"}\nnull', b"[" * 5000]


@pytest.mark.parametrize("body", HOSTILE)
def test_an_event_that_is_none_becomes_a_dead_letter_and_the_others_go_on(log_url: str, body: bytes) -> None:
    async def main() -> None:
        async with read_by_ann(log_url, partitions=1) as (site, ann):
            bob = await site.publisher("bob")
            await bob.publish({"n": 1})
            await site.log.append(EVENTS, [Entry("p0", "evil", body)])
            await bob.publish({"n": 2})
            router = router_of(site)
            assert await drain(router) == 3
            assert [event["n"] for event in await heard(ann)] == [1, 2]
            [letter] = await site.log.read(QUEUES, topic=keys.DEAD)
            assert DeadLetter.read(letter.body).event == 2
            assert router.counters.dead == 1

    run(main)


def test_one_event_for_more_subscribers_than_one_append_takes(tmp_path: Path) -> None:
    async def main() -> None:
        async with connect(f"sqlite:{tmp_path}/site.db", partitions=1) as site:
            names = [f"s{n}" for n in range(2_500)]
            wanted = Subscription("TRUE").body()
            limits = QueueLimits().body()
            for start in range(0, len(names), 500):
                some = names[start : start + 500]
                await site.log.append(
                    STATE,
                    [Entry(*keys.subscription_key(name, "all"), wanted) for name in some]
                    + [Entry(keys.QUEUE, name, limits) for name in some],
                )
            await (await site.publisher("bob")).publish([{"n": 1}, {"n": 2}])
            cut = Cut(site.log)
            router = router_of(Site(cut, site.settings))  # type: ignore[arg-type]
            await router.table.catch_up()
            await router._sign()
            await router._share()
            [lease] = router.leases.values()

            # The third append is lost on its way: another router goes on behind the queues that have it.
            written = 0
            original = site.log.append

            async def counted(stream: str, *rest: Any) -> int:
                nonlocal written
                written += stream == QUEUES
                if written == 3:
                    raise LogUnavailableError("cut off")
                return await original(stream, *rest)

            cut.append = counted  # type: ignore[method-assign]
            with pytest.raises(LogUnavailableError):
                await router.route(lease)
            cursor = (await site.log.last(QUEUES, [(keys.CURSOR, "0")]))[keys.CURSOR, "0"]
            assert Cursor.read(cursor.body).done
            clock = [0.0]
            other = router_of(site, clock=lambda: clock[0])
            await other.step()
            clock[0] = 100.0
            assert await drain(other) == 2
            for name in (names[0], names[1], names[999], names[-1]):
                reader = await site.subscriber(name)
                assert [event["n"] for event in await heard(reader)] == [1, 2], name
            deliveries = await site.log.read(QUEUES, most=10_000)
            queued = [record for record in deliveries if record.topic.startswith("q-")]
            assert len(queued) == 2_500, "one record for both events in each queue"
            assert all(len(Delivery.read(record.body).events) == 2 for record in queued)

    run(main)


def test_expiry_is_judged_by_the_time_at_which_an_event_was_stored(log_url: str) -> None:
    async def main() -> None:
        async with connect(log_url, partitions=1) as site:
            ann = await site.subscriber("ann")
            bob = await site.publisher("bob")
            await bob.publish({"n": 1})
            [first] = await site.log.read(EVENTS)
            await asyncio.sleep(0.01)
            await bob.publish({"n": 2})
            await ann.subscribe("short", "TRUE", expires=first.time + 5_000)
            await drain(router_of(site))
            assert [event["n"] for event in await heard(ann)] == [1]

    run(main)


def test_a_payload_is_stored_once_however_many_want_it(tmp_path: Path) -> None:
    async def size(subscribers: int) -> int:
        async with connect(f"sqlite:{tmp_path}/site-{subscribers}.db") as site:
            for n in range(subscribers):
                await (await site.subscriber(f"s{n}")).subscribe("all", "TRUE")
            await (await site.publisher("bob")).publish([{"text": "x" * 10_000} for _ in range(50)])
            await drain(router_of(site))
            return await site.log.size()

    assert run(lambda: size(100)) - run(lambda: size(1)) < 200 * 1024


@pytest.mark.parametrize("bad", [float("nan"), -1, 10, 1.5, True, None, "9"])
def test_a_priority_that_is_none_is_refused(tmp_path: Path, bad: Any) -> None:
    async def main() -> None:
        async with connect(f"sqlite:{tmp_path}/site.db") as site:
            ann = await site.subscriber("ann")
            with pytest.raises(tamis.TamisError, match="whole number from 0 to 9"):
                await ann.subscribe("x", "TRUE", priority=bad)
            # One who writes it past the client library kills nobody.
            record = json.dumps({"v": 1, "expression": "n = 1", "priority": bad}).encode()
            await site.log.append(STATE, [Entry(*keys.subscription_key("ann", "x"), record)])
            await (await site.publisher("bob")).publish({"n": 2})
            assert await drain(router_of(site)) == 1

    run(main)


def test_bad_events_and_expressions_are_refused_where_they_are_given(tmp_path: Path) -> None:
    async def main() -> None:
        async with connect(f"sqlite:{tmp_path}/site.db") as site:
            bob, ann = await site.publisher("bob"), await site.subscriber("ann")
            for event in ("null", b"\xff", "{", "[1]"):
                with pytest.raises(tamis.EventError):
                    await bob.publish([{"n": 1}, event])
            with pytest.raises(tamis.TamisError, match="at most 262,144 bytes"):
                await bob.publish({"n": "x" * 300_000})
            assert await site.log.end(EVENTS) == 0
            with pytest.raises(tamis.ExpressionError):
                await ann.subscribe("x", "price <")
            with pytest.raises(tamis.TamisError, match="printable"):
                await ann.subscribe("a\nb", "TRUE")
            with pytest.raises(tamis.TamisError, match="printable"):
                await site.subscriber("")

    run(main)


def test_text_with_line_breaks_arrives_as_it_was(log_url: str) -> None:
    async def main() -> None:
        async with connect(log_url) as site:
            ann = await site.subscriber("ann:1 x.y")
            await ann.subscribe("a.b*", "TRUE")
            bob = await site.publisher("böb")
            await bob.publish(['{"text":\r\n "a\\nb"}', {"text": "c\nd"}])
            await drain(router_of(site))
            assert [event["text"] for event in await heard(ann)] == ["a\nb", "c\nd"]
            assert await ann.subscriptions() == {"a.b*": "TRUE"}

    run(main)


# --- rollback ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("grows", [0, 3, 30])
def test_a_rolled_back_log_is_noticed_and_later_events_are_heard(tmp_path: Path, grows: int) -> None:
    """Also when the older copy has grown past all that anybody remembers before they look again."""

    async def main() -> None:
        path = tmp_path / "site.db"
        async with read_by_ann(f"sqlite:{path}", partitions=1) as (site, ann):
            bob = await site.publisher("bob")
            router = router_of(site)
            await bob.publish([{"n": n} for n in range(5)])
            await drain(router)
            assert len(await heard(ann)) == 5
            await ann.acknowledge()
            back_up(path)
            for n in range(5, 10):
                await bob.publish({"n": n})
                await drain(router)
            assert len(await heard(ann)) == 5
            await ann.acknowledge()
            restore(path)
            async with connect(f"sqlite:{path}") as other:
                carl = await other.publisher("carl")
                stranger = router_of(other, clock=lambda: 1e9)
                await stranger.table.catch_up()
                await stranger._sign()
                stranger._clock = lambda: 2e9
                for n in range(grows):
                    await carl.publish({"n": 100 + n})
                    await drain(stranger)
                await stranger.release()
            with pytest.raises(RolledBackError, match="acknowledged event 10 of bob"):
                await bob.publish({"n": 10})
            await bob.publish({"n": 11})
            await drain(router)
            got = await heard(ann)
            assert ("rollback", None) in got
            numbers = [event["n"] for event in got if isinstance(event, dict)]
            assert numbers[-1] == 11
            # What came over the numbers that were lost is heard, too, or is behind the visible gap.
            assert set(numbers) <= {*range(100, 100 + grows), 11}

    run(main)


def test_a_log_that_was_deleted_and_made_again_is_noticed(tmp_path: Path) -> None:
    async def main() -> None:
        path = tmp_path / "site.db"
        async with read_by_ann(f"sqlite:{path}", partitions=1) as (site, ann):
            bob, router = await site.publisher("bob"), router_of(site)
            await bob.publish([{"n": n} for n in range(5)])
            await drain(router)
            assert len(await heard(ann)) == 5
            for suffix in ("", "-wal", "-shm"):
                Path(f"{path}{suffix}").unlink(missing_ok=True)
            with pytest.raises(RolledBackError):
                await bob.publish({"n": 6})
            assert await heard(ann) == [("rollback", None)]
            again = await site.subscriber("ann")
            await again.subscribe("all", "TRUE")
            await bob.publish({"n": 7})
            await drain(router)
            assert [event["n"] for event in await heard(again)] == [7]
            assert router.table.rollbacks == 1

    run(main)


def test_a_full_log_acknowledges_nothing_and_loses_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with read_by_ann(f"sqlite:{tmp_path}/site.db", partitions=1, most_bytes=400_000) as (site, _):
            bob, router = await site.publisher("bob"), router_of(site)
            accepted = 0
            try:
                while accepted < 1_000:
                    await bob.publish({"n": accepted, "text": "x" * 5_000})
                    accepted += 1
            except LogFullError:
                assert accepted > 10
            while True:
                try:
                    if not await router.step():
                        break
                except LogFullError:
                    # Make room as an operator would: with a larger limit.
                    async with connect(f"sqlite:{tmp_path}/site.db", most_bytes=4_000_000) as larger:
                        router = router_of(larger)
                        await drain(router_of(larger, name=router.name))
                        router = router_of(site)
                        break
            got = []
            async with connect(f"sqlite:{tmp_path}/site.db", most_bytes=4_000_000) as larger:
                clock = [0.0]
                last = router_of(larger, clock=lambda: clock[0])
                await last.step()
                clock[0] = 1e6
                await drain(last)
                got = await heard(await larger.subscriber("ann"))
            assert [event["n"] for event in got] == list(range(accepted))

    run(main)


# --- tenants -------------------------------------------------------------------------------------------


def test_a_client_gets_what_it_is_granted_and_nothing_else(log_url: str) -> None:
    """`price IS NULL OR price IS NOT NULL` used to read whole events through one attribute."""

    async def main() -> None:
        async with connect(log_url) as site:
            grant = Grant(filter="public", attributes=("price", "size.w"), subscriptions=2)
            await site.log.append(STATE, [Entry(keys.GRANT, "ann", grant.body())])
            ann, eve = await site.subscriber("ann"), await site.subscriber("eve")
            with pytest.raises(tamis.TamisError, match=r"may not name secret, only price, size\.w"):
                await ann.subscribe("x", "secret = 1")
            await ann.subscribe("x", "price IS NULL OR price IS NOT NULL")
            await eve.subscribe("x", "TRUE")
            bob = await site.publisher("bob")
            await bob.publish(
                [
                    {"price": 1, "secret": 1, "public": True, "size": {"w": 2, "h": 3}},
                    {"price": 2, "secret": 1, "public": False},
                    {"price": 3, "secret": 1},
                    {"secret": 4, "public": True},
                ]
            )
            router = router_of(site)
            await drain(router)
            assert await heard(ann) == [{"price": 1, "size": {"w": 2}}, {}]
            assert len(await heard(eve)) == 4
            # Past the client library: what may not be named matches nothing, garbage only what is granted.
            await site.log.append(
                STATE,
                [
                    Entry(*keys.subscription_key("ann", "x"), Subscription("secret = 1").body()),
                    Entry(*keys.subscription_key("ann", "y"), b"garbage"),
                ],
            )
            await bob.publish([{"price": 5, "secret": 1, "public": True}, {"price": 6, "secret": 1}])
            ann._own._expressions = [tamis.parse("TRUE")]
            await drain(router)
            assert await heard(ann) == [{"price": 5}]
            assert router.table.refused
            with pytest.raises(tamis.TamisError, match="may have 2 subscriptions"):
                await ann.subscribe("z", "price > 1")
            # A grant that is taken away, or cannot be read, holds for subscriptions that are there.
            await site.log.append(STATE, [Entry(keys.GRANT, "ann", b"{}")])
            await bob.publish({"price": 7, "public": True})
            await drain(router)
            assert await heard(ann) == []

    run(main)


def test_gap_is_exported() -> None:
    assert Gap("age", 1, (0, 0)).reason == "age"


def test_of_state_only_the_last_record_of_a_key_is_kept(log_url: str) -> None:
    """Also of one append; what is kept has the number of the last."""

    async def main() -> None:
        async with connect(log_url) as site:
            start = await site.log.end(STATE)
            parts = [("sub", "ann.a"), ("sub", "ann.b"), ("sub", "ann.a"), ("sub", "ann.a"), ("sub", "ann.c")]
            last = await site.log.append(STATE, [Entry(*key, b"%d" % n) for n, key in enumerate(parts)])
            assert last == start + 5
            found = await site.log.read(STATE, after=start)
            assert [(record.seq - start, record.detail, record.body) for record in found] == [
                (2, "ann.b", b"1"),
                (4, "ann.a", b"3"),
                (5, "ann.c", b"4"),
            ]

    run(main)
