"""A broker on a network: connections and a clock around the state machine, over any `Transport`.

A connection starts with one message, from a client `{"hello": "client", "name": ..., "token": ...}`, from a
broker `{"hello": "broker", ...}`. `requests` says what follows. What comes in goes to the `Worker`, and what
it wants sent goes out here.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any

from tamis.errors import TamisError
from tamis.pubsub.broker import inputs as i
from tamis.pubsub.broker.effects import Deliver, DeliverGap, Effect, Reply, Send
from tamis.pubsub.broker.machine import NAME, Broker
from tamis.pubsub.broker.messages import Frame, ProtocolError
from tamis.pubsub.broker.options import Options
from tamis.pubsub.net import metrics
from tamis.pubsub.net.access import Access, AccessError, Permissions, RateLimit
from tamis.pubsub.net.connection import MOST_BYTES, Connection, Dialer, Store, Transport
from tamis.pubsub.net.requests import request_number, to_input, to_message
from tamis.pubsub.net.tcp import Address
from tamis.pubsub.net.worker import Worker

logger = logging.getLogger("tamis.broker")

MOST_UNSENT = 16 << 20
HELLO_BYTES = 4_096
HELLO_SECONDS = 10.0
SHUTDOWN_SECONDS = 10.0


@dataclass(frozen=True)
class Setup:
    """What a broker process needs to know besides its transport."""

    name: str
    neighbours: tuple[str, ...] = ()
    options: Options = field(default_factory=Options)
    access: Access = field(default_factory=Access)
    token: str | None = None
    """What this broker shows to its neighbours."""
    metrics: Address | None = None
    most_bytes: int = MOST_BYTES
    allow_anyone: bool = False
    """Whether to listen beyond this machine without credentials."""

    def __post_init__(self) -> None:
        """Refuse names that could not be told apart or written."""
        for name in (self.name, *self.neighbours):
            if not NAME.fullmatch(name):
                raise ProtocolError(f"{name!r} is no name for a broker; use letters, digits and _.:@-")
        if self.name in self.neighbours or len(set(self.neighbours)) < len(self.neighbours):
            raise ProtocolError(f"the neighbours of {self.name} are others, each named once")


class BrokerServer:
    """Runs one broker until it is stopped. See `docs/pubsub.md` for a session."""

    def __init__(self, setup: Setup, transport: Transport) -> None:
        """Nothing happens before `run`."""
        self.name = setup.name
        self._setup = setup
        self._transport = transport
        self._neighbours: dict[str, Connection] = {}
        self._clients: dict[str, Connection] = {}
        self._connections: set[Connection] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._stopping = asyncio.Event()
        self.listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Where it listens, once it does."""
        self._broker: Broker
        self._worker: Worker

    async def run(self) -> None:
        """Serve until `stop`; raises `StoreError` if what must be kept cannot be."""
        setup = self._setup
        try:
            self._check_access()
            opening = asyncio.ensure_future(self._transport.open_store())
            await self._until_stopped_or(opening)
            if not opening.done():
                opening.cancel()
                return
            with contextlib.closing(opening.result()) as store:
                stopwatch = time.perf_counter
                self._broker = Broker(setup.name, setup.neighbours, setup.options, store.values, stopwatch)
                await self._serve(store)
        finally:
            await self._transport.close()

    def _check_access(self) -> None:
        """Without credentials, say so; where other machines could come in, refuse."""
        setup, exposed = self._setup, self._transport.exposed_at()
        if not setup.access.is_open:
            return
        if exposed is not None and not setup.allow_anyone:
            raise AccessError(
                f"{setup.name} would listen at {exposed} without credentials: any machine could publish, "
                "subscribe and be a neighbour. Give it a credentials file (--credentials), listen on "
                "127.0.0.1, or say that this is what you want (--allow-anyone)"
            )
        logger.warning(
            "no credentials: anyone who reaches this broker may publish, subscribe and be its neighbour; "
            "--credentials says who may"
        )

    def stop(self) -> None:
        """Finish what was taken, make it durable, and end."""
        self._stopping.set()

    async def _serve(self, store: Store) -> None:
        setup = self._setup
        self._worker = Worker(self._broker, store, self._carry_out, self._on_refused)
        working = asyncio.create_task(self._worker.run())
        await self._worker.put(i.Start())
        page = None
        if setup.metrics is not None:
            where = setup.metrics
            page = await metrics.serve(where.host, where.port, lambda: metrics.render(self._broker))
        address = await self._transport.listen(self._on_connection)
        for name in setup.neighbours:
            dialer = self._transport.dialer(name)
            if dialer is not None:
                self._start(self._dial(name, dialer))
        logger.info("listening", extra={"at": address, "epoch": self._broker.epoch})
        self.listening.set_result(address)
        await self._until_stopped_or(working)
        self._stopping.set()
        await self._close(working)
        if page is not None:
            page.close()
        logger.info("stopped", extra=self._broker.counters.as_dict())
        if working.done():
            working.result()  # the worker ends by failing only

    async def _until_stopped_or(self, work: "asyncio.Future[Any]") -> None:
        stopping = asyncio.create_task(self._stopping.wait())
        await asyncio.wait([work, stopping], return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()

    async def _close(self, working: "asyncio.Task[None]") -> None:
        """Take nothing more; answer what was taken; then hang up."""
        await self._transport.stop_listening()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if not working.done():
            finishing = asyncio.create_task(self._worker.finish())
            await asyncio.wait(
                {working, finishing}, timeout=SHUTDOWN_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
            if not finishing.done():
                logger.error("stopped before everything was durable; what was not is not acknowledged")
            finishing.cancel()
        for connection in self._connections:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(connection.drain(), 2.0)
            connection.close()
        if working.done():
            logger.critical("cannot go on", extra={"error": str(working.exception())})
        working.cancel()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- what the worker wants ---------------------------------------------------------------------

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Send(neighbour, frame):
                # What does not go out now is sent again by the link.
                link = self._neighbours.get(neighbour)
                if link is not None and link.unsent < MOST_UNSENT:
                    link.send({"frame": frame.to_json()})
            case Reply() | Deliver() | DeliverGap():
                connection = self._clients.get(effect.client)
                if connection is None:
                    return
                connection.send(to_message(effect))
                if connection.unsent > MOST_UNSENT:
                    logger.warning("client too slow, disconnected", extra={"client": effect.client})
                    connection.abort()

    def _on_refused(self, input: i.Input) -> None:
        if isinstance(input, i.FrameReceived) and input.neighbour in self._neighbours:
            self._neighbours[input.neighbour].close()

    # --- connections -------------------------------------------------------------------------------

    async def _on_connection(self, connection: Connection) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with self._closing(connection):
                await self._serve_peer(connection)
        except TamisError as error:
            logger.warning("connection refused", extra={"peer": connection.peer, "error": str(error)})
        except (OSError, TimeoutError) as error:
            reason = str(error) or type(error).__name__
            logger.info("connection lost", extra={"peer": connection.peer, "error": reason})
        except asyncio.CancelledError:
            pass  # it is `_close` that cancels
        finally:
            self._tasks.discard(task)

    @contextlib.contextmanager
    def _closing(self, connection: Connection) -> Iterator[None]:
        """Close a connection in the end; during a shutdown `_close` does, after the last answers."""
        self._connections.add(connection)
        try:
            yield
        except TamisError as error:
            connection.send({"error": str(error)})
            raise
        finally:
            if not self._stopping.is_set():
                self._connections.discard(connection)
                connection.close()

    async def _serve_peer(self, connection: Connection) -> None:
        hello = await asyncio.wait_for(connection.receive(HELLO_BYTES), HELLO_SECONDS)
        if hello is None:
            return
        name, token = hello.get("name"), hello.get("token")
        if not isinstance(name, str) or not isinstance(token, str | None):
            raise ProtocolError('the first message is {"hello": "client", "name": ..., "token": ...}')
        if hello.get("hello") == "broker":
            self._setup.access.neighbour(name, token)
            if name not in self._setup.neighbours:
                here = self._setup.name
                raise ProtocolError(f"{name} is no neighbour of {here}; start {here} with -n {name}")
            connection.send({"welcome": self._setup.name})
            await self._serve_neighbour(name, connection)
        elif hello.get("hello") == "client":
            if not NAME.fullmatch(name):
                raise ProtocolError(f"{name!r} is no name; letters, digits and _.:@- are, up to 64")
            await self._serve_client(name, self._setup.access.client(name, token), connection)
        else:
            raise ProtocolError('the first message says "hello": "client" or "hello": "broker"')

    async def _serve_neighbour(self, name: str, connection: Connection) -> None:
        if name in self._neighbours:
            self._neighbours[name].close()
        self._neighbours[name] = connection
        logger.info("link up", extra={"neighbour": name})
        await self._worker.put(i.LinkUp(name))
        try:
            while (message := await connection.receive(self._setup.most_bytes * 2)) is not None:
                await self._worker.put(i.FrameReceived(name, Frame.from_json(message.get("frame"))))
        finally:
            if self._neighbours.get(name) is connection and not self._stopping.is_set():
                del self._neighbours[name]
                logger.info("link down", extra={"neighbour": name})

    async def _dial(self, name: str, dialer: Dialer) -> None:
        """Keep a connection to a neighbour, with longer and longer pauses between attempts."""
        pause = 0.05
        while True:
            try:
                connection = await dialer.connect()
                with self._closing(connection):
                    await self._greet(name, connection)
                    pause = 0.05
                    await self._serve_neighbour(name, connection)
            except (OSError, TimeoutError, TamisError) as error:
                reason = str(error) or type(error).__name__
                logger.info("no link", extra={"neighbour": name, "at": dialer.where, "error": reason})
            await asyncio.sleep(pause)
            pause = min(2.0, pause * 2)

    async def _greet(self, name: str, connection: Connection) -> None:
        connection.send({"hello": "broker", "name": self._setup.name, "token": self._setup.token})
        answer = await asyncio.wait_for(connection.receive(HELLO_BYTES), HELLO_SECONDS)
        if answer is None:
            raise ProtocolError(f"{connection.peer} hung up")
        if "error" in answer:
            raise ProtocolError(f"{connection.peer} refused: {answer['error']}")
        if answer.get("welcome") != name:
            raise ProtocolError(f"{connection.peer} is not {name}: {answer}")

    async def _serve_client(self, name: str, permissions: Permissions, connection: Connection) -> None:
        if name in self._clients:
            # The newest is the right one: the other may be what is left of a connection that broke.
            self._clients[name].send(
                {"error": f"another connection has taken over the name {name!r}; each needs its own"}
            )
            self._clients[name].close()
        self._clients[name] = connection
        rate = RateLimit(permissions.limits.requests_per_second, time.monotonic())
        await self._worker.put(i.Attach(name, most_entries=permissions.limits.subscriptions))
        try:
            while (message := await connection.receive(self._setup.most_bytes)) is not None:
                while not rate.allows(time.monotonic()):
                    await asyncio.sleep(0.01)  # a client that is too fast is slowed down, not refused
                await self._on_request(name, permissions, message, connection)
        finally:
            if self._clients.get(name) is connection and not self._stopping.is_set():
                del self._clients[name]
                await self._worker.put(i.Detach(name))

    async def _on_request(
        self, name: str, permissions: Permissions, message: dict[str, Any], connection: Connection
    ) -> None:
        request = request_number(message)
        try:
            input = to_input(name, message)
            if not isinstance(input, i.Acknowledge):
                permissions.check(message)
        except TamisError as error:
            if request is None:
                raise
            connection.send({"reply": request, "error": str(error)})
            await connection.drain()
            return
        await self._worker.put(input)
