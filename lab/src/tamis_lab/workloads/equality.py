"""Conjunctions of a few equality predicates: `a3 = 17 AND a20 = 4 AND a41 = 88`.

The shape of most alert rules and targeting filters, and the easiest one to index: an event carries 20 of 50
attributes and satisfies a handful out of a million subscriptions.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tamis_lab.workloads.base import BLOCK, EVENT_BLOCK, EventDict, Workload, number_events
from tamis_lab.workloads.predicates import (
    MAX_OPERANDS,
    Operator,
    Predicates,
)
from tamis_lab.workloads.sampling import Zipf, distinct_rows, distinct_subsets, stream
from tamis_lab.workloads.text import join_groups, numbered


@dataclass(frozen=True)
class Equality(Workload):
    """Conjunctions of `min_predicates` to `max_predicates` equalities on different attributes.

    `attribute_alpha` and `value_alpha` are the exponents of the Zipf distributions of attributes and of
    values, in subscriptions and events alike; 0 is uniform.

    >>> Equality(count=1, seed=7).subscriptions_table()["expression"][0].as_py()
    'a32 = 14 AND a49 = 1'
    """

    name: ClassVar[str] = "equality"

    count: int = 1_000_000
    seed: int = 1
    min_predicates: int = 2
    max_predicates: int = 5
    attributes: int = 50
    cardinality: int = 100
    event_size: int = 20
    attribute_alpha: float = 0.0
    value_alpha: float = 0.0

    def __post_init__(self) -> None:
        """Refuse parameters that cannot be met."""
        if not 1 <= self.min_predicates <= self.max_predicates <= self.attributes:
            raise ValueError("need 1 <= min_predicates <= max_predicates <= attributes")

    @cached_property
    def _attribute(self) -> Zipf:
        return Zipf(self.attributes, self.attribute_alpha)

    @cached_property
    def _value(self) -> Zipf:
        return Zipf(self.cardinality, self.value_alpha)

    @cached_property
    def _names(self) -> pa.Array:
        return numbered("a", self.attributes)

    @property
    def event_schema(self) -> pa.Schema:
        """Integers in every attribute."""
        return pa.schema([(name, pa.int64()) for name in self._names.to_pylist()])

    def _expressions(self, block: int) -> pa.Array:
        rng = stream(self.seed, self.name, "subscriptions", block)
        sizes = rng.integers(self.min_predicates, self.max_predicates + 1, size=BLOCK)
        used = np.arange(self.max_predicates) < sizes[:, None]
        attribute = distinct_rows(rng, self._attribute, BLOCK, self.max_predicates)[used]
        operands = np.full((attribute.size, MAX_OPERANDS), -1)
        operands[:, 0] = self._value.draw(rng, attribute.size)
        predicates = Predicates(attribute, np.full(attribute.size, Operator.EQUAL), operands)
        return join_groups(predicates.text(self._names, numbered("", self.cardinality)), sizes, " AND ")

    def _events(self, block: int) -> list[EventDict]:
        rng = stream(self.seed, self.name, "events", block)
        attributes = distinct_subsets(rng, self._attribute, EVENT_BLOCK, self.event_size)
        values = self._value.draw(rng, attributes.shape)
        return number_events(self._names, attributes.tolist(), values.tolist())
