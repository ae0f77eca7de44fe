"""Every published algorithm agrees with the oracle on what it can hold, and refuses the rest.

The kernel's own tests try every option on small expressions; here larger ones go through the public face.
"""

import copy
import pickle
from typing import Any

import pytest

import strategies
import tamis
from events import to_dict
from oracle import Node, evaluate
from tamis import UnsupportedExpressionError
from writer import to_text

DEPTHS = {4: 25, 2: 40, 1: 40, 0: 30}  # depth -> how many expressions
EVENTS = 40

CLASSIC = [name for name in tamis.ALGORITHMS if name != "auto"]
OPTIONS: list[tuple[str, dict[str, bool | int | str]]] = [
    *((name, {}) for name in CLASSIC),
    ("a-tree", {"sharing": False}),
    ("a-tree", {"shape": "binary"}),
    ("a-tree", {"reorganize": False, "self_adjust": False}),
    ("a-tree", {"zero_suppression": False, "propagation_on_demand": False}),
    ("a-tree", {"zero_suppression": False}),
    ("a-tree", {"published_ids": True, "search_limit": 4}),
    ("boolean", {"encoding": "width-prefixed", "minimum": "semantic", "order_children": True}),
    ("boolean", {"type_attribute": "s"}),
    ("counting", {"max_conjunctions": 16, "predicates": "evaluate-each"}),
    ("bdd", {"max_nodes": 50}),
    ("be-tree", {"leaf_capacity": 1, "loss": "selectivity"}),
    ("be-star-tree", {"leaf_capacity": 2, "split": "approximate", "max_growth": 2}),
    ("interval", {"structure": "sopt-r", "branching": 2}),
    ("interval", {"structure": "segment"}),
]


@pytest.fixture(scope="module")
def nodes() -> list[Node]:
    return [
        node
        for depth, count in DEPTHS.items()
        for node in strategies.collect(strategies.expressions(depth=depth), count)
    ]


@pytest.fixture(scope="module")
def events() -> list[dict[str, Any]]:
    points = strategies.collect(strategies.events(), EVENTS)
    return [*points, *strategies.collect(strategies.events(intervals=True), EVENTS // 2)]


@pytest.fixture(scope="module")
def truths(nodes: list[Node], events: list[dict[str, Any]]) -> list[list[bool]]:
    """For each event, which of the expressions are true."""
    return [[evaluate(node, event).can_be_true for node in nodes] for event in events]


def size(index: tamis.Index) -> tuple[Any, ...]:
    stats = index.stats()
    return len(index), stats.get("predicates"), stats.get("nodes"), stats.get("conjunctions")


def is_held(index: tamis.Index, at: int, node: Node) -> bool:
    """Adds an expression if the algorithm can hold it."""
    try:
        index.add(at, to_text(node))
    except UnsupportedExpressionError:
        return False
    return True


def add_all(index: tamis.Index, nodes: list[Node]) -> set[int]:
    """Adds what the algorithm can hold; a refusal changes nothing."""
    held, before = set(), size(index)
    for at, node in enumerate(nodes):
        if is_held(index, at, node):
            held.add(at)
            before = size(index)
        else:
            assert size(index) == before
    return held


@pytest.mark.parametrize(
    ("algorithm", "options"), OPTIONS, ids=lambda given: given if isinstance(given, str) else str(given)
)
def test_agreement_after_additions_and_removals(
    algorithm: str,
    options: dict[str, bool | int | str],
    nodes: list[Node],
    events: list[dict[str, Any]],
    truths: list[list[bool]],
) -> None:
    index = tamis.Index(algorithm=algorithm, options=options)
    held = add_all(index, nodes)
    assert held, "an algorithm holds something"

    def agree(index: tamis.Index, held: set[int]) -> None:
        for event, truth in zip(events, truths, strict=True):
            assert index.match(to_dict(event)) == [at for at in sorted(held) if truth[at]], event

    agree(index, held)
    for at in sorted(held)[::3]:
        index.remove(at)
    agree(index, held - set(sorted(held)[::3]))
    for at in sorted(held)[::3]:
        try:
            index.upsert(at, to_text(nodes[at]))
        except UnsupportedExpressionError:
            # A diagram's variables have the order in which they came, so it may have too many nodes now.
            assert "max_nodes" in options
            held.remove(at)
    agree(index, held)
    for again in (copy.copy(index), pickle.loads(pickle.dumps(index))):
        assert (again.algorithm, again.options) == (algorithm, options)
        agree(again, held)
    for at in held:
        index.remove(at)
    assert index.count(to_dict(events[0])) == 0


def test_a_refused_addition_is_an_error_of_its_own() -> None:
    index = tamis.Index(algorithm="propagation")
    index.add("a", "x = 1 AND y = 2")
    with pytest.raises(UnsupportedExpressionError, match="conjunctions of predicates only"):
        index.add("b", "x = 1 OR y = 2")
    with pytest.raises(UnsupportedExpressionError):
        index.replace("a", "x = 1 OR y = 2")
    assert index.match({"x": 1, "y": 2}) == ["a"]
    large = " AND ".join(f"(a{at} = 1 OR b{at} = 1)" for at in range(40))
    for name in ("counting", "cluster", "translation"):
        with pytest.raises(UnsupportedExpressionError, match=r"1099511627776 conjunctions.*max_conjunctions"):
            tamis.Index(algorithm=name).add("a", large)


def test_options_are_checked() -> None:
    with pytest.raises(tamis.ArgumentError, match="no option `shapes`; there are predicates, sharing, shape"):
        tamis.Index(algorithm="a-tree", options={"shapes": "binary"})
    with pytest.raises(tamis.ArgumentError, match="`zero_suppression` is true or false"):
        tamis.Index(algorithm="a-tree", options={"zero_suppression": 3})
    with pytest.raises(tamis.ArgumentError, match="no option `sharing`; this algorithm has none"):
        tamis.Index(options={"sharing": True})


def test_index_and_translation_are_reported_apart() -> None:
    index = tamis.Index(algorithm="counting")
    index.add("a", "(x = 1 OR x = 2) AND (y = 1 OR y = 2)")
    stats = index.stats()
    assert stats["conjunctions"] == 4
    assert {"predicates", "association", "translated", "rows"} <= set(stats["bytes"])


def test_shared_nodes_of_an_a_tree() -> None:
    index = tamis.Index(algorithm="a-tree")
    index.add("a", "(p OR q) AND r")
    before = index.stats()["nodes"]
    index.add("b", "r AND (q OR p)")
    assert index.stats()["nodes"] == before == 5


def test_what_an_algorithm_cannot_hold_can_be_collected() -> None:
    index = tamis.Index(algorithm="k-index")
    failed = index.add_many(["a", "b", "c"], ["x = 1", "x = 1 OR y = 2", "y = 3"], on_error="collect")
    assert [(bad.row, bad.id, type(bad.error)) for bad in failed] == [(1, "b", UnsupportedExpressionError)]
    assert list(index) == ["a", "c"]
    with pytest.raises(UnsupportedExpressionError, match='id "e"'):
        index.add_many(["d", "e"], ["x = 1", "x = 1 OR y = 2"])
    assert list(index) == ["a", "c"]
