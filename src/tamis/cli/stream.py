"""Drive events from a source through a `Question` into a sink, with progress and an exit code."""

from collections.abc import Iterator
from enum import Enum
from pathlib import Path

from tamis.cli.events import Lines, Portion, check_json, open_events, stream_events
from tamis.cli.failure import FOUND, NOT_FOUND, UserError, warn
from tamis.cli.inputs import Format
from tamis.cli.matching import Question
from tamis.cli.outputs import Sink, open_sink
from tamis.cli.progress import Progress


class Mode(Enum):
    """What to print."""

    MATCHES = "matches"
    COUNTS = "counts"
    QUIET = "quiet"


def stream(
    question: Question,
    mode: Mode,
    *,
    path: str,
    asked: Format | None,
    inline: str | None,
    output: Path | None,
    as_json: bool,
) -> int:
    """Ask the question about every event and print the answers; returns the exit code."""
    import tamis

    name, portions = _portions(path, asked, inline, question)
    try:
        if mode is Mode.QUIET:
            found = any(question.any_match(name, portion) for portion in portions)
        else:
            found = _write(question, mode, name, portions, open_sink(output, as_json))
    except tamis.TamisError as error:
        raise UserError(str(error).splitlines()[0]) from None
    if question.skipped:
        one = question.skipped == 1
        what = "1 event was" if one else f"{question.skipped:,} events were"
        warn(f"{what} skipped: {'it' if one else 'they'} could not be read")
    if len(question.index) == 0:
        warn("there are no rules, so nothing can match")
    if mode is not Mode.QUIET:
        for warning in (*question.unknown_tags(), question.wrong_types.summary()):
            if warning:
                warn(warning)
    return FOUND if found else NOT_FOUND


def _portions(
    path: str, asked: Format | None, inline: str | None, question: Question
) -> tuple[str, Iterator[Portion]]:
    if inline is not None:
        return "--event", iter([Lines([0], [check_json(inline)], [1])])
    source = open_events(path, asked, skip_bad=question.skip_bad)

    def reported() -> Iterator[Portion]:
        with Progress("matching", unit="events") as progress:
            for portion in stream_events(source):
                yield portion
                progress.advance(len(portion), source.fraction())
        question.skipped += len(source.skipped)

    return source.name, reported()


def _write(question: Question, mode: Mode, name: str, portions: Iterator[Portion], sink: Sink) -> bool:
    import pyarrow as pa

    written, found = False, False
    columns = {"event": pa.int64(), "subscription": pa.string()}
    if mode is Mode.COUNTS:
        columns = {"event": pa.int64(), "matches": pa.int64()}
    elif question.ranking:
        columns |= {"score": pa.float64(), "rank": pa.int64()}
    for portion in portions:
        answers = question.counts(name, portion) if mode is Mode.COUNTS else question.matches(name, portion)
        if answers.num_rows:
            sink.write(answers)
            written = True
            found = found or mode is Mode.MATCHES or any(answers["matches"].to_pylist())
    if not written:  # A file still needs its columns.
        sink.write(pa.schema(list(columns.items())).empty_table())
    sink.close()
    return found
