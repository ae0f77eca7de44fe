"""The benchmark's table on the terminal, and its page with charts."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from tamis.chart_page import Chart, page, table
from tamis_lab import charts
from tamis_lab.benchmark.environment import one_line
from tamis_lab.benchmark.scale import format_size

if TYPE_CHECKING:
    from tamis_lab.benchmark.kernel import Row

COLUMNS = (
    "workload",
    "subs",
    "matches",
    "count µs p50/p99",
    "ids µs p50",
    "python µs p50",
    "batch ev/s 1t",
    "2t",
    "build s",
    "insert/s",
    "delete/s",
    "while matching",
    "bytes/sub",
    "scan µs",
    "scan ratio",
)


def cells(row: "Row") -> list[str]:
    """A row of the table, one text per column."""
    figures = row.figures
    return [
        row.workload,
        format_size(row.subscriptions),
        _number(figures.matches_per_event),
        f"{_number(figures.count_p50)} / {_number(figures.count_p99)}",
        _number(figures.match_p50),
        _number(figures.python_p50),
        _number(figures.batch_events_per_second_1),
        _number(figures.batch_events_per_second_2),
        f"{figures.build_seconds:.2f}",
        _number(figures.inserts_per_second),
        _number(figures.deletes_per_second),
        f"{_number(figures.inserts_per_second_while_matching)} / "
        f"{_number(figures.deletes_per_second_while_matching)}",
        _number(figures.bytes_per_subscription),
        _number(figures.scan_microseconds),
        f"{_number(figures.scan_ratio)}x",
    ]


def print_report(rows: Sequence["Row"], environment: dict[str, Any]) -> None:
    """Print the table and its circumstances."""
    console = Console(width=None if Console().is_terminal else 200)
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in COLUMNS:
        table.add_column(column, justify="left" if column == "workload" else "right")
    for row in rows:
        table.add_row(*cells(row))
    console.print(table)
    console.print(f"[dim]{one_line(environment)}[/]")


def write_html(rows: Sequence["Row"], environment: dict[str, Any], path: Path) -> None:
    """Write the table and charts as a page that needs nothing from outside."""
    names = list(dict.fromkeys(row.workload for row in rows))

    def series(figure: str) -> dict[str, list[tuple[float, float]]]:
        return {
            name: [(row.subscriptions, getattr(row.figures, figure)) for row in rows if row.workload == name]
            for name in names
        }

    sections: list[str | Chart] = [
        f'<p class="note">{escape(one_line(environment))}</p>',
        table(COLUMNS, [cells(row) for row in rows]),
        charts.lines(
            "How long does one event take?",
            series("count_p50"),
            ("subscriptions", "µs per event"),
            subtitle="counting its matches, median; lower is better",
        ),
        charts.lines(
            "How many events per second, in batches?",
            series("batch_events_per_second_2"),
            ("subscriptions", "events per second"),
            subtitle="two threads; higher is better",
        ),
        charts.lines(
            "How many times faster than a plain scan?",
            series("scan_ratio"),
            ("subscriptions", "time of a scan / time of the index"),
            subtitle="one event at a time; higher is better",
        ),
    ]
    path.write_text(page("Tamis kernel benchmark", sections), encoding="utf-8")


def _number(value: float) -> str:
    """A figure with two or three digits that matter.

    >>> _number(0.1234), _number(12.34), _number(1234.5), _number(2_500_000)
    ('0.12', '12.3', '1,234', '2.50M')
    """
    if value >= 1e6:
        return f"{value / 1e6:.2f}M"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
