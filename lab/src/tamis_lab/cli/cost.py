"""`tamis cost`: which algorithm should need least memory and time for some rules, and which one does."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tamis.cli import options as o
from tamis.cli.io.inputs import Format

if TYPE_CHECKING:
    from tamis_lab.costs import Operations, Parameters

EVENTS = 100
"""As many of the events are looked at."""


def cost(
    rules_file: Annotated[str, typer.Argument(metavar="RULES", help="A file of rules; - is standard input.")],
    as_json: o.AsJson = False,
    rules_format: Annotated[
        Format | None,
        typer.Option("--format", "-f", help="Format of the rules, where the name does not tell."),
    ] = None,
    events: Annotated[
        str | None,
        typer.Option("--events", metavar="EVENTS", help="Events: also predict and measure the time of each."),
    ] = None,
) -> int:
    """Compare what algorithms should need for these rules, by the model, with what they do need.

    The model of memory is that of Bittner 2008, chapter 5. Predicate indexes, which all have, are left out.
    With events, the operations that they cause are counted, what an operation takes here is measured on
    other rules, and the product is shown next to the measured time.
    """
    from tamis.cli.failure import FOUND, UserError
    from tamis.cli.io.rules import read_rules
    from tamis.cli.problems import find_problems
    from tamis_lab.costs import MODELLED, measure, measured_bytes

    rules = read_rules(rules_file, rules_format)
    bad = next(iter(find_problems(rules)), None)
    if bad is not None:
        raise UserError(bad.to_text(), hint="see `tamis check`")
    try:
        parameters = measure(rules.expressions)
    except ValueError as error:
        raise UserError(str(error)) from None
    measured = {name: measured_bytes(rules.ids, rules.expressions, name) for name in MODELLED}
    complete = [name for name in MODELLED if not measured[name][1]]
    found = min(complete, key=lambda name: measured[name][0]) if complete else None
    times = _times(rules.ids, rules.expressions, events) if events else None
    if as_json:
        _print_json(parameters, measured, found, times)
    else:
        _print_tables(parameters, measured, found)
        if times:
            _print_times(times)
    return FOUND


@dataclass(frozen=True)
class Times:
    """What an event should take, by the model, and what it takes."""

    operations: "Operations"
    predicted: dict[str, float]
    measured: dict[str, float]
    """Microseconds by algorithm; an algorithm that refuses some of the rules is in neither."""

    def fastest(self) -> tuple[str, str]:
        """The algorithm to pick by the model, and the one that was fastest."""
        return min(self.predicted, key=self.predicted.__getitem__), min(
            self.measured, key=self.measured.__getitem__
        )


def _times(ids: list[Any], expressions: list[str], path: str) -> Times:
    from tamis.cli.failure import UserError
    from tamis_lab.costs import TIMED, calibrate, count_operations, index_of, measured_microseconds
    from tamis_lab.costs.timing import refused

    some = _first_events(path)
    try:
        operations = count_operations(expressions, some)
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None
    prices = calibrate()
    predicted: dict[str, float] = {}
    measured: dict[str, float] = {}
    for name in TIMED:
        if refused(name, operations):
            continue
        index, left_out = index_of(ids, expressions, name)
        if not left_out:
            predicted[name] = prices.microseconds(name, operations)
            measured[name] = measured_microseconds(index, some)
    return Times(operations, predicted, measured)


def _first_events(path: str) -> list[dict[str, Any]]:
    """The first events of a source, as dicts without the attributes that are null."""
    import json

    from tamis.cli.failure import UserError
    from tamis.cli.io.events import Lines, open_events, stream_events

    found: list[dict[str, Any]] = []
    for portion in stream_events(open_events(path)):
        if isinstance(portion, Lines):
            for line, text in zip(portion.places, portion.events, strict=True):
                try:
                    found.append(json.loads(text))
                except ValueError as error:
                    raise UserError(f"{path}:{line}: not valid JSON: {error}") from None
        else:
            found += portion.events.slice(0, EVENTS).to_pylist()
        if len(found) >= EVENTS:
            break
    return [{name: value for name, value in event.items() if value is not None} for event in found[:EVENTS]]


def _print_times(times: Times) -> None:
    from rich.console import Console
    from rich.table import Table

    facts = Table(box=None, pad_edge=False, show_header=False, title="an event", title_justify="left")
    for name, count in vars(times.operations).items():
        if name not in ("subscriptions", "untranslated", "uncounted"):
            facts.add_row(name.replace("_", " "), f"{count:,.1f}")
    table = Table(box=None, pad_edge=False)
    for column in ("algorithm", "us by the model", "us measured"):
        table.add_column(column, justify="left" if column == "algorithm" else "right")
    for name, predicted in times.predicted.items():
        table.add_row(name, f"{predicted:,.1f}", f"{times.measured[name]:,.1f}")
    console = Console()
    console.print(facts)
    console.print(table)
    model, found = times.fastest()
    typer.echo(f"least time: {model} by the model, {found} measured")


def _print_json(
    parameters: "Parameters", measured: dict[str, tuple[int, int]], found: str | None, times: Times | None
) -> None:
    import json
    from dataclasses import asdict

    record: dict[str, Any] = {
        "parameters": asdict(parameters),
        "operator_share": parameters.operator_share,
        "commonality": parameters.commonality,
        "use_share": parameters.use_share,
        "algorithms": {
            name: {"model_bytes": parameters.bytes(name), "measured_bytes": size, "refused": refused}
            for name, (size, refused) in measured.items()
        },
        "model": parameters.smallest(),
        "measured": found,
    }
    if times:
        model, fastest = times.fastest()
        record["time"] = {
            "operations": asdict(times.operations),
            "algorithms": {
                name: {"model_microseconds": predicted, "measured_microseconds": times.measured[name]}
                for name, predicted in times.predicted.items()
            },
            "model": model,
            "measured": fastest,
        }
    typer.echo(json.dumps(record))


def _print_tables(parameters: "Parameters", measured: dict[str, tuple[int, int]], found: str | None) -> None:
    from rich.console import Console
    from rich.table import Table

    facts = Table(box=None, pad_edge=False, show_header=False)
    for what, value in (
        ("subscriptions", f"{parameters.subscriptions:,}"),
        ("predicates in each", f"{parameters.predicates:.4g}"),
        ("operators in each", f"{parameters.operators:.4g}"),
        ("operators per predicate", f"{parameters.operator_share:.4g}"),
        ("distinct predicates", f"{parameters.unique_predicates:,}"),
        ("commonality of predicates", f"{parameters.commonality:.4g}"),
        ("conjunctions in each, translated", f"{parameters.conjunctions:.4g}"),
        ("conjunctions with a predicate", f"{parameters.predicate_uses:.4g}"),
        ("share of the conjunctions", f"{parameters.use_share:.4g}"),
    ):
        facts.add_row(what, value)
    table = Table(box=None, pad_edge=False)
    for column in ("algorithm", "bytes by the model", "bytes measured", "boolean is smaller above", ""):
        table.add_column(column, justify="left" if column in ("algorithm", "") else "right")
    for name, (size, refused) in measured.items():
        turning = "" if name == "boolean" else f"{parameters.turning_point(name):.2f} conjunctions"
        note = f"{refused:,} refused: too large to translate" if refused else ""
        table.add_row(name, f"{parameters.bytes(name):,.0f}", f"{size:,}", turning, note)
    console = Console()
    console.print(facts)
    console.print(table)
    typer.echo(f"least memory: {parameters.smallest()} by the model, {found or 'none holds all'} measured")
