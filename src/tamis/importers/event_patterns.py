"""Event patterns of Amazon EventBridge and Event Ruler: `{"total": [{"numeric": [">", 100]}]}`.

Fields are joined by AND, the alternatives of a field by OR. A value of an event may be an array: then
Event Ruler looks at its elements. Here equality does too (`array_contains`); other tests look at single
values only, and the rule has a note. Case is ignored as `lower` does it, which is the same for ASCII.

Differences: null and absent are the same here, so patterns that tell them apart are refused; the fields
of an array of records are not reached (`records_in_arrays`); numbers are exact here, and rounded to six
digits there.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from tamis.errors import TamisError
from tamis.importers import cidr, forms, records_in_arrays
from tamis.importers.forms import Term
from tamis.importers.report import ImportedRule, NotCarriedOverError, Report, gather
from tamis.importers.two_valued import Form, not_true

NOT_CARRIED_OVER = {
    records_in_arrays.FEATURE: records_in_arrays.REASON,
    "null": "null and absent are the same here, and a pattern of null wants the first",
    "cidr": "it is no block of addresses",
    "numeric": "it is not a list of comparisons and numbers",
    "wildcard": "a backslash stands before something else than * or a backslash",
    "a field beside and inside $or": "Event Ruler takes the inner alternatives instead of both",
    "an unknown match": "Event Ruler has no match of that name",
    "an invalid pattern": "a field is a record of fields or a list of alternatives",
}
"""Every feature that is refused, with the reason."""

_ONE_VALUE = "tests one value: where an event has an array there, its elements are not looked at"
_COMPARISONS = frozenset({"<", "<=", ">", ">=", "="})


def convert(
    id: str, pattern: Mapping[str, Any] | str, arrays_of_records: Collection[str] | None = None
) -> ImportedRule:
    """One pattern, as a record or as JSON text.

    `arrays_of_records` names the attributes of events that hold arrays of records: a pattern that looks
    inside one is refused. Where it is not given, every pattern that looks inside records has a note.

    >>> str(convert("a", {"detail": {"state": [{"anything-but": "ok"}]}}).expression)
    "(concat(detail.state) IS NOT NULL OR ...) AND (detail.state = 'ok') IS NOT TRUE"
    """
    notes: list[str] = []
    try:
        parsed = json.loads(pattern) if isinstance(pattern, str) else pattern
        _check_fields("", parsed, frozenset())
        form = forms.all_of(_fields("", parsed, notes))
        expression = forms.expression(form)
        notes += records_in_arrays.notes_on(expression, arrays_of_records)
        return ImportedRule(id, expression, notes=tuple(dict.fromkeys(notes)))
    except NotCarriedOverError as refused:
        return ImportedRule(id, None, refused)
    except (TamisError, ValueError) as error:
        message = str(error).splitlines()[0]
        return ImportedRule(id, None, NotCarriedOverError("an invalid pattern", message))


def read(
    patterns: Mapping[str, Any] | Iterable[tuple[str, Any]],
    arrays_of_records: Collection[str] | None = None,
) -> Report:
    """Many patterns by their ids.

    >>> report = read({"a": {"x": [1, 2]}, "b": {"x": [None]}})
    >>> print(report)
    1 of 2 rules imported
    1 refused because of null: null and absent are the same here, and a pattern of null wants the first
    """
    pairs = patterns.items() if isinstance(patterns, Mapping) else patterns
    return gather(convert(id, pattern, arrays_of_records) for id, pattern in pairs)


def _refuse(feature: str, where: str) -> NotCarriedOverError:
    return NotCarriedOverError(feature, NOT_CARRIED_OVER[feature], where)


def _fields(path: str, pattern: Any, notes: list[str]) -> Iterator[Form]:
    if not isinstance(pattern, Mapping) or not pattern:
        raise _refuse("an invalid pattern", path)
    for name, wanted in pattern.items():
        inside = f"{path}.{name}" if path else name
        if name == "$or" and _are_patterns(wanted):
            yield forms.any_of(forms.all_of(_fields(path, part, notes)) for part in wanted)
        elif isinstance(wanted, Mapping):
            yield from _fields(inside, wanted, notes)
        elif isinstance(wanted, list) and wanted:
            yield _alternatives(inside, wanted, notes)
        else:
            raise _refuse("an invalid pattern", inside)


def _check_fields(path: str, pattern: Any, outside: frozenset[str]) -> None:
    """Raise if a field stands beside and inside an `$or`."""
    if not isinstance(pattern, Mapping):
        return
    beside = outside | set(_paths(path, pattern))
    for name, wanted in pattern.items():
        inside = f"{path}.{name}" if path else name
        if name == "$or" and _are_patterns(wanted):
            for part in wanted:
                if repeated := beside & set(_paths(path, part)):
                    raise _refuse("a field beside and inside $or", min(repeated))
                _check_fields(path, part, beside)
        else:
            _check_fields(inside, wanted, beside)


def _paths(path: str, pattern: Mapping[str, Any]) -> Iterator[str]:
    for name, wanted in pattern.items():
        inside = f"{path}.{name}" if path else name
        if isinstance(wanted, Mapping):
            yield from _paths(inside, wanted)
        elif name != "$or":
            yield inside


def _are_patterns(wanted: Any) -> bool:
    return isinstance(wanted, list) and len(wanted) > 1 and all(isinstance(part, Mapping) for part in wanted)


def _alternatives(path: str, wanted: list[Any], notes: list[str]) -> Form:
    term = forms.attribute(path)
    values = [value for value in wanted if not isinstance(value, Mapping)]
    if None in values:
        raise _refuse("null", path)
    if any(isinstance(value, list) for value in values):
        raise _refuse("an invalid pattern", path)
    matches = [match for match in wanted if isinstance(match, Mapping)]
    return forms.any_of(
        [forms.equals_or_holds(term, values), *(_match(path, term, match, notes) for match in matches)]
    )


def _match(path: str, term: Term, match: Mapping[str, Any], notes: list[str]) -> Form:
    if len(match) != 1:
        raise _refuse("an invalid pattern", path)
    [(kind, operand)] = match.items()
    if kind == "exists":
        present = _is_leaf(term)
        return present if operand else not_true(present)
    if kind == "anything-but":
        notes.append(f"{path}: {kind} {_ONE_VALUE}")
        return forms.all_of([_is_leaf(term), not_true(_excluded(path, term, operand))])
    if kind == "numeric":
        notes.append(f"{path}: {kind} {_ONE_VALUE}")
        return _numeric(path, term, operand)
    if kind not in ("prefix", "suffix", "equals-ignore-case", "wildcard", "cidr"):
        raise NotCarriedOverError(kind, NOT_CARRIED_OVER["an unknown match"], path)
    notes.append(f"{path}: {kind} {_ONE_VALUE}")
    return _text(path, term, kind, operand)


def _is_leaf(term: Term) -> Form:
    """A value of its own, no record; Event Ruler sees nothing in an empty array."""
    name = term.text
    return forms.any_of(
        [
            forms.is_not_null(Term(f"concat({name})")),
            forms.is_not_null(Term(f"{name} + 0")),
            forms.test(term, "IN", True, False),
            forms.test(Term(f"size({name})"), ">", 0),
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
