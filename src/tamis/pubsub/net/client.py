"""The asyncio client: subscribes, advertises, publishes, and hears each notification once.

It connects again when the connection breaks, repeats requests that were not answered, and drops
notifications it has seen, so that a broker that crashes and comes back is only a pause.
"""

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from tamis.errors import TamisError
from tamis.pubsub.broker.messages import ProtocolError
from tamis.pubsub.net.connection import Connection, Dialer, UnreachableError
from tamis.pubsub.net.tcp import Address, TcpDialer

MOST_BYTES = 16 << 20
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0


class RefusedError(TamisError):
    """The broker refused a request; the message says why.

    >>> issubclass(RefusedError, TamisError)
    True
    """


@dataclass(frozen=True)
class Notification:
    """An event that one or more of the client's subscriptions match."""

    number: int
    event: dict[str, Any]
    subscriptions: tuple[str, ...]
    type: str | None = None
    origin: str = ""


@dataclass(frozen=True)
class Gap:
    """Notifications that the broker did not keep for this client, from `first` to `last`."""

    first: int
    last: int
    reason: str


class Client:
    """A client of one broker.

        async with Client("localhost", 7001, "ann") as client:
            await client.subscribe("cheap", "price < 15")
            async for notification in client:
                print(notification.event)

    Over NATS, it is `Client.over_nats("nats://localhost:4222", "b1", "ann")`.

    `subscribe` and `advertise` return once the network knows; `publish` once the event is safe with the
    broker. A notification is acknowledged when the next one is asked for, so one that was being dealt with
    in a crash comes again.
    """

    def __init__(
        self, host: str, port: int, name: str, *, token: str | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        """Say where to connect; nothing happens before `connect`, or `async with`."""
        self._dialer: Dialer = TcpDialer(Address(host, port), tls)
        self._hello = {"hello": "client", "name": name, "token": token}
        self._requests = 0
        self._published = 0
        self._seen = 0
        self._acknowledged = 0
        self._unanswered: dict[int, tuple[dict[str, Any], asyncio.Future[Any]]] = {}
        self._repeated: set[int] = set()
        self._heard: asyncio.Queue[Notification | Gap | None] = asyncio.Queue()
        self._welcomed: Connection | None = None
        self._failure: TamisError | None = None
        self._task: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[None] | None = None
        self.trouble: str | None = None
        """Why there is no connection at the moment, if there was an attempt."""

    @classmethod
    def over_nats(
        cls,
        servers: str,
        broker: str,
        name: str,
        *,
        token: str | None = None,
        tls: ssl.SSLContext | None = None,
        credentials: str | None = None,
    ) -> "Client":
        """A client of a broker that is on NATS.

        `servers` are addresses of NATS servers, separated by commas; `tls` and `credentials` (a file) are
        for them, `token` is for the broker.
        """
        from tamis.pubsub.net.nats_peer import NatsPeer  # noqa: PLC0415
        from tamis.pubsub.net.nats_transport import NatsDialer  # noqa: PLC0415 - needs an extra

        client = cls("", 0, name, token=token)
        client._dialer = NatsDialer(NatsPeer(servers, name, tls, credentials), broker)
        return client

    async def __aenter__(self) -> "Client":
        """Connect."""
        await self.connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.close()

    async def connect(self) -> None:
        """Connect, trying again until the broker answers; `RefusedError` if it does not let us in."""
        self._ready = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._keep_connected())
        await self._ready

    async def close(self) -> None:
        """Close the connection; subscriptions stay, and notifications wait."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self._dialer.close()
        for _, answer in self._unanswered.values():
            answer.cancel()

    async def subscribe(
        self, id: str, expression: str, *, type: str | None = None, priority: float = 0.0
    ) -> None:
        """Subscribe, or replace the subscription of that id; returns once it has spread in the network."""
        await self._ask(do="subscribe", id=id, expression=expression, type=type, priority=priority)

    async def unsubscribe(self, id: str) -> None:
        """Take a subscription back."""
        await self._ask(do="unsubscribe", id=id)

    async def advertise(self, id: str, expression: str, *, type: str | None = None) -> None:
        """Say what will be published; returns once it has spread in the network."""
        await self._ask(do="advertise", id=id, expression=expression, type=type)

    async def withdraw(self, id: str) -> None:
        """Take an advertisement back."""
        await self._ask(do="withdraw", id=id)

    async def publish(self, event: Mapping[str, Any] | str, *, type: str | None = None) -> int:
        """Publish an event; returns its number once the broker has it on disk."""
        text = event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)
        self._published += 1
        return int(await self._ask(do="publish", number=self._published, event=text, type=type))

    def acknowledge(self, number: int) -> None:
        """Tell the broker that everything up to this number was dealt with; iterating does it by itself."""
        self._acknowledged = max(self._acknowledged, number)
        self._write({"do": "acknowledge", "number": self._acknowledged})

    async def __aiter__(self) -> AsyncIterator[Notification | Gap]:
        """Notifications and gaps, in order, for ever; raises what ends the connection for good."""
        while (heard := await self._heard.get()) is not None:
            yield heard
            self.acknowledge(heard.last if isinstance(heard, Gap) else heard.number)
        if self._failure is not None:
            raise self._failure

    async def _ask(self, **request: Any) -> Any:
        if self._failure is not None:
            raise self._failure
        for value in request.values():
            if isinstance(value, str):
                value.encode()  # what is no text fails here, and not in the middle of a connection
        self._requests += 1
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        message = {**request, "request": self._requests}
        self._unanswered[self._requests] = (message, answer)
        self._write(message)
        return await answer

    def _write(self, message: dict[str, Any]) -> None:
        # Between a hello and the welcome nothing is sent: what was not answered must go first, in its order.
        if self._welcomed is not None:
            self._welcomed.send(message)

    async def _keep_connected(self) -> None:
        pause = FIRST_PAUSE
        while True:
            try:
                connection = await self._dialer.connect()
                try:
                    connection.send(self._hello)
                    await self._listen(connection)
                finally:
                    pause = FIRST_PAUSE if self._welcomed else pause
                    self._welcomed = None
                    connection.close()
                self.trouble = f"{self._dialer.where} hung up"
            except (RefusedError, UnreachableError) as error:
                self._fail(error)
                return
            except (OSError, ProtocolError) as error:
                self.trouble = str(error) or type(error).__name__
            await asyncio.sleep(pause)
            pause = min(LONGEST_PAUSE, pause * 2)

    async def _listen(self, connection: Connection) -> None:
        while (message := await connection.receive(MOST_BYTES)) is not None:
            if "error" in message and "reply" not in message:
                raise RefusedError(message["error"])
            if message.get("reply") == 0:
                self._on_welcome(connection, message)
            elif "reply" in message:
                self._on_reply(message)
            elif "gap" in message:
                first, last = message["gap"]
                self._on_heard(last, Gap(first, last, message["reason"]))
            elif "event" in message:
                note = Notification(
                    message["number"],
                    json.loads(message["event"]),
                    tuple(message["subscriptions"]),
                    message["type"],
                    message["origin"],
                )
                self._on_heard(note.number, note)

    def _on_welcome(self, connection: Connection, message: dict[str, Any]) -> None:
        self._welcomed = connection
        self._published = max(self._published, message.get("value") or 0)
        if self._acknowledged:
            self.acknowledge(self._acknowledged)
        for number, (request, _) in self._unanswered.items():
            self._repeated.add(number)
            self._write(request)
        assert self._ready is not None
        if not self._ready.done():
            self._ready.set_result(None)

    def _on_reply(self, message: dict[str, Any]) -> None:
        number = message["reply"]
        if number not in self._unanswered:
            return
        request, answer = self._unanswered.pop(number)
        was_repeated = number in self._repeated
        self._repeated.discard(number)
        if answer.done():
            return
        # A repeated removal that finds nothing was done the first time, and only the answer was lost.
        if "error" in message and not (was_repeated and request["do"] in ("unsubscribe", "withdraw")):
            answer.set_exception(RefusedError(message["error"]))
        else:
            answer.set_result(message.get("value"))

    def _on_heard(self, last: int, heard: Notification | Gap) -> None:
        if last > self._seen:
            self._seen = last
            self._heard.put_nowait(heard)

    def _fail(self, error: TamisError) -> None:
        self._failure = error
        assert self._ready is not None
        waiting = [self._ready, *(answer for _, answer in self._unanswered.values())]
        for answer in waiting:
            if not answer.done():
                answer.set_exception(error)
        self._heard.put_nowait(None)
