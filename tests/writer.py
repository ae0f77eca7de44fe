"""Writes `oracle` nodes as text and as builder calls: the two ways in that a person would use.

Independent of the kernel's own printer, so that reading, printing and building are each checked against
something else.
"""

import math
from datetime import datetime
from decimal import Decimal
from typing import Any

import tamis
from oracle import (
    ALL_STRINGS,
    AtLeast,
    Connective,
    Constant,
    IsTruth,
    Node,
    Not,
    Predicate,
    Quantified,
    Term,
    Within,
)
from oracle_terms import COMPARISONS, Call, Literal
from tamis import col

NEGATED = {
    "=": "!=",
    "IN": "NOT IN",
    "BETWEEN": "NOT BETWEEN",
    "LIKE": "NOT LIKE",
    "ILIKE": "NOT ILIKE",
    "RLIKE": "NOT RLIKE",
}
FUNCTIONS = ("startswith", "endswith", "contains", "array_contains", "arrays_overlap", "ip_in", "xpath")


def to_text(node: Node) -> str:
    """The expression as a person would type it, with every parenthesis."""
    match node:
        case Constant(value):
            return "NULL" if value is None else str(value).upper()
        case Not(AtLeast(count, children)) if count % 2 == 0:  # half of them
            return f"AT MOST {count - 1} OF ({', '.join(to_text(child) for child in children)})"
        case Not(child):
            return f"NOT ({to_text(child)})"
        case Connective("AND", (AtLeast(count, children), Not(AtLeast(more, same)))) if (
            more == count + 1 and same is children
        ):
            return f"EXACTLY {count} OF ({', '.join(to_text(child) for child in children)})"
        case Connective(name, children):
            return f" {name} ".join(f"({to_text(child)})" for child in children)
        case AtLeast(count, children):
            return f"AT LEAST {count} OF ({', '.join(to_text(child) for child in children)})"
        case IsTruth(child, test, negated):
            return f"({to_text(child)}) IS {'NOT ' if negated else ''}{test}"
        case Predicate(boost=None):
            return _predicate_text(node)
        case Predicate(boost=boost):
            inner = node._replace(boost=None)
            if _predicate_text(inner).startswith("NOT "):
                return f"NOT ({_predicate_text(inner._replace(negated=False))})^{boost!r}"
            return f"({_predicate_text(inner)})^{boost!r}"


def _predicate_text(node: Predicate) -> str:
    match node.attribute:
        case Quantified("any", array, "element", Predicate("element", negated=False) as test) if (
            test.operator in ("=", "<", "<=", ">", ">=", "<=>", "IN", "LIKE", "ILIKE", "RLIKE")
        ):
            short = _predicate_text(test).replace("element", f"ANY({term_text(array)})", 1)
            return f"NOT {short}" if node.negated else short
    is_alone = node.operator in ("truth", *FUNCTIONS)
    name = term_text(node.attribute) if is_alone else _operand_text(node.attribute)
    operands = [literal(operand) for operand in node.operands]
    match node.operator:
        case "truth":
            return f"NOT {name}" if node.negated else name
        case "IS NULL":
            return f"{name} IS NOT NULL" if node.negated else f"{name} IS NULL"
        case "arrays_overlap":
            call = f"arrays_overlap({name}, ARRAY({', '.join(operands)}))"
        case function if function in FUNCTIONS:
            call = f"{function}({name}, {operands[0]})"
        case keyword if keyword in NEGATED:
            return (
                f"{name} {NEGATED[keyword] if node.negated else keyword} {_operands_text(keyword, operands)}"
            )
        case symbol:
            call = f"{name} {symbol} {operands[0]}"
    return f"NOT {call}" if node.negated else call


def term_text(term: Term) -> str:
    """A term as the language writes it: the name by which weights know it."""
    match term:
        case str():
            return "`" + term + "`" if " " in term else term
        case Literal(value):
            return literal(value)
        case Quantified(quantifier, array, variable, body):
            return f"{quantifier}({term_text(array)}, {variable} -> {to_text(body)})"
        case Within(latitude, longitude, shape):
            place = f"{term_text(latitude)}, {term_text(longitude)}"
            if isinstance(shape[0], tuple):
                corners = ", ".join(f"{x:g} {y:g}" for x, y in (*shape, shape[0]))
                return f"within_polygon({place}, 'POLYGON(({corners}))')"
            return f"within_distance({place}, {', '.join(f'{part:g}' for part in shape)})"
        case Call("+ interval", (time, Literal(count), Literal(unit))):
            return f"{_operand_text(time)} {'-' if count < 0 else '+'} INTERVAL {abs(count)} {unit}"
        case Call("timestampdiff", (Literal(unit), start, end)):
            return f"timestampdiff({unit}, {term_text(start)}, {term_text(end)})"
        case Call(name, (argument,)) if name.startswith("cast as "):
            return f"CAST({term_text(argument)} AS {name.removeprefix('cast as ')})"
        case Call(name, (left, right)) if not name[0].isalpha():
            return f"{_operand_text(left)} {name} {_operand_text(right)}"
        case Call(name, arguments):
            return f"{name}({', '.join(map(term_text, arguments))})"


