"""What a container allows counts, where it is less than what the host has."""

import json
from pathlib import Path
from typing import Any

import pytest

from tamis.spark.plans.memory import ExecutorMemory, java_above, memory_limit, room_for_index

MIB = 1 << 20


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_the_smallest_limit_on_the_way_counts(tmp_path: Path) -> None:
    put(tmp_path / "own", "0::/pods/executor\n")
    put(tmp_path / "groups/pods/memory.max", f"{300 * MIB}\n")
    put(tmp_path / "groups/pods/executor/memory.max", "max\n")
    assert memory_limit(tmp_path / "groups", tmp_path / "own") == 300 * MIB


def test_the_first_version_of_control_groups(tmp_path: Path) -> None:
    put(tmp_path / "own", "5:cpu,cpuacct:/a\n4:memory:/docker/abc\n")
    put(tmp_path / "groups/memory/memory.limit_in_bytes", f"{200 * MIB}\n")  # a container sees only its root
    assert memory_limit(tmp_path / "groups", tmp_path / "own") == 200 * MIB


@pytest.mark.parametrize("own", ["0::/\n", ""])
def test_without_a_limit_the_host_counts(tmp_path: Path, own: str) -> None:
    put(tmp_path / "own", own)
    put(tmp_path / "groups/memory.max", "max\n")
    assert memory_limit(tmp_path / "groups", tmp_path / "own") == memory_limit(tmp_path, tmp_path / "none")


def process(folder: Path, number: int, parent: int, *words: str) -> None:
    put(folder / str(number) / "cmdline", "\0".join(words))
    put(folder / str(number) / "status", f"Name:\tx\nPPid:\t{parent}\n")


def test_the_heap_is_that_of_the_executor_above(tmp_path: Path) -> None:
    process(tmp_path, 9, 8, "python", "-m", "pyspark.worker")
    process(tmp_path, 8, 7, "python", "-m", "pyspark.daemon")
    process(tmp_path, 7, 1, "/opt/java/bin/java", "-Xmx1g", "-Xmx6g", "org.apache.spark.executor.Backend")
    assert java_above(9, tmp_path) == (7, 6 << 30)
    process(tmp_path, 7, 1, "/opt/java/bin/java", "-XX:MaxRAMPercentage=50")
    assert java_above(9, tmp_path) == (7, None)
    process(tmp_path, 8, 0, "python")
    assert java_above(9, tmp_path) == (0, None)


def test_an_index_gets_what_heaps_and_tasks_leave() -> None:
    """An executor of 6 GB in a container of 8 GB: half of 8 GB would not have fit."""
    gib = 1 << 30
    seen = [ExecutorMemory("pod", 8 * gib, 7, 6 * gib, None)] * 2
    assert room_for_index(seen) < 1.2 * gib
    limited = [ExecutorMemory("pod", 64 * gib, 7, gib, 2 * gib)]
    assert room_for_index(limited) < 1.5 * gib, "spark.executor.pyspark.memory"
    hosts = [ExecutorMemory("a", 64 * gib, 7, gib, None), ExecutorMemory("b", 4 * gib, 7, gib, None)]
    assert room_for_index(hosts) < 2 * gib, "the smallest host"


@pytest.mark.spark
def test_a_session_knows_the_heap_of_its_executor(spark: Any) -> None:
    from tamis.spark.session import _look_around

    rows = spark.range(100).mapInArrow(_look_around, "seen string").collect()
    seen = [ExecutorMemory(*json.loads(row.seen)) for row in rows]
    assert {one.heap for one in seen} == {1 << 30}, "Spark's default"
    assert len({one.jvm for one in seen}) == 1
