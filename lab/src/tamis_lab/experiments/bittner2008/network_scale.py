"""Does pruning pay in networks of other shapes, and of up to a thousand brokers?

Bittner (2008, section 8.3.3) prunes 12,500 subscriptions by accuracy and occurrence in lines and stars of
5 to 100 simulated brokers. Trees and random overlays are added here, and from `--scale 10K` on 1,000 brokers.
Every broker knows every subscription, so the largest networks get fewer of them.
"""

from collections.abc import Callable

import numpy as np

from tamis_lab.brokers import Options, PostPruning
from tamis_lab.experiments.bittner2008.auction_network import (
    Measures,
    auction_like,
    expressions_of,
    measure,
    network,
    prune_in_steps,
)
from tamis_lab.experiments.contract import Chart, Experiment, Result, Row, Scale
from tamis_lab.simulation import Topology

SHAPES: dict[str, Callable[[int], Topology]] = {
    "line": Topology.line,
    "star": Topology.star,
    "tree": Topology.tree,
    "random": lambda count: Topology.random(count, seed=1),
}
SHARES = (0.0, 0.5, 0.7, 0.8, 1.0)
MOST_ENTRIES = 12_000
"""Of all brokers together; a hundred times as many at the paper's scale."""

Steps = list[tuple[float, Measures]]


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Prune networks of each shape and size step by step."""
    sizes = _sizes(scale)
    seed = int(rng.integers(2**32))
    found: dict[tuple[str, int], Steps] = {}
    for size in sizes:
        auction = auction_like(_subscriptions(scale, size), 12_500, seed)
        events = list(auction.events_json(scale.of(small=120, paper=5_000)))
        for shape, topology in SHAPES.items():
            options = Options(algorithm="boolean", post_pruning=PostPruning("accuracy-occurrence"))
            simulator = network(expressions_of(auction), options, topology(size))
            measure(simulator, auction.events_json(300))
            found[shape, size] = prune_in_steps(simulator, events, SHARES)
    rows = [row for (shape, size), steps in found.items() for row in _rows(shape, size, steps)]
    note = (
        f"{scale.of(small=1_200, paper=12_500):,} subscriptions in the smallest networks, fewer in larger "
        f"ones; {len(events):,} events a point. Time is that of all brokers together. Brokers of larger "
        "networks have few entries to save time on, and save less of it than in the paper."
    )
    return Result(rows, note=note, charts=_charts(found, sizes))


def _sizes(scale: Scale) -> tuple[int, ...]:
    if scale.name == "paper":
        return (5, 10, 20, 50, 100, 200, 1_000)
    asked = scale.of(small=1_200, paper=0)
    return (5, 20, 100, 1_000) if asked >= 10_000 else (5, 20, 100) if asked >= 1_000 else (5, 20)


def _subscriptions(scale: Scale, size: int) -> int:
    """As many as asked for, unless all brokers together would then have too many entries."""
    most = MOST_ENTRIES * (100 if scale.name == "paper" else 1)
    return max(60, min(scale.of(small=1_200, paper=12_500), most // size))


def _rows(shape: str, size: int, steps: Steps) -> list[Row]:
    whole = steps[0][1]
    _, best = min(steps, key=lambda step: step[1].milliseconds)
    published = shape in ("line", "star") and size <= 100
    name = f"{shape} of {size:,}"
    return [
        Row(
            f"{name}: network load unpruned",
            0.06 if shape == "line" and published else None,
            whole.network_load,
        ),
        Row(
            f"{name}: best time / unpruned",
            0.525 if published else None,
            best.milliseconds / whole.milliseconds,
            "paper: 0.45 to 0.60" if published else "",
        ),
        Row(
            f"{name}: predicates removed at the cut-off",
            0.65 if published else None,
            1 - best.predicates / whole.predicates,
        ),
        Row(
            f"{name}: network load added at the cut-off",
            0.1 if published else None,
            best.network_load - whole.network_load,
        ),
    ]


def _charts(found: dict[tuple[str, int], Steps], sizes: tuple[int, ...]) -> list[Chart]:
    charts = []
    for size in (sizes[0], sizes[-1]):
        lines = {shape: found[shape, size] for shape in SHAPES}
        time = {
            shape: [(at, one.milliseconds / steps[0][1].milliseconds) for at, one in steps]
            for shape, steps in lines.items()
        }
        load = {shape: [(at, one.network_load) for at, one in steps] for shape, steps in lines.items()}
        x_title = "share of all prunings"
        charts += [
            Chart(f"Efficiency, {size:,} brokers", time, (x_title, "share of the unpruned time")),
            Chart(f"Network load, {size:,} brokers", load, (x_title, "share of other brokers")),
        ]
    return charts


EXPERIMENT = Experiment(
    name="network-scale",
    paper="Bittner 2008",
    figure="section 8.3.3",
    question="Does pruning pay in networks of other shapes, and of up to a thousand brokers?",
    run=run,
)
