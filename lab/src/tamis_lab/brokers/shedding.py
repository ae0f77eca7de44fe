"""Under overload, low-priority subscriptions are shed first.

Load is the number of notifications that wait for all clients. Between `shed_from` and `shed_all` more and
more of the distinct priorities are left out, lowest first; the highest is always served. What is shed shows
in the counters, and a client that gets nothing of an event gets a gap.

Priorities that cannot be compared are refused before they get here. A store that was written before they
were may still hold a NaN: it counts as the lowest priority, so that the list stays in order.
"""

import math
from bisect import bisect_left, insort

from tamis_lab.brokers.options import Limits


class Shedding:
    """Which priorities are served now.

    >>> shedding = Shedding(Limits(shed_from=10, shed_all=20))
    >>> for priority in (1.0, 2.0, 3.0):
    ...     shedding.add(priority)
    >>> shedding.waiting = 15
    >>> [shedding.serves(priority) for priority in (1.0, 2.0, 3.0)]
    [False, True, True]
    """

    def __init__(self, limits: Limits) -> None:
        """Start with no subscriptions."""
        self._limits = limits
        self._priorities: list[float] = []
        self._counts: dict[float, int] = {}
        self.waiting = 0
        """Notifications that wait for all clients."""

    def add(self, priority: float) -> None:
        """A subscription of that priority comes."""
        priority = _comparable(priority)
        if priority not in self._counts:
            insort(self._priorities, priority)
        self._counts[priority] = self._counts.get(priority, 0) + 1

    def remove(self, priority: float) -> None:
        """A subscription of that priority goes."""
        priority = _comparable(priority)
        self._counts[priority] -= 1
        if not self._counts[priority]:
            del self._counts[priority]
            del self._priorities[bisect_left(self._priorities, priority)]

    def serves(self, priority: float) -> bool:
        """Whether a subscription of that priority is notified at the current load."""
        excess = self.waiting - self._limits.shed_from
        if excess < 0 or not self._priorities:
            return True
        share = min(1.0, excess / max(1, self._limits.shed_all - self._limits.shed_from))
        left_out = min(len(self._priorities) - 1, int(share * len(self._priorities)))
        return _comparable(priority) >= self._priorities[left_out]


def _comparable(priority: float) -> float:
    return -math.inf if isinstance(priority, float) and math.isnan(priority) else priority
