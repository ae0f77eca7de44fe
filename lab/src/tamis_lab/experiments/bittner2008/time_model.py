"""Does the time model pick the right algorithm? (the wish of Bittner 2008, section 9.3)

The thesis has formulas for memory only. The model of `tamis cost` counts operations without building
anything, and prices them by a calibration on other, smaller workloads. Here are its times next to those of
the algorithms.
"""

import numpy as np

from tamis_lab.costs import TIMED, calibrate, count_operations, index_of
from tamis_lab.costs.timing import CALIBRATION, measured_in_turn
from tamis_lab.experiments.contract import Experiment, Result, Row, Scale
from tamis_lab.workloads import AbeGen, AdsLike, BookAuction, Dense, Equality, Workload

EVENTS = 50
WORTH_CALIBRATING = 1_000
"""Below this many subscriptions a run only shows that it runs, and three small workloads do."""


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Model and measurement of four algorithms on seven workloads that the calibration has not seen."""
    count = max(100, scale.of(small=5_000, paper=20_000))
    prices = calibrate(CALIBRATION if count >= WORTH_CALIBRATING else CALIBRATION[:7:3])
    rows: list[Row] = []
    factors: list[float] = []
    right = 0
    made = _workloads(count, int(rng.integers(2**32)))
    for name, workload in made.items():
        table = workload.subscriptions_table()
        ids, texts = table["id"].to_pylist(), table["expression"].to_pylist()
        events = workload.events_dicts(EVENTS)
        counted = count_operations(texts, events)
        indexes = [(index_of(ids, texts, algorithm)[0], events) for algorithm in TIMED]
        measured = dict(zip(TIMED, measured_in_turn(indexes), strict=True))
        for algorithm, took in measured.items():
            model = prices.microseconds(algorithm, counted)
            factors.append(max(model / took, took / model))
            note = f"{model:,.1f} us by the model, {took:,.1f} us measured"
            rows.append(Row(f"{name}: {algorithm}, model over measured", None, model / took, note))
        right += prices.fastest(counted) == min(measured, key=measured.__getitem__)
    rows += [
        Row("workloads whose fastest algorithm the model picks", None, right, f"of {len(made)}"),
        Row("factor between model and measurement, median", None, float(np.median(factors))),
        Row("factor between model and measurement, most", None, max(factors)),
    ]
    return Result(
        rows=rows,
        note=(
            f"{count:,} subscriptions. Prices come from a calibration just before, which found a cache of "
            f"{prices.cache / 1e6:.2f} MB: a machine that gets slower or faster between the two, because of "
            "other work on it, shows as a factor that all algorithms have in common."
        ),
    )


def _workloads(count: int, seed: int) -> dict[str, Workload]:
    few, some = max(20, count // 200), max(20, count // 100)
    return {
        "equality": Equality(count=4 * count, seed=seed),
        "dense": Dense(count=count, seed=seed),
        f"ABE-Gen, {few} attributes": AbeGen(count=count, seed=seed, attributes=few),
        f"ABE-Gen, {some} attributes": AbeGen(count=count, seed=seed, attributes=some),
        "ABE-Gen, 1,000 attributes": AbeGen(count=count, seed=seed),
        "book auction": BookAuction(count=count, seed=seed),
        "Ads-like": AdsLike(count=count, seed=seed),
    }


EXPERIMENT = Experiment(
    name="time-model",
    paper="Bittner 2008",
    figure="section 9.3",
    question="Does the time model pick the right algorithm, and how far off are its times?",
    run=run,
)
