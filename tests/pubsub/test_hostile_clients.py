"""What clients and neighbours may not do, whatever they write into a log.

Faults: a publisher says that its event comes from another site, and uses up numbers there or tells everybody
of a gap; it publishes under another's name; a name that is none, or a topic that is none, ends a router or a
link; an event that the kernel reads and Python does not ends the router of a client with a projection; a
projection changes values, or shows where an event goes; limits count what a hostile client does not send;
passwords are told to whoever reads errors; everybody reads files with secrets.
"""

import asyncio
import itertools
import json
import os
import random
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from pubsub.logs import read_by_ann, run
from pubsub.several_sites import Sites
from pubsub.test_site import drain, heard, router_of
from servers import NatsServer, free_port
from tamis import EventError
from tamis.pubsub import connect, keys
from tamis.pubsub.log import EVENTS, QUEUES, STATE, Entry, LogError, LogUnavailableError, open_log
from tamis.pubsub.names import token
from tamis.pubsub.records import (
    DEFAULT_HOPS,
    MOST_NUMBER,
    Behind,
    DeadLetter,
    Delivery,
    Drops,
    EventHeader,
    Grant,
    QueueLimits,
    Subscription,
    split_event,
)
from tamis.pubsub.router import retention
from tamis.pubsub.router.retention import Retention
from tamis.pubsub.router.table import Table
from tamis.pubsub.service.config import ConfigError, read_config
from tamis.pubsub.sites import link, ranges
from tamis.pubsub.sites.interest import InterestEntry
from tamis.pubsub.sites.topology import SiteLinks

FORGED: list[dict[str, Any]] = [
    {"o": "rome", "l": "x", "n": 0, "h": 16, "to": [["main", 1]]},
    {"o": "rome", "l": "x", "n": 0, "h": 16, "to": [["bonn", 1], ["main", 7]]},
    {"g": 1_000_000},
    {"g": 1, "w": "rollback"},
    {"g": 5, "o": "rome", "to": [["main", 1]]},
]


async def dead_letters(site: Any) -> list[str]:
    return [DeadLetter.read(record.body).reason for record in await site.log.read(QUEUES, topic=keys.DEAD)]


@pytest.mark.parametrize("detail", ["a1", "s.eve.a1"])
@pytest.mark.parametrize("forged", FORGED)
def test_a_publisher_is_no_site(tmp_path: Path, forged: dict[str, Any], detail: str) -> None:
    async def main() -> None:
        async with read_by_ann(f"sqlite:{tmp_path}/site.db", partitions=1) as (site, ann):
            header = json.dumps({"v": 1, "p": "eve", **forged}).encode()
            await site.log.append(EVENTS, [Entry("p0", detail, header + b'\n{"n":1}')])
            await (await site.publisher("bob")).publish({"n": 2})
            router = router_of(site)
            await drain(router)
            assert await heard(ann) == [{"n": 2}]
            [reason] = await dead_letters(site)
            assert "no router has written it" in reason
            queues = {record.topic for record in await site.log.read(QUEUES) if record.topic[:2] == "q-"}
            assert queues == {"q-ann"}, "nothing is on its way to another site"

    run(main)


def test_a_publisher_is_nobody_else(tmp_path: Path) -> None:
    """Who may write under a name's sessions alone, as NATS can say, publishes under that name alone."""

    async def main() -> None:
        async with read_by_ann(f"sqlite:{tmp_path}/site.db", partitions=1) as (site, ann):
            for detail in (keys.session_detail("eve", "a1"), "s.b", "s."):
                await site.log.append(EVENTS, [Entry("p0", detail, b'{"v":1,"p":"bob"}\n{"n":1}')])
            old = Entry("p0", "0123abc", b'{"v":1,"p":"bob"}\n{"n":2}')  # as releases before wrote them
            await site.log.append(EVENTS, [old])
            await (await site.publisher("bob")).publish({"n": 3})
            await drain(router_of(site))
            assert await heard(ann) == [{"n": 2}, {"n": 3}]
            assert len(await dead_letters(site)) == 3

    run(main)


