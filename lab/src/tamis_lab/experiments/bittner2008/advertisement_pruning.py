"""What does it save to prune advertisements, and what does it cost?

Bittner (2008, section 8.6.1) prunes 50,000 advertisements among 100,000 subscriptions. Fewer predicates are
left to compare, and more subscriptions overlap an advertisement and have to be forwarded.
"""

import numpy as np

from tamis_lab.experiments.bittner2008.advertisement_overlap import at_share, market, overlap, pruned_in_steps
from tamis_lab.experiments.contract import Chart, Experiment, Result, Row, Scale

SHARES = (0.0, 0.2, 0.4, 0.55, 0.7, 0.85, 1.0)


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Prune step by step, and ask for what overlaps in both directions."""
    count = scale.of(small=400, paper=100_000)
    found = market(count, max(16, count // 4), rng)
    steps = [
        (removed, overlap(left, found.subscriptions)) for removed, left in pruned_in_steps(found, SHARES)
    ]
    first, last = steps[0][1], steps[-1][1]
    overlaps = [(removed, one.share) for removed, one in steps]
    rows = [
        Row("predicates removed by all pruning", 0.72, steps[-1][0]),
        Row("overlap before", 0.46, first.share),
        Row("overlap with 37 % of predicates removed", 0.50, at_share(overlaps, 0.37)),
        Row("overlap with 55 % of predicates removed", 0.56, at_share(overlaps, 0.55)),
        Row("overlap after all pruning", 0.63, last.share),
        Row("time to find all, after / before", 85 / 105, last.all_milliseconds / first.all_milliseconds),
        Row("time to find one, after / before", 5 / 9, last.one_milliseconds / first.one_milliseconds),
    ]
    x_title = "share of advertisement predicates removed"
    charts = [
        Chart("Overlap", {"overlap": overlaps}, (x_title, "share of subscriptions that overlap")),
        Chart(
            "Time to find what overlaps",
            {
                "all": [(at, one.all_milliseconds / first.all_milliseconds) for at, one in steps],
                "one": [(at, one.one_milliseconds / first.one_milliseconds) for at, one in steps],
                "candidates": [(at, one.candidates / max(1, first.candidates)) for at, one in steps],
            },
            (x_title, "share of the time, and of the candidates, before"),
        ),
    ]
    note = (
        f"{count:,} subscriptions, {len(found.advertisements):,} advertisements, published test on pairs. "
        "Overlaps and predicates are counted, and as published. Times are milliseconds for a few hundred "
        "expressions, of one run: compare their direction."
    )
    return Result(rows, note=note, charts=charts)


EXPERIMENT = Experiment(
    name="advertisement-pruning",
    paper="Bittner 2008",
    figure="section 8.6.1",
    question="What does it save to prune advertisements, and what does it cost?",
    run=run,
)
