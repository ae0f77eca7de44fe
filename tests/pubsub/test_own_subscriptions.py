"""What a subscriber knows of its own subscriptions.

Faults: one that was removed while they were being read counts as there; what was read before another task
subscribed is remembered as if it were complete, and so is what was known before a call that failed, though it
was written: events are not handed out. An expression of a later release, which cannot be parsed here, ends
all reading.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pubsub.logs import read_by_ann, run
from pubsub.test_site import drain, router_of
from tamis.pubsub import Delivered, connect, keys
from tamis.pubsub.log import QUEUES, STATE, Entry, LogUnavailableError
from tamis.pubsub.records import Delivery, Subscription
from tamis.pubsub.site import Site
from tamis.pubsub.subscriber import Subscriber


def after_the_first_read(
    monkeypatch: pytest.MonkeyPatch, log: Any, change: Callable[[], Awaitable[Any]]
) -> None:
    """Let something happen once some subscriptions were read, and before the caller knows."""
    read = log.read

    async def changing(stream: str, **how: Any) -> Any:
        records = await read(stream, **{**how, "most": 1})
        if stream == STATE and how["topic"] == keys.SUBSCRIPTION:
            monkeypatch.setattr(log, "read", read)
            await change()
        return records

    monkeypatch.setattr(log, "read", changing)


async def deliver_unsure(site: Site, first: int, event: Any) -> None:
    """Deliver an event to ann of which a router does not know whether she wants it."""
    numbers = await (await site.publisher("bob")).publish(event)
    delivery = Delivery(first, tuple(numbers), 100, unsure=tuple(numbers))
    await site.log.append(QUEUES, [Entry(keys.queue_topic("ann"), keys.lane(0, 4), delivery.body())])


async def waiting_for(subscriber: Subscriber) -> list[Any]:
    """The events that it would hand out now; does not wait for more."""
    while await subscriber._fill():
        continue
    events = [item.event for item in subscriber._buffer if isinstance(item, Delivered)]
    subscriber._buffer.clear()
    return events


def test_a_subscription_that_is_removed_while_they_are_read(
    log_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with read_by_ann(log_url) as (site, ann):
            await ann.subscribe("more", "n > 1")
            after_the_first_read(monkeypatch, site.log, lambda: ann.unsubscribe("all"))
            assert await ann.subscriptions() == {"more": "n > 1"}

    run(main)


def test_a_task_subscribes_while_another_reads_what_is_subscribed(
    log_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with connect(log_url, partitions=1) as site:
            ann = await site.subscriber("ann")
            await ann.subscribe("one", "n = 1")
            read, has_read, may_go_on = site.log.read, asyncio.Event(), asyncio.Event()

            async def slow(stream: str, **how: Any) -> Any:
                records = await read(stream, **how)
                if stream == STATE and how["topic"] == keys.SUBSCRIPTION and not records:
                    monkeypatch.setattr(site.log, "read", read)
                    has_read.set()
                    await may_go_on.wait()
                return records

            await deliver_unsure(site, 1, {"n": 1})
            monkeypatch.setattr(site.log, "read", slow)
            reading = asyncio.create_task(ann.next(60))
            await has_read.wait()
            await ann.subscribe("two", "n = 2")
            may_go_on.set()
            assert (await reading).event == {"n": 1}  # type: ignore[union-attr]
            await deliver_unsure(site, 2, {"n": 2})
            assert await waiting_for(ann) == [{"n": 2}]

    run(main)


def test_a_subscription_whose_answer_was_lost(log_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with connect(log_url, partitions=1) as site:
            ann = await site.subscriber("ann")
            await ann.subscribe("one", "n = 1")
            await deliver_unsure(site, 1, {"n": 1})
            assert await waiting_for(ann) == [{"n": 1}]
            append = site.log.append

            async def losing(stream: str, *more: Any) -> int:
                monkeypatch.setattr(site.log, "append", append)
                await append(stream, *more)
                raise LogUnavailableError("the answer was lost")

            monkeypatch.setattr(site.log, "append", losing)
            with pytest.raises(LogUnavailableError):
                await ann.subscribe("two", "n = 2")
            await deliver_unsure(site, 2, {"n": 2})
            assert await waiting_for(ann) == [{"n": 2}]

    run(main)


def test_an_expression_of_a_later_release_wants_everything(log_url: str) -> None:
    """No event is lost that the later release would have handed out."""

    async def main() -> None:
        async with connect(log_url) as site:
            ann = await site.subscriber("ann")
            await ann.subscribe("one", "n = 1")
            later = Subscription("n FROBS 3").body()
            await site.log.append(STATE, [Entry(*keys.subscription_key("ann", "later"), later)])
            await (await site.publisher("bob")).publish([{"n": 1}, {"n": 2}])
            await drain(router_of(site))
            assert await waiting_for(ann) == [{"n": 1}, {"n": 2}]
            assert await ann.subscriptions() == {"one": "n = 1", "later": "n FROBS 3"}

    run(main)
