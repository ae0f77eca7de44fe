"""Publishing a build once, though Spark may run its task twice: after a failure, or as a speculative copy.

A second version of the same build would undo what was changed since the first.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from tamis.store import versions
from tamis.store.directory import Directory, open_directory
from tamis.store.versions import ChangeFile, Version, create_version, latest_number, publish, version_numbers

BUILD = Version(number=1, plan="replicated", ids="int", shards=[[]], notes={"build": "one"})


def test_a_task_that_runs_again(tmp_path: Path) -> None:
    store = open_directory(str(tmp_path))
    first = publish(store, BUILD)
    changed = replace(first, number=2, changes=[ChangeFile("changes/c", last=2, changes=1, bytes=10)])
    assert create_version(store, changed)
    folded = replace(changed, number=3, base=3, changes=[])
    assert create_version(store, folded)
    assert publish(store, BUILD, again=True) == first, "not the version that folded the changes into it"
    assert latest_number(store) == 3
    other = publish(store, replace(BUILD, notes={"build": "two"}), again=True)
    assert (other.number, latest_number(store)) == (4, 4), "another build is another version"


def test_a_copy_that_runs_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_directory(str(tmp_path))
    first = publish(store, BUILD)
    monkeypatch.setattr(versions, "latest_number", lambda directory: None)  # as if it had looked before
    assert publish(store, BUILD) == first
    assert version_numbers(store) == [1]


def test_a_copy_that_publishes_while_the_other_one_searches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_directory(str(tmp_path))
    search = versions.version_numbers

    def slowly(directory: Directory) -> list[int]:
        found = search(directory)
        first = publish(store, BUILD)
        assert create_version(store, replace(first, number=2))
        return found

    monkeypatch.setattr(versions, "version_numbers", slowly)
    assert publish(store, BUILD, again=True).number == 1
    assert search(store) == [1, 2]


def test_versions_without_a_build_are_told_apart_by_their_numbers(tmp_path: Path) -> None:
    store = open_directory(str(tmp_path))
    assert [publish(store, replace(BUILD, notes={}), again=True).number for _ in range(3)] == [1, 2, 3]
