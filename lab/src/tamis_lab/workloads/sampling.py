"""Random draws that every generator needs: Zipf ranks, and rows of distinct items.

All draws come from a `numpy.random.Generator` made by `stream`, so that a workload is a function of its seed
alone: the same rows whatever the machine, the order of the calls or the number of rows asked for.
"""

import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.integer[Any]]
Floats = npt.NDArray[np.float64]


def stream(seed: int, *path: str | int) -> np.random.Generator:
    """A random stream of its own for every (seed, path).

    >>> int(stream(7, "events", 0).integers(1000)) == int(stream(7, "events", 0).integers(1000))
    True
    """
    keys = [zlib.crc32(step.encode()) if isinstance(step, str) else step for step in path]
    return np.random.default_rng(np.random.SeedSequence(entropy=seed, spawn_key=tuple(keys)))


class Zipf:
    """Ranks 0 .. size-1, where rank r is drawn with a probability proportional to 1 / (r + 1) ** alpha.

    `alpha=0` is the uniform distribution.

    >>> Zipf(4, alpha=1.0).probabilities.round(2).tolist()
    [0.48, 0.24, 0.16, 0.12]
    """

    def __init__(self, size: int, alpha: float) -> None:
        """Prepare the distribution over `size` ranks."""
        if size < 1:
            raise ValueError(f"a distribution needs at least one rank, not {size}")
        weights = np.arange(1, size + 1, dtype=np.float64) ** -alpha
        self.size = size
        self.alpha = alpha
        self.probabilities: Floats = weights / weights.sum()
        self._cumulative: Floats = np.cumsum(self.probabilities)

    def draw(self, rng: np.random.Generator, shape: int | tuple[int, ...]) -> Ints:
        """Draw an array of ranks.

        >>> Zipf(10, alpha=0.6).draw(stream(1), (2, 3)).shape
        (2, 3)
        """
        if self.alpha == 0:
            return rng.integers(self.size, size=shape)
        ranks = np.searchsorted(self._cumulative, rng.random(shape), side="right")
        # The last cumulative probability may round to just below one.
        return np.minimum(ranks, self.size - 1)


def distinct_rows(rng: np.random.Generator, distribution: Zipf, rows: int, width: int) -> Ints:
    """Rows of `width` ranks each, no rank twice in a row.

    Repeated ranks are drawn again until none is left, which keeps the draw vectorised; it is meant for widths
    well below the number of ranks.

    >>> drawn = distinct_rows(stream(1), Zipf(50, alpha=0.8), rows=1000, width=5)
    >>> all(len(set(row)) == 5 for row in drawn.tolist())
    True
    """
    if width > distribution.size:
        raise ValueError(f"cannot draw {width} distinct ranks out of {distribution.size}")
    drawn = distribution.draw(rng, (rows, width))
    pending = np.arange(rows)
    while pending.size:
        current = drawn[pending]
        order = np.argsort(current, axis=1, kind="stable")
        ordered = np.take_along_axis(current, order, axis=1)
        repeated = np.zeros(current.shape, dtype=bool)
        np.put_along_axis(repeated, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
        current[repeated] = distribution.draw(rng, int(repeated.sum()))
        drawn[pending] = current
        pending = pending[repeated.any(axis=1)]
    return drawn


def distinct_subsets(rng: np.random.Generator, distribution: Zipf, rows: int, width: int) -> Ints:
    """Like `distinct_rows`, for widths up to the number of ranks (weighted draw without replacement).

    Costs a random number for every rank of every row, so it is meant for events, of which there are few.

    >>> distinct_subsets(stream(1), Zipf(4, alpha=0.6), rows=1, width=4).tolist()[0].__len__()
    4
    """
    if width > distribution.size:
        raise ValueError(f"cannot draw {width} distinct ranks out of {distribution.size}")
    keys = rng.exponential(size=(rows, distribution.size)) / distribution.probabilities
    return np.argpartition(keys, width - 1, axis=1)[:, :width]
