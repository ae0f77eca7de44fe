"""The pipeline that `tamis spark init` writes, run as it is written; then what it left in its folders."""

import importlib.util
import io
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tamis.spark.template import write_template


def run_template(console: Console, spark: Any, folder: Path) -> None:
    """Write the template into a folder that has none, run it, and show its alerts and what it counted."""
    write_template(folder)
    pipeline = _loaded(folder / "pipeline.py")
    session = spark.newSession()  # the pipeline has settings of its own
    for name, value in pipeline.SETTINGS.items():
        session.conf.set(name, value)
    said = io.StringIO()
    with console.status("raw events, rules and rules with memory, step by step"), redirect_stdout(said):
        pipeline.run(session, folder)
    console.print(_counts(pipeline.metrics(folder)))
    console.print()
    for line in said.getvalue().splitlines():
        console.print(f"    {escape(line)}")
    windows = session.read.parquet(str(folder / "alerts_per_window")).orderBy("start", "rule").collect()
    for row in windows:
        hour = f"{row.start:%H:%M} to {row.end:%H:%M}"
        console.print(f"    [cyan]{hour}[/]  {escape(row.rule)}: {row.alerts} alerts, amount {row.amount}")


def _loaded(path: Path) -> ModuleType:
    """A file as a module, wherever it lies."""
    found = importlib.util.spec_from_file_location("tamis_demo_pipeline", path)
    assert found is not None  # a file that was just written
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


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
        counted = ", ".join(f"{value:,} {name.replace('_', ' ')}" for name, value in sums.items())
        shown.add_row(f"    [cyan]{step.replace('_', ' ')}[/]", counted)
    return shown
