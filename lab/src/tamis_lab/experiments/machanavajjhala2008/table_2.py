"""How much memory does each structure take? (Machanavajjhala et al. 2008, Table 2)"""

import numpy as np

from tamis_lab.experiments.contract import Experiment, Result, Row, Scale
from tamis_lab.experiments.machanavajjhala2008.setup import PAPER, STRUCTURES, build
from tamis_lab.workloads import ZipfRegions

SHARES = (0.1, 0.2, 0.5, 1.0)
PUBLISHED = {
    "interval-score": (0.92, 1.7, 4.2, 8.3),
    "scored-r": (1.2, 2.4, 6.0, 12.0),
    "segment": (40.0, 89.0, 214.0, 429.0),
    "ir": (1.76, 3.43, 8.35, 16.5),
}
"""Megabytes for 100,000, 200,000, 500,000 and 1,000,000 intervals."""
PUBLISHED_MOST = 1_000_000
THEOREM = 1 + 2 / 49
"""What Theorem 3.1 promises of an IR-tree over an interval tree, with a branching of 50."""

BYTES_OF_NOTE = 16
"""A score and an id, which is all that a node of our segment tree notes of an interval."""


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Build every structure over four numbers of intervals."""
    largest = scale.of(small=20_000, paper=PUBLISHED_MOST)
    seed = int(rng.integers(2**32))
    sizes = [max(10, int(largest * share)) for share in SHARES]
    found = {
        (structure, size): build(ZipfRegions(count=size, seed=seed), structure).memory["relaxed"]
        for structure in STRUCTURES
        for size in sizes
    }
    rows = []
    for share, size, place in zip(SHARES, sizes, range(len(SHARES)), strict=True):
        for structure, figures in PUBLISHED.items():
            theirs = figures[place] * 1e6 / (share * PUBLISHED_MOST)
            ours = found[structure, size] / size
            rows.append(Row(f"{size:,} intervals: {STRUCTURES[structure]}, bytes each", theirs, ours))
    published = {name: figures[-1] for name, figures in PUBLISHED.items()}
    bytes_of = {name: found[name, sizes[-1]] for name in STRUCTURES}
    times = [
        ("Segment over Interval", published["segment"] / published["interval-score"], "segment"),
        ("IR over Interval, measured there", published["ir"] / published["interval-score"], "ir"),
        ("IR over Interval, Theorem 3.1", THEOREM, "ir"),
        ("R over Interval", published["scored-r"] / published["interval-score"], "scored-r"),
    ]
    rows += [
        Row(f"{what}, times", paper, bytes_of[name] / bytes_of["interval-score"])
        for what, paper, name in times
    ]
    notes = bytes_of["segment"] / BYTES_OF_NOTE / sizes[-1]
    rows.append(Row("Segment over Interval, in notes of an interval, times", times[0][1], notes))
    lines = {
        name: [(size, found[structure, size] / 1e6) for size in sizes]
        for structure, name in STRUCTURES.items()
    }
    note = (
        "The paper's figures are those of a tenth, a fifth, a half and all of a million intervals, ours "
        "those of the same shares of the scale. The SOPT-R-tree, which the table lacks, is in the chart. "
        "Ours hold the ends, the score and the id of every interval in the structure, 32 bytes; the paper "
        "counts 8 or 9 bytes an interval, references to intervals that are elsewhere. That lowers our ratio "
        "of the segment tree, which notes only score and id, 16 bytes, many times, and brings the IR-tree "
        "to what the theorem promises instead of twice: its R-trees add nodes and no second list. Counted as "
        "the paper does, in references and not in bytes, the segment tree notes an interval many times and "
        "the interval tree once: that is the last row."
    )
    return Result(rows=rows, lines=lines, axes=("intervals", "megabytes"), note=note)


EXPERIMENT = Experiment(
    name="machanavajjhala-table-2",
    paper=PAPER,
    figure="Table 2",
    question="How much memory does each scored interval index take?",
    run=run,
)
