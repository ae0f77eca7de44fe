"""A map that is rebuilt from its changes: what the stores of both transports have in common."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

COMPACT_FROM = 10_000
"""Fewer records than this are not worth writing anew."""
CHUNK = 1_000


class Replay:
    """The values after all changes so far, and how many records they took.

    >>> replay = Replay()
    >>> replay.apply({"epoch": 1, "gone": 2})
    >>> replay.apply({"gone": None})
    >>> replay.values, replay.records
    ({'epoch': 1}, 2)
    """

    def __init__(self) -> None:
        """Start with nothing."""
        self.values: dict[str, Any] = {}
        self.records = 0

    def apply(self, changes: Mapping[str, Any]) -> None:
        """Take one record into account; a value of None removes its key."""
        self.records += 1
        for key, value in changes.items():
            if value is None:
                self.values.pop(key, None)
            else:
                self.values[key] = value

    @property
    def is_mostly_outdated(self) -> bool:
        """Whether far fewer records would say the same."""
        return self.records > COMPACT_FROM and self.records > 4 * len(self.values)

    def chunks(self) -> Iterator[dict[str, Any]]:
        """All values, as few large records. They may be added to those from before: nothing changes."""
        items = iter(self.values.items())
        while chunk := dict(islice(items, CHUNK)):
            yield chunk