NO_NAMES = [r"\ud800", "", "x" * 129, r"\u0000", r"a\nb"]


@pytest.mark.parametrize("name", NO_NAMES)
@pytest.mark.parametrize("place", ["o", "to", "p", "l"])
def test_a_name_that_is_none_ends_no_router(tmp_path: Path, place: str, name: str) -> None:
    """In the log of a site that has such a neighbour: token(name) raised, for ever."""
    if (place, name) in (("p", ""), ("l", ""), ("l", "x" * 129)):
        pytest.skip("a gap has no publisher, and a life may be empty or long")

    async def main() -> None:
        async with read_by_ann(f"sqlite:{tmp_path}/site.db", partitions=1) as (site, ann):
            fields = {"p": '"eve"', "o": '"rome"', "l": '"x"', "to": '[["main",1]]'}
            fields[place] = f'[["{name}",1]]' if place == "to" else f'"{name}"'
            header = "".join(f',"{key}":{value}' for key, value in fields.items())
            body = f'{{"v":1{header},"n":0,"h":16}}\n{{"n":1}}'.encode()
            await site.log.append(EVENTS, [Entry("p0", "link-rome", body)])
            await (await site.publisher("bob")).publish({"n": 2})
            await drain(router_of(site))
            assert await heard(ann) == [{"n": 2}]
            assert len(await dead_letters(site)) == 1

    run(main)


def test_a_publisher_cannot_use_up_the_numbers_of_events_for_another_site(tmp_path: Path) -> None:
    """It named the next numbers itself; the events that got them then counted as repeats."""

    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            ann = await sites.sites["b"].subscriber("ann")
            await ann.subscribe("all", "TRUE")
            await sites.settle()
            log = sites.sites["a"].log
            to = ",".join(f'["b",{number}]' for number in range(3, 7))
            await log.append(
                EVENTS, [Entry("p0", "s.eve.a1", f'{{"v":1,"p":"eve","to":[{to}]}}\n{{}}'.encode())]
            )
            bob = await sites.sites["a"].publisher("bob")
            await bob.publish([{"n": number} for number in range(1, 9)])
            await sites.settle()
            heard_of_bob = [event for event in await sites.heard(ann) if event]
            assert heard_of_bob == [{"n": number} for number in range(1, 9)]
            assert len(await dead_letters(sites.sites["a"])) == 1

    run(main)


def test_a_neighbour_cannot_stop_a_link(tmp_path: Path) -> None:
    """Its queue names records that are no events, or events that no publisher there can have written."""

    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            ann = await sites.sites["b"].subscriber("ann")
            await ann.subscribe("all", "TRUE")
            await sites.settle()
            log = sites.sites["a"].log
            plain, event = EventHeader("eve").body(), b'\n{"n":1}'
            forged = EventHeader("eve", "b", "life", 0, 9, (("b", 1),)).body()
            surrogate = rb'{"v":1,"p":"eve","o":"\ud800","l":"","n":0,"h":3,"to":[]}'
            hostile = [
                Entry("pizza", "s.eve.a1", plain + event),
                Entry("p-1", "s.eve.a1", plain + event),
                Entry("p0", "s.eve.a1", forged + event),
                Entry("p0", "link-x", surrogate + event),
                Entry("p0", "s.eve.a2", b'{"v":1,"p":"eve","g":1000000}' + event),
                Entry("seen", "x", b'{"v":1,"r":[[1,2]]}'),
                Entry("p0", "s.eve.a3", b"\xff\n"),
            ]
            last = await log.append(EVENTS, hostile)
            numbers = tuple(range(last - len(hostile) + 1, last + 1))
            targets = tuple((("b", 900 + n),) for n in numbers)
            queue = Delivery(1, numbers, 10, targets=targets)
            await log.append(QUEUES, [Entry(f"q-{token('@b')}", "9.0", queue.body())])
            bob = await sites.sites["a"].publisher("bob")
            await bob.publish({"n": 2})
            await sites.settle()
            assert await sites.heard(ann) == [{"n": 2}]
            assert sites.networks["b"].links["a"].trouble is None
            assert sites.routers["b"].counters.missing == 0

    run(main)


