"""Shared code of the experiments of Sadoghi and Jacobsen 2012: workloads, algorithms, one measurement.

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
from tamis_lab.experiments.contract import Row
from tamis_lab.experiments.measuring import Options
from tamis_lab.workloads import BeGen, DblpAuthors, DblpTitles, Workload
from tamis_lab.workloads.sampling import Ints, stream

UNIFORM, ZIPF = "uniform", "Zipf"
DISTRIBUTIONS: dict[str, float] = {UNIFORM: 0.0, ZIPF: 1.0}
EVENTS = 100
ROUNDS, TURNS = 2, 5
"""Rounds of all events in a turn, and turns."""

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

    def nanoseconds(self, k: int | None = None) -> Ints:
        """Of each event, for all matches or for the best k by relevance: the least of a few rounds.

        >>> len(timed(load(BeGen(count=10), events=3), "BE*").nanoseconds(k=1))
        3
        """
        if k is None:
            return self.index.time_events(self.events, "count", repeats=ROUNDS)
        return self.index.time_events(self.events, "top_k", k=k, score="relevance", repeats=ROUNDS)

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
    return Timed(built, index, loaded.events[:3] if name == "scan" else loaded.events)


def in_turns(asked: Sequence[tuple[Timed, int | None]]) -> list[float]:
    """Mean microseconds of an event for each index and k, taken in turns.

    What is compared is measured side by side, again and again, and of each event the least counts: other
    work on the machine, which can make the same work take three times as long, slows down all or none then.

    >>> tree = timed(load(BeGen(count=10)), "BE*")
    >>> all(time > 0 for time in in_turns([(tree, None), (tree, 1)]))
    True
    """
    least = [one.nanoseconds(k) for one, k in asked]
    for _ in range(TURNS - 1):
        least = [np.minimum(times, one.nanoseconds(k)) for times, (one, k) in zip(least, asked, strict=True)]
    return [float(np.mean(times)) / 1_000 for times in least]


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

    All values and algorithms of a distribution are timed in turns. Returns how much less BE* takes than the
    others on average over the values, what it and BE look at, which explains most of that, the nodes of the
    trees, and all times.
    """
    rows: list[Row] = []
    lines: Lines = {}
    for distribution in DISTRIBUTIONS:
        built = {
            (name, value): timed(loaded, name)
            for value, workload in made.items()
            for loaded in [load(workload(distribution))]
            for name in names
        }
        times = in_turns([(found, None) for found in built.values()])
        looked_at: Lines = {}
        for ((name, value), found), took in zip(built.items(), times, strict=True):
            lines.setdefault(f"{name}, {distribution}", []).append((value, took))
            if name in EXPLAINED:
                looked_at.setdefault(f"candidates of {name}", []).append((value, found.candidates()))
            if name == "BE*":
                matches = found.matches() / len(found.events)
                looked_at.setdefault("candidates of any, that match", []).append((value, matches))
            if name in TREES:
                nodes = found.index.stats()["c_nodes"]
                looked_at.setdefault(f"c-nodes of {name}", []).append((value, nodes))
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
TREES = ("BE*", "BE")


def explanations(what: str, distribution: str, counted: Lines) -> list[Row]:
    """What was counted, on average and for every value: subscriptions that were looked at, or nodes.

    What matches has to be looked at: an algorithm can save the others only.

    >>> explanations("x", UNIFORM, {"candidates of BE": [(1, 4.0), (9e6, 6.0)]})
    [Row(what='uniform, x: candidates of BE', paper=None, ours=5.0, note='1: 4; 9M: 6')]
    """
    return [
        Row(
            f"{distribution}, {what}: {name}",
            None,
            float(np.mean([count for _, count in points])),
            "; ".join(f"{short(value)}: {count:,.0f}" for value, count in points),
        )
        for name, points in counted.items()
    ]


def short(value: float) -> str:
    """A round number as it is read.

    >>> short(250_000_000), short(2_500), short(66)
    ('250M', '2,500', '66')
    """
    return f"{value / 1e6:g}M" if value >= 1e6 else f"{value:,g}"


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
