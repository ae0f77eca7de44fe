"""Stream events from files and pipes.

JSON lines go to the index as they are, one by one, as soon as a line is there; the kernel parses them. Tables
(CSV, Parquet, Arrow) go through in Arrow batches. Either way an event's number is its row, counted from 0.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tamis.cli.failure import UserError
from tamis.cli.inputs import Format, Source, open_source, read_batches, read_lines

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class Lines:
    """Events as JSON texts, with the line number of each."""

    first: int
    """The number of the first event."""
    texts: list[bytes]
    places: list[int]

    def __len__(self) -> int:
        """The number of events."""
        return len(self.texts)


@dataclass
class Rows:
    """Events as an Arrow table."""

    first: int
    """The number of the first event."""
    table: "pa.Table"

    def __len__(self) -> int:
        """The number of events."""
        return int(self.table.num_rows)


def open_events(path: str, asked: Format | None = None) -> Source:
    """Open a source of events; refuses formats that hold none."""
    source = open_source(path, asked, what="events")
    if source.format is Format.TEXT:
        raise UserError(
            f"{source.name}: a text file holds no events", hint="--format jsonl, csv, parquet or arrow"
        )
    return source


def stream_events(source: Source) -> Iterator[Lines | Rows]:
    """Yield events in the portions that the source gives."""
    count = 0
    if source.format is Format.JSONL:
        line_number = 0
        for lines in read_lines(source):
            portion = Lines(count, [], [])
            for line in lines:
                line_number += 1
                if line.strip():
                    portion.texts.append(line)
                    portion.places.append(line_number)
            count += len(portion)
            yield portion
    else:
        import pyarrow as pa

        for batch in read_batches(source):
            yield Rows(count, pa.Table.from_batches([batch]))
            count += batch.num_rows


def one_event(path: str, asked: Format | None, inline: str | None, row: int) -> bytes | dict[str, Any]:
    """The event given as JSON on the command line, or row number `row` of a source."""
    if inline is not None:
        return check_json(inline)
    for portion in stream_events(open_events(path, asked)):
        if row < portion.first + len(portion):
            offset = row - portion.first
            if isinstance(portion, Lines):
                return portion.texts[offset]
            record: dict[str, Any] = portion.table.slice(offset, 1).to_pylist()[0]
            return record
    raise UserError(f"there is no event {row} in {path}", hint="rows count from 0")


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
