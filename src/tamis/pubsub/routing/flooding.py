"""Event flooding (Bittner 2008, section 2.4.1): every event goes everywhere, nothing else goes anywhere."""

from dataclasses import dataclass


@dataclass(frozen=True)
class EventFlooding:
    """No routing tables at all; each broker filters every event for its own clients.

    >>> EventFlooding().floods_events
    True
    """

    floods_events: bool = True
    uses_advertisements: bool = False

    def sends_subscription(self, type: str | None, neighbour: str) -> bool:
        """Never."""
        return False

    def sends_advertisement(self, type: str | None, neighbour: str) -> bool:
        """Never."""
        return False
