"""The worked examples of Bittner (2008, chapters 6 and 7) through the public face, with its errors corrected.

What no public function shows, the ranks and estimates themselves, is tested beside the kernel's code.
"""

from itertools import product

import pytest

import tamis
from tamis import relate
from tamis.pubsub.generalise import trees
from tamis.pubsub.generalise.combined_pruning import CombinedQueue, Weights
from tamis.pubsub.generalise.overlap_index import OverlapIndex
from tamis_lab.experiments.bittner2008.auction_network import boolean_bytes, conjunctions, conjunctive_bytes
from tamis_lab.workloads.book_auction import ADVERTISEMENTS, SUBSCRIPTIONS

S1 = tamis.parse(
    "title LIKE '%Harry Potter%' AND ending < 1440 AND "
    "(condition = 'new' AND price < 15 OR price < 12 AND condition = 'used')"
)
S3 = tamis.parse(
    "(category = 'Ancient Literature' OR author LIKE '%JK Rowling%') AND "
    "(ending < 60 AND (bids = 0 OR special = 'signed') OR buy_it_now AND special = 'signed')"
)
S4 = tamis.parse(
    "title LIKE '%The Chronicles of Narnia%' AND ending < 1440 AND "
    "(format = 'hardcover' AND (condition = 'new' AND price < 25 OR price < 20 AND condition = 'used') OR "
    "format = 'softcover' AND (condition = 'new' AND price < 15 OR price < 10 AND condition = 'used'))"
)
A3 = tamis.parse(
    "title = 'Harry Potter and the Goblet of Fire' AND "
    "(condition = 'used' AND price > 11 OR price > 14 AND condition = 'new')"
)
SHARES = {
    "category = 'Ancient Literature'": 0.015,
    "author LIKE '%JK Rowling%'": 0.002,
    "ending < 60": 0.16,
    "buy_it_now": 0.15,
    "special = 'signed'": 0.011,
    "bids = 0": 1 - 0.13 / (1 - 0.011),
}
PRUNED = {
    1: "ending < 60 AND (bids = 0 OR special = 'signed') OR buy_it_now AND special = 'signed'",
    2: "category = 'Ancient Literature' OR author LIKE '%JK Rowling%'",
    3: "(category = 'Ancient Literature' OR author LIKE '%JK Rowling%') AND "
    "(ending < 60 OR buy_it_now AND special = 'signed')",
    4: "(category = 'Ancient Literature' OR author LIKE '%JK Rowling%') AND "
    "(bids = 0 OR special = 'signed' OR buy_it_now AND special = 'signed')",
    5: "(category = 'Ancient Literature' OR author LIKE '%JK Rowling%') AND "
    "(ending < 60 AND (bids = 0 OR special = 'signed') OR special = 'signed')",
    6: "(category = 'Ancient Literature' OR author LIKE '%JK Rowling%') AND "
    "(ending < 60 AND (bids = 0 OR special = 'signed') OR buy_it_now)",
}
"""What each of the six prunings of S3 leaves."""


def test_sizes_and_least_predicates_of_the_examples() -> None:
    s2 = S4
    for expression, size, least in ((S1, 38, 4), (s2, 80, 5), (S3, 47, 3)):
        tree = trees.tree_of(expression)
        assert (trees.bytes_of(tree), trees.least_true(tree)) == (size, least)
    assert [boolean_bytes([one]) for one in (S1, s2, S3)] == [68, 134, 81]
    translated = [[tamis.parse(term) for term in conjunctions(str(one))] for one in (S1, s2, S3)]
    assert [len(terms) for terms in translated] == [2, 4, 6]
    assert [conjunctive_bytes(terms) for terms in translated] == [68, 168, 156]


def test_the_six_prunings_and_their_bytes() -> None:
    found = {str(trees.expression_of(trees.flat(left))) for left in trees.prunings(trees.tree_of(S3))}
    assert found == {str(tamis.parse(text)) for text in PRUNED.values()}
    sizes = [trees.bytes_of(trees.tree_of(tamis.parse(text))) for text in PRUNED.values()]
    assert sizes == [33, 12, 33, 38, 40, 40]
    least = [trees.least_true(trees.tree_of(tamis.parse(text))) for text in PRUNED.values()]
    assert least == [2, 1, 2, 2, 2, 2]


