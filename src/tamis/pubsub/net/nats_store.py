"""The durable map of a broker in a JetStream stream: one change set after the other, as in a file.

A change set is one message, or several if it is larger than a message may be; it counts once its last part is
there. When most messages are outdated, the whole map is written again after them and they are purged: until
then, both say the same.

Every write names the last message it knows of (`Nats-Expected-Last-Sequence`). So of two processes with one
name, only one can write: the one that came later, as the first does not know its messages. And a write that
was not answered can be repeated: either it is refused, and the message is there, or it was lost.
"""

import asyncio
import json
import logging
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tamis.pubsub.net.connection import StoreError, UnreachableError
from tamis.pubsub.net.nats_peer import NatsPeer, token_of
from tamis.pubsub.net.replay import Replay

if TYPE_CHECKING:
    from nats.js import JetStreamContext

logger = logging.getLogger("tamis.nats")

PART_BYTES = 256 << 10
ANSWER_SECONDS = 2.0
RETRY_SECONDS = 0.2
READ_SECONDS = 10.0
_WRONG_LAST_SEQUENCE = 10071
_PASSING = (10008, 10009)
"""Errors that go away: JetStream is starting, or is choosing a leader."""
_NO_JETSTREAM = (None, 10039, 10076)
"""Nobody answers its requests; the account may not use it; the server does not run it."""
_EXPECTED_LAST = "Nats-Expected-Last-Sequence"
_ID = "Tamis-Id"
_FIRST, _LAST = 1, 2
"""Bits of the byte before each part: it begins a change set, it ends one."""


