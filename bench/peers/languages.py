"""The same expression in the language of every peer.

Tamis has three-valued logic: a predicate on an absent attribute is undefined. Most peers have two values. So
negations are pushed down to the predicates first, and XOR and XNOR written out; what is left are AND, OR and
predicates, each of which is simply not true where its attribute is absent. In that form, two values are
enough, and the rule means the same in every language.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

MAX_CONJUNCTIONS = 64
"""An expression with more alternatives than this counts as one that a conjunctive peer cannot express."""


class CannotExpressError(Exception):
    """The peer has no way to say this."""


@dataclass(frozen=True)
class Test:
    """A predicate: one of `=`, `!=`, `<`, `<=`, `>`, `>=` with an operand, or `IN`, `NOT IN` with several."""

    attribute: str
    operator: str
    operands: tuple[Any, ...]


@dataclass(frozen=True)
class Group:
    """Alternatives (`or`) or a conjunction (`and`)."""

    operator: str
    children: tuple["Test | Group", ...]


Tree = Test | Group
OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">", "IN": "NOT IN", "NOT IN": "IN"}


def simplify(expression: Any, negated: bool = False) -> Tree:
    """AND, OR and predicates, from the JSON form of a Tamis expression.

    >>> simplify({"not": {"attribute": "x", "operator": "<", "operands": [5]}})
    Test(attribute='x', operator='>=', operands=(5,))
    """
    if "attribute" in expression:
        return _test(expression, negated)
    [(operator, children)] = expression.items()
    if operator == "not":
        return simplify(children, not negated)
    if operator in ("and", "or"):
        flipped = {"and": "or", "or": "and"}[operator] if negated else operator
        return Group(flipped, tuple(simplify(child, negated) for child in children))
    if operator in ("xor", "xnor") and len(children) == 2:
        left, right = children
        different = (operator == "xor") != negated
        one = Group("and", (simplify(left), simplify(right, different)))
        other = Group("and", (simplify(left, True), simplify(right, not different)))
        return Group("or", (one, other))
    raise CannotExpressError(f"{operator} of {len(children)}")


def _test(predicate: Any, negated: bool) -> Tree:
    attribute, operator, operands = predicate["attribute"], predicate["operator"], predicate["operands"]
    if predicate.get("negated"):
        negated = not negated
    if operator == "BETWEEN":
        low, high = operands
        if negated:
            return Group("or", (Test(attribute, "<", (low,)), Test(attribute, ">", (high,))))
        return Group("and", (Test(attribute, ">=", (low,)), Test(attribute, "<=", (high,))))
    if operator not in OPPOSITE:
        raise CannotExpressError(operator)
    return Test(attribute, OPPOSITE[operator] if negated else operator, tuple(operands))


def _infix(tree: Tree, test: Callable[[Test], str], both: str, either: str) -> str:
    if isinstance(tree, Test):
        return test(tree)
    joined = f" {both if tree.operator == 'and' else either} ".join(
        _infix(child, test, both, either) for child in tree.children
    )
    return f"({joined})"


def _comparison(operator: str) -> str:
    return "==" if operator == "=" else operator


def python(tree: Tree) -> str:
    """Python over a dict `e`; the default NAN is not equal to, below or above anything.

    >>> python(Test("x", "<", (5,)))
    'e.get("x", NAN) < 5'
    """

    def test(leaf: Test) -> str:
        value = f'e.get("{leaf.attribute}", NAN)'
        if leaf.operator == "IN":
            return f"{value} in {leaf.operands!r}"
        if leaf.operator in ("NOT IN", "!="):
            return f'("{leaf.attribute}" in e and {value} not in {leaf.operands!r})'
        return f"{value} {_comparison(leaf.operator)} {leaf.operands[0]!r}"

    return _infix(tree, test, "and", "or")


def _guarded(present: str, both: str, not_in: str, value: str = "{}") -> Callable[[Test], str]:
    """How languages write a predicate in which a comparison with an absent value is an error."""

    def test(leaf: Test) -> str:
        name = value.format(leaf.attribute)
        literals = json.dumps(list(leaf.operands))
        if leaf.operator == "IN":
            said = f"{name} in {literals}"
        elif leaf.operator == "NOT IN":
            said = not_in.format(name, literals)
        else:
            said = f"{name} {_comparison(leaf.operator)} {json.dumps(leaf.operands[0])}"
        return f"({present.format(leaf.attribute)} {both} {said})"

    return test


def rule_engine(tree: Tree) -> str:
    """The language of `rule-engine`."""
    return _infix(tree, _guarded("{} != null", "and", "not ({} in {})"), "and", "or")


def zen(tree: Tree) -> str:
    """The language of `zen-engine`."""
    return _infix(tree, _guarded("{} != null", "and", "{} not in {}"), "and", "or")


def cel(tree: Tree) -> str:
    """CEL over a map `e`.

    >>> cel(Test("x", "NOT IN", (1, 2)))
    '(has(e.x) && !(e.x in [1, 2]))'
    """
    return _infix(tree, _guarded("has(e.{})", "&&", "!({} in {})", "e.{}"), "&&", "||")


def a_tree(tree: Tree) -> str:
    """The language of the crate `a-tree`."""

    def test(leaf: Test) -> str:
        if leaf.operator in ("IN", "NOT IN"):
            literals = json.dumps(list(leaf.operands))
            return f"{leaf.attribute} {leaf.operator.lower()} {literals}"
        operator = "<>" if leaf.operator == "!=" else leaf.operator
        return f"{leaf.attribute} {operator} {json.dumps(leaf.operands[0])}"

    return _infix(tree, test, "and", "or")


def sql(tree: Tree) -> str:
    """SQL, as DuckDB and Spark read it."""

    def literal(value: Any) -> str:
        return f"'{value}'" if isinstance(value, str) else str(value)

    def test(leaf: Test) -> str:
        if leaf.operator in ("IN", "NOT IN"):
            return f"{leaf.attribute} {leaf.operator} ({', '.join(map(literal, leaf.operands))})"
        return f"{leaf.attribute} {leaf.operator} {literal(leaf.operands[0])}"

    return _infix(tree, test, "AND", "OR")


def conjunctions(tree: Tree) -> list[tuple[Test, ...]]:
    """The disjunctive normal form; more than `MAX_CONJUNCTIONS` are refused."""
    if isinstance(tree, Test):
        return [(tree,)]
    parts = [conjunctions(child) for child in tree.children]
    if tree.operator == "or":
        found = [conjunction for part in parts for conjunction in part]
    else:
        size = 1
        for part in parts:
            size *= len(part)
        if size > MAX_CONJUNCTIONS:
            raise CannotExpressError("too many conjunctions")
        found = [sum(chosen, ()) for chosen in product(*parts)]
    if len(found) > MAX_CONJUNCTIONS:
        raise CannotExpressError("too many conjunctions")
    return found


def event_ruler(tree: Tree) -> list[dict[str, Any]]:
    """Patterns for Event Ruler, one for each conjunction; a rule with several matches if any does.

    >>> event_ruler(Group("and", (Test("x", ">=", (1,)), Test("x", "<=", (5,)))))
    [{'x': [{'numeric': ['>=', 1, '<=', 5]}]}]
    """
    return [_pattern(conjunction) for conjunction in conjunctions(tree)]


def _pattern(conjunction: tuple[Test, ...]) -> dict[str, Any]:
    pattern: dict[str, Any] = {}
    for attribute in dict.fromkeys(test.attribute for test in conjunction):
        tests = list(dict.fromkeys(test for test in conjunction if test.attribute == attribute))
        pattern[attribute] = (
            [_field(tests)]
            if len(tests) > 1 or tests[0].operator not in ("=", "IN")
            else list(tests[0].operands)
        )
    return pattern


def _field(tests: list[Test]) -> Any:
    if len(tests) == 1 and tests[0].operator in ("!=", "NOT IN"):
        return {"anything-but": list(tests[0].operands)}
    lows = [test for test in tests if test.operator in (">", ">=")]
    highs = [test for test in tests if test.operator in ("<", "<=")]
    if len(lows) + len(highs) != len(tests) or max(len(lows), len(highs)) > 1:
        raise CannotExpressError("several predicates on one field")
    bounds = [(test.operator, test.operands[0]) for test in lows + highs]
    if len(bounds) == 2 and bounds[0][1] >= bounds[1][1]:
        raise CannotExpressError("a range of one value or none")
    return {"numeric": [part for bound in bounds for part in bound]}


def nested(tree: Tree) -> list[Any]:
    """Nested lists, for the adapter of Lucene Monitor, which builds queries from objects."""
    if isinstance(tree, Group):
        return [tree.operator, *(nested(child) for child in tree.children)]
    return [tree.operator, tree.attribute, *tree.operands]


LANGUAGES: dict[str, Callable[[Tree], Any]] = {
    "python": python,
    "rule-engine": rule_engine,
    "zen": zen,
    "cel": cel,
    "a-tree": a_tree,
    "sql": sql,
    "event-ruler": event_ruler,
    "nested": nested,
}


def tests_of(tree: Tree) -> Iterator[Test]:
    """All predicates of a tree."""
    if isinstance(tree, Test):
        yield tree
    else:
        for child in tree.children:
            yield from tests_of(child)
