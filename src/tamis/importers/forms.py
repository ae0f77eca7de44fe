"""Builds expressions in their JSON form, without trivial parts.

Importers build forms and turn them into a `tamis.Expression` once, at the end. AND and OR of one part
are that part, constants disappear, and nested ANDs become one.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from typing import Any

from tamis._kernel import Expression
from tamis._parameters import written
from tamis.errors import ExpressionError
from tamis.importers.report import OF_ANY_FORMAT, NotCarriedOverError
from tamis.importers.two_valued import Form


@dataclass(frozen=True)
class Term:
    """What a predicate looks at, as text; `name` is set if it is an attribute and nothing else."""

    text: str
    name: str | None = None


def attribute(path: str) -> Term:
    """An attribute by its dotted path.

    >>> attribute("address.first line").text
    'address.`first line`'
    """
    if not path:
        raise ExpressionError("an attribute needs a name")
    return Term(".".join(_segment(part) for part in path.split(".")), path)


def literal(value: Any) -> str:
    """A value as it is written in a term.

    >>> literal("it's"), literal(-3), literal(True)
    ("'it\\\\'s'", '-3', 'TRUE')
    """
    return written(value)


def test(term: Term, operator: str, *operands: Any) -> dict[str, Any]:
    """A predicate.

    >>> print(expression(test(Term("lower(x)"), "IN", "a", "b")))
    lower(x) IN ('a', 'b')
    """
    looked_at = {"term": term.text} if term.name is None else {"attribute": term.name}
    negated = {"negated": True} if operator == "!=" else {}
    name = "=" if operator == "!=" else operator
    return looked_at | {"operator": name, "operands": [_operand(operand) for operand in operands]} | negated


def is_null(term: Term) -> dict[str, Any]:
    """Absent.

    >>> print(expression(is_null(attribute("x"))))
    x IS NULL
    """
    return test(term, "IS NULL")


def is_not_null(term: Term) -> dict[str, Any]:
    """Present.

    >>> print(expression(is_not_null(attribute("x"))))
    x IS NOT NULL
    """
    return {**test(term, "IS NULL"), "negated": True}


def holds(term: Term) -> dict[str, Any]:
    """A term that is true or false, on its own.

    >>> print(expression(holds(Term("a < b"))))
    a < b
    """
    return test(term, "truth")


def quantified(name: str, array: Term, variable: str, body: Form) -> Form:
    """A test of the elements of an array, which a variable stands for: `exists`, `forall` or `any`.

    >>> print(expression(quantified("exists", attribute("tags"), "t", test(attribute("t"), "=", "new"))))
    exists(tags, t -> t = 'new')
    """
    if body is False and name != "forall":
        return False
    return holds(Term(f"{name}({array.text}, {variable} -> {expression(body)})"))


def one_of(term: Term, values: Iterable[Any]) -> Form:
    """Equality with one of some values, which may be of several kinds.

    >>> print(expression(one_of(attribute("x"), ["a", 1, "b"])))
    x IN ('a', 'b') OR x = 1
    """
    kinds: dict[type[Any], list[Any]] = {}
    for value in values:
        kind: type[Any] = bool if isinstance(value, bool) else str if isinstance(value, str) else float
        kinds.setdefault(kind, []).append(value)
    return any_of(test(term, "=" if len(same) == 1 else "IN", *same) for same in kinds.values())


def equals_or_holds(term: Term, values: list[Any]) -> Form:
    """One of some values, or an array that holds one of them.

    >>> print(expression(equals_or_holds(attribute("x"), ["a", "b"])))
    x IN ('a', 'b') OR arrays_overlap(x, ARRAY('a', 'b'))
    """
    kinds: list[list[Any]] = [
        [value for value in values if isinstance(value, str)],
        [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)],
        [value for value in values if isinstance(value, bool)],
    ]
    arrays = (
        test(term, "array_contains" if len(same) == 1 else "arrays_overlap", *same) for same in kinds if same
    )
    return any_of([one_of(term, values), *arrays])


ANY_TEXT = object()
ANY_CHARACTER = object()


def like(term: Term, parts: Iterable[Any]) -> Form:
    r"""Wildcards: text, with `ANY_TEXT` and `ANY_CHARACTER` between. The cheapest operator that says it.

    >>> some = ANY_TEXT
    >>> for parts in (["a"], ["a", some], [some, "a"], [some, "a", some], ["a", ANY_CHARACTER, some]):
    ...     print(expression(like(attribute("x"), parts)))
    x = 'a'
    startswith(x, 'a')
    endswith(x, 'a')
    contains(x, 'a')
    x LIKE 'a_%'
    """
    pieces: list[Any] = []
    for part in parts:
        if part is ANY_TEXT and pieces and pieces[-1] is ANY_TEXT:
            continue
        if isinstance(part, str) and pieces and isinstance(pieces[-1], str):
            pieces[-1] += part
        elif part != "":
            pieces.append(part)
    texts = [piece if isinstance(piece, str) else None for piece in pieces]
    if ANY_CHARACTER in pieces:
        pattern = "".join(
            "%" if piece is ANY_TEXT else "_" if piece is ANY_CHARACTER else escaped(piece)
            for piece in pieces
        )
        return test(term, "LIKE", pattern)
    match texts:
        case []:
            return test(term, "=", "")
        case [None]:
            return is_not_null(Term(f"concat({term.text})"))
        case [str(text)]:
            return test(term, "=", text)
        case [str(text), None]:
            return test(term, "startswith", text)
        case [None, str(text)]:
            return test(term, "endswith", text)
        case [None, str(text), None]:
            return test(term, "contains", text)
    return test(term, "LIKE", "".join("%" if text is None else escaped(text) for text in texts))


def escaped(text: str) -> str:
    r"""A text as it is written in a LIKE pattern to stand for itself.

    >>> escaped("100%")
    '100\\%'
    """
    for special in ("\\", "%", "_"):
        text = text.replace(special, "\\" + special)
    return text


def all_of(parts: Iterable[Form]) -> Form:
    """AND.

    >>> print(expression(all_of([True, is_null(attribute("x"))])))
    x IS NULL
    """
    return _joined("and", parts, neutral=True)


def any_of(parts: Iterable[Form]) -> Form:
    """OR.

    >>> print(expression(any_of([])))
    FALSE
    """
    return _joined("or", parts, neutral=False)


def at_least(count: int, parts: list[Form]) -> Form:
    """At least so many of the parts are true.

    >>> print(expression(at_least(2, [is_null(attribute(name)) for name in "abc"])))
    AT LEAST 2 OF (a IS NULL, b IS NULL, c IS NULL)
    """
    if count <= 0:
        return True
    if count > len(parts):
        return False
    if count == 1:
        return any_of(parts)
    if count == len(parts):
        return all_of(parts)
    return {"at_least": count, "of": parts}


def expression(form: Form) -> Expression:
    """The expression that a form stands for.

    >>> expression(True)
    tamis.parse('TRUE')
    """
    return Expression.from_json(json.dumps(form))


def _joined(connective: str, parts: Iterable[Form], *, neutral: bool) -> Form:
    kept: dict[str, Form] = {}  # by their text: in Python `True == 1`
    for part in parts:
        if part is (not neutral):
            return part
        if part is neutral:
            continue
        for inner in part[connective] if isinstance(part, dict) and connective in part else [part]:
            kept.setdefault(json.dumps(inner), inner)
    if not kept:
        return neutral
    return next(iter(kept.values())) if len(kept) == 1 else {connective: list(kept.values())}


def _operand(value: Any) -> Any:
    if isinstance(value, float) and not isfinite(value):
        raise NotCarriedOverError("a number", OF_ANY_FORMAT["a number"])
    if isinstance(value, datetime):
        return {"$timestamp": value.isoformat()}
    return value


def _segment(part: str) -> str:
    is_plain = part.isidentifier() and part.upper() not in _RESERVED
    return part if is_plain else "`" + part.replace("`", "``") + "`"


_RESERVED = frozenset(
    (
        *(
            "AND",
            "OR",
            "NOT",
            "XOR",
            "XNOR",
            "IN",
            "BETWEEN",
            "IS",
            "NULL",
            "LIKE",
            "ILIKE",
            "RLIKE",
            "REGEXP",
        ),
        *("ESCAPE", "TRUE", "FALSE", "CAST", "ARRAY", "DOUBLE", "TIMESTAMP", "DATE", "EXISTS", "FORALL"),
        *("CASE", "WHEN", "THEN", "ELSE", "END"),
    )
)