@pytest.mark.parametrize(
    ("measure", "first"), [("accuracy", 5), ("efficiency", 5), ("memory", 3), ("accuracy-occurrence", 5)]
)
def test_the_first_pruning_by_each_measure(measure: str, first: int) -> None:
    assert S3.prune(steps=1, measure=measure, selectivities=SHARES) == tamis.parse(PRUNED[first])


def test_estimates_of_the_example() -> None:
    queue = CombinedQueue(Weights(), relate.Selectivities(SHARES))
    assert queue._estimate(trees.tree_of(S3)) == pytest.approx((0, 0.002386, 0.017), abs=1e-6)
    averages = [queue._estimate(trees.tree_of(tamis.parse(text)))[1] for text in PRUNED.values()]
    expected = [0.14062, 0.01697, 0.00274, 0.01477, 0.00252, 0.00455]
    assert averages == pytest.approx(expected, abs=6e-6)


@pytest.mark.parametrize(
    ("classes", "first_steps"),
    [
        (SUBSCRIPTIONS, {1: 7, 2: 15, 3: 6}),
        (ADVERTISEMENTS, {1: 6, 2: 6, 3: 6, 4: 6, 5: 14, 6: 4, 7: 4, 8: 12}),
    ],
)
def test_prunings_of_all_classes(classes: dict[int, object], first_steps: dict[int, int]) -> None:
    from tamis_lab.experiments.bittner2008.auction_network import advertisements_of, expressions_of
    from tamis_lab.workloads import BookAuction

    auction = BookAuction(count=3)
    texts = expressions_of(auction) if len(first_steps) == 3 else map(str, advertisements_of(auction, 8))
    found = {
        number: len(list(trees.prunings(trees.tree_of(tamis.parse(text)))))
        for number, text in enumerate(texts, 1)
    }
    assert found == first_steps
    assert set(classes) == set(first_steps)


def test_selectivities_of_predicates_never_seen() -> None:
    known = relate.Selectivities({"x > 10": 0.8, "x > 20": 0.4, "x = 15": 0.1})
    assert known["x > 20"] <= known["x > 15"] <= known["x > 10"]
    assert known["x > 12"] >= known["x > 18"]
    assert 0 < known["x = 13"] <= 0.8 - 0.4 - 0.1
    assert known["x = 15"] == 0.1


def test_overlap_of_the_example() -> None:
    for method, block in product(("pairs", "exact"), (1, 100)):
        index = OverlapIndex(method, block)  # type: ignore[arg-type]
        for id, expression in (("s1", S1), ("s3", S3), ("s4", S4)):
            index.put(id, expression)
        assert sorted(index.overlapping(A3)) == ["s1", "s3"]
        reverse = OverlapIndex(method, block)  # type: ignore[arg-type]
        reverse.put("a3", A3)
        assert [reverse.any(one) for one in (S1, S3, S4)] == ["a3", "a3", None]


OPERATORS = ("=", "!=", "<", "<=", ">", ">=")


@pytest.mark.parametrize(("one", "other"), list(product(OPERATORS, OPERATORS)))
def test_pairs_of_comparisons_are_disjoint_as_their_values_are(one: str, other: str) -> None:
    points = [number / 2 for number in range(-2, 12)]
    index = OverlapIndex("pairs", block=1)
    for v in (1, 2, 3):
        index.put(str(v), tamis.parse(f"x {one} {v}"))
    for w in (1, 2, 3):
        asking = tamis.parse(f"x {other} {w}")
        expected = [
            str(v)
            for v in (1, 2, 3)
            if any(
                tamis.parse(f"x {one} {v}").evaluate({"x": point}) and asking.evaluate({"x": point})
                for point in points
            )
        ]
        assert index.overlapping(asking) == expected
