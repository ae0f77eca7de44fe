"""What does asking for the best few save, as subscriptions grow? (Sadoghi and Jacobsen 2012, Figure 8)

On the four data sets: uniform, Zipf, and the shapes of the two from DBLP, publications by author and by
title.
"""

import numpy as np

from tamis_lab.experiments.contract import Experiment, Result, Scale
from tamis_lab.experiments.sadoghi2012.top_k import gains, measure_top_k
from tamis_lab.experiments.sadoghi2012.workloads import Lines, data_sets, load

SHARES = (0.1, 0.4, 1.0)


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Time the best few and all on a tenth, two fifths and all of the subscriptions."""
    count = scale.of(small=10_000, paper=1_000_000)
    seed = int(rng.integers(2**32))
    lines: Lines = {}
    looked_at: Lines = {}
    for share in SHARES:
        for name, workload in data_sets(max(10, round(count * share)), seed).items():
            measure_top_k(name, workload.count, load(workload, weighted=True), lines, looked_at)
    rows = [row for name in data_sets(3, seed) for row in gains(name, lines, looked_at)]
    return Result(
        rows=rows,
        lines=lines,
        axes=("subscriptions", "microseconds per event"),
        note=(
            f"Up to {count:,} subscriptions, a third of that for titles; a match probability of 0.1 %. The "
            "candidates in the notes tell what bounds rule out, the times what that is worth. Gains grow "
            "with the subscriptions, because more match: with 100,000 BE*(1) looks at 9 of 115 (uniform), "
            "35 of 173 (Zipf) and 18 of 84 (authors). With few there is little to leave out, and a heap of "
            "p-nodes costs what it saves. That is so for titles at any size, and why their gain does not "
            "reproduce: an event is one of the publications, and matches only the title it was made of, so "
            "that BE*(5) has to look at whatever BE* looks at. With more matches titles gain, too: see "
            "Figure 9. The published bound by attribute rules out less, and is a sum over the attributes of "
            "the event at every p-node: it takes longer than all matches. k-ind(1) leaves out sizes that "
            "cannot win, of 100,000 subscriptions 410 of 1,193 steps for uniform and 216 of 246 for "
            "authors, which is more than in the paper."
        ),
    )


EXPERIMENT = Experiment(
    name="sadoghi-figure-8",
    paper="Sadoghi and Jacobsen 2012",
    figure="Figure 8",
    question="What does asking for the best few save, as subscriptions grow?",
    run=run,
)
