"""Forgets a subscriber: its queue, position and subscriptions, and nothing that came under its name later."""

import asyncio
from collections.abc import Sequence

from tamis.pubsub import keys
from tamis.pubsub.log.contract import (
    MOST_ENTRIES,
    QUEUES,
    STATE,
    BusyError,
    Entry,
    FencedError,
    Key,
    Log,
)
from tamis.pubsub.names import token

RETRY_SECONDS = 0.05


async def remove_subscriber(log: Log, name: str, left: Sequence[Entry] = (), read: int | None = None) -> None:
    """Forget a subscriber. What comes under its name after its queue is gone stays.

    `left` is what is written instead; with `read`, the number of its last position, only if it has not come
    back since: otherwise that is a `FencedError`, and nothing is removed.

    >>> import tempfile
    >>> from tamis.pubsub.site import connect
    >>> async def example(folder):
    ...     async with connect(f"sqlite:{folder}/site.db") as site:
    ...         ann = await site.subscriber("ann")
    ...         _ = await ann.subscribe("cheap", "price < 15")
    ...         await remove_subscriber(site.log, "ann")
    ...         return await ann.subscriptions()
    >>> asyncio.run(example(tempfile.mkdtemp()))
    {}
    """
    mine = token(name)
    entries = {(topic, mine): Entry(topic, mine, b"") for topic in (keys.QUEUE, keys.READ, keys.DROP)}
    entries |= {entry.key: entry for entry in left}
    delivered = await log.end(QUEUES)
    fences = None if read is None else {(keys.READ, mine): read}
    removed = await log.append(STATE, list(entries.values()), fences)
    await remove_subscriptions(log, mine, removed)
    await log.trim(QUEUES, delivered + 1, keys.queue_topic(name))


async def remove_subscriptions(log: Log, subscriber: str, before: int) -> None:
    """Take back the subscriptions of a subscriber (as a part of a key) with numbers below `before`."""
    after = 0
    while records := await log.read(
        STATE, topic=keys.SUBSCRIPTION, name=subscriber, after=after, most=MOST_ENTRIES, to_end=True
    ):
        gone = {(r.topic, r.detail): r.seq for r in records if r.body and r.seq < before}
        try:
            if gone:
                await _take_back(log, gone)
        except FencedError:
            await asyncio.sleep(RETRY_SECONDS)  # some were written again: look again
            continue
        after = records[-1].seq
        if after >= before:
            return


async def _take_back(log: Log, numbers: dict[Key, int]) -> None:
    """Take back records of the state, unless they were written again since."""
    try:
        await log.append(STATE, [Entry(*key, b"") for key in numbers], numbers)
    except BusyError:
        for key, number in numbers.items():
            await log.append(STATE, [Entry(*key, b"")], {key: number})
