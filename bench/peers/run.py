"""`make bench-peers`: the same subscriptions and events through Tamis and through published packages.

Each peer comes from its package registry, at the version pinned next to this file (requirements.txt,
java/pom.xml, a-tree/Cargo.lock), into .tools/peers, and is driven by a small program of ours (adapters/,
java/, a-tree/). Vespa's predicate search is compiled from a clone of its repository (`--vespa`). A peer gets
every subscription that it can express, in its own language; Tamis gets the same ones, and the number of
matches of every event is compared. Times are per event, one after the other; memory is what the process grew
by, at its peak and settled (adapters/memory.py).
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from languages import LANGUAGES, CannotExpressError, simplify, tests_of
from rich.console import Console
from rich.table import Table

import tamis
from tamis_lab.benchmark.environment import describe, one_line
from tamis_lab.benchmark.scale import format_size, parse_size
from tamis_lab.workloads import AbeGen, Dense, Equality, Workload

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
TOOLS = ROOT / ".tools" / "peers"
EVENTS = 500

WORKLOADS: dict[str, Callable[[int, int], Workload]] = {
    "equality": lambda count, seed: Equality(count=count, seed=seed),
    "dense": lambda count, seed: Dense(count=count, seed=seed),
    "abe-gen": lambda count, seed: AbeGen(count=count, seed=seed),
}

NOT_MEASURED = {
    "quamina.net/go/quamina/v2": "no adapter yet: the registry at hand did not serve its module",
    "github.com/echoface/be_indexer": "no adapter yet: the registry at hand did not serve its module",
}


class MissingError(Exception):
    """A peer cannot be run here, and why."""


@dataclass(frozen=True)
class Peer:
    """A package: its version, the language of its rules, and how to get the command that drives it."""

    name: str
    version: str
    language: str
    prepare: Callable[[], list[str]]
    limits: str = ""
    """What it cannot express, in words."""


# --- getting the peers -----------------------------------------------------------------------------------


def fetch(*command: str, **options: Any) -> None:
    """Run a package client; a failure makes the peer missing."""
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=900, **options)
    except FileNotFoundError:
        raise MissingError(f"there is no `{command[0]}`") from None
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        said = str(getattr(error, "stderr", "") or error).strip().splitlines()
        raise MissingError(f"`{command[0]}` failed: {said[-1] if said else error}") from None


def ours(adapter: str) -> Callable[[], list[str]]:
    """An adapter that runs in the environment of Tamis."""
    return lambda: [sys.executable, str(HERE / "adapters" / adapter)]


def from_pypi(adapter: str) -> Callable[[], list[str]]:
    """An adapter that runs in an environment of the peers' own."""

    def prepare() -> list[str]:
        python = TOOLS / "venv" / "bin" / "python"
        wanted = HERE / "requirements.txt"
        done = TOOLS / "venv" / "requirements.txt"
        if not done.exists() or done.read_text() != wanted.read_text():
            fetch(sys.executable, "-m", "venv", str(TOOLS / "venv"))
            fetch(str(python), "-m", "pip", "install", "--disable-pip-version-check", "-r", str(wanted))
            shutil.copy(wanted, done)
        return [str(python), str(HERE / "adapters" / adapter)]

    return prepare


def from_crates() -> list[str]:
    """The crate `a-tree`, compiled with optimisations."""
    environment = {**os.environ, "CARGO_TARGET_DIR": str(TOOLS / "a-tree")}
    fetch("cargo", "build", "--release", "--locked", cwd=HERE / "a-tree", env=environment)
    return [str(TOOLS / "a-tree" / "release" / "a-tree-peer")]


