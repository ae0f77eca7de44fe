"""What an expression means, in plain Python: the judge that every other part must agree with.

It shares no code with the kernel and takes no short cuts. A truth is two bits, *can be true* and *can be
false*: a point value sets one of them, an absent attribute neither (undefined), an interval maybe both. With
those bits Kleene's three-valued logic and interval-valued events are one algebra.
"""

import ipaddress
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import cache, reduce
from typing import Any, NamedTuple

from lxml import etree

from oracle_terms import Call, Literal, call
from oracle_values import Interval, kind, order


class Constant(NamedTuple):
    value: bool | None


class Predicate(NamedTuple):
    attribute: "Term"
    operator: str
    operands: tuple[Any, ...] = ()
    negated: bool = False
    boost: float | None = None


class IsTruth(NamedTuple):
    child: "Node"
    test: str  # TRUE, FALSE or UNKNOWN
    negated: bool = False


class AtLeast(NamedTuple):
    least: int
    children: tuple["Node", ...]


class Not(NamedTuple):
    child: "Node"


class Connective(NamedTuple):
    name: str  # AND, OR, XOR or XNOR: the left fold of two children or more
    children: tuple["Node", ...]


class Quantified(NamedTuple):
    """exists(array, variable -> body), a term"""

    quantifier: str  # exists, forall or any
    array: str  # an attribute, or ALL_STRINGS
    variable: str
    body: "Node"


class Within(NamedTuple):
    """within_distance(latitude, longitude, ...) or within_polygon(...), a term"""

    latitude: "Term"
    longitude: "Term"
    shape: tuple[float, float, float] | tuple[tuple[float, float], ...]  # a circle, or the corners of a ring


ALL_STRINGS = "all_strings()"

# An attribute by its name, or something computed; what is Boolean may stand alone in a predicate ("truth").
Term = str | Literal | Call | Quantified | Within
Node = Constant | Predicate | Not | Connective | IsTruth | AtLeast


# --- logic ----------------------------------------------------------------------------------------


class Truth(NamedTuple):
    can_be_true: bool
    can_be_false: bool


TRUE, FALSE, UNDEFINED, EITHER = (
    Truth(True, False),
    Truth(False, True),
    Truth(False, False),
    Truth(True, True),
)


def truth(value: bool) -> Truth:
    return TRUE if value else FALSE


def negate(a: Truth) -> Truth:
    return Truth(a.can_be_false, a.can_be_true)


def both(a: Truth, b: Truth) -> Truth:
    return Truth(a.can_be_true and b.can_be_true, a.can_be_false or b.can_be_false)


def either(a: Truth, b: Truth) -> Truth:
    return negate(both(negate(a), negate(b)))


def differ(a: Truth, b: Truth) -> Truth:
    return Truth(
        (a.can_be_true and b.can_be_false) or (a.can_be_false and b.can_be_true),
        (a.can_be_true and b.can_be_true) or (a.can_be_false and b.can_be_false),
    )


FOLDS = {"AND": both, "OR": either, "XOR": differ, "XNOR": lambda a, b: negate(differ(a, b))}


def evaluate(node: Node, event: Mapping[str, Any]) -> Truth:
    """The truth of an expression for an event: attribute -> value, nested records as nested dicts."""
    match node:
        case Constant(value):
            return UNDEFINED if value is None else truth(value)
        case Predicate():
            outcome = predicate(node.operator, value_of(event, node.attribute), node.operands)
            return negate(outcome) if node.negated else outcome
        case Not(child):
            return negate(evaluate(child, event))
        case Connective(name, children):
            return reduce(FOLDS[name], (evaluate(child, event) for child in children))
        case AtLeast(count, children):
            truths = [evaluate(child, event) for child in children]
            return Truth(
                sum(truth.can_be_true for truth in truths) >= count,
                sum(truth.can_be_false for truth in truths) >= len(truths) - count + 1,
            )
        case IsTruth(child, test, negated):
            outcome = Truth(passes(child, test, event), passes(child, f"NOT {test}", event))
            return negate(outcome) if negated else outcome


