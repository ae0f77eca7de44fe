"""A `Connection` between two subjects of a NATS server.

NATS delivers what one peer publishes on a subject in order, and forgets it when nobody listens or when the
server is gone. So packets are numbered, and a missing one ends the connection; each names the sender's
subject, so that the server reports at once that nobody listens; and a peer that is silent for too long is
gone. A message larger than a packet travels in several. As NATS lets nobody wait for a slow receiver, the
receiver says how many bytes it has taken, and the sender is never more than a window ahead of that.

    packet    number (8 bytes), bytes taken so far (8 bytes), kind (1 byte), content
    kinds     `+` part of a message, `.` its end, `x` the end of the connection; `-`, with number 0, says
              how much was taken and that the peer is alive
"""

import asyncio
import contextlib
import struct
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tamis.pubsub.broker.messages import ProtocolError
from tamis.pubsub.net import wire
from tamis.pubsub.net.connection import MOST_BYTES

WINDOW = 1 << 20
PACKET_BYTES = 1 << 16
BEAT_SECONDS = 1.0
SECONDS_UNTIL_DEAD = 10.0
CLOSE_SECONDS = 2.0

_HEAD = struct.Struct(">QQc")
_PART, _LAST, _END, _BEAT = b"+", b".", b"x", b"-"

UNKNOWN = _HEAD.pack(0, 0, _END)
"""The answer to a packet of a connection that does not exist."""


