"""Conjunctions of eight predicates with mixed operators over 400 attributes, 15 of them in an event.

Eight attributes drawn at random would hardly ever meet an event that has 15 of 400. Real subscriptions do
meet theirs because both are about something: here each belongs to one of 25 *topics*, a topic is a set of 18
attributes (topics overlap), a subscription tests 8 attributes of its topic and an event carries 15. A handful
of a million subscriptions match an event.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tamis_lab.workloads.base import BLOCK, EVENT_BLOCK, EventDict, Workload, number_events
from tamis_lab.workloads.predicates import (
    OperatorMix,
    Predicates,
    draw_operands,
)
from tamis_lab.workloads.sampling import Ints, Zipf, distinct_subsets, stream
from tamis_lab.workloads.text import join_groups, numbered

MIXED_OPERATORS = OperatorMix(
    equal=0.15,
    not_equal=0.10,
    less=0.125,
    less_or_equal=0.125,
    greater=0.125,
    greater_or_equal=0.125,
    between=0.15,
    in_set=0.10,
)


@dataclass(frozen=True)
class Conjunctive(Workload):
    """Conjunctions of `predicates` predicates with mixed operators, about one topic each.

    >>> workload = Conjunctive(count=100)
    >>> workload.subscriptions_table()["expression"][0].as_py().count(" AND ") >= 7
    True
    >>> len(workload.events_dicts(1)[0])
    15
    """

    name: ClassVar[str] = "conjunctive"

    count: int = 1_000_000
    seed: int = 1
    attributes: int = 400
    predicates: int = 8
    cardinality: int = 100
    event_size: int = 15
    topics: int = 25
    topic_size: int = 18
    operators: OperatorMix = MIXED_OPERATORS

    def __post_init__(self) -> None:
        """Refuse parameters that cannot be met."""
        if max(self.predicates, self.event_size) > self.topic_size or self.topic_size > self.attributes:
            raise ValueError("need predicates, event_size <= topic_size <= attributes")

    @cached_property
    def _topics(self) -> Ints:
        rng = stream(self.seed, self.name, "topics")
        return distinct_subsets(rng, Zipf(self.attributes, alpha=0), self.topics, self.topic_size)

    @cached_property
    def _names(self) -> pa.Array:
        return numbered("a", self.attributes)

    @property
    def event_schema(self) -> pa.Schema:
        """Integers in every attribute."""
        return pa.schema([(name, pa.int64()) for name in self._names.to_pylist()])

    def _attributes_of_topics(self, rng: np.random.Generator, rows: int, width: int) -> Ints:
        topics = rng.integers(self.topics, size=rows)
        places = distinct_subsets(rng, Zipf(self.topic_size, alpha=0), rows, width)
        return self._topics[topics[:, None], places]

    def _expressions(self, block: int) -> pa.Array:
        rng = stream(self.seed, self.name, "subscriptions", block)
        attribute = self._attributes_of_topics(rng, BLOCK, self.predicates).ravel()
        operator = self.operators.draw(rng, attribute.size)
        operands = draw_operands(rng, operator, Zipf(self.cardinality, alpha=0))
        texts = Predicates(attribute, operator, operands).text(self._names, numbered("", self.cardinality))
        return join_groups(texts, np.full(BLOCK, self.predicates), " AND ")

    def _events(self, block: int) -> list[EventDict]:
        rng = stream(self.seed, self.name, "events", block)
        attributes = self._attributes_of_topics(rng, EVENT_BLOCK, self.event_size)
        values = rng.integers(self.cardinality, size=attributes.shape)
        return number_events(self._names, attributes.tolist(), values.tolist())
