"""A watched index, and two writers of one file."""

import multiprocessing
import threading
import time
from pathlib import Path

import pytest

import tamis
from tamis.live import LiveIndex


def saved(path: Path, *ids: int) -> None:
    index = tamis.Index()
    index.add_many(list(ids), ["x > 0"] * len(ids))
    index.save(path)


def test_eight_threads_match_while_a_thousand_snapshots_are_swapped_in(tmp_path: Path) -> None:
    path = tmp_path / "rules.tamis"
    sets = [list(range(first, first + 50)) for first in (0, 1000)]
    saved(path, *sets[0])
    wrong: list[object] = []
    ended = threading.Event()
    with tamis.open(path, watch=True, interval=3600) as live:

        def ask() -> None:
            while not ended.is_set():
                found = live.match({"x": 1})
                if found not in sets:
                    wrong.append(found)
                time.sleep(0.001)  # leave the interpreter to the thread that swaps

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        other = [tmp_path / "a.tamis", tmp_path / "b.tamis"]
        saved(other[0], *sets[0])
        saved(other[1], *sets[1])
        for swap in range(1000):
            beside = tmp_path / "next"
            beside.write_bytes(other[(swap + 1) % 2].read_bytes())
            beside.replace(path)
            assert live.refresh()
        ended.set()
        for thread in threads:
            thread.join()
        assert live.generation == 1001
    assert wrong == []


def test_the_file_is_watched(tmp_path: Path) -> None:
    path = tmp_path / "rules.tamis"
    saved(path, 1)
    with tamis.open(path, watch=True, interval=0.01, warm_up=[{"x": 1}]) as live:
        saved(path, 1, 2)
        changed = threading.Event()
        for _ in range(1000):
            if live.generation > 1:
                changed.set()
                break
            threading.Event().wait(0.01)
        assert changed.is_set()
        assert live.match({"x": 1}) == [1, 2]
        assert len(live) == 2


@pytest.mark.parametrize("content", [b"", b"no snapshot", b"TAMIS\0" + bytes(100)])
def test_half_a_file_changes_nothing(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "rules.tamis"
    saved(path, 1)
    with LiveIndex(path, interval=3600) as live:
        beside = tmp_path / "next"
        beside.write_bytes(content)
        beside.replace(path)
        assert not live.refresh()
        assert (live.match({"x": 1}), live.generation) == ([1], 1)
        assert isinstance(live.error, tamis.SnapshotError)
        saved(path, 2)
        assert live.refresh()
        assert (live.match({"x": 1}), live.error) == ([2], None)
        path.unlink()
        assert not live.refresh()
        assert live.match({"x": 1}) == [2]


def test_a_watched_index_cannot_be_changed(tmp_path: Path) -> None:
    path = tmp_path / "rules.tamis"
    saved(path, 1)
    with LiveIndex(path) as live, pytest.raises(AttributeError, match="follows its file"):
        live.add(2, "x > 1")


def test_saving_over_what_somebody_else_saved_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rules.tamis"
    saved(path, 1)
    ours, theirs = tamis.open(path), tamis.open(path)
    ours.add(2, "x > 0")
    ours.save(path)
    ours.add(3, "x > 0")
    ours.save(path)  # our own save is no surprise
    theirs.add(4, "x > 0")
    with pytest.raises(tamis.StaleSnapshotError, match="saved by somebody else"):
        theirs.save(path)
    assert list(tamis.open(path)) == [1, 2, 3]
    theirs.save(tmp_path / "other.tamis")
    theirs.save(path, overwrite=True)
    assert list(tamis.open(path)) == [1, 4]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["other.tamis", "rules.tamis"]


def _add_until_saved(path: str, id: int) -> None:
    while True:
        index = tamis.open(path)
        index.add(id, "x > 0")
        try:
            index.save(path)
        except tamis.StaleSnapshotError:
            continue
        return


def test_processes_that_open_add_and_save_lose_no_update(tmp_path: Path) -> None:
    path = tmp_path / "rules.tamis"
    saved(path, 0)
    context = multiprocessing.get_context("spawn")
    with context.Pool(4) as pool:
        pool.starmap(_add_until_saved, [(str(path), id) for id in range(1, 25)])
    assert list(tamis.open(path)) == list(range(25))
