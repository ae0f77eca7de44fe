"""What can happen to a broker: the arguments of `Broker.handle`.

Requests of clients carry a `request` number of the client's choice, which comes back in the `Reply`.
"""

from dataclasses import dataclass

from tamis_lab.brokers.messages import Frame


@dataclass(frozen=True, slots=True)
class Start:
    """The broker begins; the first input of every life."""


@dataclass(frozen=True, slots=True)
class FrameReceived:
    """A frame came in over the link to a neighbour."""

    neighbour: str
    frame: Frame


@dataclass(frozen=True, slots=True)
class LinkUp:
    """The link to a neighbour works again: a good moment to send what waits."""

    neighbour: str


@dataclass(frozen=True, slots=True)
class TimerFired:
    """A timer that the broker had set has come due."""

    name: str


@dataclass(frozen=True, slots=True)
class Attach:
    """A client is there and can be sent to. Notifications it has not acknowledged are delivered again."""

    client: str
    request: int = 0
    most_entries: int | None = None
    """How many subscriptions, and how many advertisements, the client may have."""


@dataclass(frozen=True, slots=True)
class Detach:
    """A client is gone for now; its subscriptions stay and its notifications wait."""

    client: str


@dataclass(frozen=True, slots=True)
class Subscribe:
    """A client wants the events that satisfy an expression, of one type or of any."""

    client: str
    request: int
    id: str
    expression: str
    type: str | None = None
    priority: float = 0.0


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """A client no longer wants them."""

    client: str
    request: int
    id: str


@dataclass(frozen=True, slots=True)
class AdvertiseEvents:
    """A client says which events it may publish."""

    client: str
    request: int
    id: str
    expression: str
    type: str | None = None


@dataclass(frozen=True, slots=True)
class WithdrawAdvertisement:
    """A client takes an advertisement back."""

    client: str
    request: int
    id: str


@dataclass(frozen=True, slots=True)
class Publish:
    """A client publishes an event (JSON text). `number` grows; one that was seen is not repeated."""

    client: str
    request: int
    number: int
    event: str
    type: str | None = None


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """A client has dealt with all notifications up to this number."""

    client: str
    number: int


@dataclass(frozen=True, slots=True)
class Prune:
    """Set how far the entries of the event routing tables are pruned: 0 not at all, 1 as far as possible."""

    share: float
    replace: float | None = None
    """The share of comparisons that then give way to wider ones; None: as configured."""


@dataclass(frozen=True, slots=True)
class PruneAdvertisements:
    """Do this many prunings on the entries of the subscription routing table."""

    steps: int


Input = (
    Start
    | FrameReceived
    | LinkUp
    | TimerFired
    | Attach
    | Detach
    | Subscribe
    | Unsubscribe
    | AdvertiseEvents
    | WithdrawAdvertisement
    | Publish
    | Acknowledge
    | Prune
    | PruneAdvertisements
)
