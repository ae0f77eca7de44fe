"""A proxy before a NATS server: it knows the frames of the protocol, loses or delays messages, or is cut.

Core NATS delivers at most once: what a server sends while a connection is made again is gone, and what it
sends afterwards arrives. So any answer can have a hole.
"""

import asyncio
import contextlib
from collections.abc import Callable


class NatsProxy:
    """Forwards connections to a server; `is_lost` decides about each message to the client."""

    def __init__(self, url: str) -> None:
        host, _, port = url.removeprefix("nats://").partition(":")
        self._there = host, int(port)
        self.is_lost: Callable[[bytes], bool] = lambda _: False
        self.seconds = 0.0
        """How long each message takes longer."""
        self.is_cut = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "NatsProxy":
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=1 << 24)
        self.url = f"nats://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """End all connections; none is taken until `mend`."""
        self.is_cut = True
        for writer in self._writers:
            writer.close()
        self._writers.clear()

    def mend(self) -> None:
        self.is_cut = False

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_cut:
            writer.close()
            return
        try:
            from_server, to_server = await asyncio.open_connection(*self._there, limit=1 << 24)
        except OSError:
            writer.close()
            return
        self._writers |= {writer, to_server}
        for work in (self._pass_on(reader, to_server), self._frames(from_server, writer)):
            task = asyncio.create_task(work)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while content := await reader.read(1 << 16):
                if self.seconds:
                    await asyncio.sleep(self.seconds)
                writer.write(content)
                await writer.drain()
        writer.close()

    async def _frames(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while line := await reader.readline():
                body = b""
                if line.split(b" ")[0] in (b"MSG", b"HMSG"):
                    body = await reader.readexactly(int(line.split(b" ")[-1]) + 2)
                    if self.is_lost(body):
                        continue
                if self.seconds:
                    await asyncio.sleep(self.seconds)
                writer.write(line + body)
                await writer.drain()
        writer.close()
