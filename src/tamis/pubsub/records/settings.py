"""What is fixed with a site's log."""

from dataclasses import dataclass

from tamis.pubsub.records.fields import Fields, is_number, write


@dataclass(frozen=True, slots=True)
class Settings:
    """What is fixed with the log.

    >>> Settings.read(Settings("paris", 8).body()).partitions
    8
    """

    site: str
    partitions: int

    def body(self) -> bytes:
        """The record."""
        return write({"site": self.site, "partitions": self.partitions})

    @classmethod
    def read(cls, body: bytes) -> "Settings":
        """Read a record."""
        fields = Fields(body, "site's settings")
        return cls(
            fields.text("site"),
            fields.take("partitions", lambda value: is_number(value) and 1 <= value <= 256),
        )
