"""What one client may have and do: subscriptions, sizes, requests a second, permissions."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from pubsub.inside import on_tcp
from tamis.pubsub import Client, RefusedError
from tamis.pubsub.net.access import Access, digest


def with_client(tmp_path: Path, permissions: dict[str, Any], use: Any) -> None:
    known = {"token": digest("secret"), **permissions}

    async def scenario() -> None:
        access = Access({"clients": {"ann": known}})
        async with (
            on_tcp("b1", tmp_path, access=access) as broker,
            broker.client("ann", token="secret") as client,
        ):
            for name, token in [("ann", "wrong"), ("ann", None), ("eve", "secret")]:
                with pytest.raises(RefusedError, match=f"no client '{name}' with that token"):
                    await broker.client(name, token=token).connect()
            await use(client)

    asyncio.run(scenario())


def test_subscriptions_and_advertisements_are_counted_also_in_flight(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        for ask in (client.subscribe, client.advertise):
            asked = [ask(f"s{number}", "x = 1") for number in range(10)]
            answers = await asyncio.gather(*asked, return_exceptions=True)
            assert [answer is None for answer in answers] == [True] * 3 + [False] * 7
            assert "has 3 " in str(answers[3])
        await client.subscribe("s0", "x = 2")
        await client.unsubscribe("s0")
        await client.subscribe("s9", "x = 1")

    with_client(tmp_path, {"limits": {"subscriptions": 3}}, use)


def test_large_expressions_and_events_are_refused(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        await client.subscribe("s", "x = 12345")
        with pytest.raises(RefusedError, match="the expression has 11 bytes; at most 10 are allowed"):
            await client.subscribe("s", "x = 1234567")
        await client.publish('{"x": "é"}')
        with pytest.raises(RefusedError, match="the event has 13 bytes; at most 12 are allowed"):
            await client.publish('{"x": "éé"}')

    with_client(tmp_path, {"limits": {"expression_bytes": 10, "event_bytes": 12}}, use)


def test_a_client_that_is_too_fast_is_slowed_down(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        started = time.monotonic()
        await asyncio.gather(*(client.publish({"x": number}) for number in range(30)))
        assert time.monotonic() - started > 1.9, "10 at once, then 20 at 10 a second"

    with_client(tmp_path, {"limits": {"requests_per_second": 10}}, use)


def test_permissions(tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        for refused in (client.subscribe("s", "x = 1"), client.publish({"x": 1}), client.unsubscribe("s")):
            with pytest.raises(RefusedError, match="this client may not"):
                await refused
        with pytest.raises(RefusedError, match="the attribute 'y' is not allowed; allowed are x"):
            await client.advertise("ann-1", "x = 1 OR y = 2")
        with pytest.raises(RefusedError, match="the id 'bob-1' is not allowed; allowed are ann-"):
            await client.advertise("bob-1", "x = 1")
        await client.advertise("ann-1", "x = 1")

    permissions = {"publish": False, "subscribe": False, "attributes": ["x"], "ids": "ann-*"}
    with_client(tmp_path, permissions, use)
