"""A broker on TCP: sockets, a file and a clock around the state machine.

All inputs go through one queue to one worker, which handles a batch of them, makes their changes durable
with one sync, and only then carries out what they ask for. The queue is bounded, so a flood of input slows
its senders down instead of filling memory.

A connection starts with one message, from a client `{"hello": "client", "name": ..., "token": ...}`, from a
broker `{"hello": "broker", ...}`. `requests` says what follows.
"""

import asyncio
import contextlib
import logging
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tamis.errors import TamisError
from tamis.pubsub import inputs as i
from tamis.pubsub.broker import NAME, Broker
from tamis.pubsub.effects import Deliver, DeliverGap, Effect, Persist, Reply, Send, SetTimer
from tamis.pubsub.messages import Frame, ProtocolError
from tamis.pubsub.net import metrics, wire
from tamis.pubsub.net.access import Access, Permissions, RateLimit
from tamis.pubsub.net.requests import to_input, to_message
from tamis.pubsub.net.store import Store, StoreError
from tamis.pubsub.options import Options

logger = logging.getLogger("tamis.broker")

MOST_QUEUED = 4_096
BATCH = 512
MOST_UNWRITTEN = 16 << 20
HELLO_SECONDS = 10.0


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
        """Read HOST:PORT."""
        host, _, port = text.rpartition(":")
        if not host or not port.isdigit():
            raise ValueError(f"{text!r} is no address; write HOST:PORT, such as localhost:7001")
        return cls(host, int(port))


@dataclass(frozen=True)
class Setup:
    """Everything a broker process needs to know. A neighbour without an address is waited for."""

    name: str
    listen: Address
    data: Path
    neighbours: Mapping[str, Address | None] = field(default_factory=dict)
    options: Options = field(default_factory=Options)
    access: Access = field(default_factory=Access)
    token: str | None = None
    """What this broker shows to its neighbours."""
    tls: ssl.SSLContext | None = None
    tls_to_neighbours: ssl.SSLContext | None = None
    metrics: Address | None = None
    most_bytes: int = wire.MOST_BYTES


