"""A store of rules without Spark: on disk and on S3, versions, writers at once, an index that follows it."""

import multiprocessing
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.store import RuleStore, folding
from tamis.store import apply_changes as applying
from tamis.store.changes import change_schema
from tamis.store.directory import open_directory
from tamis.store.index_files import put_index
from tamis.store.versions import Version, publish


@pytest.fixture(params=["local", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RuleStore:
    monkeypatch.setenv("TAMIS_CACHE", str(tmp_path / "cache"))
    if request.param == "local":
        return RuleStore(tmp_path / "rules")
    return RuleStore(f"s3://{request.getfixturevalue('bucket')}/rules")


def change(sequence: int, id: Any, expression: str | None, **more: Any) -> dict[str, Any]:
    op = "remove" if expression is None else "add"
    return {"op": op, "sequence": sequence, "id": id, "expression": expression, **more}


def test_changes_become_versions_that_stay_readable(store: RuleStore) -> None:
    assert store.latest is None
    with pytest.raises(tamis.SnapshotError, match="holds no index"):
        store.open()
    details = {"priority": 2.0, "weights": {"x": 0.5}, "tags": ["q4"], "owner": "bob", "payload": b"p"}
    assert store.apply([change(1, "a", "x > 1", **details), change(2, "b", "x > 2")]).version == 1
    assert store.apply([change(3, "b", None), change(1, "a", "x > 100")]) == (2, 1, 1, 0)
    assert store.open().match({"x": 3}) == ["a"]
    assert store.open(1).match({"x": 3}) == ["a", "b"]
    assert store.versions == [1, 2]
    held = store.open()["a"]
    assert (held.priority, dict(held.weights), held.tags, held.owner, held.payload) == (
        *(2.0, {"x": 0.5}, ("q4",), "bob", b"p"),
    )


def test_replacing_all_keeps_late_changes_late(store: RuleStore) -> None:
    store.apply([change(5, "a", "x > 1")])
    assert store.replace_all(pa.table({"id": ["b"], "expression": ["x > 2"]})) == 2
    assert store.open().match({"x": 3}) == ["b"]
    assert store.apply([change(4, "a", "x > 1")]).stale == 1
    assert store.apply([change(6, "a", "x > 1")]).version == 3
    assert store.open().match({"x": 3}) == ["a", "b"]


def test_what_cannot_be_accepted_is_named(tmp_path: Path) -> None:
    store = RuleStore(tmp_path)
    assert store.apply([change(1, "a", "x >"), change(2, "b", "x > 1")]).quarantined == 1
    [row] = store.quarantined().to_pylist()
    assert (row["id"], row["op"]) == ("a", "add")
    with pytest.raises(tamis.TamisError, match=r"prority.*did you mean `priority`"):
        store.apply([change(3, "c", "x > 1", prority=1.0)])
    with pytest.raises(tamis.TamisError, match="have no 'sequence'"):
        store.apply([{"op": "add", "id": "a", "expression": "x > 1"}])
    with pytest.raises(tamis.TamisError, match="ids of type string, not int"):
        store.apply([change(4, 7, "x > 1")])
    with pytest.raises(tamis.TamisError, match="priority"):
        store.apply([change(4, "d", "x > 1", priority="high")])
    with pytest.raises(tamis.TamisError, match="a list of records"):
        store.apply(["x > 1"])
    with pytest.raises(tamis.ExpressionError):
        store.replace_all([{"id": "a", "expression": "x >"}])
    assert store.open().match({"x": 2}) == ["b"]


def test_rules_bound_to_a_source(tmp_path: Path) -> None:
    store = RuleStore(tmp_path)
    store.apply([change(1, "a", "x > 1 OR y > 1", source="shop")])
    assert store.open().match({"x": 2, "source": "shop"}) == ["a"]
    assert store.open().match({"x": 2, "source": "bank"}) == []


def test_many_changes_are_folded_into_snapshots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "CHANGES_BEFORE_FOLD", 10)
    store = RuleStore(tmp_path)
    expected: dict[int, str] = {}
    for step in range(30):
        rows = [change(step * 3 + n, (step * 7 + n * 5) % 23, f"x > {step}") for n in range(3)]
        rows[2] = {**rows[2], "op": "remove"} if step % 4 == 0 else rows[2]
        store.apply(rows)
        for row in rows:
            expected.pop(row["id"], None) if row["op"] == "remove" else expected.update(
                {row["id"]: row["expression"]}
            )
        opened = store.open()
        assert {id: str(held.expression) for id, held in opened.items()} == expected
    assert list((tmp_path / "snapshots").glob("*.tamis"))


def test_a_version_of_several_shards_is_one_index(tmp_path: Path) -> None:
    """As Spark publishes them: files in shards, and changes that move a rule between them."""
    directory = open_directory(tmp_path)
    files = []
    for ids in (["a", "b"], ["c"]):
        index = tamis.Index()
        index.add_many(ids, ["x > 1"] * len(ids))
        files.append([put_index(directory, index)])
    publish(directory, Version(number=1, plan="sharded", ids="string", shards=files, subscriptions=3))
    rows = [change(1, "a", "x > 5"), change(2, "c", None), change(3, "d", "x > 2")]
    schema = change_schema("string")
    applying.apply_to_store(directory, pa.Table.from_pylist(rows, schema), schema)
    opened = RuleStore(tmp_path).open()
    assert opened.match({"x": 3}) == ["b", "d"]
    assert opened.match({"x": 6}) == ["a", "b", "d"]


def add_rules(path: str, writer: int, count: int) -> None:
    store = RuleStore(path)
    for number in range(count):
        id = writer * 1000 + number
        store.apply([change(id, id, "x > 1")])


@pytest.mark.thorough
@pytest.mark.parametrize("store", ["local", pytest.param("s3", marks=pytest.mark.slow)], indirect=True)
def test_processes_that_write_at_once_lose_nothing(store: RuleStore) -> None:
    count = 3 if "://" in store.url else 8
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=add_rules, args=(store.url, writer, count)) for writer in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    wanted = [writer * 1000 + number for writer in range(2) for number in range(count)]
    assert list(store.open()) == wanted
    assert store.latest == 2 * count


