"""Overlays without cycles: lines, stars, trees and random ones.

Brokers pass on what they hear, so in a cycle a subscription would be kept alive by its own echo. Real sites
may form any graph (`tamis.pubsub.sites`): there each site speaks for itself.
"""

import random
from collections import deque
from collections.abc import Iterable


class Topology:
    """Brokers and the links between them; exactly one way leads from any broker to any other.

    >>> Topology.line(3).neighbours("b2")
    ['b1', 'b3']
    >>> Topology.star(4).neighbours("b1")
    ['b2', 'b3', 'b4']
    >>> Topology([("a", "b"), ("b", "c"), ("c", "a")])
    Traceback (most recent call last):
    ...
    ValueError: an overlay of 3 brokers has 2 links, one way between any two of them; this one has 3
    """

    def __init__(self, links: Iterable[tuple[str, str]], brokers: Iterable[str] = ()) -> None:
        """Take the links; `brokers` is needed only for a single one."""
        self.links = [(a, b) for a, b in links]
        self._neighbours: dict[str, list[str]] = {name: [] for name in brokers}
        for a, b in self.links:
            self._neighbours.setdefault(a, []).append(b)
            self._neighbours.setdefault(b, []).append(a)
        if len(self.links) != len(self._neighbours) - 1:
            raise ValueError(
                f"an overlay of {len(self._neighbours)} brokers has {len(self._neighbours) - 1} links, "
                f"one way between any two of them; this one has {len(self.links)}"
            )
        first = next(iter(self._neighbours))
        if len(self._ways_to(first)) != len(self._neighbours):
            raise ValueError("the overlay falls apart: some brokers cannot be reached from others")

    @classmethod
    def line(cls, count: int) -> "Topology":
        """Brokers in a row."""
        return cls([(f"b{k}", f"b{k + 1}") for k in range(1, count)], [f"b{k + 1}" for k in range(count)])

    @classmethod
    def star(cls, count: int) -> "Topology":
        """One broker in the middle, b1."""
        return cls([("b1", f"b{k}") for k in range(2, count + 1)], ["b1"])

    @classmethod
    def tree(cls, count: int, fan_out: int = 2) -> "Topology":
        """A balanced tree with root b1.

        >>> Topology.tree(7).neighbours("b2")
        ['b1', 'b4', 'b5']
        """
        return cls([(f"b{(k - 2) // fan_out + 1}", f"b{k}") for k in range(2, count + 1)], ["b1"])

    @classmethod
    def random(cls, count: int, seed: int) -> "Topology":
        """Each broker is linked to a random earlier one."""
        chance = random.Random(seed)
        return cls([(f"b{chance.randrange(1, k)}", f"b{k}") for k in range(2, count + 1)], ["b1"])

    @property
    def brokers(self) -> list[str]:
        """All brokers."""
        return list(self._neighbours)

    def neighbours(self, broker: str) -> list[str]:
        """The brokers linked to one."""
        return self._neighbours[broker]

    def remove(self, broker: str) -> None:
        """Take a broker out; those who were linked by it are linked to the first of its neighbours.

        >>> star = Topology.star(4)
        >>> star.remove("b1")
        >>> star.links
        [('b2', 'b3'), ('b2', 'b4')]
        """
        first, *others = self._neighbours.pop(broker)
        self.links = [link for link in self.links if broker not in link] + [(first, b) for b in others]
        for name in (first, *others):
            self._neighbours[name].remove(broker)
        for other in others:
            self._neighbours[first].append(other)
            self._neighbours[other].append(first)

    def towards(self, broker: str, target: str) -> str | None:
        """The neighbour on the way to a target; None at the target itself.

        >>> Topology.line(4).towards("b1", "b4")
        'b2'
        """
        return self._ways_to(target)[broker]

    def _ways_to(self, target: str) -> dict[str, str | None]:
        ways: dict[str, str | None] = {target: None}
        queue = deque([target])
        while queue:
            broker = queue.popleft()
            for neighbour in self._neighbours[broker]:
                if neighbour not in ways:
                    ways[neighbour] = broker
                    queue.append(neighbour)
        return ways
