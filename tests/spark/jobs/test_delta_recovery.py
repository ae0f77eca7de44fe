"""Delta tables of events and rules, rules that change by MERGE, and a driver or executors that are killed.

`tools/spark_matrix.py 3.5 --slow --tests tests/spark/jobs/test_delta_recovery.py` runs it on the oldest
release; Delta Lake has no connector for the newest.
"""

import json
import random
import subprocess
import time
from pathlib import Path

import pytest

from spark.jobs.delta_stream_job import EVENTS_PER_FILE, FILES, MERGES
from spark.test_clusters import descendants, kill
from spark.test_stream_recovery import end, finished, start
from tamis.store.directory import open_directory
from tamis.store.open_shards import open_shard
from tamis.store.versions import read_version

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(3600)]

JOB = Path(__file__).with_name("delta_stream_job.py")
EXECUTOR = "CoarseGrainedExecutorBackend"


@pytest.fixture
def settings(tmp_path: Path, delta_connector: dict[str, str]) -> str:
    """Of the session, as JSON."""
    own = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "600m",
        "spark.task.maxFailures": "20",
        "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
    }
    return json.dumps({**own, **delta_connector})


def ended(job: subprocess.Popen[bytes], folder: Path) -> None:
    assert job.wait() == 0, (folder / "err").read_text()[-4000:]


def test_every_match_once(tmp_path: Path, settings: str) -> None:
    ended(start(tmp_path, JOB, "prepare", settings), tmp_path)
    choose = random.Random(11)
    kills = 0
    for progress in (2, 6, 10):
        job = start(tmp_path, JOB, "run", settings)
        while finished(tmp_path) < progress and job.poll() is None:
            time.sleep(0.05)
        time.sleep(choose.random())  # somewhere inside a micro-batch, or a MERGE
        if job.poll() is None:
            kills += 1
        end(job)
    assert kills >= 2
    ended(start(tmp_path, JOB, "run", settings), tmp_path)
    check(tmp_path)


def test_executors_are_killed(tmp_path: Path, settings: str) -> None:
    """The driver goes on; each kill takes an executor with its Python workers, in turns."""
    ended(start(tmp_path, JOB, "prepare", settings), tmp_path)
    job = start(tmp_path, JOB, "run", settings, "local-cluster[2,1,1024]")
    choose = random.Random(12)
    kills = 0
    for progress in (1, 4, 8):
        while finished(tmp_path) < progress and job.poll() is None:
            time.sleep(0.05)
        time.sleep(choose.random())
        running = descendants(job.pid)
        executors = [process for process, command in running.items() if EXECUTOR in command]
        if executors:
            victim = choose.choice(executors)
            for process in [*descendants(victim), victim]:
                kill(process)
            kills += 1
    assert kills >= 2
    ended(job, tmp_path)
    check(tmp_path)


def check(folder: Path) -> None:
    """Each event was answered once, by one version, with exactly that version's matches."""
    found: dict[int, list[tuple[str, int]]] = {}
    for event, id, version in json.loads((folder / "found.json").read_text()):
        found.setdefault(event, []).append((id, version))
    directory = open_directory(folder / "store")
    assert sorted(found) == list(range(FILES * EVENTS_PER_FILE))
    versions = set()
    for event, pairs in found.items():
        [version] = {version for _, version in pairs}
        versions.add(version)
        [index] = open_shard(directory, read_version(directory, version), 0)
        assert sorted(id for id, _ in pairs) == index.match({"x": event % 10})
    assert len(versions) > 1
    [latest] = open_shard(directory, read_version(directory), 0)
    assert sorted(latest) == sorted(["first", *(f"r{number}" for number in range(MERGES - 2, MERGES + 1))])
    assert str(latest["first"].expression) == f"x >= {-(MERGES % 2)}"
