"""`make bench-patterns`: log records against detection rules, which are nearly all patterns.

The rules and the records are our own, in the manner of Sigma (log_rules.py). The same rules are written in
two ways:

    ilike      Image ILIKE '%\\\\powershell.exe': case is disregarded by the operator
    lower      endswith(lower(Image), '\\\\powershell.exe'): by a computed term, as Sigma's importer does

What is measured, on one thread: the time to add all rules and lay them out, to open a snapshot of them, the
first match after that, the size of the snapshot, and the time of a record, one by one from a dict (match) and
as a batch of JSON lines (lines). Every turn is a separate process.

With `--base PATH`, a folder that holds another built `tamis` (the `src` of another tree), each turn also
measures that one, and the table has the ratio. Both must find the same number of matches.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import tamis
from log_rules import records, rules, written
from tamis_lab.benchmark.environment import describe, one_line

ROOT = Path(__file__).parent.parent
SEED = 23
FIGURES = {
    "build": "build, ms",
    "open": "open, ms",
    "first": "first match, ms",
    "bytes": "bytes a rule",
    "match": "match, µs",
    "lines": "lines, µs",
    "matches": "matches",
}


def main() -> None:
    """Measure, print a table, write bench/results/patterns.json."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rules", type=int, default=3_000, help="how many rules (default: %(default)s)")
    parser.add_argument("--records", type=int, default=1_000, help="how many records (default: %(default)s)")
    parser.add_argument(
        "--turns", type=int, default=5, help="how often each is measured (default: %(default)s)"
    )
    parser.add_argument("--base", type=Path, help="a folder that holds another built `tamis`")
    parser.add_argument("--one-turn", choices=("ilike", "lower"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one_turn:
        print(json.dumps(measure(options.one_turn, options.rules, options.records)))
        return
    report(options)


def measure(form: str, rule_count: int, record_count: int) -> dict[str, float]:
    """One turn of one way to write the rules."""
    texts = [written(rule, lowered=form == "lower") for rule in rules(rule_count, SEED)]
    events = list(records(record_count, SEED + 1))
    lines = "\n".join(json.dumps(event) for event in events).encode()
    started = time.perf_counter()
    index = tamis.Index()
    index.add_many(range(len(texts)), texts)
    index.optimize()
    build = time.perf_counter() - started
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rules.tamis")
        index.save(path)
        started = time.perf_counter()
        opened = tamis.open(path)
        open_time = time.perf_counter() - started
        started = time.perf_counter()
        opened.match(events[0])
        first = time.perf_counter() - started
        matches = sum(len(opened.match(event)) for event in events)  # also compiles what is compiled lazily
        started = time.perf_counter()
        for event in events:
            opened.match(event)
        match = time.perf_counter() - started
        opened.match_batch(lines, threads=1)
        started = time.perf_counter()
        opened.match_batch(lines, threads=1)
        batch = time.perf_counter() - started
        size = path.stat().st_size
    return {
        "build": build * 1e3,
        "open": open_time * 1e3,
        "first": first * 1e3,
        "bytes": size / len(texts),
        "match": match / len(events) * 1e6,
        "lines": batch / len(events) * 1e6,
        "matches": matches / len(events),
    }


def one_turn(form: str, options: argparse.Namespace, library: Path | None) -> dict[str, float]:
    """The same in a process of its own, so that nothing is warm."""
    environment = dict(os.environ)
    if library:
        environment["PYTHONPATH"] = str(library.resolve())
    sizes = ["--rules", str(options.rules), "--records", str(options.records)]
    command = [sys.executable, str(Path(__file__).resolve()), "--one-turn", form, *sizes]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    result: dict[str, float] = json.loads(ran.stdout)
    return result


def report(options: argparse.Namespace) -> None:
    """All turns, the table and the file."""
    environment = describe(SEED)
    console = Console()
    console.print(one_line(environment))
    table = Table("rules", *FIGURES.values())
    results: list[dict[str, Any]] = []
    sides = {"head": None, **({"base": options.base} if options.base else {})}
    for form in ("ilike", "lower"):
        turns = [
            {side: one_turn(form, options, library) for side, library in sides.items()}
            for _ in range(options.turns)
        ]
        medians = {
            side: {figure: statistics.median(turn[side][figure] for turn in turns) for figure in FIGURES}
            for side in sides
        }
        for side, figures in medians.items():
            name = f"{form}, {options.rules:,}" + (f", {side}" if options.base else "")
            table.add_row(name, *(f"{figures[figure]:,.2f}" for figure in FIGURES))
        results.append({"form": form, "rules": options.rules, "turns": turns, "medians": medians})
        if options.base:
            ratios = {
                figure: statistics.median(
                    turn["base"][figure] / turn["head"][figure] for turn in turns if turn["head"][figure]
                )
                for figure in FIGURES
            }
            table.add_row("base / head", *(f"{ratios[figure]:,.2f}" for figure in FIGURES))
            if any(turn["base"]["matches"] != turn["head"]["matches"] for turn in turns):
                raise SystemExit(f"{form}: the two sides find different matches")
    console.print(table)
    path = ROOT / "bench" / "results" / "patterns.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"environment": environment, "results": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
