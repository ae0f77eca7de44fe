"""`tamis flow`: rules with memory over files and pipes."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from tamis.cli import options as o

if TYPE_CHECKING:
    from tamis.cli.io.events import Portion
    from tamis.flow import Flow, Output

FlowRules = Annotated[
    str, typer.Argument(metavar="RULES", help="Streams and queries, as YAML or JSON (docs/flows.md).")
]
FlowEvents = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[STREAM=]EVENTS...", help="Events of a stream, in any format; default: standard input."
    ),
]


class _RunByDefault(TyperGroup):
    """`tamis flow rules.yaml` is `tamis flow run rules.yaml`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the default command if none is named."""
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_RunByDefault,
    no_args_is_help=True,
    help="Run rules with memory: windows, sequences, joins. `tamis flow RULES EVENTS` is `tamis flow run`.",
)


@app.command("run")
def run(
    rules: FlowRules,
    events: FlowEvents = None,
    *,
    follow: Annotated[
        bool, typer.Option("--follow", help="Wait for more lines at the end of the file, like tail -f.")
    ] = False,
    state: Annotated[
        Path | None,
        typer.Option("--state", help="Continue from this file if it exists, and save the state there."),
    ] = None,
    format: o.EventsFormat = None,
    encoding: o.Encoding = None,
) -> int:
    """Run rules with memory over events, and write the results as JSON lines as they occur.

    `tail -f logins.jsonl | tamis flow rules.yaml`

    At the end of the input all waiting events are evaluated, unless there is a `--state` to go on from.
    Exits with 0 if a rule told anything, 1 if none did.
    """
    from tamis.cli.failure import FOUND, NOT_FOUND

    flow = _open(rules, state)
    found = False
    for outputs in _outputs(flow, _sources(flow, events, format, encoding, follow=follow)):
        found = _print(outputs) or found
        if state is not None:
            flow.checkpoint(state)
    if state is None:
        found = _print(flow.advance(to=_END)) or found
    _tell_late(flow)
    return FOUND if found else NOT_FOUND


@app.command("backtest")
def backtest(
    rules: FlowRules,
    events: FlowEvents = None,
    *,
    as_json: o.AsJson = False,
    format: o.EventsFormat = None,
    encoding: o.Encoding = None,
) -> int:
    """Run rules over history and show how often each would have fired, and when.

    `tamis flow backtest rules.yaml year.parquet`
    """
    import json

    from tamis.cli.failure import FOUND, NOT_FOUND
    from tamis.flow.backtest import Backtest

    flow = _open(rules, None)
    history = Backtest(list(flow))
    for outputs in _outputs(flow, _sources(flow, events, format, encoding, follow=False)):
        history.add(outputs)
    history.add(flow.advance(to=_END))
    if as_json:
        for summary in history.summaries():
            typer.echo(json.dumps(summary))
    else:
        typer.echo(history.table())
    _tell_late(flow)
    return FOUND if history.total else NOT_FOUND


_END = 253_402_300_799
"""The last second of the year 9999, the latest moment there is: no event comes after it."""


def _open(rules: str, state: Path | None) -> "Flow":
    """The flow of a file of rules, or the saved one."""
    import tamis
    from tamis.cli.failure import UserError
    from tamis.flow import Flow
    from tamis.flow.rules import read_flow

    try:
        return Flow.open(state) if state is not None and state.exists() else read_flow(rules)
    except tamis.TamisError as error:
        raise UserError(str(error)) from None


def _tell_late(flow: "Flow") -> None:
    from tamis.cli.failure import warn

    for name, stream in flow.stats()["streams"].items():
        if stream["late"]:
            events = "1 event was" if stream["late"] == 1 else f"{stream['late']:,} events were"
            warn(f"{events} too late for stream {name}; a longer lateness waits for them")


def _print(outputs: "list[Output]") -> bool:
    for out in outputs:
        sys.stdout.write(out.to_json() + "\n")
    if outputs:
        sys.stdout.flush()
    return bool(outputs)


def _sources(
    flow: "Flow", events: list[str] | None, format: Any, encoding: str | None, *, follow: bool
) -> "list[tuple[str, str, Iterator[Portion]]]":
    """The stream, the name and the portions of each source."""
    from tamis.cli.failure import UserError

    streams = list(flow.stats()["streams"])
    sources = []
    for given in events or ["-"]:
        stream, equals, path = given.partition("=")
        if not equals or stream not in streams:
            if len(streams) > 1:
                raise UserError(
                    f"to which stream do the events of {given} belong?",
                    hint=f"write {streams[0]}={given}; there is {', '.join(streams)}",
                )
            stream, path = streams[0], given
        sources.append((stream, path, _portions(path, format, encoding, follow=follow)))
    return sources


def _portions(path: str, format: Any, encoding: str | None, *, follow: bool) -> "Iterator[Portion]":
    from tamis.cli.io.events import open_events, stream_events
    from tamis.cli.io.progress import Progress

    if follow and path != "-":
        yield from _followed(path)
        return
    source = open_events(path, format, encoding=encoding)
    with Progress("evaluating", unit="events") as progress:
        for portion in stream_events(source):
            yield portion
            progress.advance(len(portion), source.fraction())


def _followed(path: str, pause: float = 0.2) -> "Iterator[Portion]":
    """The lines of a file that grows, as soon as they are whole."""
    from tamis.cli.io.events import Lines

    number, place, rest = 0, 0, b""
    with Path(path).open("rb") as file:
        while True:
            read = file.read(1 << 20)
            if not read:
                time.sleep(pause)
                continue
            *lines, rest = (rest + read).split(b"\n")
            portion = Lines([], [], [])
            for line in lines:
                place += 1
                if line.strip():
                    portion.append(number, line, place)
                    number += 1
            if len(portion):
                yield portion


def _outputs(flow: "Flow", sources: "list[tuple[str, str, Iterator[Portion]]]") -> "Iterator[list[Output]]":
    """The results of each portion; sources take turns."""
    import tamis
    from tamis.cli.failure import UserError
    from tamis.cli.io.events import Lines

    while sources:
        for source in list(sources):
            stream, name, portions = source
            portion = next(portions, None)
            if portion is None:
                sources.remove(source)
                continue
            try:
                yield flow.push_batch(stream, portion.events)
            except tamis.TamisError as error:
                yield getattr(error, "told", [])
                place = str(error).splitlines()[0]
                if isinstance(portion, Lines) and place.startswith("row "):
                    row, _, what = place[4:].partition(": ")
                    place = f"line {portion.places[int(row)]}: {what}"
                raise UserError(f"{name}: {place}") from None
