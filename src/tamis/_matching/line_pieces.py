"""JSON lines from bytes, files and paths, in chunks that end at the end of a line."""

import os
from collections.abc import Callable, Iterator
from typing import BinaryIO

from tamis.errors import ArgumentError

Source = bytes | bytearray | memoryview | str | os.PathLike[str] | BinaryIO
"""Where lines come from; a `str` is a path."""

CHUNK_BYTES = 8 << 20
_MARK = b"\xef\xbb\xbf"


def pieces(source: Source, chunk_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
    r"""The bytes of a source in chunks of about that size, each of whole lines, without a byte-order mark.

    >>> list(pieces(b"a\nbb\nccc", 4))
    [b'a\n', b'bb\n', b'ccc']
    """
    if chunk_bytes < 1:
        raise ArgumentError(f"chunk_bytes is a number of bytes, 1 or more, not {chunk_bytes}")
    if isinstance(source, bytes) and len(source) <= chunk_bytes:
        yield source.removeprefix(_MARK)
        return
    if isinstance(source, str | os.PathLike):
        if isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("{"):
            raise ArgumentError("a str is the path of a file; JSON lines are bytes: write text.encode()")
        with open(source, "rb", buffering=0) as file:
            yield from _whole_lines(file.read, chunk_bytes)
        return
    if isinstance(source, bytes | bytearray | memoryview):
        view = memoryview(source).cast("B")
        places = iter(range(0, len(view), chunk_bytes))

        def read(_: int) -> bytes:
            at = next(places, len(view))
            return bytes(view[at : at + chunk_bytes])

        yield from _whole_lines(read, chunk_bytes)
        return
    if not hasattr(source, "read"):
        kind = type(source).__name__
        raise TypeError(f"JSON lines are bytes, a memoryview, a path, or a file of bytes, not {kind}")
    yield from _whole_lines(source.read, chunk_bytes)


def _whole_lines(read: Callable[[int], bytes | None], chunk_bytes: int) -> Iterator[bytes]:
    kept: list[bytes] = []  # the start of a line whose end is still to come
    is_first = True
    while block := read(chunk_bytes):
        if not isinstance(block, bytes):
            raise ArgumentError('the file gives text; open it for reading bytes: open(path, "rb")')
        end = block.rfind(b"\n") + 1
        if end == 0:
            kept.append(block)
            continue
        piece = b"".join([*kept, block[:end]])
        kept = [block[end:]] if end < len(block) else []
        yield piece.removeprefix(_MARK) if is_first else piece
        is_first = False
    if kept:
        rest = b"".join(kept)
        yield rest.removeprefix(_MARK) if is_first else rest
