"""What do clusters of values do? (Sadoghi and Jacobsen 2012, Figure 7 and columns 4 and 5 of Table III)

Values lie in a few clusters of an attribute, or anywhere. With few and small clusters, ranges overlap,
and k-index walks long lists for nothing: in the paper 20.84 times longer with two clusters than with none,
and 17.44 times with a cluster size of 25 instead of 800 (Zipf). BE* improves on BE by up to 77 % with
clusters and 65 % without.
"""

import numpy as np

from tamis_lab.experiments.contract import Chart, Experiment, Result, Row, Scale
from tamis_lab.experiments.sadoghi2012.workloads import (
    DISTRIBUTIONS,
    LOOKED_AT,
    PLAIN,
    ZIPF,
    Lines,
    begen,
    growth,
    less,
    sweep,
    without_scan,
)

CLUSTERS = (2, 8, 26, None)
NONE = 40
"""Where the chart has the workload without clusters."""
SIZES = (25, 100, 800)


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Time the algorithms over the number of clusters and over their size."""
    count = scale.of(small=8_000, paper=100_000)
    seed = int(rng.integers(2**32))
    by_number = {
        float(clusters or NONE): lambda distribution, clusters=clusters: begen(
            count, seed, distribution, clusters=clusters
        )
        for clusters in CLUSTERS
    }
    by_size = {
        float(size): lambda distribution, size=size: begen(count, seed, distribution, cluster_size=size)
        for size in SIZES
    }
    rows, lines = sweep("number of clusters", by_number)
    more, sizes = sweep("cluster size", by_size)
    rows += more
    rows.append(Row("Zipf: k-ind, two clusters over none", 20.84, 1 / growth(lines, f"k-ind, {ZIPF}")))
    rows.append(Row("Zipf: k-ind, cluster size 25 over 800", 17.44, 1 / growth(sizes, f"k-ind, {ZIPF}")))
    saved = [
        less(ours, other)
        for (_, ours), (_, other) in zip(lines[f"BE*, {ZIPF}"], lines[f"BE, {ZIPF}"], strict=True)
    ]
    rows.append(Row("Zipf: BE* under BE with clusters, % less at most", 77, max(saved[:-1])))
    rows.append(Row("Zipf: BE* under BE without clusters, % less", 65, saved[-1]))
    note = (
        f"{count:,} subscriptions; without clusters at {NONE} on the axis. {LOOKED_AT} The growth of k-index "
        "does not reproduce. With 50,000 Zipf subscriptions it takes 1,274 steps along its lists with two "
        "clusters and 396 with none, 3.2 times as many; 396 is about one for each of the 8 predicates of the "
        "50 subscriptions that match, which nothing can save. And here a range is one entry of a list, where "
        "the original has one for each of its values. BE has most to lose where values are crowded: it "
        "looks at 297 and BE* at 143 with two clusters, at 68 and 60 with none, so that without clusters "
        "there is nothing to save."
    )
    axes = ("clusters of an attribute", "microseconds per event")
    return Result(rows=rows, lines=without_scan(lines), axes=axes, note=note, charts=_charts(sizes))


def _charts(sizes: Lines) -> list[Chart]:
    """One for each distribution; without the scan, beside which nothing else would be seen."""
    return [
        Chart(
            f"Figure 7, cluster size, {distribution}",
            {name: sizes[f"{name}, {distribution}"] for name in PLAIN if name != "scan"},
            ("cluster size", "microseconds per event"),
        )
        for distribution in DISTRIBUTIONS
    ]


EXPERIMENT = Experiment(
    name="sadoghi-figure-7",
    paper="Sadoghi and Jacobsen 2012",
    figure="Figure 7",
    question="What do clusters of values do?",
    run=run,
)
