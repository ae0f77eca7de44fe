"""`tamis bench`: measure the kernel on this machine."""

from pathlib import Path
from typing import Annotated

import typer


def bench(
    workloads: Annotated[
        list[str] | None, typer.Option("--workload", "-w", help="Only this workload; may be repeated.")
    ] = None,
    scales: Annotated[
        str, typer.Option(help="Numbers of subscriptions, such as 10K,100K,1M.")
    ] = "10K,100K,1M",
    quick: Annotated[
        bool, typer.Option("--quick", help="10K subscriptions and few events, in seconds.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of the random generator.")] = 1,
    output: Annotated[Path, typer.Option(help="Where to write the JSON and HTML.")] = Path("bench/results"),
) -> None:
    """Measure matching, building and updating on generated workloads, next to a plain scan."""
    from tamis.cli.failure import UserError
    from tamis_lab.benchmark.kernel import plan, run

    try:
        plan(workloads, scales)
    except ValueError as error:
        raise UserError(str(error)) from None
    run(workloads, scales=scales, quick=quick, seed=seed, output=output)
