"""Publish and subscribe over a proven log: SQLite on one machine, NATS JetStream on many.

A *site* is one log; `connect` opens it. Publishers append events, routers match them with every subscription
and write deliveries, subscribers read their queues: each event once, in the order of its publisher. Several
sites exchange events by the routing decisions of Bittner (2008). See `docs/pubsub.md`.
"""

from tamis.pubsub.confirmation import Confirmation
from tamis.pubsub.log import (
    FencedError,
    ForbiddenError,
    LogError,
    LogFullError,
    LogUnavailableError,
    RolledBackError,
    StreamLostError,
    open_log,
)
from tamis.pubsub.publisher import Publisher
from tamis.pubsub.records import Grant, QueueLimits, RecordError
from tamis.pubsub.router.router import Router
from tamis.pubsub.site import Site, connect
from tamis.pubsub.subscriber import Delivered, Gap, RemovedError, Subscriber, TakenOverError

__all__ = [
    "Confirmation",
    "Delivered",
    "FencedError",
    "ForbiddenError",
    "Gap",
    "Grant",
    "LogError",
    "LogFullError",
    "LogUnavailableError",
    "Publisher",
    "QueueLimits",
    "RecordError",
    "RemovedError",
    "RolledBackError",
    "Router",
    "Site",
    "StreamLostError",
    "Subscriber",
    "TakenOverError",
    "connect",
    "open_log",
]
