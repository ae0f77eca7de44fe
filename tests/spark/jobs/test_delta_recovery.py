"""Delta tables of events and rules, rules that change by MERGE, and a driver that is killed repeatedly."""

import json
import random
import time
from pathlib import Path

import pytest

from spark.jobs.delta_stream_job import EVENTS_PER_FILE, FILES, MERGES
from spark.test_stream_recovery import end, finished, start
from tamis.store.directory import open_directory
from tamis.store.open_shards import open_shard
from tamis.store.versions import read_version

pytestmark = [pytest.mark.slow, pytest.mark.spark]

JOB = Path(__file__).with_name("delta_stream_job.py")


def test_every_match_once(tmp_path: Path, delta_connector: dict[str, str]) -> None:
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
        **delta_connector,
    }
    job = start(tmp_path, JOB, "prepare", json.dumps(settings))
    assert job.wait() == 0, (tmp_path / "err").read_text()[-4000:]
    choose = random.Random(11)
    kills = 0
    for progress in (2, 6, 10):
        job = start(tmp_path, JOB, "run", json.dumps(settings))
        while finished(tmp_path) < progress and job.poll() is None:
            time.sleep(0.05)
        time.sleep(choose.random())  # somewhere inside a micro-batch, or a MERGE
        if job.poll() is None:
            kills += 1
        end(job)
    assert kills >= 2
    job = start(tmp_path, JOB, "run", json.dumps(settings))
    assert job.wait() == 0, (tmp_path / "err").read_text()[-4000:]
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
