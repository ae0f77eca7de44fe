"""The kinds of charts that benchmarks and experiments draw: lines, bars, and ratios to a published figure.

Each answers one question and has one unit on each axis. Series differ by shape as well as by colour. Pages of
them are written by `tamis.chart_page`.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from tamis.chart_page import Chart, number

BARS_UP_TO = 50.0
"""How many times the smallest value the largest may be in a chart of bars; above, bars would vanish."""

MOST_TICKS = 9
"""On a logarithmic axis, above which it has powers of ten only."""

_SHORT = "datum.value >= 1000 ? format(datum.value, '~s') : format(datum.value, '~g')"
"""How a tick is written: 0.5, 20, 5k, 1M."""

Points = Sequence[tuple[float, float]]


def lines(
    title: str, series: Mapping[str, Points], axes: tuple[str, str], *, subtitle: str = "", log: bool = True
) -> Chart:
    """Lines through points by name, over logarithmic axes (of positive points) or plain ones from zero.

    >>> chart = lines("How long?", {"index": [(1e4, 2.0), (1e5, 3.0)]}, ("subscriptions", "µs"))
    >>> [layer["mark"]["type"] for layer in chart.to_dict()["layer"]]
    ['line', 'point']
    """
    rows: list[dict[str, Any]] = [
        {"name": name, "x": x, "y": y}
        for name, points in series.items()
        for x, y in points
        if not log or min(x, y) > 0
    ]
    scale = alt.Scale(domain=list(series))  # the same for both, so that they share a legend
    base = alt.Chart({"values": rows}).encode(
        x=_axis(alt.X, "x", axes[0], [row["x"] for row in rows] if log else None),
        y=_axis(alt.Y, "y", axes[1], [row["y"] for row in rows] if log else None),
        color=alt.Color("name:N", title=None, scale=scale),
        tooltip=[
            alt.Tooltip("name:N", title=" "),
            alt.Tooltip("x:Q", title=axes[0] or "x", format=",~g"),
            alt.Tooltip("y:Q", title=axes[1] or "y", format=",.4~g"),
        ],
    )
    points = base.mark_point(filled=True, size=60, opacity=1)
    shaped = points.encode(shape=alt.Shape("name:N", title=None, scale=scale))
    return alt.layer(base.mark_line(), shaped).properties(title=_title(title, subtitle))


def bars(title: str, values: Mapping[str, float], unit: str, *, subtitle: str = "") -> Chart:
    """One value by name, the largest first; dots over a logarithmic axis where bars would vanish.

    >>> chart = bars("Which is smallest?", {"scan": 2.0, "bdd": 3.0}, "MB")
    >>> chart.to_dict()["layer"][0]["mark"]["type"]
    'bar'
    >>> bars("Which is fastest?", {"scan": 5000.0, "bdd": 3.0}, "µs").to_dict()["layer"][0]["mark"]["type"]
    'point'
    """
    rows = [{"name": name, "value": value, "shown": number(value)} for name, value in values.items()]
    least, most = min(values.values()), max(values.values())
    spread = least > 0 and most > BARS_UP_TO * least
    base = alt.Chart({"values": rows}).encode(
        x=_axis(alt.X, "value", unit, list(values.values()) if spread else None),
        y=alt.Y("name:N", title=None, sort="-x"),
        tooltip=[alt.Tooltip("name:N", title=" "), alt.Tooltip("shown:N", title=unit)],
    )
    marks = base.mark_point(filled=True, size=80, opacity=1) if spread else base.mark_bar(height=14)
    labels = base.mark_text(align="left", dx=8).encode(text="shown:N")
    return alt.layer(marks, labels).properties(title=_title(title, subtitle), height=alt.Step(24))


def ratios(title: str, pairs: Mapping[str, tuple[float, float]], *, subtitle: str = "") -> Chart:
    """How many times the published figure ours is: dots over a logarithmic axis, with a line at one.

    >>> chart = ratios("How far from the paper?", {"sharing": (18.35, 18.11)})
    >>> [layer["mark"]["type"] for layer in chart.to_dict()["layer"]]
    ['rule', 'point', 'text', 'text']
    """
    times = {name: ours / paper for name, (paper, ours) in pairs.items() if paper * ours > 0}
    rows = [
        {"name": name, "ratio": ratio, "shown": " → ".join(map(number, pairs[name]))}
        for name, ratio in times.items()
    ]
    # Parity in the middle, however far the furthest is on either side.
    reach = [0.2, 5.0, *times.values(), *(1 / ratio for ratio in times.values())]
    base = alt.Chart({"values": rows}).encode(
        x=_axis(alt.X, "ratio", "ours / paper", reach),
        y=alt.Y("name:N", title=None, sort=list(pairs)),
        tooltip=[
            alt.Tooltip("name:N", title=" "),
            alt.Tooltip("shown:N", title="paper → ours"),
            alt.Tooltip("ratio:Q", title="ours / paper", format=".2f"),
        ],
    )
    one = alt.Chart({"values": [{"ratio": 1}]}).mark_rule(strokeDash=[4, 3]).encode(x="ratio:Q")
    dots = base.mark_point(filled=True, size=80, opacity=1)
    below = base.mark_text(align="right", dx=-8).transform_filter("datum.ratio < 1").encode(text="shown:N")
    above = base.mark_text(align="left", dx=8).transform_filter("datum.ratio >= 1").encode(text="shown:N")
    together = alt.layer(one, dots, below, above)
    return together.properties(title=_title(title, subtitle), height=alt.Step(24))


def _axis(channel: Any, field: str, title: str, logarithmic: Sequence[float] | None) -> Any:
    """An axis from zero, or a logarithmic one around these values."""
    look: dict[str, Any] = {"labelExpr": _SHORT}
    if logarithmic:
        ends, look["values"] = ticks(logarithmic)
        scale = alt.Scale(type="log", domain=list(ends), nice=False)
    else:
        scale = alt.Scale(zero=True)
        look["tickCount"] = 6
    return channel(f"{field}:Q", title=title or None, scale=scale, axis=alt.Axis(**look))


def ticks(values: Sequence[float]) -> tuple[tuple[float, float], list[float]]:
    """The ends of a logarithmic axis, round numbers below and above the values, and its ticks.

    >>> ticks([2.5, 40.0])
    ((2.0, 50.0), [2.0, 5.0, 10.0, 20.0, 50.0])
    >>> ticks([3.0, 40_000.0])
    ((2.0, 50000.0), [10.0, 100.0, 1000.0, 10000.0])
    """
    powers = range(math.floor(math.log10(min(values))), math.ceil(math.log10(max(values))) + 1)
    round_numbers = [float(f"{digit}e{power}") for power in powers for digit in (1, 2, 5)]
    low = max(tick for tick in round_numbers if tick <= min(values) * (1 + 1e-9))
    high = min(tick for tick in round_numbers if tick >= max(values) * (1 - 1e-9) and tick > low)
    within = [tick for tick in round_numbers if low <= tick <= high]
    tens = [tick for tick in within if f"{tick:e}".startswith("1")]
    return (low, high), within if len(within) <= MOST_TICKS else tens


def _title(text: str, subtitle: str) -> alt.TitleParams:
    return alt.TitleParams(text=text, subtitle=subtitle) if subtitle else alt.TitleParams(text=text)
