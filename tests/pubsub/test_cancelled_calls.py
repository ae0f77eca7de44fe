"""Calls that are cancelled, or that fail, at the worst moment.

Faults: a publisher whose call was cancelled after the log had taken the events believes that the next ones
are there already, and they are lost; or its next calls all fail; or a repeated call publishes twice. A
subscriber that was interrupted while it read a delivery hands out the beginning of it twice.
"""

import asyncio
from typing import Any

import pytest

from pubsub.logs import read_by_ann, run
from tamis.pubsub import keys
from tamis.pubsub.log import EVENTS, QUEUES, STATE, Entry, LogUnavailableError
from tamis.pubsub.records import Delivery
from tamis.pubsub.site import connect


def cancelled_once(monkeypatch: pytest.MonkeyPatch, log: Any, *, is_written: bool) -> None:
    """Let the next append be cancelled, before or after it is written."""
    append = log.append

    async def cancelled(*arguments: Any) -> int:
        monkeypatch.setattr(log, "append", append)
        if is_written:
            await append(*arguments)
        raise asyncio.CancelledError

    monkeypatch.setattr(log, "append", cancelled)


@pytest.mark.parametrize("is_written", [False, True])
@pytest.mark.parametrize("second", [[{"n": 2}, {"n": 1}], [{"n": 2}], [{"n": 1}]])
def test_what_is_published_after_a_call_that_was_cancelled(
    log_url: str, monkeypatch: pytest.MonkeyPatch, second: list[Any], is_written: bool
) -> None:
    async def main() -> None:
        async with connect(log_url, partitions=1) as site:
            bob = await site.publisher("bob")
            await bob.publish({"n": 0})
            cancelled_once(monkeypatch, site.log, is_written=is_written)
            with pytest.raises(asyncio.CancelledError):
                await bob.publish([{"n": 1}])
            numbers = await bob.publish(second)
            stored = {record.seq: record.body for record in await site.log.read(EVENTS, topic="p0")}
            published = [stored[number].partition(b"\n")[2] for number in numbers]
            assert published == [b'{"n":%d}' % event["n"] for event in second]
            is_repeated = second == [{"n": 1}]
            assert len(stored) == 1 + (is_written and not is_repeated) + len(second)

    run(main)


def test_a_publisher_that_is_cancelled_again_and_again(log_url: str) -> None:
    """Wherever it is interrupted, what is acknowledged is there once, in order."""

    async def main() -> None:
        async with connect(log_url, partitions=1) as site:
            bob = await site.publisher("bob")
            acknowledged: list[int] = []
            for number in range(60):
                events = [{"n": 10 * number + n} for n in range(1 + number % 4)] + [{"n": -1}]
                publishing = asyncio.create_task(bob.publish(events))
                for _ in range(number % 20):
                    await asyncio.sleep(0)
                publishing.cancel()
                found = await asyncio.gather(publishing, return_exceptions=True)
                if isinstance(found[0], list):
                    acknowledged += [event["n"] for event in events[:-1]]
                await bob.publish([{"n": 10 * number + 9}, {"n": -1}])
                acknowledged.append(10 * number + 9)
            records = await site.log.read(EVENTS, topic="p0")
            stored = [int(record.body.partition(b'"n":')[2].rstrip(b"}")) for record in records]
            numbers = [number for number in stored if number >= 0]
            assert set(acknowledged) <= set(numbers)
            assert len(set(numbers)) == len(numbers)
            assert [number for number in numbers if number in set(acknowledged)] == sorted(acknowledged)

    run(main)


def test_a_delivery_is_handed_out_once_where_reading_it_failed(
    log_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The subscriber decides whether it wants some of them, and cannot read its subscriptions at first."""

    async def main() -> None:
        async with read_by_ann(log_url, partitions=1) as (site, ann):
            numbers = await (await site.publisher("bob")).publish([{"n": n} for n in range(4)])
            delivery = Delivery(1, tuple(numbers), 100, unsure=tuple(numbers[2:]))
            await site.log.append(QUEUES, [Entry(keys.queue_topic("ann"), keys.lane(0, 4), delivery.body())])
            read, failures = site.log.read, [1]

            async def failing(stream: str, **how: Any) -> Any:
                if stream == STATE and failures:
                    failures.pop()
                    raise LogUnavailableError("the server is away")
                return await read(stream, **how)

            monkeypatch.setattr(site.log, "read", failing)
            heard: list[Any] = []
            while len(heard) < 4 or ann._buffer:
                try:
                    heard.append((await ann.next(timeout=60)).event)  # type: ignore[union-attr]
                except LogUnavailableError:
                    continue
            assert heard == [{"n": n} for n in range(4)]
            assert not failures

    run(main)
