"""Stores on file systems that cannot create a file only if there is none: one writer, and the driver decides.

The file system is the local one as fsspec reaches it (`local://`), which has no exclusive creation: without
the prefix it is refused.
"""

import threading
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.local import LocalFileSystem

import tamis
import tamis.spark
from tamis.spark.building import build_index
from tamis.spark.store.pins import Pin, pin, propose_pin, write_pin
from tamis.store import RuleStore
from tamis.store.directory import open_directory
from tamis.store.versions import Version, publish, read_version

CHANGES = "op string, sequence bigint, id string, expression string"
EMPTY = Version(number=1, plan="replicated", ids="string", shards=[[]])


@pytest.fixture
def plain(tmp_path: Path) -> str:
    """The URL of a file system that cannot create once."""
    return f"local://{tmp_path}/store"


@pytest.fixture
def url(plain: str) -> str:
    return f"single-writer+{plain}"


@pytest.fixture
def no_exclusive_creation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks for it is told that there is none."""
    pipe = LocalFileSystem.pipe_file

    def refuse(self: Any, path: str, value: bytes, mode: str = "overwrite", **options: Any) -> Any:
        if mode == "create":
            raise OSError("exclusive creation is not supported")
        return pipe(self, path, value, mode=mode, **options)

    monkeypatch.setattr(LocalFileSystem, "pipe_file", refuse)


def add(sequence: int, id: str, expression: str) -> dict[str, Any]:
    return {"op": "add", "sequence": sequence, "id": id, "expression": expression}


def test_without_the_promise_it_is_refused_and_told_how(plain: str) -> None:
    with pytest.raises(tamis.ArgumentError, match=r"promise so: put single-writer\+ before its path"):
        RuleStore(plain).apply([add(1, "a", "x > 1")])
    assert RuleStore(plain).versions == []


@pytest.mark.usefixtures("no_exclusive_creation")
def test_one_writer_makes_versions_and_readers_see_them(url: str, tmp_path: Path) -> None:
    store = RuleStore(url)
    assert store.apply([add(1, "a", "x > 1")]).version == 1
    assert store.apply([add(2, "b", "x > 2"), {"op": "remove", "sequence": 3, "id": "a"}]).version == 2
    assert store.open(1).match({"x": 3}) == ["a"]
    assert RuleStore(url).open().match({"x": 3}) == ["b"]
    assert store.replace_all([{"id": "c", "expression": "x > 0"}]) == 3
    assert tamis.open(url).match({"x": 3}) == ["c"]
    assert [path.name for path in (tmp_path / "store").rglob(".*")] == [], "no drafts stay"


def test_a_file_appears_whole(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that dies in the middle leaves a draft, not half a version."""
    directory = open_directory(url)
    publish(directory, EMPTY)
    put = LocalFileSystem.put_file

    def dies(self: Any, source: str, target: str, **options: Any) -> None:
        put(self, source, target, **options)
        Path(target).write_bytes(Path(target).read_bytes()[:20])
        raise KeyboardInterrupt

    monkeypatch.setattr(LocalFileSystem, "put_file", dies)
    with pytest.raises(KeyboardInterrupt):
        publish(directory, EMPTY)
    monkeypatch.undo()
    assert read_version(directory).number == 1
    assert len(directory.drafts("versions/00000000000000000000")) == 1, "for the garbage collector"
    assert publish(directory, EMPTY).number == 2


def test_a_writer_that_was_overtaken_while_it_wrote_starts_again(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The promise was broken: whoever wrote last has the version, and the other goes on from there."""
    directory = open_directory(url)
    theirs = Version(number=1, plan="replicated", ids="string", shards=[[]], notes={"writer": "other"})
    move = LocalFileSystem.mv
    others: list[Version] = [theirs]

    def overtaken(self: Any, source: str, target: str, **options: Any) -> None:
        move(self, source, target, **options)
        if others:
            Path(target).write_bytes(others.pop().to_json())

    monkeypatch.setattr(LocalFileSystem, "mv", overtaken)
    assert publish(directory, EMPTY).number == 2
    assert read_version(directory, 1).notes == {"writer": "other"}


def test_tasks_do_not_pin_here(url: str) -> None:
    directory = open_directory(url)
    publish(directory, EMPTY)
    with pytest.raises(tamis.ArgumentError, match="Match in foreachBatch"):
        pin(directory, "query", 0)
    assert directory.list("pins") == []


def test_attempts_that_overlap_write_the_same_pin(url: str) -> None:
    directory = open_directory(url)
    publish(directory, EMPTY)
    decided = propose_pin(directory, "query", 0)
    publish(directory, EMPTY)
    kept: list[Pin] = []
    attempts = [
        threading.Thread(target=lambda: kept.append(write_pin(open_directory(url), "query", 0, decided)))
        for _ in range(8)
    ]
    for attempt in attempts:
        attempt.start()
    for attempt in attempts:
        attempt.join()
    assert kept == [decided] * 8
    assert propose_pin(directory, "query", 0) == decided, "although there is a later version"


@pytest.mark.spark
def test_tables_and_micro_batches_are_matched(spark: Any, url: str, tmp_path: Path) -> None:
    """A micro-batch whose sink fails is repeated with the version that it had, though rules changed."""
    store = tamis.spark.SubscriptionStore(url)
    store.apply_changes(spark.createDataFrame([("add", 1, "a", "x > 1")], CHANGES))
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "0.json").write_text('{"event_id": 1, "x": 2}')
    events = spark.readStream.schema("event_id int, x int").json(str(tmp_path / "events"))
    with pytest.raises(tamis.ArgumentError, match="Match in foreachBatch"):
        tamis.spark.match(events, store)
    found: list[list[tuple[int, str, int]]] = []
    fails = True

    def alert(batch: Any, _: int) -> None:
        rows = tamis.spark.match(batch, store).collect()
        found.append(sorted((row.event_id, row.subscription, row.version) for row in rows))
        if fails:
            raise ValueError("a sink that fails")

    def run() -> None:
        writer = events.writeStream.foreachBatch(alert).trigger(availableNow=True)
        writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()

    with pytest.raises(Exception, match="a sink that fails"):
        run()
    changed = [("remove", 2, "a", None), ("add", 2, "b", "x > 1")]
    assert store.apply_changes(spark.createDataFrame(changed, CHANGES)).version == 2
    fails = False
    run()
    assert found == [[(1, "a", 1)], [(1, "a", 1)]]
    (tmp_path / "events" / "1.json").write_text('{"event_id": 2, "x": 2}')
    run()
    assert found[-1] == [(2, "b", 2)]
    table = spark.createDataFrame([(7, 9)], "event_id int, x int")
    assert [row.subscription for row in tamis.spark.match(table, store).collect()] == ["b"]


@pytest.mark.spark
def test_two_drivers_of_one_query_are_noticed(spark: Any, url: str) -> None:
    publish(open_directory(url), EMPTY)
    store = tamis.spark.SubscriptionStore(url)
    assert store.pinned_index(spark, "alerts", 3).version.number == 1
    with pytest.raises(tamis.TamisError, match="pinned to version 1 by another process"):
        build_index._decide(spark, url, ("alerts", 3), Pin(2, 0))
