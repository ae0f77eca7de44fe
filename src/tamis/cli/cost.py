"""`tamis cost`: which algorithm should need the least memory for some rules, and which one does."""

from typing import TYPE_CHECKING, Annotated

import typer

from tamis.cli import options as o
from tamis.cli.inputs import Format

if TYPE_CHECKING:
    from tamis.costs import Parameters


def cost(
    rules_file: Annotated[str, typer.Argument(metavar="RULES", help="A file of rules; - is standard input.")],
    as_json: o.AsJson = False,
    rules_format: Annotated[
        Format | None,
        typer.Option("--format", "-f", help="Format of the rules, where the name does not tell."),
    ] = None,
) -> int:
    """Compare what three algorithms should need for these rules, by the model, with what they do need.

    The model is that of Bittner 2008, chapter 5. Predicate indexes, which all have, are left out.
    """
    from tamis.cli.failure import FOUND, UserError
    from tamis.cli.problems import find_problems
    from tamis.cli.rules import read_rules
    from tamis.costs import MODELLED, measure, measured_bytes

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
    (_print_json if as_json else _print_tables)(parameters, measured, found)
    return FOUND


def _print_json(parameters: "Parameters", measured: dict[str, tuple[int, int]], found: str | None) -> None:
    import json
    from dataclasses import asdict

    record = {
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
