"""Opens files and pipes, detects their format, and reads them as records or as Arrow batches.

The format comes from `--format`, else from the extension (`.csv`, `.jsonl.gz`, ...), else from the first
bytes, so that a pipe needs no option.
"""

import io
import json
import re
import sys
from collections.abc import Callable, Iterator
from csv import Error as CsvError
from csv import reader
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tamis._suggest import suggestion
from tamis.cli.failure import UserError
from tamis.cli.io.encodings import SAY_ENCODING, SNIFFED, as_utf8, decompressed
from tamis.cli.io.read_ahead import AsItComes, Stoppable, read_ahead

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import csv

STDIN = "-"
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}


class Format(StrEnum):
    """The formats that are read and written."""

    JSONL = "jsonl"
    CSV = "csv"
    TSV = "tsv"
    PARQUET = "parquet"
    ARROW = "arrow"
    TEXT = "text"
    """One expression per line; for rules only."""


EXTENSIONS = {
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
    ".json": Format.JSONL,
    ".csv": Format.CSV,
    ".tsv": Format.TSV,
    ".parquet": Format.PARQUET,
    ".pq": Format.PARQUET,
    ".arrow": Format.ARROW,
    ".arrows": Format.ARROW,
    ".feather": Format.ARROW,
    ".ipc": Format.ARROW,
    ".txt": Format.TEXT,
}


def format_of(path: str) -> Format | None:
    """The format that a path's extension stands for, seen through `.gz` and `.zst`.

    >>> format_of("rules.csv.gz"), format_of("rules")
    (<Format.CSV: 'csv'>, None)
    """
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    return EXTENSIONS.get(suffixes[-1]) if suffixes else None


@dataclass
class Source:
    """An open input: where its bytes come from, in which format, and what to call it in messages."""

    name: str
    format: Format
    bytes: IO[bytes]
    size: int | None
    """Bytes in the file as stored, for progress; None for a pipe."""
    skip_bad: bool = False
    """Whether rows of a CSV file with too few or too many fields are left out instead of stopping."""
    skipped: list[int] = field(default_factory=list)
    """The rows that were left out, counted from 0 without the header."""
    stored: Any = None
    """The file itself, below what decompresses it; None for a pipe."""
    separator: str | None = None
    """What stands between the fields of a CSV file, if it is no comma."""
    stop: Callable[[], None] = lambda: None
    """Ends the pipe for whoever waits for more of it."""

    @property
    def has_cells(self) -> bool:
        """Whether it is a file of texts that say nothing of types."""
        return self.format in (Format.CSV, Format.TSV)

    @property
    def delimiter(self) -> str:
        """What stands between the fields of a CSV or TSV file."""
        return self.separator or ("\t" if self.format is Format.TSV else ",")

    def fraction(self) -> float | None:
        """Which fraction of a file has been read; None for a pipe."""
        if not self.size:
            return None
        return float(min(1.0, (self.stored or self.bytes).tell() / self.size))


def read_separator(text: str | None) -> str | None:
    """What `--separator` gives: one character, or `tab`.

    >>> read_separator(";"), read_separator("tab"), read_separator(None)
    (';', '\\t', None)
    """
    if text is None:
        return None
    one = "\t" if text in ("tab", "\\t") else text
    if len(one) != 1 or one in '"\r\n' or not one.isascii():
        raise UserError(f"--separator: {text!r} is not one character", hint="such as ';', '|' or tab")
    return one


