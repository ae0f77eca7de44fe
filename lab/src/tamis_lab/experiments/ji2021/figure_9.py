"""What do identity, reorganisation and self-adjustment cost and bring? (Ji and Jacobsen 2021, Figure 9)

In the paper each step lowers memory and matching time and raises the time of construction, and only with
self-adjustment is the memory the same in whatever order expressions arrive.
"""

import numpy as np

from tamis_lab.experiments.contract import Experiment, Result, Row, Scale
from tamis_lab.experiments.measuring import Options, measure
from tamis_lab.workloads import AdsLike

DESIGNS: dict[str, Options] = {
    "none": {"sharing": False, "reorganize": False, "self_adjust": False},
    "identity": {"reorganize": False, "self_adjust": False},
    "identity, reorganisation": {"self_adjust": False},
    "identity, reorganisation, self-adjustment": {},
}
ORDERS = 3


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Build each design from three orders of the Ads-like workload."""
    count = scale.of(small=5_000, paper=1_392_196)
    ads = AdsLike(count=count, seed=int(rng.integers(2**32)))
    events = ads.events_dicts(100)
    orders = [rng.permutation(count).tolist() for _ in range(ORDERS)]
    rows = []
    for name, options in DESIGNS.items():
        found = [measure(ads, "a-tree", options, events=events, order=order) for order in orders]
        sizes = [one.megabytes for one in found]
        rows += [
            Row(f"{name}: matching, us", None, float(np.median([one.microseconds for one in found]))),
            Row(f"{name}: construction, s", None, float(np.median([one.build_seconds for one in found]))),
            Row(f"{name}: memory, MB", None, float(np.median([one.megabytes for one in found]))),
            Row(f"{name}: memory, spread over orders, %", None, 100 * (max(sizes) - min(sizes)) / max(sizes)),
        ]
    note = (
        f"{count:,} expressions in {ORDERS} random orders; the paper has these as drawings only. Here "
        "identity brings nearly all: subexpressions of the Ads-like workload recur whole, so that "
        "reorganisation finds nothing to put together (the memory is the same), and no step costs time in "
        "construction: less is stored. See ji-arrival-order for a workload in which there is more to find."
    )
    return Result(rows=rows, note=note)


EXPERIMENT = Experiment(
    name="ji-figure-9",
    paper="Ji and Jacobsen 2021",
    figure="Figure 9",
    question="What do identity, reorganisation and self-adjustment cost and bring?",
    run=run,
)
