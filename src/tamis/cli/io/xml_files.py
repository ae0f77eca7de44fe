"""XML files as events: each document is one, with the attributes `doc` (its text) and `file` (its name)."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tamis.cli.failure import UserError, warn
from tamis.cli.io.events import Rows

KEY = "file"
"""What an event is called in the answers, unless `--key` says otherwise."""

_AT_ONCE = 64


def read_xml_files(paths: Sequence[str]) -> Iterator[Rows]:
    """Some documents at a time; `-` is standard input.

    One that is not well-formed is mentioned, and no path is true for it.
    """
    import pyarrow as pa

    for first in range(0, len(paths), _AT_ONCE):
        names = list(paths[first : first + _AT_ONCE])
        yield Rows(first, pa.table({"doc": [_document(name) for name in names], KEY: names}))


def _document(name: str) -> str:
    from tamis import Xml, XmlError

    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise UserError(f"{name}: {error.strerror or error}") from None
    try:
        return str(Xml(data, strict=True))
    except XmlError as error:
        warn(f"{name}:{error.line}:{error.column}: {error.message}; no path is true for it")
        return str(Xml(data))
