"""BEGen: attributes, clusters, weights and the match probability that is asked for."""

import re
from collections import Counter

import numpy as np
import pytest

import tamis
from tamis_lab.workloads import BeGen, Workload

RANGE = re.compile(r"(a\d+) BETWEEN (\d+) AND (\d+)")


def _matched_share(workload: Workload, events: int = 500) -> float:
    index = tamis.Index()
    index.add_table(workload.subscriptions_table())
    return index.match_batch(workload.events_table(events)).num_rows / events / workload.count


@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("probability", [0.001, 0.01, 0.09])
@pytest.mark.thorough
def test_match_probability(alpha: float, probability: float) -> None:
    workload = BeGen(count=5_000, attribute_alpha=alpha, match_probability=probability)
    assert _matched_share(workload) == pytest.approx(probability, rel=0.15)


@pytest.mark.parametrize(("subscription_size", "event_size"), [(5, 13), (8, 15), (66, 81)])
@pytest.mark.thorough
def test_sizes(subscription_size: int, event_size: int) -> None:
    workload = BeGen(count=2_000, subscription_size=subscription_size, event_size=event_size)
    texts = workload.subscriptions_table()["expression"].to_pylist()
    found = [RANGE.findall(text) for text in texts]
    assert np.mean([len(predicates) for predicates in found]) == pytest.approx(subscription_size, rel=0.05)
    assert all(len({name for name, _, _ in predicates}) == len(predicates) for predicates in found)
    assert np.mean([len(event) for event in workload.events(2_000)]) == pytest.approx(event_size, rel=0.05)


def test_ranges_have_a_handful_of_values() -> None:
    text = " ".join(BeGen(count=1_000).subscriptions_table()["expression"].to_pylist())
    assert {int(high) - int(low) + 1 for _, low, high in RANGE.findall(text)} == {1, 2, 3, 4, 5}


@pytest.mark.parametrize(("clusters", "size"), [(2, 25), (4, 100), (26, 800)])
@pytest.mark.thorough
def test_values_lie_in_clusters(clusters: int, size: int) -> None:
    workload = BeGen(count=20_000, attributes=50, event_size=15, clusters=clusters, cluster_size=size)
    values: dict[str, list[int]] = {}
    for name, low, _ in RANGE.findall(" ".join(workload.subscriptions_table()["expression"].to_pylist())):
        values.setdefault(name, []).append(int(low))
    widths = []
    for drawn in values.values():
        ordered = np.unique(drawn)
        groups = np.split(ordered, np.flatnonzero(np.diff(ordered) > 2 * size) + 1)
        assert len(groups) <= clusters
        widths += [group[-1] - group[0] for group in groups]
    assert len(values) == 50
    # Two centres may lie close to each other, but hardly ever do.
    assert np.mean(np.array(widths) <= 2 * size + 5) > 0.98


def test_without_clusters_values_are_anywhere() -> None:
    text = " ".join(BeGen(count=5_000, clusters=None).subscriptions_table()["expression"].to_pylist())
    lows = np.array([int(low) for _, low, _ in RANGE.findall(text)])
    quarters = np.bincount(lows * 4 // 250_000_000, minlength=4) / lows.size
    assert quarters == pytest.approx([0.25] * 4, abs=0.03)


def test_attributes_are_uniform_or_skewed() -> None:
    tops = []
    for alpha in (0.0, 1.0):
        text = " ".join(
            BeGen(count=5_000, attribute_alpha=alpha).subscriptions_table()["expression"].to_pylist()
        )
        counts = Counter(name for name, _, _ in RANGE.findall(text))
        tops.append(counts.most_common(1)[0][1] / counts.total())
    assert tops[0] < 0.005
    assert tops[1] > 0.04


def test_weights_follow_the_inverse_frequency() -> None:
    workload = BeGen(count=5_000, attribute_alpha=1.0)
    inverse = workload.inverse_frequency
    assert inverse.max() == 1
    ratios = []
    for row in workload.subscriptions_table().to_pylist():
        assert [name for name, _ in row["weights"]] == [
            name for name, _, _ in RANGE.findall(row["expression"])
        ]
        ratios += [weight / inverse[int(name[1:])] for name, weight in row["weights"]]
    drawn = np.array(ratios)
    assert drawn.max() <= 1.001
    assert drawn.mean() == pytest.approx(0.8, abs=0.005)
    assert drawn.std() == pytest.approx(0.05, abs=0.005)


def test_impossible_parameters_are_refused() -> None:
    for parameters in ({"match_probability": 0}, {"event_size": 7}, {"range_size": 0}):
        with pytest.raises(ValueError, match="need"):
            BeGen(**parameters)
