"""Publish and subscribe over a network of brokers: an event goes exactly where someone wants it.

`Broker` is a state machine without I/O (see `broker`).
"""

from tamis.pubsub.broker import Broker
from tamis.pubsub.options import Limits, Options, PostPruning

__all__ = ["Broker", "Limits", "Options", "PostPruning"]
