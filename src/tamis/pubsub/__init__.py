"""Publish and subscribe over a network of brokers: an event goes exactly where someone wants it.

`Broker` is a state machine without I/O; `net` runs one on TCP or NATS, and `Client` talks to it. The package
`tamis-lab` runs many of them in virtual time, with faults (`tamis_lab.simulation`). See `docs/pubsub.md`.
"""

from tamis.pubsub.broker.machine import Broker
from tamis.pubsub.broker.options import Limits, Options, PostPruning, PrePruning
from tamis.pubsub.generalise.combined_pruning import Weights
from tamis.pubsub.net.client import Client, Gap, Notification, RefusedError

__all__ = [
    "Broker",
    "Client",
    "Gap",
    "Limits",
    "Notification",
    "Options",
    "PostPruning",
    "PrePruning",
    "RefusedError",
    "Weights",
]