class JetStreamStore:
    """A `Store` in the stream `tamis-NAME`."""

    def __init__(self, nats: NatsPeer, broker: str) -> None:
        """Use `open` instead, which also reads what is there."""
        self._nats = nats
        self._broker = broker
        self._stream = f"tamis-{token_of(broker)}"
        self._subject = f"tamis.store.{token_of(broker)}"
        self._replay = Replay()
        self._last = 0

    @classmethod
    async def open(cls, nats: NatsPeer, broker: str, replicas: int = 1) -> "JetStreamStore":
        """Read a broker's stream, or make it; waits for a server that is not there yet."""
        from nats.errors import Error  # noqa: PLC0415 - an extra

        while True:
            store = cls(nats, broker)
            try:
                await store._load(replicas)
            except (Error, OSError, TimeoutError) as error:
                logger.warning("waiting for NATS", extra={"error": str(error) or type(error).__name__})
                await asyncio.sleep(1.0)
            else:
                return store

    @property
    def values(self) -> Mapping[str, Any]:
        """The map as it is now."""
        return self._replay.values

    async def save(self, changes: Mapping[str, Any]) -> None:
        """Append a change set; waits for a server that is away, as long as it takes."""
        await self._append(changes)
        self._replay.apply(changes)
        if self._replay.is_mostly_outdated:
            await self._compact()

    def close(self) -> None:
        """The connection is the peer's."""

    async def _append(self, changes: Mapping[str, Any]) -> None:
        text = json.dumps(changes, separators=(",", ":"), ensure_ascii=False).encode()
        size = min(PART_BYTES, (await self._when_there()).max_payload // 2)
        for start in range(0, len(text), size):
            is_last = start + size >= len(text)
            flags = (_FIRST if start == 0 else 0) | (_LAST if is_last else 0)
            await self._publish(bytes([flags]) + text[start : start + size])

    async def _compact(self) -> None:
        from nats.errors import Error  # noqa: PLC0415 - an extra

        first = self._last + 1
        records = 0
        for chunk in self._replay.chunks():
            await self._append(chunk)
            records += 1
        self._replay.records = records
        try:
            await (await self._nats.jetstream()).purge_stream(self._stream, seq=first)
        except (Error, OSError, TimeoutError) as error:
            logger.warning("old messages stay for now", extra={"stream": self._stream, "error": str(error)})

    async def _when_there(self) -> Any:
        """The NATS client, once it is connected."""
        while True:
            try:
                return await self._nats.open()
            except (OSError, UnreachableError) as error:
                logger.warning("waiting for NATS", extra={"error": str(error)})
                await asyncio.sleep(RETRY_SECONDS)

    async def _publish(self, content: bytes) -> None:
        from nats.errors import Error  # noqa: PLC0415 - an extra
        from nats.js.errors import APIError  # noqa: PLC0415

        headers = {_EXPECTED_LAST: str(self._last), _ID: uuid.uuid4().hex}
        while True:
            client = await self._when_there()
            try:
                stream = client.jetstream(timeout=ANSWER_SECONDS)
                answer = await stream.publish(self._subject, content, headers=headers, stream=self._stream)
                self._last = answer.seq
                return
            except APIError as error:
                if error.err_code == _WRONG_LAST_SEQUENCE:
                    trouble = await self._check_ours(stream, headers[_ID])
                    if trouble is None:
                        return
                    reason = trouble
                elif error.err_code in _PASSING:
                    reason = str(error)
                else:
                    raise StoreError(f"cannot write the stream {self._stream}: {error.description}") from None
            except (Error, OSError, TimeoutError) as error:
                reason = str(error) or type(error).__name__
            logger.warning("writing again", extra={"stream": self._stream, "error": reason})
            await asyncio.sleep(RETRY_SECONDS)

    async def _check_ours(self, stream: "JetStreamContext", id: str) -> str | None:
        """Somebody has written after what we know of: an earlier attempt of ours, or another process.

        Returns why that cannot be told now, or None if it was ours; another process is a `StoreError`.
        """
        from nats.errors import Error  # noqa: PLC0415 - an extra
        from nats.js.errors import NotFoundError  # noqa: PLC0415

        try:
            found = await stream.get_msg(self._stream, self._last + 1)
        except NotFoundError:
            found = None
        except (Error, OSError, TimeoutError) as error:
            return str(error) or type(error).__name__
        if found is None or (found.headers or {}).get(_ID) != id:
            raise StoreError(f"another broker with the name {self._broker} is writing to {self._stream}")
        self._last += 1
        return None

    async def _load(self, replicas: int) -> None:
        from nats.js.api import DiscardPolicy, StreamConfig  # noqa: PLC0415 - an extra
        from nats.js.errors import APIError, NotFoundError, ServiceUnavailableError  # noqa: PLC0415

        client = await self._nats.open()
        stream = client.jetstream()
        try:
            try:
                info = await stream.stream_info(self._stream)
            except NotFoundError:
                info = await stream.add_stream(
                    StreamConfig(
                        name=self._stream,
                        subjects=[self._subject],
                        # A stream that is full refuses what is new; what was promised is never deleted.
                        discard=DiscardPolicy.NEW,
                        num_replicas=replicas,
                    )
                )
        except APIError as error:
            if error.err_code in _PASSING:
                raise ConnectionError(f"JetStream is not ready: {error.description}") from None
            if isinstance(error, ServiceUnavailableError) and error.err_code in _NO_JETSTREAM:
                raise UnreachableError(
                    f"NATS at {self._nats.servers} has no JetStream; start nats-server with -js"
                ) from None
            raise StoreError(f"cannot make the stream {self._stream}: {error.description}") from None
        self._last = info.state.last_seq
        if info.state.messages:
            await self._read(stream, info.state.first_seq)

    async def _read(self, stream: "JetStreamContext", first: int) -> None:
        reading = await stream.subscribe(self._subject, stream=self._stream, ordered_consumer=True)
        try:
            parts: list[bytes] = []
            for number in range(first, self._last + 1):
                message = await reading.next_msg(READ_SECONDS)
                if message.metadata.sequence.stream != number:
                    raise ConnectionError(f"message {number} of {self._stream} did not arrive")
                flags, content = message.data[0], message.data[1:]
                if flags & _FIRST:
                    parts = []  # what was begun before and not ended was never acknowledged
                parts.append(content)
                if flags & _LAST:
                    self._replay.apply(json.loads(b"".join(parts)))
        finally:
            await reading.unsubscribe()
