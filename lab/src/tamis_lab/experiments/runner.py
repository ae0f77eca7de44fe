"""Find experiments, run them, print and store the results."""

import importlib
import json
import pkgutil
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import tamis_lab.experiments
from tamis.chart_page import number
from tamis_lab.benchmark.environment import describe, one_line
from tamis_lab.experiments.contract import Experiment, Result, Scale
from tamis_lab.experiments.report import write_report


def discover() -> dict[str, Experiment]:
    """All experiments by name, found by looking into this package and its folders.

    >>> discover()["abe-gen-sharing"].paper
    'Ji and Jacobsen 2021'
    """
    found: dict[str, Experiment] = {}
    for module in pkgutil.walk_packages(tamis_lab.experiments.__path__, f"{tamis_lab.experiments.__name__}."):
        experiment = getattr(importlib.import_module(module.name), "EXPERIMENT", None)
        if isinstance(experiment, Experiment):
            if experiment.name in found:
                raise ValueError(f"two experiments are called {experiment.name}")
            found[experiment.name] = experiment
    return dict(sorted(found.items()))


def run(experiment: Experiment, scale: Scale, seed: int, output: Path) -> Result:
    """Run one experiment, print its table, write its JSON and the HTML report of all that are there."""
    started = time.monotonic()
    result = experiment.run(scale, np.random.default_rng(seed))
    elapsed = time.monotonic() - started
    environment = describe(seed)
    print_result(experiment, scale, result, f"{elapsed:.1f} s; {one_line(environment)}")

    output.mkdir(parents=True, exist_ok=True)
    record = {
        "name": experiment.name,
        "paper": experiment.paper,
        "figure": experiment.figure,
        "question": experiment.question,
        "scale": asdict(scale),
        "seconds": round(elapsed, 3),
        "environment": environment,
        **asdict(result),
    }
    (output / f"{experiment.name}.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    write_report(output)
    return result


def print_result(experiment: Experiment, scale: Scale, result: Result, circumstances: str) -> None:
    """Print the paper's figures, ours and their ratios."""
    table = Table(
        title=f"{experiment.name}: {experiment.paper}, {experiment.figure} (scale {scale.name})",
        title_justify="left",
        title_style="bold",
        caption=circumstances,
        caption_justify="left",
        caption_style="dim",
        box=None,
        pad_edge=False,
    )
    for column in ("", "paper", "ours", "ratio", "note"):
        table.add_column(column, justify="left" if column in ("", "note") else "right")
    for row in result.rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        table.add_row(
            row.what, "" if row.paper is None else number(row.paper), number(row.ours), ratio, row.note
        )
    console = Console()
    console.print(table)
    if result.note:
        console.print(result.note, style="dim")
