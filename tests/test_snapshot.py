"""Snapshots: everything comes back, and no damaged file crashes or gives a wrong match."""

import copy
import os
import pickle
import random
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import tamis
from tamis import Index, SnapshotError

WHEN = datetime(2030, 1, 1, tzinfo=UTC)
EVENTS = [{"x": x, "word": word} for x in (0, 3, 99) for word in ("", "able", "cable")]


def filled(rows: int = 60) -> Index:
    index = Index()
    index.add_many(
        [f"s{at}" for at in range(rows)],
        [f"x > {at} OR contains(word, 'ab') AND x IN ({at}, 7)" for at in range(rows)],
        priorities=[float(at) for at in range(rows)],
        weights=[{"x": 0.5}] * rows,
        tags=[["even"] if at % 2 == 0 else [] for at in range(rows)],
        payloads=[bytes([at % 256]) * at for at in range(rows)],
        expires=[WHEN] * rows,
    )
    return index


def answers(index: Index) -> list[list[str]]:
    return [index.match(event) for event in EVENTS]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rules.tamis"
    filled().save(path)
    return path


def test_everything_comes_back(file: Path) -> None:
    index, opened = filled(), Index.open(file)
    opened.verify()
    assert dict(opened.items()) == dict(index.items())
    assert answers(opened) == answers(index)
    assert opened.generation == index.generation
    assert opened.top_k({"x": 50}, 3) == index.top_k({"x": 50}, 3)
    assert opened.match({"x": 50}, tags=["even"]) == index.match({"x": 50}, tags=["even"])


def test_an_opened_index_can_be_changed_and_saved_again(file: Path) -> None:
    opened = Index.open(file)
    opened.remove("s0")
    opened.replace("s1", "x = -5")
    opened.add("new", "x = -5", payload=b"new")
    opened.save(file)
    again = Index.open(str(file))
    again.verify()
    assert again.match({"x": -5}) == ["new", "s1"]
    assert again["new"].payload == b"new"
    assert "s0" not in again
    assert len(again) == 60


def test_an_open_file_can_be_replaced(file: Path) -> None:
    opened = Index.open(file)
    expected = answers(filled())
    Index().save(file)
    assert answers(opened) == expected
    assert len(Index.open(file)) == 0


def test_the_schema_is_kept(tmp_path: Path) -> None:
    index = Index(schema={"age": "int", "seen": "timestamp"})
    index.save(tmp_path / "empty.tamis")
    opened = Index.open(tmp_path / "empty.tamis")
    assert opened.schema == index.schema
    with pytest.raises(tamis.ExpressionError):
        opened.add("a", "unknown > 1")


def test_paths_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Index.open(tmp_path / "none.tamis")
    with pytest.raises(tamis.SnapshotError, match="it is a folder"):
        Index.open(tmp_path)
    with pytest.raises(FileNotFoundError):
        Index().save(tmp_path / "no" / "folder" / "x.tamis")
    with pytest.raises(tamis.ArgumentError, match="auto"):
        Index(algorithm="scan").save(tmp_path / "scan.tamis")
    assert os.listdir(tmp_path) == []


# --- files that are overwritten while they are open -------------------------------------------------

USES: dict[str, Callable[[Index], Any]] = {
    "match": lambda index: index.match({"x": 5}),
    "JSON": lambda index: index.match(b'{"x": 5}'),
    "count": lambda index: index.count({"x": 5}),
    "exists": lambda index: index.exists({"x": 5}),
    "top_k": lambda index: index.top_k({"x": 5}),
    "relaxed": lambda index: index.top_k({"x": 5}, score="relaxed"),
    "match_batch": lambda index: index.match_batch([{"x": 5}]).to_pydict(),
    "count_batch": lambda index: index.count_batch([{"x": 5}]).to_pylist(),
    "top_k_batch": lambda index: index.top_k_batch([{"x": 5}]).to_pydict(),
    "explain": lambda index: str(index.explain("s0", {"x": 5})),
    "why_not": lambda index: str(index.why_not("s0", {"x": 5})),
    "get": lambda index: index["s0"].payload,
    "in": lambda index: "s0" in index,
    "ids": list,
    "payloads": lambda index: index.payloads(["s3"]),
    "tags": lambda index: index.tags,
    "add": lambda index: index.add("new", "x > 1"),
    "remove": lambda index: index.remove("s0"),
    "optimize": lambda index: index.optimize(),
    "pickle": lambda index: len(pickle.dumps(index)),
    "verify": lambda index: index.verify(),
}


def saved(path: Path, rows: int, first: int = 0) -> Path:
    """A snapshot of rules that are written alike, so that their files have the same size."""
    index = Index()
    index.add_many(
        [f"s{at}" for at in range(rows)],
        [f"x > {at % 10 + first}" for at in range(rows)],
        payloads=[b"payload"] * rows,
        tags=[["even"] if at % 2 == 0 else [] for at in range(rows)],
    )
    for _ in range(first):
        index.set_priority("s0", 1.0)
        index.set_priority("s0", 0.0)
    index.save(path)
    return path


