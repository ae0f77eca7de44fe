"""The report of the demonstration: one self-contained HTML page."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import altair as alt

from tamis.chart_page import Chart, page, table, tiles

if TYPE_CHECKING:
    from tamis.demo.pipeline import Seen

LARGE = 512
"""From here on, sizes share one bar: few are so large, and a page is not so wide."""


def write_report(path: Path, seen: "Seen") -> Path:
    """Write the page and return its path."""
    batches = seen.batches
    shown = [
        (
            row["batch"],
            f"{row['events']:,}",
            f"{row['matches']:,}",
            row["version"],
            f"{row['seconds']:.2f}",
            f"{row['events'] / row['seconds']:,.0f}",
        )
        for row in batches
    ]
    popular = [
        (name, f"{count:,}", f"{count / seen.events:.1%}", expression)
        for name, count, expression in seen.popular
    ]
    sections: list[str | Chart] = [
        tiles(
            {
                "campaigns": f"{seen.subscriptions:,}",
                "page views": f"{seen.events:,}",
                "matches": f"{seen.matches:,}",
                "campaigns indexed per second": f"{seen.subscriptions / seen.index_seconds:,.0f}",
                "page views matched per second": f"{seen.events / seen.match_seconds:,.0f}",
            }
        ),
        "<h2>The table</h2>",
        spread("How many campaigns want a page view?", seen.per_event, "campaigns", "page views"),
        spread("How many page views does a campaign match?", seen.per_rule, "page views", "campaigns"),
        "<p>The campaigns that match most:</p>",
        table(["campaign", "page views", "share", "expression"], popular, text=("expression",)),
        "<h2>The stream</h2>",
        "<p>Page views arrive in micro-batches while campaigns change; one version of the index answers all "
        "of a micro-batch. The first one includes the start of the query.</p>",
        durations(batches),
        versions(batches),
        table(["micro-batch", "page views", "top-3 matches", "version", "seconds", "page views/s"], shown),
        "<h2>The plan</h2>",
        f"<pre>{escape(seen.plan)}</pre>",
    ]
    lead = (
        "Which campaigns want this page view? Standing expressions matched with a table, then with a stream."
    )
    path.write_text(page("Tamis on Spark", sections, lead), encoding="utf-8")
    return path


def spread(title: str, sizes: Sequence[tuple[int, int]], what: str, of: str) -> Chart:
    """How many have none, one, two or three, four to seven, ...: powers of two, and how many reach them.

    >>> chart = spread("How many?", [(0, 5), (1, 3), (2, 1), (512, 2), (1024, 1)], "matches", "events")
    >>> [rows] = chart.to_dict()["datasets"].values()
    >>> [(row["size"], row["count"]) for row in rows]
    [('0', 5), ('1', 3), ('2–3', 1), ('512+', 3)]
    """
    counts: dict[str, int] = {}
    for least, count in sizes:
        size = _between(least)
        counts[size] = counts.get(size, 0) + count
    rows = [{"size": size, "count": count} for size, count in counts.items()]
    base = alt.Chart({"values": rows}).encode(
        x=alt.X("size:O", title=what, sort=None, axis=alt.Axis(labelAngle=0)),
        y=alt.Y("count:Q", title=of, axis=alt.Axis(format=",d", tickCount=5)),
        tooltip=[alt.Tooltip("size:N", title=what), alt.Tooltip("count:Q", title=of, format=",")],
    )
    labels = base.mark_text(dy=-7).encode(text=alt.Text("count:Q", format=","))
    return alt.layer(base.mark_bar(), labels).properties(title=title, width=alt.Step(72), height=220)


def durations(batches: Sequence[dict[str, Any]]) -> Chart:
    """Seconds by micro-batch, with the median."""
    base = alt.Chart({"values": list(batches)})
    bars = base.mark_bar().encode(
        x=_by_batch(),
        y=alt.Y("seconds:Q", title="seconds", axis=alt.Axis(tickCount=5)),
        tooltip=[
            alt.Tooltip("batch:O", title="micro-batch"),
            alt.Tooltip("seconds:Q", format=".2f"),
            alt.Tooltip("events:Q", title="page views", format=","),
        ],
    )
    rule = base.mark_rule(strokeDash=[4, 3]).encode(y="median(seconds):Q")
    title = alt.TitleParams(text="How long does a micro-batch take?", subtitle="dashed: the median")
    return alt.layer(bars, rule).properties(title=title, width=alt.Step(50), height=180)


def versions(batches: Sequence[dict[str, Any]]) -> Chart:
    """The version that answered, by micro-batch; changes have made it by then."""
    answered = [row for row in batches if row["version"] is not None]
    chart: Chart = (
        alt.Chart({"values": answered})
        .mark_line(point=alt.OverlayMarkDef(filled=True, size=60))
        .encode(
            x=_by_batch(),
            y=alt.Y("version:Q", title="version", axis=alt.Axis(tickMinStep=1, tickCount=6)),
            tooltip=[alt.Tooltip("batch:O", title="micro-batch"), alt.Tooltip("version:Q")],
        )
        .properties(title="Which version of the index answers?", width=alt.Step(50), height=180)
    )
    return chart


def _by_batch() -> alt.X:
    return alt.X("batch:O", title="micro-batch", axis=alt.Axis(labelAngle=0))


def _between(least: int) -> str:
    """The numbers from a power of two up to the next; all large ones together."""
    if least >= LARGE:
        return f"{LARGE}+"
    return str(least) if least < 2 else f"{least}–{2 * least - 1}"
