"""Mismatches between rules and events, found in the first events and reported once at the end.

They are values of a type that no rule compares them with, and attributes that look misspelt.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from tamis._kernel import wrong_values
from tamis._suggest import MISSPELT, suggestion
from tamis.cli.io.events import Lines, Portion
from tamis.errors import EventError

EVENTS_LOOKED_AT = 10_000
"""A mistake in a column shows in the first events; looking at all of them would cost more than matching."""


class WrongTypes:
    """What the rules expect of each attribute, and how many values were of another kind.

    >>> seen = WrongTypes({"age": ("number",)})
    >>> seen.look(Lines([0, 1], [b'{"age": "27"}', b'{"age": 30}'], [1, 2]))
    >>> seen.summary()
    'in the first 2 events, 1 value of `age` is of type string: rules compare it with number'
    """

    def __init__(self, expected: Mapping[str, Sequence[str]]) -> None:
        """Take the attributes of an index with the kinds of values that its predicates expect."""
        self._expected = expected
        self._looked_at = 0
        self._wrong: Counter[tuple[str, str]] = Counter()
        self._seen: set[str] = set()

    def look(self, portion: Portion) -> None:
        """Look at some events, unless enough were seen."""
        room = EVENTS_LOOKED_AT - self._looked_at
        if room <= 0:
            return
        if isinstance(portion, Lines):
            records = [_record(text) for text in portion.events[:room]]
            readable: Any = [text for text, record in zip(portion.events, records, strict=False) if record]
        else:
            readable = portion.events.slice(0, room)
            records = readable.to_pylist()
        self._looked_at += len(records)
        for record in records:
            self._seen.update(_paths(record, ""))
        with suppress(EventError):  # reported where events are matched
            cells = not isinstance(portion, Lines) and portion.cells
            for path, kind, count in wrong_values(list(self._expected.items()), readable, cells):
                self._wrong[path, kind] += count

    def summary(self) -> str | None:
        """One line about all of them, or None."""
        found = [
            f"{'1 value' if count == 1 else f'{count:,} values'} of `{path}` {'is' if count == 1 else 'are'} "
            f"of type {kind}: rules compare it with {' or '.join(self._expected[path])}"
            for (path, kind), count in self._wrong.most_common()
        ]
        found += self._misspelt()
        if not found:
            return self._nothing_in_common()
        more = f"; and {len(found) - 3} more" if len(found) > 3 else ""
        first = "the only event" if self._looked_at == 1 else f"the first {self._looked_at:,} events"
        return f"in {first}, {'; '.join(found[:3])}{more}"

    def _nothing_in_common(self) -> str | None:
        """What to say where events have no attribute that rules look at.

        >>> seen = WrongTypes({"age": ("number",)})
        >>> seen.look(Lines([0], [b'{"user;age": "ann;27"}'], [1]))
        >>> seen.summary()
        'no event has an attribute that rules look at: they have `user;age`, rules `age` (see --separator)'
        """
        if not self._seen or not self._expected or any(map(self._is_looked_at, self._seen)):
            return None
        have, look = (
            ", ".join(f"`{name}`" for name in sorted(names)[:5]) for names in (self._seen, self._expected)
        )
        is_joined = len(self._seen) == 1 and any(mark in have for mark in ";\t|")
        hint = " (see --separator)" if is_joined else ""
        return f"no event has an attribute that rules look at: they have {have}, rules {look}{hint}"

    def _is_looked_at(self, path: str) -> bool:
        return any(name == path or path.startswith(f"{name}.") for name in self._expected)

    def _misspelt(self) -> Iterator[str]:
        """Attributes of rules that no event has, where events have one of nearly the same name.

        >>> seen = WrongTypes({"agee": ("number",), "height": ("number",)})
        >>> seen.look(Lines([0], [b'{"age": 27}'], [1]))
        >>> seen.summary()
        'in the only event, there is no `agee`, which rules ask for (did you mean `age`?)'
        """
        for name in self._expected:
            if name in self._seen:
                continue
            if hint := suggestion(name, self._seen, similarity=MISSPELT):
                yield f"there is no `{name}`, which rules ask for ({hint})"


def _record(text: bytes) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return {}  # reported where events are matched
    return record if isinstance(record, dict) else {}


def _paths(record: dict[str, Any], prefix: str) -> Iterator[str]:
    for name, value in record.items():
        if isinstance(value, dict):
            yield from _paths(value, f"{prefix}{name}.")
        else:
            yield prefix + name
