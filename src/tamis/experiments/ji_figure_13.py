"""Time to build the algorithms on ABE-Gen (Ji and Jacobsen 2021, Figure 13)."""

import numpy as np

from tamis.experiments.contract import Experiment, Result, Row, Scale
from tamis.experiments.ji_sweeps import Lines, sweep

NOTE = (
    "The paper has drawings, and in its text: A-Tree, boolean and Interval ID are faster to build than "
    "translation and BDD. Times include reading the text of the expressions, which is the same for all."
)


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Sweep the number of expressions, their depth, and how unevenly subexpressions are drawn."""
    count = scale.of(small=2_000, paper=1_000_000)
    rows: list[Row] = []
    lines: Lines = {}
    for parameter, values in (
        ("count", (count // 2, count)),
        ("depth", (2, 4)),
        ("subexpression_alpha", (0.2, 1.0)),
    ):
        more, drawn = sweep(
            parameter, values, count, rng, figure=lambda found: 1_000 * found.build_seconds, unit="ms"
        )
        rows += more
        if parameter == "count":
            lines |= drawn
    return Result(rows=rows, lines=lines, axes=("expressions", "milliseconds"), note=NOTE)


EXPERIMENT = Experiment(
    name="ji-figure-13",
    paper="Ji and Jacobsen 2021",
    figure="Figure 13",
    question="How long does it take to build each algorithm?",
    run=run,
)
