"""Does pruning serve conjunctions as well as Boolean subscriptions?

Bittner (2008, section 8.3.2) prunes 100,000 Boolean subscriptions, and in a second system their 400,000
conjunctions, by accuracy and occurrence on a line of five brokers. The two meet at about the same time per
event; the Boolean system starts lower, and ends with less memory.
"""

import numpy as np

import tamis
from tamis_lab.brokers import Options, PostPruning
from tamis_lab.experiments.bittner2008.auction_network import (
    Measures,
    auction_like,
    boolean_bytes,
    conjunctions,
    conjunctive_bytes,
    expressions_of,
    measure,
    network,
    routing_entries,
)
from tamis_lab.experiments.contract import Chart, Experiment, Result, Row, Scale

SHARES = tuple(number / 8 for number in range(9))


class Step:
    """One point of a system: what was measured, and what its entries take per subscription."""

    def __init__(self, found: Measures, entry_bytes: float) -> None:
        """Take both."""
        self.found = found
        self.entry_bytes = entry_bytes


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Prune both systems step by step."""
    auction = auction_like(scale.of(small=1_000, paper=100_000), 100_000, int(rng.integers(2**32)))
    boolean = expressions_of(auction)
    translated = [term for expression in boolean for term in conjunctions(expression)]
    events = list(auction.events_json(scale.of(small=150, paper=20_000)))
    sample = list(auction.events_json(scale.of(small=1_500, paper=20_000)))
    systems = {
        "Boolean": _prune(boolean, "boolean", sample, events, auction.count),
        "conjunctive": _prune(translated, "counting", sample, events, auction.count),
    }
    first, last = systems["Boolean"][0].found, systems["Boolean"][-1].found
    start = systems["conjunctive"][0].found
    rows = [
        Row("Boolean: best time / unpruned", 0.54, _best(systems["Boolean"])),
        Row("conjunctive: best time / unpruned", 3.8 / 9.0, _best(systems["conjunctive"])),
        Row("unpruned: Boolean time / conjunctive", 7.0 / 9.0, first.milliseconds / start.milliseconds),
        Row("Boolean: predicates removed by all pruning", 0.84, 1 - last.predicates / first.predicates),
        Row(
            "conjunctive: predicates removed by all pruning",
            0.739,
            1 - systems["conjunctive"][-1].found.predicates / start.predicates,
        ),
        Row("Boolean: network load unpruned", 0.09, first.network_load),
        Row("Boolean: network load after all pruning", 0.12, last.network_load),
        Row(
            "conjunctive: network load after all pruning",
            None,
            systems["conjunctive"][-1].found.network_load,
        ),
        Row("Boolean: bytes per subscription unpruned", 94.3, systems["Boolean"][0].entry_bytes),
        Row("conjunctive: bytes per subscription unpruned", 130.7, systems["conjunctive"][0].entry_bytes),
    ]
    note = (
        f"{auction.count:,} subscriptions, {len(translated):,} conjunctions, {len(events):,} events a point, "
        "a line of 5 brokers, accuracy and occurrence. Unpruned, Boolean subscriptions take longer than "
        "conjunctions, unlike in the paper: an evaluation of a tree costs as much as eight increments of a "
        "counter (see boolean-routing). Bytes and predicates, which are counted, are as published."
    )
    return Result(rows, note=note, charts=_charts(systems))


def _prune(
    expressions: list[str], algorithm: str, sample: list[str], events: list[str], subscriptions: int
) -> list[Step]:
    options = Options(algorithm=algorithm, post_pruning=PostPruning("accuracy-occurrence"))
    simulator = network(expressions, options)
    measure(simulator, sample)
    copies = subscriptions * (len(simulator.topology.brokers) - 1)
    size = conjunctive_bytes if algorithm == "counting" else boolean_bytes
    steps = []
    for share in SHARES:
        simulator.prune(share)
        found = measure(simulator, events)
        entries: list[tamis.Expression] = routing_entries(simulator)
        steps.append(Step(found, size(entries) / copies))
    return steps


def _best(steps: list[Step]) -> float:
    return min(step.found.milliseconds for step in steps) / steps[0].found.milliseconds


def _charts(systems: dict[str, list[Step]]) -> list[Chart]:
    time, load, size = {}, {}, {}
    for name, steps in systems.items():
        most = steps[-1].found.prunings or 1
        shares = [step.found.prunings / most for step in steps]
        time[name] = [(at, step.found.milliseconds) for at, step in zip(shares, steps, strict=True)]
        load[name] = [(at, step.found.network_load) for at, step in zip(shares, steps, strict=True)]
        size[name] = [(at, step.entry_bytes) for at, step in zip(shares, steps, strict=True)]
    x_title = "share of all prunings"
    return [
        Chart("Efficiency: filter time per event", time, (x_title, "ms")),
        Chart("Network load", load, (x_title, "share of other brokers that filter an event")),
        Chart("Memory", size, (x_title, "bytes of routing entries per subscription and broker")),
    ]


EXPERIMENT = Experiment(
    name="conjunctive-pruning",
    paper="Bittner 2008",
    figure="section 8.3.2",
    question="Does pruning serve conjunctions as well as Boolean subscriptions?",
    run=run,
)
