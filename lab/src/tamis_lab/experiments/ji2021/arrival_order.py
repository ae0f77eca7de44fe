"""Does memory depend on the order in which expressions arrive? (Ji and Jacobsen 2021, section 6.3)

The paper found that the memory of A-Tree varies with the order of arrival, unless nodes that exist adjust
themselves to those that come. Sorted orders are the hard ones: short expressions first can be reused by long
ones, but long ones first have to be taken apart again.
"""

import numpy as np

from tamis_lab.experiments.contract import Experiment, Result, Row, Scale
from tamis_lab.experiments.ji2021.figure_9 import DESIGNS
from tamis_lab.experiments.measuring import Measured, Options, measure
from tamis_lab.workloads import AdsLike, Equality, Workload

SHUFFLES = 3
NOTE = (
    "{count} expressions in {orders} orders. In the paper memory varies with the order for the first three "
    "designs and is stable with self-adjustment. Here the first two hardly can: the distinct subexpressions "
    "are the same in any order. With reorganisation links depend on what was there before, and adjusting "
    "does not even that out: at most `search_limit` parents of a node are looked at, covers are chosen "
    "greedily, and lists of parents grow in steps. It is a few percent. In the Ads-like workload "
    "subexpressions recur as a whole: there is little to reorganise, and the order hardly matters."
)


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Memory of four designs: as generated, shortest first, longest first, and shuffled."""
    count = scale.of(small=3_000, paper=1_392_196)
    seed = int(rng.integers(2**32))
    rows: list[Row] = []
    for workload in _workloads(count, seed):
        lengths = [len(text) for text in workload.subscriptions_table()["expression"].to_pylist()]
        by_length = np.argsort(lengths, kind="stable").tolist()
        orders = {"as generated": list(range(count)), "shortest first": by_length}
        orders |= {"longest first": by_length[::-1]}
        orders |= {f"shuffled {number + 1}": rng.permutation(count).tolist() for number in range(SHUFFLES)}
        for name, options in DESIGNS.items():
            found = [_built(workload, options, order) for order in orders.values()]
            sizes = [one.megabytes for one in found]
            extremes = ", ".join(f"{what} {size:.3f}" for what, size in zip(orders, sizes, strict=True))
            rows += [
                Row(f"{workload.name}, {name}: memory, MB", None, float(np.median(sizes)), extremes),
                Row(f"{workload.name}, {name}: spread of memory, %", None, _spread(sizes)),
            ]
    return Result(rows=rows, note=NOTE.format(count=f"{count:,}", orders=SHUFFLES + 3))


def _workloads(count: int, seed: int) -> tuple[Workload, ...]:
    few_predicates = Equality(count=count, seed=seed, attributes=12, cardinality=4, event_size=6)
    return AdsLike(count=count, seed=seed), few_predicates


def _built(workload: Workload, options: Options, order: list[int]) -> Measured:
    return measure(workload, "a-tree", options, events=workload.events_dicts(1), order=order)


def _spread(values: list[float]) -> float:
    return 100 * (max(values) - min(values)) / max(values)


EXPERIMENT = Experiment(
    name="ji-arrival-order",
    paper="Ji and Jacobsen 2021",
    figure="section 6.3",
    question="Does the memory of A-Tree depend on the order in which expressions arrive?",
    run=run,
)
