"""A TCP proxy for tests that can hold back what passes through it, cut connections and take them again."""

import asyncio
import contextlib


class Proxy:
    """Passes bytes on between a port of its own and another."""

    def __init__(self, target: int) -> None:
        self._target = target
        self.port = 0
        self._server: asyncio.Server | None = None
        self._passing = asyncio.Event()
        self._passing.set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def __aenter__(self) -> "Proxy":
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cut()

    def pause(self) -> None:
        """Hold everything back, as a network that swallows packets does."""
        self._passing.clear()

    def resume(self) -> None:
        self._passing.set()

    def cut(self) -> None:
        """End all connections and take no more."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        with contextlib.suppress(OSError, asyncio.CancelledError), contextlib.closing(writer):
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
            with contextlib.closing(far_writer):
                ways = [self._pass(reader, far_writer), self._pass(far_reader, writer)]
                both = [asyncio.create_task(way) for way in ways]
                try:
                    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for way in both:
                        way.cancel()
        self._tasks.discard(task)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                await self._passing.wait()
                writer.write(data)
                await writer.drain()
