"""`make bench-flow`: compare rules with memory with Esper and Siddhi; writes bench/results/flow.json.

60 s windows, 1,000 events a second, 10,000 users; each event concerns one rule, and the number of alerts does
not depend on the number of rules. Times are processor time per event, after a minute of traffic. Esper and
Siddhi come from Maven. *Grown* is the memory that rules and events take: for Tamis, the growth of the process
beyond the interpreter with Arrow and all events; for the others, the growth of the heap after a collection.
Esper also evaluates a counting rule when an event leaves its window, which adds a few alerts. Its rules are
one statement that is deployed with different parameters, its best case; `--esper-apart` compiles each rule
separately, which takes 46 ms. Slow peers get fewer events, so their windows hold less than those of Tamis.

The steps of Esper's sequences follow one another among the events of a kind, as those of `strict` do;
`sequences` also allows gaps, and keeps partial matches for them. Both find the same alerts here.

The cases `own` and `pairs` are about state: all rules have windows of their own, or every other rule shares
that of its neighbour.
"""

import argparse
import gc
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table
from traffic import traffic

import tamis
from tamis_lab.benchmark.environment import describe, one_line
from tamis_lab.benchmark.java import class_path
from tamis_lab.benchmark.scale import format_size, parse_size

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PEERS = ROOT / ".tools" / "flow-peers"
WARM, MEASURED = 60_000, 20_000
FEWER = {
    ("Esper", "joins"): (20_000, 2_000),
    ("Siddhi", "sequences"): (20_000, 2_000),
    ("Siddhi", "joins"): (2_000, 200),
}
"""Events to warm up with and to measure, of what takes milliseconds an event at 1,000 rules."""
FEWEST = (300, 50)
"""The same of joins at 10,000 rules: Esper takes 54 ms an event."""

RULES: dict[str, Callable[[int, int], str]] = {
    "counts": lambda rule, _: f"kind = {rule} AND count(* WHERE kind = {rule} BY user LAST 59999ms) >= 8",
    "shared": lambda rule, rules: f"count(* BY user LAST 59999ms) >= {18 + rule * 1000 // rules}",
    "sequences": lambda rule, _: (
        f"SEQUENCE (a: kind = {rule}){{6}} THEN (b: kind = {rule} AND b.ts > a.ts) WITHIN 60s BY user"
    ),
    "strict": lambda rule, _: (
        f"SEQUENCE STRICT (a: kind = {rule}){{6}} THEN (b: kind = {rule} AND b.ts > a.ts) "
        "WITHIN 60s BY user, kind"
    ),
    "joins": lambda rule, _: (
        "SELECT x.ts FROM hits RANGE 60 SECONDS AS x JOIN hits ROWS 1 AS y ON x.user = y.user "
        f"WHERE x.kind = {rule} AND y.ts - x.ts BETWEEN 1 AND 40"
    ),
    "own": lambda rule, _: (
        f"kind = {rule // 2} AND count(* WHERE kind = {rule // 2} "
        f"BY user{', kind' if rule % 2 else ''} LAST 59999ms) >= {8 + rule % 2}"
    ),
    "pairs": lambda rule, _: (
        f"kind = {rule // 2} AND count(* WHERE kind = {rule // 2} BY user LAST 59999ms) >= {8 + rule % 2}"
    ),
}
PEER_CASES = {"counts": "counts", "sequences": "sequences", "strict": "sequences", "joins": "joins"}
"""What the peers call a case."""


