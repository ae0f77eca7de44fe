"""`tamis workload`: generated subscriptions and events, to try things on."""

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from tamis_lab.workloads import Workload

app = typer.Typer(help="Generate subscriptions and events.", no_args_is_help=True)


@app.command("list")
def list_workloads() -> None:
    """List the workloads, and what they are made of."""
    from rich.console import Console
    from rich.table import Table

    from tamis_lab.workloads import WORKLOADS

    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("name", "what", "parameters"):
        table.add_column(column)
    for name, kind in WORKLOADS.items():
        what = (kind.__doc__ or "").split("\n", 1)[0]
        table.add_row(name, what, " ".join(_parameters(kind)))
    Console().print(table)


@app.command("write")
def write_workload(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name of `tamis workload list`.")],
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The folder to write into; made if it is missing.")
    ],
    subscriptions: Annotated[int, typer.Option(min=0, help="How many subscriptions.")] = 100_000,
    events: Annotated[int, typer.Option(min=0, help="How many events.")] = 10_000,
    advertisements: Annotated[
        int, typer.Option(min=0, help="How many advertisements, where there are any.")
    ] = 0,
    seed: Annotated[int, typer.Option(help="Seed of the random generator.")] = 1,
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="PARAMETER=VALUE", help="Another parameter; may be given several times."
        ),
    ] = None,
) -> None:
    """Write subscriptions.parquet and events.parquet, the same ones for the same seed."""
    from tamis.cli.io.progress import Progress

    workload = _make(name, subscriptions, seed, parameter or [])
    out.mkdir(parents=True, exist_ok=True)
    with Progress("writing subscriptions", total=subscriptions, unit="rows") as progress:
        workload.write_parquet(out / "subscriptions.parquet", progress.advance)
    typer.echo(f"{subscriptions:,} subscriptions in {out / 'subscriptions.parquet'}")
    with Progress("writing events", total=events, unit="rows") as progress:
        workload.write_events_parquet(
            out / "events.parquet", events, key="event_id", progress=progress.advance
        )
    typer.echo(f"{events:,} events in {out / 'events.parquet'}")
    if advertisements:
        _write_advertisements(workload, advertisements, out / "advertisements.parquet")
        typer.echo(f"{advertisements:,} advertisements in {out / 'advertisements.parquet'}")


def _write_advertisements(workload: "Workload", count: int, path: Path) -> None:
    from tamis.cli.failure import UserError
    from tamis.cli.io.progress import Progress
    from tamis_lab.workloads import BookAuction

    if not isinstance(workload, BookAuction):
        raise UserError(
            f"the workload {workload.name} has no advertisements", hint=f"`{BookAuction.name}` has some"
        )
    with Progress("writing advertisements", total=count, unit="rows") as progress:
        workload.write_advertisements(path, count, progress.advance)


def _parameters(kind: "type[Workload]") -> list[str]:
    """The parameters that can be set as text: numbers, and names out of a list."""
    given = ("count", "seed")
    return [f"{field.name}={_shown(field.default)}" for field in fields(kind) if field.name not in given]  # type: ignore[arg-type]


def _shown(value: Any) -> str:
    return str(getattr(value, "value", value)).replace(" ", "")


def _make(name: str, count: int, seed: int, parameters: list[str]) -> "Workload":
    from tamis._suggest import suggestion
    from tamis.cli.failure import UserError
    from tamis_lab.workloads import WORKLOADS

    if name not in WORKLOADS:
        hint = suggestion(name, list(WORKLOADS)) or "see `tamis workload list`"
        raise UserError(f"there is no workload {name}", hint=hint)
    kind = WORKLOADS[name]
    defaults = {field.name: field.default for field in fields(kind)}  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    for setting in parameters:
        key, equals, text = setting.partition("=")
        if not equals or key not in defaults:
            hint = suggestion(key, list(defaults)) or f"parameters are {', '.join(defaults)}"
            raise UserError(
                f"{name} has no parameter {key}" if equals else f"{setting} has no value", hint=hint
            )
        try:
            values[key] = _read(text, defaults[key])
        except ValueError:
            raise UserError(
                f"{text} is not a value for {key}", hint=f"something like {_shown(defaults[key])}"
            ) from None
    try:
        return kind(**{"count": count, "seed": seed, **values})
    except ValueError as error:
        raise UserError(f"the parameters of {name} do not fit: {error}") from None


def _read(text: str, default: Any) -> Any:
    """A value of the kind that the default is."""
    from enum import Enum

    if isinstance(default, Enum):
        return type(default)(text)
    if isinstance(default, bool):
        if text not in ("true", "false"):
            raise ValueError(text)
        return text == "true"
    if isinstance(default, tuple):
        return tuple(type(default[0])(part) for part in text.strip("()").split(","))
    if default is None or text == "none":
        return None if text == "none" else int(text)
    if isinstance(default, int | float):
        return type(default)(text)
    raise ValueError(text)
