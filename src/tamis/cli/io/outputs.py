"""Writes matches: a table on a terminal, JSON lines on a pipe, or a file in the format of its extension.

All of them have the same columns, one row per match: `event`, `subscription` and, for the best k, `score`
and `rank`.
"""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tamis.cli.failure import UserError
from tamis.cli.io.inputs import EXTENSIONS, Format, format_of
from tamis.cli.io.whole_file import WholeFile

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN_ON_A_TERMINAL = 40
STDOUT = "-"


class Sink(Protocol):
    """Where rows go."""

    def write(self, table: "pa.Table") -> None:
        """Take some rows."""

    def close(self) -> None:
        """Finish the output: only now there is a file."""

    def abandon(self) -> None:
        """Leave no file behind."""


def open_sink(output: Path | None, to: Format | None) -> Sink:
    """Choose where rows go: to `output`, else to standard output, as a table if that is a terminal."""
    if output is None or str(output) == STDOUT:
        if to in (Format.CSV, Format.TSV):
            return TableStream(sys.stdout.buffer, to)
        if to not in (None, Format.JSONL):
            raise UserError(f"{to} is for files", hint="name one with --output")
        return JsonLines(sys.stdout) if to is Format.JSONL or not sys.stdout.isatty() else Screen()
    kind = to or format_of(str(output))
    if kind is None or kind is Format.TEXT:
        known = ", ".join(sorted(extension for extension in EXTENSIONS if extension != ".txt"))
        raise UserError(f"cannot tell the format of {output}", hint=f"use one of {known}")
    whole = WholeFile(output)
    try:
        if kind is Format.JSONL:
            return JsonLines(whole.text(), whole)
        return TableStream(whole.bytes(), kind, whole)
    except OSError as error:
        raise UserError(f"cannot write {output}: {error.strerror}") from None


class JsonLines:
    """One JSON object per row, flushed with every portion."""

    def __init__(self, stream: Any, whole: WholeFile | None = None) -> None:
        """Write to a text stream, of a file or of standard output."""
        self._stream = stream
        self._whole = whole

    def write(self, table: "pa.Table") -> None:
        """Write one line per row."""
        columns = [_json_texts(column) for column in table.columns]
        pattern = "{" + ", ".join(f'"{name}": %s' for name in table.column_names) + "}\n"
        self._stream.write("".join([pattern % row for row in zip(*columns, strict=True)]))
        self._stream.flush()

    def close(self) -> None:
        """Finish the file, or flush standard output."""
        self._stream.flush()
        if self._whole is not None:
            self._whole.finish()

    def abandon(self) -> None:
        """Leave no file behind."""
        if self._whole is not None:
            self._whole.abandon()


class TableStream:
    """CSV, TSV, Parquet or Arrow, begun with the first rows' schema."""

    def __init__(self, stream: Any, kind: Format, whole: WholeFile | None = None) -> None:
        """Write to a stream of bytes, of a file or of standard output."""
        self._file = stream
        self._kind = kind
        self._whole = whole
        self._writer: Any = None

    def write(self, table: "pa.Table") -> None:
        """Append the rows."""
        table = _plain(table)
        if self._writer is None:
            self._writer = self._open(table.schema)
        self._writer.write_table(table)
        if self._whole is None:
            self._file.flush()

    def close(self) -> None:
        """Write what is left and finish the file."""
        if self._writer is not None:
            self._writer.close()
        if self._whole is not None:
            self._whole.finish()
        else:
            self._file.flush()

    def abandon(self) -> None:
        """Leave no file behind."""
        if self._whole is not None:
            self._whole.abandon()

    def _open(self, schema: "pa.Schema") -> Any:
        import pyarrow as pa

        if self._kind is Format.PARQUET:
            import pyarrow.parquet as pq

            return pq.ParquetWriter(self._file, schema, compression="zstd")
        if self._kind is Format.ARROW:
            return pa.ipc.new_file(self._file, schema)
        from pyarrow import csv

        delimiter = "\t" if self._kind is Format.TSV else ","
        return csv.CSVWriter(self._file, schema, write_options=csv.WriteOptions(delimiter=delimiter))


class Screen:
    """The first rows as a table on the terminal, and how many more there were."""

    def __init__(self) -> None:
        """Start with nothing to show."""
        self._rows: list[dict[str, Any]] = []
        self._names: list[str] = []
        self._count = 0

    def write(self, table: "pa.Table") -> None:
        """Keep the first rows, count the others."""
        self._names = table.column_names
        wanted = SHOWN_ON_A_TERMINAL - len(self._rows)
        if wanted > 0:
            self._rows.extend(table.slice(0, wanted).to_pylist())
        self._count += table.num_rows

    def abandon(self) -> None:
        """Show nothing."""

    def close(self) -> None:
        """Print the table."""
        from rich.console import Console
        from rich.table import Table

        console = Console()
        if not self._count:
            console.print("[dim]no matches[/]")
            return
        shown = Table(box=None, header_style="bold", pad_edge=False)
        for name in self._names:
            numeric = isinstance(self._rows[0][name], int | float)
            shown.add_column(name, justify="right" if numeric else "left")
        for row in self._rows:
            shown.add_row(*(_cell(row[name]) for name in self._names))
        console.print(shown)
        if self._count > len(self._rows):
            console.print(
                f"[dim]... and {self._count - len(self._rows):,} more rows; "
                "pipe them on, or use --output FILE to keep them all[/]"
            )


def _cell(value: Any) -> str:
    from rich.markup import escape

    return f"{value:.6g}" if isinstance(value, float) else escape(str(value))


def _json_texts(column: "pa.ChunkedArray") -> list[str]:
    return [json.dumps(value, ensure_ascii=False, default=str) for value in column.to_pylist()]


def _plain(table: "pa.Table") -> "pa.Table":
    """Dictionary-encoded ids as plain values: later portions would have other dictionaries."""
    import pyarrow as pa

    for position, column in enumerate(table.columns):
        if pa.types.is_dictionary(column.type):
            plain = column.cast(column.type.value_type)
            table = table.set_column(position, table.column_names[position], plain)
    return table
