"""Time to build the algorithms on ABE-Gen (Ji and Jacobsen 2021, Figure 13)."""

import numpy as np

from tamis_lab.experiments.contract import Experiment, Result, Scale
from tamis_lab.experiments.ji2021.sweeps import sweeps

NOTE = (
    "The paper has drawings, and in its text: A-Tree, boolean and Interval ID are faster to build than "
    "translation and BDD. Times include reading the text of the expressions, which is the same for all. "
    "So it is here, but for BDD, which grows with the depth: as fast to build as A-Tree at 2 and 3, and "
    "3 times slower at 4 (2,000 expressions)."
)


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Sweep the number of expressions, their depth, and how unevenly subexpressions are drawn."""
    count = scale.of(small=2_000, paper=1_000_000)
    parameters = {"count": (count // 2, count), "depth": (2, 4), "subexpression_alpha": (0.2, 1.0)}
    rows, lines = sweeps(parameters, count, rng, figure=lambda found: 1_000 * found.build_seconds, unit="ms")
    return Result(rows=rows, lines=lines, axes=("", "milliseconds"), note=NOTE)


EXPERIMENT = Experiment(
    name="ji-figure-13",
    paper="Ji and Jacobsen 2021",
    figure="Figure 13",
    question="How long does it take to build each algorithm?",
    run=run,
)
