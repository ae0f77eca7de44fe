"""The overlap index answers as the kernel does for each pair, whatever comes and goes."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from oracle import Node
from pubsub.strategies_pubsub import nodes
from tamis.pubsub.generalise.overlap_index import OverlapIndex
from tamis_lab.experiments.bittner2008.auction_network import advertisements_of, expressions_of
from tamis_lab.workloads import BookAuction
from writer import to_text

METHODS = ("exact", "pairs")


@pytest.mark.parametrize("method", METHODS)
@given(known=st.lists(nodes(2), min_size=1, max_size=8), asking=nodes(2), gone=st.sets(st.integers(0, 7)))
@settings(max_examples=60, deadline=None)
def test_blocks_answer_as_pairs_do(method: str, known: list[Node], asking: Node, gone: set[int]) -> None:
    index = OverlapIndex(method, block=3)  # type: ignore[arg-type]
    expressions = {str(place): tamis.parse(to_text(node)) for place, node in enumerate(known)}
    for id, expression in expressions.items():
        index.put(id, expression)
    for place in gone:
        if expressions.pop(str(place), None) is not None:
            index.remove(str(place))
    wanted = tamis.parse(to_text(asking))
    expected = {id for id, one in expressions.items() if one.overlaps(wanted, method=method)}  # type: ignore[arg-type]
    assert set(index.overlapping(wanted)) == expected
    assert len(index) == len(expressions)
    first = index.any(wanted)
    assert (first in expected) if expected else first is None


@pytest.mark.parametrize("method", METHODS)
def test_both_directions_on_auctions(method: str) -> None:
    auction = BookAuction(count=40, seed=4, auctions_per_book=6_000)
    subscriptions = {f"s{n}": tamis.parse(text) for n, text in enumerate(expressions_of(auction))}
    advertisements = {f"a{n}": one for n, one in enumerate(advertisements_of(auction, 24))}
    for known, asking in ((subscriptions, advertisements), (advertisements, subscriptions)):
        index = OverlapIndex(method, block=16)  # type: ignore[arg-type]
        for id, expression in known.items():
            index.put(id, expression)
        for expression in asking.values():
            expected = [id for id, one in known.items() if one.overlaps(expression, method=method)]  # type: ignore[arg-type]
            assert sorted(index.overlapping(expression)) == sorted(expected)
            assert (index.any(expression) is None) == (not expected)


def test_types_must_meet() -> None:
    index = OverlapIndex()
    index.put("book", tamis.parse("x = 1"), "book")
    index.put("any", tamis.parse("x = 1"), None)
    assert index.overlapping(tamis.parse("x = 1"), "car") == ["any"]
    assert index.overlapping(tamis.parse("x = 1"), None) == ["book", "any"]


def test_what_is_no_tree_of_predicates_is_compared_one_by_one() -> None:
    index = OverlapIndex("pairs", block=2)
    for id, text in {
        "xor": "x = 1 XOR y = 1",
        "not": "NOT flag",
        "true": "TRUE",
        "null": "x IS NULL",
    }.items():
        index.put(id, tamis.parse(text))
    assert index.overlapping(tamis.parse("flag")) == ["xor", "true", "null"]
    assert "null" not in index.overlapping(tamis.parse("x = 3 OR x = 4"))
    assert set(index.overlapping(tamis.parse("TRUE"))) == {"xor", "not", "true", "null"}


def test_large_integers_are_not_rounded() -> None:
    index = OverlapIndex("pairs", block=1)
    index.put("odd", tamis.parse(f"x = {2**53 + 1}"))
    assert index.overlapping(tamis.parse(f"x > {2**53}")) == ["odd"]
    assert index.overlapping(tamis.parse(f"x = {2**53}")) == []


def test_churn_leaves_nothing_behind() -> None:
    index, chance = OverlapIndex(block=4), random.Random(2)
    held: dict[str, tamis.Expression] = {}
    for step in range(120):
        id = f"e{chance.randrange(20)}"
        if id in held and chance.random() < 0.5:
            index.remove(id)
            del held[id]
        else:
            held[id] = tamis.parse(f"x > {step % 7} AND y = {step % 3}")
            index.put(id, held[id])
        asking = tamis.parse(f"x < {chance.randrange(8)} AND y = 1")
        assert set(index.overlapping(asking)) == {id for id, one in held.items() if one.overlaps(asking)}


def test_a_conjunction_of_many_disjunctions_is_not_multiplied_out() -> None:
    index = OverlapIndex()
    index.put("a", tamis.parse("a0 = 1"))
    asking = " AND ".join(f"(a{n} = 1 OR b{n} = 1)" for n in range(64))
    assert index.any(tamis.parse(asking))