def passes(node: Node, test: str, event: Mapping[str, Any]) -> bool:
    """Whether a truth test of an expression can be true: TRUE, FALSE, UNKNOWN, or NOT one of them.

    For intervals the test is asked of the parts, down to the predicates.
    """
    match node, test:
        case Predicate(operator="BETWEEN", operands=operands), _ if None in operands:
            return passes(simple_betweens(node), test, event)
        case Not(child), _:
            swapped = {"TRUE": "FALSE", "FALSE": "TRUE", "NOT TRUE": "NOT FALSE", "NOT FALSE": "NOT TRUE"}
            return passes(child, swapped.get(test, test), event)
        case Connective("AND" | "OR" as name, children), _:
            least = len(children) if name == "AND" else 1
            return passes(AtLeast(least, children), test, event)
        case AtLeast(least, children), ("TRUE" | "NOT FALSE"):
            return sum(passes(child, test, event) for child in children) >= least
        case AtLeast(least, children), ("FALSE" | "NOT TRUE"):
            return sum(passes(child, test, event) for child in children) >= len(children) - least + 1
        case AtLeast(_, children), "UNKNOWN":
            both_ways = passes(node, "NOT TRUE", event) and passes(node, "NOT FALSE", event)
            return both_ways and any(passes(child, "UNKNOWN", event) for child in children)
        case AtLeast(_, children), "NOT UNKNOWN":
            one_way = passes(node, "TRUE", event) or passes(node, "FALSE", event)
            return one_way or all(passes(child, "NOT UNKNOWN", event) for child in children)
        case Connective(_, children), ("UNKNOWN" | "NOT TRUE" | "NOT FALSE"):
            one_unknown = any(passes(child, "UNKNOWN", event) for child in children)
            outcome = evaluate(node, event)
            differs = outcome.can_be_false if test == "NOT TRUE" else outcome.can_be_true
            return one_unknown or (test != "UNKNOWN" and differs)
        case Connective(_, children), _:
            all_known = all(passes(child, "NOT UNKNOWN", event) for child in children)
            outcome = evaluate(node, event)
            agrees = {"TRUE": outcome.can_be_true, "FALSE": outcome.can_be_false}.get(test, True)
            return all_known and agrees
        case IsTruth(child, inner, negated), ("TRUE" | "NOT FALSE" | "FALSE" | "NOT TRUE"):
            is_positive = test in ("TRUE", "NOT FALSE")
            return passes(child, inner if is_positive != negated else f"NOT {inner}", event)
        case IsTruth(), _:
            return test == "NOT UNKNOWN"
    outcome = evaluate(node, event)
    return {
        "TRUE": outcome.can_be_true,
        "FALSE": outcome.can_be_false,
        "UNKNOWN": outcome == UNDEFINED,
        "NOT TRUE": outcome.can_be_false or not outcome.can_be_true,
        "NOT FALSE": outcome.can_be_true or not outcome.can_be_false,
        "NOT UNKNOWN": outcome != UNDEFINED,
    }[test]


# --- terms ----------------------------------------------------------------------------------------


def value_of(event: Mapping[str, Any], term: Term) -> Any:
    """The value of a term, None where it is undefined."""
    match term:
        case str():
            return field_of(event, term)
        case Literal(value):
            return value
        case Call(name, arguments):
            return call(name, [value_of(event, argument) for argument in arguments])
        case Quantified():
            return quantify(term, event)
        case Within(latitude, longitude, shape):
            return is_within(value_of(event, latitude), value_of(event, longitude), shape)


def field_of(event: Mapping[str, Any], attribute: str) -> Any:
    """`a.b` is the field b of the record a, or an attribute of that name."""
    if attribute in event:
        return event[attribute]
    for at, letter in enumerate(attribute):
        if letter == "." and isinstance(record := event.get(attribute[:at]), dict):
            return field_of(record, attribute[at + 1 :])
    return None


def quantify(term: Quantified, event: Mapping[str, Any]) -> bool | None:
    if any(isinstance(value_of(event, name), Interval) for name in outer_names(term)):
        return None
    strings_there = event[ALL_STRINGS] if ALL_STRINGS in event else list(strings(event))
    array = strings_there if term.array == ALL_STRINGS else value_of(event, term.array)
    if term.quantifier == "any" and kind(array) not in ("array", "record", "null", "interval"):
        array = [array]
    if kind(array) != "array":
        return None
    prefix = term.variable + "."
    visible = {name: value for name, value in event.items() if not name.startswith(prefix)}
    visible[ALL_STRINGS] = strings_there
    truths = [evaluate(term.body, visible | {term.variable: element}) for element in array]
    outcome = reduce(both, truths, TRUE) if term.quantifier == "forall" else any_of(truths)
    return None if outcome == UNDEFINED else outcome == TRUE