def test_a_neighbour_cannot_let_events_travel_longer(tmp_path: Path) -> None:
    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            await sites.settle()
            log = sites.sites["a"].log
            endless = EventHeader("eve", "z", "life", 0, 1 << 52, (("nowhere", 1),))
            number = await log.append(EVENTS, [Entry("p0", "link-z", endless.body() + b"\n{}")])
            queue = Delivery(1, (number,), 10, targets=((("nowhere", 1),),))
            await log.append(QUEUES, [Entry(f"q-{token('@b')}", "9.0", queue.body())])
            await sites.step()
            stored = [
                EventHeader.read(split_event(record.body)[0])
                for record in await sites.sites["b"].log.read(EVENTS)
                if record.detail == "link-a"
            ]
            assert [header.hops for header in stored] == [DEFAULT_HOPS - 1]

    run(main)


def neighbour_sends(sites: Sites) -> Callable[[list[tuple[EventHeader, tuple[Any, ...]]]], Awaitable[None]]:
    """Whatever a neighbour a writes that is not ours, into its queue for b."""
    log, first = sites.sites["a"].log, 1

    async def send(events: list[tuple[EventHeader, tuple[Any, ...]]]) -> None:
        nonlocal first
        entries = [Entry("p0", "link-z", header.body() + b"\n{}") for header, _ in events]
        last = await log.append(EVENTS, entries)
        numbers = tuple(range(last - len(events) + 1, last + 1))
        queue = Delivery(first, numbers, 10, targets=tuple(targets for _, targets in events))
        await log.append(QUEUES, [Entry(f"q-{token('@b')}", "9.0", queue.body())])
        first += len(events)
        await sites.step()

    return send


