"""Summaries: many entries are sent as one, which has for each attribute the values that any entry wants.

After the idea of Triantafillou and Economides (2004). Entries that restrict the same attributes make a group;
its summary is an AND over those attributes of the union of what the entries allow there. An event that
satisfies an entry satisfies its summary. Other events may, too, because the summary does not keep which value
of one attribute goes with which of another. Unlike in the original, any Boolean expression can be summarised:
its condition on one attribute is the expression with the predicates on all other attributes assumed to be
true.

Numbers are kept as ranges, of which the nearest are joined when there are too many; strings and booleans as
sets, which become `IS NOT NULL` when they are too large. An entry that restricts no single attribute, such as
`x = 1 OR y = 2`, is sent as it is.
"""

import math
from dataclasses import dataclass, field

from tamis.pubsub.entry import Entry
from tamis.pubsub.generalise import trees
from tamis.pubsub.generalise.trees import Tree
from tamis.pubsub.outgoing.contract import Change, Hide, Show

Range = tuple[float, bool, float, bool]
"""From, whether it is included, to, whether it is included."""
Key = tuple[str | None, tuple[str, ...]]


@dataclass(frozen=True)
class Allowed:
    """Values that an attribute may have; `anything` but null if `is_any`."""

    ranges: tuple[Range, ...] = ()
    others: frozenset[str | bool] = frozenset()
    is_any: bool = False

    def __or__(self, other: "Allowed") -> "Allowed":
        """What one of the two allows."""
        return Allowed(
            self.ranges + other.ranges, self.others | other.others, is_any=self.is_any or other.is_any
        )

    def at_most(self, most: int) -> "Allowed":
        """The same or more, in at most so many ranges and values.

        >>> Allowed(ranges=((1, True, 2, True), (8, True, 9, True), (2, True, 3, False))).at_most(2).ranges
        ((1, True, 3, False), (8, True, 9, True))
        """
        if self.is_any or len(self.others) > most:
            return Allowed(is_any=True)
        joined: list[Range] = []
        for one in sorted(self.ranges, key=lambda one: (one[0], not one[1])):
            if joined and _touch(joined[-1], one):
                joined[-1] = _span(joined[-1], one)
            else:
                joined.append(one)
        while len(joined) > most:
            place = min(range(1, len(joined)), key=lambda at: joined[at][0] - joined[at - 1][2])
            joined[place - 1 : place + 1] = [_span(joined[place - 1], joined[place])]
        return Allowed(tuple(joined), self.others)

    def tree(self, attribute: str) -> Tree:
        """The predicates that say so."""
        if self.is_any:
            return {"attribute": attribute, "operator": "IS NULL", "negated": True}
        parts = [_range_tree(attribute, one) for one in self.ranges]
        for kind in (str, bool):
            values = sorted(value for value in self.others if type(value) is kind)
            if values:
                operator = "=" if len(values) == 1 else "IN"
                parts.append({"attribute": attribute, "operator": operator, "operands": values})
        return trees.joined("or", parts)


@dataclass
class _Group:
    id: str
    members: dict[str, dict[str, Allowed]] = field(default_factory=dict)
    hops: dict[str, int] = field(default_factory=dict)
    shown: Entry | None = None


class Summaries:
    """Keeps one summary for each group of entries.

    >>> import tamis
    >>> summaries = Summaries("b1", most=4)
    >>> _ = summaries.show(Entry("s1", tamis.parse("x BETWEEN 1 AND 3 AND y = 'a'"), None))
    >>> [change] = summaries.show(Entry("s2", tamis.parse("x BETWEEN 2 AND 8 AND y = 'b'"), None))
    >>> str(change.entry.expression)
    "x BETWEEN 1 AND 8 AND y IN ('a', 'b')"
    """

    def __init__(self, name: str, most: int) -> None:
        """`name` makes ids unique among brokers; `most` ranges or values are kept of each attribute."""
        self._name = name
        self._most = most
        self._groups: dict[Key, _Group] = {}
        self._group_of: dict[str, Key | None] = {}
        self._made = 0

    def show(self, entry: Entry) -> list[Change]:
        """An entry comes: its group's summary may grow."""
        allowed = _summary(trees.tree_of(entry.expression))
        key = (entry.type, tuple(sorted(allowed))) if allowed else None
        before = self._group_of.get(entry.id, key)
        self._group_of[entry.id] = key
        if key is None:
            changes: list[Change] = [Show(entry)]
        else:
            group = self._groups.setdefault(key, self._new_group())
            group.members[entry.id] = allowed
            group.hops[entry.id] = entry.hops
            changes = self._update(key)
        if before != key:
            changes += self._leave(entry.id, before)
        return changes

    def hide(self, id: str) -> list[Change]:
        """An entry goes: its group's summary may shrink."""
        return self._leave(id, self._group_of.pop(id))

    def _leave(self, id: str, key: Key | None) -> list[Change]:
        if key is None:
            return [Hide(id)]
        group = self._groups[key]
        del group.members[id]
        del group.hops[id]
        if group.members:
            return self._update(key)
        del self._groups[key]
        return [Hide(group.id)]

    def _update(self, key: Key) -> list[Change]:
        group, (type, attributes) = self._groups[key], key
        parts = []
        for attribute in attributes:
            together = Allowed()
            for member in group.members.values():
                together |= member[attribute]
            parts.append(together.at_most(self._most).tree(attribute))
        expression = trees.expression_of(trees.flat(trees.joined("and", parts)))
        summary = Entry(group.id, expression, type, min(group.hops.values()))
        if summary == group.shown:
            return []
        group.shown = summary
        return [Show(summary)]

    def _new_group(self) -> _Group:
        self._made += 1
        return _Group(f"{self._name}#{self._made}")


