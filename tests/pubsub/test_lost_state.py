"""Somebody purges or deletes the stream of state: routers say so, route nothing by what is left, and go on
when it is there again.

Faults: a router waits for ever for a record that is gone; one that has read everything does not notice and
another one begins with nothing, so that two route differently; an empty stream is made again by whoever
connects, and every event is passed over because nobody seems to want it.
"""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pubsub.logs import read_by_ann, run
from pubsub.router_processes import metric
from servers import Nats
from tamis.pubsub import Delivered, StreamLostError, connect, keys
from tamis.pubsub.log import QUEUES, STATE, Entry, Log, Record, open_log
from tamis.pubsub.log import nats as nats_log
from tamis.pubsub.router.table import Table
from tamis.pubsub.service.config import Config
from tamis.pubsub.service.metrics import metrics_text
from tamis.pubsub.service.server import RouterServer
from tamis.pubsub.service.web import answer


async def purge(url: str, log: Any) -> None:
    """Remove all state, as an operator would."""
    if url.startswith("sqlite:"):
        database = sqlite3.connect(url.removeprefix("sqlite:"))
        with database:
            database.execute("DELETE FROM state")
        database.close()
    else:
        await log._api(f"STREAM.PURGE.{log._stream(STATE)}", {})


async def all_state(log: Log) -> list[Record]:
    return await log.read(STATE, most=10_000)


@asynccontextmanager
async def routing(url: str) -> AsyncIterator[RouterServer]:
    server = RouterServer(Config(url, lease_seconds=0.3, housekeeping_seconds=0.05))
    running = asyncio.create_task(server.run())
    await server.ready.wait()
    try:
        yield server
    finally:
        server.stop()
        await running


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await asyncio.sleep(0.02)


def says_that_state_is_gone(server: RouterServer) -> bool:
    """The metric and readiness follow one another; a busy log may first be out of reach, which is no loss."""
    return not server.is_ready and metric(metrics_text(server).decode(), "tamis_router_state_lost") == 1


def test_routers_say_that_state_is_gone_and_go_on_when_it_is_restored(log_url: str) -> None:
    async def main() -> None:
        async with connect(log_url, partitions=2) as site, routing(log_url) as server:
            ann = await site.subscriber("ann")
            await ann.subscribe("all", "TRUE")
            bob = await site.publisher("bob")
            await bob.publish({"n": 0})
            first = await ann.next(30)
            assert isinstance(first, Delivered)
            copy = await all_state(site.log)
            await purge(log_url, site.log)
            await until(lambda: says_that_state_is_gone(server))
            status, _, body = answer("/ready", server)
            assert (status, "state of this site is gone" in json.loads(body)["trouble"]) == (503, True)
            page = metrics_text(server).decode()
            assert metric(page, "tamis_router_state_lost") == 1
            assert metric(page, "tamis_router_ready") == 0
            assert metric(page, "tamis_router_rollbacks_total") == 1
            await bob.publish([{"n": 1}, {"n": 2}])
            end = await site.log.end(QUEUES)
            await asyncio.sleep(0.5)
            assert await site.log.end(QUEUES) == end, "events wait: nobody knows who wants them"
            with pytest.raises(StreamLostError, match="Restore"):
                async with connect(log_url):
                    pass
            for record in copy:
                await site.log.append(STATE, [Entry(record.topic, record.detail, record.body)])
            await until(lambda: server.is_ready)
            assert metric(metrics_text(server).decode(), "tamis_router_state_lost") == 0
            heard: list[Any] = [await ann.next(30) for _ in range(2)]
            assert [item.event["n"] for item in heard] == [1, 2]
            await ann.acknowledge()

    run(main)


def test_a_fresh_router_does_not_wait_for_what_was_purged(log_url: str) -> None:
    async def main() -> None:
        async with connect(log_url) as site:
            await (await site.subscriber("ann")).subscribe("all", "TRUE")
            await purge(log_url, site.log)
            with pytest.raises(StreamLostError):
                await Table(site.log).catch_up()

    run(main)


def test_a_last_record_that_others_removed_is_not_waited_for(log_url: str) -> None:
    async def main() -> None:
        async with read_by_ann(log_url) as (site, ann):
            await ann.subscribe("few", "n = 1")
            end = await site.log.end(STATE)
            await site.log.trim(STATE, end + 1, *keys.subscription_key("ann", "few"))
            table = Table(site.log)
            await table.catch_up()
            assert (table.position, len(table.index), table.rollbacks) == (end, 1, 1)

    run(main)


def test_a_stream_that_was_deleted_is_not_recreated_by_whoever_connects(
    nats: Nats, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nats_log, "STALE_SECONDS", 0.2)
    url = f"{nats.url}/deleted"

    async def main() -> None:
        async with connect(url, partitions=1) as site, routing(url) as server:
            log: Any = site.log
            ann = await site.subscriber("ann")
            await ann.subscribe("all", "TRUE")
            await (await site.publisher("bob")).publish({"n": 0})
            await ann.next(30)
            await log._api(f"STREAM.DELETE.{log._stream(STATE)}", None)
            await until(lambda: says_that_state_is_gone(server))
            with pytest.raises(StreamLostError):  # the stream is there again, and empty
                async with connect(url):
                    pass
            await asyncio.sleep(1)
            assert not server.is_ready
            # The other streams go, too: a new log under the old name.
            for stream in ("events", "queues", "state"):
                await log._api(f"STREAM.DELETE.{log._stream(stream)}", None)
            async with connect(url, partitions=1) as again:
                carl = await again.subscriber("carl")
                await carl.subscribe("all", "TRUE")
                await until(lambda: server.is_ready)
                await (await again.publisher("bob")).publish({"n": 7})
                item = await carl.next(60)
                assert isinstance(item, Delivered)
                assert item.event == {"n": 7}

    run(main)


def test_state_that_was_recreated_replaces_what_was_read(log_url: str) -> None:
    """An earlier release writes new settings into a purged stream."""

    async def main() -> None:
        async with connect(log_url) as site:
            await (await site.subscriber("ann")).subscribe("all", "TRUE")
            table = Table(site.log)
            await table.catch_up()
            assert len(table.index) == 1
            await purge(log_url, site.log)
            log = await open_log(log_url)
            await log.append(STATE, [Entry(*keys.SETTINGS, site.settings.body())], {keys.SETTINGS: 0})
            await table.catch_up()
            assert (len(table.index), table.rollbacks) == (0, 1)
            await log.close()

    run(main)
