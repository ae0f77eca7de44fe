"""The durable map: torn writes, damage, a full disk, two owners."""

from pathlib import Path

import pytest

from tamis.pubsub.net import replay
from tamis.pubsub.net.connection import StoreError
from tamis.pubsub.net.file_store import FileStore


def test_a_torn_write_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "b1.log"
    with FileStore(path) as store:
        store.append({"a": 1})
        kept = path.stat().st_size
        store.append({"b": [2, "x"]})
    whole = path.read_bytes()
    for length in range(kept, len(whole)):
        path.write_bytes(whole[:length])
        with FileStore(path) as store:
            assert store.values == {"a": 1}
            store.append({"c": 3})
        with FileStore(path) as store:
            assert store.values == {"a": 1, "c": 3}


def test_damage_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "b1.log"
    with FileStore(path) as store:
        store.append({"a": 1})
        store.append({"b": 2})
    damaged = bytearray(path.read_bytes())
    damaged[12] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(StoreError, match="is damaged at byte 0, before its end"):
        FileStore(path)


def test_a_full_disk_is_an_error(tmp_path: Path) -> None:
    with FileStore(tmp_path / "b1.log") as store, Path("/dev/full").open("ab", buffering=0) as full:
        store._file = full
        with pytest.raises(StoreError, match="No space left on device"):
            store.append({"a": 1})


def test_two_owners_are_an_error(tmp_path: Path) -> None:
    with FileStore(tmp_path / "b1.log"), pytest.raises(StoreError, match="in use by another broker"):
        FileStore(tmp_path / "b1.log")


def test_old_lines_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "COMPACT_FROM", 20)
    path = tmp_path / "b1.log"
    with FileStore(path) as store:
        for number in range(100):
            store.append({"last": number, f"queue/{number}": "x", f"queue/{number - 3}": None})
        assert path.read_bytes().count(b"\n") < 60
        expected = dict(store.values)
    with FileStore(path) as store:
        assert store.values == expected == {"last": 99, "queue/97": "x", "queue/98": "x", "queue/99": "x"}
