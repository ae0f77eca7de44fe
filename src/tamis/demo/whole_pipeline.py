"""Runs the pipeline that `tamis spark init` writes, as its README says, and shows its output folders."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tamis.errors import TamisError
from tamis.spark.template import write_template

SHORT_RUN = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java's optimising compiler would take more time from a few events than it saves."""


def run_template(console: Console, folder: Path) -> None:
    """Write the template into a folder that has none, run it, and show what it counted and its windows."""
    write_template(folder)
    with console.status("raw events, rules and rules with memory, step by step"):
        # In a process of its own: Spark's workers for rules with memory talk on standard error.
        ended = subprocess.run(
            [sys.executable, str(folder / "pipeline.py")],
            env={"JAVA_TOOL_OPTIONS": SHORT_RUN, **os.environ},
            capture_output=True,
            text=True,
            check=False,
        )
    if ended.returncode != 0:
        raise TamisError(f"{folder / 'pipeline.py'} failed:\n{ended.stderr[-4000:]}")
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    console.print(_counts([json.loads(line) for line in lines]))
    console.print()
    for line in ended.stdout.splitlines():
        console.print(f"    {escape(line)}")
    windows = pq.read_table(folder / "alerts_per_window").sort_by(
        [("start", "ascending"), ("rule", "ascending")]
    )
    for row in windows.to_pylist():
        hour = f"{row['start']:%H:%M} to {row['end']:%H:%M}"
        alerts = "1 alert" if row["alerts"] == 1 else f"{row['alerts']} alerts"
        console.print(f"    [cyan]{hour}[/]  {escape(row['rule'])}: {alerts}, {row['amount']}")


def _counts(metrics: list[dict[str, Any]]) -> Table:
    """A row for each step: the sum over its micro-batches."""
    shown = Table(box=None, header_style="dim", pad_edge=False)
    shown.add_column("    step")
    shown.add_column("counted")
    for step in dict.fromkeys(row["step"] for row in metrics):
        sums: dict[str, int] = {}
        for row in metrics:
            if row["step"] == step:
                for name, value in row.items():
                    if name not in ("step", "micro_batch"):
                        sums[name] = sums.get(name, 0) + (value or 0)
        counted = ", ".join(f"{name.replace('_', ' ')}: {value:,}" for name, value in sums.items())
        shown.add_row(f"    [cyan]{step.replace('_', ' ')}[/]", counted)
    return shown