def open_source(
    path: str,
    asked: Format | None = None,
    what: str = "input",
    *,
    encoding: str | None = None,
    separator: str | None = None,
) -> Source:
    """Open a file, or standard input for `-`.

    >>> open_source("/no/such/file")
    Traceback (most recent call last):
    tamis.cli.failure.UserError: cannot read /no/such/file: No such file or directory
    """
    if path == STDIN:
        stdin: Any = sys.stdin
        try:
            if stdin.isatty():
                raise UserError(f"no {what} given", hint=f"name a file of {what}, or pipe them in")
            pipe = Stoppable(stdin.detach())
        except ValueError:  # it was detached before
            raise UserError(
                "rules and events cannot both come from standard input", hint=f"name a file of {what}"
            ) from None
        raw: Any = io.BufferedReader(pipe)
        name, size, stop = "<stdin>", None, pipe.stop
    else:
        try:
            raw = Path(path).open("rb")  # noqa: SIM115 -- the process or the caller's `with` closes it
            size = Path(path).stat().st_size
        except OSError as error:
            hint = similar_file(path) if isinstance(error, FileNotFoundError) else None
            raise UserError(f"cannot read {path}: {error.strerror}", hint=hint) from None
        name, stop = path, _nothing
    reader = decompressed(raw, name)
    format = asked or format_of(path) or _sniff(reader.peek(SNIFFED))
    if format not in (Format.PARQUET, Format.ARROW):
        reader = as_utf8(reader, name, encoding)
    stored = None if size is None else raw
    return Source(name, format, reader, size, stored=stored, separator=read_separator(separator), stop=stop)


def _nothing() -> None:
    """A file ends by itself."""


def read_lines(source: Source) -> Iterator[list[bytes]]:
    """Yield lists of complete lines, as many as are there: nothing waits for more than a line.

    >>> source = Source("x", Format.JSONL, io.BytesIO(b"one\\ntwo"), 7)
    >>> list(read_lines(source))
    [[b'one'], [b'two']]
    """
    rest = b""
    reader: Any = source.bytes
    try:
        while block := reader.read1(1 << 17):
            *lines, rest = (rest + block).split(b"\n")
            if lines:
                yield lines
    except (OSError, EOFError) as error:  # compressed, and broken or cut off
        raise UserError(f"{source.name}: {error}") from None
    if rest:
        yield [rest]


def read_batches(source: Source) -> Iterator["pa.RecordBatch"]:
    """Yield the Arrow record batches of a CSV, Parquet or Arrow source."""
    import pyarrow as pa

    try:
        if source.bytes.peek(1):  # type: ignore[attr-defined]  # an empty file or pipe holds nothing
            yield from _batches(source)
    except pa.ArrowInvalid as error:
        message = str(error).splitlines()[0]
        hint = SAY_ENCODING if "UTF8" in message else None
        raise UserError(f"{source.name}: not readable as {source.format}: {message}", hint=hint) from None


def _batches(source: Source) -> Iterator["pa.RecordBatch"]:
    import pyarrow as pa

    if source.format in (Format.CSV, Format.TSV):
        from pyarrow import csv

        parse = csv.ParseOptions(
            delimiter=source.delimiter,
            newlines_in_values=True,
            invalid_row_handler=_handler_of_bad_rows(source),
        )
        yield from _csv_batches(source, parse)
    elif source.format is Format.PARQUET:
        import pyarrow.parquet as pq

        yield from pq.ParquetFile(_seekable(source)).iter_batches()
    elif source.format is Format.ARROW:
        seekable = _seekable(source)
        try:
            file = pa.ipc.open_file(seekable)
        except pa.ArrowInvalid:
            seekable.seek(0)
            yield from pa.ipc.open_stream(seekable)
        else:
            yield from (file.get_batch(number) for number in range(file.num_record_batches))
    else:
        raise AssertionError(f"{source.format} has no batches")


def _csv_batches(source: Source, parse: "csv.ParseOptions") -> Iterator["pa.RecordBatch"]:
    """The rows of a CSV file, all columns as text: what a cell is depends on who reads it."""
    import pyarrow as pa
    from pyarrow import csv

    names = _header(source)
    # With threads, the reader would not know the numbers of bad rows.
    read = csv.ReadOptions(use_threads=False, column_names=names)
    convert = csv.ConvertOptions(
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        null_values=[""],
        column_types=dict.fromkeys(names, pa.string()),
        check_utf8=False,  # an error while the reader is opened waits until no thread reads ahead
    )
    if source.bytes.peek(1):  # type: ignore[attr-defined]  # else there is a header and nothing else
        try:
            for batch in read_ahead(_opened_csv(source, read, parse, convert)):
                _check_text(batch, source)
                yield batch
        except pa.ArrowInvalid as error:
            # The reader has not seen the header, and does not count it.
            counted = re.sub(r"Row #(\d+)", lambda row: f"Row #{int(row[1]) + 1}", str(error))
            raise pa.ArrowInvalid(counted) from error


