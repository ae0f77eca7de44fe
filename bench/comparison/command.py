"""What `bench/compare.py` does once both sides are built."""

from argparse import Namespace
from pathlib import Path

from rich.console import Console

from comparison import golden, inputs, report
from comparison.builds import Build
from comparison.figures import GOLDEN, Figure
from comparison.side import SideError, golden_answers
from comparison.turns import compare
from tamis_lab.benchmark.environment import describe
from tamis_lab.benchmark.kernel import plan
from tamis_lab.benchmark.scale import format_size


def run(options: Namespace, base: Build, head: Build, cache: Path) -> int:
    """Measure everything that was asked for. Returns the exit status."""
    console = Console(stderr=True)
    groups = [group for group in options.only if group != GOLDEN]
    try:
        steps = plan(options.workloads, options.scales) if groups else []
    except ValueError as error:
        console.print(f"[red]{error}[/]")
        return 2

    figures: list[Figure] = []
    different: list[str] = []
    digests: dict[str, str] = {}
    circumstances = {
        "environment": describe(options.seed),
        "base": base.name,
        "head": head.name,
        "pairs": options.pairs,
        "inputs": digests,
    }
    path = None
    try:
        if GOLDEN in options.only:
            with console.status("golden answers"):
                wrong = golden.differences(golden_answers(base.folder), golden_answers(head.folder))
            different += [f"golden: {kind}" for kind in wrong]
        for workload, size in steps:
            title = f"{workload}, {format_size(size)}"
            with console.status(f"{title}: generating") as status:
                made = inputs.prepare(workload, size, options.seed, cache)
                digests[title] = made.digest()
                found = compare(
                    base,
                    head,
                    made,
                    groups,
                    pairs=options.pairs,
                    say=lambda step, status=status, title=title: status.update(f"{title}: {step}"),
                )
            figures += found.figures
            different += [f"{title}: {kind}" for kind in found.different]
            # After each workload: an hour of measuring is not lost when it is interrupted.
            path = report.write(figures, different, circumstances, options.output)
            if not console.is_terminal:
                console.print(f"{title}: measured")
    except SideError as error:
        console.print(f"[red]{error}[/]")
        return 2

    if path:
        report.show(figures, circumstances["environment"], base, head)
        console.print(f"written to {path}")
    for kind in different:
        console.print(f"[red]answers differ: {kind}[/]")
    slower = [row for row in report.rows(figures) if row[-1] == "slower"]
    for row in slower:
        console.print(f"[red]slower: {row[0]}, {row[1]}, {row[2]}: {row[5]} ({row[6]})[/]")
    return 1 if different or slower else 0
