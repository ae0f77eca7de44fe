"""A connection over NATS while its peer is silent: who sends all the time notices it, and is not silent."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tamis.pubsub.net import nats_connection
from tamis.pubsub.net.nats_connection import WINDOW, NatsConnection

BEAT = 0.05
BEAT_PACKET_KIND = b"-"


@pytest.fixture(autouse=True)
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nats_connection, "BEAT_SECONDS", BEAT)


async def sending(connection: NatsConnection, times: int) -> AsyncIterator[int]:
    """Send much more often than once in a beat."""
    for number in range(times):
        connection.send({"number": number})
        yield number
        await asyncio.sleep(BEAT / 10)


def connection_to(published: list[bytes]) -> NatsConnection:
    async def publish(packet: bytes) -> None:
        published.append(packet)

    return NatsConnection("the peer", publish, 1 << 20, on_end=lambda: None)


def test_a_silent_peer_is_noticed_while_sending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nats_connection, "SECONDS_UNTIL_DEAD", 4 * BEAT)

    async def scenario() -> None:
        connection = connection_to([])
        hearing = asyncio.create_task(connection.receive())
        async for _ in sending(connection, times=400):
            if hearing.done():
                break
        assert hearing.done(), "forty beats without a word"
        with pytest.raises(ConnectionResetError, match="the peer has been silent"):
            await hearing

    asyncio.run(scenario())


def test_beats_go_out_while_the_window_is_closed() -> None:
    async def scenario() -> None:
        published: list[bytes] = []
        connection = connection_to(published)
        connection.send({"text": "x" * 2 * WINDOW})
        async for _ in sending(connection, times=100):
            pass
        assert connection.unsent > WINDOW // 2
        assert any(packet[16:17] == BEAT_PACKET_KIND for packet in published)
        connection.abort()
        await connection.ended()

    asyncio.run(scenario())