def overwrite(path: Path, other: Path) -> None:
    """What people do: the inode stays, the content changes."""
    before = path.stat().st_ino
    subprocess.run(["cp", other, path], check=True)
    assert path.stat().st_ino == before


@pytest.mark.parametrize("what", ["older", "newer", "smaller", "larger", "empty", "foreign"])
def test_an_overwritten_file_is_noticed(tmp_path: Path, what: str) -> None:
    old, new = saved(tmp_path / "old.tamis", 2000, 1), saved(tmp_path / "new.tamis", 2000, 2)
    assert old.stat().st_size == new.stat().st_size
    original = new if what == "older" else old
    foreign = tmp_path / "foreign"
    foreign.write_bytes(os.urandom(original.stat().st_size))
    other = {
        "older": old,
        "newer": new,
        "smaller": saved(tmp_path / "small.tamis", 20),
        "larger": saved(tmp_path / "large.tamis", 5000),
        "empty": saved(tmp_path / "empty.tamis", 0),
        "foreign": foreign,
    }[what]
    path = tmp_path / "rules.tamis"
    overwrite(saved(path, 1), original)
    opened = [(use, Index.open(path)) for use in [*USES, *USES]]
    copied = {use: Index.open(path, copy=True) for use in USES}
    for _, index in opened[: len(USES)]:  # the others are used for the first time when it is too late
        index.match({"x": 5})
    overwrite(path, other)
    for use, index in opened:
        with pytest.raises(SnapshotError, match="overwritten while it was open") as raised:
            USES[use](index)
        assert str(raised.value).startswith(f"{path}: ")
        assert "write a new file and rename it over the old one" in str(raised.value)
        assert len(index) == 2000
    with pytest.raises(SnapshotError, match="overwritten"):
        opened[0][1].save(tmp_path / "again.tamis")
    assert not (tmp_path / "again.tamis").exists()
    for use, index in copied.items():
        assert USES[use](index) == USES[use](Index.open(original)), use


def test_a_file_overwritten_by_itself_is_as_it_was(tmp_path: Path) -> None:
    path = saved(tmp_path / "rules.tamis", 100)
    index, expected = Index.open(path), Index.open(path, copy=True).match({"x": 5})
    path.write_bytes(path.read_bytes())
    assert index.match({"x": 5}) == expected


# --- damage ---------------------------------------------------------------------------------------


def survives(path: Path, expected: list[list[str]]) -> bool:
    """Whether a damaged file still opens and verifies; wrong answers and crashes fail the test."""
    try:
        index = Index.open(path)
        assert answers(index) == expected
        list(index.items())
        index.add("new", "x > 1")
        index.optimize()
        index.verify()
    except SnapshotError:
        return False
    return True


def test_truncated_files(file: Path) -> None:
    whole, expected = file.read_bytes(), answers(filled())
    chance = random.Random(1)
    for length in [0, 1, 7, 8, 63, 64, *(chance.randrange(len(whole)) for _ in range(60)), len(whole) - 1]:
        file.write_bytes(whole[:length])
        assert not survives(file, expected), f"cut to {length} of {len(whole)} bytes"
    file.write_bytes(whole + b"more")
    assert not survives(file, expected)


def test_flipped_bits(file: Path) -> None:
    whole, expected = file.read_bytes(), answers(filled())
    chance = random.Random(2)
    noticed = 0
    for _ in range(400):
        at, bit = chance.randrange(len(whole)), chance.randrange(8)
        damaged = bytearray(whole)
        damaged[at] ^= 1 << bit
        file.write_bytes(damaged)
        noticed += not survives(file, expected)
        if at < 64:
            assert not survives(file, expected), f"bit {bit} of byte {at}"
    # A bit in the padding between two sections changes nothing and may go unnoticed.
    assert noticed > 300


def test_foreign_files(file: Path) -> None:
    for foreign in (b"PAR1" + bytes(1000), b"{}", os.urandom(5000), bytes(5000)):
        file.write_bytes(foreign)
        with pytest.raises(SnapshotError):
            Index.open(file)


# --- pickling and copying -------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["auto", "scan"])
def test_copies_are_their_own(algorithm: str) -> None:
    index = Index(algorithm=algorithm)
    index.add("a", "x > 1", priority=2.0, weights={"x": 0.5}, tags=["t"], payload=b"p", expires=WHEN)
    for duplicate in (pickle.loads(pickle.dumps(index)), copy.copy(index), copy.deepcopy(index)):
        assert dict(duplicate.items()) == dict(index.items())
        assert duplicate.algorithm == algorithm
        duplicate.add("b", "x > 1")
        assert index.match({"x": 2}) == ["a"]


def test_damaged_pickles() -> None:
    rebuild, (cls, snapshot, *rest) = filled().__reduce__()
    with pytest.raises(SnapshotError):
        rebuild(cls, snapshot[:100], *rest)


def test_an_index_opens_in_another_process(file: Path) -> None:
    code = f"import tamis; print(tamis.Index.open({str(file)!r}).match({{'x': 2, 'word': ''}}))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "['s0', 's1']"
