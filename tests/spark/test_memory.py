"""What a container allows counts, where it is less than what the host has."""

from pathlib import Path

import pytest

from tamis.spark.plans.memory import memory_limit

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
