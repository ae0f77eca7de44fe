"""A-Tree where there is nothing but conjunctions (Ji and Jacobsen 2021, abstract).

The abstract claims that A-Tree matches faster than state-of-the-art conjunctive algorithms even on
conjunctive workloads; the text has no figure for it. Here those algorithms and A-Tree match conjunctions. A
conjunction is one node above its predicates, so there is little to share but the predicates themselves.
"""

import numpy as np

from tamis_lab.experiments.contract import Experiment, Result, Row, Scale
from tamis_lab.experiments.measuring import measure, refusals
from tamis_lab.workloads import Conjunctive, Equality, Workload

ALGORITHMS = ("a-tree", "cluster", "propagation", "counting", "k-index", "be-tree", "be-star-tree", "auto")


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Time and memory of each algorithm on two workloads of conjunctions, and their nodes in A-Tree."""
    count = scale.of(small=5_000, paper=1_000_000)
    seed = int(rng.integers(2**32))
    rows: list[Row] = []
    for workload in _workloads(count, seed):
        events = workload.events_dicts(100)
        found = {name: measure(workload, name, events=events) for name in ALGORITHMS}
        tree = found["a-tree"]
        for name, one in found.items():
            note = refusals(one, count) or f"{one.microseconds / tree.microseconds:.2f} times a-tree"
            rows.append(Row(f"{workload.name}: {name}, us", None, one.microseconds, note))
        rows += [Row(f"{workload.name}: {name}, MB", None, one.megabytes) for name, one in found.items()]
        rows.append(Row(f"{workload.name}: nodes of a-tree for each expression", None, tree.nodes / count))
    note = (
        f"{count:,} conjunctions. The paper claims that A-Tree is fastest, without figures. It looks at a "
        "conjunction if its access predicate is true, as cluster and propagation do; what it adds, nodes for "
        "what is shared, finds little here and costs time and memory."
    )
    return Result(rows=rows, note=note)


def _workloads(count: int, seed: int) -> tuple[Workload, ...]:
    return Equality(count=count, seed=seed), Conjunctive(count=count, seed=seed)


EXPERIMENT = Experiment(
    name="ji-conjunctive",
    paper="Ji and Jacobsen 2021",
    figure="abstract",
    question="Is A-Tree faster than conjunctive algorithms where all expressions are conjunctions?",
    run=run,
)