def run_tamis(case: str, rules: int) -> dict[str, Any]:
    """One measurement, in this process."""
    drawn = traffic(rules // 2 if case in ("own", "pairs") else rules)
    batches = []
    for first in range(0, WARM + MEASURED, 10_000):
        rows = [next(drawn) for _ in range(10_000)]
        users, kinds = zip(*rows, strict=True)
        times = range(first, first + 10_000)
        batches.append(pa.table({"ts": list(times), "user": list(users), "kind": list(kinds)}))
    gc.collect()
    before = resident_memory()
    flow = tamis.Flow()
    flow.stream("hits", time="ts", unit="ms")
    started = time.process_time()
    for rule in range(rules):
        flow.add(str(rule), RULES[case](rule, rules))
    adding = time.process_time() - started
    for batch in batches[: WARM // 10_000]:
        flow.push_batch("hits", batch)
    started = time.process_time()
    told = [out for batch in batches[WARM // 10_000 :] for out in flow.push_batch("hits", batch)]
    micros = (time.process_time() - started) / MEASURED * 1e6
    alerts = [round(out.time.timestamp() * 1000) for out in told if out.kind == "+"]
    return {
        "micros": micros,
        "alerts": len(alerts),
        "alert_times": sum(alerts),
        "bytes": flow.stats()["bytes"],
        "micros_per_rule": adding / rules * 1e6,
        "base_bytes": before,
        "grown_bytes": resident_memory() - before,
    }


def resident_memory() -> int:
    """Of this process without files, by Linux. What was freed and not given back counts, too."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) * 1024
    return 0


def alone(case: str, rules: int) -> dict[str, Any]:
    """A measurement of Tamis in a process of its own."""
    command = [sys.executable, __file__, "--one", case, str(rules)]
    return last_line(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def last_line(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text.strip().splitlines()[-1])
    return found


def prepare(name: str) -> str:
    """Fetch a peer and compile what drives it; returns its class path.

    Each has a folder of its own: they want different versions of one library.
    """
    source = HERE / "java" / name.lower()
    programs = (HERE / "java" / "Traffic.java", source / f"{name}Rules.java")
    return class_path(PEERS / name.lower(), source / "pom.xml", *programs)


def peer(name: str, path: str, case: str, rules: int, given: argparse.Namespace) -> dict[str, Any] | None:
    """A measurement of a peer; nothing if it takes too long or fails."""
    warm, measured = (WARM, MEASURED) if rules < 1_000 else FEWER.get((name, case), (WARM, MEASURED))
    if case == "joins" and rules >= 10_000:
        warm, measured = FEWEST
    command = ["java", "-Xmx4g", "-cp", path, f"{name}Rules", case, str(rules), str(warm), str(measured)]
    command += ["apart" if given.esper_apart else "together"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=given.patience, check=True)
    except subprocess.TimeoutExpired:
        Console(stderr=True).print(f"{name}, {case}, {rules} rules: not done in {given.patience} s")
        return None
    except subprocess.CalledProcessError as failed:
        Console(stderr=True).print(f"{name} failed: {failed.stderr.strip().splitlines()[-1:]}")
        return None
    return last_line(done.stdout)


def main() -> None:
    """Measure, print a table, write a file."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rules", type=parse_size, nargs="*", default=[100, 1_000, 10_000, 100_000])
    arguments.add_argument("--cases", nargs="*", choices=list(RULES), default=list(RULES))
    arguments.add_argument("--peers", nargs="*", choices=["Esper", "Siddhi"], default=["Esper", "Siddhi"])
    arguments.add_argument("--peer-rules", type=parse_size, default=10_000, help="the most rules peers get")
    arguments.add_argument("--turns", type=int, default=1, help="how often the engines take turns")
    arguments.add_argument("--esper-apart", action="store_true", help="compile each rule of Esper for itself")
    arguments.add_argument("--patience", type=int, default=600, help="seconds for one run of a peer")
    arguments.add_argument("--one", nargs=2, metavar=("CASE", "RULES"), help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.one:
        print(json.dumps(run_tamis(given.one[0], int(given.one[1]))))
        return
    peers = given.peers if shutil.which("mvn") and shutil.which("javac") else []
    paths = {name: prepare(name) for name in peers}
    results = []
    for case in given.cases:
        for rules in given.rules:
            for turn in range(given.turns):
                named = {"case": case, "rules": rules, "turn": turn}
                own = alone(case, rules)
                results.append({"engine": "tamis", **named, **own})
                if case in PEER_CASES and rules <= given.peer_rules:
                    for name, path in paths.items():
                        found = peer(name, path, PEER_CASES[case], rules, given)
                        if found:
                            if case in ("sequences", "strict") and (name, "sequences") not in FEWER:
                                assert found["alert_times"] == own["alert_times"], "the same alerts"
                            ratio = found["micros"] / own["micros"]
                            results.append({"engine": name.lower(), **named, **found, "over_tamis": ratio})
    environment = describe(seed=42)
    table = Table("case", "rules", "engine", "µs/event", "over Tamis", "alerts", "grown MB", "µs/rule to add")
    for result in results:
        table.add_row(
            result["case"],
            format_size(result["rules"]),
            result["engine"],
            f"{result['micros']:.2f}",
            f"{result.get('over_tamis', 1):.1f}",
            f"{result['alerts']:,}",
            f"{result['grown_bytes'] / 1e6:.1f}",
            f"{result['micros_per_rule']:,.0f}",
        )
    Console().print(table)
    Console().print(one_line(environment))
    output = ROOT / "bench" / "results" / "flow.json"
    output.parent.mkdir(exist_ok=True)
    output.write_text(json.dumps({"environment": environment, "results": results}, indent=1))


if __name__ == "__main__":
    main()
