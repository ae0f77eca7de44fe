"""One HTML page of all experiments that have been run into a folder, made from their JSON files."""

import json
from html import escape
from pathlib import Path
from typing import Any

from tamis.benchmark import charts
from tamis.benchmark.environment import one_line

PAGE = "report.html"
MOST_LINES = 7


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


def section(record: dict[str, Any]) -> str:
    """The part of the page about one experiment."""
    rows = [
        (
            row["what"],
            "" if row["paper"] is None else f"{row['paper']:,.4g}",
            f"{row['ours']:,.4g}",
            "" if not row["paper"] else f"{row['ours'] / row['paper']:.2f}",
            row["note"],
        )
        for row in record["rows"]
    ]
    parts = [
        f"<h2>{escape(record['name'])}</h2>",
        f"<p>{escape(record['question'])} ({escape(record['paper'])}, {escape(record['figure'])})</p>",
        charts.table(("", "paper", "ours", "ratio", "note"), rows),
    ]
    for row in record["rows"]:
        if row["paper"]:
            parts.append(charts.bars(row["what"], {"paper": row["paper"], "ours": row["ours"]}))
    if record["lines"]:
        x_title, y_title = record["axes"]
        for group, lines in grouped(record["lines"]).items():
            parts.append(charts.lines(record["figure"] + group, lines, x_title, y_title))
    for chart in record.get("charts", ()):
        x_title, y_title = chart["axes"]
        parts.append(charts.plain_lines(chart["title"], chart["lines"], x_title, y_title))
    if record["note"]:
        parts.append(f"<p>{escape(record['note'])}</p>")
    circumstances = f"scale {record['scale']['name']}; {one_line(record['environment'])}"
    parts.append(f'<p class="note">{escape(circumstances)}</p>')
    return "".join(parts)
