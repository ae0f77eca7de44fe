"""Pages with charts: self-contained, safe with any text in them, and drawn by what they carry."""

import altair as alt
import pytest
import vl_convert
from hypothesis import given
from hypothesis import strategies as st

from pages import Page
from tamis.chart_page import SERIES, page, table, theme, tiles


def chart(name: str) -> alt.Chart:
    rows = [{"name": name, "value": 2.0}]
    return alt.Chart({"values": rows}).mark_bar().encode(x=alt.X("value:Q", title="seconds"), y="name:N")


def test_nothing_is_loaded_from_outside() -> None:
    read = Page(page("Title", ["<p>text</p>", chart("one"), chart("two")]))
    assert read.loads == []
    assert read.tags.count("figure") == len(read.charts) == 2
    assert "prefers-color-scheme" in read.scripts[""]
    assert len(read.scripts[""]) > 500_000, "the libraries that draw are inside"
    assert set(read.scripts) == {"charts", "themes", ""}


@given(st.text())
def test_no_text_ends_a_script_or_opens_an_element(text: str) -> None:
    read = Page(page(text, [tiles({text: text}), table([text], [[text]])], lead=text))
    assert "script" not in read.tags
    plain = Page(page("", [tiles({"": ""}), table([""], [[""]])], lead="x" if text else ""))
    assert read.tags == plain.tags


@pytest.mark.parametrize("text", ["</script><img src=x>", "<!--<script>", "a & b", "\u2028"])
def test_data_with_markup_stays_data(text: str) -> None:
    read = Page(page("Title", [chart(text)]))
    [specification] = read.charts
    [rows] = specification["datasets"].values()
    assert rows[0]["name"] == text
    assert "img" not in read.tags


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_themes_draw(scheme: str) -> None:
    drawn = vl_convert.vegalite_to_svg({**chart("one").to_dict(), "config": theme(scheme)})
    assert "seconds" in drawn
    assert SERIES[scheme][0] in drawn


def test_settings_of_altair_do_not_win_over_the_theme() -> None:
    assert "config" in chart("one").to_dict()
    assert Page(page("Title", [chart("one")])).charts[0]["config"] == {}


def test_series_are_distinct_in_both_schemes() -> None:
    assert all(len(set(colours)) == len(colours) == 8 for colours in SERIES.values())
