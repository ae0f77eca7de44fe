"""The counters of a broker, for experiments, metrics and debugging."""

from dataclasses import dataclass, fields


@dataclass
class Counters:
    """Running totals since the broker started.

    >>> counters = Counters()
    >>> counters.filtered += 1
    >>> counters.as_dict()["filtered"]
    1
    """

    published: int = 0
    """Events accepted from clients."""
    filtered: int = 0
    """Events matched here, published or forwarded to here."""
    forwarded: int = 0
    """Events put on links, one per link."""
    received: int = 0
    """Events that came over links."""
    needless: int = 0
    """Events that came over a link and went nowhere: the price of generalised routing entries."""
    notified: int = 0
    """Notifications to clients."""
    nonconforming: int = 0
    """Publications that conform to none of their publisher's advertisements."""
    refused: int = 0
    """Publications refused, for whatever reason."""
    repeated: int = 0
    """Publications and forwarded events that had been seen before."""
    shed: int = 0
    """Notifications not given to low-priority subscriptions under overload."""
    gaps: int = 0
    """Notifications dropped because their client's buffer was full."""
    held_back: int = 0
    """Events of neighbours not taken because a link they must go on to is full."""
    subscriptions_sent: int = 0
    """Register and Deregister messages sent."""
    advertisements_sent: int = 0
    """Advertise and Withdraw messages sent."""
    filter_seconds: float = 0.0
    """Time spent matching, by the stopwatch the broker was given."""
    overlap_checks: int = 0
    """Questions which subscriptions overlap an advertisement, or which advertisements a subscription."""
    prunings: int = 0
    """Pruning operations done on routing entries."""

    def as_dict(self) -> dict[str, float]:
        """All counters by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}
