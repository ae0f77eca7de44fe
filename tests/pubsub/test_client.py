"""The client: what it repeats after a broken connection, in which order, and when it gives up."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from pubsub.inside import on_tcp
from tamis.pubsub import Client, RefusedError
from tamis.pubsub.net.tcp import TcpConnection


def with_script(
    script: Callable[[TcpConnection, int], Awaitable[None]], use: Callable[[Client], Awaitable[None]]
) -> None:
    """A client, and what is done with each of its connections, which are numbered from 1."""

    async def scenario() -> None:
        count = 0

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal count
            count += 1
            connection = TcpConnection(reader, writer)
            assert await connection.receive() == {"hello": "client", "name": "ann", "token": None}
            await script(connection, count)
            connection.close()

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, Client("127.0.0.1", port, "ann") as client:
            await use(client)

    asyncio.run(scenario())


def test_what_was_not_answered_goes_before_what_is_new() -> None:
    """Numbers grow: had the new one gone first, the broker would take the old one for a repetition."""
    is_back, is_asked = asyncio.Event(), asyncio.Event()

    async def script(connection: TcpConnection, count: int) -> None:
        if count == 1:
            connection.send({"reply": 0, "value": 0})
            assert (await connection.receive() or {})["number"] == 1
            return
        is_back.set()
        await is_asked.wait()
        connection.send({"reply": 0, "value": 0})
        for number in (1, 2):
            request = await connection.receive()
            assert request is not None
            assert request["number"] == number
            connection.send({"reply": request["request"], "value": number})
        await connection.receive()

    async def use(client: Client) -> None:
        first = asyncio.create_task(client.publish({"x": 1}))
        await is_back.wait()
        second = asyncio.create_task(client.publish({"x": 2}))
        await asyncio.sleep(0)
        is_asked.set()
        assert await first == 1
        assert await second == 2

    with_script(script, use)


def test_a_repeated_removal_that_finds_nothing_was_done() -> None:
    async def script(connection: TcpConnection, count: int) -> None:
        connection.send({"reply": 0})
        request = await connection.receive() or {}
        if count == 2:
            connection.send({"reply": request["request"], "error": "ann has no subscription 's'"})
            await connection.receive()

    async def use(client: Client) -> None:
        await client.unsubscribe("s")

    with_script(script, use)


def test_what_was_dealt_with_is_acknowledged_again() -> None:
    acknowledged: asyncio.Queue[int] = asyncio.Queue()

    async def script(connection: TcpConnection, count: int) -> None:
        connection.send({"reply": 0})
        if count == 1:
            note = {"event": "{}", "number": 7, "type": None, "subscriptions": ["s"], "origin": ""}
            connection.send(note)
            return
        await acknowledged.put((await connection.receive() or {})["number"])

    async def use(client: Client) -> None:
        async for note in client:
            client.acknowledge(note.number)
            break
        assert await acknowledged.get() == 7

    with_script(script, use)


def test_a_name_that_is_taken_over_ends_the_older_connection(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            on_tcp("b1", tmp_path) as broker,
            broker.client("ann") as older,
            broker.client("ann") as newer,
        ):
            with pytest.raises(RefusedError, match="another connection has taken over the name 'ann'"):
                await anext(aiter(older))
            with pytest.raises(RefusedError, match="taken over"):
                await older.publish({"x": 1})
            assert await newer.publish({"x": 1}) == 1

    asyncio.run(scenario())


def test_what_is_no_text_is_refused_by_the_client_and_by_the_broker(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with on_tcp("b1", tmp_path) as broker, broker.client("ann") as client:
            with pytest.raises(UnicodeEncodeError):
                await client.publish('{"x": "\ud800"}')
            with pytest.raises(RefusedError):
                await client.publish('{"x": "\\ud800"}')
            await client.publish({"x": 1})

    asyncio.run(scenario())
