"""How long do k calls of `getnext()` take? (Machanavajjhala et al. 2008, Figure 6)"""

import numpy as np

from tamis.experiments.contract import Experiment, Result, Row, Scale
from tamis.experiments.machanavajjhala_setup import EVENTS, PAPER, STRUCTURES, build, points
from tamis.workloads import ZipfRegions

CALLS = (1, 5, 20, 50, 100, 500, 1_000, 5_000)
BASELINES = {"interval-endpoint": "Interval by endpoint", "r": "R by place", "max-r": "R with best scores"}
"""Of the first two the paper says only that they are orders of magnitude slower; the third it names."""


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Time every structure over one attribute, for growing k."""
    count = max(100, scale.of(small=20_000, paper=1_000_000))
    workload = ZipfRegions(count=count, seed=int(rng.integers(2**32)))
    events = points(workload, EVENTS if scale.name == "paper" else EVENTS // 5)
    calls = [k for k in CALLS if k <= count // 4]
    lines: dict[str, list[tuple[float, float]]] = {}
    for structure, name in (STRUCTURES | BASELINES).items():
        index = build(workload, structure)
        lines[name] = [(k, index.time(events, k, relaxed=True)[0]) for k in calls]
    time = {name: dict(points) for name, points in lines.items()}
    first, last = calls[0], calls[-1]
    others = [name for name in STRUCTURES.values() if name != "SOPT-R"]

    def over(name: str, other: str, k: int) -> float:
        return time[name][k] / time[other][k]

    most = max(over(name, "SOPT-R", k) for name in others for k in calls)
    rows = [
        *(Row(f"{name}: {k:,} calls, us", None, time[name][k]) for name in lines for k in (first, 20, last)),
        Row("slowest structure over SOPT-R, most", 2.0, most, "up to twice"),
        Row(
            f"fastest other over SOPT-R, {first} call",
            None,
            min(over(name, "SOPT-R", first) for name in others),
        ),
        Row("IR over Segment, 20 calls", 1.0, over("IR", "Segment", 20), "about the same"),
        Row("Interval over SOPT-R, 20 calls", None, over("Interval", "SOPT-R", 20), "the slowest there"),
        Row(f"R over SOPT-R, {last:,} calls", None, over("R", "SOPT-R", last), "worse with more calls there"),
        *(
            Row(f"{name} over SOPT-R, 20 calls", None, over(name, "SOPT-R", 20))
            for name in BASELINES.values()
        ),
    ]
    note = f"{count:,} intervals, {len(events):,} events. The paper gives this figure as a drawing only."
    return Result(rows=rows, lines=lines, axes=("calls of getnext()", "us"), note=note)


EXPERIMENT = Experiment(
    name="machanavajjhala-figure-6",
    paper=PAPER,
    figure="Figure 6",
    question="How long do k calls of getnext() take on each scored interval index?",
    run=run,
)
