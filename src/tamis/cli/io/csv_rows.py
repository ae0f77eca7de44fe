"""Rows of CSV and TSV files as records of texts, each with the line on which it starts."""

import csv
import re
from collections.abc import Collection, Iterable, Iterator
from itertools import chain

from tamis.cli.failure import UserError
from tamis.cli.io.encodings import SAY_ENCODING
from tamis.cli.io.inputs import Format, Source

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_SEPARATORS = (",", ";", "\t", "|")


def read_csv_rows(
    source: Source, expected: Collection[str] = ()
) -> Iterator[tuple[int, dict[str, str | None]]]:
    """Yield (line, record) of the rows that are not blank; what is empty or missing is None.

    Where nobody said what separates fields, it is what makes a column of an `expected` name.

    >>> import io
    >>> source = Source("x", Format.CSV, io.BytesIO(b"id;rule\\n1;x > 1\\n;\\n2;\\n"), 1)
    >>> list(read_csv_rows(source, ["rule"]))
    [(2, {'id': '1', 'rule': 'x > 1'}), (4, {'id': '2', 'rule': None})]
    """
    csv.field_size_limit(1 << 30)
    text = _lines(source)
    first = _first_lines(text)
    if source.separator is None and source.format is Format.CSV:
        source.separator = _separator_of(first, expected)
    rows = _numbered(source, chain(first, text))
    header = [name.strip() for name in next((row for _, row in rows), [])]
    _check_header(source, header)
    for line, row in rows:
        if len(row) > len(header):
            raise UserError(
                f"{source.name}:{line}: {len(row)} fields, but the header has {len(header)}",
                hint='put expressions with commas in double quotes: "age IN (1, 2)"'
                if source.delimiter == ","
                else f"put expressions with {source.delimiter!r} in double quotes",
            )
        yield line, {name: row[at] or None if at < len(row) else None for at, name in enumerate(header)}


def _lines(source: Source) -> Iterator[str]:
    """The lines with their ends, whichever of the three kinds they have."""
    number = 0
    for raw in source.bytes:
        try:
            lines = _LINE.findall(raw.decode())
        except UnicodeDecodeError as error:
            place = f"{source.name}:{number + 1}:{error.start + 1}"
            raise UserError(f"{place}: not UTF-8 text: {error.reason}", hint=SAY_ENCODING) from None
        yield from lines
        number += len(lines)


def _first_lines(text: Iterator[str]) -> list[str]:
    """The lines of the header, and blank ones before it."""
    lines: list[str] = []
    for line in text:
        lines.append(line)
        whole = "".join(lines)
        if whole.strip() and whole.count('"') % 2 == 0:
            break
    return lines


def _separator_of(lines: list[str], expected: Collection[str]) -> str | None:
    """What separates the names of a header, if one of them is expected.

    >>> _separator_of(["id;expression\\n"], ["expression"]), _separator_of(["a,b\\n"], ["expression"])
    (';', None)
    """
    for separator in _SEPARATORS:
        names = next((row for row in csv.reader(lines, delimiter=separator) if any(row)), [])
        if any(name.strip() in expected for name in names):
            return separator
    return None


def _check_header(source: Source, header: list[str]) -> None:
    repeated = next((name for name in header if name and header.count(name) > 1), None)
    if repeated is not None:
        raise UserError(f"{source.name}: the header has two columns `{repeated}`", hint="rename one of them")


def _numbered(source: Source, lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not blank, each with the line on which it starts."""
    rows = csv.reader(lines, delimiter=source.delimiter, strict=True)
    line = 1
    try:
        for row in rows:
            if any(row):
                yield line, row
            line = rows.line_num + 1
    except csv.Error as error:
        if "unexpected end of data" in str(error):
            raise UserError(
                f"{source.name}:{line}: a quoted field opened here is never closed",
                hint='close it with "; a quote inside a quoted field is written twice',
            ) from None
        raise UserError(f"{source.name}:{rows.line_num}: {error}") from None
