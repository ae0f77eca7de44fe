"""What a routing algorithm decides.

Laws, on an acyclic overlay and for any two brokers P and S:

1. A subscription at S that is wanted everywhere (`sends_subscription`), or that overlaps an advertisement
of a
   publisher at P, reaches P; so P's events that satisfy it find their way back along the routing entries.
2. Where `uses_advertisements` is true, a publisher's events conform to its advertisements, or go everywhere.
"""

from typing import Protocol


class Routing(Protocol):
    """A routing algorithm: pure decisions, no state."""

    @property
    def floods_events(self) -> bool:
        """Whether events go to all neighbours without filtering."""
        ...

    @property
    def uses_advertisements(self) -> bool:
        """Whether a subscription also goes where an overlapping advertisement came from."""
        ...

    def sends_subscription(self, type: str | None, neighbour: str) -> bool:
        """Whether a subscription goes to a neighbour whatever was advertised there."""
        ...

    def sends_advertisement(self, type: str | None, neighbour: str) -> bool:
        """Whether an advertisement goes to a neighbour."""
        ...
