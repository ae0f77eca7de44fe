"""The three classes of subscriptions of the book auction, counted (Bittner 2008, Table 3.2)."""

import numpy as np

from tamis_lab.experiments.bittner2008.auction_shapes import counted
from tamis_lab.experiments.contract import Experiment, Result, Scale
from tamis_lab.workloads import BookAuction

PUBLISHED = {1: (4, 6, 2, 8), 2: (10, 12, 4, 20), 3: (6, 7, 6, 18)}
"""Operators, predicates, conjunctions and their predicates, for each class."""


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Count what the generated expressions have, not what the templates claim."""
    texts = {}
    for number in PUBLISHED:
        auction = BookAuction(count=1, classes=(number,), seed=int(rng.integers(2**32)))
        texts[number] = auction.subscriptions_table()["expression"][0].as_py()
    return Result(rows=counted(texts, PUBLISHED))


EXPERIMENT = Experiment(
    name="bittner-table-3-2",
    paper="Bittner 2008",
    figure="Table 3.2",
    question="How large are the subscriptions of the book auction, before and after translation?",
    run=run,
)
