"""Finds probable mistakes in well-formed rules: never true, repeated, covered.

Everything it reports is proven, except the advice about absent attributes, paths of files and missing quotes.
If a proof takes too long, it reports nothing.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tamis import relate
from tamis._example import example as find_example
from tamis._kernel import Expression
from tamis._parameters import _TOKEN
from tamis._quantifiers import Quantifier, quantifiers, replaced
from tamis.errors import ExpressionError

BUDGET = 20_000
"""How many steps a proof about one rule may take."""

MOST_PAIRS = 20_000
"""How many pairs of rules are compared, to find those that are covered."""

_ALWAYS = Expression.parse("TRUE")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_KEPT = frozenset("\"'\\%_ntrbZ01234567uU")
_CONTROL = {
    "n": "a new line",
    "t": "a tab",
    "r": "a carriage return",
    "b": "a backspace",
    "0": "a null character",
}
_FILE_PATH = re.compile(
    r"""^['"](?:[A-Za-z]:[\\/]|\\\\\\\\)|^['"][^\s'"]*\w\\[ntrb0]\w[^\s'"]*\.[A-Za-z]{2,4}['"]$"""
)
"""A string that begins with a drive or a host, or has no blanks and ends like the name of a file."""

_TWO_NAMES = re.compile(r"([\w.]+) (?:=|<=>) (\w+)")
"""The comparison of two attributes."""

_ARITHMETIC_OF_NAMES = re.compile(r"[^\W\d][\w.]*(?: [-+*/%] [^\W\d][\w.]*)+")
"""A number that is computed from attributes alone; or a name with a hyphen, without its backquotes."""

