"""Predicates by the million: columns of numbers that become columns of text.

A `Predicates` holds one row per predicate: an attribute number, an operator and up to four operands, each the
number of a literal. The text of all rows is made by Arrow in a few vectorised passes, one per operator.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis_lab.workloads.sampling import Ints, Zipf, distinct_rows
from tamis_lab.workloads.text import concat, join_groups, texts

MAX_OPERANDS = 4


class Operator(IntEnum):
    """The operators that generators use."""

    EQUAL = 0
    NOT_EQUAL = 1
    LESS = 2
    LESS_OR_EQUAL = 3
    GREATER = 4
    GREATER_OR_EQUAL = 5
    BETWEEN = 6
    IN = 7


_COMPARISONS = {
    Operator.EQUAL: " = ",
    Operator.NOT_EQUAL: " != ",
    Operator.LESS: " < ",
    Operator.LESS_OR_EQUAL: " <= ",
    Operator.GREATER: " > ",
    Operator.GREATER_OR_EQUAL: " >= ",
}


@dataclass(frozen=True)
class OperatorMix:
    """How often each operator occurs; the shares need not add up to one.

    >>> OperatorMix(equal=3, between=1).shares.round(2).tolist()
    [0.75, 0.0, 0.0, 0.0, 0.0, 0.0, 0.25, 0.0]
    """

    equal: float = 0.0
    not_equal: float = 0.0
    less: float = 0.0
    less_or_equal: float = 0.0
    greater: float = 0.0
    greater_or_equal: float = 0.0
    between: float = 0.0
    in_set: float = 0.0

    @property
    def shares(self) -> npt.NDArray[np.float64]:
        """The probability of each `Operator`, in its order."""
        weights = np.array(
            [
                self.equal,
                self.not_equal,
                self.less,
                self.less_or_equal,
                self.greater,
                self.greater_or_equal,
                self.between,
                self.in_set,
            ]
        )
        shares: npt.NDArray[np.float64] = weights / weights.sum()
        return shares

    def draw(self, rng: np.random.Generator, count: int) -> Ints:
        """Draw `count` operators."""
        return rng.choice(len(Operator), size=count, p=self.shares)


@dataclass(frozen=True)
class Predicates:
    """One row per predicate.

    Operands are literal numbers, -1 where a row has fewer than `MAX_OPERANDS`. BETWEEN has its two bounds, IN
    its members.
    """

    attribute: Ints
    operator: Ints
    operands: Ints

    def __len__(self) -> int:
        """The number of predicates."""
        return len(self.attribute)

    def text(self, attributes: pa.Array, literals: pa.Array) -> pa.Array:
        """The text of every predicate.

        >>> rows = Predicates(np.array([0, 1]), np.array([Operator.LESS, Operator.IN]),
        ...                   np.array([[2, -1, -1, -1], [0, 1, -1, -1]]))
        >>> rows.text(texts(["age", "hue"]), texts(["'red'", "'blue'", "30"])).to_pylist()
        ['age < 30', "hue IN ('red', 'blue')"]
        """
        parts: list[pa.Array] = []
        rows_of_part: list[Ints] = []
        for operator in Operator:
            rows = np.flatnonzero(self.operator == operator)
            if rows.size:
                parts.append(self._text_of(operator, rows, attributes, literals))
                rows_of_part.append(rows)
        if not parts:
            return texts([])
        position = np.empty(len(self), dtype=np.int64)
        position[np.concatenate(rows_of_part)] = np.arange(len(self))
        return pa.concat_arrays(parts).take(pa.array(position))

    def _text_of(self, operator: Operator, rows: Ints, attributes: pa.Array, literals: pa.Array) -> pa.Array:
        names = attributes.take(pa.array(self.attribute[rows]))
        operands = self.operands[rows]
        if operator in _COMPARISONS:
            return concat(names, _COMPARISONS[operator], literals.take(pa.array(operands[:, 0])))
        if operator is Operator.BETWEEN:
            low, high = (literals.take(pa.array(operands[:, side])) for side in (0, 1))
            return concat(names, " BETWEEN ", low, " AND ", high)
        present = operands >= 0
        members = literals.take(pa.array(operands[present]))
        return concat(names, " IN (", join_groups(members, present.sum(axis=1), ", "), ")")


def draw_operands(rng: np.random.Generator, operators: Ints, values: Zipf) -> Ints:
    """Operands for a column of operators, drawn from `values`; IN sets have two to four members.

    >>> from tamis_lab.workloads.sampling import stream
    >>> draw_operands(stream(1), np.array([Operator.EQUAL, Operator.BETWEEN]), Zipf(100, alpha=0)).shape
    (2, 4)
    """
    operands = np.full((len(operators), MAX_OPERANDS), -1, dtype=np.int32)
    operands[:, 0] = values.draw(rng, len(operators))

    between = np.flatnonzero(operators == Operator.BETWEEN)
    operands[between, :2] = np.sort(values.draw(rng, (between.size, 2)), axis=1)

    in_set = np.flatnonzero(operators == Operator.IN)
    largest = min(MAX_OPERANDS, values.size)
    members = distinct_rows(rng, values, in_set.size, largest)
    sizes = rng.integers(min(2, largest), largest + 1, size=in_set.size)
    unused = np.arange(largest) >= sizes[:, None]
    members[unused] = values.size  # Sorts behind every member.
    members.sort(axis=1)
    operands[in_set, :largest] = np.where(members == values.size, -1, members)
    return operands
