"""The worked examples of Bittner (2008, chapter 7), with its errors corrected."""

import pytest

import tamis
from tamis.pubsub.generalise.advertisement_pruning import Worth, overlapping_characteristic, prunings

S1 = tamis.parse(
    "title LIKE '%Harry Potter%' AND ending < 24 AND (condition = 'new' AND price < 15 "
    "OR price < 12 AND condition = 'used')"
)
A3 = tamis.parse(
    "title = 'Harry Potter and the Goblet of Fire' AND (condition = 'used' AND price > 11 "
    "OR price > 14 AND condition = 'new')"
)
HITS = {"condition = 'new'": 500, "price < 12": 1_500, "condition = 'used'": 2_000}


def test_worth_of_predicates() -> None:
    worth = Worth([S1], HITS)
    expected = {
        "title = 'Harry Potter and the Goblet of Fire'": 0.0,
        "condition = 'used'": 0.00745,
        "price > 11": 0.0,
        "price > 14": 0.00430,
        "condition = 'new'": 0.00373,
    }
    for text, value in expected.items():
        assert worth.of(tamis.parse(text)) == pytest.approx(value, abs=5e-6)


def test_overlapping_characteristic() -> None:
    triple = overlapping_characteristic(A3, Worth([S1], HITS).of)
    assert triple == pytest.approx((0.00430, 0.0154, 0.01548), abs=5e-5)


def test_order_of_prunings() -> None:
    found = prunings(A3, A3, Worth([S1], HITS).of)
    losses = {str(pruning.left): pruning.loss for pruning in found}
    without = "title = 'Harry Potter and the Goblet of Fire' AND "
    inner = "(condition = 'used' AND price > 11 OR price > 14 AND condition = 'new')"
    assert losses[inner[1:-1]] == 0.0, "the title excludes nothing"
    assert losses[without + "(condition = 'used' OR price > 14 AND condition = 'new')"] == 0.0
    assert losses[without + "(condition = 'used' AND price > 11 OR price > 14)"] == pytest.approx(
        0.241, abs=1e-3
    )
    assert losses[without + "(condition = 'used' AND price > 11 OR condition = 'new')"] == pytest.approx(
        0.278, abs=1e-3
    )
    assert losses[without + "(price > 11 OR price > 14 AND condition = 'new')"] == pytest.approx(1.0)


def test_overlap_of_the_examples() -> None:
    s3 = tamis.parse(
        "(category = 'Ancient Literature' OR author LIKE '%Rowling%') AND (ending < 1 AND (bids = 0 OR "
        "special = 'signed') OR buy_it_now AND special = 'signed')"
    )
    s4 = tamis.parse("title = 'The Chronicles of Narnia' AND price < 25")
    for method in ("pairs", "exact"):
        overlapping = [A3.overlaps(other, method=method) for other in (S1, s3, s4)]  # type: ignore[arg-type]
        assert overlapping == [True, True, False]
