"""Expressions with the published shape of a real set of display advertisements (Ji and Jacobsen 2021, 6.2).

The data set itself is not public. What is known of it: 1,392,196 expressions with 1 to 56 predicates and a
depth of 1 to 9, over 122 attributes; about 20 attributes in an event; and how often subexpressions recur.
Predicates are level 1, a node is one level above its highest child. A predicate occurs 68.76 times on
average, popular ones hundreds of thousands of times, and sharing falls with the level to 2.88 occurrences at
level 9, which are whole expressions that several advertisers wrote alike.

How it is made: every level has a pool of different subexpressions. A pool entry is AND (even levels) or OR
(odd levels) of an entry of the level below and a few more, mostly predicates. An expression is an entry,
drawn by a Zipf distribution from the pool of its depth, and so are the children of entries from theirs. The
size of each pool is what makes occurrences divided by distinct ones come out as published.

What the paper leaves open, and what is chosen here: sharing falls by the same factor from level to level;
shallow expressions are more frequent than deep ones (`DEPTH_SHARES`); the number of values of an attribute
lies between 2 and 100,000. The paper also counts 973,794 distinct predicates, which with 68.76 occurrences
each would be 48 predicates in the average expression; here it is about 9, and the sharing is what is kept.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tamis_lab.workloads.base import BLOCK, EVENT_BLOCK, EventDict, Workload, number_events
from tamis_lab.workloads.predicates import MAX_OPERANDS, Operator, OperatorMix, Predicates
from tamis_lab.workloads.sampling import Floats, Ints, Zipf, stream
from tamis_lab.workloads.text import concat, join_groups, numbered

DEEPEST = 9
MOST_PREDICATES = 56
SHARING_OF_PREDICATES, SHARING_OF_DEEPEST = 68.76, 2.88
DEPTH_SHARES = (0.04, 0.30, 0.25, 0.15, 0.10, 0.07, 0.04, 0.03, 0.02)
"""How many of the expressions have depth 1, 2, ..."""

_FURTHER_CHILDREN = (0.35, 0.30, 0.20, 0.10, 0.05)
"""How many children a node has besides one of the level below: 1, 2, ..."""
_FURTHER_IS_PREDICATE = 0.85

_OPERATORS = OperatorMix(equal=0.40, in_set=0.40, not_equal=0.05, between=0.10, greater_or_equal=0.05)


def target_sharing(level: int) -> float:
    """How often a subexpression of this level occurs on average.

    >>> [round(target_sharing(level), 2) for level in (1, 5, 9)]
    [68.76, 14.07, 2.88]
    """
    steps = (level - 1) / (DEEPEST - 1)
    return float(SHARING_OF_PREDICATES * (SHARING_OF_DEEPEST / SHARING_OF_PREDICATES) ** steps)


@dataclass(frozen=True)
class AdsLike(Workload):
    """Arbitrary expressions that share subexpressions at nine levels, as a real set of advertisements does.

    `popularity_alpha` is the exponent of the Zipf distribution by which subexpressions are drawn.

    >>> workload = AdsLike(count=1_000)
    >>> max(workload.subscriptions_table()["expression"].to_pylist(), key=len).count("(") >= 7
    True
    >>> 15 <= len(workload.events_dicts(1)[0]) <= 25
    True
    """

    name: ClassVar[str] = "ads"

    count: int = 1_392_196
    seed: int = 1
    attributes: int = 122
    event_size: int = 20
    attribute_alpha: float = 0.6
    popularity_alpha: float = 0.8

    def __post_init__(self) -> None:
        """Refuse parameters that cannot be met."""
        if not 1 <= self.event_size <= self.attributes * 4 // 5:
            raise ValueError("need an event_size of at least 1 and at most four fifths of the attributes")

    # --- attributes and their values ---------------------------------------------------------------------

    @cached_property
    def _attribute(self) -> Zipf:
        return Zipf(self.attributes, self.attribute_alpha)

    @cached_property
    def _cardinality(self) -> Ints:
        sizes = np.geomspace(2, 100_000, self.attributes).astype(np.int64)
        return stream(self.seed, self.name, "cardinality").permutation(sizes)

    def _values(self, rng: np.random.Generator, attribute: Ints, width: int) -> Ints:
        """`width` values of each attribute, small ones being popular: their logarithm is uniform."""
        drawn = rng.random((attribute.size, width))
        return (self._cardinality[attribute, None] ** drawn).astype(np.int64) - 1

    @cached_property
    def _names(self) -> pa.Array:
        return numbered("a", self.attributes)

    @property
    def event_schema(self) -> pa.Schema:
        """Integers in every attribute."""
        return pa.schema([(name, pa.int64()) for name in self._names.to_pylist()])

    # --- the pools ---------------------------------------------------------------------------------------

    @cached_property
    def pool_sizes(self) -> list[int]:
        """How many entries the pool of each level has, from level 1 up.

        From the top down: how often the level occurs and how many draws from its pool there are follow from
        the levels above; the pool is as large as makes that many draws hit the right number of different
        entries.
        """
        sizes: list[int] = []
        occurrences, distinct = np.zeros(DEEPEST + 1), np.zeros(DEEPEST + 1)
        for level in range(DEEPEST, 0, -1):
            roots = self.count * DEPTH_SHARES[level - 1]
            children = np.array([_mean_children(above, level) for above in range(DEEPEST + 1)])
            occurrences[level] = roots + occurrences @ children
            draws = roots + distinct @ children
            distinct[level] = max(1, min(draws, occurrences[level] / target_sharing(level)))
            sizes.append(_pool_size(draws, distinct[level], self.popularity_alpha))
        return sizes[::-1]

    @cached_property
    def _popularity(self) -> list[Zipf]:
        return [Zipf(size, self.popularity_alpha) for size in self.pool_sizes]

    @cached_property
    def _pools(self) -> list[pa.Array]:
        """The texts of all levels, from level 1 up, without parentheses around them."""
        rng = stream(self.seed, self.name, "pools")
        pools = [self._predicate_pool(rng, self.pool_sizes[0])]
        sizes: list[Ints] = [np.ones(len(pools[0]), dtype=np.int64)]
        for level in range(2, DEEPEST + 1):
            text, predicates = self._node_pool(rng, level, pools, sizes)
            pools.append(text)
            sizes.append(predicates)
        return pools

    def _predicate_pool(self, rng: np.random.Generator, size: int) -> pa.Array:
        """Different predicates, as far as the attributes have that many."""
        found = pa.array([], pa.large_string())
        while len(found) < size:
            attribute = self._attribute.draw(rng, size + 100)
            operator = _OPERATORS.draw(rng, attribute.size)
            operands = np.sort(self._values(rng, attribute, MAX_OPERANDS), axis=1)
            between = operator == Operator.BETWEEN
            operands[between, 1:] = np.column_stack([operands[between, -1]] * (MAX_OPERANDS - 1))
            repeated = np.zeros(operands.shape, dtype=bool)
            repeated[:, 1:] = operands[:, 1:] == operands[:, :-1]
            operands[repeated] = -1
            # One value is neither a set nor a range.
            several = (operator == Operator.IN) | between
            operator[several & ((operands >= 0).sum(axis=1) == 1)] = Operator.EQUAL
            compact = np.take_along_axis(operands, np.argsort(operands < 0, axis=1, kind="stable"), axis=1)
            drawn = Predicates(attribute, operator, compact).text(self._names, self._literals)
            found = pa.concat_arrays([found, drawn]).unique()
        return found[:size]

    @cached_property
    def _literals(self) -> pa.Array:
        return numbered("", int(self._cardinality.max()))

    def _node_pool(
        self, rng: np.random.Generator, level: int, pools: list[pa.Array], sizes: list[Ints]
    ) -> tuple[pa.Array, Ints]:
        """Different nodes of a level, and the number of predicates in each."""
        first_of_level = np.concatenate([[0], np.cumsum([len(pool) for pool in pools])])
        below = pa.concat_arrays([pools[0], *(concat("(", pool, ")") for pool in pools[1:])])
        predicates_below = np.concatenate(sizes)
        wanted = self.pool_sizes[level - 1]
        rows: Ints = np.empty((0, 1 + len(_FURTHER_CHILDREN)), np.int64)
        found = -1
        # Small pools may not have as many different combinations: then what there is.
        while found < len(rows) < wanted:
            found = len(rows)
            drawn = self._draw_children(rng, level, wanted + 10, first_of_level)
            rows = _without_repeats(np.concatenate([rows, _fitting(drawn, predicates_below)]))
        rows = rows[:wanted]
        used = rows >= 0
        separator = " AND " if level % 2 == 0 else " OR "
        text = join_groups(below.take(pa.array(rows[used])), used.sum(axis=1), separator)
        return text, np.where(used, predicates_below[rows], 0).sum(axis=1)

    def _draw_children(self, rng: np.random.Generator, level: int, count: int, first_of_level: Ints) -> Ints:
        """Rows of children, numbered through all levels; -1 where a node has fewer."""
        width = len(_FURTHER_CHILDREN)
        levels = np.empty((count, 1 + width), dtype=np.int64)
        levels[:, 0] = level - 1
        # An OR directly below an OR would be part of it: nodes further down must be of the other kind.
        lower = np.array(_levels_of_further_nodes(level) or [1])
        nested = lower[rng.integers(lower.size, size=(count, width))]
        levels[:, 1:] = np.where(rng.random((count, width)) < _FURTHER_IS_PREDICATE, 1, nested)
        children = np.empty_like(levels)
        for child_level in np.unique(levels):
            places = levels == child_level
            size = first_of_level[child_level] - first_of_level[child_level - 1]
            drawn = Zipf(int(size), self.popularity_alpha).draw(rng, int(places.sum()))
            children[places] = drawn + first_of_level[child_level - 1]
        further = rng.choice(width, size=count, p=_FURTHER_CHILDREN) + 1
        children[np.arange(1 + width) > further[:, None]] = -1
        return children

    # --- subscriptions and events ------------------------------------------------------------------------

    def _expressions(self, block: int) -> pa.Array:
        rng = stream(self.seed, self.name, "subscriptions", block)
        levels = rng.choice(DEEPEST, size=BLOCK, p=DEPTH_SHARES)
        parts, rows_of_part = [], []
        for level, pool in enumerate(self._pools):
            rows = np.flatnonzero(levels == level)
            drawn = Zipf(len(pool), self.popularity_alpha).draw(rng, rows.size)
            parts.append(pool.take(pa.array(drawn)))
            rows_of_part.append(rows)
        return pa.concat_arrays(parts).take(pa.array(np.argsort(np.concatenate(rows_of_part))))

    def _events(self, block: int) -> list[EventDict]:
        rng = stream(self.seed, self.name, "events", block)
        spread = self.event_size // 4
        sizes = rng.integers(self.event_size - spread, self.event_size + spread + 1, size=EVENT_BLOCK)
        keys = rng.exponential(size=(EVENT_BLOCK, self.attributes)) / self._attribute.probabilities
        attributes = np.argsort(keys, axis=1)
        values = self._values(rng, attributes.ravel(), 1).reshape(attributes.shape)
        used = np.arange(self.attributes) < sizes[:, None]
        ends = np.cumsum(sizes)[:-1]
        rows = [[row.tolist() for row in np.split(column[used], ends)] for column in (attributes, values)]
        return number_events(self._names, *rows)


def _levels_of_further_nodes(level: int) -> list[int]:
    return [lower for lower in range(level - 1, 1, -2) if lower > 1]


def _mean_children(above: int, level: int) -> float:
    """How many children of `level` a node of the level `above` has on average."""
    if above <= level:
        return 0.0
    further = float(np.arange(1, 1 + len(_FURTHER_CHILDREN)) @ np.array(_FURTHER_CHILDREN))
    nested = _levels_of_further_nodes(above)
    mean = float(level == above - 1)
    if level == 1:
        mean += further * (_FURTHER_IS_PREDICATE if nested else 1.0)
    elif level in nested:
        mean += further * (1 - _FURTHER_IS_PREDICATE) / len(nested)
    return mean


def _pool_size(draws: float, distinct: float, alpha: float) -> int:
    """How large a pool is, of which this many draws are expected to hit this many different entries."""
    low, high = int(distinct), max(2, int(distinct) * 2)
    while high < 2**26 and _expected_distinct(draws, high, alpha) < distinct:
        high *= 2
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _expected_distinct(draws, middle, alpha) >= distinct else (middle, high)
    return max(1, high)


def _expected_distinct(draws: float, size: int, alpha: float) -> float:
    missed: Floats = np.exp(draws * np.log1p(-np.minimum(Zipf(size, alpha).probabilities, 1 - 1e-12)))
    return float(size - missed.sum())


def _fitting(children: Ints, predicates: Ints) -> Ints:
    """Drop rows that name a child twice, and children that make a row too large; two must remain."""
    ordered = np.sort(children, axis=1)
    twice = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
    rows = children[~twice]
    total = np.cumsum(np.where(rows >= 0, predicates[rows], 0), axis=1)
    rows = np.where(total > MOST_PREDICATES, -1, rows)
    fitting: Ints = rows[(rows >= 0).sum(axis=1) >= 2]
    return fitting


def _without_repeats(rows: Ints) -> Ints:
    """The first row of each set of children."""
    _, first = np.unique(np.sort(rows, axis=1), axis=0, return_index=True)
    return rows[np.sort(first)]
