"""Brokers inside the test's own process, with real sockets and files: for all that needs no kill."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from tamis.pubsub import Client
from tamis.pubsub.net.connection import Transport
from tamis.pubsub.net.nats_peer import NatsPeer
from tamis.pubsub.net.nats_transport import NatsTransport
from tamis.pubsub.net.server import BrokerServer, Setup
from tamis.pubsub.net.tcp import Address, TcpTransport

ANY_PORT = Address("127.0.0.1", 0)


class Inside:
    """A broker that runs, and how clients reach it."""

    def __init__(self, server: BrokerServer, task: "asyncio.Task[None]", nats: str | None) -> None:
        self.server = server
        self._task = task
        self._nats = nats

    @property
    def has_ended(self) -> bool:
        return self._task.done()

    @property
    def address(self) -> Address:
        return Address.parse(self.server.listening.result())

    def client(self, name: str, **more: Any) -> Client:
        if self._nats is not None:
            return Client.over_nats(self._nats, self.server.name, name, **more)
        return Client(self.address.host, self.address.port, name, **more)


@contextlib.asynccontextmanager
async def running(setup: Setup, transport: Transport, nats: str | None = None) -> AsyncIterator[Inside]:
    server = BrokerServer(setup, transport)
    task = asyncio.create_task(server.run())
    await asyncio.wait({task, asyncio.ensure_future(server.listening)}, return_when=asyncio.FIRST_COMPLETED)
    try:
        if task.done():
            await task
        yield Inside(server, task, nats)
    finally:
        server.stop()
        await task


def on_tcp(
    name: str,
    folder: Path,
    neighbours: Mapping[str, Address | None] | None = None,
    *,
    tls: ssl.SSLContext | None = None,
    tls_to_neighbours: ssl.SSLContext | None = None,
    **setup: Any,
) -> contextlib.AbstractAsyncContextManager[Inside]:
    transport = TcpTransport(name, ANY_PORT, folder, neighbours or {}, tls, tls_to_neighbours)
    return running(Setup(name, tuple(neighbours or {}), **setup), transport)


def on_nats(
    name: str, url: str, *neighbours: str, **setup: Any
) -> contextlib.AbstractAsyncContextManager[Inside]:
    return running(Setup(name, neighbours, **setup), NatsTransport(name, NatsPeer(url, name)), url)
