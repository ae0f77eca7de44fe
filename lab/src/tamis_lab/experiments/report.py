"""One HTML page of all experiments that have been run into a folder, made from their JSON files."""

import json
from html import escape
from pathlib import Path
from typing import Any

from tamis.demo import charts
from tamis_lab.benchmark.environment import one_line
from tamis_lab.experiments.contract import Row

PAGE = "report.html"
MOST_LINES = 7
UNITS = ("us", "ms", "s", "MB", "%", "model over measured")
"""Of rows whose figures can stand side by side."""


def write_report(folder: Path) -> Path:
    """Write the page from all JSON files of the folder; a rerun replaces its own section only."""
    records = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    page = folder / PAGE
    page.write_text(
        charts.page("Tamis experiments", [section(record) for record in records]), encoding="utf-8"
    )
    return page


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


def comparable(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Rows without a figure of the paper that have a unit in common, for a chart where there is no other.

    They are called `workload: algorithm, unit`, or `design: what is measured, unit`.

    >>> rows = [{"what": f"ads: {name}, us", "paper": None, "ours": 2.0} for name in ("scan", "bdd")]
    >>> comparable(rows)
    {'ads, us': {'scan': 2.0, 'bdd': 2.0}}
    >>> rows = [{"what": f"{name}: memory, MB", "paper": None, "ours": 2.0} for name in ("none", "all")]
    >>> comparable(rows)
    {'memory, MB': {'none': 2.0, 'all': 2.0}}
    """
    by_group: dict[str, dict[str, float]] = {}
    by_what: dict[str, dict[str, float]] = {}
    for row in rows:
        group, _, what = row["what"].rpartition(": ")
        name, _, unit = what.rpartition(", ")
        if row["paper"] is None and group and unit in UNITS:
            by_group.setdefault(f"{group}, {unit}", {})[name] = row["ours"]
            by_what.setdefault(f"{name}, {unit}", {})[group] = row["ours"]
    # Of the two ways to put them together, the one with fewer and longer charts.
    fewer = min(by_group, by_what, key=len)
    return {what: values for what, values in fewer.items() if len(values) > 1}


def section(record: dict[str, Any]) -> str:
    """The part of the page about one experiment."""
    rows = [
        (
            row.what,
            "" if row.paper is None else charts.figure(row.paper),
            charts.figure(row.ours),
            "" if row.ratio is None else f"{row.ratio:.2f}",
            row.note,
        )
        for row in (Row(**row) for row in record["rows"])
    ]
    parts = [
        f"<h2>{escape(record['name'])}</h2>",
        f"<p>{escape(record['question'])} ({escape(record['paper'])}, {escape(record['figure'])})</p>",
        charts.table(("", "paper", "ours", "ratio", charts.NOTE), rows),
    ]
    both = {row["what"]: (row["paper"], row["ours"]) for row in record["rows"] if row["paper"]}
    if both:
        title = f"{record['figure']}, each pair on a scale of its own"
        parts.append(charts.pairs(title, ("paper", "ours"), both))
    if record["lines"]:
        x_title, y_title = record["axes"]
        for group, lines in grouped(record["lines"]).items():
            title = record["figure"] + group
            parts.append(charts.lines(title, lines, x_title or group.removeprefix(", "), y_title))
    else:
        for what, values in comparable(record["rows"]).items():
            parts.append(charts.bars(what, values))
    for chart in record.get("charts", ()):
        x_title, y_title = chart["axes"]
        parts.append(charts.plain_lines(chart["title"], chart["lines"], x_title, y_title))
    if record["note"]:
        parts.append(f"<p>{escape(record['note'])}</p>")
    circumstances = f"scale {record['scale']['name']}; {one_line(record['environment'])}"
    parts.append(f'<p class="note">{escape(circumstances)}</p>')
    return "".join(parts)
