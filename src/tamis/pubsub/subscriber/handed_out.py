"""What a client has handed out, for the time after its log was rolled back.

A log that was rolled back may route again what it still has, into other records of the queue. A client that
stayed connected knows these events by their number and time.
"""

from tamis.pubsub import keys
from tamis.pubsub.log.contract import Record

MOST_ROLLBACKS = 16


class HandedOut:
    """The last event of each partition that the caller has got, now and at each rollback.

    >>> handed = HandedOut()
    >>> record = Record(3, "q-ann", "0.4", 500, b"")
    >>> handed.note(record, 7, 450)
    >>> handed.was_before("0.4", 7, 450)
    False
    >>> handed.roll_back()
    >>> handed.was_before("0.4", 7, 450), handed.was_before("0.4", 7, 900)
    (True, False)
    """

    def __init__(self) -> None:
        """Nothing yet."""
        self._last: dict[str, tuple[int, int]] = {}
        """Number and time of the last event, by partition."""
        self._before: list[dict[str, tuple[int, int]]] = []
        """The same at each rollback."""

    def note(self, record: Record, number: int, time: int) -> None:
        """The caller has got an event of a record of the queue."""
        self._last[keys.partition_of_lane(record.detail)] = number, time

    def roll_back(self) -> None:
        """The log was rolled back."""
        self._before = [*self._before, dict(self._last)][-MOST_ROLLBACKS:]

    def was_before(self, lane: str, number: int, time: int) -> bool:
        """Whether an event was handed out before a rollback."""
        partition = keys.partition_of_lane(lane)
        return any(
            number <= before[partition][0] and time <= before[partition][1]
            for before in self._before
            if partition in before
        )
