"""Both logs for one test: who takes `log_url` runs on SQLite and on NATS, every time on a new log."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tamis.pubsub.site import Site, connect
from tamis.pubsub.subscriber import Delivered, Subscriber

_numbers = itertools.count()


@pytest.fixture(params=["sqlite", "nats"])
def log_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:{tmp_path}/site.db"
    return f"{request.getfixturevalue('nats').url}/test-{next(_numbers)}"


def run(work: Callable[[], Coroutine[Any, Any, Any]], seconds: float = 500) -> Any:
    """Run a coroutine to its end; a test that hangs fails."""

    async def bounded() -> Any:
        async with asyncio.timeout(seconds):
            return await work()

    return asyncio.run(bounded())


@asynccontextmanager
async def read_by_ann(url: str, **more: Any) -> AsyncIterator[tuple[Site, Subscriber]]:
    """A site with a subscriber that wants everything."""
    async with connect(url, **more) as site:
        ann = await site.subscriber("ann")
        await ann.subscribe("all", "TRUE")
        yield site, ann


async def heard(subscriber: Subscriber) -> list[Any]:
    """All that waits: events, and gaps as (reason, count)."""
    found: list[Any] = []
    while subscriber._buffer or await subscriber._fill():
        item = await subscriber.next()
        found.append(item.event if isinstance(item, Delivered) else (item.reason, item.count))
    return found
