"""What a site wants, as it tells others: entries that are true for every event that someone there wants."""

from dataclasses import dataclass
from typing import Any

import tamis
from tamis.errors import TamisError
from tamis.pubsub.records import Fields, RecordError, write


@dataclass(frozen=True, slots=True)
class InterestEntry:
    """One entry of a site's interest; a later number replaces an earlier one.

    >>> InterestEntry.read_or_everything(b"garbage").expression
    'TRUE'
    """

    number: int
    expression: str | None
    """None: the entry is gone."""

    def body(self) -> bytes:
        """The record."""
        fields: dict[str, Any] = {"k": self.number, "expression": self.expression}
        return write(fields)

    @classmethod
    def read(cls, body: bytes) -> "InterestEntry":
        """Read a record."""
        fields = Fields(body, "interest")
        return cls(fields.number("k"), fields.optional("expression", lambda value: isinstance(value, str)))

    @classmethod
    def read_or_everything(cls, body: bytes) -> "InterestEntry":
        """Read a record; one that cannot be read or parsed here wants everything."""
        try:
            entry = cls.read(body)
            if entry.expression is not None:
                tamis.parse(entry.expression)
        except (RecordError, TamisError):
            return cls(0, "TRUE")
        return entry
