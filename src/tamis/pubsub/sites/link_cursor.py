"""How far a link has taken over a neighbour's queue: the record, and what it says of what comes next."""

from dataclasses import dataclass, field

from tamis.pubsub.log.contract import Record, mark
from tamis.pubsub.records import ANY_LANE, Fields, write

REROUTE_LANE = "x.0"
"""Where events go that could not go their first way."""


@dataclass(frozen=True, slots=True)
class LinkCursor:
    """How far a neighbour's queue is taken over.

    >>> LinkCursor.read(LinkCursor(7, 2, "life", "mark").body()).part
    2
    """

    after: int = 0
    part: int = 0
    """How many events of a record behind it are taken."""
    life: str = ""
    mark: str = ""
    """A digest of the last record that was taken: another one there means that the log was rolled back."""
    time: int = 0
    """When that record was stored. In a log that was rolled back, older records were taken."""
    expected: dict[str, int] = field(default_factory=dict)
    """The next number of each lane of the queue: a higher one says that events were dropped there."""
    part_of: str = ""
    """A digest of the record that `part` is of. Releases that did not say meant the next one."""
    outdated: dict[str, int] = field(default_factory=dict)
    """Numbers of lanes that the neighbour has written down for a queue that was rolled back since."""

    def body(self) -> bytes:
        """The record."""
        position = {"after": self.after, "part": self.part}
        life = {"life": self.life, "mark": self.mark, "time": self.time}
        unusual = {"of": self.part_of, "outdated": self.outdated}
        return write({**position, **life, "expected": self.expected}, unusual)

    @classmethod
    def read(cls, body: bytes) -> "LinkCursor":
        """Read a record."""
        fields = Fields(body, "position of a link")
        return cls(
            fields.number("after"),
            fields.number("part", 0),
            fields.text("life", ""),
            fields.text("mark", ""),
            fields.number("time", 0),
            fields.counts("expected"),
            fields.text("of", ""),
            fields.counts("outdated"),
        )

    def taken_of(self, record: Record) -> int:
        """How many events of a record are taken.

        >>> record = Record(8, "q-=40b", "0.4", 0, b"{}")
        >>> [LinkCursor(7, 2, part_of=of).taken_of(record) for of in (mark(record), "another", "")]
        [2, 0, 2]
        """
        return self.part if not self.part_of or self.part_of == mark(record) else 0

    def missing(self, lane: str, first: int) -> range:
        """The deliveries that are missing before one.

        >>> LinkCursor(expected={"0.0": 3}).missing("0.0", 5), LinkCursor().missing("0.0", 5)
        (range(3, 5), range(5, 5))
        """
        expected = self.expected.get(lane, self.expected.get(ANY_LANE, 0))
        return range(expected or first, first)

    def counts_back(self, lane: str, first: int) -> bool:
        """Whether a lane has begun again: then its log is an older copy of itself that has grown.

        >>> LinkCursor(expected={"0.0": 3}).counts_back("0.0", 2)
        True
        """
        return 0 < first < self.expected.get(lane, 0) and lane != REROUTE_LANE
