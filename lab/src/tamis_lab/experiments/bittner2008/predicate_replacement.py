"""What does it save to replace predicates by wider ones, alone and after pruning?

Bittner (2008, section 6.2) replaces a comparison by a wider one that other entries use, so that the predicate
index has fewer distinct predicates, but did not implement it. So there are no published figures; pruning by
accuracy, which removes predicates from entries, is drawn next to it.
"""

from dataclasses import dataclass

import numpy as np

from tamis_lab.brokers import Options, PostPruning
from tamis_lab.experiments.bittner2008.auction_network import (
    Measures,
    auction_like,
    different_predicates,
    expressions_of,
    measure,
    network,
)
from tamis_lab.experiments.contract import Chart, Experiment, Result, Row, Scale
from tamis_lab.simulation import Simulator

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)

WAYS = {
    "replacement": (0.0, 1.0),
    "pruning": (1.0, 0.0),
    "both": (1.0, 1.0),
}
"""At the share 1: how far entries are pruned, and how many of the comparisons that can are replaced."""


@dataclass(frozen=True)
class Point:
    """One network, generalised so far."""

    share: float
    measures: Measures
    different: int
    """Predicates in the indexes of all brokers."""


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Generalise a network in three ways, further and further."""
    auction = auction_like(scale.of(small=1_500, paper=200_000), 200_000, int(rng.integers(2**32)))
    events = list(auction.events_json(scale.of(small=150, paper=20_000)))
    sample = list(auction.events_json(scale.of(small=1_500, paper=20_000)))
    options = Options(algorithm="boolean", post_pruning=PostPruning("accuracy"))
    expressions = expressions_of(auction)
    found = {}
    for way in WAYS:  # each with a network of its own: brokers also learn from the events of a measurement
        simulator = network(expressions, options)
        measure(simulator, sample)  # brokers learn from it how often predicates are true
        found[way] = _points(simulator, way, events)
    rows = [row for way, points in found.items() for row in _rows(way, points)]
    note = f"{auction.count:,} subscriptions, {len(events):,} events a point, a line of 5 brokers"
    return Result(rows, note=note, charts=_charts(found))


def _points(simulator: Simulator, way: str, events: list[str]) -> list[Point]:
    pruning, replacing = WAYS[way]
    points = []
    for share in SHARES:
        simulator.prune(share * pruning, share * replacing)
        points.append(Point(share, measure(simulator, events), different_predicates(simulator)))
    return points


def _rows(way: str, points: list[Point]) -> list[Row]:
    whole = points[0]
    return [
        row
        for point in (points[2], points[-1])
        for row in (
            Row(
                f"{way}, share {point.share:g}: different predicates removed",
                None,
                1 - point.different / whole.different,
            ),
            Row(f"{way}, share {point.share:g}: network load", None, point.measures.network_load),
            Row(
                f"{way}, share {point.share:g}: time / whole",
                None,
                point.measures.milliseconds / whole.measures.milliseconds,
            ),
        )
    ]


def _charts(found: dict[str, list[Point]]) -> list[Chart]:
    def whole(points: list[Point]) -> Point:
        return points[0]

    removed = {
        way: [(one.share, 1 - one.different / whole(points).different) for one in points]
        for way, points in found.items()
    }
    load = {way: [(one.share, one.measures.network_load) for one in points] for way, points in found.items()}
    time = {
        way: [(one.share, one.measures.milliseconds / whole(points).measures.milliseconds) for one in points]
        for way, points in found.items()
    }
    x_title = "share of what can be done"
    return [
        Chart("Different predicates", removed, (x_title, "share removed from predicate indexes")),
        Chart("Network load", load, (x_title, "share of other brokers that filter an event")),
        Chart("Efficiency: filter time per event", time, (x_title, "share of the time with whole entries")),
    ]


EXPERIMENT = Experiment(
    name="predicate-replacement",
    paper="Bittner 2008",
    figure="section 6.2",
    question="What does it save to replace predicates by wider ones, alone and after pruning?",
    run=run,
)
