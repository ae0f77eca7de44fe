"""Finds the cut-off: how far a broker should prune.

Pruning makes filtering cheaper and sends more events to the neighbours. The gain outweighs the cost up to a
point, the cut-off. `CutOff` searches for it: after each window of events it receives the cost per event,
takes another step in the same direction while the cost falls, and turns around with half the step when it
rises. Once steps are small, it stops; when the cost there has changed for good, it searches again.
"""

from dataclasses import dataclass

SMALLEST_STEP = 0.03


@dataclass
class _Best:
    share: float
    cost: float


class CutOff:
    """Finds the share of pruning at which an event costs least.

    >>> cut_off = CutOff()
    >>> for _ in range(40):
    ...     share = cut_off.observe((cut_off.share - 0.7) ** 2 + 1.0)
    >>> abs(share - 0.7) < 0.1, cut_off.settled
    (True, True)
    """

    def __init__(self, first_step: float = 0.25, noise: float = 0.02, drift: float = 0.25) -> None:
        """Differences below `noise` are none; above `drift`, where it has settled, the load has changed."""
        self._first_step = first_step
        self._noise = noise
        self._drift = drift
        self.share = 0.0
        """How far to prune now."""
        self._step = first_step
        self._best: _Best | None = None
        self._settled_cost: float | None = None
        self._strange = 0
        self.searches = 1
        """How often it has set out to find the cut-off."""

    @property
    def settled(self) -> bool:
        """Whether it has found the cut-off and stays there."""
        return abs(self._step) < SMALLEST_STEP

    def observe(self, cost: float) -> float:
        """Take what an event cost at the current share; returns the share to use next."""
        if self.settled:
            self._watch(cost)
            return self.share
        if self._best is None or cost < self._best.cost * (1 - self._noise):
            self._best = _Best(self.share, cost)
        else:
            # No better: go back to the best place and try the other side of it, nearer.
            self._step = -self._step / 2
            self.share = self._best.share
        if self.settled:
            self._settled_cost = None
            self.share = self._best.share
            return self.share
        target = self.share + self._step
        if not 0.0 <= target <= 1.0:
            self._step = -self._step / 2
            target = min(1.0, max(0.0, self.share + self._step))
        self.share = target
        return self.share

    def _watch(self, cost: float) -> None:
        if self._settled_cost is None:
            self._settled_cost = cost
        elif abs(cost - self._settled_cost) > self._drift * self._settled_cost:
            self._strange += 1
            if self._strange >= 3:
                self._search_again(cost)
        else:
            self._strange = 0
            self._settled_cost += 0.1 * (cost - self._settled_cost)

    def _search_again(self, cost: float) -> None:
        self._strange = 0
        self.searches += 1
        self._best = _Best(self.share, cost)
        self._step = self._first_step if self.share < 0.5 else -self._first_step
        self._settled_cost = None
