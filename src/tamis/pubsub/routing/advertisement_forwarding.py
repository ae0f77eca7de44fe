"""Advertisement forwarding (Bittner 2008, section 2.4.3): subscriptions go where events come from."""

from dataclasses import dataclass


@dataclass(frozen=True)
class AdvertisementForwarding:
    """Advertisements go everywhere; subscriptions towards the advertisements that they overlap.

    >>> AdvertisementForwarding().sends_subscription("book", "b2")
    False
    """

    floods_events: bool = False
    uses_advertisements: bool = True

    def sends_subscription(self, type: str | None, neighbour: str) -> bool:
        """Never without an overlapping advertisement."""
        return False

    def sends_advertisement(self, type: str | None, neighbour: str) -> bool:
        """Always."""
        return True