def test_a_neighbour_cannot_make_a_site_remember_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers with a hole between any two, out of order, and origins that nobody has heard of."""
    monkeypatch.setattr(ranges, "MOST_RANGES", 20)
    monkeypatch.setattr(link, "MOST_ORIGINS", 40)
    monkeypatch.setattr(link, "MOST_REMEMBERED", 10)
    monkeypatch.setattr(link, "TRIM_BYTES", 5_000)

    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            ann = await sites.sites["b"].subscriber("ann")
            await ann.subscribe("all", "TRUE")
            await sites.settle()
            send, log = neighbour_sends(sites), sites.sites["b"].log
            numbers = [2 * n for n in range(400)]
            random.Random(7).shuffle(numbers)
            for start in range(0, 400, 100):
                header = EventHeader("eve", "z", "life", 0, 3)
                await send([(header, (("b", number),)) for number in numbers[start : start + 100]])
            for start in range(0, 200, 25):
                each = [EventHeader("eve", "z", f"life {n}", 0, 3) for n in range(start, start + 25)]
                await send([(header, (("b", 1),)) for header in each])
            await sites.step()
            seen = await log.read(EVENTS, topic=keys.SEEN, most=10_000)
            assert sum(len(record.body) for record in seen) < 60_000
            assert len({record.detail for record in seen}) < 80
            [holes] = [record.body for record in seen if record.detail == "z.life.0"][-1:]
            assert len(json.loads(holes)["r"]) <= 20
            assert len(sites.networks["b"].links["a"]._seen) <= 10 + 25
            await (await sites.sites["a"].publisher("bob")).publish({"n": 2})
            await sites.settle()
            assert (await sites.heard(ann))[-1] == {"n": 2}
            assert sites.networks["b"].links["a"].trouble is None

    run(main)


@pytest.mark.parametrize("how", ["drops", "delivery"])
def test_what_a_neighbour_claims_to_have_dropped_fits_into_a_record(tmp_path: Path, how: str) -> None:
    """The gap could not be read, or the position of the link: no neighbour was heard after a restart."""

    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            ann = await sites.sites["b"].subscriber("ann")
            await ann.subscribe("all", "TRUE")
            await sites.settle()
            log = sites.sites["a"].log
            if how == "drops":
                drops = Drops(next={f"{lane}.0": MOST_NUMBER for lane in range(3)})
                await log.append(STATE, [Entry(keys.DROP, token("@b"), drops.body())])
            else:
                number = await log.append(EVENTS, [Entry("p0", "link-z", b"{}")])
                for lane in ("0.0", "1.0"):
                    lying = Delivery(MOST_NUMBER, (number,), 10, targets=((("b", 1),),))
                    await log.append(QUEUES, [Entry(keys.queue_topic("@b"), lane, lying.body())])
            await sites.settle()
            heard = await sites.heard(ann)
            assert ("link", None) in heard
            assert await dead_letters(sites.sites["b"]) == []
            await sites.stop("b")
            await sites.start("b")
            await sites.settle()
            assert sites.networks["b"].links["a"].trouble is None

    run(main)


def test_gaps_that_claim_to_stand_for_too_much_leave_a_record_that_can_be_read() -> None:
    drops = Drops(behind=Behind({"c": MOST_NUMBER}).and_untold({"c": MOST_NUMBER}))
    for number in range(300):
        drops = drops.and_gap("0.0", 1 + number, MOST_NUMBER)
    assert Drops().and_read_behind(drops.behind_body()).behind.untold == {"c": MOST_NUMBER}


def test_a_neighbour_cannot_fill_the_memory_with_one_delivery(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One record may list all events of its log; they were fetched together. Some of them are gone."""
    monkeypatch.setattr(link, "MOST_EVENTS", 20)

    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            ann = await sites.sites["b"].subscriber("ann")
            await ann.subscribe("all", "TRUE")
            await sites.settle()
            there: Any = sites.networks["b"].links["a"]._there
            real, asked = there.fetch, []

            async def fetch(stream: str, numbers: Any) -> Any:
                asked.append(len(numbers))
                return {seq: record for seq, record in (await real(stream, numbers)).items() if seq % 10}

            there.fetch = fetch
            header = EventHeader("eve", "z", "life", 0, 3)
            await neighbour_sends(sites)([(header, (("b", 1 + number),)) for number in range(205)])
            await sites.settle()
            assert max(asked) == 20
            heard = await sites.heard(ann)
            missing = sites.routers["b"].counters.missing
            assert 20 <= missing <= 21
            assert heard.count({}) == 205 - missing
            assert ("link", None) in heard

    run(main)


def test_what_a_neighbour_tells_is_copied_in_parts(tmp_path: Path) -> None:
    """All of it was read before any was written; what was read before a read that failed was never copied."""

    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            await sites.settle()
            there: Any = sites.networks["b"].links["a"]._there
            here: Any = sites.sites["b"].log
            read, append, done, fails = there.read, here.append, [], True

            async def reading(stream: str, **how: Any) -> Any:
                if fails and how.get("topic") == keys.INTEREST:
                    raise LogUnavailableError("gone")
                found = await read(stream, **how)
                done.append("read" if found and how.get("topic") == keys.INTEREST else "")
                return found

            async def appending(stream: str, *what: Any) -> int:
                done.append("append" if stream == STATE else "")
                return int(await append(stream, *what))

            there.read, here.append = reading, appending
            body = InterestEntry(1, "n = 1").body()
            for start in range(0, 3_000, 1_000):
                made_up = [Entry(keys.INTEREST, f"z.{start + n}", body) for n in range(1_000)]
                await sites.sites["a"].log.append(STATE, made_up)
            await sites.sites["a"].log.append(STATE, [Entry(keys.LINKS, "z", SiteLinks(1).body())])
            await sites.step()
            assert sites.networks["b"].links["a"].trouble == "gone"
            fails = False
            done.clear()
            await sites.step()
            steps = [each for each in done if each]
            assert steps.count("read") == 3
            assert all(pair != ("read", "read") for pair in itertools.pairwise(steps))
            table = sites.routers["b"].table
            await table.catch_up()
            assert sum(detail.startswith("z.") for detail in table.others.of(keys.INTEREST)) == 3_000
            assert (keys.LINKS, "z") in table.others
            assert (keys.APPLIED, "z.b") in table.others

    run(main)


