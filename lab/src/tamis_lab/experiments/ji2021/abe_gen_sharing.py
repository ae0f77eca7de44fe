"""How often do predicates and subexpressions recur in ABE-Gen's default workload?

Ji and Jacobsen (2021, section 6.1) give two numbers for a million expressions: 18.35 occurrences per distinct
predicate and 4.33 per distinct subexpression. At other sizes the number of attributes shrinks or grows along,
because what decides how often a predicate recurs is the number of occurrences per possible predicate.
"""

import numpy as np

from tamis_lab.experiments.contract import Experiment, Result, Row, Scale
from tamis_lab.workloads import AbeGen

PAPER_EXPRESSIONS = 1_000_000
PAPER_ATTRIBUTES = 1_000


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Generate the workload and count."""
    count = scale.of(small=50_000, paper=PAPER_EXPRESSIONS)
    attributes = max(20, round(count * PAPER_ATTRIBUTES / PAPER_EXPRESSIONS))
    sharing = AbeGen(count=count, attributes=attributes, seed=int(rng.integers(2**32))).sharing()
    return Result(
        rows=[
            Row("occurrences per distinct predicate", 18.35, sharing.per_predicate),
            Row("occurrences per distinct subexpression", 4.33, sharing.per_subexpression),
            Row(
                "predicates per expression",
                None,
                sharing.predicate_occurrences / count,
                "12.25 = 3.5 squared, from the operator shares",
            ),
        ],
        note=f"{count:,} expressions over {attributes:,} attributes",
    )


EXPERIMENT = Experiment(
    name="abe-gen-sharing",
    paper="Ji and Jacobsen 2021",
    figure="section 6.1",
    question="How often do predicates and subexpressions recur in the default workload?",
    run=run,
)