def from_maven(program: str) -> Callable[[], list[str]]:
    """One of the Java programs, with the jars that pom.xml names."""

    def prepare() -> list[str]:
        jars, classes = TOOLS / "java" / "lib", TOOLS / "java" / "classes"
        if not shutil.which("javac"):
            raise MissingError("there is no `javac`")
        done = TOOLS / "java" / "pom.xml"
        if not done.exists() or done.read_text() != (HERE / "java" / "pom.xml").read_text():
            copy = ("dependency:copy-dependencies", f"-DoutputDirectory={jars}")
            fetch("mvn", "-q", "-B", "-f", str(HERE / "java" / "pom.xml"), *copy)
            shutil.copy(HERE / "java" / "pom.xml", done)
        sources = [str(path) for path in sorted((HERE / "java").glob("*.java"))]
        fetch("javac", "-cp", f"{jars}/*", "-d", str(classes), *sources)
        return ["java", "-Xmx12g", "-cp", f"{classes}:{jars}/*", program]

    return prepare


def from_vespa(clone: Path) -> list[str]:
    """Vespa's predicate search, compiled from a clone of its repository: no registry has a current jar."""
    if not (clone / "predicate-search").is_dir():
        raise MissingError(f"{clone} is no clone of Vespa's repository, name one by --vespa")
    if not shutil.which("javac"):
        raise MissingError("there is no `javac`")
    java, target = HERE / "java", TOOLS / "vespa"
    jars, classes, generated = target / "lib", target / "classes", target / "generated"
    copy = ("dependency:copy-dependencies", f"-DoutputDirectory={jars}")
    fetch("mvn", "-q", "-B", "-f", str(java / "vespa" / "pom.xml"), *copy)
    grammar = next(clone.glob("predicate-search-core/src/main/antlr3/**/Predicate.g"))
    package = generated / "com" / "yahoo" / "document" / "predicate" / "parser"
    fetch("java", "-cp", f"{jars}/*", "org.antlr.Tool", "-fo", str(package), str(grammar))
    modules = ("predicate-search", "predicate-search-core", "annotations", "vespajlib", "yolean")
    sources = [str(generated), *(str(clone / module / "src" / "main" / "java") for module in modules)]
    programs = [str(java / "Driver.java"), str(java / "vespa" / "VespaPredicates.java")]
    paths = ("-cp", f"{jars}/*", "-sourcepath", os.pathsep.join(sources), "-d", str(classes))
    fetch("javac", "-nowarn", "-proc:none", *paths, *programs)
    return ["java", "-Xmx12g", "-cp", f"{classes}:{jars}/*", "VespaPredicates"]


TAMIS = Peer("tamis", tamis.__version__, "text", ours("tamis_peer.py"))
VESPA = Peer(
    "Vespa predicate-search", "of the clone", "nested", lambda: from_vespa(TOOLS / "vespa" / "clone")
)
PEERS = [
    TAMIS,
    Peer("tamis, in one batch", tamis.__version__, "text", ours("tamis_batch.py")),
    Peer("plain Python", sys.version.split()[0], "python", ours("plain_python.py")),
    Peer("rule-engine", "5.1.0", "rule-engine", from_pypi("rule_engine_peer.py")),
    Peer("zen-engine", "2.1.3", "zen", from_pypi("zen_peer.py")),
    Peer("CEL", "common-expression-language 0.10.0", "cel", from_pypi("cel_peer.py")),
    Peer("a-tree", "0.6.1", "a-tree", from_crates),
    Peer(
        "event-ruler",
        "1.7.3",
        "event-ruler",
        from_maven("EventRuler"),
        "more than 64 conjunctions; several predicates on one attribute, but for a range",
    ),
    Peer("lucene-monitor", "9.11.1", "nested", from_maven("LuceneMonitor")),
    VESPA,
    Peer("DuckDB", "of the environment", "sql", ours("duckdb_peer.py")),
    Peer("Spark SQL", "of the environment", "sql", ours("spark_peer.py")),
]


# --- the files that all of them read ---------------------------------------------------------------------


