"""Decompresses and decodes stored bytes to plain UTF-8.

The first bytes, not the name, tell whether a file is compressed. UTF-16 and UTF-32 are detected by their
byte-order mark; the mark of UTF-8 is dropped.
"""

import codecs
import gzip
import io
from typing import Any

from tamis.cli.failure import UserError

SNIFFED = 4_096
SAY_ENCODING = "name it, such as --encoding latin-1; --rules-encoding if the command also reads events"

_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def decompressed(raw: Any, name: str) -> Any:
    """A reader of what is inside a gzip or zstd file, or the reader itself.

    >>> decompressed(io.BufferedReader(io.BytesIO(gzip.compress(b"text"))), "x").read()
    b'text'
    """
    start = raw.peek(SNIFFED)
    if start.startswith(_GZIP_MAGIC):
        return checked(gzip.GzipFile(fileobj=raw), name)
    if start.startswith(_ZSTD_MAGIC):
        import pyarrow as pa

        return checked(io.BufferedReader(_Zstd(pa.CompressedInputStream(pa.PythonFile(raw), "zstd"))), name)
    return raw


def checked(reader: Any, name: str) -> Any:
    """The reader, if its first bytes can be read."""
    try:
        reader.peek(SNIFFED)
    except (OSError, EOFError) as error:
        raise UserError(f"cannot read {name}: {error}") from None
    return reader


def as_utf8(reader: Any, name: str, encoding: str | None) -> Any:
    """A reader of the same text in UTF-8, without a byte-order mark.

    >>> as_utf8(io.BufferedReader(io.BytesIO("é".encode("utf-16"))), "x", None).read().decode()
    'é'
    """
    if encoding is None:
        start = reader.peek(SNIFFED)
        encoding = next((found for mark, found in _MARKS if start.startswith(mark)), None)
        if encoding is None:
            return reader
    try:
        decoder = codecs.getincrementaldecoder(encoding)()
    except LookupError:
        raise UserError(f"there is no encoding {encoding!r}", hint="such as utf-8, utf-16, latin-1") from None
    return io.BufferedReader(_Decoded(reader, decoder, name, encoding))


class _Zstd(io.RawIOBase):
    """A raw stream over Arrow's, which raises an error of its own where a file is truncated."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._stream.read(len(buffer))
        buffer[: len(block)] = block
        return len(block)


class _Decoded(io.RawIOBase):
    """Text in some encoding as UTF-8."""

    def __init__(self, reader: Any, decoder: codecs.IncrementalDecoder, name: str, encoding: str) -> None:
        self._reader = reader
        self._decoder = decoder
        self._place = (name, encoding)
        self._rest = b""
        self._ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest and not self._ended:
            block = self._reader.read1(1 << 16)
            self._ended = not block
            try:
                text = self._decoder.decode(block, final=self._ended)
            except UnicodeDecodeError as error:
                name, encoding = self._place
                raise UserError(f"{name}: not {encoding} text: {error.reason}", hint=SAY_ENCODING) from None
            self._rest = text.removeprefix("\ufeff").encode()
        taken = self._rest[: len(buffer)]
        buffer[: len(taken)] = taken
        self._rest = self._rest[len(taken) :]
        return len(taken)
