"""The network of brokers of Bittner (2008): a state machine without I/O, which the simulator runs.

It reproduces the thesis. The routing decisions (`tamis.pubsub.outgoing`, `generalise`, `routing`) are those
of the library, which routers of real sites also use; durability and delivery work differently there.
"""

from tamis.pubsub.generalise.combined_pruning import Weights
from tamis_lab.brokers.machine import Broker
from tamis_lab.brokers.options import Limits, Options, PostPruning, PrePruning

__all__ = ["Broker", "Limits", "Options", "PostPruning", "PrePruning", "Weights"]
