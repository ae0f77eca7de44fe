"""From how many conjunctions on is it cheaper not to translate? (Bittner 2008, sections 5.5 and 5.6)

The formula gives the turning point; the indexes of this library, built from the same subscriptions, give the
memory that is really used. A class whose number of conjunctions lies above its turning point should take
less memory in Boolean filtering than in counting.
"""

import numpy as np

from tamis_lab.costs import measure, measured_bytes
from tamis_lab.experiments.contract import Experiment, Result, Row, Scale
from tamis_lab.workloads import BookAuction

PUBLISHED = {1: 2.0, 2: 3.19, 3: 3.12}


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Turning points from measured parameters, and the memory of both algorithms."""
    count = scale.of(small=5_000, paper=500_000)
    seed = int(rng.integers(2**32))
    rows = []
    for number, published in PUBLISHED.items():
        table = BookAuction(count=count, classes=(number,), seed=seed).subscriptions_table()
        ids, texts = table["id"].to_pylist(), table["expression"].to_pylist()
        parameters = measure(texts)
        conjunctions = f"the class has {parameters.conjunctions:g} conjunctions"
        rows.append(
            Row(
                f"class {number}: turning point",
                published,
                parameters.turning_point("counting"),
                conjunctions,
            )
        )
        for algorithm in ("boolean", "counting"):
            model = parameters.bytes(algorithm) / count
            measured = measured_bytes(ids, texts, algorithm)[0] / count
            rows.append(
                Row(f"class {number}: {algorithm}, bytes each", None, measured, f"{model:.1f} by the model")
            )
    note = (
        f"{count:,} subscriptions of each class. Ours also keep the id of each subscription and the "
        "spare room of growing arrays, which the formulas leave out; compare the order of the algorithms."
    )
    return Result(rows=rows, note=note)


EXPERIMENT = Experiment(
    name="bittner-turning-points",
    paper="Bittner 2008",
    figure="section 5.5",
    question="From how many conjunctions on does keeping an expression take less memory than translation?",
    run=run,
)
