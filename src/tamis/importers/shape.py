"""Checks the depth and size of a rule before it is read, because rules may be hostile.

Values that occur in several places (aliases, shared objects) count in each place, but are visited once.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from tamis.importers.report import OF_ANY_FORMAT, NotCarriedOverError

MOST_LEVELS = 1_024
"""Of records and lists in one another: four for each level of an expression."""

MOST_PARENTHESES = 512
"""In one another: two for each level of an expression."""

MOST_VALUES = 1_000_000


def check_shape(rule: Any) -> Any:
    """The rule, if it is neither too deep nor too large.

    >>> check_shape({"x": [1, 2]})
    {'x': [1, 2]}
    >>> endless = []
    >>> endless.append(endless)
    >>> check_shape(endless)
    Traceback (most recent call last):
    tamis.importers.report.NotCarriedOverError: deep nesting is not carried over: an expression has ...
    """
    known: dict[int, int] = {}
    stack: list[tuple[Any, Iterator[Any], int]] = [(rule, _parts(rule), 1)]
    inside: set[int] = {id(rule)}
    sizes = [1]
    while stack:
        value, parts, level = stack[-1]
        for part in parts:
            if id(part) in known:
                sizes[-1] += known[id(part)]
            elif isinstance(part, Mapping | list | tuple):
                if id(part) in inside or level > MOST_LEVELS:
                    raise NotCarriedOverError("deep nesting", OF_ANY_FORMAT["deep nesting"])
                inside.add(id(part))
                stack.append((part, _parts(part), level + 1))
                sizes.append(1)
                break
            else:
                sizes[-1] += 1
        else:
            stack.pop()
            inside.discard(id(value))
            known[id(value)] = size = sizes.pop()
            if size > MOST_VALUES:
                raise NotCarriedOverError("a large rule", OF_ANY_FORMAT["a large rule"])
            if sizes:
                sizes[-1] += size
    return rule


def check_parentheses(text: str) -> str:
    """The text, if its parentheses do not stand too deep in one another.

    >>> check_parentheses("(x = 1)")
    '(x = 1)'
    """
    level = 0
    for character in text:
        level += (character == "(") - (character == ")")
        if level > MOST_PARENTHESES:
            raise NotCarriedOverError("deep nesting", OF_ANY_FORMAT["deep nesting"])
    return text


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        return iter(value.values())
    return iter(value) if isinstance(value, list | tuple) else iter(())
