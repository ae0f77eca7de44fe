"""One HTML page of all experiments that have been run into a folder, made from their JSON files."""

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from tamis.chart_page import Chart, number, page, table
from tamis_lab import charts
from tamis_lab.benchmark.environment import one_line
from tamis_lab.experiments.contract import Row

PAGE = "report.html"
LEAD = "Tables and figures of papers, measured again: theirs, ours, and the ratio of the two."
MOST_LINES = 7
UNITS = {
    "us": "µs",
    "ms": "ms",
    "s": "s",
    "MB": "MB",
    "%": "%",
    "model over measured": "predicted / measured",
}
"""Of rows whose figures can stand side by side: as their names end, and as an axis has them."""


def write_report(folder: Path) -> Path:
    """Write the page from all JSON files of the folder; a rerun replaces its own section only."""
    records = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    path = folder / PAGE
    sections = [part for record in records for part in section(record)]
    path.write_text(page("Tamis experiments", sections, LEAD), encoding="utf-8")
    return path


def grouped(lines: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """More lines than a chart can show, one chart for each word behind the last comma of their names.

    >>> many = {f"{name}, {data}": [] for name in "abcde" for data in ("uniform", "Zipf")}
    >>> {group: list(lines) for group, lines in grouped(many).items()}[", Zipf"]
    ['a', 'b', 'c', 'd', 'e']
    >>> grouped({"a, Zipf": []})
    {'': {'a, Zipf': []}}
    """
    if len(lines) <= MOST_LINES:
        return {"": lines}
    groups: dict[str, dict[str, Any]] = {}
    for line, points in lines.items():
        name, _, group = line.rpartition(", ")
        groups.setdefault(f", {group}" if name else "", {})[name or group] = points
    return groups


def comparable(rows: Sequence[Row]) -> dict[tuple[str, str], dict[str, float]]:
    """Rows without a figure of the paper that have a unit in common, for a chart where there is no other.

    They are called `workload: algorithm, unit`, or `design: what is measured, unit`.

    >>> comparable([Row(f"ads: {name}, us", None, 2.0) for name in ("scan", "bdd")])
    {('ads', 'us'): {'scan': 2.0, 'bdd': 2.0}}
    >>> comparable([Row(f"{name}: memory, MB", None, 2.0) for name in ("none", "all")])
    {('memory', 'MB'): {'none': 2.0, 'all': 2.0}}
    """
    by_group: dict[tuple[str, str], dict[str, float]] = {}
    by_what: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        group, _, what = row.what.rpartition(": ")
        name, _, unit = what.rpartition(", ")
        if row.paper is None and group and unit in UNITS:
            by_group.setdefault((group, unit), {})[name] = row.ours
            by_what.setdefault((name, unit), {})[group] = row.ours
    # Of the two ways to put them together, the one with fewer and longer charts.
    fewer = min(by_group, by_what, key=len)
    return {what: values for what, values in fewer.items() if len(values) > 1}


def section(record: dict[str, Any]) -> list[str | Chart]:
    """The part of the page about one experiment."""
    figures = [Row(**row) for row in record["rows"]]
    rows = [
        (
            row.what,
            "" if row.paper is None else number(row.paper),
            number(row.ours),
            "" if row.ratio is None else f"{row.ratio:.2f}",
            row.note,
        )
        for row in figures
    ]
    parts: list[str | Chart] = [
        f"<h2>{escape(record['name'])}</h2>",
        f"<p>{escape(record['question'])} ({escape(record['paper'])}, {escape(record['figure'])})</p>",
        table(("", "paper", "ours", "ratio", "note"), rows, text=("note",)),
    ]
    both = {row.what: (row.paper, row.ours) for row in figures if row.paper and row.ratio}
    if both:
        parts.append(charts.ratios("How far are we from the paper?", both, subtitle=record["figure"]))
    if record["lines"]:
        x_title, y_title = record["axes"]
        for group, lines in grouped(record["lines"]).items():
            axes = (x_title or group.removeprefix(", "), y_title)
            parts.append(charts.lines(record["figure"] + group, lines, axes))
    else:
        for (what, unit), values in comparable(figures).items():
            parts.append(charts.bars(what, values, UNITS[unit]))
    for chart in record.get("charts", ()):
        parts.append(charts.lines(chart["title"], chart["lines"], tuple(chart["axes"]), log=False))
    if record["note"]:
        parts.append(f"<p>{escape(record['note'])}</p>")
    circumstances = f"scale {record['scale']['name']}; {one_line(record['environment'])}"
    parts.append(f'<p class="note">{escape(circumstances)}</p>')
    return parts
