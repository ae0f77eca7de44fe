"""What does subscription pruning save, by which measure, and where is the cut-off?

Bittner (2008, section 8.3.1) prunes 200,000 subscriptions on a line of five brokers by four measures. Here
the filter is the production index, whose cost hardly depends on the number of predicates, so less is to be
gained in time than with the counting of the thesis; memory and traffic compare directly.
"""

import numpy as np

from tamis.experiments.auction_network import Measures, expressions_of, measure, network
from tamis.experiments.contract import Experiment, Result, Row, Scale
from tamis.pubsub import Options, PostPruning
from tamis.relate import Measure
from tamis.workloads import BookAuction

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
MEASURES: dict[Measure, tuple[float, float]] = {
    "accuracy": (0.47, 1.0),
    "efficiency": (0.67, 1.0),
    "memory": (1.0, 1.0),
    "accuracy-occurrence": (0.47, 0.17),
}
"""The best time of the thesis as a share of the unpruned one, and the network load after all pruning."""


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Prune step by step by each measure."""
    auction = BookAuction(count=scale.of(small=1_500, paper=200_000), seed=int(rng.integers(2**32)))
    events = list(auction.events_json(scale.of(small=300, paper=100_000)))
    rows: list[Row] = []
    lines: dict[str, list[tuple[float, float]]] = {}
    for name, (best_time, last_load) in MEASURES.items():
        found = _prune_by(name, expressions_of(auction), events)
        whole, last = found[0.0], found[1.0]
        lines[f"{name}: network load"] = [(share, at.network_load) for share, at in found.items()]
        lines[f"{name}: time"] = [
            (share, at.milliseconds / whole.milliseconds) for share, at in found.items()
        ]
        fastest = min(found, key=lambda share: found[share].milliseconds)
        rows += [
            Row(
                f"{name}: best time / unpruned",
                best_time,
                found[fastest].milliseconds / whole.milliseconds,
                f"at {fastest:.2f} of all prunings",
            ),
            Row(f"{name}: network load after all pruning", last_load, last.network_load),
        ]
    rows += [
        Row("network load unpruned", 0.08, whole.network_load),
        Row("predicates removed by all pruning", 0.84, 1 - last.predicates / whole.predicates),
    ]
    note = f"{auction.count:,} subscriptions, {len(events):,} events a point, a line of 5 brokers"
    return Result(rows, lines, ("share of all prunings", "network load; time as a share of unpruned"), note)


def _prune_by(name: Measure, expressions: list[str], events: list[str]) -> dict[float, Measures]:
    simulator = network(expressions, Options(post_pruning=PostPruning(name)))
    measure(simulator, events[:100])  # a sample for the selectivities, and a warm start
    found = {}
    for share in SHARES:
        simulator.prune(share)
        found[share] = measure(simulator, events)
    return found


EXPERIMENT = Experiment(
    name="pruning-measures",
    paper="Bittner 2008",
    figure="section 8.3.1",
    question="What does subscription pruning save, by which measure, and where is the cut-off?",
    run=run,
)
