"""What is stored in a log, with its version; and the only place that reads and writes it."""

from tamis.pubsub.records.drops import Drop, Drops, read_drops
from tamis.pubsub.records.events import (
    DEFAULT_HOPS,
    EventHeader,
    Target,
    event_body,
    is_target_list,
    split_event,
)
from tamis.pubsub.records.fields import (
    Fields,
    RecordError,
    is_number,
    is_seconds,
    is_text_list,
    number_of,
    write,
)
from tamis.pubsub.records.queues import (
    LINK_BYTES,
    LINK_KEEP_SECONDS,
    Cursor,
    DeadLetter,
    Delivery,
    QueueLimits,
    Reading,
    plain_delivery,
)
from tamis.pubsub.records.settings import Settings
from tamis.pubsub.records.subscriptions import (
    DEFAULT_PRIORITY,
    HIGHEST_PRIORITY,
    Advertisement,
    Grant,
    Subscription,
    is_priority,
    plain_subscription,
)

__all__ = [
    "DEFAULT_HOPS",
    "DEFAULT_PRIORITY",
    "HIGHEST_PRIORITY",
    "LINK_BYTES",
    "LINK_KEEP_SECONDS",
    "Advertisement",
    "Cursor",
    "DeadLetter",
    "Delivery",
    "Drop",
    "Drops",
    "EventHeader",
    "Fields",
    "Grant",
    "QueueLimits",
    "Reading",
    "RecordError",
    "Settings",
    "Subscription",
    "Target",
    "event_body",
    "is_number",
    "is_priority",
    "is_seconds",
    "is_target_list",
    "is_text_list",
    "number_of",
    "plain_delivery",
    "plain_subscription",
    "read_drops",
    "split_event",
    "write",
]
