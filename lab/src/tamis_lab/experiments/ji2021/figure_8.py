"""What do sharing and many children per node bring? (Ji and Jacobsen 2021, Figure 8)

Three designs of A-Tree against a scan: a multitree without sharing, a binary tree with sharing, and a
multitree with sharing. The paper gives no numbers in its text; its order is scan, without sharing, binary,
and fastest the multitree with sharing.
"""

import numpy as np

from tamis_lab.experiments.contract import Experiment, Result, Row, Scale
from tamis_lab.experiments.measuring import Options, measure
from tamis_lab.workloads import AbeGen, AdsLike

DESIGNS: dict[str, tuple[str, Options | None]] = {
    "scan": ("scan", None),
    "multitree without sharing": ("a-tree", {"sharing": False, "reorganize": False, "self_adjust": False}),
    "binary tree with sharing": ("a-tree", {"shape": "binary"}),
    "multitree with sharing": ("a-tree", None),
}
ALPHAS = (0.2, 0.6, 1.0)


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Time the designs on ABE-Gen with more and more sharing, and on the Ads-like workload."""
    count = scale.of(small=5_000, paper=1_000_000)
    seed = int(rng.integers(2**32))
    lines: dict[str, list[tuple[float, float]]] = {name: [] for name in DESIGNS}
    for alpha in ALPHAS:
        synthetic = AbeGen(
            count=count, seed=seed, subexpression_alpha=alpha, attributes=max(20, count // 1_000)
        )
        events = synthetic.events_dicts(100)
        for name, (algorithm, options) in DESIGNS.items():
            lines[name].append((alpha, measure(synthetic, algorithm, options, events=events).microseconds))
    ads = AdsLike(count=count, seed=seed)
    events = ads.events_dicts(100)
    rows = [Row(f"ABE-Gen: {name}, us", None, points[1][1], "exponent 0.6") for name, points in lines.items()]
    for name, (algorithm, options) in DESIGNS.items():
        rows.append(
            Row(f"Ads-like: {name}, us", None, measure(ads, algorithm, options, events=events).microseconds)
        )
    return Result(
        rows=rows,
        lines=lines,
        axes=("exponent of the distribution of subexpressions", "microseconds per event"),
        note=(
            f"{count:,} expressions. Order in the paper, slowest first: {', '.join(DESIGNS)}. So it is here "
            "on the Ads-like workload; on ABE-Gen the two in the middle came in either order, a fifth "
            "apart."
        ),
    )


EXPERIMENT = Experiment(
    name="ji-figure-8",
    paper="Ji and Jacobsen 2021",
    figure="Figure 8",
    question="What do sharing and many children per node bring?",
    run=run,
)
