"""How a record is written and read, with its version.

Every record is a JSON object with its version `v`, except that the JSON of an event follows its own header on
a second line, so that it can be matched where it lies. A reader takes every version up to its own. What it
cannot read is a `RecordError`, whatever the bytes; its callers say what then counts.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from tamis.errors import TamisError

VERSION = 1
"""Records of this version and of all before it can be read."""
WRITTEN = 1
"""The version in which records are written. It follows VERSION one release later, so that routers of the last
release, which read up to their own VERSION, work beside those of this one while a site is upgraded."""
MOST_NUMBER = 1 << 53


class RecordError(TamisError, ValueError):
    """A stored record cannot be read: it is damaged, hostile, or of a later version.

    >>> Fields(b"[]", "reading position")
    Traceback (most recent call last):
    ...
    tamis.pubsub.records.fields.RecordError: a reading position is a JSON object with a version, not b'[]'
    """

    def __init__(self, reason: str, found: str = "") -> None:
        """`found` shows what is stored; `reason` can be told to whoever may not see that."""
        super().__init__(reason + found)
        self.reason = reason


def write(fields: Mapping[str, Any], unusual: Mapping[str, Any] | None = None) -> bytes:
    """A record's bytes; what is unusual is left out as long as it is empty, zero or false.

    >>> write({"after": 3}, {"part": 0, "of": 7})
    b'{"v":1,"after":3,"of":7}'
    """
    more = {name: value for name, value in (unusual or {}).items() if value}
    return json.dumps({"v": WRITTEN, **fields, **more}, separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )


class Fields:
    """The fields of a record as they are taken out of it, each checked.

    >>> fields = Fields(b'{"v": 1, "after": 3}', "position")
    >>> fields.number("after")
    3
    >>> fields.text("router")
    Traceback (most recent call last):
    ...
    tamis.pubsub.records.fields.RecordError: the position has no good `router`: None
    """

    def __init__(self, body: bytes, what: str) -> None:
        """Parse a body; `what` is for errors."""
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            found = None
        version = found.get("v") if isinstance(found, dict) else None
        if not isinstance(found, dict) or type(version) is not int or version < 1:
            raise RecordError(f"a {what} is a JSON object with a version", f", not {body[:60]!r}")
        if version > VERSION:
            raise RecordError(
                f"this {what} has version {version}, and this release reads up to {VERSION}: upgrade it"
            )
        self._found: dict[str, Any] = found
        self._what = what

    def take(self, name: str, good: Callable[[Any], bool], default: Any = None) -> Any:
        """A field that is as it should be, or is not there and has a default."""
        value = self._found.get(name, default)
        if value is default and default is not None:
            return value
        if not good(value):
            raise RecordError(f"the {self._what} has no good `{name}`", f": {str(value)[:60]}")
        return value

    def number(self, name: str, default: int | None = None) -> int:
        """A whole number that is not negative."""
        return int(self.take(name, is_number, default))

    def text(self, name: str, default: str | None = None) -> str:
        """A text."""
        return str(self.take(name, lambda value: isinstance(value, str), default))

    def numbers(self, name: str, default: list[int] | None = None) -> list[int]:
        """A list of whole numbers."""
        return list(
            self.take(name, lambda value: isinstance(value, list) and all(map(is_number, value)), default)
        )

    def optional(self, name: str, good: Callable[[Any], bool]) -> Any:
        """A field that may be missing or null."""
        return None if self._found.get(name) is None else self.take(name, good)

    def part(self, name: str) -> "Fields | None":
        """A record within this one, which has no version of its own; None if it is missing."""
        found = self.optional(name, lambda value: isinstance(value, dict))
        if found is None:
            return None
        inner = object.__new__(Fields)
        inner._found, inner._what = found, f"{name} of the {self._what}"
        return inner

    def counts(self, name: str) -> dict[str, int]:
        """A map of text to numbers; empty if it is missing."""
        found = self.optional(
            name, lambda value: isinstance(value, dict) and all(map(is_number, value.values()))
        )
        return dict(found or {})


def is_number(value: object) -> bool:
    """Whether a value is a whole number that is not negative and that JSON keeps.

    >>> is_number(3), is_number(True), is_number(-1), is_number(1e3)
    (True, False, False, False)
    """
    return type(value) is int and 0 <= value <= MOST_NUMBER


def number_of(body: bytes) -> int:
    """The number that says what is newer, even of a record of a later version.

    >>> number_of(b'{"v":99,"k":7}'), number_of(b"garbage")
    (7, 0)
    """
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return 0
    number = found.get("k") if isinstance(found, dict) else None
    return number if isinstance(number, int) and is_number(number) else 0


def are_pairs(value: object) -> bool:
    """Whether a value is a list of pairs of numbers.

    >>> are_pairs([[1, 2]]), are_pairs([[1]])
    (True, False)
    """
    return isinstance(value, list) and all(
        isinstance(pair, list) and len(pair) == 2 and all(map(is_number, pair)) for pair in value
    )


def is_text_list(value: object) -> bool:
    """Whether a value is a list of texts.

    >>> is_text_list(["a"]), is_text_list("a")
    (True, False)
    """
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def is_seconds(value: object) -> bool:
    """Whether a value is a duration: finite and not negative.

    >>> is_seconds(0.5), is_seconds(float("nan")), is_seconds(-1)
    (True, False, False)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return 0 <= value <= 1e12  # NaN is in no range
