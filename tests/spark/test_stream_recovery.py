"""The driver of a streaming match is killed again and again: nothing is lost and nothing comes twice."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from spark.test_clusters import descendants, environment, kill
from tamis.store.directory import open_directory
from tamis.store.open_shards import open_shard
from tamis.store.versions import read_version

pytestmark = [pytest.mark.spark, pytest.mark.slow]

JOB = Path(__file__).with_name("stream_job.py")
FILES = 24
EVENTS_PER_FILE = 20


def put(folder: Path, number: int, rows: list[dict[str, Any]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{number:04d}.json").write_text("\n".join(json.dumps(row) for row in rows))


@pytest.mark.parametrize("place", ["local", "s3"])
def test_every_match_once(spark: Any, tmp_path: Path, place: str, request: pytest.FixtureRequest) -> None:
    bucket = request.getfixturevalue("bucket") if place == "s3" else None
    store = str(tmp_path / "store") if bucket is None else f"s3://{bucket}/store"
    for number in range(FILES):
        first = number * EVENTS_PER_FILE
        events = range(first, first + EVENTS_PER_FILE)
        put(tmp_path / "events", number, [{"event_id": event, "x": event % 10} for event in events])
        change = {"op": "add", "sequence": number + 2, "id": f"r{number}", "expression": f"x = {number % 10}"}
        removed = {"op": "remove", "sequence": number + 2, "id": f"r{number - 3}"}
        put(tmp_path / "changes", number, [change, removed])
    choose = random.Random(7)
    kills = 0
    for progress in (2, 7, 13):
        job = start(tmp_path, JOB, store)
        while finished(tmp_path) < progress and job.poll() is None:
            time.sleep(0.05)
        time.sleep(choose.random())  # somewhere inside a micro-batch
        if job.poll() is None:
            kills += 1
        end(job)
    assert kills >= 2
    job = start(tmp_path, JOB, store)
    assert job.wait() == 0, (tmp_path / "err").read_text()[-4000:]
    check(spark, tmp_path, store)


def start(folder: Path, job: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, str(job), str(folder), *arguments],
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=(folder / "err").open("w"),
        start_new_session=True,
    )


def end(job: subprocess.Popen[bytes]) -> None:
    children = descendants(job.pid)
    os.kill(job.pid, signal.SIGKILL)
    for child in children:
        kill(child)
    job.wait()


def finished(folder: Path, checkpoint: str = "checkpoint-matches") -> int:
    commits = folder / checkpoint / "commits"
    return len([name for name in os.listdir(commits) if name.isdigit()]) if commits.exists() else 0


def check(spark: Any, folder: Path, store: str) -> None:
    """Each event was answered once, by one version, with exactly that version's matches."""
    found: dict[int, list[tuple[str, int]]] = {}
    for row in spark.read.parquet(str(folder / "matches")).collect():
        found.setdefault(row.event_id, []).append((row.subscription, row.version))
    directory = open_directory(store)
    assert sorted(found) == list(range(FILES * EVENTS_PER_FILE))
    versions = set()
    for event, pairs in found.items():
        [version] = {version for _, version in pairs}
        versions.add(version)
        [index] = open_shard(directory, read_version(directory, version), 0)
        assert sorted(id for id, _ in pairs) == index.match({"x": event % 10})
    assert len(versions) > 1
    [latest] = open_shard(directory, read_version(directory), 0)
    assert sorted(latest) == sorted(["first", *(f"r{number}" for number in range(FILES - 3, FILES))])
