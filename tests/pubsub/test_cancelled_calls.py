"""Calls that are cancelled, or that fail, at the worst moment.

Faults: a publisher whose call was cancelled after the log had taken the events believes that the next ones
are there already, and they are lost; or its next calls all fail; or a repeated call publishes twice: what it
had written before the part that was cancelled, or that part, because the log was busy, had trimmed what was
before it, or failed once more. An answer is lost, and then the log is full: if the events are written late,
all further calls fail. A rollback that it was just about to report is forgotten. A subscriber that was
interrupted while it read a delivery hands out the beginning of it twice.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pubsub.logs import read_by_ann, run
from tamis.pubsub import RolledBackError, keys, publisher
from tamis.pubsub.log import EVENTS, QUEUES, STATE, BusyError, Entry, Log, LogFullError, LogUnavailableError
from tamis.pubsub.records import Delivery
from tamis.pubsub.records.fields import write
from tamis.pubsub.site import connect


def cancelled_once(
    monkeypatch: pytest.MonkeyPatch, log: Any, *, is_written: bool, after: int = 0, is_busy: bool = False
) -> None:
    """Let an append be cancelled after so many others, before or after it is written.

    With `is_busy`, the log takes entries only one by one, until then.
    """
    append, left = log.append, [after]

    async def cancelled(stream: str, entries: Any, *more: Any) -> int:
        if is_busy and len(entries) > 1:
            raise BusyError("others use all batches")
        if left[0]:
            left[0] -= 1
            return int(await append(stream, entries, *more))
        monkeypatch.setattr(log, "append", append)
        if is_written:
            await append(stream, entries, *more)
        raise asyncio.CancelledError

    monkeypatch.setattr(log, "append", cancelled)


async def stored_events(log: Log) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    while records := await log.read(EVENTS, topic="p0", after=max(found, default=0), to_end=True):
        found |= {record.seq: record.body.partition(b"\n")[2] for record in records}
    return found


def failing_times(
    monkeypatch: pytest.MonkeyPatch, log: Any, method: str, times: int, error: Callable[[], BaseException]
) -> None:
    """Let the next calls of a method fail."""
    working, left = getattr(log, method), [times]

    async def failing(*arguments: Any, **how: Any) -> Any:
        left[0] -= 1
        if not left[0]:
            monkeypatch.setattr(log, method, working)
        raise error()

    monkeypatch.setattr(log, method, failing)


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


@pytest.mark.parametrize("is_written", [False, True])
@pytest.mark.parametrize("is_same", [False, True])
@pytest.mark.parametrize(
    ("count", "after", "is_busy"), [(1_500, 0, False), (1_500, 1, False), (2_000, 1, False), (20, 7, True)]
)
def test_a_large_call_that_is_repeated_goes_on_where_it_was_cancelled(
    log_url: str,
    monkeypatch: pytest.MonkeyPatch,
    *,
    count: int,
    after: int,
    is_busy: bool,
    is_same: bool,
    is_written: bool,
) -> None:
    """The events are in several appends, and may all be the same."""
    events = [{"n": 1 if is_same else n} for n in range(count)]

    async def main() -> None:
        async with connect(log_url, partitions=1) as site:
            bob = await site.publisher("bob")
            cancelled_once(monkeypatch, site.log, is_written=is_written, after=after, is_busy=is_busy)
            with pytest.raises(asyncio.CancelledError):
                await bob.publish(events)
            numbers = await bob.publish(events)
            stored = await stored_events(site.log)
            assert numbers == list(stored)
            assert list(stored.values()) == [b'{"n":%d}' % event["n"] for event in events]
            assert len(await bob.publish(events)) == count, "a third call is none that is repeated"
            assert len(await stored_events(site.log)) == 2 * count

    run(main)


@pytest.mark.parametrize("is_written", [False, True])
@pytest.mark.parametrize("method", ["append", "last"])
def test_a_repeated_call_that_meets_trouble(
    log_url: str, monkeypatch: pytest.MonkeyPatch, method: str, is_written: bool
) -> None:
    """The log is busy, or cannot tell what it has."""
    events = [{"n": 1}, {"n": 1}]
    error = BusyError if method == "append" else LogUnavailableError

    async def main() -> None:
        async with connect(log_url, partitions=1) as site:
            bob = await site.publisher("bob")
            await bob.publish({"n": 0})
            cancelled_once(monkeypatch, site.log, is_written=is_written)
            with pytest.raises(asyncio.CancelledError):
                await bob.publish(events)
            failing_times(monkeypatch, site.log, method, 3, lambda: error("the server is in trouble"))
            numbers: list[int] = []
            while not numbers:
                try:
                    numbers = await bob.publish(events)
                except LogUnavailableError:
                    continue
            last = await bob.publish({"n": 2})
            stored = await stored_events(site.log)
            assert list(stored.values()) == [b'{"n":%d}' % n for n in (0, 1, 1, 2)]
            assert numbers + last == list(stored)[1:]

    run(main)


def full_after_a_lost_answer(monkeypatch: pytest.MonkeyPatch, log: Any) -> Callable[[], Awaitable[int]]:
    """Hold up the next append, and refuse the one after it; returns what lets the first one go on."""
    append, held = log.append, []

    async def failing(stream: str, *request: Any) -> int:
        if not held:
            held.append((stream, *request))
            raise LogUnavailableError("the answer was lost")
        monkeypatch.setattr(log, "append", append)
        raise LogFullError("there is no room")

    monkeypatch.setattr(log, "append", failing)
    return lambda: append(*held[0])


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("is_repeated", [False, True])
def test_a_lost_answer_and_then_a_full_log(
    log_url: str, monkeypatch: pytest.MonkeyPatch, is_late: bool, is_repeated: bool
) -> None:
    events = [{"n": 1}, {"n": 2}]

    async def main() -> None:
        async with connect(log_url, partitions=1) as site:
            bob = await site.publisher("bob")
            await bob.publish({"n": 0})
            go_on = full_after_a_lost_answer(monkeypatch, site.log)
            with pytest.raises(
                LogFullError, match=r"there is no room; .* unknown whether 2 events"
            ) as failed:
                await bob.publish(events)
            assert "Repeat the same call" in str(failed.value), "and who logs only the message reads it, too"
            if is_late:
                await go_on()
            numbers = await bob.publish(events) if is_repeated else []
            last = await bob.publish({"n": 3})
            stored = await stored_events(site.log)
            assert list(stored.values()) == [
                b'{"n":%d}' % n for n in (0, *((1, 2) if is_late or is_repeated else ()), 3)
            ]
            assert (numbers + last if is_repeated else last) == list(stored)[-3 if is_repeated else -1 :]
            if not (is_late or is_repeated):
                await bob.publish({"n": 4})
                await go_on()  # much later, under a session that nobody uses any more
                await bob.publish({"n": 5})

    run(main)


@pytest.mark.parametrize("is_written", [False, True])
@pytest.mark.parametrize("has_rested", [False, True])
def test_a_call_is_repeated_after_what_was_before_it_is_trimmed(
    log_url: str, monkeypatch: pytest.MonkeyPatch, has_rested: bool, is_written: bool
) -> None:
    async def main() -> None:
        async with connect(log_url, partitions=1) as site:
            bob = await site.publisher("bob")
            [before] = await bob.publish({"n": 0})
            cancelled_once(monkeypatch, site.log, is_written=is_written)
            with pytest.raises(asyncio.CancelledError):
                await bob.publish({"n": 1})
            await site.log.append(STATE, [Entry(keys.TRIM, "0", write({"before": before + 1}))])
            await site.log.trim(EVENTS, before + 1, "p0")
            if has_rested:
                monkeypatch.setattr(publisher, "SESSION_SECONDS", -1.0)
            numbers = await bob.publish({"n": 1})
            assert await stored_events(site.log) == {numbers[0]: b'{"n":1}'}

    run(main)


def test_a_rollback_is_reported_by_a_call_that_is_repeated(
    log_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was cancelled while it looked whether what is missing had been trimmed."""

    async def main() -> None:
        async with connect(log_url, partitions=1) as site:
            bob = await site.publisher("bob")
            [lost] = await bob.publish({"n": 0})
            await site.log.trim(EVENTS, lost + 1, "p0")
            last = site.log.last

            async def cancelled(stream: str, wanted: Any) -> Any:
                # The publisher asks once before it has looked for its events, and once after.
                if stream == STATE and looked:
                    monkeypatch.setattr(site.log, "last", last)
                    raise asyncio.CancelledError
                looked.append(stream)
                return await last(stream, wanted)

            looked: list[str] = []
            monkeypatch.setattr(site.log, "last", cancelled)
            with pytest.raises(asyncio.CancelledError):
                await bob.publish({"n": 1})
            assert EVENTS in looked
            with pytest.raises(RolledBackError):
                await bob.publish({"n": 1})

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