def test_a_neighbour_cannot_make_up_lanes_without_end(tmp_path: Path) -> None:
    """The next number of each lane is written with every append."""

    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            ann = await sites.sites["b"].subscriber("ann")
            await ann.subscribe("all", "TRUE")
            await sites.settle()
            log, link_key = sites.sites["b"].log, (keys.LINK, "a")
            lanes = [f"{n}.0" for n in (999, 1_000, 5_000)] + [f"eve.{n}" for n in range(50)]
            odd = ["00.0", "1.10", "x.1", "*", "1", "x.0.0", "\u0661.0", "y" * 100_000]
            entries = [Entry(f"q-{token('@b')}", lane, Delivery(1, ()).body()) for lane in lanes + odd]
            await sites.sites["a"].log.append(QUEUES, entries)
            await (await sites.sites["a"].publisher("bob")).publish({"n": 2})
            await sites.settle()
            assert await sites.heard(ann) == [{"n": 2}]
            record = (await log.last(EVENTS, [link_key]))[link_key]
            expected = json.loads(record.body)["expected"]
            assert expected.pop("*") == 1
            assert {lane for lane in expected if lane not in ("0.0", "1.0")} == {"999.0"}
            assert sites.networks["b"].links["a"].trouble is None

    run(main)


def test_a_neighbour_cannot_publish_in_the_name_of_this_site(tmp_path: Path) -> None:
    async def main() -> None:
        async with Sites(tmp_path, [("a", "b")]) as sites:
            ann = await sites.sites["b"].subscriber("ann")
            await ann.subscribe("all", "TRUE")
            await sites.settle()
            await neighbour_sends(sites)([(EventHeader("bob", "b", "life", 0, 3), (("b", 1),))])
            await sites.settle()
            assert await sites.heard(ann) == []
            assert sites.routers["b"].counters.dead == 1

    run(main)


DEEP = '{"price":' + "[" * 3_000 + "]" * 3_000 + ',"secret":1}'
LONG = '{"price":' + "9" * 5_000 + ',"secret":1}'
ODD = [
    '{"price": 1e400}',
    '{"price": 1.10}',
    r'{"price": "\u00e9\\\"}{"}',
    '{"price": -0.0, "x": [1, {"price": 2}]}',
]


def test_a_deep_event_is_refused_and_no_obstacle_for_a_router(tmp_path: Path) -> None:
    """Python's own JSON raises for it, which ended every router that met it, again and again."""

    async def main() -> None:
        async with connect(f"sqlite:{tmp_path}/site.db", partitions=1) as site:
            ann = await site.subscriber("ann")
            await ann.subscribe("all", "TRUE")
            bob = await site.publisher("bob")
            with pytest.raises(EventError, match="nested deeper than"):
                await bob.publish(DEEP)
            bob._checked = lambda event: event.encode()  # type: ignore[method-assign, union-attr, return-value]
            await bob.publish([DEEP, '{"price":2}'])
            await drain(router_of(site))
            heard = await ann.next(30)
            assert heard.event == {"price": 2}  # type: ignore[union-attr]
            assert len(await dead_letters(site)) == 1

    run(main)


@pytest.mark.parametrize("text", [LONG, *ODD], ids=["long", *map(str, range(len(ODD)))])
def test_a_projection_keeps_every_value_as_it_is(tmp_path: Path, text: str) -> None:
    """Python's own JSON raises for the first one."""

    async def main() -> None:
        async with connect(f"sqlite:{tmp_path}/site.db", partitions=1) as site:
            grant = Grant(attributes=("price",))
            await site.log.append(STATE, [Entry(keys.GRANT, "ann", grant.body())])
            ann = await site.subscriber("ann")
            await ann.subscribe("all", "TRUE")
            await (await site.publisher("bob")).publish([text, {"price": 2, "secret": 3}])
            await drain(router_of(site))
            first, second = await ann.next(30), await ann.next(30)
            start = text.index(":") + 1
            end = text.rindex(',"secret"') if "secret" in text else text.rindex("}")
            value = text[start : text.index(', "x"') if '"x"' in text else end].strip()
            assert first.body.decode() == f'{{"price":{value}}}'  # type: ignore[union-attr]
            assert second.event == {"price": 2}  # type: ignore[union-attr]

    run(main)


