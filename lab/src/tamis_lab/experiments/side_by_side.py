"""Every algorithm on every kind of workload: the figures of the page on algorithms.

No paper compares all of them. Each takes what it can hold; what it refuses is not in its figures. Matches
must agree among those that refuse nothing.
"""

import numpy as np

import tamis
from tamis_lab.experiments.contract import Experiment, Result, Row, Scale
from tamis_lab.experiments.measuring import Measured, measure
from tamis_lab.workloads import AbeGen, AdsLike, BeGen, BookAuction, Equality, Workload

MOST_REFUSED = 0.5
"""An algorithm that refuses more than this share of a workload has no figures for it."""
EVENTS = 50


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Time of an event, time to add a subscription and bytes of one, for each algorithm and workload."""
    count = scale.of(small=2_000, paper=100_000)
    seed = int(rng.integers(2**32))
    rows: list[Row] = []
    for name, workload in _workloads(count, seed).items():
        events = workload.events_dicts(EVENTS)
        found = {algorithm: measure(workload, algorithm, events=events) for algorithm in tamis.ALGORITHMS}
        complete = {one.matches for one in found.values() if not one.refused}
        if len(complete) > 1:
            raise AssertionError(f"on {name} the algorithms found different numbers of matches: {complete}")
        rows += [
            Row(f"{name}: {algorithm}, us", None, one.microseconds, _note(one, count))
            for algorithm, one in sorted(found.items(), key=lambda item: item[1].microseconds)
            if one.refused <= MOST_REFUSED * count
        ]
    return Result(rows=rows, note=f"{count:,} subscriptions of each workload, {EVENTS} events.")


def _note(one: Measured, count: int) -> str:
    held = count - one.refused
    note = (
        f"{1e6 * one.build_seconds / count:.0f} us to add one, {1e6 * one.megabytes / held:,.0f} bytes each"
    )
    return f"{note}; {one.refused:,} refused" if one.refused else note


def _workloads(count: int, seed: int) -> dict[str, Workload]:
    return {
        "equality": Equality(count=count, seed=seed),
        "BEGen": BeGen(count=count, seed=seed, attribute_alpha=1.0),
        "book auction": BookAuction(count=count, seed=seed),
        "ABE-Gen": AbeGen(count=count, seed=seed, attributes=max(20, count // 100)),
        "Ads-like": AdsLike(count=count, seed=seed),
    }


EXPERIMENT = Experiment(
    name="side-by-side",
    paper="of no paper",
    figure="all algorithms",
    question="How do all algorithms do on each kind of workload?",
    run=run,
)
