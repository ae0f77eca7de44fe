"""`python bench/building.py`: how long an index takes to build from text, and how much memory that takes.

    python bench/building.py --millions 1 4 10
    python bench/building.py --millions 10 --workload equality --library .compare/built/1f2e...

The subscriptions are generated sets of a million, each with its own seed. They are written to a folder first
and mapped by the process that builds, a new one for each figure. *Peak* and *after* are the highest and the
last resident memory of that process beyond what it had before, the mapped text not counted. Then the index is
saved and opened again, and events are counted one by one and as a batch.

With `--library PATH`, a folder that holds another built `tamis`, figures are measured with both, in turns.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table

import tamis
from tamis_lab.benchmark.environment import describe, one_line
from tamis_lab.workloads import AbeGen, Conjunctive, Dense, Equality, Workload

WORKLOADS: dict[str, type[Workload]] = {
    "arbitrary": AbeGen,
    "dense": Dense,
    "conjunctive": Conjunctive,
    "equality": Equality,
}
ROOT = Path(__file__).parent.parent
MILLION = 1_000_000
EVENTS = 1_000
COLUMNS = {
    "elapsed": "elapsed, s",
    "processor": "processor, s",
    "peak": "peak, MiB",
    "after": "after, MiB",
    "segments": "segments",
    "save": "save, s",
    "open": "open and first match, s",
    "count": "count, µs",
    "batch": "batch count, µs",
    "matches": "matches per event",
}


def main() -> None:
    """Measure, print a table, write bench/results/building.json."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--millions", type=int, nargs="+", default=[1, 4], help="sizes")
    parser.add_argument("--workload", default="arbitrary", choices=WORKLOADS)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--library", type=Path, action="append", default=[], help="another built `tamis`")
    parser.add_argument("--folder", type=Path, help="where the subscriptions are kept (default: temporary)")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.workload, options.one, options.folder)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        report(options, options.folder or Path(temporary))


def report(options: argparse.Namespace, folder: Path) -> None:
    """Generate what is missing, measure each size with each library, print and write."""
    missing = [
        seed for seed in range(max(options.millions)) if not path(folder, options.workload, seed).exists()
    ]
    with Console(stderr=True).status(f"generating {len(missing)} million"), ProcessPoolExecutor() as pool:
        list(pool.map(generate, [options.workload] * len(missing), missing, [folder] * len(missing)))
    libraries = [ROOT / "src", *options.library]
    environment = describe(seed=0)
    table = Table("library", "million", *COLUMNS.values(), title=f"building {options.workload} expressions")
    rows: list[dict[str, Any]] = []
    for size in options.millions:
        for _ in range(options.turns):
            for library in libraries:
                found = in_process(options.workload, size, folder, library)
                rows.append({"library": str(library), "million": size, **found})
                shown = [
                    f"{found[name]:,.1f}" if name != "segments" else str(found[name]) for name in COLUMNS
                ]
                name = "this" if library == libraries[0] else library.name[:12]
                table.add_row(name, str(size), *shown)
    console = Console()
    (console if console.is_terminal else Console(width=200)).print(table)
    print(one_line(environment))
    results = ROOT / "bench/results/building.json"
    results.parent.mkdir(exist_ok=True)
    results.write_text(json.dumps({"environment": environment, "workload": options.workload, "rows": rows}))


def path(folder: Path, workload: str, seed: int) -> Path:
    """Where the subscriptions of a seed are."""
    return folder / f"{workload}-{seed}.arrow"


def generate(workload: str, seed: int, folder: Path) -> None:
    """Write a million subscriptions, numbered behind those of the seeds before."""
    tables = list(WORKLOADS[workload](count=MILLION, seed=seed + 1).subscriptions())
    table = pa.concat_tables(tables).combine_chunks()
    ids = pa.array(range(seed * MILLION, (seed + 1) * MILLION), pa.int64())
    table = pa.table({"id": ids, "expression": table["expression"]})
    target = path(folder, workload, seed)
    partial = target.with_suffix(".partial")
    with pa.OSFile(str(partial), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    partial.rename(target)


def in_process(workload: str, size: int, folder: Path, library: Path) -> dict[str, Any]:
    """One figure, from a process of its own that imports `tamis` from a folder."""
    command = [sys.executable, __file__, "--workload", workload, "--one", str(size), "--folder", str(folder)]
    paths = [str(library), str(ROOT / "lab/src"), *sys.path[1:]]
    environment = {**os.environ, "PYTHONPATH": ":".join(paths)}
    finished = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    return found


def measure(workload: str, size: int, folder: Path) -> dict[str, Any]:
    """Build an index and say what that took."""
    events = list(WORKLOADS[workload](count=MILLION, seed=1).events(EVENTS))
    maps = [pa.memory_map(str(path(folder, workload, seed))) for seed in range(size)]
    table = pa.concat_tables([pa.ipc.open_file(map_).read_all() for map_ in maps])
    mapped = sum(map_.size() for map_ in maps)
    for chunk in table["expression"].chunks:  # touched, so that all of it is resident from the start
        sum(chunk.buffers()[2].to_pybytes()[::4096])
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    started, used = time.perf_counter(), processor_time()
    index = tamis.Index()
    index.add_table(table)
    elapsed, processor = time.perf_counter() - started, processor_time() - used
    peak, after = resident("VmHWM") - before, resident("VmRSS") - before
    result: dict[str, Any] = {"elapsed": elapsed, "processor": processor, "peak": peak, "after": after}
    result["segments"] = len(index.stats()["segments"])
    result["mapped"] = mapped / 2**20

    started = time.perf_counter()
    matches = sum(index.count(event) for event in events[:200])
    result["count"] = (time.perf_counter() - started) / 200 * 1e6
    rows = pa.Table.from_pylist(events)
    started = time.perf_counter()
    index.count_batch(rows)
    result["batch"] = (time.perf_counter() - started) / len(events) * 1e6
    result["matches"] = matches / 200

    target = folder / f"{workload}-{size}-{os.getpid()}.tamis"
    started = time.perf_counter()
    index.save(target)
    result["save"] = time.perf_counter() - started
    del index
    started = time.perf_counter()
    opened = tamis.Index.open(target)
    found = opened.count(events[0])
    result["open"] = time.perf_counter() - started
    assert sum(opened.count(event) for event in events[:200]) == matches, found
    target.unlink()
    return result


def resident(line: str) -> float:
    """A line of /proc/self/status in MiB."""
    status = Path("/proc/self/status").read_text()
    (value,) = (text.split()[1] for text in status.splitlines() if text.startswith(line + ":"))
    return int(value) / 1024


def processor_time() -> float:
    """Seconds that all threads of this process used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
