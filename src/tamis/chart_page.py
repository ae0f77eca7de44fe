"""Self-contained HTML pages with charts, in light and dark.

A page is a sequence of sections: HTML texts and Altair charts. It contains the charts as Vega-Lite
specifications, and the JavaScript that draws them, which comes from `vl-convert-python`. Colours are not in
the specifications but in a theme, one for each colour scheme of the reader's system. Series use the palette
of Okabe and Ito, which colour-blind people can distinguish.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from html import escape
from typing import Any, Protocol

from tamis._extras import missing_extra

try:
    from vl_convert import javascript_bundle
except ImportError as missing:
    raise ImportError(missing_extra("a page with charts", "charts")) from missing

FONT = "system-ui, sans-serif"
INK = {"light": "#1d2129", "dark": "#e3e6eb"}
FAINT = {"light": "#5a6270", "dark": "#9aa3b0"}
LINES = {"light": "#dfe2e8", "dark": "#333a45"}
PAPER = {"light": "#ffffff", "dark": "#15181d"}
SERIES = {
    "light": ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#000000"],
    "dark": ["#56b4e9", "#e69f00", "#2fc79a", "#e0a0c4", "#f0e442", "#e8804a", "#9a9a9a", "#ffffff"],
}


class Chart(Protocol):
    """Whatever has a Vega-Lite specification, such as an Altair chart."""

    def to_dict(self) -> dict[str, Any]:
        """The specification."""
        ...


def page(title: str, sections: Sequence[str | Chart], lead: str = "") -> str:
    """A complete HTML page; sections that are texts are HTML already.

    >>> written = page("Hello", ["<p>there</p>"], lead="One sentence.")
    >>> written.startswith("<!doctype html>"), "<script" in written
    (True, False)
    """
    specifications: list[dict[str, Any]] = []
    body = [f"<h1>{escape(title)}</h1>"]
    if lead:
        body.append(f'<p class="lead">{escape(lead)}</p>')
    for section in sections:
        if isinstance(section, str):
            body.append(section)
        else:
            body.append(f'<figure id="chart-{len(specifications)}"></figure>')
            # Without the settings that Altair adds, which would win over the theme.
            specifications.append({**section.to_dict(), "config": {}})
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{_style()}</style>"
    )
    scripts = _scripts(specifications) if specifications else ""
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(body)}{scripts}</body></html>\n'


def tiles(values: Mapping[str, str]) -> str:
    """Single values, large, each with what it is.

    >>> tiles({"matches": "1,024"})
    '<dl class="tiles"><div><dd>1,024</dd><dt>matches</dt></div></dl>'
    """
    inner = (f"<div><dd>{escape(value)}</dd><dt>{escape(name)}</dt></div>" for name, value in values.items())
    return f'<dl class="tiles">{"".join(inner)}</dl>'


def table(header: Sequence[str], rows: Sequence[Sequence[object]], text: Collection[str] = ()) -> str:
    """An HTML table. The first column and those named in `text` are aligned left, numbers right.

    >>> table(["a"], [["<1>"]])
    '<div class="wide"><table><tr><th>a</th></tr><tr><td>&lt;1&gt;</td></tr></table></div>'
    """
    kinds = [' class="text"' if name in text else "" for name in header]
    head = "".join(f"<th{kind}>{escape(name)}</th>" for kind, name in zip(kinds, header, strict=True))
    body = "".join(
        "<tr>"
        + "".join(f"<td{kind}>{escape(str(cell))}</td>" for kind, cell in zip(kinds, row, strict=True))
        + "</tr>"
        for row in rows
    )
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'


def number(value: float) -> str:
    """A value as shown in a table or next to a bar.

    >>> number(23198.4), number(18.354)
    ('23,198', '18.35')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.4g}"