class NatsConnection:
    """One end. The owner feeds it with packets and publishes those that it makes."""

    def __init__(
        self,
        peer: str,
        publish: Callable[[bytes], Awaitable[None]],
        most_packet_bytes: int,
        on_end: Callable[[], None],
    ) -> None:
        """`publish` sends a packet to the other end; `on_end` is called once nothing more will be."""
        self.peer = peer
        self._publish = publish
        self._most_content = min(PACKET_BYTES, most_packet_bytes - _HEAD.size)
        self._on_end = on_end
        # Outward: packets that wait, how much was sent, and how much of that the peer has taken.
        self._outgoing: deque[tuple[bytes, bytes]] = deque()
        self._outgoing_bytes = 0
        self._sent_packets = 0
        self._sent_bytes = 0
        self._peer_took = 0
        # Inward: what was fed and not received yet, and how much the peer was told that we took.
        self._incoming: deque[tuple[bytes, bytes]] = deque()
        self._fed_packets = 0
        self._fed_bytes = 0
        self._took = 0
        self._told_took = 0
        self._failure: Exception | None = None
        self._is_closing = False
        self._changed = asyncio.Condition()
        self._wake = asyncio.Event()
        self._heard_at = self._spoke_at = asyncio.get_running_loop().time()
        self._fed = asyncio.Event()
        self._pump = asyncio.create_task(self._send_all())

    @property
    def unsent(self) -> int:
        """Bytes that the window does not let out yet."""
        return self._outgoing_bytes

    def send(self, message: Mapping[str, Any]) -> None:
        """Queue a message in packets."""
        if self._is_closing or self._failure is not None:
            return
        body = wire.encode(message)
        for start in range(0, len(body), self._most_content):
            content = body[start : start + self._most_content]
            is_last = start + len(content) == len(body)
            self._outgoing.append((_LAST if is_last else _PART, content))
        self._outgoing_bytes += len(body)
        self._wake.set()

    async def receive(self, most_bytes: int = MOST_BYTES) -> dict[str, Any] | None:
        """The next message, put together."""
        parts: list[bytes] = []
        size = 0
        while True:
            kind, content = await self._next()
            if kind == _END:
                if parts:
                    raise ProtocolError("the connection ended in the middle of a message")
                return None
            size += len(content)
            if size > most_bytes:
                raise wire.too_large(size, most_bytes)
            parts.append(content)
            self._took += len(content)
            if self._took - self._told_took > WINDOW // 4:
                self._wake.set()
            if kind == _LAST:
                return wire.decode(b"".join(parts))

    async def drain(self) -> None:
        """Wait until all has gone out."""
        async with self._changed:
            await self._changed.wait_for(lambda: not self._outgoing or self._failure is not None)

    def close(self) -> None:
        """Say the end after all else; what the window does not let out in time is dropped."""
        if not self._is_closing and self._failure is None:
            self._outgoing.append((_END, b""))
            self._wake.set()
            asyncio.get_running_loop().call_later(CLOSE_SECONDS, self.abort)
        self._is_closing = True

    async def ended(self) -> None:
        """Wait until nothing more will be published."""
        await asyncio.wait({self._pump})

    def abort(self) -> None:
        """End at once."""
        self.fail(ConnectionAbortedError(f"gave up {self.peer}"))

    def fail(self, error: Exception) -> None:
        """End because of an error; `receive` raises it after what came before."""
        if self._failure is None:
            self._failure = error
            self._fed.set()
            self._wake.set()

    def feed(self, packet: bytes) -> None:
        """Take a packet from the other end."""
        if len(packet) < _HEAD.size:
            self.fail(ProtocolError(f"a packet of {len(packet)} bytes; the head alone has {_HEAD.size}"))
            return
        number, peer_took, kind = _HEAD.unpack_from(packet)
        self._heard_at = asyncio.get_running_loop().time()
        if peer_took > self._peer_took:
            self._peer_took = peer_took
            self._wake.set()
        if kind == _BEAT:
            return
        if packet == UNKNOWN:
            self.fail(ConnectionResetError(f"{self.peer} does not know this connection any more"))
        elif kind not in (_PART, _LAST, _END):
            self.fail(ProtocolError(f"a packet of the unknown kind {kind!r}"))
        elif number != self._fed_packets + 1:
            self.fail(ConnectionResetError(f"packet {self._fed_packets + 1} from {self.peer} was lost"))
        elif self._fed_bytes - self._took > 2 * WINDOW:
            self.fail(ProtocolError("more was sent than the window allows"))
        else:
            content = packet[_HEAD.size :]
            self._fed_packets += 1
            self._fed_bytes += len(content)
            self._incoming.append((kind, content))
            self._fed.set()

    async def _next(self) -> tuple[bytes, bytes]:
        while not self._incoming:
            if self._failure is not None:
                raise self._failure
            self._fed.clear()
            await self._fed.wait()
        return self._incoming.popleft()

    # --- the pump ----------------------------------------------------------------------------------

    async def _send_all(self) -> None:
        """Send what the window allows, and a beat when there was nothing to send for a while."""
        try:
            while self._failure is None:
                if asyncio.get_running_loop().time() - self._heard_at > SECONDS_UNTIL_DEAD:
                    raise ConnectionResetError(f"{self.peer} has been silent for {SECONDS_UNTIL_DEAD:g} s")
                sent_any = await self._send_some()
                async with self._changed:
                    self._changed.notify_all()
                if self._is_closing and not self._outgoing:
                    return
                if not sent_any and self._took > self._told_took:
                    await self._send_packet(0, _BEAT, b"")
                self._wake.clear()
                if self._may_send():
                    continue
                await self._wait()
        except Exception as error:  # whatever the NATS client raises, the connection is over
            self.fail(error if isinstance(error, OSError) else ConnectionError(str(error)))
        finally:
            self._failure = self._failure or ConnectionAbortedError("closed")
            self._fed.set()
            async with self._changed:
                self._changed.notify_all()
            self._on_end()

    async def _wait(self) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), BEAT_SECONDS)
        # Also when woken: what wakes us may be a message that the window does not let out.
        if asyncio.get_running_loop().time() - self._spoke_at >= BEAT_SECONDS:
            await self._send_packet(0, _BEAT, b"")

    def _may_send(self) -> bool:
        if not self._outgoing:
            return False
        return self._sent_bytes - self._peer_took + len(self._outgoing[0][1]) <= WINDOW

    async def _send_some(self) -> bool:
        sent_any = False
        while self._may_send() and self._failure is None:
            kind, content = self._outgoing.popleft()
            self._sent_packets += 1
            self._sent_bytes += len(content)
            self._outgoing_bytes -= len(content)
            await self._send_packet(self._sent_packets, kind, content)
            sent_any = True
        return sent_any

    async def _send_packet(self, number: int, kind: bytes, content: bytes) -> None:
        self._told_took = self._took
        self._spoke_at = asyncio.get_running_loop().time()
        await self._publish(_HEAD.pack(number, self._took, kind) + content)


def is_first_packet(packet: bytes) -> bool:
    """Whether a packet may begin a connection.

    >>> is_first_packet(_HEAD.pack(1, 0, _LAST) + b"{}")
    True
    """
    return len(packet) >= _HEAD.size and _HEAD.unpack_from(packet)[0] == 1
