"""How a broker ends: asked to, it answers what it took and keeps it; broken, it ends instead of hanging."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pubsub.inside import on_nats, on_tcp
from pubsub.processes import hear
from tamis.pubsub.broker import inputs as i
from tamis.pubsub.broker.machine import Broker


@pytest.mark.parametrize("transport", ["tcp", "nats"])
def test_what_is_acknowledged_while_it_stops_is_kept(
    tmp_path: Path, transport: str, request: pytest.FixtureRequest
) -> None:
    def broker() -> Any:
        if transport == "tcp":
            return on_tcp("b1", tmp_path)
        return on_nats("shutdown", request.getfixturevalue("nats").url)

    async def stop_under_load() -> set[int]:
        acknowledged: set[int] = set()
        async with broker() as inside:
            async with inside.client("ann") as ann:
                await ann.subscribe("all", "serial >= 0")
            bob = inside.client("bob")
            await bob.connect()

            async def publish(serial: int) -> None:
                await bob.publish({"serial": serial})
                acknowledged.add(serial)
                if len(acknowledged) == 20:
                    inside.server.stop()

            publishing = [asyncio.create_task(publish(serial)) for serial in range(900)]
            while len(acknowledged) < 20:
                await asyncio.sleep(0.01)
        await bob.close()
        await asyncio.gather(*publishing, return_exceptions=True)
        return acknowledged

    async def hear_them(acknowledged: set[int]) -> None:
        async with broker() as inside, inside.client("ann") as ann:
            heard = await hear(ann, acknowledged)
            assert heard == sorted(set(heard))

    acknowledged = asyncio.run(stop_under_load())
    assert len(acknowledged) >= 20
    asyncio.run(hear_them(acknowledged))


def test_an_error_of_ours_ends_the_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = Broker.handle

    def broken(self: Broker, input: Any, now: float) -> Any:
        if isinstance(input, i.Publish):
            raise ZeroDivisionError
        return handle(self, input, now)

    monkeypatch.setattr(Broker, "handle", broken)

    async def scenario() -> None:
        async with on_tcp("b1", tmp_path) as inside:
            client = inside.client("ann")
            await client.connect()
            publishing = asyncio.create_task(client.publish({"x": 1}))
            while not inside.has_ended:
                await asyncio.sleep(0.01)
            assert not publishing.done()
            await client.close()

    with pytest.raises(ZeroDivisionError):
        asyncio.run(scenario())
