"""The demonstration runs from beginning to end, and its campaigns are a proper workload."""

import pytest

from tamis.demo.campaigns import Campaigns
from tamis.demo.library import run


def test_it_shows_matches_rates_and_explanations(capsys: pytest.CaptureFixture[str]) -> None:
    run(subscriptions=5_000, events=300, seed=1)
    shown = capsys.readouterr().out
    for part in ("campaigns", "page views a second", "matches", "explain", "why_not", "tamis --help"):
        assert part in shown


def test_campaigns_are_deterministic_and_have_at_least_four_conditions() -> None:
    table = Campaigns(count=2_000, seed=3).subscriptions_table()
    assert table.equals(Campaigns(count=2_000, seed=3).subscriptions_table())
    for text in table["expression"].to_pylist():
        assert text.count(" AND ") - text.count("BETWEEN") >= 3  # A range has an AND of its own.
    assert Campaigns(count=1).events_dicts(3) == Campaigns(count=5).events_dicts(3)
