"""What NATS answers over a connection that loses messages, and to whoever publishes with any header.

Faults: a batch arrives with a hole, and whoever reads it goes on behind the hole; an answer has no room for
all, and what is left out counts as missing; a stored message has the headers of an answer; a stream was made
by somebody else, or changed since, and deletes what was promised.
"""

import asyncio
import itertools
from typing import Any

import pytest

from pubsub.logs import run
from pubsub.nats_proxy import NatsProxy
from servers import Nats
from tamis.pubsub import connect
from tamis.pubsub.log import EVENTS, QUEUES, STATE, Entry, LogError, open_log
from tamis.pubsub.log import nats as nats_log
from tamis.pubsub.records import QueueLimits
from tamis.pubsub.router.router import Router

_sites = (f"answers-{number}" for number in itertools.count())


def numbered(count: int, size: int = 10) -> list[Entry]:
    return [Entry("p0", "s", f"{number:>{size}}".encode()) for number in range(count)]


@pytest.mark.parametrize("lost", [[1], [3], [3, 4], [10]])
def test_a_hole_in_an_answer_is_noticed(nats: Nats, lost: list[int]) -> None:
    async def main() -> None:
        async with NatsProxy(nats.url) as proxy:
            log = await open_log(f"{proxy.url}/{next(_sites)}")
            await log.append(EVENTS, numbered(10))
            names = [f"Nats-Sequence: {number}\r\n".encode() for number in lost]
            proxy.is_lost = lambda body: any(name in body for name in names)
            for _ in range(2):  # found again and again: not by luck
                found = [record.seq for record in await log.read(EVENTS, topic="p0")]
                assert found == list(range(1, max(lost[0], 2)))
            proxy.is_lost = lambda _: False
            assert [record.seq for record in await log.read(EVENTS)] == list(range(1, 11))
            await log.close()

    run(main)


