"""A random history, played; one that fails is made shorter.

What happens in a history does not depend on how long it goes on, so that its beginning fails alike.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pubsub.one_thread import one_thread


class Played(Protocol):
    """A history that can be played."""

    def run(self) -> Coroutine[Any, Any, None]: ...


H = TypeVar("H", bound=Played)


def play(kind: Callable[[int, Path, Any], H], seed: int, folder: Path, settings: Any) -> H:
    """Play a history; one that fails names its seed, and the fewest steps after which it still does."""
    with one_thread():
        return _play(kind, seed, folder, settings)


def _play(kind: Callable[[int, Path, Any], H], seed: int, folder: Path, settings: Any) -> H:
    history = kind(seed, folder, settings)
    try:
        asyncio.run(history.run())
    except BaseException as error:

        def fails(steps: int) -> bool:
            place = folder / f"shorter-{seed}-{steps}"
            place.mkdir()
            try:
                asyncio.run(kind(seed, place, replace(settings, steps=steps)).run())
            except BaseException:
                return True
            return False

        fewest = fewest_steps(fails, settings.steps)
        error.add_note(f"seed {seed}, {settings}; it still fails with steps={fewest}")
        raise
    return history


def fewest_steps(fails: Callable[[int], bool], steps: int) -> int:
    """The fewest steps after which a history still fails, found by halving; `steps` are known to."""
    good = 0
    while good + 1 < steps:
        middle = (good + steps) // 2
        if fails(middle):
            steps = middle
        else:
            good = middle
    return steps
