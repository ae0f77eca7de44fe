"""Every experiment runs at a tiny scale, and those with exact figures give the published ones."""

import math

import numpy as np
import pytest

from tamis_lab.experiments import Result, discover, parse_scale
from tamis_lab.experiments.ji2021.sweeps import ALGORITHMS, default
from tamis_lab.experiments.measuring import measure


def _run(name: str, scale: str = "60") -> Result:
    return discover()[name].run(parse_scale(scale), np.random.default_rng(1))


# Each takes a second or more, and another of its paper does the same kind of work.
LONG = {
    "advertisements-or-subscriptions",
    "boolean-routing",
    "ji-arrival-order",
    "ji-figure-11",
    "ji-figure-11c",
    "ji-figure-13",
    "machanavajjhala-figures-7-8",
    "network-scale",
    "pruning-measures",
    "pruning-processes",
    "sadoghi-figure-7",
    "sadoghi-figure-8",
    "sadoghi-figure-9",
    "sadoghi-table-2",
    "sadoghi-table-3",
    "time-model",
}
EXPERIMENTS = [
    pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in sorted(discover())
]


@pytest.mark.thorough
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_runs_tiny(name: str) -> None:
    result = _run(name)
    assert result.rows
    assert all(math.isfinite(row.ours) for row in result.rows)
    assert all(points for points in result.lines.values())


@pytest.mark.parametrize("name", ["bittner-table-3-2", "bittner-table-3-3"])
def test_counts_of_the_book_auction_are_the_published_ones(name: str) -> None:
    result = _run(name)
    assert [row.ours for row in result.rows] == [row.paper for row in result.rows]


def test_parameters_of_the_cost_model_are_the_published_ones() -> None:
    rows = [row for row in _run("bittner-table-5-2").rows if row.paper is not None]
    assert [row.ours for row in rows] == pytest.approx([row.paper for row in rows], abs=6e-4)


def test_turning_points_are_the_published_ones() -> None:
    rows = [row for row in _run("bittner-turning-points").rows if row.what.endswith("turning point")]
    assert [row.ours for row in rows] == pytest.approx([row.paper for row in rows], abs=6e-3)


def test_all_algorithms_of_a_sweep_find_the_same_matches() -> None:
    workload = default(300, seed=3)
    events = workload.events_dicts(30)
    found = {algorithm: measure(workload, algorithm, events=events) for algorithm in ALGORITHMS}
    complete = {name: one.matches for name, one in found.items() if not one.refused}
    assert "a-tree" in complete
    assert len(set(complete.values())) == 1, complete
    assert complete["scan"] > 0
