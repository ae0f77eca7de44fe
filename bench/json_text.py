"""`make bench-json`: events as JSON text through Tamis and through event-ruler, in turns.

The rules are those of event-ruler's own benchmark and random ones up to 100,000 (ruler/rules.py), on events
in its layout from 200 bytes to 100 KB (ruler/lots.py). Both run in turns of a fraction of a second. The
result is the median over the turns of the ratio within a turn, because a busy machine slows both. They must
find the same number of matches.

    call         Index.match(b"{}"): a call that reads and finds nothing
    match        Index.match(bytes), event by event
    lines        Index.match_batch(bytes): JSON lines, on one thread
    ndjson       Index.match_ndjson(bytes), on one thread
    unchecked    the same as lines, with validate=False
    all          the same as lines, on all cores
    ruler        Machine.rulesForJSONEvent(String), on one thread; "ruler all": on all cores
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import tamis
from ruler.lots import lots
from ruler.rules import SETS, Rule, many, patterns
from tamis_lab.benchmark.environment import describe, one_line

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(Path(__file__).parent / "peers"))
import run as peers  # noqa: E402

CORES = os.cpu_count() or 1
NINE_POINTS = 9
RANDOM_RULES = {"10 rules": 10, "1K rules": 1_000, "100K rules": 100_000}
POINTS = {"200 B": 1, "10 KB": 150, "100 KB": 1_500}
SIDES = ("call", "match", "lines", "ndjson", "unchecked", "all", "ruler", "ruler all")


@dataclass(frozen=True)
class Case:
    """Rules, and events of a size."""

    name: str
    rules: list[Rule]
    points: int = NINE_POINTS


def cases() -> list[Case]:
    """Everything that is measured."""
    sets = [Case(name, rules) for name, rules in SETS.items()]
    random = [Case(name, many(count)) for name, count in RANDOM_RULES.items()]
    sizes = [Case(f"exact, {name}", SETS["exact"], points) for name, points in POINTS.items()]
    return sets + random + sizes


@contextmanager
def ruler(command: list[str], case: Case, events: list[str]) -> Iterator[Callable[[str], str]]:
    """Event-ruler in a process of its own, which answers a line with a line."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, "patterns"), Path(folder, "events")]
        files[0].write_text("\n".join(patterns(case.rules)))
        files[1].write_text("\n".join(events))
        arguments = [*command, *map(str, files)]
        with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

            def ask(line: str) -> str:
                assert process.stdin
                assert process.stdout
                process.stdin.write(line + "\n")
                process.stdin.flush()
                return process.stdout.readline().strip()

            assert process.stdout
            assert process.stdout.readline().strip() == "ready"
            yield ask
            assert process.stdin
            process.stdin.close()


def repeated(seconds: float, once: Callable[[], int]) -> float:
    """Seconds per event: `once` handles some events and says how many."""
    events, started = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < seconds or events == 0:
        events += once()
    return elapsed / events


def index_of(rules: list[Rule]) -> tamis.Index:
    """The rules in an index, laid out for good."""
    index = tamis.Index()
    index.add_many(list(range(len(rules))), [expression for _, expression in rules])
    index.optimize()
    return index


