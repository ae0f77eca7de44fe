"""The inputs of both sides: subscriptions and events of a workload, generated once and stored.

The generators are those of the tree that runs the comparison, whatever the two commits are: both sides see
the same bytes.
"""

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tamis_lab.benchmark.kernel import WORKLOADS
from tamis_lab.benchmark.topk import boosted

EVENTS = 4_096
SUBSCRIPTIONS_FILE = "subscriptions.parquet"
EVENTS_FILE = "events.parquet"
LINES_FILE = "events.jsonl"


@dataclass(frozen=True)
class Inputs:
    """A folder with the files of one workload at one size."""

    workload: str
    size: int
    folder: Path

    def digest(self) -> str:
        """A hash of the files, by which two runs can be seen to have had the same."""
        found = hashlib.sha256()
        for name in (SUBSCRIPTIONS_FILE, EVENTS_FILE, LINES_FILE):
            with (self.folder / name).open("rb") as file:
                found.update(hashlib.file_digest(file, "sha256").digest())
        return found.hexdigest()


def prepare(workload: str, size: int, seed: int, cache: Path) -> Inputs:
    """Write the files unless they are there."""
    folder = cache / "inputs" / f"{workload}-{size}-{seed}"
    if not folder.exists():
        partial = folder.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        _write(workload, size, seed, partial)
        partial.rename(folder)
    return Inputs(workload, size, folder)


def _write(workload: str, size: int, seed: int, folder: Path) -> None:
    made = WORKLOADS[workload](size, seed)
    table = made.subscriptions_table().select(["id", "expression", "priority"])
    weighted = pa.array(boosted(table["expression"].to_pylist(), seed), pa.string())
    pq.write_table(table.append_column("boosted", weighted), folder / SUBSCRIPTIONS_FILE, compression="zstd")
    made.write_events_parquet(folder / EVENTS_FILE, EVENTS)
    made.write_events(folder / LINES_FILE, EVENTS)
