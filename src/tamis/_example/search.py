"""Builds an event in which given predicates are true or false, as required."""

import json
from collections.abc import Iterator
from itertools import islice
from math import ceil, floor, inf, isfinite
from typing import Any

from tamis import relate
from tamis._example import documents
from tamis._example.inverse import inverse
from tamis._example.term_text import Attribute, Tree, UnreadableTermError, read_term
from tamis._example.values import values_for
from tamis._example.ways import Wanted, Way, ways
from tamis._kernel import Expression
from tamis._quantifiers import Quantifier
from tamis.errors import TamisError

BUDGET = 20_000
"""How many steps a proof about an expression without computed terms may take."""

MOST_WAYS = 60
MOST_TRIALS = 3_000
"""How many events are tried for one expression."""

MOST_DEPTH = 4
"""How deep quantifiers may be nested."""

# A document that no path leads into.
_OTHER_DOCUMENT = "<other />"
_ALWAYS = Expression.parse("TRUE")
_ORDER = ("=", "<=>", "IN", "BETWEEN", "startswith", "LIKE", "ILIKE", "contains", "RLIKE", "endswith")
_APPENDED = frozenset(("startswith", "LIKE", "ILIKE", "contains", "RLIKE", "endswith"))

Event = dict[str, Any]


def example(expression: Expression, *, depth: int = 0) -> Event | None:
    """An event that an expression matches, or None if none was found.

    >>> example(Expression.parse("lower(name) = 'ann' AND price * quantity > 100"))
    {'name': 'ann', 'price': 101, 'quantity': 1}
    """
    event = relate.example_of_overlap(expression, _ALWAYS, budget=BUDGET)
    if event is not None or depth > MOST_DEPTH:
        return None if event is None else _with_plain_numbers(event, expression)
    try:
        form = json.loads(expression.to_json())
        search = _Search(expression, depth)
        for way in islice(ways(form), MOST_WAYS):
            if (event := search.event_for(way)) is not None:
                return _with_plain_numbers(event, expression)
    except (RecursionError, _SpentError):
        return None
    return None


def _with_plain_numbers(event: Event, expression: Expression) -> Event:
    """The event with whole numbers in the place of infinite and long ones, where the expression allows it."""
    for name, value in event.items():
        if not isinstance(value, float) or 1e15 < abs(value) < inf:
            continue
        plain = [floor(value), ceil(value)] if isfinite(value) else [0, 1, -1, 10**9, -(10**9), 1e300, -1e300]
        better = ({**event, name: number} for number in plain)
        event = next((one for one in better if expression.evaluate(one) is True), event)
    return event


class _SpentError(Exception):
    """Enough events were tried."""


