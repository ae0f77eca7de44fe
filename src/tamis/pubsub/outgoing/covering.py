"""Covering: an entry need not be sent while another one, or several together, are true whenever it is.

Works for any Boolean expression. It may miss a covering, never invent one. Before a covering entry is
removed, the entries it hid are shown again.

Only few pairs are compared: an entry that covers another one matches every event of it, so those that may
cover an entry are found by matching one example event of it. Entries that it may cover are found by the
values of their example events for the attributes that it compares with `=`.
"""

import json
from typing import Any

from tamis import relate
from tamis._kernel import Event, Expression
from tamis.errors import ExpressionError
from tamis.pubsub.entry import Entry
from tamis.pubsub.matcher import Matcher, is_true
from tamis.pubsub.outgoing.contract import Change, Hide, Show

MOST_TOGETHER = 8
PLAIN = (str, bool, int, float)


class Covering:
    """Hides what is covered; with `by_sets`, also what several entries cover only together (subsumption).

    >>> import tamis
    >>> covering = Covering(by_sets=True)
    >>> for id, text in [("low", "x < 5"), ("high", "x >= 5"), ("some", "x BETWEEN 3 AND 7")]:
    ...     changes = covering.show(Entry(id, tamis.parse(text), None))
    >>> changes
    []
    >>> [change.entry.id for change in covering.hide("low") if isinstance(change, Show)]
    ['some']
    """

    def __init__(self, by_sets: bool = False) -> None:
        """Start with nothing."""
        self._by_sets = by_sets
        self._shown: dict[str, Entry] = {}
        self._hidden: dict[str, Entry] = {}
        self._hidden_by: dict[str, frozenset[str]] = {}
        self._hides: dict[str, set[str]] = {}
        self._examples: dict[str, Event | None] = {}
        self._by_value: dict[tuple[str, Any], set[str]] = {}
        self._without_example: set[str] = set()
        self._matcher = Matcher()

    @property
    def hidden(self) -> int:
        """How many entries are hidden now."""
        return len(self._hidden)

    def show(self, entry: Entry) -> list[Change]:
        """An entry comes; it may be hidden at once, and may hide others."""
        if entry.id in self._shown:
            changes = self._uncover(entry.id)
            changes += self._place(entry)
            if entry.id in self._hidden:
                changes.append(Hide(entry.id))
            return changes
        if entry.id in self._hidden:
            self._forget_hidden(entry.id)
        return self._place(entry)

    def hide(self, id: str) -> list[Change]:
        """An entry goes; what only it covered is shown again before."""
        if id in self._hidden:
            self._forget_hidden(id)
            return []
        return [*self._uncover(id), Hide(id)]

    def _place(self, entry: Entry) -> list[Change]:
        values = relate.example_of_overlap(entry.expression, entry.expression)
        example = None if values is None else Event(values)
        covering = self._covering(entry, example)
        if covering:
            self._hide_under(entry, covering)
            return []
        covered = [
            self._shown[id] for id in self._may_be_covered(entry) if self._covers(entry, self._shown[id])
        ]
        self._shown[entry.id] = entry
        self._examples[entry.id] = example
        if example is None:
            self._without_example.add(entry.id)
        for key in _keys(example):
            self._by_value.setdefault(key, set()).add(entry.id)
        self._matcher.put(entry.id, entry.expression, None)
        changes: list[Change] = [Show(entry)]
        for other in covered:
            under = self._hides.pop(other.id, set())
            self._unshow(other.id)
            self._hide_under(other, frozenset([entry.id]))
            for id in under:
                # Who covers a coverer covers what that one covered.
                by = (self._hidden_by[id] - {other.id}) | {entry.id}
                self._hidden_by[id] = by
                self._hides.setdefault(entry.id, set()).add(id)
            changes.append(Hide(other.id))
        return changes

    def _uncover(self, id: str) -> list[Change]:
        """Take a shown entry out, and find a new place for all that it hid."""
        self._unshow(id)
        changes: list[Change] = []
        for other in sorted(self._hides.pop(id, set())):
            entry = self._hidden[other]
            self._forget_hidden(other)
            changes += self._place(entry)
        return changes

    def _covering(self, entry: Entry, example: Event | None) -> frozenset[str]:
        candidates = self._shown if example is None else self._matcher.match(example, None)
        for id in candidates:
            if self._covers(self._shown[id], entry):
                return frozenset([id])
        return self._covering_set(entry) if self._by_sets else frozenset()

    def _may_be_covered(self, entry: Entry) -> list[str]:
        """Shown entries whose example has a value that this one asks for; all, if it asks for none."""
        found = set(self._without_example)
        for text in relate.access_predicates([entry.expression])[0]:
            wanted = _wanted_values(text)
            if wanted is None:
                return list(self._shown)
            for key in wanted:
                found |= self._by_value.get(key, set())
        return sorted(found)

    def _covering_set(self, entry: Entry) -> frozenset[str]:
        near = [
            other
            for other in self._shown.values()
            if other.type in (None, entry.type) and other.expression.overlaps(entry.expression)
        ][:MOST_TOGETHER]
        if len(near) < 2:
            return frozenset()
        together = near[0].expression
        for other in near[1:]:
            together = together | other.expression
        return frozenset(other.id for other in near) if together.covers(entry.expression) else frozenset()

    def _covers(self, covering: Entry, covered: Entry) -> bool:
        if covering.type not in (None, covered.type):
            return False
        example = self._examples.get(covered.id)
        if example is not None and not is_true(covering.expression, example):
            return False
        return covering.expression.covers(covered.expression)

    def _hide_under(self, entry: Entry, covering: frozenset[str]) -> None:
        self._hidden[entry.id] = entry
        self._hidden_by[entry.id] = covering
        for id in covering:
            self._hides.setdefault(id, set()).add(entry.id)

    def _forget_hidden(self, id: str) -> None:
        del self._hidden[id]
        for coverer in self._hidden_by.pop(id):
            if coverer in self._hides:
                self._hides[coverer].discard(id)

    def _unshow(self, id: str) -> None:
        del self._shown[id]
        example = self._examples.pop(id)
        self._without_example.discard(id)
        for key in _keys(example):
            self._by_value[key].discard(id)
            if not self._by_value[key]:
                del self._by_value[key]
        self._matcher.remove(id)


def _keys(example: Event | None) -> list[tuple[str, Any]]:
    """What an example has, as far as equality can ask for it."""
    values = {} if example is None else json.loads(example.to_json())
    return [(name, value) for name, value in values.items() if isinstance(value, PLAIN)]


def _wanted_values(text: str) -> list[tuple[str, Any]] | None:
    """What an event must have to satisfy a predicate; None if that is no list of plain values."""
    try:
        leaf = json.loads(Expression.parse(text).to_json())
    except ExpressionError:
        return None  # a predicate without a text form
    if not isinstance(leaf, dict) or "attribute" not in leaf:
        return None
    if leaf.get("operator") not in ("=", "IN") or leaf.get("negated"):
        return None
    operands = leaf["operands"]
    if not all(isinstance(value, PLAIN) for value in operands):
        return None
    return [(leaf["attribute"], value) for value in operands]
