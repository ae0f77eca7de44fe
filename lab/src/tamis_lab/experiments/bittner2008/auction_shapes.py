"""Shared code of Tables 3.2 and 3.3 of Bittner 2008: classes of expressions, counted."""

from collections.abc import Mapping

from tamis_lab.costs import shape_of
from tamis_lab.experiments.contract import Row

Counts = tuple[int, int, int, int]
"""Operators, predicates, conjunctions after translation and their predicates."""

_NAMES = ("operators", "predicates", "conjunctions after translation", "predicates after translation")


def counted(texts: Mapping[int, str], published: Mapping[int, Counts]) -> list[Row]:
    """The published counts of each class, next to those of an expression of it.

    >>> [row.ours for row in counted({1: "a = 1 AND (b = 2 OR c = 3)"}, {1: (2, 3, 2, 4)})]
    [2, 3, 2, 4]
    """
    rows = []
    for number, theirs in published.items():
        shape = shape_of(texts[number])
        ours = (shape.operators, shape.predicates, shape.conjunctions, shape.translated)
        rows += [
            Row(f"class {number}: {name}", paper, value)
            for name, paper, value in zip(_NAMES, theirs, ours, strict=True)
        ]
    return rows
