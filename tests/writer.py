"""Writes `oracle` nodes as text and as builder calls: the two ways in that a person would use.

Independent of the kernel's own printer, so that reading, printing and building are each checked against
something else.
"""

import math
from datetime import datetime
from decimal import Decimal
from typing import Any

import tamis
from oracle import AtLeast, Connective, Constant, IsTruth, Node, Not, Predicate, SomeString
from tamis import col

NEGATED = {
    "=": "!=",
    "IN": "NOT IN",
    "BETWEEN": "NOT BETWEEN",
    "LIKE": "NOT LIKE",
    "ILIKE": "NOT ILIKE",
    "RLIKE": "NOT RLIKE",
}
FUNCTIONS = ("startswith", "endswith", "contains", "array_contains", "arrays_overlap")


def to_text(node: Node) -> str:
    """The expression as a person would type it, with every parenthesis."""
    match node:
        case Constant(value):
            return "NULL" if value is None else str(value).upper()
        case Not(child):
            return f"NOT ({to_text(child)})"
        case Connective(name, children):
            return f" {name} ".join(f"({to_text(child)})" for child in children)
        case AtLeast(count, children):
            return f"AT LEAST {count} OF ({', '.join(to_text(child) for child in children)})"
        case IsTruth(child, test, negated):
            return f"({to_text(child)}) IS {'NOT ' if negated else ''}{test}"
        case SomeString(body):
            return f"exists(all_strings(), s -> {to_text(body)})"
        case Predicate(boost=None):
            return _predicate_text(node)
        case Predicate(boost=boost):
            inner = node._replace(boost=None)
            if _predicate_text(inner).startswith("NOT "):
                return f"NOT ({_predicate_text(inner._replace(negated=False))})^{boost!r}"
            return f"({_predicate_text(inner)})^{boost!r}"


def _predicate_text(node: Predicate) -> str:
    name = "`" + node.attribute + "`" if " " in node.attribute else node.attribute
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
        case Predicate():
            built = _build_predicate(col(node.attribute), node.operator, node.operands)
            if node.boost is not None:
                # Twice negated, a column is no predicate that could have a boost.
                built = tamis.parse(f"`{node.attribute}`") if node.operator == "truth" else built
                built = built.boost(node.boost)
            return ~built if node.negated else built


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
