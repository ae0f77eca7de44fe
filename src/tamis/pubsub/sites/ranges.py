"""Sets of numbers that are mostly without holes, kept as ranges."""

from bisect import bisect_right
from collections.abc import Iterable


class Ranges:
    """Which numbers have been seen.

    >>> seen = Ranges([(1, 3)])
    >>> seen.add(5), seen.add(4), seen.add(2)
    (True, True, False)
    >>> seen.pairs
    [(1, 5)]
    """

    __slots__ = ("pairs",)

    def __init__(self, pairs: Iterable[tuple[int, int]] = ()) -> None:
        """Take ranges, first and last number of each."""
        self.pairs: list[tuple[int, int]] = []
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
        return True

    def __len__(self) -> int:
        """How many ranges there are."""
        return len(self.pairs)
