"""ABE-Gen: arbitrary Boolean expressions that share subexpressions (Ji and Jacobsen 2021, section 6.1).

An expression is a tree. At each inner node an operator is drawn (40 % AND, 40 % OR, 10 % NOT, 5 % XOR, 5 %
XNOR), AND and OR have four children; at the greatest depth a node is a predicate. Subexpressions are drawn
from a pool by a Zipf distribution, so that popular ones occur in many expressions. At the defaults an
expression has about 12 predicates, written `(a1 < 5 OR a7 = 3 OR ...) AND (NOT a4 = 1) AND ...`.

What the paper leaves open, and what is chosen here:

- *Pool size.* With exponent 0 all subexpressions are different. Otherwise a level's pool has `pool_ratio`
  entries for every draw from it; 0.258 gives the paper's 4.33 occurrences per distinct subexpression at its
  default exponent of 0.6, for any number of expressions.
- *Predicates* are drawn afresh in every pool entry, with different attributes in one node. How often one
  recurs follows from the number of attributes, the cardinality and the mix of operators; the mix is chosen so
  that the default workload has the paper's 18.35 occurrences per distinct predicate.
- *Attributes* follow a Zipf distribution with the exponent `attribute_alpha`, in expressions and events
  alike.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis_lab.workloads.base import BLOCK, EVENT_BLOCK, EventDict, Workload, number_events
from tamis_lab.workloads.predicates import (
    OperatorMix,
    Predicates,
    draw_operands,
)
from tamis_lab.workloads.sampling import Ints, Zipf, distinct_rows, distinct_subsets, stream
from tamis_lab.workloads.text import concat, join_groups, numbered, texts

AND, OR, NOT, XOR, XNOR = range(5)
_SEPARATORS = texts([" AND ", " OR ", "", " XOR ", " XNOR "])
_PREFIXES = texts(["", "", "NOT ", "", ""])

PREDICATE_OPERATORS = OperatorMix(
    equal=0.48,
    not_equal=0.03,
    less=0.11,
    less_or_equal=0.11,
    greater=0.11,
    greater_or_equal=0.11,
    between=0.025,
    in_set=0.025,
)


@dataclass(frozen=True)
class Nodes:
    """Inner nodes of one level: an operator each, and as many children as it takes.

    `children` numbers the predicates or nodes of the level below; node i owns
    `children[sizes[:i].sum():][:sizes[i]]`.
    """

    operator: Ints
    sizes: Ints
    children: Ints

    def text(self, children: pa.Array) -> pa.Array:
        """The text of every node, given that of the level below, without parentheses around it.

        >>> nodes = Nodes(np.array([OR, NOT]), np.array([2, 1]), np.array([0, 1, 1]))
        >>> nodes.text(texts(["x = 1", "y < 2"])).to_pylist()
        ['x = 1 OR y < 2', 'NOT y < 2']
        """
        operator = pa.array(self.operator)
        joined = join_groups(children.take(pa.array(self.children)), self.sizes, _SEPARATORS.take(operator))
        return concat(_PREFIXES.take(operator), joined)


@dataclass(frozen=True)
class Pool:
    """The subexpressions that expressions draw from: predicates, and the levels of nodes above them."""

    predicates: Predicates
    levels: list[Nodes]

    def __len__(self) -> int:
        """The number of entries of the top level."""
        return len(self.levels[-1].operator) if self.levels else len(self.predicates)


@dataclass(frozen=True)
class Sharing:
    """How often predicates and subexpressions recur. Subexpressions are the inner nodes below the root.

    >>> Sharing(100, 20, 30, 10).per_predicate
    5.0
    """

    predicate_occurrences: int
    distinct_predicates: int
    subexpression_occurrences: int
    distinct_subexpressions: int

    @property
    def per_predicate(self) -> float:
        """Occurrences per distinct predicate."""
        return self.predicate_occurrences / self.distinct_predicates

    @property
    def per_subexpression(self) -> float:
        """Occurrences per distinct subexpression; 0 where the expressions have none."""
        return self.subexpression_occurrences / max(1, self.distinct_subexpressions)


@dataclass(frozen=True)
class AbeGen(Workload):
    """Arbitrary expressions with shared subexpressions; the defaults are those of the paper's Table 3.

    >>> workload = AbeGen(count=1_000, seed=1)
    >>> len(workload.events_dicts(1)[0])
    20
    >>> round(workload.sharing().per_subexpression)
    4
    """

    name: ClassVar[str] = "arbitrary"

    count: int = 1_000_000
    seed: int = 1
    depth: int = 3
    children: int = 4
    logical_operators: tuple[float, float, float, float, float] = (0.40, 0.40, 0.10, 0.05, 0.05)
    subexpression_alpha: float = 0.6
    attributes: int = 1_000
    cardinality: int = 100
    event_size: int = 20
    attribute_alpha: float = 0.4
    pool_ratio: float = 0.258
    operators: OperatorMix = PREDICATE_OPERATORS

    def __post_init__(self) -> None:
        """Refuse parameters that cannot be met."""
        if self.depth < 1 or self.children < 2:
            raise ValueError("need a depth of at least 1 and at least 2 children")
        if max(self.children, self.event_size) > self.attributes:
            raise ValueError("a node or an event cannot have more attributes than there are")

    @cached_property
    def _attribute(self) -> Zipf:
        return Zipf(self.attributes, self.attribute_alpha)

    @cached_property
    def _value(self) -> Zipf:
        return Zipf(self.cardinality, alpha=0)

    @cached_property
    def _names(self) -> pa.Array:
        return numbered("a", self.attributes)

    @property
    def event_schema(self) -> pa.Schema:
        """Integers in every attribute."""
        return pa.schema([(name, pa.int64()) for name in self._names.to_pylist()])

    @property
    def _shares_subexpressions(self) -> bool:
        return self.subexpression_alpha > 0 and self.depth > 2

    # --- the pool ----------------------------------------------------------------------------------------

    @property
    def _mean_children(self) -> float:
        shares = np.array(self.logical_operators) / sum(self.logical_operators)
        return float(shares @ [self.children, self.children, 1, 2, 2])

    def _draw_operators(self, rng: np.random.Generator, count: int) -> tuple[Ints, Ints]:
        shares = np.array(self.logical_operators) / sum(self.logical_operators)
        operator = rng.choice(5, size=count, p=shares)
        return operator, np.array([self.children, self.children, 1, 2, 2])[operator]

    def _draw_nodes(self, rng: np.random.Generator, count: int, below: int) -> Nodes:
        """Draw nodes whose children are entries of a shared level of `below`, none twice in a node."""
        operator, sizes = self._draw_operators(rng, count)
        width = min(self.children, below)
        sizes = np.minimum(sizes, width)
        children = distinct_rows(rng, Zipf(below, self.subexpression_alpha), count, width)
        return Nodes(operator, sizes, children[np.arange(width) < sizes[:, None]])

    def _draw_fresh_nodes(self, rng: np.random.Generator, count: int) -> Nodes:
        """Draw nodes whose children are all different: 0, 1, 2, ..."""
        operator, sizes = self._draw_operators(rng, count)
        return Nodes(operator, sizes, np.arange(sizes.sum()))

    def _draw_predicates(self, rng: np.random.Generator, sizes: Ints) -> Predicates:
        """Draw `sizes[i]` predicates for node i, on different attributes within a node."""
        used = np.arange(self.children) < sizes[:, None]
        attribute = distinct_rows(rng, self._attribute, len(sizes), self.children)[used]
        operator = self.operators.draw(rng, attribute.size)
        return Predicates(attribute, operator, draw_operands(rng, operator, self._value))

    @cached_property
    def pool(self) -> Pool:
        """The shared subexpressions: `depth - 2` levels of nodes and the predicates below them."""
        rng = stream(self.seed, self.name, "pool")
        sizes = []
        draws = float(self.count)
        for _ in range(self.depth - 2):
            draws *= self._mean_children * self.pool_ratio
            sizes.append(max(1, round(draws)))
        levels: list[Nodes] = []
        for size in reversed(sizes):
            below = len(levels[-1].operator) if levels else 0
            nodes = self._draw_nodes(rng, size, below) if levels else self._draw_fresh_nodes(rng, size)
            levels.append(nodes)
        return Pool(self._draw_predicates(rng, levels[0].sizes), levels)

    @cached_property
    def _pool_text(self) -> pa.Array:
        return self._text_of(self.pool)

    def _text_of(self, pool: Pool) -> pa.Array:
        text = pool.predicates.text(self._names, numbered("", self.cardinality))
        for nodes in pool.levels:
            text = concat("(", nodes.text(text), ")")
        return text

    # --- subscriptions and events ------------------------------------------------------------------------

    def roots(self, block: int) -> Nodes:
        """The roots of a block of expressions, their children being entries of the pool.

        >>> len(AbeGen(count=100).roots(0).operator) == BLOCK
        True
        """
        rng = stream(self.seed, self.name, "subscriptions", block)
        return self._draw_nodes(rng, BLOCK, len(self.pool))

    def _expressions(self, block: int) -> pa.Array:
        if self._shares_subexpressions:
            return self.roots(block).text(self._pool_text)
        return self._unshared_expressions(stream(self.seed, self.name, "subscriptions", block))

    def _unshared_expressions(self, rng: np.random.Generator) -> pa.Array:
        if self.depth == 1:
            predicates = self._draw_predicates(rng, np.ones(BLOCK, dtype=np.int64))
            return self._text_of(Pool(predicates, []))
        levels = [self._draw_fresh_nodes(rng, BLOCK)]
        for _ in range(self.depth - 2):
            levels.insert(0, self._draw_fresh_nodes(rng, len(levels[0].children)))
        pool = Pool(self._draw_predicates(rng, levels[0].sizes), levels[:-1])
        return levels[-1].text(self._text_of(pool))

    def _events(self, block: int) -> list[EventDict]:
        rng = stream(self.seed, self.name, "events", block)
        attributes = distinct_subsets(rng, self._attribute, EVENT_BLOCK, self.event_size)
        values = self._value.draw(rng, attributes.shape)
        return number_events(self._names, attributes.tolist(), values.tolist())

    # --- what the paper reports about the workload ---------------------------------------------------------

    def sharing(self) -> Sharing:
        """Count occurrences and distinct ones of predicates and subexpressions over all expressions.

        Equality is structural: `x AND y` is `y AND x`. Only workloads that share subexpressions are counted.

        >>> AbeGen(count=1_000).sharing().predicate_occurrences > 10_000
        True
        """
        if not self._shares_subexpressions:
            raise ValueError("sharing is counted for a depth above 2 and subexpression_alpha above 0")
        uses = np.zeros(len(self.pool), dtype=np.int64)
        for block, first in enumerate(range(0, self.count, BLOCK)):
            roots = self.roots(block)
            drawn = roots.children[: roots.sizes[: self.count - first].sum()]
            uses += np.bincount(drawn, minlength=uses.size)
        predicate_text = self.pool.predicates.text(self._names, numbered("", self.cardinality))
        identity: Ints = pc.dictionary_encode(predicate_text).indices.to_numpy()
        identities = [identity]
        for nodes in self.pool.levels:
            identity = _identify(nodes, identity)
            identities.append(identity)

        subexpressions, distinct = 0, 0
        for nodes, identity in zip(reversed(self.pool.levels), reversed(identities), strict=False):
            subexpressions += int(uses.sum())
            distinct += np.unique(identity[uses > 0]).size
            below = int(nodes.children.max()) + 1
            uses = np.bincount(nodes.children, weights=np.repeat(uses, nodes.sizes), minlength=below).astype(
                np.int64
            )
        predicates = np.unique(identities[0][: uses.size][uses > 0]).size
        return Sharing(int(uses.sum()), predicates, subexpressions, distinct)


def _identify(nodes: Nodes, below: Ints) -> Ints:
    """Number the nodes so that equal ones (same operator, same set of children) get the same number."""
    width = int(nodes.sizes.max())
    rows = np.full((len(nodes.sizes), width + 1), -1, dtype=np.int32)
    rows[:, :width][np.arange(width) < nodes.sizes[:, None]] = below[nodes.children]
    rows.sort(axis=1)
    keys = np.column_stack([rows, nodes.operator.astype(np.int32)])
    packed = np.ascontiguousarray(keys).view(np.dtype((np.void, keys.dtype.itemsize * keys.shape[1]))).ravel()
    _, identity = np.unique(packed, return_inverse=True)
    return identity
