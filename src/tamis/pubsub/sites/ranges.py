"""Sets of numbers that are mostly without holes, kept as ranges.

A hole stays where an event was dropped on its way, or is late. A neighbour can make as many as it likes, so
their number is bounded: beyond it the lowest hole is closed, and its numbers count as seen.
"""

from bisect import bisect_right
from collections.abc import Iterable

MOST_RANGES = 1_000
"""As JSON they take 36 KB at most."""


class Ranges:
    """Which numbers have been seen.

    >>> seen = Ranges([(1, 3)])
    >>> seen.add(5), seen.add(4), seen.add(2)
    (True, True, False)
    >>> seen.pairs
    [(1, 5)]
    """

    __slots__ = ("closed", "pairs")

    def __init__(self, pairs: Iterable[tuple[int, int]] = ()) -> None:
        """Take ranges, first and last number of each."""
        self.pairs: list[tuple[int, int]] = []
        self.closed = 0
        """How many numbers count as seen although they were not."""
        for first, last in sorted(pairs):
            if self.pairs and first <= self.pairs[-1][1] + 1:
                self.pairs[-1] = (self.pairs[-1][0], max(last, self.pairs[-1][1]))
            else:
                self.pairs.append((first, last))

    def __contains__(self, number: int) -> bool:
        """Whether a number is there."""
        place = bisect_right(self.pairs, (number, float("inf"))) - 1
        return place >= 0 and self.pairs[place][0] <= number <= self.pairs[place][1]

    def add(self, number: int) -> bool:
        """Add a number; returns whether it is new."""
        if self.pairs and self.pairs[-1][1] + 1 == number:  # nearly always
            self.pairs[-1] = (self.pairs[-1][0], number)
            return True
        if number in self:
            return False
        place = bisect_right(self.pairs, (number, number))
        first, last = number, number
        if place < len(self.pairs) and self.pairs[place][0] == number + 1:
            last = self.pairs.pop(place)[1]
        if place > 0 and self.pairs[place - 1][1] == number - 1:
            first = self.pairs.pop(place - 1)[0]
            place -= 1
        self.pairs.insert(place, (first, last))
        while len(self.pairs) > MOST_RANGES:
            (start, before), (after, end) = self.pairs[:2]
            self.pairs[:2] = [(start, end)]
            self.closed += after - before - 1
        return True

    def follows(self, number: int) -> bool:
        """Whether a number comes just behind all others: then it is new, and so is what comes behind it.

        >>> Ranges([(1, 3)]).follows(4), Ranges([(1, 3)]).follows(5)
        (True, False)
        """
        return not self.pairs or self.pairs[-1][1] + 1 == number

    def extend(self, first: int, last: int) -> None:
        """Add numbers of which the first `follows`."""
        start = self.pairs.pop()[0] if self.pairs else first
        self.pairs.append((start, last))

    def __len__(self) -> int:
        """How many ranges there are."""
        return len(self.pairs)
