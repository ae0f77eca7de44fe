"""ABE-Gen against what Ji and Jacobsen (2021) report of their default workload."""

import pytest

from lab.workloads.judge import match_shares
from tamis_lab.workloads import AbeGen

# A fiftieth of the paper's million expressions, over a fiftieth of its thousand attributes: what decides how
# often a predicate recurs is the number of occurrences per possible predicate, which this keeps.
REDUCED = {"count": 20_000, "attributes": 20}


def test_sharing_is_that_of_the_paper() -> None:
    sharing = AbeGen(**REDUCED).sharing()
    assert sharing.per_predicate == pytest.approx(18.35, rel=0.05)
    assert sharing.per_subexpression == pytest.approx(4.33, rel=0.02)


def test_sharing_counts_what_the_text_says() -> None:
    workload = AbeGen(count=3_000, attributes=50, logical_operators=(1, 1, 0, 0, 0))
    groups = [
        group.strip("()")
        for text in workload.subscriptions_table()["expression"].to_pylist()
        for group in text.replace(") OR (", ") AND (").split(") AND (")
    ]
    sharing = workload.sharing()
    assert sharing.subexpression_occurrences == len(groups)
    # The text of a group fixes its order of children, so it may tell apart a few that are structurally equal.
    assert sharing.distinct_subexpressions == pytest.approx(len(set(groups)), rel=0.001)
    assert sharing.predicate_occurrences == 4 * len(groups)


def test_more_skew_shares_more() -> None:
    ratios = [
        AbeGen(**REDUCED, subexpression_alpha=alpha).sharing().per_subexpression for alpha in (0.3, 0.6, 0.9)
    ]
    assert ratios == sorted(ratios)
    assert ratios[0] < ratios[2]


def test_without_skew_all_subexpressions_differ() -> None:
    texts = AbeGen(count=2_000, subexpression_alpha=0).subscriptions_table()["expression"].to_pylist()
    groups = [group for text in texts for group in text.split("(")[1:] if group.count("a") >= 4]
    assert len(groups) > 2_000
    assert len(set(groups)) == len(groups)


def test_about_twelve_predicates_and_the_given_operators() -> None:
    texts = AbeGen(count=10_000).subscriptions_table()["expression"].to_pylist()
    assert sum(text.count("a") for text in texts) / len(texts) == pytest.approx(12.25, rel=0.03)
    share_of_xor = sum(text.count(" XOR ") for text in texts) / len(texts)
    # One in twenty of the root and of its 3.5 children.
    assert share_of_xor == pytest.approx(0.05 * 4.5, rel=0.15)


@pytest.mark.parametrize(("depth", "nested"), [(1, 0), (2, 0), (3, 1), (4, 2), (5, 3)])
def test_depth_is_that_of_the_tree(depth: int, nested: int) -> None:
    texts = AbeGen(count=300, depth=depth).subscriptions_table()["expression"].to_pylist()
    without_sets = [text.replace("IN (", "IN ") for text in texts]
    assert max(_nesting(text) for text in without_sets) == nested


@pytest.mark.slow
@pytest.mark.thorough
def test_two_to_three_percent_match() -> None:
    workload = AbeGen(count=1_000)
    texts = workload.subscriptions_table()["expression"].to_pylist()[:400]
    assert match_shares(texts, workload.events_table(300)).mean() == pytest.approx(0.025, rel=0.35)


def _nesting(text: str) -> int:
    depth = deepest = 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        deepest = max(deepest, depth)
    return deepest