def test_nobody_waits_for_what_was_appended_after_the_question(
    nats: Nats, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then an answer is no older than it may be; waiting cost a hundredth of all events a quarter second."""
    monkeypatch.setattr(nats_log, "RETRY_SECONDS", 60)

    async def main() -> None:
        log: Any = await open_log(f"{nats.url}/{next(_sites)}")
        await log.append(EVENTS, numbered(1))
        told = log._info

        async def info(stream: str) -> Any:
            answer = await told(stream)
            await log.append(EVENTS, numbered(1))  # by another task, while the answer is under way
            return answer

        log._info = info
        assert await log.end(EVENTS) == 1
        log._info = told
        assert await log.end(EVENTS) == 2
        await log.close()

    run(main, 20)


def test_of_several_who_wait_none_takes_the_hint_of_another(
    nats: Nats, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nats_log, "LONGEST_WAIT", 60)

    async def main() -> None:
        log: Any = await open_log(f"{nats.url}/{next(_sites)}")
        told, others = log.end, []

        async def end(stream: str) -> Any:
            log.end = told
            before = await told(stream)
            await log.append(QUEUES, [Entry("q-ann", "0.4", b"x")])
            while await asyncio.sleep(0.05, not log.hinted):
                pass
            others.append(asyncio.create_task(log.wait(QUEUES, 99, 0.1)))
            await asyncio.sleep(0)
            return before

        hinting = log._on_hint
        log.hinted = False

        async def on_hint(message: Any) -> None:
            await hinting(message)
            log.hinted = True

        [listening] = [s for s in log._client._subs.values() if s.subject.endswith(".wake.*")]
        listening._cb = on_hint
        log.end = end
        await log.wait(QUEUES, 0, 60)
        assert await log.end(QUEUES) == 1
        await others[0]
        await log.close()

    run(main, 20)


def test_a_hole_among_last_values_is_filled_by_the_leader(nats: Nats) -> None:
    async def main() -> None:
        async with NatsProxy(nats.url) as proxy:
            log = await open_log(f"{proxy.url}/{next(_sites)}")
            keys = [("sub", f"ann.{number}") for number in range(20)]
            await log.append(STATE, [Entry(*key, b"x") for key in keys])
            proxy.is_lost = lambda body: b"Nats-Sequence: 7\r\n" in body
            assert set(await log.last(STATE, keys)) == set(keys)
            assert set(await log.fetch(STATE, range(1, 21))) == set(range(1, 21))
            await log.close()

    run(main)


def test_last_values_that_do_not_fit_into_one_answer(log_url: str) -> None:
    async def main() -> None:
        log = await open_log(log_url)
        keys = [("copy-x", str(number)) for number in range(60)]
        for key in keys:
            await log.append(QUEUES, [Entry(*key, b"x" * 300_000)])
        found = await log.last(QUEUES, [*keys, ("copy-x", "none")])
        assert set(found) == set(keys)
        await log.close()

    run(main)


def test_keys_that_are_missing_cost_one_request_with_one_that_is_there(
    nats: Nats, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as a router writes to for the first time; the leader was asked for each of the first 500."""

    async def main() -> None:
        log: Any = await open_log(f"{nats.url}/{next(_sites)}")
        await log.append(QUEUES, [Entry("cursor", "0", b"x")])
        asked: list[int] = []
        leader = log._leader

        async def counting(stream: str, requests: Any) -> Any:
            asked.append(len(requests))
            return await leader(stream, requests)

        monkeypatch.setattr(log, "_leader", counting)
        lanes = [(f"q-s{number}", "0.4") for number in range(999)]
        assert set(await log.last(QUEUES, [*lanes, ("cursor", "0")])) == {("cursor", "0")}
        assert sum(asked) == 0
        await log.close()

    run(main)


HEADERS: list[dict[str, str]] = [
    {"Status": "503"},
    {"Status": "204", "Description": "EOB", "Nats-Last-Sequence": "99"},
    {"Status": "404"},
    {"Nats-Sequence": "77", "Nats-Subject": "tamis.other.events.p9.x", "Nats-Last-Sequence": "55"},
    {"Nats-Time-Stamp": "never", "Nats-Stream": "other", "Nats-Num-Pending": "many"},
]


@pytest.mark.parametrize("headers", HEADERS)
def test_a_message_with_the_headers_of_an_answer_is_a_message(nats: Nats, headers: dict[str, str]) -> None:
    async def main() -> None:
        async with connect(f"{nats.url}/{next(_sites)}", partitions=1) as site:
            ann = await site.subscriber("ann")
            await ann.subscribe("all", "TRUE")
            bob = await site.publisher("bob")
            await bob.publish({"n": 1})
            prefix = f"tamis.{site.log._site}"  # type: ignore[attr-defined]
            client = site.log._client  # type: ignore[attr-defined]
            await client.publish(f"{prefix}.events.p0.evil", b'{"v":1,"p":"eve"}\n{"n":2}', headers=headers)
            await client.publish(f"{prefix}.state.sub.eve.x", b"{}", headers=headers)
            await client.flush()
            await bob.publish({"n": 3})
            router = Router(site.log, site.settings)
            while await router.step():
                pass
            heard: list[Any] = [await ann.next(10) for _ in range(3)]
            assert [item.event["n"] for item in heard] == [1, 2, 3]
            record = (await site.log.last(EVENTS, [("p0", "evil")]))["p0", "evil"]
            assert record.seq == 2

    run(main)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"discard": "old", "max_msgs": 10}, "discard"),
        ({"max_age": 3_600_000_000_000}, "max_age"),
        ({"max_msgs": 1_000}, "max_msgs"),
        ({"max_msgs_per_subject": 5}, "max_msgs_per_subject"),
        ({"max_msg_size": 1_000}, "max_msg_size"),
    ],
)
def test_a_stream_that_would_delete_what_was_promised_is_refused(
    nats: Nats, change: dict[str, Any], part: str
) -> None:
    async def main() -> None:
        site = next(_sites)
        log: Any = await open_log(f"{nats.url}/{site}")
        config = (await log._info(EVENTS))["config"]
        await log._api(f"STREAM.UPDATE.{config['name']}", {**config, **change})
        await log.close()
        with pytest.raises(LogError, match=part):
            await open_log(f"{nats.url}/{site}")

    run(main)


def test_fewer_replicas_than_asked_for_are_no_secret(nats: Nats) -> None:
    async def main() -> None:
        site = next(_sites)
        await (await open_log(f"{nats.url}/{site}")).close()
        with pytest.raises(LogError, match="1 replica"):
            await open_log(f"{nats.url}/{site}?replicas=3")

    run(main)


def test_limits_that_are_none_are_refused_where_they_are_given(log_url: str) -> None:
    async def main() -> None:
        async with connect(log_url) as site:
            for bad in (float("nan"), -1, "many", 2**70):
                with pytest.raises(ValueError, match="most_bytes"):
                    await site.subscriber("ann", QueueLimits(most_bytes=bad))  # type: ignore[arg-type]
                with pytest.raises(ValueError, match="keep_seconds"):
                    await site.subscriber("ann", QueueLimits(keep_seconds=bad if bad != 2**70 else -1))  # type: ignore[arg-type]
            assert (await site.subscriber("ann")).name == "ann"

    run(main)


@pytest.mark.thorough
def test_a_leader_that_wakes_up_is_not_believed_at_once(nats: Nats) -> None:
    """It tells what it knew when it fell asleep, for half a second; a rolled-back stream does for ever."""

    async def main() -> None:
        log: Any = await open_log(f"{nats.url}/{next(_sites)}")
        await log.append(EVENTS, numbered(10))
        real, until = log._info, asyncio.get_running_loop().time() + 0.5

        async def asleep(stream: str) -> Any:
            info = await real(stream)
            if asyncio.get_running_loop().time() < until:
                info["state"]["last_seq"] = 4
            return info

        log._info = asleep
        assert await log.end(EVENTS) == 10
        until += 3_600
        assert await log.end(EVENTS) == 4
        await log.close()

    run(main)
