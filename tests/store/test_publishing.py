"""Publishing a build once, though Spark may run its task twice: after a failure, or as a speculative copy.

Faults: an attempt that runs again after it published; two at once; one that sleeps, at any of its steps,
while the other publishes and changes follow; one that wakes when the evidence is gone; a search of the whole
history. A second version of the same build would undo what was changed since the first.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from tamis.errors import SnapshotError
from tamis.store import versions
from tamis.store.directory import LocalDirectory, open_directory
from tamis.store.garbage import collect
from tamis.store.versions import ChangeFile, Version, create_version, latest_number, publish, version_numbers

BUILD = Version(number=1, plan="replicated", ids="int", shards=[[]], notes={"build": "one"})


def changed(first: Version, number: int) -> Version:
    return replace(first, number=number, changes=[ChangeFile("changes/c", last=number, changes=1, bytes=10)])


def test_a_task_that_runs_again(tmp_path: Path) -> None:
    store = open_directory(str(tmp_path))
    first = publish(store, BUILD)
    assert create_version(store, changed(first, 2))
    folded = replace(first, number=3, base=3)
    assert create_version(store, folded)
    assert publish(store, BUILD) == first, "not the version that folded the changes into it"
    assert latest_number(store) == 3
    other = publish(store, replace(BUILD, notes={"build": "two"}))
    assert (other.number, latest_number(store)) == (4, 4), "another build is another version"
    assert create_version(store, changed(other, 5))
    assert [publish(store, BUILD), publish(store, other)] == [first, other]


@pytest.mark.parametrize("request_number", range(4))
def test_a_first_attempt_that_sleeps_before_a_request(tmp_path: Path, request_number: int) -> None:
    """Meanwhile attempt 1 publishes, and a change follows."""
    publish(open_directory(tmp_path), replace(BUILD, notes={"build": "before"}))
    asleep = SleepingDirectory(str(tmp_path))
    asleep.wakes_at = request_number
    assert publish(asleep, BUILD).number == 2
    assert asleep.requests > request_number, "all requests of an attempt that is alone were tried"
    assert version_numbers(asleep) == [1, 2, 3]


def test_an_attempt_that_can_no_longer_know_is_refused(tmp_path: Path) -> None:
    """The version of the other attempt was removed, with those before the latest ones."""
    store = open_directory(str(tmp_path))
    first = publish(store, BUILD)
    for number in range(2, 6):
        assert create_version(store, replace(first, number=number, base=number, notes={"build": "two"}))
    assert [name for name in collect(store, keep=1, grace=0.0) if name.startswith("versions")]
    with pytest.raises(SnapshotError, match="may have been published by an earlier attempt"):
        publish(store, BUILD)
    assert latest_number(store) == 5


def test_the_same_if_it_had_asked_for_the_latest_version_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_directory(str(tmp_path))
    first = publish(store, BUILD)
    for number in range(2, 6):
        assert create_version(store, replace(first, number=number, base=number, notes={"build": "two"}))
    collect(store, keep=1, grace=0.0)
    answers = iter([None])
    monkeypatch.setattr(versions, "latest_number", lambda directory: next(answers, latest_number(directory)))
    with pytest.raises(SnapshotError, match="may have been published by an earlier attempt"):
        publish(store, BUILD)
    assert version_numbers(store) == [5]


def test_the_cost_does_not_grow_with_the_number_of_versions(tmp_path: Path) -> None:
    def requests(number: int) -> int:
        counting = CountingDirectory(str(tmp_path / "store"))
        publish(counting, replace(BUILD, notes={"build": f"number {number}"}))
        return counting.requests

    costs = [requests(number) for number in range(200)]
    assert max(costs[2:]) <= min(costs) + 2, "the marker of a later format, and a group of versions"


class CountingDirectory(LocalDirectory):
    """Counts what an object store would be asked."""

    requests = 0

    def count(self) -> None:
        self.requests += 1

    def read(self, name: str) -> bytes:
        self.count()
        return super().read(name)

    def create(self, name: str, data: bytes) -> bool:
        self.count()
        return super().create(name, data)

    def list(self, folder: str) -> list[str]:
        self.count()
        return super().list(folder)


class SleepingDirectory(CountingDirectory):
    """Sleeps before a request until another attempt has published, and a change has followed."""

    wakes_at = 0

    def count(self) -> None:
        if self.requests == self.wakes_at:
            other = open_directory(self.url)
            assert create_version(other, changed(publish(other, BUILD), 3))
        super().count()


def test_a_copy_that_runs_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_directory(str(tmp_path))
    first = publish(store, BUILD)
    monkeypatch.setattr(versions, "latest_number", lambda directory: None)  # as if it had looked before
    assert publish(store, BUILD) == first
    assert version_numbers(store) == [1]


def test_versions_without_a_build_are_told_apart_by_their_numbers(tmp_path: Path) -> None:
    store = open_directory(str(tmp_path))
    assert [publish(store, replace(BUILD, notes={})).number for _ in range(3)] == [1, 2, 3]
