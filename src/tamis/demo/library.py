"""The demonstration, step by step. It uses only the public API of the library."""

import json
import time
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
from rich.table import Table

import tamis
from tamis.demo.campaigns import Campaigns

BEST = 5
PORTION = 16_384


def run(subscriptions: int = 200_000, events: int = 20_000, seed: int = 1) -> None:
    """Index campaigns, stream page views through them, explain one answer and one that did not come."""
    console = Console(highlight=False)
    console.print(
        "\n[bold]Tamis[/] sifts events through standing Boolean expressions: "
        "which of these campaigns want this page view?\n"
    )
    campaigns = Campaigns(seed)
    index = _index(console, campaigns, subscriptions)
    page_views = campaigns.page_views(0, events)
    event = _stream(console, index, page_views)
    _batch(console, index, campaigns, len(page_views))
    if index.exists(event):
        best = _best(console, index, event)
        _explain(console, index, best, event)
        _why_not(console, index, page_views, best)
    _farewell(console)


def _index(console: Console, campaigns: Campaigns, count: int) -> tamis.Index:
    _step(console, 1, f"{count:,} campaigns become an index")
    index = tamis.Index()
    texts = 0
    indexing = 0.0
    with _progress(console, "campaigns") as bar:
        task = bar.add_task("indexing", total=count, rate="")
        for first in range(0, count, PORTION):
            table = campaigns.rules(first, min(first + PORTION, count))
            if not texts:
                examples = table.slice(0, 3).to_pylist()
            started = time.perf_counter()
            index.add_many(table["id"], table["expression"], priorities=table["priority"])
            indexing += time.perf_counter() - started
            texts += table.num_rows
            bar.update(task, completed=texts, rate=f"{texts / indexing:,.0f} campaigns/s")
    for rule in examples:
        console.print(f"    [cyan]{rule['id']:>10}[/]  {escape(rule['expression'])}", soft_wrap=True)
    console.print(f"    {'...':>10}")
    _say(console, f"read and indexed in [bold]{indexing:.1f} s[/], {texts / indexing:,.0f} a second")
    return index


def _stream(console: Console, index: tamis.Index, page_views: list[Any]) -> Any:
    """Match one by one, as a service would; returns the page view with the most matches among the first."""
    _step(console, 2, f"{len(page_views):,} page views stream through it, one by one")
    times = np.empty(len(page_views), dtype=np.int64)
    matches = 0
    most, best_event = -1, page_views[0]
    clock = time.perf_counter_ns
    started = clock()
    with _progress(console, "page views") as bar:
        task = bar.add_task("matching", total=len(page_views), rate="")
        for number, event in enumerate(page_views):
            before = clock()
            found = index.match(event)
            times[number] = clock() - before
            matches += len(found)
            if len(found) > most and number < 1_000:
                most, best_event = len(found), event
            if number % 256 == 255 or number + 1 == len(page_views):
                rate = (number + 1) / ((clock() - started) / 1e9)
                bar.update(task, completed=number + 1, rate=f"{rate:,.0f} page views/s")
    p50, p99 = np.percentile(times, [50, 99]) / 1_000
    rate = len(page_views) / (times.sum() / 1e9)
    _say(console, f"[bold]{matches:,}[/] matches, {matches / len(page_views):,.0f} for each page view")
    _say(
        console,
        f"[bold]{rate:,.0f}[/] page views a second on one core, from Python; "
        f"half take less than {p50:,.0f} µs, 99 % less than {p99:,.0f} µs",
    )
    return best_event


def _batch(console: Console, index: tamis.Index, campaigns: Campaigns, events: int) -> None:
    _step(console, 3, "The same page views as one Arrow table")
    table = campaigns.page_view_table(0, events)
    started = time.perf_counter()
    found = index.match_batch(table)
    elapsed = time.perf_counter() - started
    _say(
        console,
        f"[bold]{events / elapsed:,.0f}[/] page views a second on all cores, "
        f"a table of {found.num_rows:,} rows (event, subscription)",
    )


def _best(console: Console, index: tamis.Index, event: Any) -> str:
    best = index.top_k(event, k=BEST)
    _step(
        console,
        4,
        f"One page view, and the {len(best)} of its {index.count(event):,} campaigns that bid most",
    )
    console.print(Padding(json.dumps(event, ensure_ascii=False), (0, 4)), style="cyan", soft_wrap=False)
    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column("rank", justify="right")
    table.add_column("bid", justify="right")
    table.add_column("campaign")
    table.add_column("expression")
    for match in best:
        expression = str(index[match.id].expression)
        table.add_row(str(match.rank), f"{match.score:.2f}", f"[cyan]{match.id}[/]", escape(expression))
    console.print(Padding(table, (1, 4)))
    return str(best[0].id)


def _explain(console: Console, index: tamis.Index, id_: str, event: Any) -> None:
    _step(console, 5, f"Why {id_}?   index.explain({id_!r}, event)")
    console.print(Padding(index.explain(id_, event), (0, 4)))


def _why_not(console: Console, index: tamis.Index, page_views: list[Any], id_: str) -> None:
    """Show the nearest miss: of the first page views that the campaign does not want, the closest one."""
    answers = [(index.why_not(id_, event), event) for event in page_views[:200]]
    misses = [(answer, event) for answer, event in answers if answer.answer == "changes"]
    if misses:
        answer, event = min(misses, key=lambda miss: len(miss[0].changes))
        _step(console, 6, f"And why not for another page view?   index.why_not({id_!r}, other)")
        console.print(Padding(json.dumps(event, ensure_ascii=False), (0, 4)), style="cyan")
        console.print(Padding(answer, (1, 4)))


def _farewell(console: Console) -> None:
    _step(console, None, "Where to look next")
    for command, meaning in (
        ("README.md", "what it is, in five minutes"),
        ("docs/expressions.md", "everything an expression can say"),
        ("tamis --help", "the same from the command line, over files and pipes"),
        ("tamis bench --quick", "measure it on this machine (with tamis-lab)"),
    ):
        console.print(f"    [cyan]{command:<22}[/] {meaning}")
    console.print()


def _step(console: Console, number: int | None, title: str) -> None:
    mark = "-" if number is None else str(number)
    console.print(f"\n[bold blue]{mark}[/]  [bold]{escape(title)}[/]\n", soft_wrap=True)


def _say(console: Console, text: str) -> None:
    console.print(f"    {text}", soft_wrap=True)


def _progress(console: Console, unit: str) -> Progress:
    return Progress(
        TextColumn("    {task.description}"),
        BarColumn(bar_width=40, complete_style="blue", finished_style="blue"),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]}", style="dim"),
        console=console,
        transient=False,
        disable=not console.is_terminal,
    )
