"""The eight classes of advertisements of the book auction, counted (Bittner 2008, Table 3.3)."""

import numpy as np

from tamis_lab.experiments.bittner2008.auction_shapes import counted
from tamis_lab.experiments.contract import Experiment, Result, Scale
from tamis_lab.workloads import BookAuction

_ONE_SUBJECT, _BY_TWO, _NO_SUBJECT, _BY_TWO_NO_SUBJECT = (
    (4, 5, 2, 6),
    (10, 11, 4, 16),
    (3, 4, 2, 4),
    (9, 10, 4, 12),
)
PUBLISHED = {
    **dict.fromkeys((1, 2, 3, 4), _ONE_SUBJECT),
    5: _BY_TWO,
    **dict.fromkeys((6, 7), _NO_SUBJECT),
    8: _BY_TWO_NO_SUBJECT,
}
"""Operators, predicates, conjunctions and their predicates, for each class."""


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Count what the generated expressions have, not what the templates claim."""
    auction = BookAuction(count=1, seed=int(rng.integers(2**32)))
    offers = next(auction.advertisements(0, 8))
    texts = dict(zip(offers["class"].to_pylist(), offers["expression"].to_pylist(), strict=True))
    return Result(rows=counted(texts, PUBLISHED))


EXPERIMENT = Experiment(
    name="bittner-table-3-3",
    paper="Bittner 2008",
    figure="Table 3.3",
    question="How large are the advertisements of the book auction, before and after translation?",
    run=run,
)
