"""What does a neighbour hear of the subscriptions on this side? A row of stages, one file each.

Each stage takes entries that come and go and shows fewer, or more general, ones to the next; what the last
one shows is sent. See `contract` for what every stage keeps.
"""

from tamis.pubsub.outgoing.contract import Change, Hide, Show, Stage
from tamis.pubsub.outgoing.covering import Covering
from tamis.pubsub.outgoing.merging import Merging
from tamis.pubsub.outgoing.pipeline import Outgoing
from tamis.pubsub.outgoing.pre_pruning import PrePruner
from tamis.pubsub.outgoing.summaries import Summaries

__all__ = ["Change", "Covering", "Hide", "Merging", "Outgoing", "PrePruner", "Show", "Stage", "Summaries"]
