"""Compare the production index with the published algorithms, on the workloads they were designed for.

The workloads are the four data sets of Sadoghi and Jacobsen 2012, with their weight model: conjunctions of
small ranges (uniform and Zipf attributes) and publications in the shape of DBLP; and the regions of
Machanavajjhala et al. 2008, boxes of one, two and four wide intervals with a priority. Where another
algorithm is faster than the production index, a line below the table says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import tamis
from tamis_lab.benchmark.scale import format_size
from tamis_lab.benchmark.turns import LEAST_SECONDS, least_in_turns
from tamis_lab.experiments.sadoghi2012.workloads import data_sets, load
from tamis_lab.workloads import ZipfRegions

ALGORITHMS = ("auto", "be-star-tree", "be-tree", "k-index")
REGIONS = (1, 2, 4)
"""The numbers of intervals of a box."""
MOST_BESIDE = 100_000
"""The most subscriptions that every algorithm takes in minutes; BE trees need far more for a million."""


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


def measure_beside(
    size: int, *, seed: int, events: int, repeats: int, seconds: float = LEAST_SECONDS
) -> list[Beside]:
    """Index the four data sets with each algorithm, and ask for all matches and for the best few.

    >>> rows = measure_beside(100, seed=1, events=5, repeats=1, seconds=0)
    >>> len(rows), rows[0].algorithm
    (16, 'auto')
    """
    rows = []
    for name, workload in data_sets(size, seed).items():
        loaded = load(workload, weighted=True, events=events)
        indexes = {}
        for algorithm in ALGORITHMS:
            indexes[algorithm] = tamis.Index(algorithm=algorithm)
            indexes[algorithm].add_many(loaded.ids, loaded.texts, weights=loaded.weights)
        indexes["auto"].optimize()
        rows += _timed_in_turns(name, indexes, loaded.events, "relevance", repeats=repeats, seconds=seconds)
    return rows


def _timed_in_turns(
    name: str,
    indexes: Mapping[str, tamis.Index],
    events: Sequence[Any],
    score: str,
    *,
    repeats: int,
    seconds: float,
) -> list[Beside]:
    """The least of some rounds of each event. Every index is asked in a round: none has quieter times."""
    questions: dict[str, tuple[Any, int]] = {
        "match": ("match", 1),
        "top_1": ("top_k", 1),
        "top_5": ("top_k", 5),
    }
    asked_of = {
        (algorithm, asked): partial(index.time_events, events, mode, k=k, score=score, repeats=1)
        for algorithm, index in indexes.items()
        for asked, (mode, k) in questions.items()
    }
    least = least_in_turns(asked_of, repeats, seconds=seconds)
    matches = sum(indexes["auto"].count(event) for event in events) / len(events)
    rows = []
    for algorithm, index in indexes.items():
        means = {asked: float(np.mean(least[algorithm, asked])) / 1_000 for asked in questions}
        rows.append(Beside(name, len(index), algorithm, matches, **means))
    return rows


def measure_regions(
    size: int, *, seed: int, events: int, repeats: int, seconds: float = LEAST_SECONDS
) -> list[Beside]:
    """Index boxes of intervals, and ask for all matches and for the best few by priority.

    >>> rows = measure_regions(100, seed=1, events=5, repeats=1, seconds=0)
    >>> len(rows), rows[1].algorithm
    (6, 'interval')
    """
    rows = []
    for dimensions in REGIONS:
        workload = ZipfRegions(count=size, seed=seed, dimensions=dimensions)
        boxes = workload.subscriptions_table().combine_chunks()
        asked = workload.events_dicts(events)
        indexes = {}
        for algorithm in ("auto", "interval"):
            indexes[algorithm] = tamis.Index(algorithm=algorithm)
            indexes[algorithm].add_many(boxes["id"], boxes["expression"], priorities=boxes["priority"])
        indexes["auto"].optimize()
        name = f"regions, {dimensions} attribute{'s' if dimensions > 1 else ''}"
        rows += _timed_in_turns(name, indexes, asked, "priority", repeats=repeats, seconds=seconds)
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
