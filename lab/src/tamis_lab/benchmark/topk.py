"""Measure top-k, compared with plain matching and with ranking all matches.

Every predicate gets a random boost, so that scores differ. Events with many matches show what pruning saves;
events with fewer than k matches show what it costs. All figures of a row are taken in one process, in turns,
so that their ratios are meaningful on a busy machine.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import tamis
from tamis_lab.benchmark.environment import describe
from tamis_lab.benchmark.kernel import WORKLOADS
from tamis_lab.benchmark.scale import format_size, parse_size
from tamis_lab.benchmark.topk_rivals import MOST_BESIDE, measure_beside, measure_regions, print_beside
from tamis_lab.benchmark.turns import LEAST_SECONDS, least_in_turns

SCORES = ("priority", "relevance")
MANY = 1_000
FEW = 5


@dataclass(frozen=True)
class Figures:
    """Microseconds per event (the median) for one workload, size, score and kind of event."""

    workload: str
    subscriptions: int
    score: str
    events: str
    """"many" have a thousand matches or more, "few" have fewer than five."""
    asked: int
    """How many events there were of that kind."""
    matches: float
    match: float
    """All matches, sorted by id."""
    ranked: float
    """All matches, sorted by score."""
    top_1: float
    top_5: float

    @property
    def share(self) -> float:
        """What the best five take of the time of ranking everything."""
        return self.top_5 / self.ranked

    @property
    def overhead(self) -> float:
        """What the best five take of the time of plain matching."""
        return self.top_5 / self.match


def boosted(texts: Sequence[str], seed: int) -> list[str]:
    """The expressions with a random boost behind every second comparison with a number.

    >>> boosted(["a1 = 3 AND b >= 4"], seed=1)
    ['a1 = 3^0.5118 AND b >= 4^0.9505']
    """
    dice = np.random.default_rng(seed)
    number = re.compile(r"((?:<=|>=|=|<|>) -?\d+(?:\.\d+)?)(?![\w.])")
    return [number.sub(lambda found: f"{found[1]}^{dice.random():.4f}", text) for text in texts]


def measure(
    name: str, size: int, *, seed: int, events: int, repeats: int, seconds: float = LEAST_SECONDS
) -> list[Figures]:
    """Index a workload with boosts and take the figures of every score."""
    workload = WORKLOADS[name](size, seed)
    subscriptions = workload.subscriptions_table().combine_chunks()
    dice = np.random.default_rng(seed)
    index = tamis.Index()
    texts = boosted(subscriptions["expression"].to_pylist(), seed)
    index.add_many(subscriptions["id"], texts, priorities=dice.random(len(texts)))
    sample = workload.events_dicts(2 * events)
    # The layout is chosen by other events than those that are timed.
    asked, learnt = sample[:events], sample[events:]
    index.count_batch(learnt)
    index.optimize()
    counts = index.count_batch(asked).to_numpy()
    kinds = {"many": counts >= MANY, "few": counts < FEW}
    rows = []
    for score in SCORES:
        for kind, chosen in kinds.items():
            picked = [event for event, wanted in zip(asked, chosen, strict=True) if wanted]
            if not picked:
                continue

            ask = partial(index.time_events, picked, score=score, repeats=1)
            questions = {
                "match": partial(ask, "match"),
                "ranked": partial(ask, "top_k", k=len(index)),
                "top_1": partial(ask, "top_k", k=1),
                "top_5": partial(ask, "top_k", k=5),
            }
            least = least_in_turns(questions, repeats, seconds=seconds)
            medians = {figure: float(np.median(times)) / 1_000 for figure, times in least.items()}
            rows.append(
                Figures(
                    workload=name,
                    subscriptions=size,
                    score=score,
                    events=kind,
                    asked=len(picked),
                    matches=float(counts[chosen].mean()),
                    **medians,
                )
            )
    return rows


def run(
    workloads: Sequence[str] = ("conjunctive", "equality-3-4", "dense", "arbitrary"),
    *,
    scales: str = "100K,1M",
    seed: int = 1,
    events: int = 256,
    repeats: int = 5,
    output: Path = Path("bench/results"),
) -> list[Figures]:
    """Measure, print two tables, and write `topk-<time>.json` into the folder `output`.

    The second table is of the scales, if any, at which the published algorithms are built in minutes.
    """
    environment = describe(seed)
    console = Console(stderr=True)
    sizes = [parse_size(scale) for scale in scales.split(",")]
    rows: list[Figures] = []
    for name in workloads:
        for size in sizes:
            with console.status(f"{name}, {format_size(size)} subscriptions"):
                rows += measure(name, size, seed=seed, events=events, repeats=repeats)
    table = Table(title="Microseconds per event, median")
    for heading in ("workload", "subscriptions", "score", "events", "matches", "match", "ranked"):
        table.add_column(heading)
    for heading in ("top 1", "top 5", "top 5 / ranked", "top 5 / match"):
        table.add_column(heading, justify="right")
    for row in rows:
        times = [f"{time:,.1f}" for time in (row.match, row.ranked, row.top_1, row.top_5)]
        table.add_row(
            row.workload,
            format_size(row.subscriptions),
            row.score,
            f"{row.events} ({row.asked})",
            f"{row.matches:,.1f}",
            *times,
            f"{row.share:.2f}",
            f"{row.overhead:.2f}",
        )
    Console(width=None if Console().is_terminal else 130).print(table)
    beside = []
    for size in [size for size in sizes if size <= MOST_BESIDE]:
        with console.status(f"published algorithms, {format_size(size)} subscriptions"):
            for measure_rows in (measure_beside, measure_regions):
                beside += measure_rows(size, seed=seed, events=events, repeats=repeats)
    if beside:
        print_beside(beside)
    output.mkdir(parents=True, exist_ok=True)
    stamp = environment["time"].replace(":", "").replace("+0000", "")
    report = {
        "environment": environment,
        "results": [asdict(row) for row in rows],
        "beside": [asdict(row) for row in beside],
    }
    (output / f"topk-{stamp}.json").write_text(json.dumps(report, indent=2) + "\n")
    return rows
