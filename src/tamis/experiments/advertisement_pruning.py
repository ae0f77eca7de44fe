"""Which should be pruned where publishers advertise: advertisements or subscriptions?

Bittner (2008, section 8.6) measures which share of subscriptions overlaps an advertisement, before and after
pruning either, with the published test on pairs of predicates. We add the exact decision: how often does the
published test report an overlap that is none?
"""

import numpy as np

import tamis
from tamis import relate
from tamis.experiments.auction_network import advertisements_of, expressions_of
from tamis.experiments.contract import Experiment, Result, Row, Scale
from tamis.pubsub.advertisement_pruning import AdvertisementPruner, Worth
from tamis.pubsub.entry import Entry
from tamis.workloads import BookAuction

Expressions = list[tamis.Expression]


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Prune both as far as it goes, and to the same share of predicates."""
    auction = BookAuction(count=scale.of(small=120, paper=100_000), seed=int(rng.integers(2**32)))
    advertisements = advertisements_of(auction, scale.of(small=64, paper=50_000))
    subscriptions = [tamis.parse(text) for text in expressions_of(auction)]
    known = relate.Selectivities.from_events(subscriptions, auction.events_table(2_000))
    hits = {text: 2_000 * share for text, share in known}

    pruned = _pruned_advertisements(advertisements, Worth(subscriptions, hits))
    removed = 1 - _predicates(pruned) / _predicates(advertisements)
    alike = relate.prune_many(
        subscriptions, predicates=round(_predicates(subscriptions) * (1 - 0.28)), selectivities=known
    )
    published = _overlap(advertisements, subscriptions, "pairs")
    exact = _overlap(advertisements, subscriptions, "exact")
    return Result(
        rows=[
            Row("overlap before", 0.46, published),
            Row("predicates removed by all advertisement pruning", 0.72, removed),
            Row("overlap after all advertisement pruning", 0.63, _overlap(pruned, subscriptions, "pairs")),
            Row(
                "overlap after removing 28 % of subscription predicates",
                0.75,
                _overlap(advertisements, alike, "pairs"),
            ),
            Row("exact overlap before", None, exact),
            Row(
                "share of reported overlaps that are none", None, 1 - exact / published if published else 0.0
            ),
        ],
        note=f"{len(subscriptions):,} subscriptions, {len(advertisements):,} advertisements",
    )


def _pruned_advertisements(advertisements: Expressions, worth: Worth) -> Expressions:
    pruner = AdvertisementPruner()
    for number, expression in enumerate(advertisements):
        pruner.originals[str(number)] = Entry(str(number), expression, None)
    pruner.prune(_predicates(advertisements), worth.of)
    return [pruner.current.get(id, entry.expression) for id, entry in pruner.originals.items()]


def _overlap(advertisements: Expressions, subscriptions: Expressions, method: str) -> float:
    found = sum(a.overlaps(s, method=method) for a in advertisements for s in subscriptions)  # type: ignore[arg-type]
    return found / (len(advertisements) * len(subscriptions))


def _predicates(expressions: Expressions) -> int:
    return sum(expression.predicates for expression in expressions)


EXPERIMENT = Experiment(
    name="advertisement-pruning",
    paper="Bittner 2008",
    figure="section 8.6",
    question="Should advertisements be pruned, or subscriptions?",
    run=run,
)
