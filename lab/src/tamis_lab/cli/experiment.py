"""`tamis experiment`: rerun the tables and figures of the papers that the algorithms come from."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Reproduce tables and figures of the papers.", no_args_is_help=True)


@app.command("list")
def list_experiments() -> None:
    """List the experiments, and what each reproduces."""
    from rich.console import Console
    from rich.table import Table

    from tamis_lab.experiments import discover

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("name", no_wrap=True)  # to be copied
    for column in ("reproduces", "of", "question"):
        table.add_column(column)
    for experiment in discover().values():
        table.add_row(experiment.name, experiment.figure, experiment.paper, experiment.question)
    Console(width=None if Console().is_terminal else 140).print(table)


@app.command("run")
def run_experiments(
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Names, or `all`.")],
    scale: Annotated[
        str, typer.Option(help="small (seconds), paper (the paper's size), or a number such as 100K.")
    ] = "small",
    seed: Annotated[int, typer.Option(help="Seed of the random generator.")] = 1,
    output: Annotated[Path, typer.Option(help="Where to write the JSON and the HTML report.")] = Path(
        "experiments-output"
    ),
) -> None:
    """Run experiments, print theirs next to ours, and add them to one HTML report."""
    from tamis._suggest import suggestion
    from tamis.cli.failure import UserError
    from tamis_lab.experiments import discover, parse_scale, run

    known = discover()
    wanted = list(known) if names == ["all"] else names
    for name in wanted:
        if name not in known:
            raise UserError(
                f"there is no experiment {name}",
                hint=suggestion(name, list(known)) or "see `tamis experiment list`",
            )
    try:
        size = parse_scale(scale)
    except ValueError as error:
        raise UserError(str(error), hint="small, paper, or a number such as 100K") from None
    for name in wanted:
        run(known[name], size, seed, output)
