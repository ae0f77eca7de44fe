"""What an expression means, in plain Python: the judge that every other part must agree with.

It shares no code with the kernel and takes no short cuts. A truth is two bits, *can be true* and *can be
false*: a point value sets one of them, an absent attribute neither (undefined), an interval maybe both. With
those bits Kleene's three-valued logic and interval-valued events are one algebra.
"""

import functools
import operator
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple


class Truth(NamedTuple):
    can_be_true: bool
    can_be_false: bool


TRUE, FALSE, UNDEFINED, EITHER = Truth(True, False), Truth(False, True), Truth(False, False), Truth(True, True)


@dataclass(frozen=True)
class Constant:
    value: bool | None


@dataclass(frozen=True)
class Predicate:
    attribute: str
    operator: str
    operands: tuple[Any, ...] = ()
    negated: bool = False


@dataclass(frozen=True)
class Not:
    child: "Node"


@dataclass(frozen=True)
class Connective:
    """`AND`, `OR`, `XOR` or `XNOR` of two children or more, folded from the left."""

    name: str
    children: tuple["Node", ...]


@dataclass(frozen=True)
class Interval:
    """A closed interval as the value of an attribute: any value between the ends."""

    low: Any
    high: Any


Node = Constant | Predicate | Not | Connective


# --- logic ---------------------------------------------------------------------------------------------------


def negate(a: Truth) -> Truth:
    return Truth(a.can_be_false, a.can_be_true)


def both(a: Truth, b: Truth) -> Truth:
    return Truth(a.can_be_true and b.can_be_true, a.can_be_false or b.can_be_false)


def either(a: Truth, b: Truth) -> Truth:
    return negate(both(negate(a), negate(b)))


def differ(a: Truth, b: Truth) -> Truth:
    return either(both(a, negate(b)), both(negate(a), b))


FOLDS = {"AND": both, "OR": either, "XOR": differ, "XNOR": lambda a, b: negate(differ(a, b))}


def evaluate(node: Node, event: Mapping[str, Any]) -> Truth:
    """The truth of an expression for an event: attribute -> value, nested records as nested dicts."""
    match node:
        case Constant(value):
            return truth(value)
        case Predicate():
            seen = predicate(node.operator, value_of(event, node.attribute), node.operands)
            return negate(seen) if node.negated else seen
        case Not(child):
            return negate(evaluate(child, event))
        case Connective(name, children):
            return functools.reduce(FOLDS[name], (evaluate(child, event) for child in children))


def truth(value: bool | None) -> Truth:
    return UNDEFINED if value is None else TRUE if value else FALSE


def value_of(event: Mapping[str, Any], attribute: str) -> Any:
    """`a.b` is the field b of the record a, or an attribute of that name."""
    if attribute in event:
        return event[attribute]
    for at, letter in enumerate(attribute):
        if letter == "." and isinstance(record := event.get(attribute[:at]), dict):
            return value_of(record, attribute[at + 1 :])
    return None


# --- predicates ----------------------------------------------------------------------------------------------


def predicate(name: str, value: Any, operands: tuple[Any, ...]) -> Truth:
    if name == "IS NULL":
        return truth(value is None)
    if name == "<=>" and (value is None or operands[0] is None):
        return truth(value is None and operands[0] is None)
    if value is None:
        return UNDEFINED
    if not isinstance(value, Interval):
        return truth(test(name, value, operands))
    # Only the order of the ends and the operands matters, so count them off as 0, 2, 4 ...: odd numbers are
    # the values between two neighbours, and the interval is all the numbers from its low end to its high end.
    if name in TEXT or any(operand is not None and kind(operand) != kind(value.low) for operand in operands):
        return UNDEFINED
    known = sorted({order(x) for x in (value.low, value.high, *operands) if x is not None})
    rank = {key: 2 * at for at, key in enumerate(known)}
    ranked = tuple(None if operand is None else rank[order(operand)] for operand in operands)
    inside = range(rank[order(value.low)], rank[order(value.high)] + 1)
    real = (at for at in inside if at % 2 == 0 or not adjacent(known[at // 2], known[at // 2 + 1]))
    seen = {test(name, at, ranked) for at in real}
    return Truth(True in seen, False in seen)


def adjacent(low: Any, high: Any) -> bool:
    """Whether no value lies between two. Numbers are the real line."""
    match low:
        case datetime():
            return bool(high - low == timedelta(microseconds=1))
        case str():
            return bool(high == low + "\0")
    return False


def test(name: str, value: Any, operands: tuple[Any, ...]) -> bool | None:
    """Three-valued truth of an operator for one present value."""
    match name:
        case "truth":
            return value if kind(value) == "boolean" else None
        case "=" | "<=>":
            return compare(operator.eq, value, operands[0])
        case "<" | "<=" | ">" | ">=":
            return compare(ORDER[name], value, operands[0])
        case "BETWEEN":
            return all_of([compare(operator.ge, value, operands[0]), compare(operator.le, value, operands[1])])
        case "IN":
            return any_of(compare(operator.eq, value, operand) for operand in operands)
        case "array_contains" | "arrays_overlap":
            if kind(value) != "array":
                return None
            return any_of(compare(operator.eq, item, operand) for item in value for operand in operands)
        case _:
            if kind(value) != "string" or operands[0] is None:
                return None
            return TEXT[name](value, operands[0])


ORDER = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}

TEXT = {
    "startswith": str.startswith,
    "endswith": str.endswith,
    "contains": operator.contains,
    "LIKE": lambda text, pattern: like(text, pattern),
    "ILIKE": lambda text, pattern: like(text.lower(), pattern.lower()),
    "RLIKE": lambda text, pattern: re.search(pattern, text) is not None,
}


def compare(holds: Any, value: Any, operand: Any) -> bool | None:
    """Undefined for null and for values of different kinds."""
    if value is None or operand is None or kind(value) != kind(operand):
        return None
    return bool(holds(order(value), order(operand)))


def kind(value: Any) -> str:
    names = {bool: "boolean", int: "number", float: "number", str: "string", datetime: "timestamp"}
    return names.get(type(value), "record" if isinstance(value, dict) else "array")


def order(value: Any) -> Any:
    """A key that sorts as the language does: numbers by exact value, NaN above all, strings by code point."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value
    if isinstance(value, int | float):
        return (1, 0) if value != value else (0, value)
    return value


def any_of(truths: Iterable[bool | None]) -> bool | None:
    seen = set(truths)
    return True if True in seen else None if None in seen else False


def all_of(truths: Iterable[bool | None]) -> bool | None:
    seen = set(truths)
    return False if False in seen else None if None in seen else True


def like(text: str, pattern: str) -> bool:
    """`_` is any character, `%` any characters, a backslash takes the next one as it is."""
    wild = {"_": ".", "%": ".*"}
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    regex = "".join(wild.get(part) or re.escape(part[-1]) for part in parts)
    return re.fullmatch(regex, text, re.DOTALL) is not None
