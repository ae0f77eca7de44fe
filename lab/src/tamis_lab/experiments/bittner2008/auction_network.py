"""Shared code of the experiments with brokers: auctions on a simulated network, and the measures of a run.

Bittner (2008, section 8.1) measures how long filtering takes per published event (E), which share of the
other brokers filters an event (N), how many of the predicates in routing tables are gone (M), and how many
bytes an entry takes by the formulas of his chapter 5.

Fewer subscriptions than in the thesis would match fewer events. So a smaller run also has fewer books, down
to a limit (`MOST_AUCTIONS_PER_BOOK`). There a title has fewer subscriptions than in the thesis: 1,500
subscriptions and 33 books instead of 200,000 and 1,416.
"""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import median
from typing import Any

import tamis
from tamis import relate
from tamis.pubsub.generalise import trees
from tamis_lab.brokers import Broker, Options
from tamis_lab.simulation import Simulator, Topology
from tamis_lab.workloads import BookAuction
from tamis_lab.workloads.book_auction import OperandDistribution

AUCTIONS_PER_BOOK = 100.0
MOST_AUCTIONS_PER_BOOK = 6_000.0
"""Beyond, there would be hardly a book per category."""


@dataclass(frozen=True)
class Measures:
    """What one run showed."""

    milliseconds: float
    """Processor time of filtering per published event, in all brokers together."""
    network_load: float
    """The share of other brokers that filter an event."""
    predicates: int
    """In all event routing tables."""
    prunings: int = 0
    """That led to the entries as they are, in all brokers together."""


def auction_like(
    count: int,
    paper: int,
    seed: int,
    distribution: OperandDistribution = OperandDistribution.UNIFORM,
    auctions_per_book: float = AUCTIONS_PER_BOOK,
) -> BookAuction:
    """Scale the paper's number of subscriptions, and the number of books with it.

    >>> auction_like(5_000, paper=50_000, seed=1).auctions_per_book
    1000.0
    """
    fewer_books = auctions_per_book * max(1.0, paper / count)
    return BookAuction(
        count=count,
        seed=seed,
        distribution=distribution,
        auctions_per_book=min(fewer_books, max(MOST_AUCTIONS_PER_BOOK, auctions_per_book)),
    )


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
        simulator.prunings,
    )


def time_ratios(
    networks: Mapping[str, Simulator], base: str, events: Sequence[str], rounds: int = 7
) -> dict[str, float]:
    """The filter time of each network as a share of that of the base: the median over several rounds.

    In each round all networks filter the same events, one network after the other, so that whatever else the
    machine does at the time slows down all of them.
    """
    for simulator in networks.values():
        measure(simulator, events[: max(1, len(events) // 4)])
    rates: dict[str, list[float]] = {name: [] for name in networks}
    for _ in range(rounds):
        took = {name: measure(simulator, events).milliseconds for name, simulator in networks.items()}
        for name, milliseconds in took.items():
            rates[name].append(milliseconds / took[base])
    return {name: median(shares) for name, shares in rates.items()}


def prune_in_steps(
    simulator: Simulator, events: Sequence[str], shares: Sequence[float]
) -> list[tuple[float, Measures]]:
    """Prune a network further and further; the first number of each is the share of all prunings done.

    >>> from tamis_lab.brokers import PostPruning
    >>> simulator = network(["x = 1 AND y = 2"] * 3, Options(post_pruning=PostPruning()), Topology.line(2))
    >>> steps = prune_in_steps(simulator, ['{"x": 1, "y": 5}'] * 4, [0.0, 1.0])
    >>> [(share, found.predicates) for share, found in steps]
    [(0.0, 6), (1.0, 3)]
    """
    found = []
    for share in shares:
        simulator.prune(share)
        found.append(measure(simulator, events))
    most = found[-1].prunings or 1
    return [(one.prunings / most, one) for one in found]


def boolean_bytes(expressions: Iterable[tamis.Expression]) -> int:
    """What routing entries take in Boolean filtering, by the formula of Bittner (2008, chapter 5).

    >>> boolean_bytes([tamis.parse("a = 1 AND b = 2 AND (c = 3 AND d = 4 OR e = 5 AND f = 6)")])
    68
    """
    queue = relate.PruningQueue()
    for number, expression in enumerate(expressions):
        queue.add(number, expression)
    return queue.bytes + 4 * queue.predicates + 6 * len(queue)


def conjunctive_bytes(expressions: Iterable[tamis.Expression]) -> int:
    """The same for conjunctions in the counting algorithm.

    >>> conjunctive_bytes([tamis.parse("a = 1 AND b = 2 AND c = 3 AND d = 4")] * 2)
    68
    """
    return sum(8 * expression.predicates + 2 for expression in expressions)


def routing_entries(simulator: Simulator) -> list[tamis.Expression]:
    """The entries of all event routing tables, as they are matched."""
    return [entry for broker in simulator.brokers.values() for entry in _entries(broker)]


def different_predicates(simulator: Simulator) -> int:
    """How many predicates the brokers have in their predicate indexes, each counted once a broker.

    >>> different_predicates(network(["x = 1 AND y = 2", "x = 1"], Options(), Topology.line(2)))
    3
    """
    return sum(
        len({json.dumps(leaf, sort_keys=True) for entry in _entries(broker) for leaf in _leaves(entry)})
        for broker in simulator.brokers.values()
    )


def _entries(broker: Broker) -> Iterator[tamis.Expression]:
    for table in broker.spreading.subscriptions_from.values():
        for id in table.matcher:
            yield table.matcher[id]


def _leaves(expression: tamis.Expression) -> Iterator[Any]:
    return trees.leaves(trees.tree_of(expression))


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
