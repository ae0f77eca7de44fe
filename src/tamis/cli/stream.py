"""Runs events from a source through a query into a sink, with progress and an exit code."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tamis.cli.failure import FOUND, NOT_FOUND, UserError, warn
from tamis.cli.io.events import Lines, Portion, check_json, open_events, stream_events
from tamis.cli.io.inputs import Format
from tamis.cli.io.outputs import Sink, open_sink
from tamis.cli.io.progress import Progress
from tamis.cli.io.xml_files import read_xml_files
from tamis.cli.matching import COLUMN_OF, QueryRun


@dataclass(frozen=True)
class Input:
    """Where events come from, and how they are written there."""

    path: str
    format: Format | None = None
    inline: list[str] | None = None
    encoding: str | None = None
    separator: str | None = None
    documents: Sequence[str] | None = None
    """XML files, each of which is an event, in place of `path`."""


def stream(asked: QueryRun, events: Input, *, output: Path | None, to: Format | None) -> int:
    """Ask the query about every event and print the answers, but for "exists"; returns the exit code."""
    import tamis

    is_quiet = asked.query.ask == "exists"
    name, portions = _portions(events, asked)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("ignore", tamis.ValueWarning)  # `wrong_types` says it of all events at once
            warnings.simplefilter("always", tamis.UnreadableValueWarning)
            if is_quiet:
                found = any(asked.any_match(name, portion) for portion in portions)
            else:
                found = _write_whole(asked, name, portions, open_sink(output, to))
        for unreadable in caught:
            warn(str(unreadable.message).replace("\nhint: ", "; "))
    except tamis.TamisError as error:
        raise UserError(str(error).splitlines()[0]) from None
    if asked.skipped:
        one = asked.skipped == 1
        what = "1 event was" if one else f"{asked.skipped:,} events were"
        warn(f"{what} skipped: {'it' if one else 'they'} could not be read")
    if len(asked.index) == 0:
        warn("there are no rules, so nothing can match")
    if not is_quiet:
        for warning in (*asked.unknown_tags(), asked.wrong_types.summary()):
            if warning:
                warn(warning)
    return FOUND if found else NOT_FOUND


def _portions(events: Input, asked: QueryRun) -> tuple[str, Iterator[Portion]]:
    if events.inline:
        texts = [check_json(text) for text in events.inline]
        return "--event", iter([Lines(list(range(len(texts))), texts, list(range(1, len(texts) + 1)))])
    if events.documents is not None:
        return "--xml", read_xml_files(events.documents)
    source = open_events(
        events.path,
        events.format,
        skip_bad=asked.skip_bad,
        encoding=events.encoding,
        separator=events.separator,
    )

    def reported() -> Iterator[Portion]:
        with Progress("matching", unit="events") as progress:
            for portion in stream_events(source):
                yield portion
                progress.advance(len(portion), source.fraction())
        asked.skipped += len(source.skipped)

    return source.name, reported()


def _write_whole(asked: QueryRun, name: str, portions: Iterator[Portion], sink: Sink) -> bool:
    """Write all answers, or leave no file."""
    try:
        return _write(asked, name, portions, sink)
    except BaseException:
        sink.abandon()
        raise


def _write(asked: QueryRun, name: str, portions: Iterator[Portion], sink: Sink) -> bool:
    import pyarrow as pa

    written, found = False, False
    columns = {"event": pa.int64(), "subscription": pa.string()}
    counts = asked.query.ask == "count"
    if counts:
        columns = {"event": pa.int64(), "matches": pa.int64()}
    elif asked.query.ask == "best":
        columns |= {"score": pa.float64(), "rank": pa.int64()}
    columns |= {COLUMN_OF[name]: pa.string() for name in asked.extra}
    for portion in portions:
        answers = asked.counts(name, portion) if counts else asked.matches(name, portion)
        if answers.num_rows:
            sink.write(answers)
            written = True
            found = found or not counts or any(answers["matches"].to_pylist())
    if not written:  # A file still needs its columns.
        sink.write(pa.schema(list(columns.items())).empty_table())
    sink.close()
    return found