def outer_names(term: Quantified) -> set[str]:
    """The attributes that a quantifier looks at, beside its elements. All must be points."""

    def of_term(part: Term) -> set[str]:
        match part:
            case str():
                return {part}
            case Call(_, arguments):
                return set().union(*map(of_term, arguments))
            case Within(latitude, longitude):
                return of_term(latitude) | of_term(longitude)
            case Quantified():
                return outer_names(part)
        return set()

    def of_node(node: Node) -> set[str]:
        match node:
            case Predicate(attribute):
                return of_term(attribute)
            case Not(child) | IsTruth(child):
                return of_node(child)
            case Connective(_, children) | AtLeast(_, children):
                return set().union(*map(of_node, children))
        return set()

    of_element = {name for name in of_node(term.body) if (name + ".").startswith(term.variable + ".")}
    return ({term.array} | (of_node(term.body) - of_element)) - {ALL_STRINGS}


EARTH = 6_371_008.8


def is_within(latitude: Any, longitude: Any, shape: tuple[Any, ...]) -> bool | None:
    if kind(latitude) != "number" or kind(longitude) != "number":
        return None
    if not (-90 <= latitude <= 90 and -180 <= longitude <= 180):
        return None
    if isinstance(shape[0], tuple):  # a rectangle, whose border belongs to it
        longitudes, latitudes = zip(*shape, strict=True)
        return bool(
            min(latitudes) <= latitude <= max(latitudes) and min(longitudes) <= longitude <= max(longitudes)
        )
    a, b, c, d = map(math.radians, (latitude, longitude, *shape[:2]))
    half = math.sin((c - a) / 2) ** 2 + math.cos(a) * math.cos(c) * math.sin((d - b) / 2) ** 2
    return bool(2 * EARTH * math.asin(min(1.0, math.sqrt(half))) <= shape[2])


def strings(value: Any) -> Iterable[str | None]:
    """Every string in a value, wherever it lies; None for an interval of strings."""
    match value:
        case str():
            yield value
        case dict():
            for inner in value.values():
                yield from strings(inner)
        case list():
            for inner in value:
                yield from strings(inner)
        case Interval(str()):
            yield None


# --- predicates -----------------------------------------------------------------------------------


def predicate(name: str, value: Any, operands: tuple[Any, ...]) -> Truth:
    if name == "IS NULL" or (operands == (None,) and name == "<=>"):
        return truth(value is None)
    if value is None:
        return FALSE if name == "<=>" else UNDEFINED
    if name == "truth":
        name, operands = "=", (True,)
    judge = test_interval if isinstance(value, Interval) else test
    return judge(name, value, operands)


def test(name: str, value: Any, operands: tuple[Any, ...]) -> Truth:
    """The truth of an operator for one present value."""
    match name:
        case "=" | "<=>" | "<" | "<=" | ">" | ">=":
            return compare(ORDER[name], value, operands[0])
        case "BETWEEN":
            return both(compare(operator.ge, value, operands[0]), compare(operator.le, value, operands[1]))
        case "IN":
            return any_of(compare(operator.eq, value, operand) for operand in operands)
        case "array_contains" | "arrays_overlap" if kind(value) == "array":
            return any_of(compare(operator.eq, item, operand) for item in value for operand in operands)
        case _ if name in TEXT and isinstance(value, str) and operands[0] is not None:
            held = TEXT[name](value, operands[0])
            return UNDEFINED if held is None else truth(held)
    return UNDEFINED


