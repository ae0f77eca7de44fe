"""Measuring delivery: everything that is wanted arrives, and more of it travels the more is pruned."""

from typing import Any

import pytest

from tamis_lab.benchmark import delivery_between_sites
from tamis_lab.benchmark.delivery_between_sites import measure_sites, measure_traffic


def test_three_sites_beside_their_logs(monkeypatch: Any) -> None:
    monkeypatch.setattr(delivery_between_sites, "ROUNDS", 1)
    found = measure_sites("sqlite", subscriptions=60, events=300, share=0.05)
    # Three subscriptions match an event, one at each site.
    assert (found.events, found.deliveries, found.travelled) == (300, 900, 600)
    assert found.ratio > 0


@pytest.mark.thorough
def test_pruning_makes_less_known_and_more_travel(monkeypatch: Any) -> None:
    monkeypatch.setattr(delivery_between_sites, "PRUNED", (0.0, 1.0))
    exact, pruned = measure_traffic(subscriptions=150, events=60)
    assert exact.wanted == pytest.approx(1.0)
    assert pruned.told_bytes < exact.told_bytes
    assert pruned.travelled > exact.travelled
    assert pruned.deliveries == exact.deliveries
