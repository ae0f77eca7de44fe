"""Charts as inline SVG, and HTML pages that need nothing from outside.

A few kinds suffice: horizontal bars, upright bars in a row, and lines, over logarithmic or plain axes.
"""

import math
from collections.abc import Mapping, Sequence
from html import escape

_WIDTH, _HEIGHT = 640, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 150, 44, 40
_COLOURS = ("#1f6f8b", "#d1603d", "#4f9d69", "#8a5a9e", "#b08d2f", "#5b6770", "#c2428f", "#222222")

_MOST_TENS = 3
"""Powers of ten on an axis, above which it needs no further ticks between them."""

NOTE = "note"
"""The title of a column of text."""

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem;
  padding: 0 1rem; color: #222 }
h1, h2, th { font-weight: 600 }
h2 { margin-top: 2.5rem }
table { border-collapse: collapse; margin: 1rem 0 }
th, td { padding: .25rem .8rem; text-align: right }
th { border-bottom: 1px solid #bbb }
td:first-child, th:first-child { text-align: left; padding-left: 0 }
td.text, th.text { text-align: left; font-size: .9em; color: #555 }
.note { color: #666; font-size: .9em }
svg { display: block; margin: 1rem 0; max-width: 100% }
svg text { font: 12px system-ui, sans-serif; fill: #333 }
"""


def page(title: str, sections: Sequence[str]) -> str:
    """A complete HTML page.

    >>> page("Hello", ["<p>there</p>"]).startswith("<!doctype html>")
    True
    """
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style>'
    body = f"<h1>{escape(title)}</h1>{''.join(sections)}"
    return f"<!doctype html><html><head>{head}</head><body>{body}</body></html>"


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """An HTML table. Columns of numbers are aligned at the right, the first and one of notes at the left.

    >>> table(["a"], [["<1>"]])
    '<table><tr><th>a</th></tr><tr><td>&lt;1&gt;</td></tr></table>'
    """
    kinds = [' class="text"' if name == NOTE else "" for name in header]
    head = "".join(f"<th{kind}>{escape(name)}</th>" for kind, name in zip(kinds, header, strict=True))
    body = "".join(
        "<tr>"
        + "".join(f"<td{kind}>{escape(str(cell))}</td>" for kind, cell in zip(kinds, row, strict=True))
        + "</tr>"
        for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def bars(title: str, values: Mapping[str, float], unit: str = "") -> str:
    """Horizontal bars, one per label, from zero.

    >>> bars("Sharing", {"paper": 18.35, "ours": 18.4}).count("<rect")
    2
    """
    longest = max(values.values(), default=1.0) or 1.0
    height = _TOP + 28 * len(values) + 8
    left = max(200, 24 + 6.6 * max(map(len, values), default=0))
    room = _WIDTH - 200 - 130
    parts = []
    for place, (label, value) in enumerate(values.items()):
        y = _TOP + 28 * place
        width = max(1.0, room * value / longest)
        colour = _COLOURS[place % len(_COLOURS)]
        parts.append(f'<text x="{left - 10:.1f}" y="{y + 14}" text-anchor="end">{escape(label)}</text>')
        parts.append(f'<rect x="{left:.1f}" y="{y}" width="{width:.1f}" height="20" rx="2" fill="{colour}"/>')
        parts.append(f'<text x="{left + 6 + width:.1f}" y="{y + 14}">{figure(value)} {escape(unit)}</text>')
    return _svg(title, height, parts, round(_WIDTH - 200 + left))


def pairs(title: str, names: tuple[str, str], values: Mapping[str, tuple[float, float]]) -> str:
    """Two horizontal bars for each label, each pair on a scale of its own; none for what is below zero.

    >>> pairs("Sharing", ("paper", "ours"), {"times": (18.35, 18.4), "% less": (27.0, -3.0)}).count("<rect")
    5
    """
    left = 24 + 6.6 * max(map(len, values), default=0)
    room = 260
    parts = []
    for place, name in enumerate(names):
        x = left + 90 * place
        parts.append(
            f'<rect x="{x:.1f}" y="{_TOP - 16}" width="10" height="10" fill="{_COLOURS[place]}"/>'
            f'<text x="{x + 16:.1f}" y="{_TOP - 7}">{escape(name)}</text>'
        )
    for row, (label, pair) in enumerate(values.items()):
        y = _TOP + 6 + 34 * row
        longest = max(*pair, 0.0) or 1.0
        parts.append(f'<text x="{left - 10:.1f}" y="{y + 16}" text-anchor="end">{escape(label)}</text>')
        for place, value in enumerate(pair):
            width = room * max(0.0, value) / longest
            top = y + 13 * place
            if width:
                parts.append(
                    f'<rect x="{left:.1f}" y="{top}" width="{max(1.0, width):.1f}" height="11" rx="2" '
                    f'fill="{_COLOURS[place]}"/>'
                )
            parts.append(f'<text x="{left + 6 + width:.1f}" y="{top + 10}">{figure(value)}</text>')
    return _svg(title, _TOP + 34 * len(values) + 14, parts, round(left + room + 80))


def columns(title: str, values: Sequence[float]) -> str:
    """Upright bars, one after another, from zero; the highest and the last are labelled.

    >>> columns("Seconds", [1.0, 2.0, 1.5]).count("<rect")
    3
    """
    highest = max(values, default=1.0) or 1.0
    height, floor = 200, 180
    room = (_WIDTH - _LEFT - 20) / max(1, len(values))
    parts = [f'<line x1="{_LEFT}" x2="{_WIDTH - 20}" y1="{floor}" y2="{floor}" stroke="#bbb"/>']
    labelled = {max(range(len(values)), key=lambda at: values[at]), len(values) - 1} if values else set()
    for at, value in enumerate(values):
        size = (floor - _TOP - 14) * value / highest
        x = _LEFT + at * room
        parts.append(
            f'<rect x="{x:.1f}" y="{floor - size:.1f}" width="{max(1.0, room - 3):.1f}" '
            f'height="{size:.1f}" rx="1" fill="{_COLOURS[0]}"/>'
        )
        if at in labelled:
            middle = x + room / 2
            place = f'x="{middle:.1f}" y="{floor - size - 4:.1f}"'
            parts.append(f'<text {place} text-anchor="middle">{figure(value)}</text>')
    return _svg(title, height, parts)


def lines(title: str, series: Mapping[str, Sequence[tuple[float, float]]], x_title: str, y_title: str) -> str:
    """Lines through positive points, both axes logarithmic.

    >>> lines("Time", {"index": [(1e4, 2.0), (1e5, 3.0)]}, "subscriptions", "µs").count("<polyline")
    1
    """
    positive = {name: [point for point in line if min(point) > 0] for name, line in series.items()}
    return _lines(title, positive, (x_title, y_title), _Axis)


def plain_lines(
    title: str, series: Mapping[str, Sequence[tuple[float, float]]], x_title: str, y_title: str
) -> str:
    """Lines through points that are not negative, both axes plain and from zero.

    >>> plain_lines("Load", {"accuracy": [(0.0, 0.1), (1.0, 0.2)]}, "share", "load").count("<circle")
    2
    """
    return _lines(title, series, (x_title, y_title), _PlainAxis)


def _lines(
    title: str,
    series: Mapping[str, Sequence[tuple[float, float]]],
    axis_titles: tuple[str, str],
    axis: "type[_Axis] | type[_PlainAxis]",
) -> str:
    points = [point for line in series.values() for point in line]
    if not points:
        return ""
    x_axis = axis([x for x, _ in points], _LEFT, _WIDTH - _RIGHT)
    y_axis = axis([y for _, y in points], _HEIGHT - _BOTTOM, _TOP)
    x_title, y_title = axis_titles
    parts = []
    for tick in x_axis.ticks:
        x = x_axis.place(tick)
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}" stroke="#e5e5e5"/>'
        )
        parts.append(
            f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 16}" text-anchor="middle">{_tick(tick)}</text>'
        )
    for tick in y_axis.ticks:
        y = y_axis.place(tick)
        parts.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e5e5e5"/>'
        )
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_tick(tick)}</text>')
    for number, (name, line) in enumerate(series.items()):
        placed = [(x_axis.place(x), y_axis.place(y)) for x, y in line]
        if not placed:
            continue
        colour = _COLOURS[number % len(_COLOURS)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in placed]
        legend = _TOP + 8 + 18 * number
        parts.append(
            f'<rect x="{_WIDTH - _RIGHT + 14}" y="{legend - 9}" width="10" height="10" fill="{colour}"/>'
        )
        parts.append(f'<text x="{_WIDTH - _RIGHT + 30}" y="{legend}">{escape(name)}</text>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{_HEIGHT - 6}" text-anchor="middle">{escape(x_title)}</text>')
    parts.append(f'<text x="{_LEFT}" y="{_TOP - 6}">{escape(y_title)}</text>')
    room_for_names = 36 + 7 * max(map(len, series))
    return _svg(title, _HEIGHT, parts, _WIDTH + max(0, room_for_names - _RIGHT))


class _Axis:
    """A logarithmic axis from the round number below the values to the one above.

    >>> _Axis([2.0, 40.0], 0, 100).ticks, _Axis([3.0, 40_000.0], 0, 100).ticks
    ([2.0, 5.0, 10.0, 20.0, 50.0], [10.0, 100.0, 1000.0, 10000.0])
    """

    def __init__(self, values: Sequence[float], start: float, end: float) -> None:
        powers = range(math.floor(math.log10(min(values))), math.ceil(math.log10(max(values))) + 1)
        round_numbers = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
        low = max(tick for tick in round_numbers if tick <= min(values) * (1 + 1e-9))
        high = min(tick for tick in round_numbers if tick >= max(values) * (1 - 1e-9) and tick > low)
        self._low, self._high = math.log10(low), math.log10(high)
        self._start, self._end = start, end
        within = [tick for tick in round_numbers if low <= tick <= high]
        tens = [tick for tick in within if abs(math.log10(tick) % 1) < 1e-9]
        self.ticks = tens if len(tens) > _MOST_TENS else within

    def place(self, value: float) -> float:
        share = (math.log10(value) - self._low) / (self._high - self._low)
        return self._start + share * (self._end - self._start)


class _PlainAxis:
    """An axis from zero to a round number above the values, with about five ticks.

    >>> _PlainAxis([0.2, 0.87], 0, 100).ticks
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """

    def __init__(self, values: Sequence[float], start: float, end: float) -> None:
        highest = max(values) or 1.0
        power = 10.0 ** math.floor(math.log10(highest / 5))
        step = next(size * power for size in (1, 2, 2.5, 5, 10) if size * power * 5 >= highest * 0.999)
        self._high = step * math.ceil(highest / step - 1e-9)
        self._start, self._end = start, end
        self.ticks = [round(step * count, 12) for count in range(round(self._high / step) + 1)]

    def place(self, value: float) -> float:
        return self._start + value / self._high * (self._end - self._start)


def figure(value: float) -> str:
    """A value as it is read in a table or beside a bar.

    >>> figure(23198.4), figure(18.354)
    ('23,198', '18.35')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.4g}"


def _tick(value: float) -> str:
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "K")):
        if value >= size:
            return f"{value / size:g}{suffix}"
    return f"{value:g}"


def _svg(title: str, height: float, parts: Sequence[str], width: float = _WIDTH) -> str:
    head = f'<text x="0" y="16" style="font-weight: 600">{escape(title)}</text>'
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="{escape(title)}" xmlns="http://www.w3.org/2000/svg">{head}{"".join(parts)}</svg>'
    )
