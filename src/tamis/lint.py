"""What is probably a slip in rules that are well formed: never true, repeated, covered.

Everything reported is proven, but for the advice about absent attributes: where a proof would take too
long, nothing is said.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tamis import relate
from tamis._kernel import Expression
from tamis._parameters import _TOKEN
from tamis.errors import ExpressionError

BUDGET = 20_000
"""How many steps a proof about one rule may take."""

MOST_PAIRS = 200_000
"""How many pairs of rules are compared, to find those that are covered."""

_ALWAYS = Expression.parse("TRUE")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_KEPT = frozenset("\"'\\%_ntrbZ01234567uU")


@dataclass(frozen=True)
class Finding:
    """What is odd about a rule: its row, the lint, a sentence, and the row it is compared with."""

    row: int
    lint: str
    message: str
    other: int | None = None


def lint(texts: Sequence[str | None]) -> list[Finding]:
    r"""All findings about rules, sorted by row; rules that cannot be read have none.

    >>> for finding in lint(["x > 5 AND x < 3", "x > 1", "x > 1", "x > 2", "name = 'C:\\dir'"]):
    ...     print(finding.row, finding.lint)
    0 never true
    2 repeated
    3 covered
    4 dropped backslash
    """
    read = [_read(text) for text in texts]
    findings: list[Finding] = []
    for row, (text, expression) in enumerate(zip(texts, read, strict=True)):
        if text is not None and expression is not None:
            findings += _of_text(row, text)
            findings += _of_expression(row, expression)
    findings += _of_pairs(read, {finding.row for finding in findings if finding.lint == "never true"})
    return sorted(findings, key=lambda finding: (finding.row, finding.lint))


def example(expression: Expression) -> dict[str, Any] | None:
    """An event that an expression matches, or None if none was found.

    >>> example(Expression.parse("age = 22 AND country = 'CA'"))
    {'age': 22, 'country': 'CA'}
    """
    return relate.example_of_overlap(expression, _ALWAYS, budget=BUDGET)


def _read(text: str | None) -> Expression | None:
    try:
        return None if text is None else Expression.parse(text)
    except ExpressionError:
        return None


def _of_text(row: int, text: str) -> Iterator[Finding]:
    for token in _TOKEN.finditer(text):
        if token[0][0] not in "'\"":
            continue
        for following in _ESCAPE.findall(token[0]):
            if following in _KEPT:
                continue
            yield Finding(
                row,
                "dropped backslash",
                f"the backslash before {following!r} is dropped: write two, or a raw string r'...'",
            )


def _of_expression(row: int, expression: Expression) -> Iterator[Finding]:
    if relate.decide_overlaps(expression, _ALWAYS, budget=BUDGET) is False:
        yield Finding(row, "never true", "no event matches it")
    elif relate.decide_covers(expression, _ALWAYS, budget=BUDGET) is True:
        yield Finding(row, "always true", "every event matches it")
    form = json.loads(expression.to_json())
    guarded = {_name(leaf) for leaf in _leaves(form) if leaf["operator"] in ("IS NULL", "<=>")}
    for name in dict.fromkeys(_negated(form)):
        if name not in guarded:
            yield Finding(
                row,
                "absent under NOT",
                f"where {name} is absent, NOT is undefined and the rule does not match; if it should, write "
                "(...) IS NOT TRUE",
            )


def _of_pairs(read: Sequence[Expression | None], never: set[int]) -> Iterator[Finding]:
    first_of: dict[str, int] = {}
    groups: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for row, expression in enumerate(read):
        if expression is None:
            continue
        first = first_of.setdefault(str(expression), row)
        if first != row:
            yield Finding(row, "repeated", "the same expression stands above", first)
        elif row not in never:
            groups[tuple(expression.attributes)].append(row)
    pairs = 0
    for rows in groups.values():
        for row in rows:
            for other in rows:
                pairs += 1
                if pairs > MOST_PAIRS:
                    return
                covering, covered = read[other], read[row]
                if row == other or covering is None or covered is None:
                    continue
                if relate.decide_covers(covering, covered, budget=BUDGET // 10) is True:
                    yield Finding(row, "covered", "whenever it matches, another rule does", other)
                    break


def _leaves(form: Any) -> Iterator[dict[str, Any]]:
    if isinstance(form, dict):
        if "operator" in form:
            yield form
        for inner in form.values():
            yield from _leaves(inner)
    elif isinstance(form, list):
        for inner in form:
            yield from _leaves(inner)


def _negated(form: Any, inside: bool = False) -> Iterator[str]:
    """What predicates under a NOT look at; a truth test is never undefined."""
    if isinstance(form, list):
        for inner in form:
            yield from _negated(inner, inside)
    elif isinstance(form, dict):
        if "operator" in form:
            is_not = form.get("negated", False) and form["operator"] not in ("=", "IS NULL", "<=>")
            if (inside or is_not) and form["operator"] not in ("IS NULL", "<=>"):
                yield _name(form)
            return
        for key, inner in form.items():
            if not key.startswith("is_"):
                yield from _negated(inner, inside or key == "not")


def _name(leaf: dict[str, Any]) -> str:
    return str(leaf.get("attribute") or leaf.get("term"))
