"""Messages on a TCP connection: four bytes of length, then a JSON object; never more than a limit."""

import asyncio
import json
import struct
from typing import Any

from tamis.pubsub.messages import ProtocolError

MOST_BYTES = 1 << 20
_LENGTH = struct.Struct(">I")


def pack(message: dict[str, Any]) -> bytes:
    """Write a message.

    >>> pack({"reply": 1})
    b'\\x00\\x00\\x00\\x0b{"reply":1}'
    """
    body = json.dumps(message, separators=(",", ":")).encode()
    return _LENGTH.pack(len(body)) + body


async def read(reader: asyncio.StreamReader, most_bytes: int = MOST_BYTES) -> dict[str, Any] | None:
    """Read a message; None at the end of the stream.

    Raises `ProtocolError` for what is no message, before reading more than `most_bytes`.
    """
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        if length > most_bytes:
            raise ProtocolError(f"a message of {length:,} bytes; at most {most_bytes:,} are allowed")
        body = await reader.readexactly(length)
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise ProtocolError("the connection ended in the middle of a message") from None
        return None
    return unpack(body)


def unpack(body: bytes) -> dict[str, Any]:
    """Read the JSON of a message.

    >>> unpack(b'{"reply": 1}')
    {'reply': 1}
    >>> unpack(b'GET / HTTP/1.1')
    Traceback (most recent call last):
    ...
    tamis.pubsub.messages.ProtocolError: a message is a JSON object of at most 64 levels: Expecting value: ...
    """
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"a message is a JSON object of at most 64 levels: {error}") from None
    if not isinstance(message, dict):
        raise ProtocolError(f"a message is a JSON object, not {type(message).__name__}")
    return message
