"""Predicts the memory of an algorithm: the cost model of Bittner 2008, chapter 5.

Thirteen parameters describe a set of subscriptions: six of the expressions as they are written, three of what
they become when translated to disjunctive normal form, and four widths of identifiers. Three formulas give
the bytes of the counting, cluster and Boolean filtering algorithms, without the predicate indexes that all
of them share. The turning point is the number of conjunctions per subscription above which translation takes
more memory than keeping the expression.

>>> parameters = measure(["a = 1 AND (b = 2 OR c = 3)", "a = 1 AND d = 4"])
>>> parameters.predicates, parameters.conjunctions, parameters.unique_predicates
(2.5, 1.5, 4)
>>> parameters.smallest()
'counting'
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tamis._kernel import Expression
from tamis.errors import UnsupportedExpressionError
from tamis.index import Index

MODELLED = ("boolean", "counting", "cluster")
"""The algorithms that the model knows, by the names that `Index(algorithm=...)` takes."""


@dataclass(frozen=True)
class Parameters:
    """The thirteen parameters; numbers per subscription are averages.

    >>> class_1 = Parameters(6, 4, 1, 6, 2, 8 / 6)
    >>> class_1.turning_point("counting"), class_1.bytes("boolean")
    (2.0, 68.75)
    """

    predicates: float
    """Predicates of a subscription."""
    operators: float
    """ANDs and ORs of a subscription; one with n children counts once."""
    subscriptions: int
    unique_predicates: int
    conjunctions: float
    """Conjunctions of a subscription after translation."""
    predicate_uses: float
    """Conjunctions that a predicate of a subscription occurs in."""
    subscription_width: int = 4
    predicate_width: int = 4
    location_width: int = 4
    cluster_width: int = 4

    @property
    def operator_share(self) -> float:
        """Operators per predicate."""
        return self.operators / self.predicates

    @property
    def commonality(self) -> float:
        """The share of the predicates that others have already."""
        return 1 - self.unique_predicates / (self.predicates * self.subscriptions)

    @property
    def use_share(self) -> float:
        """The share of a subscription's conjunctions that a predicate occurs in."""
        return self.predicate_uses / self.conjunctions

    def bytes(self, algorithm: str) -> float:
        """What the algorithm needs for all subscriptions (equations 5.1, 5.2 and 5.3).

        >>> round(Parameters(6, 4, 1, 6, 2, 8 / 6).bytes("cluster"), 2)
        80.75
        """
        bits = self.predicates * (1 - self.commonality) / 8
        if algorithm == "boolean":
            each = self.predicates * (1 + self.predicate_width + self.subscription_width)
            each += 2 * self.operators + self.location_width + 2
        else:
            widths = self.subscription_width + self.predicate_width
            each = self.predicate_uses * self.predicates * widths
            each += self.conjunctions * self._conjunction_bytes(algorithm)
        return self.subscriptions * (each + bits)

    def turning_point(self, algorithm: str) -> float:
        """Boolean filtering takes less memory than this algorithm with more conjunctions than this.

        Equations 5.7 and 5.8 for any widths: the other parameters stay as they are.

        >>> round(Parameters(7, 6, 1, 7, 6, 18 / 7).turning_point("counting"), 3)
        3.115
        """
        widths = self.subscription_width + self.predicate_width
        kept = self.predicates * (2 * self.operator_share + 1 + widths) + self.location_width + 2
        return kept / (self._conjunction_bytes(algorithm) + widths * self.use_share * self.predicates)

    def _conjunction_bytes(self, algorithm: str) -> int:
        """What a translated conjunction takes, whatever its predicates."""
        match algorithm:
            case "counting":
                return 2
            case "cluster":
                return self.cluster_width + self.subscription_width
        raise ValueError(f"the model has no formula for {algorithm!r}; it knows {', '.join(MODELLED)}")

    def smallest(self) -> str:
        """The algorithm that should use the least memory; of equals, the one that translates nothing.

        >>> Parameters(12, 10, 1, 12, 4, 20 / 12).smallest()
        'boolean'
        """
        return min(MODELLED, key=self.bytes)


@dataclass(frozen=True)
class Shape:
    """What translation makes of an expression, counted without translating it."""

    operator: str
    predicates: int
    operators: int
    conjunctions: int
    translated: int
    """Predicates of all conjunctions together."""


