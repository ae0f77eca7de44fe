"""What does subscription pruning save, by which measure, and where is the cut-off?

Bittner (2008, section 8.3.1) prunes 200,000 subscriptions on a line of five brokers by four measures, and
draws efficiency, network load and memory over the share of prunings. Brokers filter with his Boolean
algorithm here too. Designs that he did not build are drawn, too: accuracy and distance, and criteria
combined (`tamis.pubsub.generalise.combined_pruning`), with distance and without.
"""

import numpy as np

from tamis_lab.brokers import Options, PostPruning, Weights
from tamis_lab.experiments.bittner2008.auction_network import (
    Measures,
    auction_like,
    expressions_of,
    measure,
    network,
    prune_in_steps,
)
from tamis_lab.experiments.contract import Chart, Experiment, Result, Row, Scale

SHARES = tuple(number / 10 for number in range(11))

Steps = list[tuple[float, Measures]]


class Published:
    """What the thesis says of one measure."""

    def __init__(self, best: float | None, removed: float, share: float, last_load: float) -> None:
        """Take the best time over the unpruned one, and where it is: predicates gone, prunings done."""
        self.best = best
        self.removed = removed
        self.share = share
        self.last_load = last_load


PUBLISHED = {
    "accuracy": Published(7 / 15, 0.66, 0.75, 1.0),
    "efficiency": Published(10 / 15, 0.34, 0.5, 1.0),
    "memory": Published(None, 0.07, 0.05, 1.0),
    "accuracy-occurrence": Published(7 / 15, 0.75, 0.85, 0.17),
}

SETTINGS = {
    "accuracy": PostPruning("accuracy"),
    "efficiency": PostPruning("efficiency"),
    "memory": PostPruning("memory"),
    "accuracy-occurrence": PostPruning("accuracy-occurrence"),
    "accuracy-distance": PostPruning("accuracy-distance"),
    "combined": PostPruning("combined"),
    "combined with distance": PostPruning("combined", weights=Weights(distance=1.0)),
}


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Prune step by step by each measure."""
    auction = auction_like(scale.of(small=1_500, paper=200_000), 200_000, int(rng.integers(2**32)))
    events = list(auction.events_json(scale.of(small=150, paper=20_000)))
    sample = list(auction.events_json(scale.of(small=1_500, paper=20_000)))
    found = {name: _prune_by(name, expressions_of(auction), sample, events) for name in SETTINGS}
    whole = found["accuracy"][0][1]
    rows = [Row("network load unpruned", 0.08, whole.network_load)]
    for name, steps in found.items():
        rows += _rows(name, PUBLISHED.get(name), steps)
    last = found["accuracy"][-1][1]
    rows.append(Row("predicates removed by all pruning", 0.84, _removed(last, whole)))
    note = (
        f"{auction.count:,} subscriptions, {len(events):,} events a point, a line of 5 brokers. By "
        "efficiency and by memory the cut-off comes later than in the paper: the network load grows only "
        "when nearly all titles are gone, and until then the filter gains. The paper has no figures for "
        "combined criteria and for distance."
    )
    return Result(rows, note=note, charts=_charts(found))


def _prune_by(name: str, expressions: list[str], sample: list[str], events: list[str]) -> Steps:
    simulator = network(expressions, Options(algorithm="boolean", post_pruning=SETTINGS[name]))
    measure(simulator, sample)  # brokers learn from it how often predicates are true
    return prune_in_steps(simulator, events, SHARES)


def _rows(name: str, published: Published | None, steps: Steps) -> list[Row]:
    whole = steps[0][1]
    share, best = min(steps, key=lambda step: step[1].milliseconds)
    return [
        Row(
            f"{name}: best time / unpruned",
            published.best if published else None,
            best.milliseconds / whole.milliseconds,
        ),
        Row(
            f"{name}: predicates removed at the cut-off",
            published.removed if published else None,
            _removed(best, whole),
        ),
        Row(f"{name}: share of prunings at the cut-off", published.share if published else None, share),
        Row(
            f"{name}: network load after all pruning",
            published.last_load if published else None,
            steps[-1][1].network_load,
        ),
    ]


def _removed(now: Measures, whole: Measures) -> float:
    return 1 - now.predicates / whole.predicates


def _charts(found: dict[str, Steps]) -> list[Chart]:
    def lines(of: "str") -> dict[str, list[tuple[float, float]]]:
        drawn = {}
        for name, steps in found.items():
            whole = steps[0][1]
            values = {
                "time": [(share, at.milliseconds / whole.milliseconds) for share, at in steps],
                "load": [(share, at.network_load) for share, at in steps],
                "memory": [(share, _removed(at, whole)) for share, at in steps],
            }
            drawn[name] = values[of]
        return drawn

    x_title = "share of all prunings"
    return [
        Chart("Efficiency: filter time per event", lines("time"), (x_title, "share of the unpruned time")),
        Chart("Network load", lines("load"), (x_title, "share of other brokers that filter an event")),
        Chart("Memory", lines("memory"), (x_title, "share of predicates removed from routing tables")),
    ]


EXPERIMENT = Experiment(
    name="pruning-measures",
    paper="Bittner 2008",
    figure="section 8.3.1",
    question="What does subscription pruning save, by which measure, and where is the cut-off?",
    run=run,
)
