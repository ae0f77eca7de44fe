"""The operations of each algorithm per event, counted from the subscriptions and a sample of events.

No index of the algorithm is built: the counts follow from the trees of the expressions and from which
predicates the events satisfy. They are averages per event.

| algorithm | operations |
|---|---|
| boolean | a hit for every use of a satisfied predicate; tests of those that reach their minimum |
| counting | a hit for every conjunction, after translation, with a satisfied predicate |
| cluster | a line for every conjunction whose access predicate is satisfied; tests of its others |
| auto | an entry for every satisfied access predicate; tests of those whose second predicate holds, too |

`footprint` is the memory that each algorithm accesses: an access to a new place waits for memory unless the
whole footprint fits into the cache.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tamis._kernel import Expression
from tamis_lab.costs.trees import (
    INTERVAL_RANK,
    Literals,
    Tree,
    Truth,
    conjunctions,
    is_conjunction,
    leaves,
    minimum,
    tests,
    translate,
)
from tamis_lab.workloads.base import EventDict

MAX_CONJUNCTIONS = 4_096
"""What translates to more is refused by the algorithms that translate, unless told otherwise."""

MAX_PREDICATES = 255
"""What has more is refused by Boolean filtering, which counts in bytes."""

SAMPLE = 3_000
"""Subscriptions that are looked at, if there are more; the counts are scaled."""

BYTES_OF_PREDICATE = 150
"""A predicate in its table and index, and the head of the list of what has it."""
BYTES_OF_ROW = 160
"""The data of a subscription apart from its expression; read for each match."""
BYTES_OF_USE = 4
BYTES_OF_ENCODED = 6
"""A predicate in an encoded tree, with its share of the operators."""
BYTES_OF_COUNTERS = 8
"""Hits and size of a conjunction, and the number of its subscription."""
BYTES_OF_LINE = 30
"""The number of a conjunction, and its share of the head of its group; groups are small."""

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True)
class Operations:
    """Averages per event, but for the numbers of subscriptions, conjunctions and refusals."""

    subscriptions: float
    conjunctions: float
    """All conjunctions after translation."""
    attributes: float
    uses: float
    """Predicates of all expressions, as often as they are written."""
    translated_uses: float
    """The same of all conjunctions."""
    literals: float
    """Different predicates and negations."""
    satisfied: float
    """Those of them that are true."""
    intervals: float
    """Those that are true and a BETWEEN, which are found in a tree of intervals."""
    matches: float
    hits: float
    """Boolean filtering: uses of the true predicates."""
    candidates: float
    """Boolean filtering: subscriptions that reach their minimum number of true predicates."""
    evaluations: float
    """Boolean filtering: candidates that are no pure conjunctions."""
    tests: float
    """Boolean filtering: predicates that evaluations look at."""
    translated_hits: float
    """Counting: uses of the true predicates in conjunctions."""
    clusters: float
    """Cluster: groups of conjunctions of one size under a true access predicate."""
    lines: float
    """Cluster: conjunctions under a true access predicate."""
    line_tests: float
    """Cluster: predicates that are looked at in them."""
    entries: float
    """The production index: accesses whose key is true."""
    unit_tests: float
    """The production index: predicates that the code of surviving candidates looks at."""
    untranslated: int = 0
    """Subscriptions that counting and cluster refuse; they are in none of their counts."""
    uncounted: int = 0
    """Subscriptions that Boolean filtering refuses."""

    def footprint(self, algorithm: str) -> float:
        """Bytes that the events of a stream lead to, all together: predicates, lists or groups, rows.

        >>> counted = count_operations(["a = 1 AND (b = 2 OR c = 3)"] * 1_000, [{"a": 1}])
        >>> counted.footprint("counting") > counted.footprint("boolean")
        True
        """
        held = BYTES_OF_PREDICATE * self.literals + BYTES_OF_ROW * self.subscriptions
        match algorithm:
            case "boolean":
                return held + BYTES_OF_USE * self.uses + BYTES_OF_ENCODED * self.uses
            case "counting":
                return held + BYTES_OF_USE * self.translated_uses + BYTES_OF_COUNTERS * self.conjunctions
            case "cluster":
                return held + BYTES_OF_USE * self.translated_uses + BYTES_OF_LINE * self.conjunctions
            case _:
                return held + BYTES_OF_USE * self.uses


def count_operations(
    expressions: Sequence[str | Expression], events: Iterable[EventDict], *, sample: int = SAMPLE
) -> Operations:
    """Count what the events make each algorithm do; of more than `sample` expressions, look at that many.

    >>> rules = ["a = 1 AND (b = 2 OR c = 3)", "a = 1 AND b = 5"]
    >>> counted = count_operations(rules, [{"a": 1, "b": 2}])
    >>> counted.satisfied, counted.hits, counted.translated_hits, counted.candidates, counted.matches
    (2.0, 3.0, 4.0, 1.0, 1.0)
    """
    seen = list(events)
    if not expressions or not seen:
        raise ValueError("there is nothing to count: the model needs at least one subscription and one event")
    chosen = _sample(expressions, sample)
    scale = len(expressions) / len(chosen)
    literals = Literals()
    trees = [literals.tree(expression) for expression in chosen[::2]]
    of_half = len(literals.expressions)
    trees += [literals.tree(expression) for expression in chosen[1::2]]
    truth = literals.truth(seen)
    often = np.maximum(np.mean(truth, axis=0), literals.rarities() / len(seen))

    boolean = _Boolean([tree for tree in trees if len(leaves(tree)) <= MAX_PREDICATES])
    held = [tree for tree in trees if conjunctions(tree) <= MAX_CONJUNCTIONS]
    cluster = _Cluster(held, literals.ranks)
    production = _Production(trees, often)
    is_interval = np.array(literals.ranks) == INTERVAL_RANK
    counts: defaultdict[str, float] = defaultdict(float)
    satisfied_of_half = 0
    for holds in truth:
        counts["satisfied"] += int(holds.sum())
        satisfied_of_half += int(holds[:of_half].sum())
        counts["intervals"] += int((holds & is_interval).sum())
        for algorithm in (boolean, cluster, production):
            for name, count in algorithm.count(holds).items():
                counts[name] += scale * count
    # What is counted once however often it is used grows less than the subscriptions.
    for name in ("satisfied", "intervals"):
        counts[name] *= growth(satisfied_of_half, counts["satisfied"], scale)
    counts["clusters"] *= growth(of_half, len(literals.expressions), scale) / scale
    return Operations(
        subscriptions=len(expressions),
        conjunctions=cluster.size * scale,
        attributes=sum(len(event) for event in seen) / len(seen),
        uses=len(boolean.leaf) * scale,
        translated_uses=cluster.uses * scale,
        literals=len(literals.expressions) * growth(of_half, len(literals.expressions), scale),
        untranslated=round((len(trees) - len(held)) * scale),
        uncounted=round((len(trees) - len(boolean.trees)) * scale),
        **{name: count / len(seen) for name, count in counts.items()},
    )


def _sample(expressions: Sequence[str | Expression], size: int) -> list[str | Expression]:
    """Some of them, always the same. Every n-th would not do: kinds of rules often come in turns."""
    if len(expressions) <= size:
        return list(expressions)
    places = np.random.default_rng(len(expressions)).choice(len(expressions), size, replace=False)
    return [expressions[place] for place in places]


def growth(of_half: float, of_all: float, scale: float) -> float:
    """How many times more different things there are in `scale` times as much, by what doubling brought.

    >>> growth(10, 20, 8), growth(20, 20, 8), growth(0, 0, 8)
    (8.0, 1.0, 1.0)
    """
    if not of_half or scale <= 1:
        return 1.0
    return float(scale ** min(1.0, math.log2(of_all / of_half)))


class _Boolean:
    """Hits, candidates and tests of Boolean filtering, and, because it sees all of them, the matches."""

    def __init__(self, trees: Sequence[Tree]) -> None:
        self.trees = trees
        self.minimum = np.array([minimum(tree) for tree in trees])
        of_each = [leaves(tree) for tree in trees]
        self.owner = np.repeat(np.arange(len(trees)), [len(some) for some in of_each])
        self.leaf = np.array([leaf for some in of_each for leaf in some], dtype=np.int64)
        self.pure = np.array([is_conjunction(tree) for tree in trees], dtype=np.bool_)

    def count(self, holds: Truth) -> dict[str, float]:
        hits = np.bincount(self.owner[holds[self.leaf]], minlength=len(self.trees))
        candidate = hits >= self.minimum
        matches = int((candidate & self.pure).sum())
        looked = evaluations = 0
        true = holds.tobytes()
        for number in np.flatnonzero(candidate & ~self.pure).tolist():
            value, more = tests(self.trees[number], true)
            evaluations += 1
            looked += more
            matches += value
        return {
            "hits": float(hits.sum()),
            "candidates": float(candidate.sum()),
            "evaluations": evaluations,
            "tests": looked,
            "matches": matches,
        }


class _Cluster:
    """Hits in conjunctions after translation, and lines of the cluster algorithm and their tests."""

    def __init__(self, trees: Sequence[Tree], ranks: Sequence[int]) -> None:
        load: Counter[int] = Counter()
        by_width: dict[int, list[tuple[int, ...]]] = {}
        self.size = 0
        for tree in trees:
            for conjunction in translate(tree):
                self.size += 1
                if not conjunction:
                    continue
                access = min(conjunction, key=lambda literal: (ranks[literal], load[literal], literal))
                load[access] += 1
                others = (literal for literal in conjunction if literal != access)
                by_width.setdefault(len(conjunction), []).append((access, *others))
        self.groups: list[np.ndarray[tuple[int, int], np.dtype[np.int64]]] = [
            np.array(group) for group in by_width.values()
        ]
        self.uses = sum(group.size for group in self.groups)
        self.access_of_cluster: Numbers = np.array(
            [access for group in self.groups for access in np.unique(group[:, 0]).tolist()], dtype=np.int64
        )

    def count(self, holds: Truth) -> dict[str, float]:
        hits = lines = looked = 0
        for group in self.groups:
            true = holds[group]
            hits += int(true.sum())
            rest = true[true[:, 0], 1:]
            lines += len(rest)
            if rest.shape[1]:
                first_false = np.where(rest.all(axis=1), rest.shape[1] - 1, rest.argmin(axis=1))
                looked += int((first_false + 1).sum())
        return {
            "translated_hits": hits,
            "clusters": int(holds[self.access_of_cluster].sum()),
            "lines": lines,
            "line_tests": looked,
        }


ALWAYS = -1
"""Stands for a test that is always true."""


@dataclass(frozen=True)
class _Access:
    key: int
    test: int
    suffices: bool


class _Production:
    """Entries and tests of the production index; equal expressions are one, other sharing is left out."""

    def __init__(self, trees: Sequence[Tree], often: np.ndarray[tuple[int], np.dtype[np.float64]]) -> None:
        self.trees = list(dict.fromkeys(trees))
        self.often = np.append(often, 1.0)
        planned = [
            (number, access) for number, tree in enumerate(self.trees) for access in self._plan(tree)[1]
        ]
        self.owner = np.array([number for number, _ in planned], dtype=np.int64)
        self.key: Numbers = np.array([access.key for _, access in planned], dtype=np.int64)
        self.test: Numbers = np.array([access.test for _, access in planned], dtype=np.int64)
        self.suffices = np.array([access.suffices for _, access in planned], dtype=np.bool_)

    def _plan(self, tree: Tree) -> tuple[float, list[_Access]]:
        """How often one of the accesses is true, and the accesses: for AND those of its rarest child."""
        if isinstance(tree, int):
            return float(self.often[tree]), [_Access(tree, ALWAYS, True)]
        of_children = [self._plan(child) for child in tree[1]]
        if tree[0] == "or" or not of_children:
            return sum(cost for cost, _ in of_children), [one for _, some in of_children for one in some]
        rarest = min(range(len(of_children)), key=lambda at: of_children[at][0])
        others = [child for at, child in enumerate(tree[1]) if at != rarest]
        predicates = [child for child in others if isinstance(child, int)]
        cost, accesses = of_children[rarest]
        return cost, [self._with_test(access, predicates, len(others)) for access in accesses]

    def _with_test(self, access: _Access, predicates: list[int], others: int) -> _Access:
        test = min([access.test, *predicates], key=lambda literal: self.often[literal])
        kept = access.test in (test, ALWAYS)
        return _Access(access.key, test, access.suffices and kept and others == int(test != access.test))

    def count(self, holds: Truth) -> dict[str, float]:
        true = np.append(holds, True)
        fired = true[self.key]
        survives = fired & true[self.test] & ~self.suffices
        bits = holds.tobytes()
        looked = sum(
            tests(self.trees[number], bits)[1] for number in np.unique(self.owner[survives]).tolist()
        )
        return {"entries": int(fired.sum()), "unit_tests": looked}