def theme(scheme: str) -> dict[str, Any]:
    """The Vega-Lite configuration of a colour scheme, `light` or `dark`.

    >>> theme("light")["background"]
    'transparent'
    """
    ink, faint, lines, series = INK[scheme], FAINT[scheme], LINES[scheme], SERIES[scheme]
    labels = {"labelColor": faint, "labelFontSize": 12, "titleColor": faint, "titleFontSize": 12}
    return {
        "background": "transparent",
        "font": FONT,
        "view": {"stroke": None, "continuousWidth": 600, "continuousHeight": 280},
        "title": {
            "anchor": "start",
            "frame": "bounds",
            "color": ink,
            "fontSize": 15,
            "fontWeight": 600,
            "subtitleColor": faint,
            "subtitleFontSize": 12,
            "subtitlePadding": 4,
            "offset": 14,
        },
        "axis": {
            **labels,
            "titleFontWeight": "normal",
            "titlePadding": 8,
            "domainColor": lines,
            "gridColor": lines,
            "tickColor": lines,
            "labelLimit": 420,
        },
        "legend": {**labels, "titleFontWeight": "normal", "labelLimit": 260, "symbolSize": 80},
        "mark": {"color": series[0]},
        "text": {"color": ink, "fontSize": 12},
        "rule": {"color": faint},
        "line": {"strokeWidth": 2},
        "range": {"category": series},
    }


def _scripts(specifications: Sequence[dict[str, Any]]) -> str:
    themes = {scheme: theme(scheme) for scheme in ("light", "dark")}
    return (
        f'<script type="application/json" id="charts">{_embedded(specifications)}</script>'
        f'<script type="application/json" id="themes">{_embedded(themes)}</script>'
        f"<script>{_drawing()}</script>"
    )


@cache
def _drawing() -> str:
    """The JavaScript that draws: Vega-Lite and what it needs, which takes seconds to put together."""
    bundle: str = javascript_bundle(_DRAW)
    return bundle


def _embedded(value: Any) -> str:
    """JSON that no text inside can end the script element of."""
    return json.dumps(value).replace("<", "\\u003c")


_DRAW = """
const read = id => JSON.parse(document.getElementById(id).textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
function draw() {
  const scheme = dark.matches ? "dark" : "light";
  const actions = {export: true, source: false, compiled: false, editor: false};
  read("charts").forEach((chart, n) => vegaEmbed("#chart-" + n, chart,
    {config: read("themes")[scheme], tooltip: {theme: scheme}, renderer: "svg", actions}));
}
dark.addEventListener("change", draw);
draw();
"""

_STYLE = """
body { font: 15px/1.55 FONT; margin: 2rem auto; max-width: 62rem; padding: 0 1rem;
  color: var(--ink); background: var(--paper) }
h1, h2, th { font-weight: 600 }
h1 { margin-bottom: .3rem }
h2 { margin-top: 3rem; padding-top: 1rem; border-top: 1px solid var(--lines) }
.lead, .note { color: var(--faint) }
.note { font-size: .9em }
.tiles { display: flex; flex-wrap: wrap; gap: 1rem 2.5rem; margin: 1.8rem 0 }
.tiles div { display: flex; flex-direction: column }
.tiles dd { margin: 0; font-size: 1.7rem; font-weight: 600; font-variant-numeric: tabular-nums }
.tiles dt { color: var(--faint) }
.wide, figure { overflow-x: auto }
figure { margin: 1.8rem 0 }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums }
th, td { padding: .3rem .9rem; text-align: right; border-bottom: 1px solid var(--lines) }
td:first-child, th:first-child { text-align: left; padding-left: 0; white-space: nowrap }
td.text, th.text { text-align: left; font-size: .9em; color: var(--faint) }
pre { overflow-x: auto; padding: 1rem; border: 1px solid var(--lines); border-radius: 4px }
.vega-embed summary { opacity: .4 }
"""


def _style() -> str:
    def variables(scheme: str) -> str:
        colours = {"ink": INK, "faint": FAINT, "lines": LINES, "paper": PAPER}
        return "".join(f"--{name}: {by_scheme[scheme]}; " for name, by_scheme in colours.items())

    return (
        f":root {{ {variables('light')}}}"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {variables('dark')}}} }}"
        f"{_STYLE.replace('FONT', FONT)}"
    )
