"""Measure the kernel: matching, building, updating and memory, next to a plain scan.

Each workload is indexed at each scale. The kernel's time per event is measured in Rust and counts matches;
the time of a Python caller and the time to produce ids are measured separately. The scan holds a sample of
the same subscriptions and its time is scaled up to the same number; both run in the same process, so that
their ratio is meaningful on any machine.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.status import Status

from tamis_lab.benchmark.environment import describe
from tamis_lab.benchmark.measure import Effort, Figures, measure
from tamis_lab.benchmark.report import print_report, write_html
from tamis_lab.benchmark.scale import format_size, parse_size
from tamis_lab.workloads import AbeGen, Conjunctive, Dense, Equality, Workload

SCALES = "10K,100K,1M"


def _equality_3_4(count: int, seed: int) -> Workload:
    return Equality(count=count, seed=seed, min_predicates=3, max_predicates=4)


WORKLOADS: dict[str, Callable[[int, int], Workload]] = {
    "conjunctive": lambda count, seed: Conjunctive(count=count, seed=seed),
    "equality": lambda count, seed: Equality(count=count, seed=seed),
    "equality-3-4": _equality_3_4,
    "arbitrary": lambda count, seed: AbeGen(count=count, seed=seed),
    "dense": lambda count, seed: Dense(count=count, seed=seed),
}


@dataclass(frozen=True)
class Row:
    """The figures of one workload at one scale."""

    workload: str
    subscriptions: int
    figures: Figures


def plan(workloads: Sequence[str] | None, scales: str) -> list[tuple[str, int]]:
    """The workloads to measure and their sizes.

    >>> plan(["dense"], "10K,1M")
    [('dense', 10000), ('dense', 1000000)]
    """
    sizes = [parse_size(text) for text in scales.split(",")]
    for name in workloads or []:
        if name not in WORKLOADS:
            raise ValueError(f"there is no workload {name!r}; choose from {', '.join(WORKLOADS)}")
    return [(name, size) for name in workloads or WORKLOADS for size in sizes]


def run(
    workloads: Sequence[str] | None = None,
    *,
    scales: str = SCALES,
    quick: bool = False,
    seed: int = 1,
    output: Path = Path("bench/results"),
    effort: Effort | None = None,
) -> list[Row]:
    """Measure, print a table, and write JSON and HTML files under `output`."""
    console = Console(stderr=True)
    steps = plan(workloads, "10K" if quick else scales)
    effort = effort or (Effort.quick() if quick else Effort())
    environment = describe(seed)
    rows: list[Row] = []
    for name, size in steps:
        title = f"{name}, {format_size(size)} subscriptions"
        with console.status(title) as status:
            figures = measure(WORKLOADS[name](size, seed), effort, _teller(status, title))
        rows.append(Row(name, size, figures))
    print_report(rows, environment)
    write(rows, environment, output)
    return rows


def _plain(row: Row) -> dict[str, Any]:
    plain = asdict(row)
    plain["figures"]["scan_ratio"] = row.figures.scan_ratio
    return plain


def _teller(status: Status, title: str) -> Callable[[str], None]:
    return lambda step: status.update(f"{title}: {step}")


def write(rows: Sequence[Row], environment: dict[str, Any], output: Path) -> None:
    """Write `kernel-<time>.json` and the page `kernel.html` into the folder `output`."""
    output.mkdir(parents=True, exist_ok=True)
    stamp = environment["time"].replace(":", "").replace("+0000", "")
    report = {"environment": environment, "results": [_plain(row) for row in rows]}
    (output / f"kernel-{stamp}.json").write_text(json.dumps(report, indent=2) + "\n")
    write_html(rows, environment, output / "kernel.html")
