"""Which predicates, true or false together, make an expression true."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any, Literal, NamedTuple

Goal = Literal["true", "false", "not true", "not false", "unknown", "known"]

_OPPOSITE: dict[Goal, Goal] = {
    "true": "false",
    "false": "true",
    "not true": "not false",
    "not false": "not true",
    "unknown": "unknown",
    "known": "known",
}
_TESTS: dict[str, tuple[Goal, tuple[Goal, ...]]] = {
    "is_true": ("true", ("not true",)),
    "is_false": ("false", ("not false",)),
    "is_unknown": ("unknown", ("known",)),
    "is_not_true": ("not true", ("true",)),
    "is_not_false": ("not false", ("false",)),
    "is_not_unknown": ("known", ("unknown",)),
}


class Wanted(NamedTuple):
    """A predicate, in its JSON form, and what it shall be."""

    leaf: dict[str, Any]
    goal: Goal


Way = tuple[Wanted, ...]


def ways(form: Any, goal: Goal = "true") -> Iterator[Way]:
    """Sets of predicates that make a form what it shall be, one after the other; those of one branch first.

    >>> form = {"or": [{"operator": "a"}, {"not": {"operator": "b"}}]}
    >>> [[(wanted.leaf["operator"], wanted.goal) for wanted in way] for way in ways(form)]
    [[('a', 'true')], [('b', 'false')]]
    """
    if isinstance(form, bool):
        if form == (goal in ("true", "not false", "known")) or goal == "known":
            yield ()
        return
    if form is None:
        if goal in ("unknown", "not true", "not false"):
            yield ()
        return
    if "operator" in form:
        yield from _of_leaf(form, goal)
        return
    if "at_least" in form:
        yield from _at_least(form["at_least"], form["of"], goal)
        return
    [(connective, inner)] = ((key, part) for key, part in form.items() if key != "weight")
    if connective in _TESTS:
        when_true, when_false = _TESTS[connective]
        if goal in ("true", "not false", "known"):
            yield from ways(inner, when_true)
        if goal in ("false", "not true", "known"):
            for other in when_false:
                yield from ways(inner, other)
    elif connective == "not":
        yield from ways(inner, _OPPOSITE[goal])
    elif connective in ("and", "or"):
        wants_all = (connective == "and") == (goal in ("true", "not false"))
        if goal in ("unknown", "known") or wants_all:
            yield from _all(inner, goal)
        else:
            for part in inner:
                yield from ways(part, goal)
    elif connective in ("xor", "xnor"):
        yield from _parity(inner, goal, odd=(connective == "xor") == (goal in ("true", "not false")))


def _of_leaf(leaf: dict[str, Any], goal: Goal) -> Iterator[Way]:
    if leaf.get("negated"):
        leaf, goal = {key: part for key, part in leaf.items() if key != "negated"}, _OPPOSITE[goal]
    if goal == "known":
        yield (Wanted(leaf, "true"),)
        yield (Wanted(leaf, "false"),)
    else:
        yield (Wanted(leaf, goal),)


def _all(parts: list[Any], goal: Goal) -> Iterator[Way]:
    if not parts:
        yield ()
        return
    # A loop over one part inside a loop over the next would call itself once for each part.
    first, *rest = parts
    firsts = [next(ways(part, goal), None) for part in rest]
    if None not in firsts:
        others = tuple(wanted for way in firsts if way is not None for wanted in way)
        for way in ways(first, goal):
            yield way + others
    for at, part in enumerate(rest):
        before = [next(ways(one, goal), None) for one in (first, *rest[:at], *rest[at + 1 :])]
        if None in before:
            return
        others = tuple(wanted for way in before if way is not None for wanted in way)
        for number, way in enumerate(ways(part, goal)):
            if number:
                yield others + way


def _at_least(count: int, parts: list[Any], goal: Goal) -> Iterator[Way]:
    positive = goal in ("true", "not false")
    needed = count if positive else len(parts) - count + 1
    if needed <= 0:
        yield ()
        return
    for chosen in combinations(parts, min(needed, len(parts) + 1)):
        yield from _all(list(chosen), goal)


def _parity(parts: list[Any], goal: Goal, *, odd: bool) -> Iterator[Way]:
    if goal in ("unknown", "known"):
        yield from _all(parts, goal)
        return
    for count in range(1 if odd else 0, len(parts) + 1, 2):
        for chosen in combinations(range(len(parts)), count):
            way: list[Wanted] = []
            for at, part in enumerate(parts):
                found = next(ways(part, "true" if at in chosen else "false"), None)
                if found is None:
                    break
                way.extend(found)
            else:
                yield tuple(way)