def test_a_projection_does_not_show_where_events_go(tmp_path: Path) -> None:
    async def main() -> None:
        async with Sites(tmp_path, [("a", "b"), ("b", "c")]) as sites:
            site = sites.sites["b"]
            await site.log.append(STATE, [Entry(keys.GRANT, "ann", Grant(attributes=("n",)).body())])
            ann = await site.subscriber("ann")
            await ann.subscribe("all", "TRUE")
            await (await sites.sites["c"].subscriber("carl")).subscribe("all", "TRUE")
            await sites.settle()
            await (await sites.sites["a"].publisher("bob")).publish({"n": 1, "secret": 2})
            await sites.settle()
            [copy] = [record for record in await site.log.read(QUEUES) if record.topic.startswith("copy-")]
            assert EventHeader.read(split_event(copy.body)[0]) == EventHeader("bob", "a")
            item: Any = await ann.next(30)
            assert (item.event, item.publisher, item.origin) == ({"n": 1}, "bob", "a")

    run(main)


EVENTS_THAT_ARE_NONE = [
    b'{"secret": "rosebud"}',
    b'{"v":1,"p":["rosebud"]}\n{}',
    b'{"v":1,"p":"bob","o":["rosebud"]}\n{}',
    b'{"v":1,"p":"bob"}\n{"a":"rosebud" "b":1}',
    b'{"v":1,"p":"bob"}\n{"a":"rosebud","a":1}',
    b'{"v":1,"p":"bob"}\nrosebud',
    b'{"v":1,"p":"bob"}\n["rosebud"]',
]


@pytest.mark.parametrize("body", EVENTS_THAT_ARE_NONE)
def test_dead_letters_do_not_tell_what_was_in_the_event(tmp_path: Path, body: bytes) -> None:
    """They lie in the stream of queues, which clients with a projection may read."""

    async def main() -> None:
        async with read_by_ann(f"sqlite:{tmp_path}/site.db", partitions=1) as (site, _):
            await site.log.append(EVENTS, [Entry("p0", "s.bob.a1", body)])
            await drain(router_of(site))
            [reason] = await dead_letters(site)
            assert reason
            assert "rosebud" not in reason

    run(main)


@pytest.mark.parametrize("header", [b'{"v":1,"p":"eve"}', b'{"v":1,"p":"eve","x":"%s"}' % (b"x" * 5_000)])
def test_what_is_sent_beside_an_event_counts_too(tmp_path: Path, header: bytes) -> None:
    """Events of two bytes under headers of any size were within every limit."""

    async def main() -> None:
        async with connect(f"sqlite:{tmp_path}/site.db", partitions=1) as site:
            most = 20 * len(header)
            ann = await site.subscriber("ann", QueueLimits(most_bytes=most))
            await ann.subscribe("all", "TRUE")
            router = router_of(site, batch=3)
            await site.log.append(EVENTS, [Entry("p0", "s.eve.a1", header + b"\n{}")] * 100)
            await drain(router)
            keeping = Retention(site.log, site.settings, router.table, router.counters)
            await router.table.catch_up()
            await keeping.tidy()
            waiting, size = keeping.lag("ann")
            assert 0 < waiting < 20
            assert waiting * len(header) < size <= most

    run(main)


