"""Takes the times to compare in turns, so that other work on the machine affects them alike."""

import time
from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Name = TypeVar("Name", bound=Hashable)

LEAST_SECONDS = 2.0
"""Rounds go on until they took this long: short ones would all fall into the same disturbance."""


def least_in_turns(
    questions: Mapping[Name, Callable[[], ArrayLike]],
    repeats: int,
    *,
    seconds: float = LEAST_SECONDS,
) -> dict[Name, NDArray[np.float64]]:
    """Ask every question in each of some rounds; of the times of each event the least counts.

    There are `repeats` rounds, and more until they took this many seconds.

    >>> times = iter([[3.0, 5.0], [4.0, 2.0]])
    >>> least_in_turns({"match": lambda: next(times)}, 2, seconds=0)["match"].tolist()
    [3.0, 2.0]
    """
    end = time.monotonic() + seconds
    least = {name: np.array(ask(), dtype=np.float64) for name, ask in questions.items()}
    rounds = 1
    while rounds < repeats or time.monotonic() < end:
        for name, ask in questions.items():
            np.minimum(least[name], ask(), out=least[name])
        rounds += 1
    return least
