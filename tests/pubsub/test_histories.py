"""Random histories on SQLite, of one site and several; the long ones are slow tests. Failures name seeds."""

from dataclasses import replace
from pathlib import Path

import pytest

from pubsub import random_sites_history as several
from pubsub.random_history import History, Settings, play

KINDS = {
    "plain": Settings(),
    "limits": Settings(limits=True),
    "rollback": Settings(rollback=True),
}


@pytest.mark.parametrize(
    ("kind", "seed"),
    [("plain", 0), ("plain", 1), ("plain", 2), ("limits", 2), ("rollback", 2), ("rollback", 1090)],
)
def test_a_short_history(tmp_path: Path, kind: str, seed: int) -> None:
    history = play(seed, tmp_path, KINDS[kind])
    assert history.published


@pytest.mark.slow
@pytest.mark.timeout(0)  # a busy machine is no fault
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block", range(7))
def test_long_histories(tmp_path: Path, kind: str, block: int) -> None:
    for seed in range(1_000 + 48 * block, 1_000 + 48 * (block + 1)):
        play(seed, tmp_path, KINDS[kind])


@pytest.mark.slow
def test_a_history_that_fails_is_made_shorter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = History.judge

    def too_strict(self: History) -> None:
        real(self)
        assert len(self.published) < 25

    monkeypatch.setattr(History, "judge", too_strict)
    with pytest.raises(AssertionError) as failed:
        play(1, tmp_path, Settings(steps=80))
    [note] = failed.value.__notes__
    steps = int(note.rpartition("=")[2])
    assert 1 < steps < 80
    assert note.startswith("seed 1, ")


SITES = {
    "order": several.Settings(stops_sites=False),
    "stops": several.Settings(),
    "cuts": several.Settings(cuts_links=True),
    "rollback": several.Settings(rolls_back=True),
    "loss": several.Settings(loses_sites=True, cuts_links=True),
    "limits": several.Settings(cuts_links=True, limits=True),
    "upgrades": several.Settings(cuts_links=True, upgrades=True),
}


@pytest.mark.parametrize("kind", SITES)
def test_a_short_history_of_several_sites(tmp_path: Path, kind: str) -> None:
    history = several.play(1, tmp_path, replace(SITES[kind], steps=20))
    assert history.published


@pytest.mark.slow
@pytest.mark.timeout(0)  # a busy machine is no fault
@pytest.mark.parametrize("kind", SITES)
def test_long_histories_of_several_sites(tmp_path: Path, kind: str) -> None:
    for seed in range(100, 140):
        several.play(seed, tmp_path, SITES[kind])
