"""How often does the published test of overlap report a false overlap?

The test of Bittner (2008, section 7.2) compares predicates in pairs: it cannot see that `price < 12 AND
price > 18` is never true, or that two predicates of an advertisement together exclude one of a subscription.
The thesis does not say how often that matters. Here it is measured against the exact decision, on auctions
and on random expressions that are small and meet often.
"""

from collections import Counter

import numpy as np

import tamis
from tamis import relate
from tamis.pubsub.generalise.overlap_index import OverlapIndex
from tamis_lab.experiments.bittner2008.auction_network import advertisements_of, expressions_of
from tamis_lab.experiments.contract import Experiment, Result, Row, Scale
from tamis_lab.workloads import BookAuction


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Count pairs that overlap, that are reported, and that stay undecided."""
    count = scale.of(small=300, paper=20_000)
    auction = BookAuction(count=count, seed=int(rng.integers(2**32)))
    subscriptions = {str(number): tamis.parse(text) for number, text in enumerate(expressions_of(auction))}
    advertisements = advertisements_of(auction, max(16, count // 4))
    index = OverlapIndex("pairs")
    for id, expression in subscriptions.items():
        index.put(id, expression)
    found: Counter[str] = Counter()
    for advertisement in advertisements:
        for id in index.overlapping(advertisement):
            found[_judge(advertisement, subscriptions[id])] += 1
    reported, pairs = found.total(), len(advertisements) * len(subscriptions)

    cases = scale.of(small=1_500, paper=6_000)
    random: Counter[str] = Counter()
    for _ in range(cases):
        a, b = tamis.parse(_text(rng, 3)), tamis.parse(_text(rng, 3))
        random[_judge(a, b) if a.overlaps(b, method="pairs") else "not reported"] += 1
    return Result(
        rows=[
            Row("auctions: share of pairs reported", 0.46, reported / pairs, "paper: section 8.6"),
            Row("auctions: share of pairs that overlap", None, found["overlap"] / pairs),
            Row("auctions: share of reports that are false", None, found["false"] / max(1, reported)),
            Row("auctions: share of reports left undecided", None, found["undecided"] / max(1, reported)),
            Row("small random cases: share falsely reported", None, random["false"] / cases),
            Row("small random cases: share that overlap", None, random["overlap"] / cases),
        ],
        note=f"{pairs:,} pairs of auctions, {cases:,} random pairs over 3 attributes and 4 values",
    )


def _judge(a: tamis.Expression, b: tamis.Expression) -> str:
    decided = relate.decide_overlaps(a, b)
    return "undecided" if decided is None else "overlap" if decided else "false"


def _text(rng: np.random.Generator, depth: int) -> str:
    if depth == 0 or rng.random() < 0.3:
        return f"{rng.choice(list('xyz'))} {rng.choice(['=', '!=', '<', '>'])} {rng.integers(4)}"
    children = [_text(rng, depth - 1) for _ in range(rng.integers(2, 4))]
    return "(" + f" {rng.choice(['AND', 'OR'])} ".join(children) + ")"


EXPERIMENT = Experiment(
    name="overlap-exactness",
    paper="Bittner 2008",
    figure="section 7.2",
    question="How often does the published test of overlap report a false overlap?",
    run=run,
)