def write_files(workload: Workload, folder: Path, languages: set[str]) -> dict[str, int]:
    """Write events and rules, each in every language; returns how many rules each can express."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "events.jsonl", "w") as out:
        out.writelines(json.dumps(event) + "\n" for event in workload.events(EVENTS))
    with open(folder / "text.jsonl", "w") as out:
        for table in workload.subscriptions():
            rows = zip(table["id"].to_pylist(), table["expression"].to_pylist(), strict=True)
            out.writelines(json.dumps(row) + "\n" for row in rows)
    written = {"text": workload.count}
    for language in languages - {"text"}:
        written[language] = _write_language(workload, folder, language)
    return written


def _write_language(workload: Workload, folder: Path, language: str) -> int:
    """Rules in one language and, if some are left out, the same ones for Tamis."""
    rules, same = folder / f"{language}.jsonl", folder / f"text.{language}.jsonl"
    count = 0
    with open(rules, "w") as out, open(same, "w") as kept:
        if language == "a-tree":
            out.write(json.dumps(_attributes(workload)) + "\n")
        for table in workload.subscriptions():
            rows = zip(table["id"].to_pylist(), table["expression"].to_pylist(), strict=True)
            for number, text in rows:
                try:
                    rule = LANGUAGES[language](simplify(json.loads(tamis.parse(text).to_json())))
                except CannotExpressError:
                    continue
                out.write(json.dumps([number, rule]) + "\n")
                kept.write(json.dumps([number, text]) + "\n")
                count += 1
    if count == workload.count:
        same.unlink()
    return count


def _attributes(workload: Workload) -> list[str]:
    used = set(workload.event_schema.names)
    first = next(workload.subscriptions())["expression"][:100].to_pylist()
    for text in first:
        used.update(test.attribute for test in tests_of(simplify(json.loads(tamis.parse(text).to_json()))))
    return sorted(used)


# --- measuring -------------------------------------------------------------------------------------------


def measure(command: list[str], rules: Path, events: Path, seconds: float, limit: float) -> dict[str, Any]:
    """Run an adapter; its figures, or what went wrong."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    try:
        finished = subprocess.run(
            [*command, str(rules), str(events), str(seconds)],
            capture_output=True,
            text=True,
            timeout=limit,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"not done within {limit:.0f} s"}
    if finished.returncode:
        said = finished.stderr.strip().splitlines()
        return {"failed": (said[-1] if said else f"exit code {finished.returncode}")[:160]}
    line = json.loads(finished.stdout.strip().splitlines()[-1])
    micros = line.pop("micros")
    return {
        **line,
        "events": len(micros),
        "p50_microseconds": statistics.median(micros),
        "mean_microseconds": statistics.fmean(micros),
        "matches": sum(line["counts"]),
    }


def compare(figures: dict[str, Any], reference: dict[str, Any]) -> str:
    """Whether a peer found as many matches as Tamis in each event that both have seen.

    >>> compare({"counts": [1, 2]}, {"counts": [1, 2, 3]})
    'equal'
    """
    pairs = list(zip(figures["counts"], reference["counts"], strict=False))
    different = [(number, *pair) for number, pair in enumerate(pairs) if pair[0] != pair[1]]
    if not different:
        return "equal"
    number, theirs, ours_ = different[0]
    return f"{len(different)} of {len(pairs)} events differ; event {number}: {theirs}, Tamis {ours_}"


