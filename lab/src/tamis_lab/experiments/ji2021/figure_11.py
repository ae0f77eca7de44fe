"""Memory of the algorithms on ABE-Gen (Ji and Jacobsen 2021, Figure 11)."""

import numpy as np

from tamis_lab.experiments.contract import Experiment, Result, Scale
from tamis_lab.experiments.ji2021.sweeps import sweeps

NOTE = (
    "The paper has drawings, and in its text: A-Tree needs least above 300,000 expressions, then boolean; "
    "BDD and translation run out of memory at depth 4 and 5 (children: see ji-figure-11c). Ours refuses an "
    "expression that is too large instead of running out: see the notes of the rows. Memory includes the "
    "predicate index, which all have."
)


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Sweep the number of expressions, their depth, and how unevenly subexpressions are drawn."""
    count = scale.of(small=2_000, paper=1_000_000)
    parameters = {"count": (count // 2, count), "depth": (2, 3, 4), "subexpression_alpha": (0.2, 1.0)}
    rows, lines = sweeps(parameters, count, rng, figure=lambda found: found.megabytes, unit="MB")
    return Result(rows=rows, lines=lines, axes=("", "megabytes"), note=NOTE)


EXPERIMENT = Experiment(
    name="ji-figure-11",
    paper="Ji and Jacobsen 2021",
    figure="Figure 11",
    question="How much memory does each algorithm need for arbitrary expressions?",
    run=run,
)
