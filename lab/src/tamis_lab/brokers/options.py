"""How a broker is set up: the routing algorithm, the optimisations, and the limits."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tamis.pubsub.generalise.combined_pruning import Weights
from tamis.pubsub.routing import Routing, SubscriptionForwarding
from tamis.relate import Measure


@dataclass(frozen=True)
class PrePruning:
    """Generalise entries before they are sent, so that the neighbour stores the small form.

    Neighbours differ: one is a small machine or behind a thin line, another has room for everything.

    >>> setting = PrePruning(4, neighbours={"b2": 1, "b3": None})
    >>> [setting.most(neighbour) for neighbour in ("b2", "b3", "b4")]
    [1, None, 4]
    """

    predicates: int | None
    """At most this many in an entry, where pruning can get so far; None: entries are sent as they are."""
    measure: Measure = "accuracy"
    neighbours: Mapping[str, int | None] = field(default_factory=dict)
    """What holds for these neighbours instead."""

    def __post_init__(self) -> None:
        """Refuse a number that no entry can get down to."""
        for most in (self.predicates, *self.neighbours.values()):
            if most is not None and most < 1:
                raise ValueError(f"an entry cannot be pruned to {most} predicates; 1 is the fewest")

    def most(self, neighbour: str) -> int | None:
        """How many predicates an entry may have that is sent there."""
        return self.neighbours.get(neighbour, self.predicates)


@dataclass(frozen=True)
class PostPruning:
    """Generalise the entries of the event routing tables.

    `cut_off` is the share of all possible prunings to do, from 0 to 1; "auto" lets the broker find it from
    measured filter time and forwarded traffic; None leaves it to `Prune` inputs.
    """

    measure: Measure | Literal["combined"] = "accuracy-occurrence"
    execution: Literal["strict", "restricted"] = "strict"
    cut_off: float | Literal["auto"] | None = None
    weights: Weights = field(default_factory=Weights)
    """How much each criterion counts, for the measure "combined"."""
    replace: float = 0.0
    """The share of comparisons that give way to wider ones in use, of those that can; after pruning."""
    window: int = 500
    """Events between two decisions of the automatic cut-off, and between two bulk prunings."""


@dataclass(frozen=True)
class Limits:
    """How much a broker keeps, so that its memory stays bounded."""

    link_events: int = 10_000
    """Events waiting for one neighbour; beyond, what must go there is refused."""
    client_notifications: int = 1_000
    """Notifications waiting for one client; beyond, it gets a gap."""
    shed_from: int = 50_000
    """Notifications waiting for all clients from which on low priorities are shed."""
    shed_all: int = 100_000
    """Notifications waiting for all clients at which only the highest priority is served."""


@dataclass(frozen=True)
class Options:
    """Everything that can be chosen.

    >>> Options(covering=True).merging
    'off'
    """

    routing: Routing = field(default_factory=SubscriptionForwarding)
    algorithm: str = "auto"
    """How events are filtered: one of `tamis.ALGORITHMS`."""
    shortcut: bool = True
    """Stop at the first match per neighbour."""
    covering: bool = False
    subsumption: bool = False
    """Covering by several entries together; needs `covering`."""
    merging: Literal["off", "perfect", "imperfect"] = "off"
    merge_prunings: int = 1
    summaries: int | None = None
    """Send which values any entry over the same attributes wants: at most this many of each."""
    pre_pruning: PrePruning | None = None
    post_pruning: PostPruning | None = None
    advertisement_covering: bool = False
    """Do not send an advertisement that another one covers."""
    overlap: Literal["exact", "pairs"] = "exact"
    """How subscriptions and advertisements are compared: decided, or by the published test on pairs."""
    nonconforming: Literal["refuse", "count"] = "refuse"
    """What to do with an event that its publisher did not advertise; if counted, it goes everywhere."""
    types: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    resend_after: float = 1.0
    """Seconds until an unacknowledged frame is sent again."""
    sample: int = 1_000
    """Events remembered to estimate how often predicates are true."""
