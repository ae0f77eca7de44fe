"""Messages as bytes: JSON objects; on TCP, each after four bytes of length. Never more than a limit."""

import asyncio
import json
import struct
from collections.abc import Mapping
from typing import Any

from tamis.pubsub.broker.messages import ProtocolError
from tamis.pubsub.net.connection import MOST_BYTES

_LENGTH = struct.Struct(">I")


def encode(message: Mapping[str, Any]) -> bytes:
    """Write a message. Text stays UTF-8, so that passing a message on does not make it longer.

    >>> encode({"event": "é"})
    b'{"event":"\\xc3\\xa9"}'
    """
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode()


def decode(body: bytes) -> dict[str, Any]:
    """Read a message.

    >>> decode(b'{"reply": 1}')
    {'reply': 1}
    >>> decode(b'GET / HTTP/1.1')
    Traceback (most recent call last):
    ...
    tamis.pubsub.broker.messages.ProtocolError: a message is a JSON object: Expecting value: ...
    """
    try:
        message = json.loads(body)
        if b"\\u" in body:
            encode(message)  # half a surrogate pair can be written in JSON, and is no text
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"a message is a JSON object: {error}") from None
    if not isinstance(message, dict):
        raise ProtocolError(f"a message is a JSON object, not {type(message).__name__}")
    return message


def too_large(size: int, most_bytes: int) -> ProtocolError:
    """The complaint about a message that is too large.

    >>> str(too_large(5_000, 4_096))
    'a message of 5,000 bytes; at most 4,096 are allowed'
    """
    return ProtocolError(f"a message of {size:,} bytes; at most {most_bytes:,} are allowed")


def pack(message: Mapping[str, Any]) -> bytes:
    """Write a message with its length.

    >>> pack({"reply": 1})
    b'\\x00\\x00\\x00\\x0b{"reply":1}'
    """
    body = encode(message)
    return _LENGTH.pack(len(body)) + body


async def read(reader: asyncio.StreamReader, most_bytes: int = MOST_BYTES) -> dict[str, Any] | None:
    """Read a message with its length; None at the end of the stream.

    Raises `ProtocolError` for what is no message, before reading more than `most_bytes`.
    """
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        if length > most_bytes:
            raise too_large(length, most_bytes)
        body = await reader.readexactly(length)
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise ProtocolError("the connection ended in the middle of a message") from None
        return None
    return decode(body)
