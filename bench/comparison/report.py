"""The table of a comparison, on the terminal and as Markdown, and everything that was measured as JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from comparison.builds import Build
from comparison.figures import TITLES, Figure
from comparison.verdict import estimate
from tamis_lab.benchmark.environment import one_line
from tamis_lab.benchmark.scale import format_size

HEADINGS = ("workload", "subscriptions", "figure", "base", "head", "head / base", "95 % interval", "verdict")
COLOURS = {"slower": "red", "faster": "green", "same": "default", "too few pairs": "yellow"}


def rows(figures: Sequence[Figure]) -> list[list[str]]:
    """A row of text for each figure.

    >>> figure = Figure("count", "dense", 1000, "µs", [1.0] * 6, [2.0] * 6, [2.0] * 6)
    >>> rows([figure])
    [['dense', '1K', 'one event, count', '2.00 µs', '2.00 µs', '1.000', '1.000 to 1.000', 'same']]
    """
    made = []
    for figure in figures:
        found = estimate(figure.ratios)
        made.append(
            [
                figure.workload,
                format_size(figure.size),
                TITLES[figure.name],
                f"{_number(median(figure.base))} {figure.unit}",
                f"{_number(median(figure.head))} {figure.unit}",
                f"{found.ratio:.3f}",
                f"{found.low:.3f} to {found.high:.3f}",
                found.verdict,
            ]
        )
    return made


def show(figures: Sequence[Figure], environment: dict[str, Any], base: Build, head: Build) -> None:
    """Print the table and its circumstances."""
    table = Table(title=f"{head.name} (head) against {base.name} (base)", box=None, pad_edge=False)
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading in ("workload", "figure", "verdict") else "right")
    for row in rows(figures):
        table.add_row(*row[:-1], f"[{COLOURS[row[-1]]}]{row[-1]}[/]")
    console = Console(width=None if Console().is_terminal else 150)
    console.print(table)
    console.print(f"[dim]{one_line(environment)}[/]")


def write(
    figures: Sequence[Figure],
    different: Sequence[str],
    circumstances: dict[str, Any],
    output: Path,
) -> Path:
    """Write `compare-<time>.json`, and the table as `compare-<time>.md`, into the folder `output`."""
    output.mkdir(parents=True, exist_ok=True)
    stamp = circumstances["environment"]["time"].replace(":", "").replace("+0000", "")
    path = output / f"compare-{stamp}.json"
    results = [
        {**asdict(figure), "estimate": asdict(found), "verdict": found.verdict}
        for figure in figures
        for found in [estimate(figure.ratios)]
    ]
    report = {**circumstances, "different_answers": list(different), "results": results}
    path.write_text(json.dumps(report, indent=1) + "\n")
    lines = [HEADINGS, ["---"] * len(HEADINGS), *rows(figures)]
    path.with_suffix(".md").write_text("".join(f"| {' | '.join(line)} |\n" for line in lines))
    return path


def joined(paths: Sequence[Path]) -> tuple[list[Figure], dict[str, Any]]:
    """The figures of runs of the same two sides, on several cores for instance, each with all pairs."""
    figures: dict[tuple[str, str, int], Figure] = {}
    reports = [json.loads(path.read_text()) for path in paths]
    for report in reports:
        if (report["base"], report["head"]) != (reports[0]["base"], reports[0]["head"]):
            raise ValueError(f"reports of different sides: {report['base']} and {report['head']}")
        for result in report["results"]:
            place = (result["workload"], result["name"], result["size"])
            whole = figures.setdefault(
                place, Figure(result["name"], result["workload"], result["size"], result["unit"])
            )
            whole.ratios += result["ratios"]
            whole.base += result["base"]
            whole.head += result["head"]
    different = [kind for report in reports for kind in report["different_answers"]]
    return list(figures.values()), {**reports[0], "different_answers": different}


def _number(value: float) -> str:
    """Three digits that matter.

    >>> _number(1234.5), _number(12.345), _number(0.0123)
    ('1,234', '12.3', '0.0123')
    """
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:#.3g}"