def test_a_client_that_asks_nobody_has_no_more_subscriptions_than_granted(tmp_path: Path) -> None:
    """The client library counts; a client may write to the log itself."""

    async def main() -> None:
        async with connect(f"sqlite:{tmp_path}/site.db", partitions=1) as site:
            await site.log.append(STATE, [Entry(keys.GRANT, "eve", Grant(subscriptions=3).body())])
            ann, eve = await site.subscriber("ann"), await site.subscriber("eve")
            for n in range(5):
                await ann.subscribe(str(n), f"n = {n}")

            async def want(n: int) -> None:
                body = Subscription(f"n = {n}").body()
                await site.log.append(STATE, [Entry(*keys.subscription_key("eve", str(n)), body)])

            for n in range(10):
                await want(n)
            snapshot = tmp_path / "snapshot.tamis"
            table = Table(site.log, snapshot)

            def counted(by: Table) -> list[str]:
                assert len(by.index) == 5 + 3
                return sorted(id for id in by.index if id.startswith("eve."))

            await table.catch_up()
            assert counted(table) == ["eve.0", "eve.1", "eve.2"]
            assert table.quotas.refused_ids() == [f"eve.{n}" for n in range(3, 10)]
            await want(1)  # again: it goes to the end
            await eve.unsubscribe("0")
            await table.catch_up()
            assert counted(table) == ["eve.2", "eve.3", "eve.4"]
            table.save()
            await want(20)
            await want(21)
            for each in (table, Table(site.log, snapshot), Table(site.log)):
                await each.catch_up()
                assert counted(each) == ["eve.2", "eve.3", "eve.4"]

    run(main)


@pytest.mark.parametrize("grant", [Grant(most_bytes=200), Grant(keep_seconds=100)])
def test_a_client_that_never_reads_keeps_no_more_than_granted(tmp_path: Path, grant: Grant) -> None:
    """Whoever chooses the limits of its own queue could keep every event in the log, until it is full."""

    async def main() -> None:
        async with connect(f"sqlite:{tmp_path}/site.db", partitions=1) as site:
            await site.log.append(STATE, [Entry(keys.GRANT, "eve", grant.body())])
            endless = QueueLimits(
                most_bytes=1 << 50, keep_seconds=1e12, replay_seconds=1e12, idle_seconds=1e12
            )
            eve = await site.subscriber("eve", endless)
            await eve.subscribe("all", "TRUE")
            bob, router = await site.publisher("bob"), router_of(site, batch=1)
            keeping = Retention(site.log, site.settings, router.table, router.counters, least_event_seconds=0)
            await bob.publish([{"n": n} for n in range(30)])
            await drain(router)
            await router.table.catch_up()
            router.table.time += 200 * 1_000_000
            await keeping.tidy()
            await keeping.tidy()
            assert keeping.lag("eve")[1] <= 200
            assert len(await site.log.read(EVENTS)) < 12
            await bob.publish({"n": 30})  # a gap comes before the next delivery
            await drain(router)
            reasons = {item[0] for item in await heard(eve) if isinstance(item, tuple)}
            assert reasons == {"bytes" if grant.most_bytes is not None else "age"}

    run(main)


def test_a_client_that_wants_to_be_forgotten_at_once_is_forgotten_once_an_hour(tmp_path: Path) -> None:
    """Forgetting reads all subscriptions: a client that came back every second kept a router busy."""

    async def main() -> None:
        async with connect(f"sqlite:{tmp_path}/site.db", partitions=1) as site:
            router = router_of(site)
            keeping = Retention(site.log, site.settings, router.table, router.counters)
            for hours, forgotten in ((0, 1), (0, 1), (0, 1), (2, 2), (0, 2)):
                eve = await site.subscriber("eve", QueueLimits(idle_seconds=0))
                await eve.subscribe("all", "TRUE")
                await router.table.catch_up()
                router.table.time += 1_000_000 + hours * 3_600 * 1_000_000
                await keeping.tidy()
                assert router.counters.forgotten == forgotten
                await router.table.catch_up()

    run(main)