def _summary(tree: Tree) -> dict[str, Allowed]:
    """What an expression allows each attribute that it restricts."""
    kind, children = trees.joint(tree)
    if kind is None:
        return _of_predicate(tree)
    parts = [_summary(child) for child in children]
    if kind == "or":
        common = set(parts[0]).intersection(*parts[1:])
        together = {attribute: Allowed() for attribute in common}
        for part in parts:
            for attribute in common:
                together[attribute] |= part[attribute]
        return together
    found: dict[str, Allowed] = {}
    for part in parts:
        for attribute, allowed in part.items():
            # Either restriction holds; the one that is not just "anything" says more.
            if attribute not in found or found[attribute].is_any:
                found[attribute] = allowed
            else:
                found[attribute] = _both(found[attribute], allowed)
    return found


def _both(a: Allowed, b: Allowed) -> Allowed:
    """What both allow, for two single ranges; else what the first does, which is more."""
    if len(a.ranges) == len(b.ranges) == 1 and not (a.others or b.others or b.is_any):
        (low_a, low_in_a, high_a, high_in_a), (low_b, low_in_b, high_b, high_in_b) = a.ranges[0], b.ranges[0]
        low, low_out = max((low_a, not low_in_a), (low_b, not low_in_b))
        high, high_in = min((high_a, high_in_a), (high_b, high_in_b))
        if low < high:
            return Allowed(((low, not low_out, high, high_in),))
    return a


def _of_predicate(leaf: Tree) -> dict[str, Allowed]:
    if not isinstance(leaf, dict) or "attribute" not in leaf:
        return {}
    attribute, operator, operands = leaf["attribute"], leaf["operator"], leaf.get("operands", [])
    if operator in ("IS NULL", "<=>"):
        return {}  # can be true of an absent attribute
    if leaf.get("negated") or (operator == "IN" and not operands):
        return {attribute: Allowed(is_any=True)}  # `IN ()` allows nothing, which no predicate of a tree says
    if operator == "truth":
        return {attribute: Allowed(others=frozenset([True]))}
    if operator in ("=", "IN") and all(isinstance(value, (str, bool)) for value in operands):
        return {attribute: Allowed(others=frozenset(operands))}
    if all(_is_plain(value) for value in operands):
        match operator:
            case "=" | "IN":
                return {attribute: Allowed(tuple((value, True, value, True) for value in operands))}
            case "<" | "<=":
                return {attribute: Allowed(((-math.inf, False, operands[0], operator == "<="),))}
            case ">" | ">=":
                return {attribute: Allowed(((operands[0], operator == ">=", math.inf, False),))}
            case "BETWEEN":
                return {attribute: Allowed(((operands[0], True, operands[1], True),))}
    return {attribute: Allowed(is_any=True)}


def _is_plain(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _touch(a: Range, b: Range) -> bool:
    """Whether a range that begins no earlier than another leaves nothing between the two."""
    return b[0] < a[2] or (b[0] == a[2] and (b[1] or a[3]))


def _span(a: Range, b: Range) -> Range:
    (high, high_in) = max((a[2], a[3]), (b[2], b[3]))
    return a[0], a[1], high, high_in


def _range_tree(attribute: str, one: Range) -> Tree:
    low, low_in, high, high_in = one
    if low == high:
        return {"attribute": attribute, "operator": "=", "operands": [low]}
    if low_in and high_in and math.isfinite(low) and math.isfinite(high):
        return {"attribute": attribute, "operator": "BETWEEN", "operands": [low, high]}
    parts = []
    if math.isfinite(low):
        parts.append({"attribute": attribute, "operator": ">=" if low_in else ">", "operands": [low]})
    if math.isfinite(high):
        parts.append({"attribute": attribute, "operator": "<=" if high_in else "<", "operands": [high]})
    # Every number but NaN is in the range without ends, and NaN satisfies no `<`: anything covers it.
    return trees.joined("and", parts) if parts else Allowed(is_any=True).tree(attribute)
