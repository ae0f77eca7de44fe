"""Brokers on NATS: any broker reaches any other through the server, and JetStream keeps what must survive."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tamis.pubsub.net.connection import Connection, Store
from tamis.pubsub.net.nats_peer import NatsPeer
from tamis.pubsub.net.nats_store import JetStreamStore


@dataclass(frozen=True)
class NatsDialer:
    """A `Dialer` to a broker of that name."""

    nats: NatsPeer
    broker: str

    @property
    def where(self) -> str:
        """Its name, and where the server is."""
        return f"{self.broker} on {self.nats.servers}"

    async def connect(self) -> Connection:
        """Connect through the server."""
        return await self.nats.connect_to(self.broker)

    async def close(self) -> None:
        """Leave the server."""
        await self.nats.close()


@dataclass(frozen=True)
class NatsTransport:
    """A `Transport` over a NATS server. Of two neighbours, the one with the smaller name connects."""

    name: str
    nats: NatsPeer
    replicas: int = 1

    def exposed_at(self) -> None:
        """Nowhere: who reaches the broker is for the server to decide."""

    async def open_store(self) -> Store:
        """The stream of the broker's name."""
        return await JetStreamStore.open(self.nats, self.name, self.replicas)

    async def listen(self, serve: Callable[[Connection], Awaitable[None]]) -> str:
        """Listen under the broker's name."""
        return await self.nats.listen(self.name, serve)

    def dialer(self, neighbour: str) -> NatsDialer | None:
        """To those with a greater name."""
        return NatsDialer(self.nats, neighbour) if self.name < neighbour else None

    async def stop_listening(self) -> None:
        """Let no one else in."""
        self.nats.stop_listening()

    async def close(self) -> None:
        """Leave the server."""
        await self.nats.close()
