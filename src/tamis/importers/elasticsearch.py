"""Elasticsearch queries: `{"bool": {"filter": [{"term": {"country": "CA"}}]}}`.

What filters is carried over: `bool` with `minimum_should_match`, `term`, `terms`, `range`, `prefix`,
`wildcard`, `regexp`, `exists`, `match_all`, `match_none`, `constant_score`, `dis_max`,
`boosting`. What searches analysed text is not, because an expression sees values and no words. Fields
are taken for keywords, numbers, booleans and dates as strings; a mapping is not read. Case is ignored as
`lower` does it.

Difference: a field of several values matches in Elasticsearch if one of them does. Here `term` and
`terms` look into arrays; other queries look at single values, and the rule has a note. The
fields of objects in an array are not reached (`records_in_arrays`).
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from math import floor
from typing import Any

from tamis.errors import TamisError
from tamis.importers import forms, records_in_arrays
from tamis.importers.forms import Term
from tamis.importers.report import ImportedRule, NotCarriedOverError, Report, gather
from tamis.importers.two_valued import Form, not_true

_TEXT = "it searches analysed text, and expressions see values"
_RECORDS = "it is about the records of an array: it needs a quantifier, which importers do not write yet"

NOT_CARRIED_OVER = {
    records_in_arrays.FEATURE: records_in_arrays.REASON,
    **dict.fromkeys(
        (
            "match",
            "match_phrase",
            "match_phrase_prefix",
            "match_bool_prefix",
            "multi_match",
            "combined_fields",
            "query_string",
            "simple_query_string",
            "intervals",
            "more_like_this",
            "fuzzy",
        ),
        _TEXT,
    ),
    "nested": _RECORDS,
    "has_child": "it joins documents",
    "has_parent": "it joins documents",
    "parent_id": "it joins documents",
    "percolate": "it holds queries itself",
    "script": "it runs a program",
    "script_score": "it runs a program",
    "terms_set": "it takes the number from a field or a program",
    "terms lookup": "it reads another document",
    "geo_shape": "there are no shapes",
    "geo_distance": "there are no places",
    "geo_bounding_box": "there are no places",
    "knn": "there are no vectors",
    "ids": "an event has no id of its own",
    "date math": "`now` and rounding change with time, and a stored expression does not",
    "range with format or time_zone": "dates are compared as they are written",
    "range with relation": "ranges of ranges are not values",
    "regexp": "Lucene's operators ~ < > & @ # have no counterpart",
    "an unknown query": "Elasticsearch has no query of that name",
    "an invalid query": "it is not written as the documentation says",
}
"""Every feature that is refused, with the reason."""

_ONE_VALUE = "tests one value: where a document has several there, they are not looked at"


def convert(
    id: str, query: Mapping[str, Any] | str, arrays_of_records: Collection[str] | None = None
) -> ImportedRule:
    """One query, as a record or as JSON text; a whole search body with `query` will do.

    `arrays_of_records` names the fields that hold arrays of objects: a query that looks inside one is
    refused. Where it is not given, every query that looks inside objects has a note.

    >>> str(convert("a", {"bool": {"must_not": {"prefix": {"name": "test-"}}}}).expression)
    "(startswith(name, 'test-')) IS NOT TRUE"
    """
    notes: list[str] = []
    try:
        parsed = json.loads(query) if isinstance(query, str) else query
        if set(parsed) >= {"query"} and isinstance(parsed["query"], Mapping):
            parsed = parsed["query"]
        form = _query("", parsed, notes)
        expression = forms.expression(form)
        notes += records_in_arrays.notes_on(expression, arrays_of_records)
        return ImportedRule(id, expression, notes=tuple(dict.fromkeys(notes)))
    except NotCarriedOverError as refused:
        return ImportedRule(id, None, refused)
    except (TamisError, ValueError, TypeError) as error:
        message = str(error).splitlines()[0]
        return ImportedRule(id, None, NotCarriedOverError("an invalid query", message))


def read(
    queries: Mapping[str, Any] | Iterable[tuple[str, Any]],
    arrays_of_records: Collection[str] | None = None,
) -> Report:
    """Many queries by their ids.

    >>> report = read({"a": {"term": {"x": 1}}, "b": {"match": {"body": "two words"}}})
    >>> print(report)
    1 of 2 rules imported
    1 refused because of match: it searches analysed text, and expressions see values
    """
    pairs = queries.items() if isinstance(queries, Mapping) else queries
    return gather(convert(id, query, arrays_of_records) for id, query in pairs)


def _refuse(feature: str, where: str) -> NotCarriedOverError:
    return NotCarriedOverError(feature, NOT_CARRIED_OVER[feature], where)


def _query(path: str, query: Any, notes: list[str]) -> Form:
    if not isinstance(query, Mapping) or len(query) != 1:
        raise _refuse("an invalid query", path)
    [(kind, body)] = query.items()
    where = f"{path}.{kind}" if path else str(kind)
    if kind in _COMPOUND:
        return _COMPOUND[kind](where, body, notes)
    if kind in _LEAVES:
        field, options = _field(where, body)
        return _LEAVES[kind](where, field, options, notes)
    if kind == "match_all":
        return True
    if kind == "match_none":
        return False
    if kind in NOT_CARRIED_OVER:
        raise _refuse(kind, where)
    raise NotCarriedOverError(str(kind), NOT_CARRIED_OVER["an unknown query"], where)


# --- compound queries ------------------------------------------------------------------------------


def _bool(where: str, body: Any, notes: list[str]) -> Form:
    if not isinstance(body, Mapping):
        raise _refuse("an invalid query", where)
    known = {"must", "filter", "should", "must_not", "minimum_should_match", "boost", "_name"}
    if unknown := set(body) - known:
        raise NotCarriedOverError(min(unknown), NOT_CARRIED_OVER["an invalid query"], where)

    def clauses(name: str) -> list[Form]:
        given = body.get(name, [])
        listed = given if isinstance(given, list) else [given]
        return [_query(f"{where}.{name}[{at}]", part, notes) for at, part in enumerate(listed)]

    required = [*clauses("must"), *clauses("filter")]
    optional = clauses("should")
    default = 1 if optional and not required else 0
    needed = _needed(where, body.get("minimum_should_match", default), len(optional))
    excluded = [not_true(clause) for clause in clauses("must_not")]
    return forms.all_of([*required, forms.at_least(needed, optional), *excluded])


def _needed(where: str, asked: Any, count: int) -> int:
    """How many of the optional clauses must match: `2`, `-1`, `75%`, `-25%`, `3<90%`, `2<-25% 9<-3`."""
    if not count:
        return 0
    text = str(asked).strip()
    if "<" in text:
        chosen = count
        for condition in text.split():
            limit, _, then = condition.partition("<")
            if count > int(limit):
                chosen = _needed(where, then, count)
        return chosen
    try:
        if text.endswith("%"):
            share = int(text[:-1])
            part = floor(abs(share) * count / 100)
            number = part if share >= 0 else count - part
        else:
            number = int(text) if int(text) >= 0 else count + int(text)
    except ValueError:
        raise NotCarriedOverError("minimum_should_match", f"{asked!r} is no number or share", where) from None
    return max(number, 0)


def _inner(name: str) -> Callable[[str, Any, list[str]], Form]:
    def inner(where: str, body: Any, notes: list[str]) -> Form:
        if not isinstance(body, Mapping) or name not in body:
            raise _refuse("an invalid query", where)
        return _query(f"{where}.{name}", body[name], notes)

    return inner


def _dis_max(where: str, body: Any, notes: list[str]) -> Form:
    if not isinstance(body, Mapping) or not isinstance(body.get("queries"), list):
        raise _refuse("an invalid query", where)
    return forms.any_of(
        _query(f"{where}.queries[{at}]", part, notes) for at, part in enumerate(body["queries"])
    )


def _exists(where: str, body: Any, notes: list[str]) -> Form:
    if not isinstance(body, Mapping) or not isinstance(body.get("field"), str):
        raise _refuse("an invalid query", where)
    term = forms.attribute(body["field"])
    # An empty array holds no value.
    return forms.all_of([forms.is_not_null(term), not_true(forms.test(Term(f"size({term.text})"), "=", 0))])


def _function_score(where: str, body: Any, notes: list[str]) -> Form:
    if isinstance(body, Mapping) and "min_score" in body:
        raise NotCarriedOverError("function_score with min_score", "it filters by a computed score", where)
    return _query(f"{where}.query", body["query"], notes) if "query" in body else True


_COMPOUND: dict[str, Callable[[str, Any, list[str]], Form]] = {
    "bool": _bool,
    "constant_score": _inner("filter"),
    "boosting": _inner("positive"),
    "dis_max": _dis_max,
    "function_score": _function_score,
    "exists": _exists,
}


# --- queries about one field -----------------------------------------------------------------------


def _field(where: str, body: Any) -> tuple[Term, Any]:
    options = {"boost", "_name", "case_insensitive"}
    fields = [name for name in body if name not in options] if isinstance(body, Mapping) else []
    if len(fields) != 1:
        raise _refuse("an invalid query", where)
    return forms.attribute(fields[0]), body[fields[0]]


def _value(where: str, options: Any, *names: str) -> tuple[Any, bool]:
    """The value, and whether case is ignored; `{"term": {"x": 1}}` is short for a record with `value`."""
    if not isinstance(options, Mapping):
        return options, False
    given = [options[name] for name in names if name in options]
    if not given:
        raise _refuse("an invalid query", where)
    return given[0], bool(options.get("case_insensitive", False))


def _term(where: str, field: Term, options: Any, notes: list[str]) -> Form:
    value, without_case = _value(where, options, "value")
    if value is None or isinstance(value, list | dict):
        raise _refuse("an invalid query", where)
    if without_case and isinstance(value, str):
        notes.append(f"{field.name}: term without case {_ONE_VALUE}")
        return forms.test(Term(f"lower({field.text})"), "=", value.lower())
    return forms.equals_or_holds(field, [value])


def _terms(where: str, field: Term, options: Any, notes: list[str]) -> Form:
    if isinstance(options, Mapping):
        raise _refuse("terms lookup", where)
    if not isinstance(options, list) or not all(isinstance(value, str | int | float) for value in options):
        raise _refuse("an invalid query", where)
    return forms.equals_or_holds(field, options)


def _range(where: str, field: Term, options: Any, notes: list[str]) -> Form:
    if not isinstance(options, Mapping):
        raise _refuse("an invalid query", where)
    if "relation" in options:
        raise _refuse("range with relation", where)
    if "format" in options or "time_zone" in options:
        raise _refuse("range with format or time_zone", where)
    notes.append(f"{field.name}: range {_ONE_VALUE}")
    bounds: list[Form] = [forms.is_not_null(field)]
    for name, operator in (("gt", ">"), ("gte", ">="), ("lt", "<"), ("lte", "<=")):
        bound = options.get(name)
        if bound is None:
            continue
        if isinstance(bound, str) and (bound.startswith("now") or "||" in bound):
            raise _refuse("date math", where)
        bounds.append(forms.test(field, operator, bound))
    return forms.all_of(bounds[1:] or bounds)


def _with_case(field: Term, text: str, without_case: bool) -> tuple[Term, str]:
    return (Term(f"lower({field.text})"), text.lower()) if without_case else (field, text)


def _text(where: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _refuse("an invalid query", where)
    return value


def _prefix(where: str, field: Term, options: Any, notes: list[str]) -> Form:
    value, without_case = _value(where, options, "value", "prefix")
    notes.append(f"{field.name}: prefix {_ONE_VALUE}")
    term, text = _with_case(field, _text(where, value), without_case)
    return forms.test(term, "startswith", text)


def _wildcard(where: str, field: Term, options: Any, notes: list[str]) -> Form:
    value, without_case = _value(where, options, "value", "wildcard")
    notes.append(f"{field.name}: wildcard {_ONE_VALUE}")
    term, text = _with_case(field, _text(where, value), without_case)
    return forms.like(term, _wildcard_parts(text))


def _wildcard_parts(text: str) -> Iterator[Any]:
    for token in re.findall(r"\\.|[*?]|[^\\*?]+|\\", text, re.DOTALL):
        if token == "*":
            yield forms.ANY_TEXT
        elif token == "?":
            yield forms.ANY_CHARACTER
        else:
            yield token[1:] if token.startswith("\\") and len(token) == 2 else token


def _regexp(where: str, field: Term, options: Any, notes: list[str]) -> Form:
    value, without_case = _value(where, options, "value")
    text = _text(where, value)
    literal = re.sub(r"\\.|\[(?:\\.|[^\]])*\]", "", text)
    if any(character in literal for character in '~<>&@#"'):
        raise _refuse("regexp", where)
    notes.append(f"{field.name}: regexp {_ONE_VALUE}")
    # Lucene has no anchors and no classes such as \d: ^, $ and letters stand for themselves.
    plain = re.sub(r"\\([A-Za-z])", r"\1", text)
    plain = re.sub(r"(\\.|\[(?:\\.|[^\]])*\])|([\^$])", lambda found: found[1] or "\\" + found[2], plain)
    flags = "(?is)" if without_case else "(?s)"
    return forms.test(field, "RLIKE", f"{flags}^(?:{plain})$")


_LEAVES: dict[str, Callable[[str, Term, Any, list[str]], Form]] = {
    "term": _term,
    "terms": _terms,
    "range": _range,
    "prefix": _prefix,
    "wildcard": _wildcard,
    "regexp": _regexp,
}
