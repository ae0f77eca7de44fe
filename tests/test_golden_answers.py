"""Answers stay bit for bit what they were: every kind of query against the hashes stored in the tree.

If a change is meant to change an answer, `python bench/comparison/golden.py --write` stores the new hashes,
and the commit says why.
"""

import pytest

import tamis
from comparison import golden, golden_inputs


@pytest.fixture(scope="module")
def answers() -> dict[str, str]:
    return golden.answers()


def test_the_answers_are_those_in_the_tree(answers: dict[str, str]) -> None:
    assert golden.differences(golden.stored(), answers) == []
    assert answers.keys() == golden.stored().keys()


def test_the_stored_answers_are_those_of_evaluating_every_expression(answers: dict[str, str]) -> None:
    scan = tamis.Index(algorithm="scan")
    golden.fill(scan, golden_inputs.subscriptions())
    asked = golden.single_queries(scan)
    for kind in ("match", "count", "tags", "expiry", "intervals", "top-k", "top-k of weighted events"):
        assert golden.digest(asked[kind]()) == answers[f"{kind}, as built"], kind


def test_the_fixed_set_has_something_to_tell() -> None:
    index = tamis.Index()
    golden.fill(index, golden_inputs.subscriptions())
    events = golden_inputs.events()
    counts = [index.count(event, now=golden_inputs.NOW) for event in events]
    assert 0 < min(counts) < max(counts) < len(index) / 2
    assert {index.exists(event, tags=["rare"]) for event in events} == {True, False}
    texts = " ".join(row.expression for row in golden_inputs.subscriptions())
    for word in (
        "XOR",
        "XNOR",
        "NOT (",
        "BETWEEN",
        "IN (",
        "LIKE",
        "RLIKE",
        "array_contains",
        "TIMESTAMP",
        "^",
    ):
        assert word in texts, word