class _Search:
    """Tries events for one expression."""

    def __init__(self, expression: Expression, depth: int) -> None:
        self._expression = expression
        self._depth = depth
        self._trials = 0
        self._judges: dict[str, Expression] = {}

    def event_for(self, way: Way) -> Event | None:
        """An event in which all wanted predicates are what they shall be, and the whole is true."""
        wanted = sorted(_distinct(way), key=_place)
        # A loop that remembers its choices: rules have thousands of predicates, and Python few frames.
        choices: list[Iterator[Event]] = []
        events: list[Event] = [{}]
        while True:
            if len(choices) == len(wanted):
                if self._holds(self._expression, events[-1]):
                    return events[-1]
            else:
                choices.append(self._candidates(events[-1], wanted[len(choices)]))
            while choices:
                del events[len(choices) :]
                following = next(
                    (one for one in choices[-1] if self._all_hold(one, wanted[: len(choices)])), None
                )
                if following is not None:
                    events.append(following)
                    break
                choices.pop()
            else:
                return None

    def _all_hold(self, event: Event, wanted: list[Wanted]) -> bool:
        return all(self._is_as_wanted(event, one) for one in reversed(wanted))

    def _is_as_wanted(self, event: Event, wanted: Wanted) -> bool:
        truth = self._truth(self._judge(wanted.leaf), event)
        return {
            "true": truth is True,
            "false": truth is False,
            "not true": truth is not True,
            "not false": truth is not False,
            "unknown": truth is None,
            "known": truth is not None,
        }[wanted.goal]

    def _judge(self, leaf: dict[str, Any]) -> Expression:
        key = json.dumps(leaf)
        if key not in self._judges:
            self._judges[key] = Expression.from_json(key)
        return self._judges[key]

    def _truth(self, judge: Expression, event: Event) -> Any:
        self._trials += 1
        if self._trials > MOST_TRIALS:
            raise _SpentError
        try:
            return judge.evaluate(event)
        except (TamisError, OverflowError, TypeError):
            return None

    def _holds(self, judge: Expression, event: Event) -> bool:
        return self._truth(judge, event) is True

    def _candidates(self, event: Event, wanted: Wanted) -> Iterator[Event]:
        """The event as it is, and the event with what could make the predicate what it shall be."""
        yield event
        if wanted.goal not in ("true", "false"):
            return
        leaf, shall_be = wanted.leaf, wanted.goal == "true"
        operator = leaf["operator"]
        term = leaf.get("term")
        if isinstance(term, str) and operator == "truth" and (quantifier := Quantifier.of(term)) is not None:
            yield from self._with_element(event, quantifier, shall_be)
            return
        if operator == "xpath" and term is None:
            yield from _with_document(event, leaf, shall_be)
            return
        try:
            tree: Tree = Attribute(leaf["attribute"]) if term is None else read_term(term)
        except UnreadableTermError:
            return
        for value in self._values(leaf, shall_be):
            for found in inverse(tree, value, event):
                yield event | found
                if operator in _APPENDED:
                    yield from _appended(event, found)

    def _values(self, leaf: dict[str, Any], shall_be: bool) -> list[Any]:
        if leaf["operator"] == "xpath":
            document = documents.document_for(leaf["operands"][0], None) if shall_be else _OTHER_DOCUMENT
            return [] if document is None else [document]
        guesses = values_for(leaf["operator"], leaf.get("operands", []), wanted=shall_be)
        opaque = {key: part for key, part in leaf.items() if key not in ("term", "weight")}
        opaque = {"attribute": "value", **opaque}
        form = opaque if shall_be else {"not": opaque}
        found = relate.example_of_overlap(Expression.from_json(json.dumps(form)), _ALWAYS, budget=BUDGET)
        return [*guesses, *(found or {}).values()]

    def _with_element(self, event: Event, quantifier: Quantifier, shall_be: bool) -> Iterator[Event]:
        """The event with an array for a quantifier to be true, or false, of."""
        name = quantifier.array
        if shall_be == (quantifier.name == "forall"):
            yield event | {name: event.get(name, [])}
            if not shall_be:
                return
        element = example(quantifier.body if shall_be else ~quantifier.body, depth=self._depth + 1)
        if element is None:
            return
        if name == "all_strings()":
            text = element.pop("element", "a")
            yield event | element | {"text": f"{event['text']} {text}" if "text" in event else text}
            return
        inside = {
            key.removeprefix("element."): part for key, part in element.items() if key.startswith("element.")
        }
        beside = {key: part for key, part in element.items() if not key.startswith("element")}
        array = event.get(name, [])
        for count in (1, 2, 3) if isinstance(array, list) else ():
            yield beside | event | {name: [*array, *[element.get("element", inside)] * count]}


def _distinct(way: Way) -> list[Wanted]:
    return list({json.dumps(wanted): wanted for wanted in way}.values())


def _place(wanted: Wanted) -> tuple[int, int]:
    """What fixes a value comes first, then texts from their start to their end, then what only excludes."""
    operator = wanted.leaf["operator"]
    kind = 0 if wanted.goal == "true" else 1 if wanted.goal == "false" else 2
    if operator == "xpath":  # what names the root comes before what may stand anywhere
        return kind, -1 if not wanted.leaf["operands"][0].startswith("//") else 0
    return kind, _ORDER.index(operator) if operator in _ORDER else len(_ORDER)


def _appended(event: Event, found: Event) -> Iterator[Event]:
    """The event with a text behind the one that is there."""
    for name, text in found.items():
        before = event.get(name)
        if isinstance(text, str) and isinstance(before, str):
            for between in ("", " ", "a"):
                yield event | {name: before + between + text}
            for start in range(1, min(len(text), len(before)) + 1):  # they may overlap
                if before.endswith(text[:start]):
                    yield event | {name: before + text[start:]}


def _with_document(event: Event, leaf: dict[str, Any], shall_be: bool) -> Iterator[Event]:
    name, path = leaf["attribute"], leaf["operands"][0]
    if not shall_be:
        yield event | {name: _OTHER_DOCUMENT}
        return
    before = event.get(name)
    for start in (before, None) if isinstance(before, str) else (None,):
        if (document := documents.document_for(path, start)) is not None:
            yield event | {name: document}
