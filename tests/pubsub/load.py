"""Publish at one end and hear at the other while something bad happens, and miss nothing."""

import asyncio
from collections.abc import Awaitable, Callable

from tamis.pubsub import Client, Notification


async def publish_while(
    publisher: Client, subscriber: Client, trouble: Callable[[], Awaitable[None]]
) -> None:
    """The subscriber has subscribed to events of the kind `wanted`; it must hear each once, in order."""
    hearing = asyncio.create_task(hear_all(subscriber))
    over = asyncio.ensure_future(trouble())
    serial = 0
    while not over.done() or serial < 50:
        await publisher.publish({"serial": serial, "kind": "wanted" if serial % 2 else "unwanted"})
        await asyncio.sleep(0.01)
        serial += 1
    await over
    await publisher.publish({"serial": serial, "kind": "wanted", "is_last": True})
    assert await hearing == [*range(1, serial, 2), serial]


async def hear_all(client: Client) -> list[int]:
    """Serial numbers in the order in which they are heard, up to that of the last event."""
    heard: list[int] = []
    async for note in client:
        assert isinstance(note, Notification)
        heard.append(note.event["serial"])
        if note.event.get("is_last"):
            break
    return heard
