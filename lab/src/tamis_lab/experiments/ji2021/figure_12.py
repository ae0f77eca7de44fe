"""Matching time of the algorithms on ABE-Gen (Ji and Jacobsen 2021, Figure 12)."""

import numpy as np

from tamis_lab.experiments.contract import Experiment, Result, Scale
from tamis_lab.experiments.ji2021.sweeps import sweeps

NOTE = (
    "The paper has drawings, and in its text the order A-Tree, translation, BDD, boolean, Interval ID, scan. "
    "Where an algorithm refused expressions as too large, its time is for the others only. BDD is ahead "
    "of A-Tree in the first rows because so much matches. With 2,000 expressions and 20 attributes, all of "
    "them in an event, 930 match: results reach 4,856 nodes of A-Tree, while BDD walks 7,850 steps from its "
    "1,970 roots, which it does whatever matches. With 400 attributes 106 match, A-Tree is reached in 426 "
    "nodes and takes 18 us, BDD walks 10,231 steps in 80 us. Translation follows true predicates only, 2,112 "
    "and 74 paths, and is ahead of A-Tree at this size; the paper has PSTBloom for it."
)


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Sweep the number of expressions, their depth, attributes, values, and the size of events."""
    count = scale.of(small=2_000, paper=1_000_000)
    attributes = max(20, count // 1_000)
    parameters = {
        "count": (count // 2, count),
        "depth": (2, 4),
        "attributes": (2 * attributes, 4 * attributes),
        "cardinality": (1_000,),
        "event_size": (5, 10),
    }
    rows, lines = sweeps(parameters, count, rng, figure=lambda found: found.microseconds, unit="us")
    return Result(rows=rows, lines=lines, axes=("", "microseconds per event"), note=NOTE)


EXPERIMENT = Experiment(
    name="ji-figure-12",
    paper="Ji and Jacobsen 2021",
    figure="Figure 12",
    question="How long does each algorithm take for an event?",
    run=run,
)
