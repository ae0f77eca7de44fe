"""The shape of the Ads-like workload, measured on what the kernel reads from its text."""

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest

import tamis
from tamis_lab.workloads import AdsLike
from tamis_lab.workloads.ads import DEEPEST, DEPTH_SHARES, target_sharing

COUNT = 20_000


@dataclass
class Shape:
    """Occurrences and distinct subexpressions of every level, sizes and depths of expressions."""

    occurrences: Counter[int] = field(default_factory=Counter)
    distinct: dict[int, set[Any]] = field(default_factory=lambda: {level: set() for level in range(1, 10)})
    sizes: Counter[int] = field(default_factory=Counter)
    depths: Counter[int] = field(default_factory=Counter)
    numbers: dict[Any, int] = field(default_factory=dict)

    def add(self, text: str) -> None:
        level, _, predicates = self._walk(json.loads(tamis.parse(text).to_json()))
        self.sizes[predicates] += 1
        self.depths[level] += 1

    def _walk(self, node: dict[str, Any]) -> tuple[int, int, int]:
        """Level, identity and predicates of a node; the order of children does not matter."""
        operator = next((name for name in ("and", "or") if name in node), None)
        if operator is None:
            level, key, predicates = 1, json.dumps(node), 1
        else:
            children = [self._walk(child) for child in node[operator]]
            level = 1 + max(child[0] for child in children)
            key = (operator, frozenset(child[1] for child in children))
            predicates = sum(child[2] for child in children)
        identity = self.numbers.setdefault(key, len(self.numbers))
        self.occurrences[level] += 1
        self.distinct[level].add(identity)
        return level, identity, predicates

    def sharing(self, level: int) -> float:
        return self.occurrences[level] / len(self.distinct[level])


@pytest.fixture(scope="module")
def shape() -> Shape:
    measured = Shape()
    for text in AdsLike(count=COUNT).subscriptions_table()["expression"].to_pylist():
        measured.add(text)
    return measured


@pytest.mark.thorough
@pytest.mark.parametrize("level", range(1, DEEPEST + 1))
def test_sharing_of_each_level(shape: Shape, level: int) -> None:
    # The pools of the upper levels have some hundred entries at this scale, which leaves room for chance.
    assert shape.sharing(level) == pytest.approx(target_sharing(level), rel=0.1)


def test_one_to_56_predicates(shape: Shape) -> None:
    assert (min(shape.sizes), max(shape.sizes)) == (1, 56)


def test_depth_one_to_nine(shape: Shape) -> None:
    assert sorted(shape.depths) == list(range(1, DEEPEST + 1))
    shares = [shape.depths[depth] / COUNT for depth in range(1, DEEPEST + 1)]
    assert shares == pytest.approx(list(DEPTH_SHARES), abs=0.01)


def test_popular_predicates_are_everywhere() -> None:
    """Single predicates occur in the paper's data up to hundreds of thousands of times."""
    workload = AdsLike(count=COUNT)
    texts = " ".join(workload.subscriptions_table()["expression"].to_pylist())
    most_popular = workload._pools[0][0].as_py()
    assert texts.count(most_popular) > 0.05 * COUNT


def test_events() -> None:
    workload = AdsLike(count=1)
    events = workload.events_dicts(2_000)
    assert sum(map(len, events)) / len(events) == pytest.approx(20, rel=0.02)
    assert len({name for event in events for name in event}) == 122
    assert len(workload.event_schema) == 122