def _operand_text(term: Term) -> str:
    """With parentheses around anything that has an operator of its own."""
    is_infix = isinstance(term, Call) and not term.name[0].isalpha()
    return f"({term_text(term)})" if is_infix else term_text(term)


def _operands_text(keyword: str, operands: list[str]) -> str:
    match keyword:
        case "IN":
            return f"({', '.join(operands)})"
        case "BETWEEN":
            return " AND ".join(operands)
        case _:
            return operands[0]


def literal(value: Any) -> str:
    """A value as a literal of the language."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int():
            return str(value)
        case float() if math.isnan(value):
            return "DOUBLE 'NaN'"
        case float() if math.isinf(value):
            return "DOUBLE 'Infinity'" if value > 0 else "DOUBLE '-Infinity'"
        case float():
            return repr(value) if "e" in repr(value) else repr(value) + "D"
        case Decimal():
            return f"{value:f}BD"
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        case datetime():
            return f"TIMESTAMP '{value.replace(tzinfo=None).isoformat(sep=' ')}'"
    raise TypeError(value)


def to_builder(node: Node) -> "tamis.Expression":
    """The expression built with `col` and Python's operators."""
    match node:
        case Constant(value):
            return tamis.parse("NULL" if value is None else str(value).upper())
        case Not(child):
            return ~to_builder(child)
        case Connective(name, children):
            left, *rest = [to_builder(child) for child in children]
            for right in rest:
                left = {
                    "AND": left.__and__,
                    "OR": left.__or__,
                    "XOR": left.__xor__,
                    "XNOR": left.xnor,
                }[name](right)
            return left
        case AtLeast(count, children):
            return tamis.at_least(count, *[to_builder(child) for child in children])
        case IsTruth(child, test, negated):
            tested = to_builder(child)
            passed = {"TRUE": tested.is_true, "FALSE": tested.is_false, "UNKNOWN": tested.is_unknown}[test]()
            return ~passed if negated else passed
        case Predicate(attribute=term, operator="truth") if _is_boolean(term):
            built = _build_boolean(term) if node.boost is None else tamis.parse(term_text(term))
            built = built if node.boost is None else built.boost(node.boost)
            return ~built if node.negated else built
        case Predicate(operator="ip_in"):  # no method
            return tamis.parse(to_text(node))
        case Predicate():
            built = _build_predicate(_build_term(node.attribute), node.operator, node.operands)
            if node.boost is not None:
                # Twice negated, a column is no predicate that could have a boost.
                text = _operand_text(node.attribute)
                built = tamis.parse(text) if node.operator == "truth" else built
                built = built.boost(node.boost)
            return ~built if node.negated else built


def _is_boolean(term: Term) -> bool:
    """Whether a term is an expression where one builds it."""
    return isinstance(term, Quantified | Within) or (
        isinstance(term, Call) and (term.name in COMPARISONS or term.name == "<=>")
    )


def _build_boolean(term: Term) -> "tamis.Expression":
    match term:
        case Quantified(quantifier, array, variable, body):
            build = {"exists": tamis.exists, "forall": tamis.forall, "any": tamis.any_of}[quantifier]

            def of_element(_: Any) -> "tamis.Expression":
                return to_builder(body)

            # The parameter of the function names the variable.
            of_element.__code__ = of_element.__code__.replace(co_varnames=(variable,))
            column = build(tamis.all_strings() if array == ALL_STRINGS else array, of_element)
            return column.__tamis_expression__()
        case Call(name, (left, right)) if not isinstance(left, Literal):
            return _build_predicate(_build_term(left), name, (_build_term(right),))
    return tamis.parse(term_text(term))


def _build_term(term: Term) -> Any:
    match term:
        case str():
            return col(term)
        case Literal(value):
            return value
    return tamis.term(term_text(term))


def _build_predicate(column: "tamis.Column", name: str, operands: tuple[Any, ...]) -> "tamis.Expression":
    match name:
        case "truth":
            return column.__tamis_expression__()
        case "=":
            return column == operands[0]
        case "<":
            return column < operands[0]
        case "<=":
            return column <= operands[0]
        case ">":
            return column > operands[0]
        case ">=":
            return column >= operands[0]
        case "<=>":
            return column.eq_null_safe(operands[0])
        case "IN":
            return column.isin(operands)
        case "BETWEEN":
            return column.between(*operands)
        case "IS NULL":
            return column.is_null()
        case "arrays_overlap":
            return column.arrays_overlap(operands)
        case _:
            method = getattr(column, name.lower())
            built: tamis.Expression = method(*operands)
            return built
