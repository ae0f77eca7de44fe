"""Does pruning do to brokers that are processes what it does to simulated ones?

The thesis (Bittner 2008, section 8.3.1) ran on five machines. Here each broker is a process of its own, and
the same subscriptions and events go through brokers of this process. What clients hear must not change, and
events must travel the same way.
"""

from dataclasses import dataclass

import numpy as np

from tamis_lab.brokers import Options, PostPruning
from tamis_lab.experiments.bittner2008.auction_network import auction_like, expressions_of, measure, network
from tamis_lab.experiments.contract import Experiment, Result, Row, Scale
from tamis_lab.simulation import Simulator, Topology
from tamis_lab.simulation.processes import BrokerProcess

PRUNED = Options(post_pruning=PostPruning("accuracy-occurrence", cut_off=0.9, window=10))


@dataclass(frozen=True)
class Traffic:
    """What a line of brokers did with the measured events."""

    network_load: float
    notified: float
    milliseconds: float
    """Of filtering, per published event, in all brokers together, by the clock on the wall."""


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Publish the same events on brokers that prune and on brokers that do not."""
    count = scale.of(small=300, paper=5_000)
    brokers = 5 if count >= 300 else 3
    auction = auction_like(count, 200_000, int(rng.integers(2**32)))
    expressions = expressions_of(auction)
    events = list(auction.events_json(2 * count))
    whole = _run_line(brokers, Options(), expressions, events)
    pruned = _run_line(brokers, PRUNED, expressions, events)
    simulator = network(expressions, Options(), Topology.line(brokers))
    simulated = measure(simulator, events[count:]).network_load
    rows = [
        Row("network load unpruned", 0.08, whole.network_load),
        Row("network load pruned", 0.17, pruned.network_load, "paper: after all pruning, by occurrence"),
        Row("network load simulated, unpruned", None, simulated),
        Row(
            "network load, processes / simulated", None, whole.network_load / simulated if simulated else 1.0
        ),
        Row("notifications, pruned / unpruned", 1.0, pruned.notified / max(1.0, whole.notified)),
        Row("filter time, pruned / unpruned", None, pruned.milliseconds / whole.milliseconds),
    ]
    note = (
        f"{brokers} processes in a line, {count:,} subscriptions, {count:,} events; production index. The "
        "loads of the paper are those of its many subscriptions. What is checked here is that processes "
        "forward what the simulator says, and that clients hear the same with pruning and without."
    )
    return Result(rows, note=note)


def _run_line(brokers: int, options: Options, expressions: list[str], events: list[str]) -> Traffic:
    line = Simulator(Topology.line(brokers), options, check=False, make=BrokerProcess)
    try:
        return _drive(line, expressions, events)
    finally:
        for broker in line.brokers.values():
            broker.close()  # type: ignore[attr-defined]


def _drive(line: Simulator, expressions: list[str], events: list[str]) -> Traffic:
    names = line.topology.brokers
    clients = [line.client(name, f"client-{name}") for name in names]
    for number, expression in enumerate(expressions):
        line.subscribe(clients[number % len(clients)], f"s{number}", expression)
    line.run_until_quiet()
    half = len(events) // 2
    counted = []
    for part in (events[:half], events[half:]):
        for number, event in enumerate(part):
            line.publish(clients[number % len(clients)], event)
            line.run_until_quiet()
        counted.append(line.counters().as_dict())
    grown = {name: counted[1][name] - counted[0][name] for name in counted[1]}
    published = grown["published"]
    return Traffic(
        (grown["filtered"] - published) / published / (len(names) - 1),
        grown["notified"],
        1_000 * grown["filter_seconds"] / published,
    )


EXPERIMENT = Experiment(
    name="pruning-processes",
    paper="Bittner 2008",
    figure="section 8.3.1, on processes",
    question="Does pruning do to brokers that are processes what it does to simulated ones?",
    run=run,
)
