"""Is it better to route Boolean subscriptions than their conjunctions, and what does the shortcut save?

Bittner (2008, section 8.2) registers 500,000 Boolean subscriptions on a line of five brokers, and in a second
system the conjunctions of their normal forms.
"""

import numpy as np

from tamis.experiments.auction_network import conjunctions, expressions_of, measure, network
from tamis.experiments.contract import Experiment, Result, Row, Scale
from tamis.pubsub import Options
from tamis.workloads import BookAuction


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Measure the two systems, and the first one without the filtering shortcut."""
    auction = BookAuction(count=scale.of(small=1_500, paper=500_000), seed=int(rng.integers(2**32)))
    events = list(auction.events_json(scale.of(small=400, paper=100_000)))
    boolean = expressions_of(auction)
    conjunctive = [term for expression in boolean for term in conjunctions(expression)]
    found = {}
    for name, expressions, options in [
        ("boolean", boolean, Options()),
        ("conjunctive", conjunctive, Options()),
        ("no shortcut", boolean, Options(shortcut=False)),
    ]:
        simulator = network(expressions, options)
        measure(simulator, events[:100])
        found[name] = measure(simulator, events)
    whole = found["boolean"].milliseconds
    return Result(
        rows=[
            Row("conjunctions per subscription", 4.0, len(conjunctive) / len(boolean)),
            Row(
                "time saved against conjunctive",
                0.155,
                1 - whole / found["conjunctive"].milliseconds,
                "paper: 14 to 17 %",
            ),
            Row(
                "predicates in routing tables / conjunctive",
                25 / 46,
                found["boolean"].predicates / found["conjunctive"].predicates,
                "paper: from its class tables",
            ),
            Row("time saved by the shortcut", None, 1 - whole / found["no shortcut"].milliseconds),
            Row("network load", 0.08, found["boolean"].network_load, "paper: at 200,000"),
        ],
        note=f"{len(boolean):,} subscriptions, {len(events):,} events, a line of 5 brokers",
    )


EXPERIMENT = Experiment(
    name="boolean-routing",
    paper="Bittner 2008",
    figure="section 8.2",
    question="Boolean subscriptions against their conjunctions, and the filtering shortcut",
    run=run,
)
