"""Compares Flink's broadcast state with Tamis on Spark: the same rules and events, from the same files.

Every task of Flink holds all rules and evaluates them one by one for each event, as its documentation shows
and its users write. The program is `bench/flink/BroadcastRules.java`; Flink comes from Maven. Both read the
events as lines of JSON on the same number of cores and run the whole job several times in one process; the
best run counts. The numbers of matches must be equal.
"""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tamis.spark
from tamis_lab.benchmark import java
from tamis_lab.benchmark.processor_time import least_spent_in_turns
from tamis_lab.workloads import Equality
from tamis_lab.workloads.spark import generate_events

ROOT = Path(__file__).parents[4]
SOURCE = ROOT / "bench" / "flink"
FETCHED = ROOT / ".tools" / "flink"
CORES = 2
RUNS = 3
EVENTS = {100: 200_000, 1_000: 100_000, 10_000: 20_000}
"""Rules, and events for both: fewer where Flink takes milliseconds an event."""

COLUMNS = [
    "rules",
    "events",
    "matches",
    "flink s",
    "tamis s",
    "flink/tamis",
    "flink cpu µs/event",
    "tamis cpu µs/event",
    "flink/tamis cpu",
]


def beside_flink(spark: Any, scale: float) -> Iterator[list[Any]]:
    """A row for each number of rules; none where Maven or the Java compiler is missing."""
    if not shutil.which("mvn") or not shutil.which("javac"):
        print("  Flink is left out: it needs mvn and javac")
        return
    path = class_path()
    for rules, events in EVENTS.items():
        yield measured(spark, path, rules, max(500, int(events * scale)))


def class_path() -> str:
    """Fetch Flink, unless that was done before, and compile the program that drives it."""
    return java.class_path(FETCHED, SOURCE / "pom.xml", SOURCE / "BroadcastRules.java")


def measured(spark: Any, path: str, rules: int, events: int) -> list[Any]:
    """Both on some rules and events; an error if they find different numbers of matches."""
    folder = Path(tempfile.mkdtemp(prefix="tamis-flink-"))
    try:
        workload = Equality(count=rules)
        table = workload.subscriptions_table()
        write_rules(folder / "rules", table)
        written = generate_events(spark, workload, events).repartition(CORES)
        written.write.json(f"{folder}/events")
        flink = run_flink(path, folder)
        index = tamis.spark.build(spark.createDataFrame(table.select(["id", "expression"])))
        arriving = spark.read.schema(written.schema).json(f"{folder}/events")
        matches = index.match(arriving).count()
        if (flink["events"], flink["matches"]) != (events, matches):
            raise AssertionError(f"Flink found {flink}, Tamis {matches} matches of {events} events")
        if flink["evaluated"] != rules * events:
            raise AssertionError(f"Flink did not see all {rules} rules for all events: {flink}")
        ways = {"tamis": lambda: index.match(arriving).write.format("noop").mode("overwrite").save()}
        ours = least_spent_in_turns(ways, RUNS)["tamis"]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return [
        rules,
        events,
        matches,
        flink["seconds"],
        ours.seconds,
        flink["seconds"] / ours.seconds,
        1e6 * flink["processor"] / events,
        1e6 * ours.processor / events,
        flink["processor"] / ours.processor,
    ]


def write_rules(folder: Path, table: Any) -> None:
    """Rules as lines: the id, a tab, the expression."""
    folder.mkdir(parents=True)
    pairs = zip(table.column("id").to_pylist(), table.column("expression").to_pylist(), strict=True)
    (folder / "rules.txt").write_text("".join(f"{id}\t{text}\n" for id, text in pairs))


def run_flink(path: str, folder: Path) -> dict[str, Any]:
    """The best of some runs of Flink's job in one process."""
    command = ["java", "-Xmx4g", "-cp", path, "BroadcastRules", f"{folder}/rules", f"{folder}/events"]
    done = subprocess.run([*command, str(CORES), str(RUNS)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"Flink failed: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found
