"""The charts of benchmarks and experiments: drawn without complaint, whatever the figures are."""

import pytest
import vl_convert

from pages import axes
from tamis.chart_page import Chart, theme
from tamis_lab import charts


def drawn(chart: Chart) -> str:
    return str(vl_convert.vegalite_to_svg({**chart.to_dict(), "config": theme("light")}))


@pytest.mark.parametrize("log", [True, False])
def test_lines_name_their_series_and_axes(log: bool) -> None:
    series = {f"algorithm {n}": [(10.0**k, n + k + 1.0) for k in range(3)] for n in range(8)}
    text = drawn(
        charts.lines("How long?", series, ("subscriptions", "µs"), subtitle="lower is better", log=log)
    )
    for part in ("How long?", "lower is better", "subscriptions", "µs", "algorithm 7"):
        assert part in text
    assert text.count("algorithm 7</text>") == 1, "colour and shape share one legend"


def test_points_that_a_logarithmic_axis_cannot_show_are_left_out() -> None:
    chart = charts.lines("t", {"a": [(0.0, 1.0), (1.0, -2.0), (10.0, 5.0)]}, ("x", "y")).to_dict()
    [rows] = chart["datasets"].values()
    assert rows == [{"name": "a", "x": 10.0, "y": 5.0}]
    assert drawn(charts.lines("nothing", {"a": [(0.0, 0.0)]}, ("x", "y")))


def test_bars_are_sorted_and_carry_one_unit() -> None:
    chart = charts.bars("Which?", {"small": 1.0, "large": 3.0, "middle": 2.0}, "MB")
    text = drawn(chart)
    places = [text.index(f">{name}<") for name in ("large", "middle", "small")]
    assert places == sorted(places)
    assert {axis["title"] for axis in axes(chart.to_dict()) if axis["title"]} == {"MB"}


@pytest.mark.parametrize(
    "values", [{"a": 0.0, "b": 1e9}, {"a": -5.0, "b": 5.0}, {"a": 1e-6, "b": 1e6}, {"a": 1.0}]
)
def test_bars_of_any_values_are_drawn(values: dict[str, float]) -> None:
    text = drawn(charts.bars("Which?", values, "%"))
    assert all(f">{name}<" in text for name in values)


def test_ratios_have_parity_in_the_middle() -> None:
    chart = charts.ratios("How far?", {"a": (2.0, 40.0), "b": (5.0, 4.0), "loss": (27.0, -3.0)})
    scale = chart.to_dict()["layer"][1]["encoding"]["x"]["scale"]
    low, high = scale["domain"]
    assert low * high == pytest.approx(1)
    text = drawn(chart)
    assert "2 → 40" in text
    assert ">loss<" not in text, "a loss and a gain have no ratio"
