"""Subscribing, and reading a queue: each event once, in the order of its publisher, with every gap visible.

A queue is read from where it was last acknowledged. What is missing in between (dropped because of a limit,
or lost with a log that was rolled back) is a `Gap` in its place.
"""

from tamis.pubsub.subscriber.items import Delivered, Gap, RemovedError, TakenOverError
from tamis.pubsub.subscriber.removing import remove_subscriber, remove_subscriptions
from tamis.pubsub.subscriber.subscriber import Subscriber

__all__ = [
    "Delivered",
    "Gap",
    "RemovedError",
    "Subscriber",
    "TakenOverError",
    "remove_subscriber",
    "remove_subscriptions",
]
