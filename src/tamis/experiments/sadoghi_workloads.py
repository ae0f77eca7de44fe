"""What the experiments of Sadoghi and Jacobsen 2012 have in common: workloads, algorithms, one measurement.

Every time is taken in the kernel, event by event, and compared within one run. The algorithms are named
as in the paper: BE* is BE*-Tree, BE*-B the same built at once, BE is BE-Tree with the domain halved as
published, and "BE, cells skipped" our BE-Tree, which does not index the space that the paper calls dead.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

import tamis
from tamis.experiments.contract import Row
from tamis.experiments.measuring import Options
from tamis.workloads import BeGen, DblpAuthors, DblpTitles, Workload
from tamis.workloads.sampling import stream

UNIFORM, ZIPF = "uniform", "Zipf"
DISTRIBUTIONS: dict[str, float] = {UNIFORM: 0.0, ZIPF: 1.0}
EVENTS = 100

PLAIN = ("BE*", "BE*-B", "BE", "BE, cells skipped", "k-ind", "scan")
Lines = dict[str, list[tuple[float, float]]]


def begen(count: int, seed: int, distribution: str, **changes: float | None) -> BeGen:
    """BEGen with the paper's defaults and the attributes of a distribution.

    >>> begen(100, 1, ZIPF, clusters=2).clusters
    2
    """
    base = BeGen(count=count, seed=seed, attribute_alpha=DISTRIBUTIONS[distribution])
    return replace(base, **changes)  # type: ignore[arg-type]


def data_sets(count: int, seed: int) -> dict[str, Workload]:
    """The four data sets of Figures 8 and 9: the titles are a third as many, as in the paper.

    >>> sorted(data_sets(30, 1))
    ['Zipf', 'author', 'title', 'uniform']
    """
    return {
        UNIFORM: begen(count, seed, UNIFORM),
        ZIPF: begen(count, seed, ZIPF),
        "author": DblpAuthors(count=count, seed=seed),
        "title": DblpTitles(count=max(1, count // 3), seed=seed),
    }


def options_of(name: str, workload: Workload, match_probability: float = 0.001) -> tuple[str, Options]:
    """The algorithm that the paper calls so, and its options for a workload.

    >>> options_of("BE", BeGen(count=1, cardinality=100))
    ('be-tree', {'match_probability': 0.001, 'domain': 100})
    """
    capacity: dict[str, bool | int | float | str] = {"match_probability": match_probability}
    cardinality = workload.cardinality if isinstance(workload, BeGen) else 26**3
    match name:
        case "BE*":
            return "be-star-tree", capacity
        case "BE*-B":
            return "be-star-tree", {**capacity, "construction": "batch"}
        case "BE* by attribute":
            return "be-star-tree", {**capacity, "summaries": "by-attribute"}
        case "BE":
            return "be-tree", {**capacity, "domain": cardinality}
        case "BE, cells skipped":
            return "be-tree", capacity
        case "k-ind":
            return "k-index", {}
        case _:
            return name, {}


@dataclass(frozen=True)
class Loaded:
    """A workload in memory, with weights if scores are asked for."""

    workload: Workload
    ids: list[int]
    texts: list[str]
    weights: list[dict[str, float]] | None
    events: list[dict[str, int]]


def load(workload: Workload, *, weighted: bool = False, events: int = EVENTS) -> Loaded:
    """Generate a workload once for all algorithms.

    >>> load(BeGen(count=3), events=2).ids
    [0, 1, 2]
    """
    table = workload.subscriptions_table()
    texts = table["expression"].to_pylist()
    weights = None
    if weighted and "weights" in table.column_names:
        weights = [dict(row) for row in table["weights"].to_pylist()]
    elif weighted:
        weights = weights_by_rarity(texts, workload.seed)
    return Loaded(workload, table["id"].to_pylist(), texts, weights, workload.events_dicts(events))


def weights_by_rarity(texts: Sequence[str], seed: int) -> list[dict[str, float]]:
    """The weight model of the paper for texts: rare attributes weigh much, with a little noise.

    >>> weights_by_rarity(["a = 1 AND b = 2", "a = 3"], seed=1)[1]["a"] < 0.5
    True
    """
    named = [re.findall(r"(\w+) =", text) for text in texts]
    names, counts = np.unique([name for row in named for name in row], return_counts=True)
    inverse = dict(zip(names.tolist(), (counts.min() / counts).tolist(), strict=True))
    rng = stream(seed, "weights-by-rarity")
    return [
        {name: min(inverse[name], rng.normal(0.8 * inverse[name], 0.05 * inverse[name])) for name in row}
        for row in named
    ]


@dataclass(frozen=True)
class Timed:
    """An index and what it took."""

    build_seconds: float
    index: tamis.Index
    events: list[dict[str, int]]

    def microseconds(self, k: int | None = None) -> float:
        """Mean time of an event: for all matches, or for the best k by relevance.

        >>> timed(load(BeGen(count=10)), "BE*").microseconds(k=1) > 0
        True
        """
        if k is None:
            times = self.index.time_events(self.events, "count", repeats=5)
        else:
            times = self.index.time_events(self.events, "top_k", k=k, score="relevance", repeats=5)
        return float(np.mean(times)) / 1_000

    def candidates(self, k: int | None = None) -> float:
        """Subscriptions that an event makes the index look at, on average: counted, whatever the machine.

        >>> timed(load(BeGen(count=10)), "scan").candidates()
        10.0
        """
        self.index.reset_stats()
        for event in self.events:
            if k is None:
                self.index.count(event)
            else:
                self.index.top_k(event, k=k, score="relevance")
        return float(self.index.stats()["observed"]["candidates_per_event"])

    def matches(self) -> int:
        """All matches of all events.

        >>> timed(load(BeGen(count=10)), "scan").matches() >= 0
        True
        """
        return sum(self.index.count(event) for event in self.events)


def timed(loaded: Loaded, name: str, match_probability: float = 0.001) -> Timed:
    """Build one of the paper's algorithms.

    >>> len(timed(load(BeGen(count=10)), "k-ind").index)
    10
    """
    algorithm, options = options_of(name, loaded.workload, match_probability)
    index = tamis.Index(algorithm=algorithm, options=options)
    started = time.perf_counter()
    index.add_many(loaded.ids, loaded.texts, weights=loaded.weights)
    built = time.perf_counter() - started
    # Fewer events are enough where every event looks at everything.
    return Timed(built, index, loaded.events[:10] if name == "scan" else loaded.events)


def less(ours: float, other: float) -> float:
    """By how many per cent a time is less than another.

    >>> less(35.0, 100.0)
    65.0
    """
    return 100 * (1 - ours / other)


def sweep(
    what: str, made: Mapping[float, Callable[[str], Workload]], names: Sequence[str] = PLAIN
) -> tuple[list[Row], Lines]:
    """Time algorithms over the values of one parameter, for uniform and Zipf attributes.

    Returns how much less BE* takes than the others on average over the values, what it and BE look at, which
    explains most of that, and all times.
    """
    rows: list[Row] = []
    lines: Lines = {}
    for distribution in DISTRIBUTIONS:
        looked_at: Lines = {}
        for value, workload in made.items():
            loaded = load(workload(distribution))
            for name in names:
                found = timed(loaded, name)
                lines.setdefault(f"{name}, {distribution}", []).append((value, found.microseconds()))
                if name in EXPLAINED:
                    looked_at.setdefault(name, []).append((value, found.candidates()))
                if name == "BE*":
                    matches = found.matches() / len(found.events)
                    looked_at.setdefault("any, that match", []).append((value, matches))
        rows += savings(what, distribution, lines)
        rows += explanations(what, distribution, looked_at)
    return rows, lines


def without_scan(lines: Lines) -> Lines:
    """The lines for a chart: a scan takes a thousand times longer, and beside it nothing else is seen.

    >>> list(without_scan({"BE*, Zipf": [], "scan, Zipf": []}))
    ['BE*, Zipf']
    """
    return {name: points for name, points in lines.items() if not name.startswith("scan, ")}


LOOKED_AT = (
    "Rows of candidates count the subscriptions that were looked at, on any machine the same. What matches "
    "has to be looked at by all; what an algorithm looks at beside that is what another can save."
)
"""How to read the rows of `explanations`."""

EXPLAINED = ("BE*", "BE", "k-ind")


def explanations(what: str, distribution: str, looked_at: Lines) -> list[Row]:
    """How many subscriptions each of three algorithms looks at, on average and for every value.

    What matches has to be looked at: an algorithm can save the others only.

    >>> explanations("x", UNIFORM, {"BE": [(1, 4.0), (9, 6.0)]})
    [Row(what='uniform, x: candidates of BE', paper=None, ours=5.0, note='1: 4; 9: 6')]
    """
    return [
        Row(
            f"{distribution}, {what}: candidates of {name}",
            None,
            float(np.mean([count for _, count in points])),
            "; ".join(f"{value:,g}: {count:.0f}" for value, count in points),
        )
        for name, points in looked_at.items()
    ]


SAVINGS = {
    ("BE", UNIFORM): 35.0,
    ("BE", ZIPF): 65.0,
    ("k-ind", UNIFORM): 60.0,
    ("k-ind", ZIPF): 90.0,
}
"""By how many per cent less time BE* takes, on average over all experiments of the paper."""


def savings(what: str, distribution: str, lines: Lines) -> list[Row]:
    """How much less BE* takes than each other algorithm, as the mean over the points of its line.

    >>> savings("x", UNIFORM, {"BE*, uniform": [(1, 1.0)], "BE, uniform": [(1, 2.0)]})
    [Row(what='uniform, x: BE* under BE, % less', paper=35.0, ours=50.0, note='')]
    """
    ours = lines[f"BE*, {distribution}"]
    rows = []
    for line, points in lines.items():
        name = line.removesuffix(f", {distribution}")
        if name not in (line, "BE*"):
            mean = float(np.mean([less(a, b) for (_, a), (_, b) in zip(ours, points, strict=True)]))
            rows.append(
                Row(
                    f"{distribution}, {what}: BE* under {name}, % less",
                    SAVINGS.get((name, distribution)),
                    mean,
                )
            )
    return rows


def growth(lines: Lines, line: str) -> float:
    """How many times longer the last point of a line takes than the first.

    >>> growth({"a": [(1, 2.0), (9, 3.0)]}, "a")
    1.5
    """
    return lines[line][-1][1] / lines[line][0][1]
