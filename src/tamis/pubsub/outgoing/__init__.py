"""What a neighbour is told about the subscriptions on this side: a pipeline of stages, one file each.

Each stage takes additions and removals of entries and shows fewer, or more general, entries to the next; what
the last one shows is sent. `contract` states the law of every stage.
"""

from tamis.pubsub.outgoing.contract import Change, Hide, Show, Stage
from tamis.pubsub.outgoing.covering import Covering
from tamis.pubsub.outgoing.merging import Merging
from tamis.pubsub.outgoing.pipeline import Outgoing
from tamis.pubsub.outgoing.pre_pruning import PrePruner
from tamis.pubsub.outgoing.summaries import Summaries

__all__ = ["Change", "Covering", "Hide", "Merging", "Outgoing", "PrePruner", "Show", "Stage", "Summaries"]
