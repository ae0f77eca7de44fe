"""Merging: several entries are sent as one that is true whenever any of them is.

A *perfect* merger is true for no other event; two entries are merged only if the result is no larger than the
larger of the two. An *imperfect* merger is the OR, generalised by `prunings` prunings (Bittner 2008, section
6.3.5); it is used if it is smaller than both together. Only entries over the same attributes are considered.
"""

from dataclasses import dataclass, field
from typing import Literal

from tamis._kernel import Expression
from tamis.pubsub.entry import Entry
from tamis.pubsub.outgoing.contract import Change, Hide, Show

Key = tuple[str | None, tuple[str, ...]]
MOST_COMPARED = 32


@dataclass
class _Group:
    id: str
    members: dict[str, Entry] = field(default_factory=dict)
    merged: Entry | None = None


class Merging:
    """Merges entries as they come, and takes mergers apart when a member goes.

    >>> import tamis
    >>> merging = Merging("perfect", name="b1")
    >>> _ = merging.show(Entry("s1", tamis.parse("x = 1 AND y > 2"), None))
    >>> [change.entry.expression for change in merging.show(Entry("s2", tamis.parse("x = 3 AND y > 2"), None))
    ...  if isinstance(change, Show)]
    [tamis.parse('x IN (1, 3) AND y > 2')]
    """

    def __init__(self, kind: Literal["perfect", "imperfect"], name: str, prunings: int = 1) -> None:
        """`name` makes the ids of mergers unique among brokers."""
        self._prunings = prunings if kind == "imperfect" else 0
        self._name = name
        self._by_key: dict[Key, dict[str, _Group]] = {}
        self._group_of: dict[str, _Group] = {}
        self._made = 0

    def show(self, entry: Entry) -> list[Change]:
        """An entry comes: it joins a group, or makes one of its own."""
        if entry.id not in self._group_of:
            return self._join(entry)
        changes, stale = self._leave(entry.id)
        changes += self._join(entry)
        # The old form goes last, so that nothing is missed in between.
        return changes if stale == _shown(self._group_of[entry.id]).id else [*changes, Hide(stale)]

    def hide(self, id: str) -> list[Change]:
        """An entry goes: its group is merged again from the rest."""
        changes, stale = self._leave(id)
        return [*changes, Hide(stale)]

    def _join(self, entry: Entry) -> list[Change]:
        key = _key(entry)
        for group in list(self._by_key.get(key, {}).values())[-MOST_COMPARED:]:
            before = _shown(group)
            merged = self._merge(before, entry)
            if merged is not None:
                group.members[entry.id] = entry
                group.merged = merged
                self._group_of[entry.id] = group
                return [Show(merged), Hide(before.id)]
        group = _Group(entry.id, {entry.id: entry})
        self._by_key.setdefault(key, {})[group.id] = group
        self._group_of[entry.id] = group
        return [Show(entry)]

    def _leave(self, id: str) -> tuple[list[Change], str]:
        """Take a member out and place the others again; returns also the id of what is to be hidden."""
        group = self._group_of.pop(id)
        stale = _shown(group).id
        gone = group.members.pop(id)
        del self._by_key[_key(gone)][group.id]
        for member in group.members:
            del self._group_of[member]
        changes = [change for member in group.members.values() for change in self._join(member)]
        return changes, stale

    def _merge(self, a: Entry, b: Entry) -> Entry | None:
        expression: Expression = a.expression.merge(b.expression, prunings=self._prunings)
        separate = a.expression.predicates + b.expression.predicates
        larger = max(a.expression.predicates, b.expression.predicates)
        if expression.predicates > (separate - 1 if self._prunings else larger):
            return None
        self._made += 1
        return Entry(f"{self._name}~{self._made}", expression, a.type, min(a.hops, b.hops))


def _shown(group: _Group) -> Entry:
    return group.merged or next(iter(group.members.values()))


def _key(entry: Entry) -> Key:
    return entry.type, tuple(sorted(entry.expression.attributes))
