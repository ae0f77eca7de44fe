"""How long does BE*-Tree take to build, and which leaf capacity suits which share of matches? (Sadoghi and
Jacobsen 2012, Table II)

Table II(b) gives seconds for a million subscriptions, 760,000 publications by their authors and 250,000
by their titles. Machines differ, so the rows are times per subscription as multiples of the uniform data
set. What a scan takes to read the same subscriptions is taken off. Table II(a) is the capacity that was
found best.
"""

import numpy as np

from tamis.experiments.contract import Experiment, Result, Row, Scale
from tamis.experiments.sadoghi_workloads import UNIFORM, Lines, begen, data_sets, load, timed

SECONDS = {
    UNIFORM: (2.30, 1_000_000),
    "Zipf": (2.45, 1_000_000),
    "author": (4.98, 760_000),
    "title": (2.83, 250_000),
}
CAPACITIES = (5, 20, 160)
PROBABILITIES = {0.001: 5, 0.05: 20, 0.2: 160}
"""The share of matches, and the best capacity for it."""


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Build on the four data sets, one by one and at once, and match with three capacities."""
    count = scale.of(small=8_000, paper=1_000_000)
    seed = int(rng.integers(2**32))
    rows = []
    each = {name: seconds / size * 1e6 for name, (seconds, size) in SECONDS.items()}
    ours: dict[str, float] = {}
    for name, workload in data_sets(count, seed).items():
        loaded = load(workload, weighted=True)
        reading = timed(loaded, "scan").build_seconds
        dynamic, batch = (
            max(1e-9, timed(loaded, built).build_seconds - reading) * 1e6 / workload.count
            for built in ("BE*", "BE*-B")
        )
        ours[name] = dynamic
        note = f"{dynamic:.1f} us each; at once {batch:.1f} us; in the paper {each[name]:.1f} us"
        rows.append(
            Row(
                f"{name}: construction, times uniform",
                each[name] / each[UNIFORM],
                dynamic / ours[UNIFORM],
                note,
            )
        )
    lines: Lines = {}
    for probability, best in PROBABILITIES.items():
        loaded = load(begen(count, seed, UNIFORM, match_probability=probability))
        times = {}
        for capacity, standing_for in zip(CAPACITIES, PROBABILITIES, strict=True):
            times[capacity] = timed(loaded, "BE*", match_probability=standing_for).microseconds()
            lines.setdefault(f"{probability:.1%} match", []).append((capacity, times[capacity]))
        fastest = min(times, key=times.__getitem__)
        note = ", ".join(f"{capacity}: {time:.0f} us" for capacity, time in times.items())
        rows.append(Row(f"{probability:.1%} match: fastest capacity", best, fastest, note))
    return Result(
        rows=rows,
        lines=lines,
        axes=("leaf capacity", "microseconds per event"),
        note=f"{count:,} subscriptions, a third of that for titles.",
    )


EXPERIMENT = Experiment(
    name="sadoghi-table-2",
    paper="Sadoghi and Jacobsen 2012",
    figure="Table II",
    question="How long does BE*-Tree take to build, and which leaf capacity suits which share of matches?",
    run=run,
)
