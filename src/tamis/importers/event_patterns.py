"""Event patterns of Amazon EventBridge and Event Ruler: `{"total": [{"numeric": [">", 100]}]}`.

Fields are joined by AND, the alternatives of a field by OR. A value of an event may be an array: then Event
Ruler looks at its elements, and where these are records, all fields of a pattern must match in the same
record ("array consistency"). If the caller names the attributes that hold arrays, quantifiers look at the
elements (`elements`). Otherwise equality looks into arrays of values (`array_contains`), other tests do not,
and the rule has a note. Case is ignored with `lower`, which is the same for ASCII.

Differences: null and absent are the same here, so patterns that distinguish them are refused; numbers are
exact here, and rounded to six digits there; tests do not look into arrays inside arrays.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import prod
from typing import Any

from tamis.importers import cidr, forms
from tamis.importers.elements import Scope
from tamis.importers.forms import Term
from tamis.importers.report import OF_ANY_FORMAT, ImportedRule, NotCarriedOverError, Report, attempt, gather
from tamis.importers.shape import check_shape
from tamis.importers.two_valued import Form, not_true

_MOST_RULES = 1000

NOT_CARRIED_OVER = {
    **OF_ANY_FORMAT,
    "null": "null and absent are the same in Tamis, but a null pattern matches only null",
    "cidr": "it is not a block of addresses",
    "numeric": "it is not a list of comparisons and numbers",
    "wildcard": "a backslash precedes something other than * or a backslash",
    "a field twice": "Event Ruler uses one of them and ignores the other",
    "a field next to and inside $or": "Event Ruler uses the inner alternatives instead of both",
    "alternatives over arrays of records": f"$or and exists: false make more than {_MOST_RULES} rules of it",
    "an unknown match": "Event Ruler has no match of that name",
    "an invalid pattern": "a field is a record of fields or a list of alternatives",
}
"""Every feature that is refused, with the reason."""

_COMPARISONS = frozenset({"<", "<=", ">", ">=", "="})


def convert(id: str, pattern: Mapping[str, Any] | str, arrays: Collection[str] | None = None) -> ImportedRule:
    """One pattern, as a record or as JSON text.

    `arrays` names the attributes of events that hold arrays, of values or of records, as dotted paths. Where
    it is not given, the rule has a note on every test that does not look into an array.

    >>> str(convert("a", {"detail": {"state": [{"anything-but": "ok"}]}}).expression)
    "(concat(detail.state) IS NOT NULL OR ...) AND (detail.state = 'ok') IS NOT TRUE"
    >>> dear = {"items": {"sku": ["A"], "price": [{"numeric": [">", 5]}]}}
    >>> str(convert("b", dear, arrays=["items"]).expression)
    "exists(items, element -> element.price > 5 AND (element.sku = 'A' OR ...)) OR items.price > 5 AND ..."
    """

    def converted() -> ImportedRule:
        scope = Scope.of(arrays)
        parsed = check_shape(json.loads(pattern) if isinstance(pattern, str) else pattern)
        _check_fields("", parsed, frozenset())
        expression = forms.expression(_form(_read("", parsed), scope))
        return ImportedRule(id, expression, notes=tuple(dict.fromkeys(scope.notes)))

    return attempt(id, "an invalid pattern", NOT_CARRIED_OVER["an invalid pattern"], converted)


def read(
    patterns: Mapping[str, Any] | Iterable[tuple[str, Any]], arrays: Collection[str] | None = None
) -> Report:
    """Many patterns by their ids.

    >>> report = read({"a": {"x": [1, 2]}, "b": {"x": [None]}})
    >>> print(report)
    1 of 2 rules imported
    1 refused because of null: null and absent are the same in Tamis, but a null pattern matches only null
    refused: b
    """
    pairs = patterns.items() if isinstance(patterns, Mapping) else patterns
    return gather(convert(id, pattern, arrays) for id, pattern in pairs)


def _refuse(feature: str, where: str) -> NotCarriedOverError:
    return NotCarriedOverError(feature, NOT_CARRIED_OVER[feature], where)


@dataclass(frozen=True)
class _Field:
    path: str
    wanted: list[Any]


@dataclass(frozen=True)
class _Either:
    """`$or`: one of several patterns."""

    patterns: list["_Pattern"]


_Pattern = list[_Field | _Either]


def _read(path: str, pattern: Any) -> _Pattern:
    if not isinstance(pattern, Mapping) or not pattern:
        raise _refuse("an invalid pattern", path)
    parts: _Pattern = []
    for name, wanted in pattern.items():
        inside = f"{path}.{name}" if path else name
        if name == "$or" and _are_patterns(wanted):
            parts.append(_Either([_read(path, part) for part in wanted]))
        elif isinstance(wanted, Mapping):
            parts.extend(_read(inside, wanted))
        elif isinstance(wanted, list) and wanted:
            parts.append(_Field(inside, wanted))
        else:
            raise _refuse("an invalid pattern", inside)
    return parts


def _form(pattern: _Pattern, scope: Scope) -> Form:
    if not any(scope.array_around(path) for path in _all_paths(pattern)):
        return forms.all_of(_tests(pattern, scope))
    if _count(pattern) > _MOST_RULES:
        raise _refuse("alternatives over arrays of records", "")
    return forms.any_of(_consistent(rule, scope) for rule in _rules(pattern))


def _tests(pattern: _Pattern, scope: Scope) -> Iterator[Form]:
    """The tests of a pattern that looks into no array of records."""
    for part in pattern:
        if isinstance(part, _Either):
            yield forms.any_of(forms.all_of(_tests(one, scope)) for one in part.patterns)
        else:
            yield _alternatives(part, scope)


def _all_paths(pattern: _Pattern) -> Iterator[str]:
    for part in pattern:
        if isinstance(part, _Either):
            for one in part.patterns:
                yield from _all_paths(one)
        else:
            yield part.path


def _count(pattern: _Pattern) -> int:
    return prod(
        sum(_count(one) for one in part.patterns) if isinstance(part, _Either) else len(_with_or_absent(part))
        for part in pattern
    )


def _rules(pattern: _Pattern) -> Iterator[list[_Field]]:
    """Rules without alternatives of fields, of which one must match, as Event Ruler makes them of `$or`."""
    choices: list[list[list[_Field]]] = [
        [rule for one in part.patterns for rule in _rules(one)]
        if isinstance(part, _Either)
        else [[field] for field in _with_or_absent(part)]
        for part in pattern
    ]
    for chosen in product(*choices):
        yield [field for fields in chosen for field in fields]


_ABSENT = {"exists": False}


def _with_or_absent(field: _Field) -> list[_Field]:
    """A field that may be absent, as two: one that is present, and one that is absent."""
    present = [wanted for wanted in field.wanted if wanted != _ABSENT]
    absent = [wanted for wanted in field.wanted if wanted == _ABSENT][:1]
    return [_Field(field.path, wanted) for wanted in (present, absent) if wanted]


def _consistent(fields: list[_Field], scope: Scope) -> Form:
    """All fields, those inside one array of records in the same record.

    Event Ruler goes through the fields in the order of their names. So a field must be absent from the record
    that fields of smaller names were found in; where there are none, it must be absent from every record.
    """
    tests: list[Form] = []
    together: dict[str, list[_Field]] = {}
    for field in sorted(fields, key=lambda field: field.path.encode("utf-16-be")):
        around = scope.array_around(field.path)
        if around is None or (field.wanted == [_ABSENT] and around not in together):
            tests.append(_alternatives(field, scope))
        else:
            together.setdefault(around, []).append(field)
    for around, inside in together.items():
        tests.append(scope.some_element(around, partial(_consistent, inside)))
    return forms.all_of(tests)


def _check_fields(path: str, pattern: Any, outside: frozenset[str]) -> None:
    """Raise if a field occurs twice, or both next to and inside an `$or`."""
    if not isinstance(pattern, Mapping):
        return
    here = list(_paths(path, pattern))
    if twice := {name for name in here if here.count(name) > 1}:
        raise _refuse("a field twice", min(twice))
    beside = outside | set(here)
    for name, wanted in pattern.items():
        inside = f"{path}.{name}" if path else name
        if name == "$or" and _are_patterns(wanted):
            for part in wanted:
                if repeated := beside & set(_paths(path, part)):
                    raise _refuse("a field next to and inside $or", min(repeated))
                _check_fields(path, part, beside)
        else:
            _check_fields(inside, wanted, beside)


def _paths(path: str, pattern: Mapping[str, Any]) -> Iterator[str]:
    for name, wanted in pattern.items():
        inside = f"{path}.{name}" if path else name
        if isinstance(wanted, Mapping):
            yield from _paths(inside, wanted)
        elif name != "$or" or not _are_patterns(wanted):
            yield inside


_MATCHES = frozenset(
    {
        "exactly",
        "prefix",
        "suffix",
        "equals-ignore-case",
        "wildcard",
        "cidr",
        "numeric",
        "exists",
        "anything-but",
    }
)


def _are_patterns(wanted: Any) -> bool:
    """Whether `$or` has patterns; where it has matches, as it might in old rules, it is a field."""
    are_records = isinstance(wanted, list) and all(isinstance(part, Mapping) for part in wanted)
    return are_records and len(wanted) > 1 and not any(_MATCHES & part.keys() for part in wanted)


def _alternatives(field: _Field, scope: Scope) -> Form:
    path = field.path
    values = [value for value in field.wanted if not isinstance(value, Mapping)]
    if None in values:
        raise _refuse("null", path)
    if any(isinstance(value, list) for value in values):
        raise _refuse("an invalid pattern", path)
    matches = [match for match in field.wanted if isinstance(match, Mapping) and match != _ABSENT]
    for match in matches:
        if match.keys() - {"exists"}:
            scope.note_one_value(path, next(iter(match)))

    def one_matches(term: Term) -> Form:
        return forms.any_of([forms.one_of(term, values), *(_match(path, term, match) for match in matches)])

    def matches_or_holds(term: Term) -> Form:
        return forms.any_of([forms.equals_or_holds(term, values), one_matches(term)])

    present = scope.some_value(path, one_matches, matches_or_holds) if values or matches else False
    absent = not_true(scope.some_value(path, _is_leaf)) if _ABSENT in field.wanted else False
    return forms.any_of([present, absent])


def _match(path: str, term: Term, match: Mapping[str, Any]) -> Form:
    if len(match) != 1:
        raise _refuse("an invalid pattern", path)
    [(kind, operand)] = match.items()
    if kind == "exists":
        if operand is not True:
            raise _refuse("an invalid pattern", path)
        return _is_leaf(term)
    if kind == "anything-but":
        return forms.all_of([_is_leaf(term), not_true(_excluded(path, term, operand))])
    if kind == "numeric":
        return _numeric(path, term, operand)
    if kind not in ("exactly", "prefix", "suffix", "equals-ignore-case", "wildcard", "cidr"):
        raise NotCarriedOverError(kind, NOT_CARRIED_OVER["an unknown match"], path)
    return _text(path, term, kind, operand)


def _is_leaf(term: Term) -> Form:
    """A value of its own or in an array, no record; Event Ruler sees nothing in an empty array."""
    in_array = forms.quantified("exists", term, "leaf", _is_value(forms.attribute("leaf")))
    return forms.any_of([_is_value(term), in_array])


def _is_value(term: Term) -> Form:
    name = term.text
    return forms.any_of(
        [
            forms.is_not_null(Term(f"concat({name})")),
            forms.is_not_null(Term(f"{name} + 0")),
            forms.test(term, "IN", True, False),
        ]
    )


def _excluded(path: str, term: Term, operand: Any) -> Form:
    if isinstance(operand, Mapping):
        if len(operand) != 1:
            raise _refuse("an invalid pattern", path)
        [(kind, parts)] = operand.items()
        if kind not in ("prefix", "suffix", "equals-ignore-case", "wildcard"):
            raise NotCarriedOverError(f"anything-but {kind}", NOT_CARRIED_OVER["an unknown match"], path)
        each = parts if isinstance(parts, list) else [parts]
        return forms.any_of(_text(path, term, kind, part) for part in each)
    values = operand if isinstance(operand, list) else [operand]
    if not values or not all(isinstance(value, str | int | float) for value in values):
        raise _refuse("null" if None in values else "an invalid pattern", path)
    return forms.one_of(term, values)


def _numeric(path: str, term: Term, operand: Any) -> Form:
    if not isinstance(operand, list) or len(operand) not in (2, 4):
        raise _refuse("numeric", path)
    pairs = list(zip(operand[::2], operand[1::2], strict=True))
    for comparison, number in pairs:
        is_number = isinstance(number, int | float) and not isinstance(number, bool)
        if comparison not in _COMPARISONS or not is_number:
            raise _refuse("numeric", path)
    return forms.all_of(forms.test(term, comparison, number) for comparison, number in pairs)


def _text(path: str, term: Term, kind: str, operand: Any) -> Form:
    if kind in ("prefix", "suffix") and isinstance(operand, Mapping):
        operand, kind = operand.get("equals-ignore-case"), f"{kind} without case"
    if not isinstance(operand, str):
        raise _refuse("an invalid pattern", path)
    without_case = Term(f"lower({term.text})")
    match kind:
        case "exactly":
            return forms.test(term, "=", operand)
        case "prefix":
            return forms.test(term, "startswith", operand)
        case "suffix":
            return forms.test(term, "endswith", operand)
        case "prefix without case":
            return forms.test(without_case, "startswith", operand.lower())
        case "suffix without case":
            return forms.test(without_case, "endswith", operand.lower())
        case "equals-ignore-case":
            return forms.test(without_case, "=", operand.lower())
        case "cidr":
            return cidr.in_block(term, operand)
    return forms.like(term, _wildcard_parts(path, operand))


def _wildcard_parts(path: str, text: str) -> Iterator[Any]:
    for token in re.findall(r"\\.?|\*|[^\\*]+", text, re.DOTALL):
        if token.startswith("\\") and token not in ("\\\\", "\\*"):
            raise _refuse("wildcard", path)
        yield forms.ANY_TEXT if token == "*" else token.removeprefix("\\") if len(token) == 2 else token
