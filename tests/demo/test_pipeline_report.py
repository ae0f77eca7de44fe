"""The report of the demonstration: one question and one unit on each axis of every chart."""

from pathlib import Path

import pytest
import vl_convert

from pages import Page, axes
from tamis.chart_page import theme
from tamis.demo.pipeline import Seen
from tamis.demo.pipeline_report import write_report


@pytest.mark.thorough
def test_every_chart_asks_one_thing_and_has_titles_on_its_axes(tmp_path: Path) -> None:
    seen = Seen(
        subscriptions=1_000,
        events=500,
        index_seconds=0.5,
        match_seconds=0.25,
        matches=42,
        plan="replicated: <small>",
        popular=[("Elm-4", 20, "country IN ('IN') AND age < 30")],
        per_rule=[(0, 900), (1, 80), (2, 20)],
        per_event=[(0, 458), (1, 42)],
        batches=[
            {"batch": 0, "events": 20, "matches": 3, "version": 1, "seconds": 2.0},
            {"batch": 1, "events": 20, "matches": 0, "version": None, "seconds": 1.0},
        ],
    )
    text = write_report(tmp_path / "report.html", seen).read_text(encoding="utf-8")
    read = Page(text)
    assert read.loads == []
    assert "replicated: &lt;small&gt;" in text
    assert "<dd>2,000</dd>" in text, "campaigns indexed per second and page views matched per second"
    titles = []
    for specification in read.charts:
        title = specification["title"]
        titles.append(title if isinstance(title, str) else title["text"])
        units = {side["title"] for side in axes(specification)}
        assert len(units) == 2, "one unit on each axis"
        drawn = vl_convert.vegalite_to_svg({**specification, "config": theme("light")})
        assert all(unit in drawn for unit in units)
    assert len(titles) == 4
    assert all(title.endswith("?") for title in titles)