_COMPARISONS = ("=", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class Finding:
    """What is odd about a rule: its row, the lint, a sentence, and the row it is compared with."""

    row: int
    lint: str
    message: str
    other: int | None = None


def lint(texts: Sequence[str | None]) -> list[Finding]:
    r"""All findings about rules, sorted by row; rules that cannot be read have none.

    >>> rules = ["x > 5 AND x < 3", "x > 1", "x > 1", "x > 2", "name = 'C:\\dir'", "name = 'C:\\temp'"]
    >>> for finding in lint(rules):
    ...     print(finding.row, finding.lint)
    0 never true
    2 repeated
    3 covered
    4 dropped backslash
    5 escape in a path
    """
    read = [_read(text) for text in texts]
    findings: list[Finding] = []
    for row, (text, expression) in enumerate(zip(texts, read, strict=True)):
        if text is not None and expression is not None:
            findings += _of_text(row, text)
            findings += _of_expression(row, expression)
    findings += _of_names(read)
    findings += _of_pairs(read, {finding.row for finding in findings if finding.lint == "never true"})
    return sorted(findings, key=lambda finding: (finding.row, finding.lint))


def example(expression: Expression) -> dict[str, Any] | None:
    """An event that an expression matches, or None if none was found.

    >>> example(Expression.parse("age = 22 AND country = 'CA'"))
    {'age': 22, 'country': 'CA'}
    >>> example(Expression.parse("endswith(lower(path), '.exe') AND xpath(doc, '//item[price > 5]')"))
    {'doc': '<item><price>6</price></item>', 'path': '.exe'}
    """
    return find_example(expression)


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
            if following in _CONTROL and _FILE_PATH.search(token[0]):
                yield Finding(
                    row,
                    "escape in a path",
                    f"\\{following} is {_CONTROL[following]}: write two backslashes, or a raw string r'...'",
                )
            if following in _KEPT:
                continue
            yield Finding(
                row,
                "dropped backslash",
                f"the backslash before {following!r} is dropped: write two, or a raw string r'...'",
            )


def _of_expression(row: int, expression: Expression) -> Iterator[Finding]:
    form = json.loads(expression.to_json())
    if relate.decide_overlaps(expression, _ALWAYS, budget=BUDGET) is False:
        yield Finding(row, "never true", "no event matches it")
    elif relate.decide_covers(expression, _ALWAYS, budget=BUDGET) is True:
        yield Finding(row, "always true", "every event matches it")
    else:
        yield from _of_quantifiers(row, form)
    for leaf in _leaves(form):
        yield from _of_leaf(row, leaf)
    guarded = {_name(leaf) for leaf in _leaves(form) if leaf["operator"] in ("IS NULL", "<=>")}
    for name in dict.fromkeys(_negated(form)):
        if name not in guarded:
            yield Finding(
                row,
                "absent under NOT",
                f"where {name} is absent, NOT is undefined and the rule does not match; if it should, write "
                "(...) IS NOT TRUE",
            )


def _of_leaf(row: int, leaf: dict[str, Any]) -> Iterator[Finding]:
    operator, operands = leaf["operator"], leaf.get("operands", [])
    if operator in _COMPARISONS and operands == [None]:
        negated = leaf.get("negated", False)
        written, right = ("!=", "IS NOT NULL") if negated else (operator, "IS NULL")
        yield Finding(row, "compared with NULL", f"{written} NULL is never true: write {right}")
    term = leaf.get("term", "")
    is_text = bool(operands) and all(isinstance(operand, str) for operand in operands)
    if is_text and _ARITHMETIC_OF_NAMES.fullmatch(term):
        name = term.replace(" ", "")
        yield Finding(
            row,
            "number and text",
            f"{term} is a number, and no text equals it; if it is a name, write `{name}`",
        )


def _of_names(read: Sequence[Expression | None]) -> Iterator[Finding]:
    """Names that are probably texts without quotes: `country = CA`.

    They begin with a capital, the attribute before them does not, and no rule uses them in another way.
    """
    suspects: list[tuple[int, str]] = []
    used: set[str] = set()
    for row, expression in enumerate(read):
        for leaf in _leaves(json.loads(expression.to_json())) if expression is not None else ():
            compared = _TWO_NAMES.fullmatch(leaf.get("term", ""))
            if "attribute" in leaf:
                used.add(leaf["attribute"])
                continue
            if compared is None:
                used.update(Expression.from_json(json.dumps(leaf)).attributes)
                continue
            used.add(compared[1])
            if compared[2][0].isupper() and not compared[1].rpartition(".")[2][:1].isupper():
                suspects.append((row, compared[2]))
            else:
                used.add(compared[2])
    for row, name in suspects:
        if name not in used:
            message = f"{name} is an attribute here, which no other rule uses; for text write '{name}'"
            yield Finding(row, "missing quotes", message)


def _of_quantifiers(row: int, form: Any) -> Iterator[Finding]:
    """What is odd about the conditions on elements."""
    never: dict[str, Quantifier] = {}
    for term, quantifier in quantifiers(form):
        for finding in _of_expression(row, quantifier.body):
            if finding.lint in ("never true", "never true inside") and quantifier.name != "forall":
                never[term] = quantifier
            elif finding.lint in ("absent under NOT", "compared with NULL", "number and text"):
                yield finding
    if not never:
        return
    without = Expression.from_json(json.dumps(replaced(form, dict.fromkeys(never, False))))
    tests_truth = any(key.startswith("is_") for key in _keys(form))
    is_whole = not tests_truth and relate.decide_overlaps(without, _ALWAYS, budget=BUDGET) is False
    for quantifier in never.values():
        lint = "never true" if is_whole else "never true inside"
        yield Finding(row, lint, f"no element matches the condition of {quantifier}")


def _of_pairs(read: Sequence[Expression | None], never: set[int]) -> Iterator[Finding]:
    first_of: dict[str, int] = {}
    groups: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for row, expression in enumerate(read):
        if expression is None:
            continue
        first = first_of.setdefault(_same_text(expression), row)
        if first != row:
            yield Finding(row, "repeated", "the same expression stands above", first)
        elif row not in never:
            groups[tuple(expression.attributes)].append(row)
    comparable = {row: rows for rows in groups.values() if len(rows) > 1 for row in rows}
    left = MOST_PAIRS
    for row, others in _candidates(read, comparable):
        covered = read[row]
        for other in others:
            covering = read[other]
            if row == other or covering is None or covered is None:
                continue
            left -= 1
            if left < 0:
                return
            if _covers(covering, covered):
                yield Finding(row, "covered", "whenever it matches, another rule does", other)
                break


def _candidates(
    read: Sequence[Expression | None], comparable: Mapping[int, list[int]]
) -> Iterator[tuple[int, list[int]]]:
    """For each rule, those on the same attributes that may cover it: they match an example of it."""
    from tamis.index import Index  # noqa: PLC0415 - needs NumPy and pyarrow

    index = Index()
    rows = {row: expression for row in sorted(comparable) if (expression := read[row]) is not None}
    index.add_many(list(rows), list(rows.values()), on_error="collect")
    for row, expression in rows.items():
        event = find_example(expression)
        if event is None:
            yield row, comparable[row]
        else:
            same = set(comparable[row])
            yield row, [other for other in index.match(event) if other in same]


def _same_text(expression: Expression) -> str:
    """The text, in which the names of variables make no difference."""
    form = json.loads(expression.to_json())
    named = {term: {"term": str(found), "operator": "truth"} for term, found in quantifiers(form)}
    return str(Expression.from_json(json.dumps(replaced(form, named)))) if named else str(expression)


def _covers(covering: Expression, covered: Expression) -> bool:
    """Whether the one matches whenever the other does; of quantifiers, if their bodies say so."""
    if relate.decide_covers(covering, covered, budget=BUDGET // 10) is True:
        return True
    written = covering.to_json(), covered.to_json()
    if not all("exists(" in text or "forall(" in text or "any(" in text for text in written):
        return False
    outer, inner = map(json.loads, written)
    if any(key.startswith("is_") for form in (outer, inner) for key in _keys(form)):
        return False
    instead: dict[str, Any] = {}
    for term, found in quantifiers(inner):
        follows = [
            {"term": other_term, "operator": "truth"}
            for other_term, other in quantifiers(outer)
            if (other.name, other.array) == (found.name, found.array)
            and relate.decide_covers(other.body, found.body, budget=BUDGET // 10) is True
        ]
        if follows:
            # Where this one is true, those are too.
            instead[term] = {"and": [{"term": term, "operator": "truth"}, *follows]}
    if not instead or list(_negated(inner)):
        return False
    strengthened = Expression.from_json(json.dumps(replaced(inner, instead)))
    return relate.decide_covers(covering, strengthened, budget=BUDGET // 10) is True


def _keys(form: Any) -> Iterator[str]:
    if isinstance(form, dict):
        yield from form
        for inner in form.values():
            yield from _keys(inner)
    elif isinstance(form, list):
        for inner in form:
            yield from _keys(inner)


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
    """The attribute, or those that a term is made of."""
    if "attribute" in leaf:
        return str(leaf["attribute"])
    looked_at = Expression.from_json(json.dumps({"term": leaf["term"], "operator": "IS NULL"}))
    return " or ".join(looked_at.attributes) or str(leaf["term"])
