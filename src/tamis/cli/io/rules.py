"""Reads rules, the subscriptions as users keep them: a table with the columns `id` and `expression`.

Optional columns: `priority`, `weights` (a JSON object of attribute to number), `tags` (a list, or text
separated by `;`), `owner`, `payload`, `expires` and `starts` (timestamps). A text file has one expression per
line, and its line numbers are the ids. Every row remembers its line, so that errors can point at it.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis._suggest import MISSPELT, suggestion
from tamis.cli.failure import UserError, warn
from tamis.cli.io.csv_rows import read_csv_rows
from tamis.cli.io.encodings import SAY_ENCODING
from tamis.cli.io.inputs import (
    STDIN,
    Format,
    Source,
    open_source,
    read_batches,
    read_json_records,
    read_lines,
    similar_file,
)
from tamis.cli.io.progress import Progress
from tamis.cli.io.rule_columns import OPTIONAL
from tamis.cli.wording import counted

if TYPE_CHECKING:
    from tamis import Index

SNAPSHOT_MAGIC = b"TAMIS\0"
CHUNK = 20_000
COLUMNS = ("id", "expression", *OPTIONAL)

_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")

Chunk = tuple[list[int], dict[str, list[Any]]]
"""The places of some rows, and their values by column."""


class BadValue(NamedTuple):
    """A value of a rule that cannot be read: in which column, and what is wrong with it."""

    column: str
    message: str


@dataclass
class Rules:
    """Rows of a rules file, by column, and the line (or row, where there are no lines) of each."""

    name: str
    unit: str
    places: list[int] = field(default_factory=list)
    ids: list[Any] = field(default_factory=list)
    expressions: list[str] = field(default_factory=list)
    optional: dict[str, list[Any]] = field(default_factory=dict)
    bad: dict[int, list["BadValue"]] = field(default_factory=dict)
    """Values that cannot be read, by row."""
    has_header: bool = False
    """Whether the columns are named on the first line."""
    numbered: bool = False
    """Whether a table has no column `id`, so that its lines or rows are the ids."""

    unread: list[str] = field(default_factory=list)
    """The columns that no rule has."""

    def notes(self) -> list[str]:
        """What the reader of ids, and of columns that are not read, should know.

        >>> Rules("rules.csv", "line", numbered=True, unread=["prority"]).notes()[1]
        'rules.csv: the column `prority` is not read: did you mean `priority`?'
        """
        notes = []
        if self.numbered:
            notes.append(f"{self.name} has no column `id`: rules are named by their {self.unit}")
        for name in self.unread:
            meant = suggestion(name, COLUMNS, similarity=MISSPELT)
            if meant is not None:
                notes.append(f"{self.name}: the column `{name}` is not read: {meant}")
        return notes

    def __len__(self) -> int:
        """The number of rules."""
        return len(self.ids)

    def where(self, row: int) -> str:
        """How messages name a row.

        >>> Rules("rules.csv", "line", places=[2, 3]).where(1)
        'rules.csv:3'
        """
        place = self.places[row]
        return f"{self.name}:{place}" if self.unit == "line" else f"{self.name}: row {place}"

    def repeated_id(self, first: int, row: int) -> str:
        """What is wrong with a row that has the id of an earlier one.

        >>> Rules("rules.csv", "line", places=[2, 3], ids=["a", "a"]).repeated_id(0, 1)
        'the id a is that of rules.csv:2'
        """
        return f"the id {self.ids[row]} is that of {self.where(first)}"


def is_snapshot(path: str, asked: Format | None = None) -> bool:
    """Is the file meant as a saved index? By its name, unless a format was asked for, or by its first bytes.

    >>> is_snapshot("/no/such/file"), is_snapshot("/no/such/file.tamis")
    (False, True)
    """
    if path == STDIN:
        return False
    if asked is None and path.endswith(".tamis"):
        return True  # if it is none, opening it says what is wrong
    try:
        with Path(path).open("rb") as file:
            return file.read(len(SNAPSHOT_MAGIC)) == SNAPSHOT_MAGIC
    except OSError:
        return False


def read_rules(
    path: str, asked: Format | None = None, *, encoding: str | None = None, separator: str | None = None
) -> Rules:
    """Read all rules of a file, or of standard input for `-`."""
    if is_snapshot(path, asked):
        raise UserError(
            f"{path}: this command reads rules as text, not a saved index",
            hint=f"`tamis index verify {path}` checks a saved index",
        )
    source = open_source(path, asked, what="rules", encoding=encoding, separator=separator)
    unit = "line" if source.format not in (Format.PARQUET, Format.ARROW) else "row"
    rules = Rules(source.name, unit, has_header=source.has_cells)
    with Progress("reading rules", unit="rules") as progress:
        for places, columns in _chunks(source):
            _extend(rules, places, columns)
            rules.numbered |= "id" not in columns and source.format is not Format.TEXT
            progress.advance(len(places), source.fraction())
    if source.has_cells:
        rules.ids = _typed_ids(rules.ids)
    return rules


def load_index(
    path: str,
    asked: Format | None = None,
    algorithm: str = "auto",
    skip: bool = False,
    *,
    quiet: bool = False,
    schema: Mapping[str, str] | None = None,
    encoding: str | None = None,
    separator: str | None = None,
) -> "Index":
    """Open a snapshot, or index the rules of a file; `skip` leaves out bad rules instead of stopping."""
    import tamis

    if is_snapshot(path, asked):
        try:
            index = tamis.Index.open(path)
        except tamis.TamisError as error:
            hint = "`tamis index build` makes one" if "not a Tamis snapshot" in str(error) else None
            raise UserError(str(error), hint=hint) from None
        except OSError as error:
            raise UserError(str(error), hint=similar_file(path)) from None
        if schema and index.schema != tamis.Index(schema).schema:
            raise UserError(
                f"--schema: {path} is a saved index, whose schema is in it: {index.schema or 'none'}",
                hint="tamis index build RULES OUTPUT --schema TYPES saves one with a schema",
            )
        return index
    rules = read_rules(path, asked, encoding=encoding, separator=separator)
    if not quiet:
        for note in rules.notes():
            warn(note)
    return build_index(rules, algorithm, skip, schema)


def build_index(
    rules: Rules, algorithm: str = "auto", skip: bool = False, schema: Mapping[str, str] | None = None
) -> "Index":
    """Index rules; the first bad one stops, unless `skip` counts and leaves out all of them."""
    import tamis

    try:
        index = tamis.Index(schema or None, algorithm)
    except (tamis.TamisError, ValueError) as error:
        hint = suggestion(algorithm, list(tamis.ALGORITHMS)) or f"one of {', '.join(tamis.ALGORITHMS)}"
        raise UserError(str(error), hint=hint) from None
    skipped = 0
    with Progress("indexing", total=len(rules), unit="rules") as progress:
        for first in range(0, len(rules), CHUNK):
            chunk = range(first, min(first + CHUNK, len(rules)))
            rows = [row for row in chunk if row not in rules.bad] if rules.bad else chunk
            columns = {name: [column[row] for row in rows] for name, column in rules.optional.items()}
            ids, expressions = ([column[row] for row in rows] for column in (rules.ids, rules.expressions))
            try:
                errors = index.add_many(ids, expressions, on_error="collect", **columns)
            except (tamis.TamisError, TypeError, OverflowError) as failure:
                raise UserError(f"{rules.name}: {_first_line(failure)}") from None
            refused = {rows[bad.row]: bad.error for bad in errors}
            left_out = sorted({*refused, *(row for row in chunk if row in rules.bad)})
            if left_out and not skip:
                raise bad_rule(rules, left_out[0], refused.get(left_out[0]))
            skipped += len(left_out)
            progress.advance(len(chunk))
    if skipped:
        warn(f"{skipped:,} of {counted(len(rules), 'rule')} left out; `tamis check {rules.name}` lists them")
    return index


def bad_rule(rules: Rules, row: int, error: Exception | None) -> UserError:
    """The one-line error for a rule that cannot be read, or that the index refused."""
    import tamis

    if error is None:
        bad = rules.bad[row][0]
        error = ValueError(f"{bad.column}: {bad.message}")
    elif isinstance(error, tamis.DuplicateIdError):
        error = ValueError(rules.repeated_id(rules.ids.index(rules.ids[row]), row))
    column = getattr(error, "column", None)
    place = rules.where(row) + (f":{column}" if column and rules.unit == "line" else "")
    return UserError(
        f"{place}: {_first_line(error)}",
        hint=getattr(error, "hint", None)
        or f"`tamis check {rules.name}` lists every error, --skip-bad goes on",
    )


def _chunks(source: Source) -> Iterator[Chunk]:
    if source.format is Format.JSONL:
        records = read_json_records(source)
        while block := list(islice(records, CHUNK)):
            names = dict.fromkeys(name for _, record in block for name in record)
            columns = {name: [record.get(name) for _, record in block] for name in names}
            yield [line for line, _ in block], columns
    elif source.format in (Format.CSV, Format.TSV):
        yield from _csv_chunks(source)
    elif source.format is Format.TEXT:
        yield from _text_chunks(source)
    else:
        first = 1
        for batch in read_batches(source):
            columns = {
                name: batch[name].to_pylist() if name in COLUMNS else [] for name in batch.schema.names
            }
            yield list(range(first, first + batch.num_rows)), columns
            first += batch.num_rows


def _csv_chunks(source: Source) -> Iterator[Chunk]:
    numbered = read_csv_rows(source, ["expression"])
    while block := list(islice(numbered, CHUNK)):
        names = list(block[0][1])
        yield [line for line, _ in block], {name: [row[name] for _, row in block] for name in names}


def _text_chunks(source: Source) -> Iterator[Chunk]:
    number = 0
    for lines in read_lines(source):
        places, expressions = [], []
        for line in lines:
            number += 1
            text = _decoded(source, number, line).strip()
            if text and not text.startswith("--"):
                places.append(number)
                expressions.append(text)
        yield places, {"expression": expressions}


def _decoded(source: Source, number: int, line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        place = f"{source.name}:{number}:{error.start + 1}"
        raise UserError(f"{place}: not UTF-8 text: {error.reason}", hint=SAY_ENCODING) from None


def _extend(rules: Rules, places: list[int], columns: dict[str, list[Any]]) -> None:
    start = len(rules)
    rules.places += places
    rules.unread += [name for name in columns if name not in COLUMNS and name not in rules.unread]
    if "expression" not in columns:
        hint = suggestion("expression", columns) or f"the columns are {', '.join(list(columns)[:10])}"
        place = f"{rules.name}:1" if rules.has_header else rules.where(start)
        raise UserError(f"{place}: no column `expression`", hint=hint)
    rules.expressions += _converted(rules, start, "expression", columns["expression"], _text)
    rules.ids += columns.get("id", places)
    for name, (keyword, convert) in OPTIONAL.items():
        if name in columns or keyword in rules.optional:
            values = columns.get(name, [None] * len(places))
            known = rules.optional.setdefault(keyword, [None] * start)
            known += _converted(rules, start, name, values, _unless_none(convert))


def _converted(
    rules: Rules, start: int, name: str, values: list[Any], convert: Callable[[Any], Any]
) -> list[Any]:
    """The values of a column as they are needed; rows whose value is bad are noted, and have none."""
    converted: list[Any] = []
    for row, value in enumerate(values, start):
        try:
            converted.append(convert(value))
        except ValueError as error:
            rules.bad.setdefault(row, []).append(BadValue(name, str(error)))
            converted.append(None)
    return converted


def _unless_none(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else convert(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("there is none" if value is None else f"expected text, not {value!r}")
    return value


def _typed_ids(ids: list[Any]) -> list[Any]:
    """Integers if every id is written as one (and as it would be printed), else the texts.

    >>> _typed_ids(["7", "12"]), _typed_ids(["7", "012"])
    ([7, 12], ['7', '012'])
    """
    if all(isinstance(id_, str) and _INTEGER.fullmatch(id_) for id_ in ids):
        return [int(text) for text in ids]
    return ids


def _first_line(error: Exception) -> str:
    return (
        str(getattr(error, "reason", None) or error).splitlines()[0] if str(error) else type(error).__name__
    )
