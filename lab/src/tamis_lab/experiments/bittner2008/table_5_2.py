"""The parameters of the cost model, measured from the three classes (Bittner 2008, Table 5.2)."""

import numpy as np

from tamis_lab.costs import measure
from tamis_lab.experiments.contract import Experiment, Result, Row, Scale
from tamis_lab.workloads import BookAuction

PUBLISHED = {1: (0.667, 1.333, 0.667), 2: (0.833, 1.667, 0.417), 3: (0.857, 2.571, 0.429)}
"""Operators per predicate, conjunctions per predicate, and the share of the conjunctions that these are."""


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Measure the parameters from generated subscriptions."""
    count = scale.of(small=2_000, paper=50_000)
    seed = int(rng.integers(2**32))
    rows = []
    for number, published in PUBLISHED.items():
        table = BookAuction(count=count, classes=(number,), seed=seed).subscriptions_table()
        parameters = measure(table["expression"].to_pylist())
        ours = (parameters.operator_share, parameters.predicate_uses, parameters.use_share)
        names = ("operators per predicate", "conjunctions with a predicate", "share of the conjunctions")
        for name, theirs, value in zip(names, published, ours, strict=True):
            rows.append(Row(f"class {number}: {name}", theirs, value))
        rows.append(Row(f"class {number}: commonality", None, parameters.commonality, "not in the table"))
    return Result(rows=rows, note=f"{count:,} subscriptions of each class")


EXPERIMENT = Experiment(
    name="bittner-table-5-2",
    paper="Bittner 2008",
    figure="Table 5.2",
    question="What are the parameters of the cost model for the book auction?",
    run=run,
)
