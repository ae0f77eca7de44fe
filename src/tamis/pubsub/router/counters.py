"""Counters of a router, for metrics and status."""

from dataclasses import dataclass, fields


@dataclass
class Counters:
    """Counts since the router started.

    >>> Counters().events
    0
    """

    events: int = 0
    """Events that were routed."""
    deliveries: int = 0
    """Events that were put into queues, once for each."""
    dead: int = 0
    """Events that could not be processed."""
    match_seconds: float = 0.0
    leases_taken: int = 0
    leases_lost: int = 0
    rollbacks: int = 0
    """How often the log turned out to be an older copy of itself."""
    dropped: int = 0
    """Deliveries that were dropped because of limits."""
    forgotten: int = 0
    """Subscribers that were forgotten."""
    forwarded: int = 0
    """Events that came over links."""
    came: int = 0
    """Events from other sites that were for this one."""
    came_wanted: int = 0
    """Those of them that somebody here wants."""
    repeated: int = 0
    """Events that came over links and were known already."""
    missing: int = 0
    """Events that were dropped at neighbours before they were taken."""
    disbelieved: int = 0
    """Records about other sites that were not taken from neighbours."""
    trouble: str | None = None
    """Why nothing can be done at the moment."""

    def add(self, more: "Counters") -> None:
        """Count what was counted apart, such as what an append has written.

        >>> counters = Counters(events=2)
        >>> counters.add(Counters(events=1, dead=1))
        >>> counters.events, counters.dead
        (3, 1)
        """
        for each in fields(self):
            if isinstance(value := getattr(more, each.name), (int, float)):
                setattr(self, each.name, getattr(self, each.name) + value)