def bench(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure all peers on all workloads, smaller scales first; who runs out of time gets no larger ones."""
    console = Console(stderr=True)
    peers = [peer for peer in PEERS if not options.peers or peer is TAMIS or peer.name in options.peers]
    commands: dict[str, list[str]] = {}
    for peer in peers:
        try:
            clone = options.vespa if peer is VESPA else None
            commands[peer.name] = from_vespa(clone) if clone else peer.prepare()
        except MissingError as error:
            console.print(f"skipped: {peer.name} ({error})", highlight=False, soft_wrap=True)
    for name, why in NOT_MEASURED.items():
        console.print(f"skipped: {name} ({why})", highlight=False, soft_wrap=True)

    rows: list[dict[str, Any]] = []
    for name in options.workloads:
        out_of_time: set[str] = set()
        for size in sorted(parse_size(text) for text in options.scale.split(",")):
            racing = [peer for peer in peers if peer.name in commands and peer.name not in out_of_time]
            folder = TOOLS / "files" / f"{name}-{format_size(size)}-{options.seed}"
            written = write_files(
                WORKLOADS[name](size, options.seed), folder, {peer.language for peer in racing}
            )
            references: dict[str, dict[str, Any]] = {}
            for peer in racing:
                rules, same = folder / f"{peer.language}.jsonl", folder / f"text.{peer.language}.jsonl"
                basis = same if same.exists() else folder / "text.jsonl"

                def run(
                    command: list[str], file: Path, events: Path = folder / "events.jsonl"
                ) -> dict[str, Any]:
                    return measure(command, file, events, options.seconds, options.limit)

                if basis.name not in references:
                    references[basis.name] = run(commands[TAMIS.name], basis)
                reference = references[basis.name]
                figures = reference if peer is TAMIS else run(commands[peer.name], rules)
                row = {"workload": name, "subscriptions": size, "peer": peer.name, "version": peer.version}
                row |= {"expressed": written[peer.language], **figures}
                if "failed" in row:
                    out_of_time.add(peer.name)
                else:
                    row["agreement"] = compare(figures, reference)
                    row["ratio"] = figures["p50_microseconds"] / reference["p50_microseconds"]
                rows.append(row)
                console.print(_one_line(row), highlight=False, soft_wrap=True)
            shutil.rmtree(folder)
    return rows


def _one_line(row: dict[str, Any]) -> str:
    start = f"{row['workload']} {format_size(row['subscriptions'])} {row['peer']}: "
    if "failed" in row:
        return start + row["failed"]
    memory = f"{_megabytes(row, 'peak_bytes')} MB at the peak, {_megabytes(row, 'settled_bytes')} settled"
    return start + f"{row['p50_microseconds']:,.1f} us, {memory}, {row['agreement']}"


def _megabytes(row: dict[str, Any], key: str) -> str:
    """With a decimal below ten; a dash where nothing was measured."""
    if key not in row:
        return "-"
    megabytes = row[key] / 1e6
    return f"{megabytes:,.1f}" if megabytes < 10 else f"{megabytes:,.0f}"


def print_table(rows: list[dict[str, Any]], circumstances: str) -> None:
    """All figures; the ratio is the peer's time over that of Tamis on the same subscriptions."""
    table = Table(caption=circumstances, caption_justify="left", box=None, pad_edge=False)
    for column in (
        "workload",
        "size",
        "peer",
        "expressed",
        "us p50",
        "us mean",
        "ratio",
        "build s",
        "peak MB",
        "settled MB",
        "matches",
    ):
        table.add_column(column, justify="left" if column in ("workload", "peer", "matches") else "right")
    for row in rows:
        start = [row["workload"], format_size(row["subscriptions"]), row["peer"]]
        share = f"{row['expressed'] / row['subscriptions']:.1%}"
        if "failed" in row:
            table.add_row(*start, share, "", "", "", "", "", "", row["failed"])
            continue
        table.add_row(
            *start,
            share,
            f"{row['p50_microseconds']:,.1f}",
            f"{row['mean_microseconds']:,.1f}",
            f"{row['ratio']:,.1f}",
            f"{row['build_seconds']:,.2f}",
            _megabytes(row, "peak_bytes"),
            _megabytes(row, "settled_bytes"),
            row["agreement"],
        )
    Console(width=max(140, Console().width)).print(table)


def main() -> None:
    """Read the command line, measure, print, write bench/results/peers.json."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", default="10K,100K,1M", help="numbers of subscriptions")
    parser.add_argument("--workloads", nargs="+", choices=list(WORKLOADS), default=list(WORKLOADS))
    parser.add_argument("--peers", nargs="+", choices=[peer.name for peer in PEERS], help="default: all")
    parser.add_argument(
        "--vespa", type=Path, help="a clone of Vespa's repository (default: .tools/peers/vespa/clone)"
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="of matching for each figure")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for a peer to build and match")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=ROOT / "bench" / "results" / "peers.json")
    options = parser.parse_args()
    rows = bench(options)
    environment = describe(options.seed)
    print_table(rows, one_line(environment))
    for peer in PEERS:
        if peer.limits:
            print(f"{peer.name} cannot express: {peer.limits}")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    plain = [{key: value for key, value in row.items() if key != "counts"} for row in rows]
    record = {"environment": environment, "skipped": NOT_MEASURED, "results": plain}
    options.output.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
