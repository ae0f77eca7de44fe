"""Elasticsearch queries: `{"bool": {"filter": [{"term": {"country": "CA"}}]}}`.

Filters are carried over: `bool` with `minimum_should_match`, `term`, `terms`, `range`, `prefix`, `wildcard`,
`regexp`, `exists`, `nested`, `match_all`, `match_none`, `constant_score`, `dis_max`, `boosting`. Queries on
analysed text are not, because an expression sees values, not words. Fields are treated as keywords, numbers,
booleans, and dates as strings; a mapping is not read. Case is ignored with `lower`.

A field of several values matches in Elasticsearch if one of them does, and the objects of an array are
flattened: each test may be satisfied by a different object. Only a `nested` query requires one object to
satisfy all of its tests. If the caller names the fields that hold arrays, quantifiers express this
(`elements`). Otherwise `term` and `terms` look into arrays of values, other queries do not, and the rule has
a note. The path of a `nested` query need not be named.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import floor
from typing import Any

from tamis.importers import forms
from tamis.importers.elements import Scope, outer
from tamis.importers.forms import Term
from tamis.importers.report import OF_ANY_FORMAT, ImportedRule, NotCarriedOverError, Report, attempt, gather
from tamis.importers.shape import check_shape
from tamis.importers.two_valued import Form, not_true

_TEXT = "it searches analysed text, but expressions see values"

NOT_CARRIED_OVER = {
    **OF_ANY_FORMAT,
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
    "a field outside of the nested path": "a nested query sees the objects at its path and nothing else",
    "a field of nested objects": "it is used outside a nested query, where it finds nothing",
    "has_child": "it joins documents",
    "has_parent": "it joins documents",
    "parent_id": "it joins documents",
    "percolate": "it holds queries itself",
    "script": "it runs a program",
    "script_score": "it runs a program",
    "terms_set": "it takes the number from a field or a program",
    "terms lookup": "it reads another document",
    **dict.fromkeys(("geo_shape", "shape"), "geo queries are not converted"),
    **dict.fromkeys(
        ("geo_distance", "geo_bounding_box", "geo_polygon", "geo_grid", "distance_feature"),
        "geo queries are not converted",
    ),
    **dict.fromkeys(
        ("knn", "sparse_vector", "semantic", "text_expansion", "weighted_tokens"), "Tamis has no vectors"
    ),
    **dict.fromkeys(
        (
            "span_containing",
            "span_field_masking",
            "span_first",
            "span_multi",
            "span_near",
            "span_not",
            "span_or",
            "span_term",
            "span_within",
            "common",
            "type",
        ),
        _TEXT,
    ),
    **dict.fromkeys(("rank_feature", "pinned", "rule"), "it changes the order of documents"),
    "wrapper": "its query is hidden in Base64; write it out",
    "function_score with min_score": "it filters by a computed score",
    "a search body": "besides `query`, it has parts that change which documents are found",
    "a pattern of fields": "a star in the name of a field stands for several fields",
    "minimum_should_match": "it is neither a number nor a share",
    "ids": "an event has no id of its own",
    "date math": "`now` and rounding are not converted",
    "range with format or time_zone": "dates are compared as they are written",
    "range with relation": "ranges of ranges are not values",
    "range with from or to": "Elasticsearch no longer supports them; write gt, gte, lt and lte",
    "regexp": "Lucene's operators ~ < > & @ # and classes inside of classes have no counterpart",
    "an unknown query": "Elasticsearch has no query of that name",
    "an invalid query": "it does not follow the documentation",
}
"""Every feature that is refused, with the reason."""


def convert(id: str, query: Mapping[str, Any] | str, arrays: Collection[str] | None = None) -> ImportedRule:
    """One query, as a record or as JSON text; a whole search body with `query` will do.

    `arrays` names the fields that hold arrays, of values or of objects, as dotted paths. Where it is not
    given, the rule has a note on every test that does not look into an array.

    >>> str(convert("a", {"bool": {"must_not": {"prefix": {"name": "test-"}}}}).expression)
    "(startswith(name, 'test-')) IS NOT TRUE"
    >>> str(convert("b", {"range": {"prices": {"gt": 5}}}, arrays=["prices"]).expression)
    'any(prices, element -> element > 5)'
    >>> nested = {"nested": {"path": "items", "query": {"range": {"items.price": {"gt": 5}}}}}
    >>> str(convert("c", nested).expression)
    'exists(items, element -> element.price > 5) OR items.price > 5'
    """

    def converted() -> ImportedRule:
        scope = Scope.of(arrays)
        parsed = check_shape(json.loads(query) if isinstance(query, str) else query)
        if set(parsed) >= {"query"} and isinstance(parsed["query"], Mapping):
            if changing := _CHANGE_WHAT_IS_FOUND & parsed.keys():
                raise _refuse("a search body", min(changing))
            parsed = parsed["query"]
        form = _query("", parsed, _Context(scope, frozenset(_nested_paths(parsed))))
        return ImportedRule(id, forms.expression(form), notes=tuple(dict.fromkeys(scope.notes)))

    return attempt(id, "an invalid query", NOT_CARRIED_OVER["an invalid query"], converted)


def read(
    queries: Mapping[str, Any] | Iterable[tuple[str, Any]], arrays: Collection[str] | None = None
) -> Report:
    """Many queries by their ids.

    >>> report = read({"a": {"term": {"x": 1}}, "b": {"match": {"body": "two words"}}})
    >>> print(report)
    1 of 2 rules imported
    1 refused because of match: it searches analysed text, but expressions see values
    refused: b
    """
    pairs = queries.items() if isinstance(queries, Mapping) else queries
    return gather(convert(id, query, arrays) for id, query in pairs)


@dataclass(frozen=True)
class _Context:
    """Where a query stands: in which scope, and inside which nested query."""

    scope: Scope
    nested_paths: frozenset[str]
    """The paths of all nested queries of the rule."""
    nested_in: str = ""

    def some_value(self, where: str, field: str, kind: str, test: "_Test") -> Form:
        """What is true of one of the values of a field."""
        if self.nested_in and field != self.nested_in and not field.startswith(self.nested_in + "."):
            raise _refuse("a field outside of the nested path", f"{where}.{field}")
        if any(len(name) > len(self.nested_in) for name in self.nested_paths.intersection(outer(field))):
            raise _refuse("a field of nested objects", f"{where}.{field}")
        if test.of_unnamed is None:
            self.scope.note_one_value(field, kind)
        if test.note:
            self.scope.notes.append(f"{field}: {test.note}")
        return self.scope.some_value(field, test.of_value, test.of_unnamed, test.of_array)


@dataclass(frozen=True)
class _Test:
    """What must be true of a value; `of_unnamed`, of a field that may hold an array without being named."""

    of_value: Callable[[Term], Form]
    of_unnamed: Callable[[Term], Form] | None = None
    of_array: Callable[[Term], Form] | None = None
    """What must be true of a field that is named as an array, if that is not a test of its elements."""
    note: str = ""
    """In what the test differs."""


def _nested_paths(query: Any) -> Iterator[str]:
    if isinstance(query, Mapping):
        for kind, body in query.items():
            if kind == "nested" and isinstance(body, Mapping) and isinstance(body.get("path"), str):
                yield body["path"]
            yield from _nested_paths(body)
    elif isinstance(query, list):
        for part in query:
            yield from _nested_paths(part)


_CHANGE_WHAT_IS_FOUND = frozenset(
    {
        "post_filter",
        "min_score",
        "knn",
        "retriever",
        "slice",
        "collapse",
        "runtime_mappings",
        "terminate_after",
    }
)


def _refuse(feature: str, where: str) -> NotCarriedOverError:
    return NotCarriedOverError(feature, NOT_CARRIED_OVER[feature], where)


def _query(path: str, query: Any, context: _Context) -> Form:
    if not isinstance(query, Mapping) or len(query) != 1:
        raise _refuse("an invalid query", path)
    [(kind, body)] = query.items()
    where = f"{path}.{kind}" if path else str(kind)
    if kind in _COMPOUND:
        return _COMPOUND[kind](where, body, context)
    if kind in _LEAVES:
        field, options = _field(where, body)
        return context.some_value(where, field, kind, _LEAVES[kind](where, options))
    if kind == "match_all":
        return True
    if kind == "match_none":
        return False
    if kind in NOT_CARRIED_OVER:
        raise _refuse(kind, where)
    raise NotCarriedOverError(str(kind), NOT_CARRIED_OVER["an unknown query"], where)


# --- compound queries ------------------------------------------------------------------------------


def _bool(where: str, body: Any, context: _Context) -> Form:
    if not isinstance(body, Mapping):
        raise _refuse("an invalid query", where)
    known = {"must", "filter", "should", "must_not", "minimum_should_match", "boost", "_name"}
    if unknown := set(body) - known:
        raise NotCarriedOverError(min(unknown), NOT_CARRIED_OVER["an invalid query"], where)

    def clauses(name: str) -> list[Form]:
        given = body.get(name, [])
        listed = given if isinstance(given, list) else [given]
        return [_query(f"{where}.{name}[{at}]", part, context) for at, part in enumerate(listed)]

    required = [*clauses("must"), *clauses("filter")]
    optional = clauses("should")
    excluded = [not_true(clause) for clause in clauses("must_not")]
    if not (required or optional or excluded):
        return True
    asked = body.get("minimum_should_match")
    needed = 0 if asked is None else _needed(where, asked, len(optional))
    if optional and not required:
        needed = max(needed, 1)  # also where 0 is asked for: something must make the document match
    return forms.all_of([*required, forms.at_least(needed, optional), *excluded])


def _needed(where: str, asked: Any, count: int) -> int:
    """How many of the optional clauses must match: `2`, `-1`, `75%`, `-25%`, `3<90%`, `2<-25% 9<-3`.

    It may be more than there are: then nothing matches.
    """
    text = re.sub(r"\s*<\s*", "<", str(asked).strip())
    if "<" in text:
        chosen = count
        for condition in text.split():
            limit, _, then = condition.partition("<")
            if count <= int(limit):
                break
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
        raise NotCarriedOverError(
            "minimum_should_match", f"{asked!r} is neither a number nor a share", where
        ) from None
    return max(number, 0)


_Compound = Callable[[str, Any, _Context], Form]


def _inner(name: str) -> _Compound:
    def inner(where: str, body: Any, context: _Context) -> Form:
        if not isinstance(body, Mapping) or name not in body:
            raise _refuse("an invalid query", where)
        return _query(f"{where}.{name}", body[name], context)

    return inner


def _dis_max(where: str, body: Any, context: _Context) -> Form:
    if not isinstance(body, Mapping) or not isinstance(body.get("queries"), list):
        raise _refuse("an invalid query", where)
    return forms.any_of(
        _query(f"{where}.queries[{at}]", part, context) for at, part in enumerate(body["queries"])
    )


def _exists(where: str, body: Any, context: _Context) -> Form:
    if not isinstance(body, Mapping) or not isinstance(body.get("field"), str):
        raise _refuse("an invalid query", where)

    if "*" in body["field"]:
        raise _refuse("a pattern of fields", where)

    def is_present(term: Term) -> Form:
        """A value or a record, or an array that holds one of them; null is none."""
        no_array = forms.is_null(Term(f"size({term.text})"))
        one = forms.quantified("exists", term, "element", forms.is_not_null(forms.attribute("element")))
        return forms.any_of([forms.all_of([forms.is_not_null(term), no_array]), one])

    return context.some_value(
        where, body["field"], "exists", _Test(is_present, is_present, of_array=is_present)
    )


_NESTED_OPTIONS = frozenset(
    {"path", "query", "score_mode", "ignore_unmapped", "inner_hits", "boost", "_name"}
)


def _nested(where: str, body: Any, context: _Context) -> Form:
    if not isinstance(body, Mapping) or not {"path", "query"} <= body.keys() <= _NESTED_OPTIONS:
        raise _refuse("an invalid query", where)
    path = body["path"]
    if not isinstance(path, str) or not path:
        raise _refuse("an invalid query", where)
    if context.nested_in and not path.startswith(context.nested_in + "."):
        raise _refuse("a field outside of the nested path", f"{where}.{path}")

    known = (context.scope.arrays or frozenset()) | context.nested_paths
    around = [name for name in outer(path) if len(name) > len(context.nested_in) and name in known]
    return _inside(
        context.scope,
        [*around, path],
        lambda scope: _query(f"{where}.query", body["query"], replace(context, scope=scope, nested_in=path)),
    )


def _inside(scope: Scope, arrays: list[str], body: Callable[[Scope], Form]) -> Form:
    """What is true of one element of the innermost of some arrays."""
    if not arrays:
        return body(scope)
    return scope.some_element(arrays[0], lambda element: _inside(element, arrays[1:], body))


def _function_score(where: str, body: Any, context: _Context) -> Form:
    if isinstance(body, Mapping) and "min_score" in body:
        raise NotCarriedOverError("function_score with min_score", "it filters by a computed score", where)
    return _query(f"{where}.query", body["query"], context) if "query" in body else True


_COMPOUND: dict[str, _Compound] = {
    "bool": _bool,
    "constant_score": _inner("filter"),
    "boosting": _inner("positive"),
    "dis_max": _dis_max,
    "function_score": _function_score,
    "exists": _exists,
    "nested": _nested,
}


# --- queries about one field -----------------------------------------------------------------------


def _field(where: str, body: Any) -> tuple[str, Any]:
    options = {"boost", "_name", "case_insensitive"}
    fields = [name for name in body if name not in options] if isinstance(body, Mapping) else []
    if len(fields) != 1:
        raise _refuse("an invalid query", where)
    return fields[0], body[fields[0]]


_OPTIONS = frozenset(
    {"boost", "_name", "case_insensitive", "rewrite", "flags", "flags_value", "max_determinized_states"}
)
"""What a query about one field may have beside its value; all but one of them change nothing here."""


def _value(where: str, options: Any, *names: str) -> tuple[Any, bool]:
    """The value, and whether case is ignored; `{"term": {"x": 1}}` is short for a record with `value`."""
    if not isinstance(options, Mapping):
        return options, False
    given = [options[name] for name in names if name in options]
    without_case = options.get("case_insensitive", False)
    if len(given) != 1 or options.keys() - _OPTIONS - set(names) or str(without_case).lower() not in _TRUTHS:
        raise _refuse("an invalid query", where)
    return given[0], _TRUTHS[str(without_case).lower()]


_TRUTHS = {"true": True, "false": False}


def _term(where: str, options: Any) -> _Test:
    value, without_case = _value(where, options, "value")
    if value is None or isinstance(value, list | dict):
        raise _refuse("an invalid query", where)
    if without_case and isinstance(value, str):
        return _Test(lambda term: forms.test(_lower(term), "=", value.lower()))
    return _one_of([value])


def _terms(where: str, options: Any) -> _Test:
    if isinstance(options, Mapping):
        raise _refuse("terms lookup", where)
    if not isinstance(options, list) or not all(isinstance(value, str | int | float) for value in options):
        raise _refuse("an invalid query", where)
    return _one_of(options)


def _one_of(values: list[Any]) -> _Test:
    return _Test(
        lambda term: forms.one_of(term, values), of_unnamed=lambda term: forms.equals_or_holds(term, values)
    )


def _range(where: str, options: Any) -> _Test:
    if not isinstance(options, Mapping):
        raise _refuse("an invalid query", where)
    if "relation" in options:
        raise _refuse("range with relation", where)
    if "format" in options or "time_zone" in options:
        raise _refuse("range with format or time_zone", where)
    if options.keys() & {"from", "to", "include_lower", "include_upper"}:
        raise _refuse("range with from or to", where)
    if options.keys() - {"gt", "gte", "lt", "lte", "boost", "_name"}:
        raise _refuse("an invalid query", where)
    bounds: list[tuple[str, Any]] = []
    for name, operator in (("gt", ">"), ("gte", ">="), ("lt", "<"), ("lte", "<=")):
        bound = options.get(name)
        if bound is None:
            continue
        if isinstance(bound, str) and (bound.startswith("now") or "||" in bound):
            raise _refuse("date math", where)
        bounds.append((operator, bound))
    if not bounds:
        return _Test(forms.is_not_null)
    is_date = any(isinstance(bound, str) and _DATE.match(bound) for _, bound in bounds)
    return _Test(
        lambda term: forms.all_of(forms.test(term, operator, bound) for operator, bound in bounds),
        note="a date is compared as text; a day as an upper bound ends as it begins" if is_date else "",
    )


_DATE = re.compile(r"\d{4}-\d\d")


def _lower(term: Term) -> Term:
    return Term(f"lower({term.text})")


def _in_text(where: str, options: Any, test: Callable[[Term, str], Form], *names: str) -> _Test:
    """A test of a text, with or without case."""
    value, without_case = _value(where, options, *names)
    if not isinstance(value, str):
        raise _refuse("an invalid query", where)
    if without_case:
        return _Test(lambda term: test(_lower(term), value.lower()))
    return _Test(lambda term: test(term, value))


def _prefix(where: str, options: Any) -> _Test:
    return _in_text(
        where, options, lambda term, text: forms.test(term, "startswith", text), "value", "prefix"
    )


def _wildcard(where: str, options: Any) -> _Test:
    return _in_text(
        where, options, lambda term, text: forms.like(term, _wildcard_parts(text)), "value", "wildcard"
    )


def _wildcard_parts(text: str) -> Iterator[Any]:
    for token in re.findall(r"\\.|[*?]|[^\\*?]+|\\", text, re.DOTALL):
        if token == "*":
            yield forms.ANY_TEXT
        elif token == "?":
            yield forms.ANY_CHARACTER
        else:
            yield token[1:] if token.startswith("\\") and len(token) == 2 else token


def _regexp(where: str, options: Any) -> _Test:
    text, without_case = _value(where, options, "value")
    if not isinstance(text, str):
        raise _refuse("an invalid query", where)
    literal = re.sub(r"\\.|\[(?:\\.|[^\]])*\]", "", text)
    if any(character in literal for character in '~<>&@#"'):
        raise _refuse("regexp", where)
    if re.search(r"\[(?:\\.|[^\]\\])*\\[dDsSwW]", text):
        raise _refuse("regexp", where)  # a class inside of a class depends on the version
    # Lucene has no anchors, and few classes: ^, $ and other letters stand for themselves.
    plain = re.sub(r"\\([A-Za-z])", lambda found: _CLASSES.get(found[1], found[1]), text)
    plain = re.sub(r"(\\.|\[(?:\\.|[^\]])*\])|([\^$])", lambda found: found[1] or "\\" + found[2], plain)
    flags = "(?is)" if without_case else "(?s)"
    return _Test(lambda term: forms.test(term, "RLIKE", f"{flags}^(?:{plain})$"))


_CLASSES = {
    "d": "[0-9]",
    "D": "[^0-9]",
    "s": r"[ \t\n\r]",
    "S": r"[^ \t\n\r]",
    "w": "[a-zA-Z_0-9]",
    "W": "[^a-zA-Z_0-9]",
}
"""Lucene's classes of characters, which are ASCII's."""

_LEAVES: dict[str, Callable[[str, Any], _Test]] = {
    "term": _term,
    "terms": _terms,
    "range": _range,
    "prefix": _prefix,
    "wildcard": _wildcard,
    "regexp": _regexp,
}
