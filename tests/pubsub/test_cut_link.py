"""A link that is really cut, between two brokers on TCP: it heals, and nothing is lost."""

import asyncio
from pathlib import Path

import pytest

from pubsub.inside import on_tcp
from pubsub.load import publish_while
from pubsub.proxy import Proxy
from tamis.pubsub.net.tcp import Address


def test_a_link_that_is_cut_heals(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "tamis.broker")

    async def scenario() -> None:
        async with on_tcp("b1", tmp_path, {"b2": None}) as one, Proxy(one.address.port) as proxy:

            async def cut_and_heal() -> None:
                await asyncio.sleep(0.2)
                proxy.pause()  # nothing passes, and no side is told
                await asyncio.sleep(1.5)
                proxy.resume()
                await asyncio.sleep(0.2)
                proxy.cut()
                await asyncio.sleep(0.5)
                await proxy.open()

            way = {"b1": Address("127.0.0.1", proxy.port)}
            async with (
                on_tcp("b2", tmp_path, way) as two,
                one.client("ann") as ann,
                two.client("bob") as bob,
            ):
                await ann.subscribe("all", "kind = 'wanted'")
                await publish_while(bob, ann, cut_and_heal)

    asyncio.run(scenario())
    ups = [line.neighbour for line in caplog.records if line.message == "link up"]
    assert ups.count("b1") == ups.count("b2") == 2
