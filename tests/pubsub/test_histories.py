"""Random histories of a site on SQLite; the long ones are slow tests. A failure names its seed."""

from pathlib import Path

import pytest

from pubsub.random_history import Settings, play

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
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block", range(7))
def test_long_histories(tmp_path: Path, kind: str, block: int) -> None:
    for seed in range(1_000 + 48 * block, 1_000 + 48 * (block + 1)):
        play(seed, tmp_path, KINDS[kind])
