"""Where versions live: local folders and an object store; fetching, damage, a full disk, two writers."""

import ctypes
import errno
import json
import os
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import s3fs

import tamis
import tamis.spark
from tamis.spark.events import parquet_files as files
from tamis.store import garbage
from tamis.store import host_cache as opened
from tamis.store.directory import Directory, LocalDirectory, open_directory
from tamis.store.garbage import collect
from tamis.store.index_files import put_index
from tamis.store.versions import IndexFile, Version, publish, read_version, version_numbers


@pytest.fixture(params=["local", "s3", "s3a"])
def directory(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Directory:
    monkeypatch.setenv("TAMIS_CACHE", str(tmp_path / "cache"))
    if request.param == "local":
        return open_directory(tmp_path / "store")
    return open_directory(f"{request.param}://{request.getfixturevalue('bucket')}/store")


def small_index(rules: int = 100) -> tamis.Index:
    index = tamis.Index()
    index.add_many([f"r{number}" for number in range(rules)], [f"x = {number}" for number in range(rules)])
    return index


def test_files_are_created_once(directory: Directory) -> None:
    assert directory.list("versions") == []
    assert directory.create("versions/1", b"first")
    assert not directory.create("versions/1", b"second")
    assert directory.read("versions/1") == b"first"
    assert directory.list("versions") == ["1"]
    age = directory.age("versions/1")
    assert age is not None
    assert age < 3600
    directory.delete("versions/1")
    directory.delete("versions/1")
    assert directory.list("versions") == []
    with pytest.raises(FileNotFoundError):
        directory.read("versions/1")


def test_of_two_writers_each_gets_a_version(directory: Directory) -> None:
    empty = Version(number=1, plan="replicated", ids="int", shards=[[]])
    made: list[int] = []
    writers = [
        threading.Thread(target=lambda: made.append(publish(open_directory(directory.url), empty).number))
        for _ in range(4)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(made) == [1, 2, 3, 4]
    assert read_version(directory).number == 4


def test_an_index_file_is_opened_from_anywhere(directory: Directory) -> None:
    file = put_index(directory, small_index())
    assert opened.open_file(directory, file).match({"x": 7}) == ["r7"]


@pytest.mark.parametrize("damage", ["delete", "truncate", "flip"])
def test_a_damaged_copy_is_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    monkeypatch.setenv("TAMIS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(LocalDirectory, "local_path", lambda *_: None)  # as if it were far away
    directory = open_directory(tmp_path / "store")
    file = put_index(directory, small_index())
    opened.open_file(directory, file)
    [copy] = (tmp_path / "cache").glob("*/*.tamis")
    sound = copy.read_bytes()
    if damage == "delete":
        copy.unlink()
    else:
        # A mapped file must not shrink under its readers, so the damaged one takes its place.
        broken = bytearray(sound[: len(sound) // 2] if damage == "truncate" else sound)
        for at in range(len(broken) // 3, len(broken) // 2):
            broken[at] ^= 0xFF
        draft = copy.with_suffix(".draft")
        draft.write_bytes(broken)
        draft.replace(copy)
    assert opened.open_file(directory, file).match({"x": 7}) == ["r7"]
    assert copy.read_bytes() == sound


def test_a_damaged_original_is_an_error(directory: Directory) -> None:
    file = put_index(directory, small_index())
    wrong = IndexFile(file.name, file.bytes + 1, "0" * 64, file.subscriptions)
    with pytest.raises(tamis.SnapshotError, match="damaged"):
        opened.open_file(directory, wrong)


def test_hosts_fetch_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAMIS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(LocalDirectory, "local_path", lambda *_: None)
    fetched: list[str] = []
    download = LocalDirectory.download

    def slow(self: LocalDirectory, name: str, target: Path) -> None:
        fetched.append(name)
        time.sleep(0.2)
        download(self, name, target)

    monkeypatch.setattr(LocalDirectory, "download", slow)
    directory = open_directory(tmp_path / "store")
    file = put_index(directory, small_index())
    workers = [threading.Thread(target=opened.open_file, args=(directory, file)) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(fetched) == 1


def test_copies_that_a_later_version_superseded_go_after_an_hour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that changes every minute would otherwise fill the disk of every host for a week."""
    monkeypatch.setenv("TAMIS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(LocalDirectory, "local_path", lambda *_: None)
    directory, other = (open_directory(tmp_path / name) for name in ("store", "other"))
    kept, used, old = (put_index(directory, small_index(rules)) for rules in (3, 4, 5))
    of_others = put_index(other, small_index(6))
    places = [(directory, kept), (directory, used), (directory, old), (other, of_others)]
    for at, file in places:
        opened.open_file(at, file)
    for at, file in places:
        if file is not used:  # as if that had been two hours ago
            os.utime(opened._copy_of(at, file), (time.time() - 7200,) * 2)
    latest = put_index(directory, small_index(7))
    opened.open_file(directory, latest, {kept.sha256})
    there = {path.stem for path in opened.cache_folder().glob("*/*.tamis")}
    assert there == {kept.sha256, used.sha256, latest.sha256, of_others.sha256}


def test_a_full_disk_leaves_the_version_before(tmp_path: Path) -> None:
    """A real, small file system that is really full."""
    full = tmp_path / "small"
    full.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(full)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount a small file system: {mounted.stderr.decode().strip()}")
    try:
        directory = open_directory(full / "store")
        file = put_index(directory, small_index())
        version = Version(number=1, plan="replicated", ids="string", shards=[[file]])
        publish(directory, version)
        large = tamis.Index()
        large.add_many(range(20_000), [f"name = 'number {number}'" for number in range(20_000)])
        with pytest.raises(tamis.SnapshotError, match="The version before this one stays in use"):
            put_index(directory, large)
        latest = read_version(directory)
        assert latest.number == 1
        assert opened.open_file(directory, latest.shards[0][0]).match({"x": 7}) == ["r7"]
        assert [name for name in os.listdir(full / "store" / "snapshots") if name.startswith(".")] == []
    finally:
        subprocess.run(["umount", str(full)], check=False)


def test_unknown_protocols_say_what_is_missing() -> None:
    with pytest.raises((tamis.ArgumentError, ValueError), match="nothing-such"):
        open_directory("nothing-such://bucket/path")


def test_later_formats_are_refused(tmp_path: Path) -> None:
    directory = open_directory(tmp_path)
    directory.create("versions/00000000000000000001.json", b'{"format": 99}')
    with pytest.raises(tamis.SnapshotError, match="later release"):
        read_version(directory)
    directory.create("versions/00000000000000000002.json", b"{")
    with pytest.raises(tamis.SnapshotError, match="not the description of a version"):
        read_version(directory)


def no_hard_links(*_: object) -> None:
    raise OSError(errno.EPERM, "Operation not permitted")


def test_without_hard_links_files_are_still_created_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on FAT, some FUSE mounts and network shares."""
    monkeypatch.setattr(os, "link", no_hard_links)
    directory = open_directory(tmp_path)
    assert directory.create("versions/1", b"first")
    monkeypatch.setattr(
        Path, "exists", lambda _: False
    )  # another writer comes between the look and the write
    assert not directory.create("versions/1", b"second")
    assert directory.read("versions/1") == b"first"
    assert directory.drafts("versions") == []


def test_a_file_system_that_cannot_create_once_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", no_hard_links)
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: object())
    directory = open_directory(tmp_path)
    with pytest.raises(tamis.ArgumentError, match=r"no hard links .* and cannot rename without replacing"):
        directory.create("versions/1", b"first")
    assert directory.list("versions") == []
    assert directory.drafts("versions") == []


def test_a_protocol_that_only_looks_before_it_writes_is_refused() -> None:
    """fsspec's own fallback for exclusive creation is two steps: two writers can both win."""
    with pytest.raises(tamis.ArgumentError, match="cannot create a file only if there is none"):
        open_directory("memory://store").create("versions/1", b"first")


def test_a_store_that_overwrites_all_the_same_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some stores speak the protocol and ignore the condition."""
    from fsspec.implementations.memory import MemoryFileSystem

    class Overwriting(MemoryFileSystem):
        protocol = "s3"

        def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: object) -> None:
            super().pipe_file(path, value)

    directory = open_directory("memory://store")
    directory._files = Overwriting()  # type: ignore[attr-defined]
    with pytest.raises(tamis.ArgumentError, match="overwrites files that it was asked to create only"):
        directory.create("versions/1", b"first")


@pytest.mark.parametrize("says", ["by an error", "by a result"])
def test_hdfs_creates_by_a_rename_that_replaces_nothing(says: str) -> None:
    from fsspec.implementations.memory import MemoryFileSystem

    class Hdfs(MemoryFileSystem):
        """Renames as HDFS does; a client for it may drop the answer."""

        protocol = "hdfs"
        store: dict[str, object] = {}  # noqa: RUF012 - fsspec's way

        def mv(self, path1: str, path2: str, **options: object) -> None:
            if not self.exists(path2):
                super().mv(path1, path2, **options)
            elif says == "by an error":
                raise OSError("cannot rename")

    directory = open_directory("memory://hdfs-store")
    directory._files = Hdfs()  # type: ignore[attr-defined]
    assert directory.create("versions/1", b"first")
    assert not directory.create("versions/1", b"second")
    assert directory.read("versions/1") == b"first"
    assert directory.drafts("versions") == []


def aged(path: Path, seconds: float) -> None:
    before = time.time() - seconds
    os.utime(path, (before, before))


def test_what_killed_writers_left_is_collected(tmp_path: Path) -> None:
    directory = open_directory(tmp_path)
    publish(directory, Version(number=1, plan="replicated", ids="int", shards=[[]]))
    (tmp_path / "snapshots").mkdir()
    old, new = (f".{name}.{'0f' * 16}" for name in ("old", "new"))
    for name in (f"snapshots/{old}", f"snapshots/{new}", ".gitignore"):
        (tmp_path / name).write_bytes(b"half")
    (tmp_path / ".ipynb_checkpoints").mkdir()
    for name in (f"snapshots/{old}", ".gitignore", ".ipynb_checkpoints"):
        aged(tmp_path / name, garbage.DRAFT_SECONDS + 60)
    assert collect(directory) == [f"snapshots/{old}"], "what is not ours stays"
    assert directory.drafts("snapshots") == [new]


def test_a_directory_that_takes_no_files_does_not_stop_readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tamis.spark.matching.task import lease

    directory = open_directory(tmp_path)
    [version] = [publish(directory, Version(number=1, plan="replicated", ids="int", shards=[[]]))]

    def refuse(*_: object) -> bool:
        raise tamis.ArgumentError("cannot create a file only if there is none")

    monkeypatch.setattr(directory, "create", refuse)
    lease(directory, "a-query", version)


def test_pins_of_a_query_that_never_came_back_expire(tmp_path: Path) -> None:
    directory = open_directory(tmp_path)
    for _ in range(3):
        publish(directory, Version(number=1, plan="replicated", ids="int", shards=[[]]))
    for query, version in (("gone", 1), ("resting", 2)):
        directory.create(
            f"pins/{query}/000000000001.json", json.dumps({"version": version, "now": 0}).encode()
        )
    aged(tmp_path / "pins" / "gone" / "000000000001.json", garbage.PIN_SECONDS + 60)
    collect(directory, keep=1, grace=0.0)
    assert version_numbers(directory) == [2, 3]


def test_a_protocol_without_its_package_is_refused_with_its_name() -> None:
    for url in ("abfss://container@account.dfs.core.windows.net/rules", "nowhere://host/rules"):
        with pytest.raises(tamis.ArgumentError, match=r"adlfs for abfs:// and abfss://"):
            open_directory(url)
    with pytest.raises(
        tamis.ArgumentError, match=r"Unrecognized filesystem type .* use spark\.read\.parquet"
    ):
        files._located("nowhere://host/events")


def test_an_azure_address_is_read_as_spark_writes_it() -> None:
    found, path = files._located("abfss://container@account.dfs.core.windows.net/my events/a%20b.parquet")
    assert (found.type_name, path) == ("abfs", "container/my events/a%20b.parquet")


@pytest.mark.spark
@pytest.mark.parametrize("protocol", ["s3", pytest.param("s3a", marks=pytest.mark.slow)])
@pytest.mark.thorough
def test_files_of_an_object_store_are_matched_where_they_are(
    spark: Any, object_store: str, bucket: str, protocol: str
) -> None:
    store = s3fs.S3FileSystem(skip_instance_cache=True)
    for name, values in {"a b.parquet": [1, 2], "more/100%.parquet": [3]}.items():
        with store.open(f"{bucket}/my events/{name}", "wb") as file:
            pq.write_table(pa.table({"x": values}), file)
    # Executors have no part in the environment of this test: the address says all.
    options = f"?scheme=http&region=us-east-1&endpoint_override={object_store.removeprefix('http://')}"
    folder = f"{protocol}://testing:testing@{bucket}/my events"
    rules = spark.createDataFrame([("a", "x > 1")], "id string, expression string")
    found = tamis.spark.match_files(spark, folder + options, rules).collect()
    assert sorted((row.path, row.row) for row in found) == [
        (f"{folder}/a b.parquet{options}", 1),
        (f"{folder}/more/100%.parquet{options}", 0),
    ]
