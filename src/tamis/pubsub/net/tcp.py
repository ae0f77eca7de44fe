"""Brokers and clients on plain TCP, with TLS or without, and a file for what must survive."""

import asyncio
import contextlib
import ipaddress
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tamis.pubsub.net import wire
from tamis.pubsub.net.connection import MOST_BYTES, Connection, UnreachableError
from tamis.pubsub.net.file_store import FileStore

BUFFER = 1 << 16
SECONDS_UNTIL_DEAD = 10
"""How long a peer may leave the system's probes, or what was sent, unacknowledged."""


@dataclass(frozen=True)
class Address:
    """Where a broker listens.

    >>> Address.parse("localhost:7001")
    Address(host='localhost', port=7001)
    """

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Read HOST:PORT; without a host, this machine."""
        host, colon, port = text.rpartition(":")
        if not colon or not port.isdecimal() or int(port) > 65_535:
            raise ValueError(f"{text!r} is no address; write HOST:PORT, such as localhost:7001")
        return cls(host or "127.0.0.1", int(port))

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it.

        >>> Address("127.0.0.1", 7001).is_loopback, Address("0.0.0.0", 7001).is_loopback
        (True, False)
        """
        everywhere = None  # what no host at all means to whoever listens
        found = socket.getaddrinfo(
            self.host or everywhere, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        return all(ipaddress.ip_address(address[0]).is_loopback for *_, address in found)

    def __str__(self) -> str:
        """HOST:PORT."""
        return f"{self.host}:{self.port}"


class TcpConnection:
    """A `Connection` on a socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take over a socket that is connected."""
        self._reader = reader
        self._writer = writer
        self.peer = ":".join(map(str, (writer.get_extra_info("peername") or ("unknown",))[:2]))
        _notice_silence(writer.get_extra_info("socket"))

    @property
    def unsent(self) -> int:
        """Bytes that the system has not taken yet."""
        return self._writer.transport.get_write_buffer_size()

    def send(self, message: Mapping[str, Any]) -> None:
        """Hand a message to the system, or keep it until the system takes it."""
        if not self._writer.is_closing():
            self._writer.write(wire.pack(message))

    async def receive(self, most_bytes: int = MOST_BYTES) -> dict[str, Any] | None:
        """The next message."""
        return await wire.read(self._reader, most_bytes)

    async def drain(self) -> None:
        """Wait until the system has taken most of it."""
        with contextlib.suppress(OSError):
            await self._writer.drain()

    def close(self) -> None:
        """Close after what was sent."""
        self._writer.close()

    def abort(self) -> None:
        """Close at once."""
        self._writer.transport.abort()


def _notice_silence(connected: socket.socket) -> None:
    """Let the system end a connection whose peer has vanished; without this it would wait for hours."""
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, SECONDS_UNTIL_DEAD // 2)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, SECONDS_UNTIL_DEAD // 2)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SECONDS_UNTIL_DEAD * 1_000)


class TcpDialer:
    """A `Dialer` to an address."""

    def __init__(self, address: Address, tls: ssl.SSLContext | None = None) -> None:
        """Say where; with a context, over TLS."""
        self._address = address
        self._tls = tls
        self.where = str(address)

    async def connect(self) -> Connection:
        """Connect."""
        try:
            streams = await asyncio.open_connection(
                self._address.host, self._address.port, ssl=self._tls, limit=BUFFER
            )
        except ssl.SSLCertVerificationError as error:
            raise UnreachableError(f"{self.where} is not trusted: {error.verify_message}") from None
        return TcpConnection(*streams)

    async def close(self) -> None:
        """Nothing is held."""


@dataclass
class TcpTransport:
    """A `Transport` that listens on an address and keeps a file. A neighbour without address is awaited."""

    name: str
    address: Address
    data: Path
    neighbours: Mapping[str, Address | None]
    tls: ssl.SSLContext | None = None
    tls_to_neighbours: ssl.SSLContext | None = None
    _server: asyncio.Server | None = None

    def exposed_at(self) -> str | None:
        """The address to listen on, unless only this machine reaches it."""
        return None if self.address.is_loopback else str(self.address)

    async def open_store(self) -> FileStore:
        """The file of the broker's name in the data folder."""
        return FileStore(self.data / f"{self.name}.log")

    async def listen(self, serve: Callable[[Connection], Awaitable[None]]) -> str:
        """Listen on the address."""

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await serve(TcpConnection(reader, writer))

        self._server = await asyncio.start_server(
            accept, self.address.host, self.address.port, ssl=self.tls, limit=BUFFER
        )
        return str(Address(*self._server.sockets[0].getsockname()[:2]))

    def dialer(self, neighbour: str) -> TcpDialer | None:
        """To the neighbour's address, if one is known."""
        address = self.neighbours[neighbour]
        return None if address is None else TcpDialer(address, self.tls_to_neighbours)

    async def stop_listening(self) -> None:
        """Close the listening socket."""
        if self._server is not None:
            self._server.close()

    async def close(self) -> None:
        """Nothing else is held."""
