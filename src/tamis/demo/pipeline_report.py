"""The demonstration's report: one HTML page that needs nothing from outside."""

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from tamis.demo.charts import bars, columns, page, table

if TYPE_CHECKING:
    from tamis.demo.pipeline import Seen


def write_report(path: Path, seen: "Seen") -> Path:
    """Write the page and return its path."""
    rates = {
        "rules indexed per second": seen.subscriptions / seen.index_seconds,
        "events matched per second": seen.events / seen.match_seconds,
        "matches written per second": seen.matches / seen.match_seconds,
    }
    summary = [
        ("subscriptions", f"{seen.subscriptions:,}"),
        ("events", f"{seen.events:,}"),
        ("matches", f"{seen.matches:,}"),
        ("index built in", f"{seen.index_seconds:.1f} s"),
        ("events matched in", f"{seen.match_seconds:.1f} s"),
    ]
    batches = seen.batches
    shown = [
        (row["batch"], f"{row['events']:,}", f"{row['matches']:,}", row["version"], f"{row['seconds']:.2f}")
        for row in batches
    ]
    sections = [
        table(["", "batch"], summary),
        bars("Rates of the batch job", rates, "/s"),
        bars("Rules by their number of matches", dict(seen.histogram), "rules"),
        bars("The rules with the most matches", dict(seen.popular), "matches"),
        "<h2>The stream</h2>",
        columns("Events per second, by micro-batch", [row["events"] / row["seconds"] for row in batches]),
        columns("Seconds that each micro-batch took", [row["seconds"] for row in batches]),
        columns("Version of the index that answered", [row["version"] or 0 for row in batches]),
        table(["micro-batch", "events", "top-3 matches", "version", "seconds"], shown),
        "<h2>The plan</h2>",
        f"<pre>{escape(seen.plan)}</pre>",
    ]
    path.write_text(page("Tamis on Spark: campaigns and page views", sections), encoding="utf-8")
    return path
