"""A text that matches a regular expression or a LIKE pattern."""

import re
import re._constants as kinds  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from typing import Any

_CLASSES = {"CATEGORY_DIGIT": "0", "CATEGORY_SPACE": " ", "CATEGORY_WORD": "a", "CATEGORY_NOT_DIGIT": "a"}
_OTHERS = "aA0 _-./\\:=#é"
_LONGEST = 4_096


def text_found_by(pattern: str) -> str | None:
    """The shortest text that comes to mind; None where Python does not read the pattern.

    >>> text_found_by(r"^ab+[0-9]{2}(x|y)\\.exe$")
    'ab00x.exe'
    """
    try:
        text: str = _written(parser.parse(pattern))[:_LONGEST]
        return text
    except (re.error, RecursionError, OverflowError, _UnknownError):
        return None


class _UnknownError(Exception):
    """Part of a pattern that no text is made of here."""


def _written(tree: Any) -> str:
    return "".join(_part(kind, value) for kind, value in tree)


def _part(kind: Any, value: Any) -> str:
    if kind is kinds.LITERAL:
        return chr(value)
    if kind is kinds.NOT_LITERAL:
        return next(one for one in _OTHERS if ord(one) != value)
    if kind is kinds.ANY:
        return "a"
    if kind is kinds.IN:
        return _member(value)
    if kind in (kinds.MAX_REPEAT, kinds.MIN_REPEAT, getattr(kinds, "POSSESSIVE_REPEAT", None)):
        least, _, inner = value
        return _written(inner) * int(min(least, _LONGEST))
    if kind is kinds.SUBPATTERN:
        return _written(value[-1])
    if kind is kinds.BRANCH:
        return _written(value[1][0])
    if kind is kinds.AT:
        return ""
    raise _UnknownError


def _member(members: Any) -> str:
    negated = bool(members) and members[0][0] is kinds.NEGATE
    if not negated:
        kind, value = members[0]
        if kind is kinds.LITERAL:
            return chr(value)
        if kind is kinds.RANGE:
            return chr(value[0])
        return _CLASSES.get(str(value), "-")
    return next((one for one in _OTHERS if not _excluded(one, members[1:])), "\u00b7")


def _excluded(character: str, members: Any) -> bool:
    for kind, value in members:
        if kind is kinds.LITERAL and ord(character) == value:
            return True
        if kind is kinds.RANGE and value[0] <= ord(character) <= value[1]:
            return True
        if kind is kinds.CATEGORY and re.match(_PATTERNS.get(str(value), ""), character):
            return True
    return False


_PATTERNS = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_NOT_WORD": r"\W",
}


def text_that_fits(pattern: str) -> str:
    r"""A text for a LIKE pattern.

    >>> text_that_fits(r"a%b_\%")
    'aba%'
    """
    return re.sub(r"\\(.)|(%)|(_)", lambda found: found[1] or ("a" if found[3] else ""), pattern)