def measure(case: Case, command: list[str], options: argparse.Namespace) -> dict[str, Any]:
    """All sides of one case, in turns."""
    events = list(lots(max(20, options.bytes // (200 + 75 * case.points)), case.points, options.seed))
    single = [event.encode() for event in events]
    text = b"\n".join(single)
    index = index_of(case.rules)
    match = index.match

    def each() -> int:
        for event in single:
            match(event)
        return len(single)

    def nothing() -> int:
        for _ in single:
            match(b"{}")
        return len(single)

    def lines(threads: int, validate: bool = True) -> int:
        index.match_batch(text, threads=threads, validate=validate)
        return len(single)

    def ndjson() -> int:
        index.match_ndjson(text, threads=1)
        return len(single)

    with ruler(command, case, events) as ask:

        def theirs(threads: int, seconds: float) -> float:
            done, elapsed = ask(f"{threads} {seconds}").split()
            return float(elapsed) / int(done)

        sides: dict[str, Callable[[float], float]] = {
            "ruler": lambda seconds: theirs(1, seconds),
            "call": lambda seconds: repeated(seconds, nothing),
            "match": lambda seconds: repeated(seconds, each),
            "lines": lambda seconds: repeated(seconds, lambda: lines(1)),
            "ndjson": lambda seconds: repeated(seconds, ndjson),
            "unchecked": lambda seconds: repeated(seconds, lambda: lines(1, validate=False)),
            "ruler all": lambda seconds: theirs(CORES, seconds),
            "all": lambda seconds: repeated(seconds, lambda: lines(CORES)),
        }
        theirs(1, options.warm_up)
        expected = int(ask("count"))
        found = index.match_batch(text).num_rows
        turns = [{name: side(options.seconds) for name, side in sides.items()} for _ in range(options.turns)]
    ratios = {
        name: statistics.median(
            turn["ruler all" if name == "all" else "ruler"] / turn[name] for turn in turns
        )
        for name in ("match", "lines", "ndjson", "unchecked", "all")
    }
    size = len(text) / len(events)
    middle = {name: statistics.median(turn[name] for turn in turns) for name in SIDES}
    return {
        "case": case.name,
        "rules": len(case.rules),
        "event_bytes": size,
        "matches_per_event": found / len(events),
        "matches_agree": found == expected,
        "microseconds": {name: seconds * 1e6 for name, seconds in middle.items()},
        "events_per_second": {name: 1 / seconds for name, seconds in middle.items()},
        "gigabytes_per_second": {
            name: size / seconds / 1e9 for name, seconds in middle.items() if name != "call"
        },
        "times_event_ruler": ratios,
        "turns": turns,
    }


def print_table(rows: list[dict[str, Any]], circumstances: str) -> None:
    """Microseconds per event by side, gigabytes per second, and how many times event-ruler's speed."""
    table = Table(caption=circumstances, caption_justify="left", box=None, pad_edge=False)
    heads = ["rules", "bytes", "matches", *(f"{side} us" for side in SIDES)]
    heads += ["lines GB/s", "unchecked GB/s", "match x", "lines x", "ndjson x", "unchecked x", "all x"]
    table.add_column("case")
    for head in heads:
        table.add_column(head, justify="right")
    for row in rows:
        agree = "" if row["matches_agree"] else " differ"
        speed, ratios = row["gigabytes_per_second"], row["times_event_ruler"]
        table.add_row(
            row["case"],
            f"{row['rules']:,}",
            f"{row['event_bytes']:,.0f}",
            f"{row['matches_per_event']:.2f}{agree}",
            *(f"{row['microseconds'][side]:,.2f}" for side in SIDES),
            f"{speed['lines']:.2f}",
            f"{speed['unchecked']:.2f}",
            *(f"{ratios[name]:.1f}" for name in ("match", "lines", "ndjson", "unchecked", "all")),
        )
    Console(width=max(190, Console().width)).print(table)


def main() -> None:
    """Read the command line, measure, print, write bench/results/json.json."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [case.name for case in cases()]
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="CASE")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.4, help="of one side in one turn")
    parser.add_argument("--warm-up", type=float, default=3.0, help="seconds, for event-ruler's compiler")
    parser.add_argument("--bytes", type=int, default=4_000_000, help="of events")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=ROOT / "bench" / "results" / "json.json")
    options = parser.parse_args()
    try:
        command = peers.from_maven("EventRulerTurns")()
    except peers.MissingError as error:
        raise SystemExit(f"event-ruler cannot be run: {error}") from None
    rows = [measure(case, command, options) for case in cases() if case.name in options.only]
    environment = describe(options.seed)
    print_table(rows, one_line(environment))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    record = {"environment": environment, "event_ruler": "1.7.3", "results": rows}
    options.output.write_text(json.dumps(record, indent=2) + "\n")
    if not all(row["matches_agree"] for row in rows):
        raise SystemExit("the two do not find the same matches")


if __name__ == "__main__":
    main()
