"""A process on NATS: makes and takes connections over one connection to the server, and comes back to it.

A broker listens on `tamis.broker.NAME.*`. Who connects makes up the last part, and an inbox of its own; the
two subjects are the ends of a `NatsConnection`, which exists from its first packet on.
"""

import asyncio
import logging
import re
import ssl
import uuid
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from tamis._extras import missing_extra
from tamis.errors import ArgumentError
from tamis.pubsub.net.connection import Connection, UnreachableError
from tamis.pubsub.net.nats_connection import UNKNOWN, NatsConnection, is_first_packet

if TYPE_CHECKING:
    from nats.aio.client import Client as NatsClient
    from nats.aio.msg import Msg
    from nats.js import JetStreamContext

logger = logging.getLogger("tamis.nats")

CONNECT_SECONDS = 5.0
RETURN_SECONDS = 0.2
MOST_CONNECTIONS = 10_000


def token_of(name: str) -> str:
    """A broker's name as one token of a subject, or as a part of a stream's name.

    Dots separate tokens, and JetStream gives a meaning of its own to an @.

    >>> token_of("b.1@home")
    'b=2E1=40home'
    """
    return re.sub("[.:@]", lambda found: f"={ord(found[0]):02X}", name)


class NatsPeer:
    """One connection to NATS, and all `NatsConnection`s over it."""

    def __init__(
        self, servers: str, name: str, tls: ssl.SSLContext | None = None, credentials: str | None = None
    ) -> None:
        """Say where the servers are, separated by commas, and who we are there."""
        try:
            import nats  # noqa: F401, PLC0415 - an extra
        except ImportError:
            raise ArgumentError(missing_extra("NATS", "nats")) from None
        self.servers = servers
        self._name = name
        self._tls = tls
        self._credentials = credentials
        self._client: NatsClient | None = None
        self._opening = asyncio.Lock()
        self._hopeless = asyncio.Event()
        self._trouble = "no answer"
        self._connections: dict[str, NatsConnection] = {}
        self._listens_as: str | None = None
        self._serve: Callable[[Connection], Awaitable[None]] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closing = False

    async def open(self) -> "NatsClient":
        """The client, connected to a server.

        Raises `ConnectionError` if there is none now, and `UnreachableError` if none wants us.
        """
        async with self._opening:
            if self._client is None or self._client.is_closed:
                self._client = await self._connect()
                if self._listens_as is not None:
                    await self._client.subscribe(f"{self._listens_as}.*", cb=self._on_packet)
        if not self._client.is_connected:
            raise ConnectionError(f"NATS at {self.servers} is away: {self._trouble}")
        return self._client

    async def jetstream(self) -> "JetStreamContext":
        """JetStream at the server."""
        return (await self.open()).jetstream(timeout=CONNECT_SECONDS)

    async def _connect(self) -> "NatsClient":
        from nats.aio.client import Client as NatsClient  # noqa: PLC0415

        client = NatsClient()
        settings: dict[str, Any] = {
            "max_reconnect_attempts": -1,
            "reconnect_time_wait": RETURN_SECONDS,
            "connect_timeout": CONNECT_SECONDS,
            "error_cb": self._on_error,
            "disconnected_cb": self._on_disconnected,
            "tls": self._tls,
            "user_credentials": self._credentials,
        }
        self._hopeless.clear()
        connecting = asyncio.ensure_future(
            client.connect(
                [server.strip() for server in self.servers.split(",")],
                name=f"tamis {self._name}",
                **settings,
            )
        )
        hopeless = asyncio.create_task(self._hopeless.wait())
        try:
            await asyncio.wait(
                {connecting, hopeless}, timeout=CONNECT_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
            if connecting.done():
                connecting.result()
                return client
        except Exception as error:
            raise UnreachableError(f"cannot connect to NATS at {self.servers}: {error}") from error
        finally:
            hopeless.cancel()
        connecting.cancel()
        await asyncio.gather(connecting, client.close(), return_exceptions=True)
        problem = f"cannot connect to NATS at {self.servers}: {self._trouble}"
        raise UnreachableError(problem) if self._hopeless.is_set() else ConnectionError(problem)

    async def _on_error(self, error: Exception) -> None:
        before, self._trouble = self._trouble, str(error) or type(error).__name__
        if isinstance(error, ssl.SSLCertVerificationError) or "authorization" in self._trouble.lower():
            self._hopeless.set()
        if self._trouble != before:  # the client reports every attempt
            logger.warning("trouble with NATS", extra={"server": self.servers, "error": self._trouble})

    async def _on_disconnected(self) -> None:
        if not self._is_closing:
            for connection in list(self._connections.values()):
                connection.fail(ConnectionResetError(f"NATS at {self.servers} went away"))

    async def connect_to(self, broker: str) -> Connection:
        """Connect to a broker; whether it is there turns out with the first message."""
        client = await self.open()
        inbox = client.new_inbox()
        subject = f"{subject_of(broker)}.{uuid.uuid4().hex}"
        subscription = await client.subscribe(inbox, cb=self._on_packet)

        def on_end() -> None:
            self._connections.pop(inbox, None)
            self._start(subscription.unsubscribe())

        return self._new_connection(client, f"broker {broker} on NATS", inbox, subject, on_end)

    async def listen(self, broker: str, serve: Callable[[Connection], Awaitable[None]]) -> str:
        """Take connections to a broker of that name; returns the subject."""
        client = await self.open()
        self._serve = serve
        self._listens_as = subject_of(broker)
        await client.subscribe(f"{self._listens_as}.*", cb=self._on_packet)
        await client.flush()
        return f"{self._listens_as} on {self.servers}"

    def stop_listening(self) -> None:
        """Take no more connections."""
        self._serve = None

    async def close(self) -> None:
        """End all connections and leave the server."""
        self._is_closing = True
        connections = list(self._connections.values())
        for connection in connections:
            connection.close()
        await asyncio.gather(*(connection.ended() for connection in connections))
        if self._client is not None:
            await self._client.close()
        for task in list(self._tasks):
            task.cancel()

    def _new_connection(
        self, client: "NatsClient", peer: str, ours: str, theirs: str, on_end: Callable[[], None]
    ) -> NatsConnection:
        async def publish(packet: bytes) -> None:
            if not client.is_connected:
                raise ConnectionResetError(f"NATS at {self.servers} is away")
            await client.publish(theirs, packet, reply=ours)

        connection = NatsConnection(peer, publish, client.max_payload, on_end)
        self._connections[ours] = connection
        return connection

    async def _on_packet(self, message: "Msg") -> None:
        connection = self._connections.get(message.subject)
        if message.headers and message.headers.get("Status") == "503":
            if connection is not None:
                connection.fail(ConnectionResetError(f"{connection.peer} is not there"))
        elif connection is not None:
            connection.feed(message.data)
        elif not message.reply or message.data == UNKNOWN:
            pass
        elif self._serve is not None and is_first_packet(message.data):
            self._accept(self._serve, message)
        elif self._client is not None and self._client.is_connected:
            await self._client.publish(message.reply, UNKNOWN)

    def _accept(self, serve: Callable[[Connection], Awaitable[None]], message: "Msg") -> None:
        if len(self._connections) >= MOST_CONNECTIONS:
            logger.warning("connection refused", extra={"error": f"{MOST_CONNECTIONS:,} are open"})
            return
        assert self._client is not None
        ours, theirs = message.subject, message.reply
        connection = self._new_connection(
            self._client, theirs, ours, theirs, on_end=lambda: self._forget(ours)
        )
        connection.feed(message.data)
        self._start(serve(connection))

    def _forget(self, subject: str) -> None:
        self._connections.pop(subject, None)

    def _start(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # the server that serves has logged it


def subject_of(broker: str) -> str:
    """The subject under which a broker listens.

    >>> subject_of("b1")
    'tamis.broker.b1'
    """
    return f"tamis.broker.{token_of(broker)}"
