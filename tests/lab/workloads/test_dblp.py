"""Publications in the shape of the two DBLP data sets."""

from collections import Counter

import numpy as np
import pytest

import tamis
from tamis_lab.workloads import DblpAuthors, DblpTitles

BOTH = pytest.mark.parametrize(("kind", "size"), [(DblpAuthors, 8), (DblpTitles, 35)])


@BOTH
def test_average_size(kind: type[DblpAuthors] | type[DblpTitles], size: int) -> None:
    workload = kind(count=5_000)
    texts = workload.subscriptions_table()["expression"].to_pylist()
    assert np.mean([text.count(" = ") for text in texts]) == pytest.approx(size, rel=0.03)
    assert np.mean([len(event) for event in workload.events(2_000)]) == pytest.approx(size, rel=0.05)
    assert len(workload.event_schema) == 677


@BOTH
def test_an_event_satisfies_the_subscription_it_comes_from(
    kind: type[DblpAuthors] | type[DblpTitles], size: int
) -> None:
    workload = kind(count=5_000)
    index = tamis.Index()
    index.add_table(workload.subscriptions_table())
    assert all(index.exists(event) for event in workload.events(300))


@BOTH
def test_one_value_for_an_attribute(kind: type[DblpAuthors] | type[DblpTitles], size: int) -> None:
    for text in kind(count=1_000).subscriptions_table()["expression"].to_pylist():
        names = [part.split(" = ")[0] for part in text.split(" AND ")]
        assert len(set(names)) == len(names)


def test_authors_recur_and_letters_are_skewed() -> None:
    text = " AND ".join(DblpAuthors(count=20_000).subscriptions_table()["expression"].to_pylist())
    predicates = Counter(text.split(" AND "))
    assert predicates.most_common(1)[0][1] > 500
    attributes = Counter(predicate.split(" = ")[0] for predicate in predicates.elements())
    top = sum(count for _, count in attributes.most_common(68)) / attributes.total()
    assert top > 0.4