def test_a_watched_store_is_followed_while_threads_match(store: RuleStore) -> None:
    store.apply([change(1, 0, "x > 0")])
    wrong: list[Any] = []
    ended = threading.Event()
    with tamis.open(store.url, watch=True, interval=3600) as live:

        def ask() -> None:
            while not ended.is_set():
                found = live.match({"x": 1})
                if found != list(range(len(found))) or not found:
                    wrong.append(found)
                time.sleep(0.001)  # leave the interpreter to the thread that swaps

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for number in range(1, 6):
            store.apply([change(number + 1, number, "x > 0")])
            assert live.refresh()
            assert (live.version, live.generation, len(live)) == (number + 1, number + 1, number + 1)
            assert not live.refresh()
        ended.set()
        for thread in threads:
            thread.join()
        with pytest.raises(AttributeError, match=r"apply changes to tamis\.store\.RuleStore"):
            live.add(77, "x > 1")
    assert wrong == []
    assert tamis.open(store.url).match({"x": 1}) == list(range(6))


def test_a_damaged_version_changes_nothing(tmp_path: Path) -> None:
    store = RuleStore(tmp_path)
    store.replace_all([{"id": 1, "expression": "x > 0"}])
    with tamis.open(tmp_path, watch=True, interval=3600) as live:
        store.replace_all([{"id": 2, "expression": "x > 0"}])
        newest = max((tmp_path / "snapshots").iterdir(), key=lambda file: file.stat().st_mtime_ns)
        data = newest.read_bytes()
        newest.write_bytes(data[: len(data) // 2])
        assert not live.refresh()
        assert isinstance(live.error, tamis.SnapshotError)
        assert (live.match({"x": 1}), live.version) == ([1], 1)
        newest.unlink()
        store.replace_all([{"id": 3, "expression": "x > 0"}])
        assert live.refresh()
        assert (live.match({"x": 1}), live.error) == ([3], None)


def test_garbage_is_collected(tmp_path: Path) -> None:
    store = RuleStore(tmp_path)
    for number in range(5):
        store.replace_all([{"id": number, "expression": "x > 0"}])
    assert len(store.collect_garbage(keep=1, grace=0.0)) == 8  # four versions and their snapshots
    assert (store.versions, store.open().match({"x": 1})) == ([5], [4])


def test_it_works_where_spark_is_not_installed(tmp_path: Path) -> None:
    code = f"""
import sys
for package in ("pyspark", "fsspec", "py4j"):
    sys.modules[package] = None
import tamis
from tamis.store import RuleStore
store = RuleStore({str(tmp_path)!r})
store.apply([{{"op": "add", "sequence": 1, "id": "a", "expression": "x > 1"}}])
print(tamis.open({str(tmp_path)!r}).match({{"x": 2}}), "tamis.spark" in sys.modules)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stdout == "['a'] False\n", ran.stderr


def test_sequence_numbers_are_whole_and_fit(tmp_path: Path) -> None:
    store = RuleStore(tmp_path / "store")
    change = {"op": "add", "id": "q", "expression": "x = 1"}
    with pytest.raises(tamis.ArgumentError, match=r"sequence numbers are whole: 1\.9"):
        store.apply([{**change, "sequence": 1.9}])
    with pytest.raises(tamis.ArgumentError, match="'sequence' must be int64"):
        store.apply([{**change, "sequence": 2**63}])
    assert store.apply([{**change, "sequence": 2.0}]).applied == 1
