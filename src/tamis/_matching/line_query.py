"""A query about the lines of a source, answered chunk by chunk or for all lines together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from tamis import _kernel
from tamis._kernel import Query
from tamis._matching import batch_details, line_pieces
from tamis._matching.answers import table_of
from tamis._matching.line_pieces import Source
from tamis.errors import ArgumentError, EventError

if TYPE_CHECKING:
    from tamis._matching.many_events import ManyEvents


class RefusedLine(NamedTuple):
    """A line that could not be read: its number in the file, from 1, its row as an event, and what is wrong.

    >>> from tamis import Index
    >>> index = Index()
    >>> table, refused = index.match_ndjson(b"{}\\n\\n{", on_error="collect")
    >>> refused[0].line, refused[0].row
    (3, 1)
    """

    line: int
    row: int
    error: Exception


@dataclass
class LineQuery:
    """A query about the lines of a source, and the optional parts of its answer."""

    index: "ManyEvents"
    query: Query
    options: dict[str, Any]
    key: str | None
    payloads: bool
    on_error: str
    chunk_bytes: int

    def __post_init__(self) -> None:
        """Refuse arguments that cannot be combined."""
        if self.on_error not in ("raise", "collect"):
            raise ArgumentError(f'on_error is "raise" or "collect", not {self.on_error!r}')
        if self.query.ask in ("count", "exists") and (self.key is not None or self.payloads):
            raise ArgumentError(f"key and payloads are for matches; {self.query.ask!r} names neither")
        if self.query.ask == "owners" and self.payloads:
            raise ArgumentError("payloads are those of subscriptions; the query asks for owners")
        self.index._warn_of_unknown_names(self.query)

    def together(self, source: Source) -> Any:
        """The answer for all lines."""
        answers, refused = [], []
        for answer in self.pieces(source):
            if self.on_error == "collect":
                answers.append(answer[0])
                refused.extend(answer[1])
            else:
                answers.append(answer)
        whole = self._joined(answers or [self._finished(self._answer(b"", 0, 0)[0], b"")])
        return (whole, refused) if self.on_error == "collect" else whole

    def pieces(self, source: Source) -> Iterator[Any]:
        """The answer for each chunk."""
        row = line = 0
        before = b""
        for piece in line_pieces.pieces(source, self.chunk_bytes):
            # Counted only where another piece follows: it takes a tenth of the time of matching.
            line += before.count(b"\n")
            before = piece
            refused: list[RefusedLine] = []
            if self.on_error == "collect":
                parts, rows = self._readable(piece, row, line, refused)
                answer = self._joined(parts or [self._answer(b"", 0, 0)[0]])
            else:
                answer, rows = self._answer(piece, row, line)
            answer = self._finished(answer, piece, row)
            yield (answer, refused) if self.on_error == "collect" else answer
            row += rows

    def _answer(self, text: bytes, row: int, line: int) -> tuple[Any, int]:
        """The answer for lines that start at this row and line, and how many events they are."""
        options = self.options | {"lines_before": line}
        stream, rows = _kernel.ask_batch(self.index._kernel, text, self.query, row, options)
        table = table_of(stream)
        return (table.column(0) if self.query.ask in ("count", "exists") else table), rows

    def _readable(
        self, text: bytes, row: int, line: int, refused: list[RefusedLine]
    ) -> tuple[list[Any], int]:
        """The answers for the readable lines. Unreadable parts are halved until one line is left."""
        try:
            answer, rows = self._answer(text, row, line)
        except EventError as error:
            lines = _lines(text)
            if sum(map(_is_event, lines)) == 1:
                place = next(at for at, one in enumerate(lines) if _is_event(one))
                refused.append(RefusedLine(line + place + 1, row, error))
                return [], 1
            middle = len(lines) // 2
            first, first_rows = self._readable(b"".join(lines[:middle]), row, line, refused)
            second, second_rows = self._readable(
                b"".join(lines[middle:]), row + first_rows, line + middle, refused
            )
            return [*first, *second], first_rows + second_rows
        return [answer], rows

    def _joined(self, answers: Sequence[Any]) -> Any:
        if len(answers) == 1:
            return answers[0].combine_chunks() if isinstance(answers[0], pa.ChunkedArray) else answers[0]
        if self.query.ask in ("count", "exists"):
            chunks = [
                chunk
                for answer in answers
                for chunk in (answer.chunks if isinstance(answer, pa.ChunkedArray) else [answer])
            ]
            return pa.chunked_array(chunks, answers[0].type).combine_chunks()
        try:
            return pa.concat_tables(answers, promote_options="permissive").unify_dictionaries()
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise ArgumentError(
                f"the values of {self.key!r} that name events differ in type: {error}"
            ) from None

    def _finished(self, answer: Any, piece: bytes, first: int = 0) -> Any:
        """With the names of events and the payloads of subscriptions."""
        if self.query.ask in ("count", "exists"):
            return answer.combine_chunks() if isinstance(answer, pa.ChunkedArray) else answer
        if self.payloads:
            answer = batch_details.with_payloads(answer, self.index)  # type: ignore[arg-type]
        if self.key is not None:
            rows = answer["event"].to_pylist()
            matched = set(rows)
            events = filter(_is_event, _lines(piece))
            names = {
                row: batch_details.attribute(one, self.key)
                for row, one in enumerate(events, first)
                if row in matched
            }
            position = answer.column_names.index("event")
            answer = answer.set_column(position, "event", pa.array([names[row] for row in rows]))
        return answer


def _lines(text: bytes) -> list[bytes]:
    """The lines with their line ends. A carriage return alone does not end a line."""
    lines = text.split(b"\n")
    ended = [line + b"\n" for line in lines[:-1]]
    return [*ended, lines[-1]] if lines[-1] else ended


def _is_event(line: bytes) -> bool:
    """Whether the kernel counts the line: it treats slightly fewer characters as blank than Python."""
    return bool(line.strip(b" \t\r\n\f"))
