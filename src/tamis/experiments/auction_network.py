"""What the experiments with brokers share: auctions on a simulated network, and the measures of a run.

Bittner (2008, section 8.1) measures how long filtering takes per published event (E), which share of the
other brokers filters an event (N), and how many of the predicates in routing tables are gone (M).
"""

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import tamis
from tamis.pubsub import Options, Simulator, Topology
from tamis.workloads import BookAuction


@dataclass(frozen=True)
class Measures:
    """What one run showed."""

    milliseconds: float
    """Processor time of filtering per published event, in all brokers together."""
    network_load: float
    """The share of other brokers that filter an event."""
    predicates: int
    """In all event routing tables."""


def network(expressions: Sequence[str], options: Options, topology: Topology | None = None) -> Simulator:
    """A network, a line of five unless told, with these subscriptions spread evenly over its brokers."""
    topology = topology or Topology.line(5)
    simulator = Simulator(topology, options, stopwatch=time.thread_time, check=False)
    names = topology.brokers
    clients = [simulator.client(name, "subscriber") for name in names]
    for number, expression in enumerate(expressions):
        simulator.subscribe(clients[number % len(clients)], f"s{number}", expression)
    simulator.run_until_quiet()
    return simulator


def measure(simulator: Simulator, events: Iterable[str]) -> Measures:
    """Publish events at all brokers in turn, and say what that took."""
    names = simulator.topology.brokers
    publishers = [
        simulator.clients.get((name, "publisher")) or simulator.client(name, "publisher") for name in names
    ]
    before = simulator.counters()
    for number, event in enumerate(events):
        simulator.publish(publishers[number % len(publishers)], event)
        simulator.run_until_quiet()
    after = simulator.counters()
    published = after.published - before.published
    filtered = after.filtered - before.filtered
    return Measures(
        1_000 * (after.filter_seconds - before.filter_seconds) / published,
        (filtered - published) / published / max(1, len(names) - 1),
        simulator.routing_predicates,
    )


def expressions_of(auction: BookAuction) -> list[str]:
    """The texts of all subscriptions."""
    texts: list[str] = auction.subscriptions_table()["expression"].to_pylist()
    return texts


def advertisements_of(auction: BookAuction, count: int) -> list[tamis.Expression]:
    """The first advertisements."""
    return [
        tamis.parse(text)
        for table in auction.advertisements(0, count)
        for text in table["expression"].to_pylist()
    ]


def conjunctions(expression: str) -> list[str]:
    """The conjunctions of the disjunctive normal form, as systems without OR have to register them.

    >>> conjunctions("a = 1 AND (b = 2 OR c = 3)")
    ['a = 1 AND b = 2', 'a = 1 AND c = 3']
    """
    terms = _terms(json.loads(tamis.parse(expression).to_json()))
    return [
        str(tamis.Expression.from_json(json.dumps(term[0] if len(term) == 1 else {"and": term})))
        for term in terms
    ]


def _terms(tree: dict[str, Any]) -> list[list[dict[str, Any]]]:
    if "or" in tree:
        return [term for child in tree["or"] for term in _terms(child)]
    if "and" in tree:
        parts = product(*(_terms(child) for child in tree["and"]))
        return [[leaf for term in combination for leaf in term] for combination in parts]
    return [[tree]]
