"""Measure the production index next to the published algorithms, on the workloads those were made for.

The workloads are the four data sets of Sadoghi and Jacobsen 2012, with their weight model: conjunctions of
small ranges (uniform and Zipf attributes) and publications in the shape of DBLP. Where another algorithm is
faster than the production index, a line below the table says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

import tamis
from tamis.benchmark.scale import format_size
from tamis.experiments.sadoghi_workloads import data_sets, load

ALGORITHMS = ("auto", "be-star-tree", "be-tree", "k-index")


@dataclass(frozen=True)
class Beside:
    """Mean microseconds per event of one algorithm on one workload."""

    workload: str
    subscriptions: int
    algorithm: str
    matches: float
    match: float
    top_1: float
    top_5: float


def measure_beside(size: int, *, seed: int, events: int, repeats: int) -> list[Beside]:
    """Index the four data sets with each algorithm, and ask for all matches and for the best few.

    >>> rows = measure_beside(100, seed=1, events=5, repeats=1)
    >>> len(rows), rows[0].algorithm
    (16, 'auto')
    """
    rows = []
    for name, workload in data_sets(size, seed).items():
        loaded = load(workload, weighted=True, events=events)
        for algorithm in ALGORITHMS:
            index = tamis.Index(algorithm=algorithm)
            index.add_many(loaded.ids, loaded.texts, weights=loaded.weights)
            if algorithm == "auto":
                index.optimize()
            match = float(np.mean(index.time_events(loaded.events, "match", repeats=repeats))) / 1_000
            best = [
                index.time_events(loaded.events, "top_k", k=k, score="relevance", repeats=repeats)
                for k in (1, 5)
            ]
            top_1, top_5 = (float(np.mean(times)) / 1_000 for times in best)
            matches = sum(index.count(event) for event in loaded.events) / len(loaded.events)
            rows.append(Beside(name, workload.count, algorithm, matches, match, top_1, top_5))
    return rows


def print_beside(rows: Sequence[Beside]) -> None:
    """Print the table, and where the production index is not the fastest."""
    table = Table(
        title="Microseconds per event, mean: the production index (auto) next to published algorithms"
    )
    for heading in ("workload", "subscriptions", "algorithm", "matches"):
        table.add_column(heading)
    for heading in ("match", "top 1", "top 5"):
        table.add_column(heading, justify="right")
    for row in rows:
        times = [f"{time:,.1f}" for time in (row.match, row.top_1, row.top_5)]
        table.add_row(
            row.workload, format_size(row.subscriptions), row.algorithm, f"{row.matches:,.1f}", *times
        )
    console = Console()
    console.print(table)
    for line in losses(rows):
        console.print(line)


def losses(rows: Sequence[Beside]) -> list[str]:
    """One line for each figure in which the production index is beaten.

    >>> auto = Beside("uniform", 10, "auto", 1.0, match=2.0, top_1=1.0, top_5=1.0)
    >>> losses([auto, Beside("uniform", 10, "k-index", 1.0, match=1.0, top_1=3.0, top_5=3.0)])
    ['uniform (10), match: k-index takes 0.50 of the time of the production index']
    """
    production = {(row.workload, row.subscriptions): row for row in rows if row.algorithm == "auto"}
    lines = []
    for row in rows:
        ours = production[row.workload, row.subscriptions]
        for figure in ("match", "top_1", "top_5"):
            share = getattr(row, figure) / getattr(ours, figure)
            if share < 1:
                lines.append(
                    f"{row.workload} ({format_size(row.subscriptions)}), {figure}: {row.algorithm} takes "
                    f"{share:.2f} of the time of the production index"
                )
    return lines
