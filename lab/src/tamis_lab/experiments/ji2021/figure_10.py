"""What do zero suppression and propagation on demand bring? (Ji and Jacobsen 2021, Figure 10)"""

import numpy as np

from tamis_lab.experiments.contract import Experiment, Result, Row, Scale
from tamis_lab.experiments.measuring import Options, measure
from tamis_lab.workloads import AbeGen, AdsLike, Workload

DESIGNS: dict[str, Options] = {
    "neither": {"zero_suppression": False, "propagation_on_demand": False},
    "zero suppression": {"propagation_on_demand": False},
    "propagation on demand": {"zero_suppression": False},
    "both": {},
}


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Time A-Tree with each switch on and off."""
    count = scale.of(small=10_000, paper=1_000_000)
    seed = int(rng.integers(2**32))
    workloads: dict[str, Workload] = {
        "ABE-Gen": AbeGen(count=count, seed=seed, attributes=max(20, count // 1_000)),
        "Ads-like": AdsLike(count=count, seed=seed),
    }
    rows = []
    for name, workload in workloads.items():
        events = workload.events_dicts(200)
        for design, options in DESIGNS.items():
            found = measure(workload, "a-tree", options, events=events)
            rows.append(Row(f"{name}: {design}, us", None, found.microseconds))
    note = (
        f"{count:,} expressions; the paper has these figures as drawings only, and both switches help in it. "
        "Without zero suppression, propagation on demand is used only where no negation is above: anything "
        "else would miss matches."
    )
    return Result(rows=rows, note=note)


EXPERIMENT = Experiment(
    name="ji-figure-10",
    paper="Ji and Jacobsen 2021",
    figure="Figure 10",
    question="What do zero suppression and propagation on demand bring?",
    run=run,
)