def test_a_subscriber_that_could_not_be_forgotten_is_forgotten_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counted as forgotten before it was, and stayed for an hour."""

    async def main() -> None:
        async with connect(f"sqlite:{tmp_path}/site.db", partitions=1) as site:
            router = router_of(site)
            keeping = Retention(site.log, site.settings, router.table, router.counters)
            await (await site.subscriber("eve", QueueLimits(idle_seconds=0))).subscribe("all", "TRUE")
            await router.table.catch_up()
            router.table.time += 1_000_000

            async def fails(*_: Any) -> None:
                raise LogUnavailableError("gone")

            with monkeypatch.context() as patch:
                patch.setattr(retention, "remove_subscriber", fails)
                with pytest.raises(LogUnavailableError):
                    await keeping.tidy()
            await keeping.tidy()
            assert router.counters.forgotten == 1
            await router.table.catch_up()
            assert len(router.table.index) == 0

    run(main)


def test_rubbish_does_not_fill_the_log_with_letters_about_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "MOST_DEAD_LETTERS", 20)

    async def main() -> None:
        async with read_by_ann(f"sqlite:{tmp_path}/site.db", partitions=1) as (site, _):
            router = router_of(site)
            keeping = Retention(site.log, site.settings, router.table, router.counters)
            for _ in range(3):
                await site.log.append(EVENTS, [Entry("p0", "s.eve.a1", b"rubbish")] * 50)
                await drain(router)
                await keeping.tidy()
                left = await site.log.read(QUEUES, topic=keys.DEAD)
                assert [DeadLetter.read(record.body).event for record in left] == list(
                    range(router.counters.dead - 19, router.counters.dead + 1)
                )

    run(main)


@pytest.mark.parametrize(
    "url",
    [
        "nats://zoe:secret@127.0.0.1:1/site",
        "nats://zoe:secret@127.0.0.1:1,127.0.0.1:2/site",
        "nats://zoe:secret@127.0.0.1:1/site?replicas=9",
        "nats://zoe:secret@[/site",
        "kafka://zoe:secret@127.0.0.1:1/site",
    ],
)
def test_errors_do_not_tell_passwords(url: str) -> None:
    with pytest.raises(LogError) as refused:
        asyncio.run(open_log(url))
    assert "secret" not in str(refused.value)
    assert "zoe" not in str(refused.value)


def test_a_password_is_for_all_servers_of_a_url(nats_program: str, tmp_path: Path) -> None:
    with NatsServer(nats_program, tmp_path, "--user", "ann", "--pass", "secret") as server:

        async def main() -> None:
            address = server.url.removeprefix("nats://")
            async with connect(f"nats://ann:secret@127.0.0.1:{free_port()},{address}/site") as site:
                assert await site.log.end(EVENTS) == 0

        run(main)


needs_modes = pytest.mark.skipif(os.name != "posix", reason="files have no modes")


@needs_modes
@pytest.mark.parametrize(("mode", "is_good"), [(0o600, True), (0o640, True), (0o644, False), (0o602, False)])
def test_secrets_that_everybody_can_read_are_refused(tmp_path: Path, mode: int, is_good: bool) -> None:
    secret = tmp_path / "secret"
    secret.write_text("log = 'nats://ann:secret@127.0.0.1:1/site'\n")
    secret.chmod(mode)
    for options in ({"credentials": str(secret)}, {}):
        more = "" if options else f"?certificate={secret}"
        with pytest.raises(LogError) as refused:
            asyncio.run(open_log(f"nats://127.0.0.1:1/site{more}", **options))
        assert ("chmod" in str(refused.value)) is not is_good
    if is_good:
        assert read_config(secret).log.endswith("/site")
    else:
        with pytest.raises(ConfigError, match="chmod"):
            read_config(secret)
    secret.write_text("log = 'nats://127.0.0.1:1/site'\n")
    assert read_config(secret).site == "main", "there is no secret in it"


@needs_modes
def test_files_of_a_site_are_not_for_everybody(tmp_path: Path) -> None:
    before = os.umask(0)
    try:

        async def main() -> None:
            async with read_by_ann(f"sqlite:{tmp_path}/site.db", partitions=1) as (site, _):
                table = Table(site.log, tmp_path / "snapshot.tamis")
                await table.catch_up()
                assert table.save()
                for file in tmp_path.iterdir():
                    assert not stat.S_IMODE(file.stat().st_mode) & 0o007, file

        run(main)
    finally:
        os.umask(before)