def measure(expressions: Iterable[str | Expression]) -> Parameters:
    """Measure the parameters of some subscriptions.

    >>> measure(["(a = 1 OR b = 2) AND (c = 3 OR d = 4)"]).conjunctions
    4.0
    """
    unique: set[str] = set()
    shapes = [shape_of(expression, unique) for expression in expressions]
    predicates = sum(shape.predicates for shape in shapes)
    if not predicates:
        raise ValueError("there are no predicates: the model needs at least one subscription that has some")
    return Parameters(
        predicates=predicates / len(shapes),
        operators=sum(shape.operators for shape in shapes) / len(shapes),
        subscriptions=len(shapes),
        unique_predicates=len(unique),
        conjunctions=sum(shape.conjunctions for shape in shapes) / len(shapes),
        predicate_uses=sum(shape.translated for shape in shapes) / predicates,
    )


def shape_of(expression: str | Expression, unique: set[str] | None = None) -> Shape:
    """Count one expression; predicates not seen before are added to `unique`.

    >>> shape_of("NOT (a = 1 AND b = 2) AND c = 3")
    Shape(operator='and', predicates=3, operators=2, conjunctions=2, translated=4)
    """
    parsed = Expression.parse(expression) if isinstance(expression, str) else expression
    return _shape(json.loads(parsed.to_json()), False, set() if unique is None else unique)


def _shape(node: Any, negated: bool, unique: set[str]) -> Shape:
    if isinstance(node, bool):
        return Shape("constant", 0, 0, 1, 0)
    if "attribute" in node:
        negated ^= node.get("negated", False)
        key = {name: value for name, value in node.items() if name not in ("negated", "boost")}
        unique.add(f"{negated} {json.dumps(key, sort_keys=True)}")
        return Shape("predicate", 1, 0, 1, 1)
    operator, children = next((name, inside) for name, inside in node.items() if name != "boost")
    if operator not in ("not", "and", "or", "xor", "xnor"):
        raise ValueError(f"the cost models know predicates, AND, OR, NOT, XOR and XNOR, not {operator}")
    if operator == "not":
        return _shape(children, not negated, unique)
    if operator in ("and", "or"):
        joined = "or" if (operator == "and") == negated else "and"
        return _join(joined, [_shape(child, negated, unique) for child in children])
    return _different(children, (operator == "xor") != negated, unique)


def _different(children: list[Any], wanted: bool, unique: set[str]) -> Shape:
    """XOR of the children, or XNOR, written with AND and OR: from left to right, both ways each time."""
    yes, no = (_shape(children[0], negated, unique) for negated in (False, True))
    for child in children[1:]:
        true, false = (_shape(child, negated, unique) for negated in (False, True))
        yes, no = (
            _join("or", [_join("and", [yes, false]), _join("and", [no, true])]),
            _join("or", [_join("and", [yes, true]), _join("and", [no, false])]),
        )
    return yes if wanted else no


def _join(operator: str, children: list[Shape]) -> Shape:
    nested = sum(child.operators - (child.operator == operator) for child in children)
    if operator == "or":
        conjunctions = sum(child.conjunctions for child in children)
        translated = sum(child.translated for child in children)
    else:
        conjunctions = math.prod(child.conjunctions for child in children)
        translated = sum(child.translated * (conjunctions // child.conjunctions) for child in children)
    return Shape(operator, sum(child.predicates for child in children), 1 + nested, conjunctions, translated)


def index_of(
    ids: Iterable[Any],
    expressions: Iterable[str],
    algorithm: str,
    options: Mapping[str, bool | int | float | str] | None = None,
) -> tuple[Index, int]:
    """An index of all expressions that the algorithm can hold, and how many it refused.

    >>> either = " AND ".join(f"(a{n} = 1 OR b{n} = 1)" for n in range(20))
    >>> index, refused = index_of([1, 2], [either, "c = 3"], "counting")
    >>> len(index), refused
    (1, 1)
    """
    index = Index(algorithm=algorithm, options=options)
    rows = list(zip(ids, expressions, strict=True))
    try:
        index.add_many([number for number, _ in rows], [text for _, text in rows])
        return index, 0
    except UnsupportedExpressionError:
        # Nothing was added. One by one, each is held or refused by itself.
        refused = 0
    for number, text in rows:
        try:
            index.add(number, text)
        except UnsupportedExpressionError:
            refused += 1
    return index, refused


def measured_bytes(ids: Iterable[Any], expressions: Iterable[str], algorithm: str) -> tuple[int, int]:
    """What an index of the algorithm really takes, without its predicate index, and how many it refused.

    >>> size, refused = measured_bytes([1, 2], ["a = 1 OR b = 2", "c = 3"], "boolean")
    >>> size > 0, refused
    (True, 0)
    """
    index, refused = index_of(ids, expressions, algorithm)
    parts = index.stats()["bytes"]
    return sum(size for name, size in parts.items() if name != "predicates"), refused
