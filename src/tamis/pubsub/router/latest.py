"""The last record of each key of a stream, found by key and by topic."""

from collections.abc import Iterator, Mapping

from tamis.pubsub.log.contract import Key, Record


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
        self._topics.setdefault(record.topic, {})[record.detail] = record

    def remove(self, key: Key) -> None:
        """A key has no record any more."""
        self._topics.get(key[0], {}).pop(key[1], None)
