"""How operands of variable predicates are drawn: five distributions over a range of values.

From Bittner 2008, appendix B.2. A range is 0 .. size-1; in every distribution but the uniform one, one end of
it is the most popular value and popularity falls towards the other.
"""

from enum import Enum

import numpy as np

from tamis_lab.workloads.sampling import Ints, Zipf


class OperandDistribution(Enum):
    """Which operands are popular.

    >>> OperandDistribution("reversed zipf").draw(np.random.default_rng(1), 3, size=5).tolist()
    [3, 0, 4]
    """

    UNIFORM = "uniform"
    NORMAL = "normal"
    ZIPF = "zipf"
    REVERSED_NORMAL = "reversed normal"
    REVERSED_ZIPF = "reversed zipf"

    def draw(self, rng: np.random.Generator, count: int, size: int) -> Ints:
        """Draw `count` numbers from 0 .. size-1.

        >>> OperandDistribution.NORMAL.draw(np.random.default_rng(1), 4, size=100).tolist()
        [8, 20, 8, 32]
        """
        match self:
            case OperandDistribution.UNIFORM:
                return rng.integers(size, size=count)
            case OperandDistribution.NORMAL:
                return _folded_normal(rng, count, size)
            case OperandDistribution.ZIPF:
                return Zipf(size, alpha=1).draw(rng, count)
            case OperandDistribution.REVERSED_NORMAL:
                return size - 1 - _folded_normal(rng, count, size)
            case OperandDistribution.REVERSED_ZIPF:
                return size - 1 - Zipf(size, alpha=1).draw(rng, count)


def _folded_normal(rng: np.random.Generator, count: int, size: int) -> Ints:
    """Distances from the most popular value: sigma is a quarter of the range, outliers are drawn again."""
    drawn = np.full(count, size, dtype=np.int64)
    pending = np.arange(count)
    while pending.size:
        drawn[pending] = np.abs(rng.normal(0, size / 4, pending.size)).astype(np.int64)
        pending = pending[drawn[pending] >= size]
    return drawn
