"""The log that stores events, queues and subscriptions: one contract, two implementations.

`SqliteLog` serves the processes of one machine and needs no server; `NatsLog` is replicated, for anything
that outgrows one machine. `open_log` chooses by URL.
"""

from tamis.pubsub.log.contract import (
    EVENTS,
    MOST_ENTRIES,
    QUEUES,
    STATE,
    BusyError,
    Entry,
    FencedError,
    ForbiddenError,
    Log,
    LogError,
    LogFullError,
    LogUnavailableError,
    Record,
    RolledBackError,
    StreamLostError,
)
from tamis.pubsub.log.opening import open_log

__all__ = [
    "EVENTS",
    "MOST_ENTRIES",
    "QUEUES",
    "STATE",
    "BusyError",
    "Entry",
    "FencedError",
    "ForbiddenError",
    "Log",
    "LogError",
    "LogFullError",
    "LogUnavailableError",
    "Record",
    "RolledBackError",
    "StreamLostError",
    "open_log",
]