def _check_text(batch: "pa.RecordBatch", source: Source) -> None:
    """Raise if a text is not UTF-8, and end the pipe first: closing the reader waits for who reads ahead."""
    import pyarrow as pa

    try:
        batch.validate(full=True)
    except pa.ArrowInvalid:
        source.stop()
        raise


def _opened_csv(
    source: Source, read: "csv.ReadOptions", parse: "csv.ParseOptions", convert: "csv.ConvertOptions"
) -> Iterator["pa.RecordBatch"]:
    """Open inside the iteration: opening reads the first block, and may fail there."""
    from pyarrow import csv

    file = source.bytes if source.size is not None else AsItComes(source.bytes)
    yield from csv.open_csv(file, read_options=read, parse_options=parse, convert_options=convert)


def _header(source: Source) -> list[str]:
    """The names of the columns of a CSV file, from its first lines that are not blank.

    >>> _header(Source("x", Format.CSV, io.BytesIO(b'id,"a\\nb"\\n1,2\\n'), 1))
    ['id', 'a\\nb']
    """
    lines: list[str] = []
    while line := source.bytes.readline():
        lines.append(line.decode("utf-8", "replace"))
        text = "".join(lines)
        if text.strip() and text.count('"') % 2 == 0:
            break
    try:
        return next((row for row in reader(lines, delimiter=source.delimiter) if row), [])
    except CsvError:
        raise UserError(
            f"{source.name}:1: the header cannot be read",
            hint="do its lines end with a carriage return alone?",
        ) from None


def _handler_of_bad_rows(source: Source) -> Callable[["csv.InvalidRow"], str]:
    def handle(row: "csv.InvalidRow") -> str:
        if not source.skip_bad:
            source.stop()
            return "error"
        source.skipped.append(row.number - 1)
        return "skip"

    return handle


def load_json(text: Any) -> Any:
    """JSON in which every name of a record stands once: the second of two values would replace the first.

    >>> load_json('{"id": 1, "expression": "a = 1", "expression": "b = 2"}')
    Traceback (most recent call last):
    ...
    ValueError: the name 'expression' occurs twice in a record
    """
    return json.loads(text, object_pairs_hook=_once)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {twice!r} occurs twice in a record")
    return record


def read_json_records(
    source: Source, load: Callable[[Any], Any] = load_json
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, record) of JSON lines, or of one JSON array of records; `load` reads one.

    >>> source = Source("x", Format.JSONL, io.BytesIO(b'{"id": 1}\\n\\n{"id": 2}\\n'), 1)
    >>> list(read_json_records(source))
    [(1, {'id': 1}), (3, {'id': 2})]
    """
    from tamis.cli.io.json_texts import read_json_texts

    for block in read_json_texts(source):
        for number, text in block:
            try:
                record = load(text)
            except ValueError as error:
                raise UserError(f"{source.name}:{number}: not valid JSON: {error}") from None
            except RecursionError:
                raise UserError(f"{source.name}:{number}: nested too deep to be read") from None
            if not isinstance(record, dict):
                raise UserError(f"{source.name}:{number}: expected a JSON object, such as {{...}}")
            yield number, record


def _seekable(source: Source) -> Any:
    if source.size is not None and source.bytes is source.stored:
        return source.bytes
    return io.BytesIO(source.bytes.read())


def _sniff(start: bytes) -> Format:
    if start.startswith(b"PAR1"):
        return Format.PARQUET
    if start.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return Format.ARROW
    if start.lstrip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n").startswith((b"{", b"[")):
        return Format.JSONL
    return Format.CSV


def similar_file(path: str) -> str | None:
    """A hint that names a file of the same folder, if there is one of almost that name.

    >>> similar_file("/no/such/file")
    """
    folder = Path(path).parent
    if not folder.is_dir():
        return None
    names = [entry.name for entry in folder.iterdir() if entry.is_file()]
    return suggestion(Path(path).name, names, similarity=0.75)  # the ending alone makes names similar
