"""Which should be pruned where publishers advertise: advertisements or subscriptions?

Bittner (2008, section 8.6.2) prunes subscriptions to several degrees and then advertisements. Pruned
subscriptions overlap nearly everything at once; pruned advertisements overlap more only slowly. His
conclusion, and the one to look for here: prune advertisements, not subscriptions.
"""

import numpy as np

from tamis import relate
from tamis_lab.experiments.bittner2008.advertisement_overlap import (
    at_share,
    market,
    overlap,
    predicates,
    pruned_in_steps,
)
from tamis_lab.experiments.contract import Chart, Experiment, Result, Row, Scale

DEGREES = (0.0, 0.1, 0.19, 0.28, 0.5, 0.83)
STEPS = (0.0, 0.2, 0.4, 0.7, 1.0)


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Prune either further and further."""
    count = scale.of(small=400, paper=100_000)
    found = market(count, max(16, count // 4), rng)
    whole = predicates(found.subscriptions)
    by_subscriptions, one_times = [], []
    for degree in DEGREES:
        target = round(whole * (1 - degree))
        pruned = relate.prune_many(found.subscriptions, predicates=target, selectivities=found.known)
        asked = overlap(found.advertisements, pruned)
        by_subscriptions.append((1 - predicates(pruned) / whole, asked.share))
        one_times.append(asked.one_milliseconds)
    by_advertisements = [
        (removed, overlap(left, found.subscriptions).share) for removed, left in pruned_in_steps(found, STEPS)
    ]
    most = by_advertisements[-1]
    rows = [
        Row("overlap, 28 % of subscription predicates removed", 0.75, at_share(by_subscriptions, 0.28)),
        Row("overlap, 28 % of advertisement predicates removed", 0.48, at_share(by_advertisements, 0.28)),
        Row("advertisement predicates removed in all", 0.72, most[0], f"overlap {most[1]:.2f}"),
        Row(
            "subscription predicates removed at the overlap of that",
            0.19,
            at_share([(share, removed) for removed, share in by_subscriptions], most[1]),
        ),
        Row(
            "time to find one, 83 % of subscription predicates removed / none",
            1.8 / 8.7,
            one_times[-1] / one_times[0],
        ),
        Row(
            "overlap added by 28 %: subscriptions / advertisements",
            0.29 / 0.02,
            (at_share(by_subscriptions, 0.28) - by_subscriptions[0][1])
            / max(1e-3, at_share(by_advertisements, 0.28) - by_advertisements[0][1]),
            "above 1: prune advertisements",
        ),
    ]
    chart = Chart(
        "Overlap",
        {"subscriptions pruned": by_subscriptions, "advertisements pruned": by_advertisements},
        ("share of predicates removed", "share of subscriptions that overlap an advertisement"),
    )
    note = f"{count:,} subscriptions, {len(found.advertisements):,} advertisements, published test on pairs"
    return Result(rows, note=note, charts=[chart])


EXPERIMENT = Experiment(
    name="advertisements-or-subscriptions",
    paper="Bittner 2008",
    figure="section 8.6.2",
    question="Should advertisements be pruned, or subscriptions?",
    run=run,
)
