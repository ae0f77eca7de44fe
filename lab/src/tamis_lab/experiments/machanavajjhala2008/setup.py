"""Shared code of the experiments of Machanavajjhala et al. 2008: data, structures, one measurement.

Time is that of relaxed top-k, as in the paper: one scored interval index for each attribute, and the
Threshold Algorithm over them. With one attribute, that is k calls of `getnext()`.
"""

from dataclasses import dataclass

from tamis.ranked import IntervalIndex
from tamis_lab.workloads import ZipfRegions

PAPER = "Machanavajjhala et al. 2008"
STRUCTURES = {
    "interval-score": "Interval",
    "scored-r": "R",
    "segment": "Segment",
    "ir": "IR",
    "sopt-r": "SOPT-R",
}
"""Those that the paper measures, and what it calls them."""

EVENTS = 1_000
K = 20
TURNS = 3


@dataclass(frozen=True)
class Measured:
    """One structure on one workload."""

    microseconds: float
    reads: float
    """Calls of `getnext()`, all attributes together."""
    megabytes: float


def build(workload: ZipfRegions, structure: str, *, relaxed: bool = True) -> IntervalIndex:
    """An index of all boxes of a workload, built, warm and ready for relaxed or exact questions.

    >>> len(build(ZipfRegions(count=100, dimensions=2), "sopt-r"))
    100
    """
    low, high, weights = workload.boxes()
    names = [f"x{at}" for at in range(workload.dimensions)]
    index = IntervalIndex.from_columns(
        range(workload.count),
        {name: (low[:, at], high[:, at]) for at, name in enumerate(names)},
        priorities=weights.sum(axis=1),
        weights={name: weights[:, at] for at, name in enumerate(names)},
        structure=structure,
    )
    index.time(points(workload, 100), K, relaxed=relaxed, rounds=1)
    return index


def points(workload: ZipfRegions, count: int) -> list[list[float]]:
    """Events as rows of values.

    >>> [len(point) for point in points(ZipfRegions(count=1, dimensions=3), 2)]
    [3, 3]
    """
    return [list(event.values()) for event in workload.events_dicts(count)]


def measure_all(workload: ZipfRegions, k: int = K, events: int = EVENTS) -> dict[str, Measured]:
    """Build all structures, and ask them in turns for the k best of each event; the fastest turn counts.

    >>> sorted(measure_all(ZipfRegions(count=100), events=5))
    ['IR', 'Interval', 'R', 'SOPT-R', 'Segment']
    """
    asked = points(workload, events)
    indexes = {name: build(workload, structure) for structure, name in STRUCTURES.items()}
    turns = [
        {name: index.time(asked, k, relaxed=True, rounds=2) for name, index in indexes.items()}
        for _ in range(TURNS)
    ]
    found = {}
    for name, index in indexes.items():
        microseconds, reads = min(turn[name] for turn in turns)
        found[name] = Measured(microseconds, reads, index.memory["relaxed"] / 1e6)
    return found
