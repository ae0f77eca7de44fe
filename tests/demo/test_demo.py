"""The demonstration runs from beginning to end, and its campaigns do not depend on how they are made."""

import pytest

from tamis.demo import pubsub
from tamis.demo.campaigns import Campaigns
from tamis.demo.library import run


def test_it_shows_matches_rates_and_explanations(capsys: pytest.CaptureFixture[str]) -> None:
    run(subscriptions=5_000, events=300, seed=1)
    shown = capsys.readouterr().out
    for part in ("campaigns", "page views a second", "matches", "explain", "why_not", "tamis --help"):
        assert part in shown


def test_delivery_misses_nothing_when_a_router_is_killed(capsys: pytest.CaptureFixture[str]) -> None:
    pubsub.run(events=600)
    shown = capsys.readouterr().out
    assert "killed the router paris-1" in shown
    for row in (line for line in shown.splitlines() if " at rome " in line or " at paris " in line):
        if "│" in row:
            wanted, delivered, missing, twice = [cell.strip() for cell in row.strip("│ ").split("│")[2:]]
            assert (wanted, missing, twice) == (delivered, "0", "0")


def test_campaigns_are_deterministic_and_have_at_least_four_conditions() -> None:
    table = Campaigns(seed=3).rules(0, 3_000)
    assert table.num_rows == 3_000
    assert table.equals(Campaigns(seed=3).rules(0, 3_000))
    assert table.slice(2_000, 100).equals(Campaigns(seed=3).rules(2_000, 2_100))
    assert not table.equals(Campaigns(seed=4).rules(0, 3_000))
    for text in table["expression"].to_pylist():
        assert text.count(" AND ") - text.count("BETWEEN") >= 3  # A range has an AND of its own.


def test_page_views_are_the_same_however_many_are_made() -> None:
    campaigns = Campaigns(seed=3)
    views = campaigns.page_views(0, 2_100)
    assert views[2_040:2_060] == campaigns.page_views(2_040, 2_060)
    table = campaigns.page_view_table(2_040, 2_060)
    assert table["event_id"].to_pylist() == list(range(2_040, 2_060))
    assert table.drop("event_id").to_pylist() == views[2_040:2_060]
