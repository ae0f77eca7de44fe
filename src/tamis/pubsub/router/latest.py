"""The last record of each key of a stream, found by key and by topic."""

from collections.abc import Iterator, Mapping

from tamis.pubsub.log.contract import Key, Record

OVERHEAD = 300
"""What a record takes beside its text."""


class Latest(Mapping[Key, Record]):
    """The last record of each key. Asking for one topic costs what it holds, however many others have.

    >>> latest = Latest()
    >>> latest.put(Record(1, "links", "rome", 0, b"{}"))
    >>> list(latest.of("links")), list(latest), latest.get(("links", "bonn")) is None
    (['rome'], [('links', 'rome')], True)
    """

    def __init__(self) -> None:
        """Start with none."""
        self._topics: dict[str, dict[str, Record]] = {}
        self._sizes: dict[str, int] = {}

    def __getitem__(self, key: Key) -> Record:
        """The last record of a key."""
        return self._topics[key[0]][key[1]]

    def __iter__(self) -> Iterator[Key]:
        """All keys."""
        return ((topic, detail) for topic, found in self._topics.items() for detail in found)

    def __len__(self) -> int:
        """How many keys."""
        return sum(map(len, self._topics.values()))

    def of(self, topic: str) -> Mapping[str, Record]:
        """The last records of a topic, by their detail."""
        return self._topics.get(topic, {})

    def put(self, record: Record) -> None:
        """A record that is later than the one of its key."""
        found = self._topics.setdefault(record.topic, {})
        before = found.get(record.detail)
        more = self.cost(record) - (0 if before is None else self.cost(before))
        self._sizes[record.topic] = self._sizes.get(record.topic, 0) + more
        found[record.detail] = record

    def remove(self, key: Key) -> None:
        """A key has no record any more."""
        before = self._topics.get(key[0], {}).pop(key[1], None)
        if before is not None:
            self._sizes[key[0]] -= self.cost(before)

    def size(self, topic: str) -> int:
        """About how many bytes the records of a topic take.

        >>> latest = Latest()
        >>> latest.put(Record(1, "links", "rome", 0, b"{}"))
        >>> latest.put(Record(2, "links", "rome", 0, b"{...}"))
        >>> latest.size("links") - OVERHEAD
        9
        """
        return self._sizes.get(topic, 0)

    @staticmethod
    def cost(record: Record) -> int:
        """About how many bytes a record takes."""
        return OVERHEAD + len(record.detail) + len(record.body)
