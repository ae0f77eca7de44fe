"""The sweeps over ABE-Gen that Figures 11, 12 and 13 of Ji and Jacobsen 2021 have in common.

Each varies one parameter of the workload and leaves the others at their defaults. An algorithm that refuses
expressions as too large, at a value of the parameter, has no point there: that is where it ran out of memory
in the paper.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tamis_lab.experiments.contract import Row
from tamis_lab.experiments.measuring import Measured, measure, refusals
from tamis_lab.workloads import AbeGen

ALGORITHMS = ("a-tree", "bdd", "translation", "boolean", "interval-id", "dewey-id", "counting", "scan")
NAMES = {"count": "expressions", "subexpression_alpha": "exponent of sharing", "event_size": "event size"}
"""Of parameters, where a chart has another than the generator."""
Lines = dict[str, list[tuple[float, float]]]


def default(count: int, seed: int, **changes: float) -> AbeGen:
    """ABE-Gen with as many predicates per possible predicate as the paper has, and one change.

    >>> default(1_000, 1, depth=4).depth
    4
    """
    return AbeGen(**{"count": count, "seed": seed, "attributes": max(20, count // 1_000), **changes})  # type: ignore[arg-type]


def sweep(
    parameter: str,
    values: Sequence[float],
    count: int,
    rng: np.random.Generator,
    *,
    figure: Callable[[Measured], float],
    unit: str,
) -> tuple[list[Row], Lines]:
    """Measure every algorithm at every value; rows, and lines if there are several."""
    seed = int(rng.integers(2**32))
    lines: Lines = {}
    rows: list[Row] = []
    for value in values:
        workload = default(**{"count": count, "seed": seed, parameter: value})  # type: ignore[arg-type]
        events = workload.events_dicts(50)
        for algorithm in ALGORITHMS:
            found = measure(workload, algorithm, events=events)
            what = f"{parameter} {value:g}: {algorithm}, {unit}"
            rows.append(Row(what, None, figure(found), refusals(found, workload.count)))
            if not found.refused and len(values) > 1:
                lines.setdefault(f"{algorithm}, {NAMES.get(parameter, parameter)}", []).append(
                    (value, figure(found))
                )
    return rows, lines


def sweeps(
    parameters: Mapping[str, Sequence[float]],
    count: int,
    rng: np.random.Generator,
    *,
    figure: Callable[[Measured], float],
    unit: str,
) -> tuple[list[Row], Lines]:
    """Sweep several parameters, one after another; their lines have the name of the parameter at the end."""
    rows: list[Row] = []
    lines: Lines = {}
    for parameter, values in parameters.items():
        more, drawn = sweep(parameter, values, count, rng, figure=figure, unit=unit)
        rows += more
        lines |= drawn
    return rows, lines
