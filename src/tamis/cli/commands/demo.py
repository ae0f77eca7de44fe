"""`tamis demo`: a demonstration in a minute or two."""

from pathlib import Path
from typing import Annotated

import typer


def demo(
    *,
    subscriptions: Annotated[int, typer.Option(min=1_000, help="How many subscriptions to index.")] = 200_000,
    events: Annotated[int | None, typer.Option(min=1, help="How many events to match.")] = None,
    out: Annotated[Path, typer.Option(help="Output folder of the Spark demonstration.")] = Path(
        "demo-output"
    ),
    seed: Annotated[int, typer.Option(help="Seed of the random generator.")] = 1,
    library: Annotated[bool, typer.Option("--library", help="Run in this process, without Spark.")] = False,
    pubsub: Annotated[
        bool, typer.Option("--pubsub", help="Two sites, publishers and subscribers; a router is killed.")
    ] = False,
) -> None:
    """Match generated events against generated subscriptions: on local Spark, or in this process."""
    if pubsub:
        from tamis.demo import pubsub as delivery

        delivery.run(events or 4_000)
        return
    if library:
        from tamis.demo import library as in_process

        in_process.run(subscriptions, events or 20_000, seed)
        return
    try:
        from tamis.demo import pipeline
    except ImportError:
        from tamis._extras import missing_extra
        from tamis.cli.failure import UserError

        hint = "`tamis demo --library` needs no Spark"
        raise UserError(missing_extra("`tamis demo`", "spark", "charts"), hint=hint) from None

    pipeline.run(subscriptions, events or 100_000, out, seed)
