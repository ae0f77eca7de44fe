"""The Zipfian regions of Machanavajjhala et al. 2008."""

import re

import numpy as np
import pytest

from tamis_lab.workloads import ZipfRegions
from tamis_lab.workloads.sampling import Zipf

RANGE = re.compile(r"BETWEEN (-?[\d.]+) AND (-?[\d.]+)")


def _intervals(workload: ZipfRegions) -> np.ndarray:
    text = " ".join(workload.subscriptions_table()["expression"].to_pylist())
    return np.array(RANGE.findall(text), dtype=float)


def test_lengths_are_zipfian() -> None:
    intervals = _intervals(ZipfRegions(count=16_384))
    ranks = (np.diff(intervals).ravel() / 2 * 100).astype(int)
    shares = np.bincount(ranks, minlength=100)[:100] / ranks.size
    expected = Zipf(100, alpha=0.75).probabilities
    assert shares[:3] == pytest.approx(expected[:3], rel=0.1)
    assert shares[50:].sum() == pytest.approx(expected[50:].sum(), rel=0.1)


def test_less_skew_overlaps_more() -> None:
    means = [
        np.diff(_intervals(ZipfRegions(count=5_000, skew_length=skew))).mean() for skew in (0.25, 0.75, 1.5)
    ]
    assert means == sorted(means, reverse=True)


def test_points_lie_in_ten_regions_of_five_parts() -> None:
    workload = ZipfRegions(count=1)
    first, sides = workload._boxes
    assert set(sides.ravel().tolist()) == {5}
    parts = (workload.events_table(5_000)["x0"].to_numpy() * 100).astype(int)
    allowed = {int(start) + step for start in first.ravel() for step in range(5)}
    assert set(parts.tolist()) == allowed


def test_the_middle_of_a_region_is_most_likely() -> None:
    workload = ZipfRegions(count=1, regions=1)
    first = int(workload._boxes[0][0, 0])
    parts = (workload.events_table(10_000)["x0"].to_numpy() * 100).astype(int) - first
    shares = np.bincount(parts, minlength=5) / parts.size
    expected = Zipf(5, alpha=1).probabilities
    # 0, 1, 2, 3, 4 steps: the middle, right, left, right, left of it.
    assert shares[[2, 3, 1, 4, 0]] == pytest.approx(expected, abs=0.015)


@pytest.mark.parametrize("dimensions", [2, 3])
def test_volume_of_regions(dimensions: int) -> None:
    _, sides = ZipfRegions(count=1, dimensions=dimensions, regions=50)._boxes
    # Sides are whole numbers of parts, so volumes are only about a twentieth.
    assert np.median(sides.prod(axis=1)) == pytest.approx(100**dimensions / 20, rel=0.1)


def test_scores_are_one_minus_length() -> None:
    workload = ZipfRegions(count=500, dimensions=3)
    for row in workload.subscriptions_table().to_pylist():
        lengths = [(float(high) - float(low)) / 2 for low, high in RANGE.findall(row["expression"])]
        assert [weight for _, weight in row["weights"]] == pytest.approx(
            [1 - length for length in lengths], abs=2e-6
        )
        assert row["priority"] == pytest.approx(sum(1 - length for length in lengths), abs=5e-6)
