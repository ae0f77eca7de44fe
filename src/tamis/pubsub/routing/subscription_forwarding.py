"""Subscription forwarding (Bittner 2008, section 2.4.2): every subscription goes everywhere."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SubscriptionForwarding:
    """An event goes to those neighbours that sent a subscription which it satisfies.

    >>> SubscriptionForwarding().sends_subscription("book", "b2")
    True
    """

    floods_events: bool = False
    uses_advertisements: bool = False

    def sends_subscription(self, type: str | None, neighbour: str) -> bool:
        """Always."""
        return True

    def sends_advertisement(self, type: str | None, neighbour: str) -> bool:
        """Never: nobody would use it."""
        return False
