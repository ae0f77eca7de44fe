"""Rows of CSV and TSV files as records of texts, each with the line on which it starts."""

import csv
import io
from collections.abc import Iterator
from typing import Any

from tamis.cli.failure import UserError
from tamis.cli.io.inputs import Source


def read_csv_rows(source: Source) -> Iterator[tuple[int, dict[str, str | None]]]:
    """Yield (line, record) of the rows that are not blank; what is empty or missing is None.

    >>> from tamis.cli.io.inputs import Format
    >>> source = Source("x", Format.CSV, io.BytesIO(b"id,rule\\n1,x > 1\\n\\n2,\\n"), 1)
    >>> list(read_csv_rows(source))
    [(2, {'id': '1', 'rule': 'x > 1'}), (4, {'id': '2', 'rule': None})]
    """
    text = io.TextIOWrapper(source.bytes, encoding="utf-8", newline="")
    rows = csv.reader(text, delimiter=source.delimiter, strict=True)
    csv.field_size_limit(1 << 30)
    try:
        header = next(rows, [])
        for line, row in _numbered(rows):
            if len(row) > len(header):
                raise UserError(
                    f"{source.name}:{line}: {len(row)} fields, but the header has {len(header)}",
                    hint='put expressions with commas in double quotes: "age IN (1, 2)"',
                )
            yield line, {name: row[at] or None if at < len(row) else None for at, name in enumerate(header)}
    except csv.Error as error:
        raise UserError(f"{source.name}:{rows.line_num}: {error}") from None
    except UnicodeDecodeError as error:
        raise UserError(
            f"{source.name}:{rows.line_num + 1}: not UTF-8 text: {error.reason}", hint="see --encoding"
        ) from None
    finally:
        text.detach()  # the source stays open: how far it was read is still asked for


def _numbered(rows: Any) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV reader that are not blank, each with the line on which it starts."""
    line = rows.line_num + 1
    for row in rows:
        if row:
            yield line, row
        line = rows.line_num + 1
