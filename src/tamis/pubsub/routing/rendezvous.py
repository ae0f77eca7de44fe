"""Rendezvous brokers (Bittner 2008, section 2.4.4): subscriptions and advertisements meet half-way.

Each event type has one rendezvous broker. Advertisements go towards it and no further. Subscriptions go
towards it too, and from every broker they pass also back along overlapping advertisements, so that they
reach the publishers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Rendezvous:
    """Where each type's rendezvous broker is, as seen from one broker.

    `towards` maps each type to the neighbour on the way to its rendezvous broker, and to None if that is the
    broker itself. `default` is the way for all other types, and for events without one.

    >>> routing = Rendezvous(towards={"book": "b2"}, default="b3")
    >>> routing.sends_subscription("book", "b2"), routing.sends_subscription("car", "b2")
    (True, False)
    >>> routing.sends_subscription(None, "b3")
    True
    """

    towards: Mapping[str, str | None] = field(default_factory=dict)
    default: str | None = None
    floods_events: bool = False
    uses_advertisements: bool = True

    def sends_subscription(self, type: str | None, neighbour: str) -> bool:
        """Towards the rendezvous broker; towards all of them if it asks for any type."""
        return self._is_towards(type, neighbour)

    def sends_advertisement(self, type: str | None, neighbour: str) -> bool:
        """Towards the rendezvous broker; towards all of them if it is for any type."""
        return self._is_towards(type, neighbour)

    def _is_towards(self, type: str | None, neighbour: str) -> bool:
        if type is None:
            return neighbour == self.default or neighbour in self.towards.values()
        return neighbour == self.towards.get(type, self.default)
