"""The three classes of subscriptions of the book auction, counted (Bittner 2008, Table 3.2)."""

import numpy as np

from tamis.costs import shape_of
from tamis.experiments.contract import Experiment, Result, Row, Scale
from tamis.workloads import BookAuction

PUBLISHED = {1: (4, 6, 2, 8), 2: (10, 12, 4, 20), 3: (6, 7, 6, 18)}
"""Operators, predicates, conjunctions and their predicates, for each class."""


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Count what the generated expressions have, not what the templates claim."""
    rows = []
    for number, published in PUBLISHED.items():
        auction = BookAuction(count=1, classes=(number,), seed=int(rng.integers(2**32)))
        shape = shape_of(auction.subscriptions_table()["expression"][0].as_py())
        ours = (shape.operators, shape.predicates, shape.conjunctions, shape.translated)
        names = ("operators", "predicates", "conjunctions after translation", "predicates after translation")
        for name, theirs, value in zip(names, published, ours, strict=True):
            rows.append(Row(f"class {number}: {name}", theirs, value))
    return Result(rows=rows)


EXPERIMENT = Experiment(
    name="bittner-table-3-2",
    paper="Bittner 2008",
    figure="Table 3.2",
    question="How large are the subscriptions of the book auction, before and after translation?",
    run=run,
)