class BrokerServer:
    """Runs one broker until it is stopped. See `docs/pubsub.md` for a session."""

    def __init__(self, setup: Setup) -> None:
        """Open the store and bring the broker back from it."""
        if not NAME.fullmatch(setup.name):
            raise ProtocolError(f"{setup.name!r} is no name for a broker; use letters, digits and _.:@-")
        self.setup = setup
        self._store = Store(setup.data / f"{setup.name}.log")
        self.broker = Broker(
            setup.name, setup.neighbours, setup.options, self._store.values, time.perf_counter
        )
        self._queue: asyncio.Queue[i.Input] = asyncio.Queue(MOST_QUEUED)
        self._neighbours: dict[str, asyncio.StreamWriter] = {}
        self._clients: dict[str, asyncio.StreamWriter] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Server] = []
        self._stopping = asyncio.Event()
        self._failure: Exception | None = None
        self.port = 0
        """The port it listens on, once it runs."""

    async def run(self) -> None:
        """Serve until `stop`; raises `StoreError` if the disk fails."""
        setup = self.setup
        server = await asyncio.start_server(
            self._on_connection, setup.listen.host, setup.listen.port, ssl=setup.tls, limit=1 << 16
        )
        self._servers.append(server)
        self.port = server.sockets[0].getsockname()[1]
        if setup.metrics is not None:
            self._servers.append(
                await metrics.serve(
                    setup.metrics.host, setup.metrics.port, lambda: metrics.render(self.broker)
                )
            )
        worker = asyncio.create_task(self._work())
        await self._queue.put(i.Start())
        for name, address in setup.neighbours.items():
            if address is not None:
                self._start(self._dial(name, address))
        logger.info("listening", extra={"port": self.port, "epoch": self.broker.epoch})
        await self._stopping.wait()
        await self._close(worker)
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Finish what was taken, make it durable, and end."""
        self._stopping.set()

    async def _close(self, worker: asyncio.Task[None]) -> None:
        for server in self._servers:
            server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._failure is None:
            await self._queue.join()
        worker.cancel()
        for timer in self._timers.values():
            timer.cancel()
        for writer in [*self._neighbours.values(), *self._clients.values()]:
            with contextlib.suppress(OSError, TimeoutError):
                await asyncio.wait_for(writer.drain(), 2.0)
            writer.close()
        self._store.close()
        logger.info("stopped", extra=self.broker.counters.as_dict())

    def _start(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- the worker --------------------------------------------------------------------------------

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            batch = [await self._queue.get()]
            while len(batch) < BATCH and not self._queue.empty():
                batch.append(self._queue.get_nowait())
            changes: dict[str, Any] = {}
            effects: list[Effect] = []
            for input in batch:
                for effect in self._handle(input, loop.time()):
                    if isinstance(effect, Persist):
                        changes.update(effect.changes)
                    else:
                        effects.append(effect)
            try:
                if changes:
                    await asyncio.to_thread(self._store.append, changes)
            except StoreError as error:
                # Nothing that relies on these changes was sent: nobody was told that they are kept.
                logger.critical("the store failed", extra={"error": str(error)})
                self._failure = error
                self.stop()
                return
            for effect in effects:
                self._carry_out(effect)
            for _ in batch:
                self._queue.task_done()

    def _handle(self, input: i.Input, now: float) -> list[Effect]:
        try:
            return self.broker.handle(input, now)
        except TamisError as error:
            logger.error("input refused", extra={"input": type(input).__name__, "error": str(error)})
            if isinstance(input, i.FrameReceived) and input.neighbour in self._neighbours:
                self._neighbours[input.neighbour].close()
            return []

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Send(neighbour, frame):
                # What does not go out now is sent again by the link.
                writer = self._neighbours.get(neighbour)
                if writer is not None and writer.transport.get_write_buffer_size() < MOST_UNWRITTEN:
                    writer.write(wire.pack({"frame": frame.to_json()}))
            case Reply() | Deliver() | DeliverGap():
                writer = self._clients.get(effect.client)
                if writer is None:
                    return
                writer.write(wire.pack(to_message(effect)))
                if writer.transport.get_write_buffer_size() > MOST_UNWRITTEN:
                    logger.warning("client too slow, disconnected", extra={"client": effect.client})
                    writer.transport.abort()
            case SetTimer(name, at):
                if name in self._timers:
                    self._timers[name].cancel()
                loop = asyncio.get_running_loop()
                self._timers[name] = loop.call_at(at, self._fire, name)

    def _fire(self, name: str) -> None:
        try:
            self._queue.put_nowait(i.TimerFired(name))
        except asyncio.QueueFull:
            self._timers[name] = asyncio.get_running_loop().call_later(0.1, self._fire, name)

    # --- connections -------------------------------------------------------------------------------

    async def _on_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        peer = ":".join(map(str, (writer.get_extra_info("peername") or ("unknown",))[:2]))
        try:
            hello = await asyncio.wait_for(wire.read(reader, 4_096), HELLO_SECONDS)
            if hello is None:
                return
            name, token = hello.get("name"), hello.get("token")
            if not isinstance(name, str) or not isinstance(token, str | None):
                raise ProtocolError('the first message is {"hello": "client", "name": ..., "token": ...}')
            if hello.get("hello") == "broker":
                self.setup.access.neighbour(name, token)
                if name not in self.setup.neighbours:
                    raise ProtocolError(f"{name} is no neighbour of {self.setup.name}")
                writer.write(wire.pack({"welcome": self.setup.name}))
                await self._serve_neighbour(name, reader, writer)
            elif hello.get("hello") == "client":
                if not NAME.fullmatch(name):
                    raise ProtocolError(f"{name!r} is no name; letters, digits and _.:@- are, up to 64")
                permissions = self.setup.access.client(name, token)
                await self._serve_client(name, permissions, reader, writer)
            else:
                raise ProtocolError('the first message says "hello": "client" or "hello": "broker"')
        except TamisError as error:
            logger.warning("connection refused", extra={"peer": peer, "error": str(error)})
            with contextlib.suppress(OSError):
                writer.write(wire.pack({"error": str(error)}))
        except (OSError, TimeoutError, asyncio.CancelledError) as error:
            logger.info("connection lost", extra={"peer": peer, "error": str(error) or type(error).__name__})
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve_neighbour(
        self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if name in self._neighbours:
            self._neighbours[name].close()
        self._neighbours[name] = writer
        logger.info("link up", extra={"neighbour": name})
        await self._queue.put(i.LinkUp(name))
        try:
            while (message := await wire.read(reader, self.setup.most_bytes * 2)) is not None:
                await self._queue.put(i.FrameReceived(name, Frame.from_json(message.get("frame"))))
        finally:
            if self._neighbours.get(name) is writer:
                del self._neighbours[name]
                logger.info("link down", extra={"neighbour": name})

    async def _dial(self, name: str, address: Address) -> None:
        """Keep a connection to a neighbour, with longer and longer pauses between attempts."""
        pause = 0.05
        while True:
            try:
                reader, writer = await asyncio.open_connection(
                    address.host, address.port, ssl=self.setup.tls_to_neighbours, limit=1 << 16
                )
                hello = {"hello": "broker", "name": self.setup.name, "token": self.setup.token}
                writer.write(wire.pack(hello))
                answer = await asyncio.wait_for(wire.read(reader), HELLO_SECONDS)
                if answer is None or answer.get("welcome") != name:
                    raise ProtocolError(f"{address.host}:{address.port} is not {name}: {answer}")
                pause = 0.05
                with contextlib.closing(writer):
                    await self._serve_neighbour(name, reader, writer)
            except (OSError, TimeoutError, TamisError) as error:
                logger.info("no link", extra={"neighbour": name, "error": str(error)})
            await asyncio.sleep(pause)
            pause = min(2.0, pause * 2)

    async def _serve_client(
        self,
        name: str,
        permissions: Permissions,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        if name in self._clients:
            self._clients[name].close()  # the newest connection of a client is the right one
        self._clients[name] = writer
        rate = RateLimit(permissions.limits.requests_per_second, time.monotonic())
        await self._queue.put(i.Attach(name))
        try:
            while (message := await wire.read(reader, self.setup.most_bytes)) is not None:
                while not rate.allows(time.monotonic()):
                    await asyncio.sleep(0.01)  # a client that is too fast is slowed down, not refused
                await self._on_request(name, permissions, message, writer)
        finally:
            if self._clients.get(name) is writer:
                del self._clients[name]
                await self._queue.put(i.Detach(name))

    async def _on_request(
        self, name: str, permissions: Permissions, message: dict[str, Any], writer: asyncio.StreamWriter
    ) -> None:
        input = to_input(name, message)
        try:
            if not isinstance(input, i.Acknowledge):
                permissions.check(message)
                self._check_count(name, permissions, message)
        except TamisError as error:
            writer.write(wire.pack({"reply": message["request"], "error": str(error)}))
            await writer.drain()
            return
        await self._queue.put(input)

    def _check_count(self, name: str, permissions: Permissions, message: dict[str, Any]) -> None:
        client = self.broker.clients.get(name)
        if message["do"] == "subscribe" and client is not None:
            most = permissions.limits.subscriptions
            if len(client.subscriptions) >= most and message["id"] not in client.subscriptions:
                raise ProtocolError(f"{name} has {most} subscriptions, which is its limit")
