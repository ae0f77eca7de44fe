"""From ratios to a verdict: the median, its 95 % confidence interval, and what that means.

The interval lies between two of the sorted ratios (order statistics). The probability that it contains the
true median follows from the binomial distribution alone, whatever the distribution of the ratios, which on a
busy machine follows no standard form.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

CONFIDENCE = 0.95
MARGIN = 0.03
"""What counts as a difference: 3 % more or less."""

Verdict = Literal["slower", "faster", "same", "too few pairs"]


@dataclass(frozen=True)
class Estimate:
    """The median of some ratios, and an interval that holds the true one."""

    ratio: float
    low: float
    high: float
    confidence: float
    """Of the interval; below 0.95 where there are fewer than six ratios."""

    @property
    def verdict(self) -> Verdict:
        """Whether the interval lies wholly beyond the margin.

        >>> Estimate(1.05, 1.04, 1.06, 0.95).verdict, Estimate(1.05, 1.02, 1.08, 0.95).verdict
        ('slower', 'same')
        """
        if self.confidence < CONFIDENCE:
            return "too few pairs"
        if self.low > 1 + MARGIN:
            return "slower"
        if self.high < 1 - MARGIN:
            return "faster"
        return "same"


def estimate(ratios: Sequence[float]) -> Estimate:
    """The median and its interval.

    >>> estimate([1.0, 1.1, 0.9, 1.02, 1.01, 0.98, 1.0])
    Estimate(ratio=1.0, low=0.9, high=1.1, confidence=0.984375)
    """
    ordered = sorted(ratios)
    count = len(ordered)
    if not count:
        raise ValueError("no ratios to judge")
    cut = _ranks_to_drop(count)
    return Estimate(median(ordered), ordered[cut], ordered[count - 1 - cut], _coverage(count, cut))


def _ranks_to_drop(count: int) -> int:
    """How many of the sorted values can be left out at either end; none if even all are too few."""
    cut = 0
    while 2 * (cut + 1) < count and _coverage(count, cut + 1) >= CONFIDENCE:
        cut += 1
    return cut


def _coverage(count: int, cut: int) -> float:
    """The probability that the median lies between the values at rank `cut` from either end.

    >>> round(_coverage(15, 3), 4)
    0.9648
    """
    outside = sum(math.comb(count, below) for below in range(cut + 1))
    return 1 - 2 * outside / 2**count
