"""The stages for one neighbour in sequence, and what it is told in the end."""

from collections.abc import Iterator, Sequence

from tamis.pubsub.entry import Entry
from tamis.pubsub.outgoing.contract import Change, Hide, Show, Stage


class Outgoing:
    """What a neighbour should know, kept through all changes.

    >>> import tamis
    >>> from tamis.pubsub.outgoing.covering import Covering
    >>> outgoing = Outgoing([Covering()])
    >>> _ = outgoing.show(Entry("narrow", tamis.parse("x > 5"), None))
    >>> outgoing.show(Entry("wide", tamis.parse("x > 1"), None))
    [Show(entry=Entry(id='wide', ...)), Hide(id='narrow')]
    >>> list(outgoing.shown)
    ['wide']
    """

    def __init__(self, stages: Sequence[Stage] = ()) -> None:
        """Take the stages, first to last."""
        self._stages = list(stages)
        self._given: set[str] = set()
        self.shown: dict[str, Entry] = {}
        """What the neighbour should know, by id."""

    def show(self, entry: Entry) -> list[Change]:
        """An entry comes or is replaced; returns what to tell the neighbour."""
        self._given.add(entry.id)
        return self._run([Show(entry)])

    def hide(self, id: str) -> list[Change]:
        """An entry goes; returns what to tell the neighbour. Unknown ids are no change."""
        if id not in self._given:
            return []
        self._given.remove(id)
        return self._run([Hide(id)])

    def __contains__(self, id: object) -> bool:
        """Whether an entry was given, shown or not."""
        return id in self._given

    def __iter__(self) -> Iterator[str]:
        """The ids of the entries that were given."""
        return iter(list(self._given))

    def _run(self, changes: list[Change]) -> list[Change]:
        for stage in self._stages:
            changes = [made for change in changes for made in _through(stage, change)]
        for change in changes:
            if isinstance(change, Show):
                self.shown[change.entry.id] = change.entry
            else:
                self.shown.pop(change.id, None)
        return changes


def _through(stage: Stage, change: Change) -> list[Change]:
    return stage.show(change.entry) if isinstance(change, Show) else stage.hide(change.id)
