"""What brokers and clients need of a transport: connections that carry messages, and a store.

There are two transports, TCP with a file (`tcp`, `file_store`) and NATS with JetStream (`nats_transport`,
`nats_store`). Whatever is said over them is the same: see `server`, `client` and `requests`.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from tamis.errors import TamisError

MOST_BYTES = 1 << 20
"""The largest message that is taken from a stranger."""


class Connection(Protocol):
    """A conversation with one peer, in messages, which are JSON objects.

    Laws: messages arrive in the order in which they were sent, each of them once, up to some point at which
    the connection ends; none is lost before that point. `send` never waits; `unsent` says how many bytes
    have piled up, and it is for the sender to do something about it.
    """

    @property
    def peer(self) -> str:
        """Who is at the other end, for logs."""
        ...

    @property
    def unsent(self) -> int:
        """Bytes that were handed to `send` and have not gone out."""
        ...

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message; nothing happens if the connection has ended."""
        ...

    async def receive(self, most_bytes: int = MOST_BYTES) -> dict[str, Any] | None:
        """The next message, or None when the peer has closed.

        Raises `ProtocolError` for what is no message, or a larger one, and `OSError` if the connection broke.
        """
        ...

    async def drain(self) -> None:
        """Wait until most of what was sent has gone out, or the connection has ended."""
        ...

    def close(self) -> None:
        """End, after what was sent has gone out."""
        ...

    def abort(self) -> None:
        """End at once."""
        ...


class Dialer(Protocol):
    """A way to one broker."""

    @property
    def where(self) -> str:
        """The address, for messages to people."""
        ...

    async def connect(self) -> Connection:
        """Make a connection; `OSError` if that does not work now, `UnreachableError` if it never will."""
        ...

    async def close(self) -> None:
        """Give back what the dialer holds."""
        ...


class UnreachableError(TamisError):
    """Trying again will not help: a certificate that is not trusted, a server that wants a password.

    >>> issubclass(UnreachableError, TamisError)
    True
    """


class StoreError(TamisError):
    """A store that cannot be read or written.

    >>> issubclass(StoreError, TamisError)
    True
    """


class Store(Protocol):
    """The durable map of a broker, from strings to JSON values."""

    @property
    def values(self) -> Mapping[str, Any]:
        """The map as it is now."""
        ...

    async def save(self, changes: Mapping[str, Any]) -> None:
        """Make changes durable, all or none; a value of None removes its key.

        Raises `StoreError` if that is impossible; the store must not be used after that.
        """
        ...

    def close(self) -> None:
        """Close; what was saved stays."""
        ...


class Transport(Protocol):
    """Where a broker meets its clients and neighbours, and where it keeps what it must not forget."""

    def exposed_at(self) -> str | None:
        """The address at which other machines reach this broker directly; None if they cannot."""
        ...

    async def open_store(self) -> Store:
        """The broker's store, for this process alone."""
        ...

    async def listen(self, serve: Callable[[Connection], Awaitable[None]]) -> str:
        """Take connections, and serve each in a task; returns where, for the log."""
        ...

    def dialer(self, neighbour: str) -> Dialer | None:
        """The way to a neighbour; None if it is the neighbour who connects."""
        ...

    async def stop_listening(self) -> None:
        """Take no more connections; those that exist stay."""
        ...

    async def close(self) -> None:
        """Give everything back."""
        ...
