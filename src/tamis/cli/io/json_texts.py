"""A sequence of JSON records: one per line, spread over several lines, or in one array.

One record per line is the common and fast case: lines are passed on unchanged as they arrive. If the first
line is not a whole record, a decoder finds the end of each record.
"""

import json
from collections.abc import Iterator
from itertools import chain
from typing import Any

from tamis.cli.failure import UserError
from tamis.cli.io.encodings import SAY_ENCODING
from tamis.cli.io.inputs import Source, read_lines

_DECODER = json.JSONDecoder()

Numbered = list[tuple[int, bytes]]
"""Records as text, each with the line on which it starts."""


def read_json_texts(source: Source) -> Iterator[Numbered]:
    """Yield lists of records, as many as are there.

    >>> import io
    >>> from tamis.cli.io.inputs import Format
    >>> for text in (b'{"a": 1}\\n{"a": 2}', b'[{"a": 1},\\n {"a": 2}]', b'{\\n"a": 1\\n}'):
    ...     list(chain.from_iterable(read_json_texts(Source("x", Format.JSONL, io.BytesIO(text), 1))))
    [(1, b'{"a": 1}'), (2, b'{"a": 2}')]
    [(1, b'{"a": 1}'), (2, b'{"a": 2}')]
    [(1, b'{\\n"a": 1\\n}')]
    """
    blocks = read_lines(source)
    number = 0
    for lines in blocks:
        for at, line in enumerate(lines):
            if not line.strip():
                continue
            if not _is_whole(line):
                rest = chain([lines[at:]], blocks)
                yield from _cut_out(source, number + at + 1, rest)
                return
            yield _numbered(number, lines)
            number += len(lines)
            break
        else:
            number += len(lines)
            continue
        break
    for lines in blocks:
        yield _numbered(number, lines)
        number += len(lines)


def _numbered(before: int, lines: list[bytes]) -> Numbered:
    return [(before + at, line) for at, line in enumerate(lines, 1) if line.strip()]


def _is_whole(line: bytes) -> bool:
    """Whether the first line looks like a record, whole or broken, and not like a longer text's start."""
    text = line.strip()
    return not text.startswith(b"[") and not (text.startswith(b"{") and not text.endswith(b"}"))


def _cut_out(source: Source, line: int, blocks: Iterator[list[bytes]]) -> Iterator[Numbered]:
    text, at, in_array, wanted = "", 0, False, 1

    def more() -> bool:
        """Take about as much again as there is, so that a long record is not decoded too often."""
        nonlocal text, at, line, wanted
        line += text.count("\n", 0, at)
        text, at = text[at:], 0
        before = len(text)
        for lines in blocks:
            try:
                text += b"\n".join(lines).decode() + "\n"
            except UnicodeDecodeError as error:
                raise UserError(f"{source.name}: not UTF-8 text: {error.reason}", hint=SAY_ENCODING) from None
            if len(text) >= 2 * before:
                break
        return len(text) > before

    while True:
        while at < len(text) and (text[at].isspace() or (in_array and text[at] == ",")):
            at += 1
        if at == len(text):
            if more():
                continue
            if in_array:
                raise UserError(f"{source.name}:{line}: the array is never closed, ] is missing")
            return
        if text[at] == "[" and not in_array:
            in_array, at = True, at + 1
            continue
        if text[at] == "]" and in_array:
            in_array, at = False, at + 1
            continue
        try:
            _, end = _DECODER.raw_decode(text, at)
        except ValueError as error:
            within = getattr(error, "pos", at) - at
            if more():
                continue
            raise _broken(source, line, text, within, error) from None
        except RecursionError:
            raise UserError(f"{source.name}:{line}: nested too deep to be read") from None
        yield [(line + text.count("\n", 0, at), text[at:end].encode())]
        at = end


def _broken(source: Source, line: int, text: str, place: int, error: Any) -> UserError:
    before = text[:place]
    column = place - (before.rfind("\n") + 1) + 1
    message = getattr(error, "msg", str(error))
    return UserError(f"{source.name}:{line + before.count(chr(10))}:{column}: not valid JSON: {message}")
