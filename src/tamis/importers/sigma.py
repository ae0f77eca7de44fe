"""Sigma rules (sigmahq.io), as a backend of pySigma, so that its processing pipelines rename fields as
usual.

Strings are compared case-insensitively, as Sigma requires, with `lower(field)`. A number also matches the
same number as text. Keywords are searched in every string of the event, or in the attributes that
`keywords_in` names. Filters apply to all rules that are read with them, in any file. `2 of selection*`, which
pySigma does not support, is expanded. A rule matches if one of its conditions does. Its level becomes the
priority (informational 0 to critical 4), its tags and log source become tags, its title the payload.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any, ClassVar

from tamis._extras import missing_extra
from tamis.errors import ExpressionError, TamisError
from tamis.importers import cidr, forms
from tamis.importers.deep_stack import with_deep_stack
from tamis.importers.forms import Term
from tamis.importers.report import (
    OF_ANY_FORMAT,
    ImportedRule,
    NotCarriedOverError,
    Report,
    gather,
    of_expression,
)
from tamis.importers.shape import check_parentheses
from tamis.importers.two_valued import Form, not_true

try:
    from sigma.collection import SigmaCollection
    from sigma.conversion.base import Backend
    from sigma.exceptions import SigmaError
    from sigma.filters import SigmaFilter
    from sigma.processing.pipeline import ProcessingPipeline
    from sigma.rule import SigmaRule
    from sigma.types import (
        CompareOperators,
        SigmaCasedString,
        SigmaRegularExpressionFlag,
        SigmaString,
        SpecialChars,
        TimestampPart,
    )
except ImportError as error:
    raise ImportError(missing_extra("the importer of Sigma", "importers")) from error

NOT_CARRIED_OVER = {
    "week": "there is no function for the week of a time",
    "fieldref with a modifier": "a term cannot start with, end with or contain another one",
    "a correlation": "it needs memory, but an expression sees one event",
    "a query expression": "it is written for another backend",
    "a placeholder": "its values are not in the rule; a pipeline replaces it",
    "a regular expression": "pySigma accepts it (RE2), but this engine does not",
    "N of": "it makes more than 200 combinations, or requires more searches than there are",
    "a filter": "it applies to none of the rules that are read with it",
    "an invalid rule": "pySigma cannot read it",
    **OF_ANY_FORMAT,
}
"""Every feature that is refused, with the reason."""

_LEVELS = {"informational": 0.0, "low": 1.0, "medium": 2.0, "high": 3.0, "critical": 4.0}
_FLAGS = {
    SigmaRegularExpressionFlag.IGNORECASE: "i",
    SigmaRegularExpressionFlag.MULTILINE: "m",
    SigmaRegularExpressionFlag.DOTALL: "s",
}
_COMPARISONS = {
    CompareOperators.LT: "<",
    CompareOperators.LTE: "<=",
    CompareOperators.GT: ">",
    CompareOperators.GTE: ">=",
}
_PARTS = {
    TimestampPart.MINUTE: "minute",
    TimestampPart.HOUR: "hour",
    TimestampPart.DAY: "day",
    TimestampPart.MONTH: "month",
    TimestampPart.YEAR: "year",
}


def convert(
    rule: str | dict[str, Any],
    *,
    keywords_in: Sequence[str] = (),
    pipeline: ProcessingPipeline | None = None,
) -> ImportedRule:
    """One rule, as YAML text or as a record.

    >>> rule = convert(
    ...     "title: Encoded\\nid: 4b0d1bd7-0000-4000-8000-000000000001\\n"
    ...     "logsource: {product: windows}\\n"
    ...     "detection: {s: {Image|endswith: powershell.exe}, f: {User: SYSTEM}, condition: s and not f}"
    ... )
    >>> print(rule.expression)
    endswith(lower(Image), 'powershell.exe') AND (lower(User) = 'system') IS NOT TRUE
    """
    report = read([rule], keywords_in=keywords_in, pipeline=pipeline)
    return report.rules[0]


def read(
    rules: Iterable[str | dict[str, Any] | Path],
    *,
    keywords_in: Sequence[str] = (),
    pipeline: ProcessingPipeline | None = None,
) -> Report:
    """Many rules, as YAML texts, records or paths of YAML files. A file may hold several rules.

    >>> len(read([]))
    0
    """
    backend = TamisBackend(pipeline, keywords_in=keywords_in)
    files = [_File.of(rule) for rule in rules]
    filters = [_Filter(found) for file in files for found in file.filters]
    return gather(
        (*(found for file in files for found in file.imported(backend, filters)), *_unused(filters))
    )


@dataclass
class _Filter:
    """Conditions that other rules get in addition."""

    filter: SigmaFilter
    was_used: bool = False

    def on(self, rule: SigmaRule) -> SigmaRule:
        """The rule with those conditions, if the filter is for it."""
        before = list(rule.detection.condition)
        filtered = self.filter.apply_on_rule(rule)
        assert isinstance(filtered, SigmaRule), "what was a rule stays one"
        self.was_used = self.was_used or filtered.detection.condition != before
        return filtered


def _unused(filters: list[_Filter]) -> Iterator[ImportedRule]:
    for one in filters:
        if not one.was_used:
            yield ImportedRule(str(one.filter.id or one.filter.title), None, _refuse("a filter"))


@dataclass(frozen=True)
class _File:
    """The rules of a text, a record or a file, or why they cannot be read."""

    name: str
    collection: SigmaCollection | None
    refused: NotCarriedOverError | None = None

    @classmethod
    def of(cls, rule: Any) -> "_File":
        name = str(rule) if isinstance(rule, Path) else "a rule"
        try:
            return cls(name, with_deep_stack(lambda: _collection(rule)))
        except RecursionError:
            return cls(name, None, _refuse("deep nesting"))
        except Exception as error:
            return cls(name, None, _invalid(error))

    @property
    def filters(self) -> list[SigmaFilter]:
        return [] if self.collection is None else [one for one in self.collection.filters if not one.errors]

    def imported(self, backend: "TamisBackend", filters: list[_Filter]) -> Iterator[ImportedRule]:
        if self.collection is None:
            yield ImportedRule(self.name, None, self.refused)
            return
        for rule in self.collection.rules:
            yield _imported(rule, self.name, backend, filters)
        of_rules = {id(error) for rule in self.collection.rules for error in rule.errors}
        for error in self.collection.errors:
            if id(error) not in of_rules:
                yield ImportedRule(self.name, None, _invalid(error))


def _collection(rule: Any) -> SigmaCollection:
    """The rules as they stand; filters apply to those of all files, later."""
    if isinstance(rule, dict):
        return SigmaCollection.from_dicts(
            [rule], collect_errors=True, collect_filters=True, resolve_references=False
        )
    text = rule.read_text(encoding="utf-8-sig") if isinstance(rule, Path) else rule
    return SigmaCollection.from_yaml(
        text, collect_errors=True, collect_filters=True, resolve_references=False
    )


def _imported(rule: Any, name: str, backend: "TamisBackend", filters: list[_Filter]) -> ImportedRule:
    id = str(rule.id or rule.title or name)
    if not isinstance(rule, SigmaRule):
        return ImportedRule(id, None, NotCarriedOverError("a correlation", NOT_CARRIED_OVER["a correlation"]))
    if rule.errors:
        return ImportedRule(id, None, _invalid(rule.errors[0]))
    try:
        _write_out_counts(rule)
        for one in filters:
            rule = one.on(rule)
        for condition in rule.detection.condition:
            check_parentheses(str(condition))
        expression = with_deep_stack(
            lambda: forms.expression(forms.any_of(backend.convert_rule(rule, "form")))
        )
    except NotCarriedOverError as refused:
        return ImportedRule(id, None, refused)
    except SigmaError as error:
        return ImportedRule(id, None, NotCarriedOverError("an invalid rule", _first_line(error)))
    except ExpressionError as error:
        return ImportedRule(id, None, of_expression("the rule", error))
    except TamisError as error:
        return ImportedRule(id, None, NotCarriedOverError("the rule", _first_line(error)))
    except RecursionError:
        return ImportedRule(id, None, _refuse("deep nesting"))
    source = rule.logsource
    parts = (("product", source.product), ("category", source.category), ("service", source.service))
    return ImportedRule(
        id,
        expression,
        tags=(
            *(f"{tag.namespace}.{tag.name}" for tag in rule.tags),
            *(f"{part}:{value}" for part, value in parts if value),
        ),
        priority=_LEVELS.get(str(rule.level).lower(), 0.0) if rule.level else 0.0,
        payload=json.dumps({"title": rule.title}).encode(),
    )


_COUNT = re.compile(r"\b(\d+)\s+of\s+(them\b|[\w*]+)")
_MOST_COMBINATIONS = 200


def _write_out_counts(rule: SigmaRule) -> None:
    """Write `2 of s*` as the combinations of two: pySigma knows `1 of` and `all of`."""
    conditions = [str(condition) for condition in rule.detection.condition]
    names = list(rule.detection.detections)
    written = [_COUNT.sub(lambda found: _combinations(found, names), text) for text in conditions]
    if written != conditions:
        rule.detection.condition = written
        rule.detection.__post_init__()  # parses the conditions


def _combinations(found: re.Match[str], names: list[str]) -> str:
    count, pattern = int(found[1]), found[2]
    if count < 2:
        return found[0]
    matched = re.compile(".*" if pattern == "them" else pattern.replace("*", ".*"))
    searches = [
        name
        for name in names
        if matched.fullmatch(name) and (pattern.startswith("_") or not name.startswith("_"))
    ]
    if count > len(searches) or comb(len(searches), count) > _MOST_COMBINATIONS:
        raise _refuse("N of", found[0])
    together = (f"({' and '.join(some)})" for some in combinations(searches, count))
    return f"({' or '.join(together)})"


def _invalid(error: Exception) -> NotCarriedOverError:
    return NotCarriedOverError("an invalid rule", _unreadable(error))


def _unreadable(error: Exception) -> str:
    """What pySigma or the reader of YAML say, with the place; their own slips say nothing to a user."""
    problem, mark = getattr(error, "problem", None), getattr(error, "problem_mark", None)
    if problem and mark is not None:
        return f"{problem} (line {mark.line + 1}, column {mark.column + 1})"
    if isinstance(error, OSError):
        return f"its file cannot be read: {error.strerror}"
    if isinstance(error, UnicodeDecodeError):
        return f"its file is not {error.encoding} text: {error.reason}"
    if isinstance(error, AttributeError | TypeError | LookupError):
        return NOT_CARRIED_OVER["an invalid rule"]
    return _first_line(error)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _refuse(feature: str, where: str = "") -> NotCarriedOverError:
    return NotCarriedOverError(feature, NOT_CARRIED_OVER[feature], where)


class TamisBackend(Backend):
    """A backend of pySigma: `TamisBackend(pipeline).convert(collection)` gives the texts of expressions.

    >>> from sigma.collection import SigmaCollection
    >>> text = "title: T\\nlogsource: {product: x}\\ndetection: {s: {a: [1, 2]}, condition: s}"
    >>> TamisBackend().convert(SigmaCollection.from_yaml(text))
    ["a = 1 OR a = '1' OR a = 2 OR a = '2'"]
    """

    name: ClassVar[str] = "Tamis expressions"
    formats: ClassVar[dict[str, str]] = {
        "default": "Text of expressions",
        "form": "The JSON form of expressions",
    }

    def __init__(
        self,
        processing_pipeline: ProcessingPipeline | None = None,
        collect_errors: bool = False,
        *,
        keywords_in: Sequence[str] = (),
        **backend_options: Any,
    ) -> None:
        """Take a pipeline, and the attributes in which keywords are looked for; without, in every string."""
        super().__init__(processing_pipeline, collect_errors, **backend_options)
        self._keywords_in = [forms.attribute(name) for name in keywords_in]

    # --- connectives -------------------------------------------------------------------------------

    def convert_condition_or(self, cond: Any, state: Any) -> Form:
        """OR."""
        return forms.any_of(self.convert_condition(part, state) for part in cond.args)

    def convert_condition_and(self, cond: Any, state: Any) -> Form:
        """AND."""
        return forms.all_of(self.convert_condition(part, state) for part in cond.args)

    def convert_condition_not(self, cond: Any, state: Any) -> Form:
        """NOT, which is true where an attribute is absent."""
        return not_true(self.convert_condition(cond.args[0], state))

    def convert_condition_as_in_expression(self, cond: Any, state: Any) -> Form:
        """Write the alternatives one by one; this backend asks for nothing else."""
        return self.convert_condition_or(cond, state)

    # --- a field and a value -----------------------------------------------------------------------

    def convert_condition_field_eq_val_str(self, cond: Any, state: Any) -> Form:
        """A text with wildcards, without regard to case."""
        term = forms.attribute(cond.field)
        parts = [part.lower() if isinstance(part, str) else part for part in _parts(cond.value, cond.field)]
        if parts == [forms.ANY_TEXT]:
            return forms.is_not_null(term)
        found = forms.like(Term(f"lower({term.text})"), parts)
        number = _number("".join(parts)) if all(isinstance(part, str) for part in parts) else None
        return found if number is None else forms.any_of([found, forms.test(term, "=", number)])

    def convert_condition_field_eq_val_str_case_sensitive(self, cond: Any, state: Any) -> Form:
        """A text with wildcards, as it is."""
        return forms.like(forms.attribute(cond.field), _parts(cond.value, cond.field))

    def convert_condition_field_eq_val_num(self, cond: Any, state: Any) -> Form:
        """A number, also as text."""
        term, number = forms.attribute(cond.field), cond.value.number
        return forms.any_of([forms.test(term, "=", number), forms.test(term, "=", str(number))])

    def convert_condition_field_eq_val_bool(self, cond: Any, state: Any) -> Form:
        """A truth, also as text."""
        term, wanted = forms.attribute(cond.field), bool(cond.value)
        as_text = forms.test(Term(f"lower({term.text})"), "=", str(wanted).lower())
        return forms.any_of([forms.test(term, "=", wanted), as_text])

    def convert_condition_field_eq_val_re(self, cond: Any, state: Any) -> Form:
        """A regular expression."""
        return _matches(forms.attribute(cond.field), _pattern(cond.value))

    def convert_condition_field_eq_val_cidr(self, cond: Any, state: Any) -> Form:
        """A block of addresses."""
        return cidr.in_block(forms.attribute(cond.field), str(cond.value.network))

    def convert_condition_field_compare_op_val(self, cond: Any, state: Any) -> Form:
        """A bound."""
        number = cond.value.number.number
        operator = _COMPARISONS.get(cond.value.op)
        term = forms.attribute(cond.field)
        if operator is None:  # not equal
            return not_true(forms.test(term, "=", number))
        return forms.test(term, operator, number)

    def convert_condition_field_eq_val_timestamp_part(self, cond: Any, state: Any) -> Form:
        """A part of a time."""
        part = _PARTS.get(cond.value.timestamp_part)
        if part is None:
            raise _refuse("week", cond.field)
        return forms.test(Term(f"{part}({forms.attribute(cond.field).text})"), "=", cond.value.number)

    def convert_condition_field_eq_field(self, cond: Any, state: Any) -> Form:
        """Two fields that are equal."""
        if cond.value.starts_with or cond.value.ends_with:
            raise _refuse("fieldref with a modifier", cond.field)
        one, other = forms.attribute(cond.field), forms.attribute(cond.value.field)
        return forms.any_of(
            [
                forms.holds(Term(f"lower({one.text}) = lower({other.text})")),
                forms.holds(Term(f"{one.text} = {other.text}")),
            ]
        )

    def convert_condition_field_eq_val_null(self, cond: Any, state: Any) -> Form:
        """Absent."""
        return forms.is_null(forms.attribute(cond.field))

    def convert_condition_field_exists(self, cond: Any, state: Any) -> Form:
        """Present."""
        return forms.is_not_null(forms.attribute(cond.field))

    def convert_condition_field_not_exists(self, cond: Any, state: Any) -> Form:
        """Absent."""
        return forms.is_null(forms.attribute(cond.field))

    def convert_condition_field_eq_query_expr(self, cond: Any, state: Any) -> Form:
        """Refuse."""
        raise _refuse("a query expression", cond.field)

    # --- values without a field --------------------------------------------------------------------

    def convert_condition_val_str(self, cond: Any, state: Any) -> Form:
        """A keyword, somewhere in the event or in the attributes that were named."""
        around = [forms.ANY_TEXT, *_parts(cond.value, "keywords"), forms.ANY_TEXT]
        if isinstance(cond.value, SigmaCasedString):
            return self._anywhere(lambda term: forms.like(term, around))
        lower = [part.lower() if isinstance(part, str) else part for part in around]
        return self._anywhere(lambda term: forms.like(Term(f"lower({term.text})"), lower))

    def convert_condition_val_num(self, cond: Any, state: Any) -> Form:
        """A number as a keyword."""
        around = [forms.ANY_TEXT, str(cond.value.number), forms.ANY_TEXT]
        return self._anywhere(lambda term: forms.like(term, around))

    def convert_condition_val_re(self, cond: Any, state: Any) -> Form:
        """A regular expression as a keyword."""
        pattern = _pattern(cond.value)
        return self._anywhere(lambda term: _matches(term, pattern))

    def convert_condition_query_expr(self, cond: Any, state: Any) -> Form:
        """Refuse."""
        raise _refuse("a query expression")

    def _anywhere(self, test: Any) -> Form:
        if self._keywords_in:
            return forms.any_of(test(term) for term in self._keywords_in)
        body = forms.expression(test(Term("string")))
        return forms.holds(Term(f"exists(all_strings(), string -> {body})"))

    # --- rules with memory -------------------------------------------------------------------------

    def _no_memory(self, *_: Any, **__: Any) -> Any:
        raise _refuse("a correlation")

    convert_correlation_event_count_rule = _no_memory
    convert_correlation_value_count_rule = _no_memory
    convert_correlation_temporal_rule = _no_memory
    convert_correlation_temporal_ordered_rule = _no_memory
    convert_correlation_extended_temporal_rule = _no_memory
    convert_correlation_extended_temporal_ordered_rule = _no_memory
    convert_correlation_value_sum_rule = _no_memory
    convert_correlation_value_avg_rule = _no_memory
    convert_correlation_value_percentile_rule = _no_memory
    convert_correlation_value_median_rule = _no_memory

    # --- output ------------------------------------------------------------------------------------

    def finalize_query_default(self, rule: Any, query: Form, index: int, state: Any) -> str:
        """The text of an expression."""
        return str(forms.expression(query))

    def finalize_query_form(self, rule: Any, query: Form, index: int, state: Any) -> Form:
        """The form as it is."""
        return query

    def finalize_output_form(self, queries: list[Form]) -> list[Form]:
        """The forms as they are."""
        return queries


def _parts(value: SigmaString, where: str) -> list[Any]:
    parts: list[Any] = []
    for part in value.s:
        if isinstance(part, str):
            parts.append(part)
        elif part == SpecialChars.WILDCARD_MULTI:
            parts.append(forms.ANY_TEXT)
        elif part == SpecialChars.WILDCARD_SINGLE:
            parts.append(forms.ANY_CHARACTER)
        else:
            raise _refuse("a placeholder", where)
    return parts


def _pattern(value: Any) -> str:
    """The text of a regular expression, with its flags."""
    regexp = value.regexp
    text = regexp.to_plain() if isinstance(regexp, SigmaString) else str(regexp)
    flags = "".join(sorted(_FLAGS[flag] for flag in value.flags))
    return f"(?{flags}){text}" if flags else text


def _matches(term: Term, pattern: str) -> Form:
    test = forms.test(term, "RLIKE", pattern)
    try:
        forms.expression(test)
    except TamisError:
        raise _refuse("a regular expression", f"{term.text} ~ {pattern}") from None
    return test


def _number(text: str) -> int | None:
    is_plain = text.isascii() and text.removeprefix("-").isdigit() and len(text) < 18
    return int(text) if is_plain and str(int(text)) == text else None
