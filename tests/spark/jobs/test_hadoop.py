"""A store on a real HDFS, through Hadoop's own client: what the versions of a store need of a file system."""

import os
import threading
from pathlib import Path
from typing import Any

import pytest

import tamis.spark
from tamis.store.directory import Directory, open_directory

pytestmark = [pytest.mark.slow, pytest.mark.spark]


@pytest.fixture
def directory(hdfs: str, request: pytest.FixtureRequest) -> Directory:
    return open_directory(f"hadoop+{hdfs}/{request.node.name}")


def test_files_are_created_once(directory: Directory, tmp_path: Path) -> None:
    assert directory.list("versions") == []
    assert directory.create("versions/1", b"first")
    assert not directory.create("versions/1", b"second")
    assert directory.read("versions/1") == b"first"
    assert directory.list("versions") == ["1"]
    assert directory.drafts("versions") == []
    assert (directory.age("versions/1") or 0) < 3600
    (tmp_path / "large").write_bytes(os.urandom(1 << 20))
    directory.upload("snapshots/large", tmp_path / "large")
    directory.download("snapshots/large", tmp_path / "fetched")
    assert (tmp_path / "fetched").read_bytes() == (tmp_path / "large").read_bytes()
    directory.remove_if_empty("versions")
    directory.delete("versions/1")
    directory.delete("versions/1")
    assert directory.age("versions/1") is None
    with pytest.raises(FileNotFoundError, match="versions/1"):
        directory.read("versions/1")


def test_of_many_writers_one_creates_a_file(directory: Directory) -> None:
    won: list[int] = []

    def write(writer: int) -> None:
        won.extend(number for number in range(10) if directory.create(f"race/{number}", b"%d" % writer))

    writers = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    assert sorted(won) == list(range(10))


def test_a_store_on_hdfs(spark: Any, hdfs: str) -> None:
    """Without libhdfs and without a word about Hadoop in the URL."""
    store = tamis.spark.SubscriptionStore(f"{hdfs}/store")
    columns = "op string, sequence bigint, id string, expression string"
    rows = [("add", 1, "a", "x > 1"), ("add", 2, "b", "x > 2"), ("remove", 3, "b", None)]
    assert store.apply_changes(spark.createDataFrame(rows, columns)).version == 1
    found = tamis.spark.match(spark.sql("SELECT 7 AS event_id, 3 AS x"), store).collect()
    assert [(row.event_id, row.subscription, row.version) for row in found] == [(7, "a", 1)]