def test_interval(name: str, value: Interval, operands: tuple[Any, ...]) -> Truth:
    """Only the order of the ends and the operands matters, so count them off as 0, 2, 4 ...: odd numbers are
    the values between two neighbours, and the interval is every number from its low end to its high end."""
    if name in TEXT or any(kind(operand) not in ("null", kind(value.low)) for operand in operands):
        return UNDEFINED
    known = sorted({order(x) for x in (value.low, value.high, *operands) if x is not None})
    rank = {key: 2 * at for at, key in enumerate(known)}
    ranked = tuple(None if operand is None else rank[order(operand)] for operand in operands)
    inside = range(rank[order(value.low)], rank[order(value.high)] + 1)
    real = [at for at in inside if at % 2 == 0 or not are_neighbours(*known[at // 2 : at // 2 + 2])]
    outcomes = [test(name, at, ranked) for at in real]
    return Truth(TRUE in outcomes, FALSE in outcomes)


def any_of(truths: Iterable[Truth]) -> Truth:
    return reduce(either, truths, FALSE)


def compare(holds: Any, value: Any, operand: Any) -> Truth:
    """Undefined for null and for values of different kinds."""
    if kind(value) != kind(operand) or value is None:
        return UNDEFINED
    return truth(holds(order(value), order(operand)))


ORDER = {
    "=": operator.eq,
    "<=>": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def are_neighbours(low: Any, high: Any) -> bool:
    """Whether no value lies between two. Numbers are the real line."""
    if isinstance(low, datetime):
        return bool(high - low == timedelta(microseconds=1))
    return isinstance(low, bool) or (isinstance(low, str) and high == low + "\0")


def like(text: str, pattern: str) -> bool:
    r"""`_` is any character, `%` any text, `\` takes the next character as it is."""
    wild = {"_": ".", "%": ".*"}
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    regex = "".join(wild.get(part) or re.escape(part[-1]) for part in parts)
    return re.fullmatch(regex, text, re.DOTALL) is not None


def ip_in(text: str, network: str) -> bool | None:
    """None for what is no address. An IPv4 address inside IPv6 is the one of IPv4."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    address = getattr(address, "ipv4_mapped", None) or address
    block = ipaddress.ip_network(network)
    return address.version == block.version and address in block


@cache
def xpath(text: str, path: str) -> bool | None:
    """None for what is no document."""
    try:
        document = etree.ElementTree(etree.fromstring(text.encode()))
    except etree.XMLSyntaxError:
        return None
    return bool(etree.XPath(f"boolean({path})")(document))


TEXT: dict[str, Callable[[str, str], bool | None]] = {
    "startswith": str.startswith,
    "endswith": str.endswith,
    "contains": operator.contains,
    "LIKE": like,
    "ILIKE": lambda text, pattern: like(text.lower(), pattern.lower()),
    "RLIKE": lambda text, pattern: re.search(pattern, text) is not None,
    "ip_in": ip_in,
    "xpath": xpath,
}


# --- scores ---------------------------------------------------------------------------------------


class Weights(NamedTuple):
    """What scores depend on beside expression and event."""

    subscription: Mapping[Term, float] = {}
    event: Mapping[Term, float] = {}
    dimensions: frozenset[Term] | None = None  # the terms that count; None: all

    def of(self, leaf: Predicate) -> float:
        weight = self.subscription.get(looked_at(leaf), 1.0) if leaf.boost is None else leaf.boost
        return weight * self.event.get(looked_at(leaf), 1.0) if self.counts(leaf) else 0.0

    def counts(self, leaf: Predicate) -> bool:
        return self.dimensions is None or looked_at(leaf) in self.dimensions


def looked_at(leaf: Predicate) -> Term:
    """The term by which weights know a predicate: networks are ranges of `ip(address)`."""
    return Call("ip", (leaf.attribute,)) if leaf.operator == "ip_in" else leaf.attribute


def add(parts: Iterable[float]) -> float:
    """From left to right. Python's `sum` would compensate for rounding."""
    return reduce(operator.add, parts, 0.0)


def relevance(node: Node, event: Mapping[str, Any], weights: Weights) -> float | None:
    """NOT pushed down, XOR expanded; then AND adds its children, OR its true ones. None: not true."""
    known: dict[tuple[int, int, bool], float | None] = {}
    written = simple_betweens(node)

    def score(node: Node, positive: bool, operands: int = 0) -> float | None:
        """With `operands`, only that many of an XOR: it is a left fold."""
        key = (id(node), operands, positive)
        if key not in known:
            known[key] = compute(node, positive, operands)
        return known[key]

    def conjunction(parts: list[float | None]) -> float | None:
        return None if None in parts else add(part for part in parts if part is not None)

    def disjunction(parts: list[float | None]) -> float | None:
        true = [part for part in parts if part is not None]
        return add(true) if true else None

    def compute(node: Node, positive: bool, operands: int) -> float | None:
        match node:
            case Constant() | Predicate():
                outcome = evaluate(node, event)
                if not (outcome.can_be_true if positive else outcome.can_be_false):
                    return None
                return weights.of(node) if isinstance(node, Predicate) else 0.0
            case Not(child):
                return score(child, not positive)
            case Connective("AND" | "OR" as name, children):
                parts = [score(child, positive) for child in children]
                return conjunction(parts) if (name == "AND") == positive else disjunction(parts)
            case AtLeast(count, children):
                parts = [score(child, positive) for child in children]
                needed = count if positive else len(children) - count + 1
                return disjunction(parts) if sum(part is not None for part in parts) >= needed else None
            case IsTruth(Predicate() as tested):
                outcome = evaluate(node, event)
                holds = outcome.can_be_true if positive else outcome.can_be_false
                return weights.of(tested) if holds else None
            case IsTruth():
                raise TypeError("of truth tests, those of single predicates are judged here")
            case Connective(name, children):
                last = (operands or len(children)) - 1
                left = (node, last) if last > 1 else (children[0], 0)
                alike = (name == "XNOR") == positive
                cases = [(True, alike), (False, not alike)]
                return disjunction(
                    [conjunction([score(left[0], a, left[1]), score(children[last], b)]) for a, b in cases]
                )

    return score(written, True)


def relaxed(node: Node, event: Mapping[str, Any], weights: Weights) -> float | None:
    """Every true predicate counts, each distinct one once; None: there is none."""
    counted: dict[Any, float] = {}
    for leaf, positive in leaves(simple_betweens(node), (True,)):
        outcome = evaluate(leaf, event)
        predicate = leaf.child if isinstance(leaf, IsTruth) else leaf
        assert isinstance(predicate, Predicate)
        if weights.counts(predicate) and (outcome.can_be_true if positive else outcome.can_be_false):
            counted.setdefault(identity(leaf, positive), weights.of(predicate))
    return add(counted.values()) if counted else None


def leaves(node: Node, signs: tuple[bool, ...]) -> Iterable[tuple[Predicate | IsTruth, bool]]:
    """Predicates and tests of them from left to right, with signs: NOT is pushed down, an XOR needs both."""
    match node:
        case Predicate() | IsTruth():
            yield from ((node, sign) for sign in signs)
        case Not(child):
            yield from leaves(child, tuple(sorted((not sign for sign in signs), reverse=True)))
        case Connective(name, children):
            for child in children:
                yield from leaves(child, signs if name in ("AND", "OR") else (True, False))
        case AtLeast(_, children):
            for child in children:
                yield from leaves(child, signs)


def identity(leaf: Predicate | IsTruth, positive: bool) -> Any:
    """What makes two predicates the same: sets have no order, and 1 is not 1.0 as it is written."""
    if isinstance(leaf, IsTruth):
        assert isinstance(leaf.child, Predicate)
        # Of a test for true or false it matters which one is asked of the predicate without its own NOT.
        sign = None if leaf.test == "UNKNOWN" else (leaf.test == "TRUE") != leaf.child.negated
        return (sign, identity(leaf.child._replace(negated=False), True), leaf.negated == positive)
    operands = [(type(operand).__name__, repr(operand)) for operand in leaf.operands]
    is_set = leaf.operator in ("IN", "arrays_overlap")
    return (
        repr(leaf.attribute),
        leaf.operator,
        frozenset(operands) if is_set else tuple(operands),
        leaf.negated == positive,
    )


def simple_betweens(node: Node) -> Node:
    """A BETWEEN with a null end is two comparisons."""
    match node:
        case Predicate(attribute, "BETWEEN", (low, high), negated) if low is None or high is None:
            ends = (Predicate(attribute, ">=", (low,)), Predicate(attribute, "<=", (high,)))
            both_ends = Connective("AND", ends)
            return Not(both_ends) if negated else both_ends
        case Not(child):
            return Not(simple_betweens(child))
        case Connective(name, children):
            return Connective(name, tuple(simple_betweens(child) for child in children))
        case AtLeast(count, children):
            return AtLeast(count, tuple(simple_betweens(child) for child in children))
    return node
