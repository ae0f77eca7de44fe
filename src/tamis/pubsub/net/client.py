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
from tamis.pubsub.messages import ProtocolError
from tamis.pubsub.net import wire

MOST_BYTES = 16 << 20


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

    `subscribe` and `advertise` return once the network knows; `publish` once the event is safe with the
    broker. A notification is acknowledged when the next one is asked for, so one that was being dealt with
    in a crash comes again.
    """

    def __init__(
        self, host: str, port: int, name: str, *, token: str | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        """Say where to connect; nothing happens before `connect`, or `async with`."""
        self._where = (host, port)
        self._hello = {"hello": "client", "name": name, "token": token}
        self._tls = tls
        self._requests = 0
        self._published = 0
        self._seen = 0
        self._unanswered: dict[int, tuple[dict[str, Any], asyncio.Future[Any]]] = {}
        self._heard: asyncio.Queue[Notification | Gap | None] = asyncio.Queue()
        self._writer: asyncio.StreamWriter | None = None
        self._task: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[None] | None = None

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
        text = event if isinstance(event, str) else json.dumps(event)
        self._published += 1
        return int(await self._ask(do="publish", number=self._published, event=text, type=type))

    def acknowledge(self, number: int) -> None:
        """Tell the broker that everything up to this number was dealt with; iterating does it by itself."""
        self._write({"do": "acknowledge", "number": number})

    async def __aiter__(self) -> AsyncIterator[Notification | Gap]:
        """Notifications and gaps, in order, for ever."""
        while (heard := await self._heard.get()) is not None:
            yield heard
            self.acknowledge(heard.last if isinstance(heard, Gap) else heard.number)

    async def _ask(self, **request: Any) -> Any:
        self._requests += 1
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        message = {**request, "request": self._requests}
        self._unanswered[self._requests] = (message, answer)
        self._write(message)
        return await answer

    def _write(self, message: dict[str, Any]) -> None:
        if self._writer is not None:
            self._writer.write(wire.pack(message))

    async def _keep_connected(self) -> None:
        assert self._ready is not None
        pause = 0.05
        while True:
            try:
                reader, self._writer = await asyncio.open_connection(
                    *self._where, ssl=self._tls, limit=1 << 16
                )
                self._writer.write(wire.pack(self._hello))
                await self._listen(reader)
                pause = 0.05
            except RefusedError as error:
                self._fail(error)
                return
            except (OSError, ProtocolError):
                pass
            finally:
                if self._writer is not None:
                    self._writer.close()
                    self._writer = None
            await asyncio.sleep(pause)
            pause = min(1.0, pause * 2)

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        while (message := await wire.read(reader, MOST_BYTES)) is not None:
            if "error" in message and "reply" not in message:
                raise RefusedError(message["error"])
            if message.get("reply") == 0:
                self._on_welcome(message)
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

    def _on_welcome(self, message: dict[str, Any]) -> None:
        self._published = max(self._published, message.get("value") or 0)
        for request, _ in list(self._unanswered.values()):
            self._write(request)
        assert self._ready is not None
        if not self._ready.done():
            self._ready.set_result(None)

    def _on_reply(self, message: dict[str, Any]) -> None:
        _, answer = self._unanswered.pop(message["reply"], (None, None))
        if answer is None or answer.done():
            return
        if "error" in message:
            answer.set_exception(RefusedError(message["error"]))
        else:
            answer.set_result(message.get("value"))

    def _on_heard(self, last: int, heard: Notification | Gap) -> None:
        if last > self._seen:
            self._seen = last
            self._heard.put_nowait(heard)

    def _fail(self, error: RefusedError) -> None:
        assert self._ready is not None
        waiting = [self._ready, *(answer for _, answer in self._unanswered.values())]
        for answer in waiting:
            if not answer.done():
                answer.set_exception(error)
        self._heard.put_nowait(None)
