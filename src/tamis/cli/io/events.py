"""Streams events from files and pipes, in portions that the index matches at once.

JSON lines go to the index unparsed, as soon as a line arrives; the kernel parses them. Tables (CSV, Parquet,
Arrow) stay Arrow tables. In both cases the number of an event is its row, counted from 0.
"""

import json
import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tamis._kernel import Event
from tamis.cli.failure import UserError
from tamis.cli.io.inputs import Format, Source, open_source, read_batches
from tamis.cli.io.json_texts import read_json_texts

if TYPE_CHECKING:
    import pyarrow as pa


AT_ONCE = 1_024
"""Rows of a table in one portion; bounds the matches that are in memory."""


@dataclass
class Lines:
    """Events as JSON texts, with the number and the line of each."""

    numbers: list[int]
    events: list[bytes]
    places: list[int]

    def __len__(self) -> int:
        """The number of events."""
        return len(self.events)

    def append(self, number: int, text: bytes, place: int) -> None:
        """Take one more event."""
        self.numbers.append(number)
        self.events.append(text)
        self.places.append(place)


@dataclass
class Rows:
    """Events as an Arrow table, `first` being the number of its first row."""

    first: int
    events: "pa.Table"
    cells: bool = False
    """Whether columns of text are cells of a CSV file, which each predicate reads as what it is about."""

    def __len__(self) -> int:
        """The number of events."""
        return int(self.events.num_rows)


Portion = Lines | Rows


def open_events(
    path: str,
    asked: Format | None = None,
    *,
    skip_bad: bool = False,
    encoding: str | None = None,
    separator: str | None = None,
) -> Source:
    """Open a source of events; refuses formats that hold none."""
    source = open_source(path, asked, what="events", encoding=encoding, separator=separator)
    source.skip_bad = skip_bad
    if source.format is Format.TEXT:
        raise UserError(
            f"{source.name}: a text file holds no events", hint="--format jsonl, csv, parquet or arrow"
        )
    return source


def stream_events(source: Source) -> Iterator[Portion]:
    """Yield events in portions: the lines that are there, or some rows of a table."""
    count = 0
    if source.format is Format.JSONL:
        for block in read_json_texts(source):
            portion = Lines([], [], [])
            for line, text in block:
                portion.append(count, text, line)
                count += 1
            yield portion
    else:
        import pyarrow as pa

        for batch in read_batches(source):
            first = 0
            while first < batch.num_rows:
                count, until = _next_run(count, source.skipped)
                table = pa.Table.from_batches([batch.slice(first, until - count)])
                yield Rows(count, table, cells=source.has_cells)
                first += table.num_rows
                count += table.num_rows


def _next_run(row: int, skipped: list[int]) -> tuple[int, int]:
    """From which row, `row` or later, to before which one rows can be taken at once.

    >>> _next_run(7, [3, 7, 8, 20]), _next_run(9, [3, 7, 8])
    ((9, 20), (9, 1033))
    """
    following = bisect_left(skipped, row)
    while following < len(skipped) and skipped[following] == row:
        following += 1
        row += 1
    until = row + AT_ONCE
    return row, min(until, skipped[following]) if following < len(skipped) else until


def one_event(
    path: str,
    asked: Format | None,
    inline: str | None,
    row: int,
    *,
    encoding: str | None = None,
    separator: str | None = None,
) -> tuple[str, Any]:
    """The event given as JSON on the command line, or row number `row` of a source, and where it is from."""
    if inline is not None:
        return "--event", check_json(inline)
    source = open_events(path, asked, encoding=encoding, separator=separator)
    count = 0
    for portion in stream_events(source):
        inside = row - count
        if inside < len(portion):
            if isinstance(portion, Lines):
                return f"{source.name}:{portion.places[inside]}", portion.events[inside]
            record = portion.events.slice(inside, 1).to_pylist()[0]
            return f"{source.name}: row {row}", Event.of_cells(record) if portion.cells else record
        count += len(portion)
    hint = f"rows count from 0, so the last is --row {count - 1}" if count else None
    raise UserError(f"{source.name} has {count:,} event{'' if count == 1 else 's'}, no row {row}", hint=hint)


_PLACE = re.compile(r" \(line 1, column (\d+), byte \d+\)$")


def at_place(place: str, error: Exception) -> str:
    """What is wrong with an event, with its place in the file; the place in the event is the column there.

    >>> at_place("events.jsonl:3", ValueError("the text ends (line 1, column 10, byte 9)"))
    'events.jsonl:3:10: the text ends'
    """
    message = str(error).splitlines()[0]
    inside = _PLACE.search(message)
    return f"{place}:{inside[1]}: {message[: inside.start()]}" if inside else f"{place}: {message}"


def check_json(text: str) -> bytes:
    """The bytes of one JSON object given on the command line.

    >>> check_json('{"age": 27}')
    b'{"age": 27}'
    """
    try:
        parsed = json.loads(text)
    except ValueError as error:
        raise UserError(f"--event is not valid JSON: {error}", hint="such as '{\"age\": 27}'") from None
    except RecursionError:
        raise UserError("--event is nested too deep to be read") from None
    if not isinstance(parsed, dict):
        raise UserError("--event is not a JSON object", hint="such as '{\"age\": 27}'")
    return text.encode()
