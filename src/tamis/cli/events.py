"""Stream events from files and pipes, in portions that the index takes at once.

JSON lines go to the index as they are, as soon as a line is there; the kernel parses them. Tables (CSV,
Parquet, Arrow) go through as Arrow tables. Either way an event's number is its row, counted from 0.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tamis.cli.failure import UserError
from tamis.cli.inputs import Format, Source, open_source, read_batches, read_lines

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

    def __len__(self) -> int:
        """The number of events."""
        return int(self.events.num_rows)


Portion = Lines | Rows


def open_events(path: str, asked: Format | None = None) -> Source:
    """Open a source of events; refuses formats that hold none."""
    source = open_source(path, asked, what="events")
    if source.format is Format.TEXT:
        raise UserError(
            f"{source.name}: a text file holds no events", hint="--format jsonl, csv, parquet or arrow"
        )
    return source


def stream_events(source: Source) -> Iterator[Portion]:
    """Yield events in portions: the lines that are there, or some rows of a table."""
    count = 0
    if source.format is Format.JSONL:
        line_number = 0
        for lines in read_lines(source):
            portion = Lines([], [], [])
            for line in lines:
                line_number += 1
                if line.strip():
                    portion.append(count, line, line_number)
                    count += 1
            yield portion
    else:
        import pyarrow as pa

        for batch in read_batches(source):
            for first in range(0, batch.num_rows, AT_ONCE):
                table = pa.Table.from_batches([batch.slice(first, AT_ONCE)])
                yield Rows(count, table)
                count += table.num_rows


def one_event(path: str, asked: Format | None, inline: str | None, row: int) -> bytes | dict[str, Any]:
    """The event given as JSON on the command line, or row number `row` of a source."""
    if inline is not None:
        return check_json(inline)
    for portion in stream_events(open_events(path, asked)):
        if row < len(portion):
            if isinstance(portion, Lines):
                return portion.events[row]
            record: dict[str, Any] = portion.events.slice(row, 1).to_pylist()[0]
            return record
        row -= len(portion)
    raise UserError(f"there are not that many events in {path}", hint="rows count from 0")


def check_json(text: str) -> bytes:
    """The bytes of one JSON object given on the command line.

    >>> check_json('{"age": 27}')
    b'{"age": 27}'
    """
    try:
        parsed = json.loads(text)
    except ValueError as error:
        raise UserError(f"--event is not valid JSON: {error}", hint="such as '{\"age\": 27}'") from None
    if not isinstance(parsed, dict):
        raise UserError("--event is not a JSON object", hint="such as '{\"age\": 27}'")
    return text.encode()
