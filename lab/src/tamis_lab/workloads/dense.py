"""Twenty attributes, all of them present in every event: nothing can be ruled out by absence.

Each subscription has 3 to 8 predicates, most of them ranges. Nine in ten are alternatives joined by AND (`(n3
< 30 OR hue = 'red') AND n7 BETWEEN 5 AND 60`), the others conjunctions joined by OR. About half a percent of
the subscriptions match an event; `range_width` moves that up and down.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis_lab.workloads.base import BLOCK, EVENT_BLOCK, EventDict, Workload
from tamis_lab.workloads.predicates import MAX_OPERANDS, Operator, Predicates
from tamis_lab.workloads.sampling import Ints, Zipf, distinct_rows, stream
from tamis_lab.workloads.text import concat, join_groups, texts, words

_SMALLEST, _LARGEST = 3, 8

NUMBERS = tuple(f"n{number}" for number in range(15))
WORDS = {
    "hue": words("red orange yellow green blue violet black white"),
    "country": words("AT AU BE BR CA CH CN DE DK ES FI FR GB IE IN IT JP MX NL NO PL PT SE US"),
    "device": words("desktop phone tablet television"),
    "tier": words("free basic plus pro"),
    "language": words("ar bn de en es fr hi it ja ko nl pl pt ru sv tr vi zh"),
}


@dataclass(frozen=True)
class Dense(Workload):
    """AND/OR expressions of 3 to 8 predicates over 15 numbers and 5 strings that every event has.

    `range_width` is the mean share of a number's domain that a BETWEEN covers.

    >>> workload = Dense(count=10)
    >>> len(workload.events_dicts(1)[0]), workload.subscriptions_table().num_rows
    (20, 10)
    """

    name: ClassVar[str] = "dense"

    count: int = 1_000_000
    seed: int = 1
    cardinality: int = 1_000
    range_width: float = 0.04
    disjunctive_share: float = 0.1

    @property
    def event_schema(self) -> pa.Schema:
        """Integers in `NUMBERS`, strings in `WORDS`."""
        return pa.schema([(n, pa.int64()) for n in NUMBERS] + [(word, pa.string()) for word in WORDS])

    @cached_property
    def _literals(self) -> pa.Array:
        words = [f"'{word}'" for domain in WORDS.values() for word in domain]
        return texts([str(n) for n in range(self.cardinality)] + words)

    @cached_property
    def _domains(self) -> tuple[Ints, Ints]:
        """For every attribute: the number of its first literal, and how many literals it has."""
        word_sizes = [len(domain) for domain in WORDS.values()]
        first = [0] * len(NUMBERS) + [self.cardinality + sum(word_sizes[:i]) for i in range(len(word_sizes))]
        return np.array(first), np.array([self.cardinality] * len(NUMBERS) + word_sizes)

    def _draw_predicates(self, rng: np.random.Generator, attribute: Ints) -> Predicates:
        first, sizes = (column[attribute] for column in self._domains)
        count = attribute.size
        is_number = attribute < len(NUMBERS)
        numeric = rng.choice(
            [Operator.BETWEEN, Operator.LESS, Operator.GREATER_OR_EQUAL, Operator.EQUAL, Operator.IN],
            size=count,
            p=[0.55, 0.15, 0.15, 0.10, 0.05],
        )
        operator = np.where(is_number, numeric, rng.choice([Operator.EQUAL, Operator.IN], size=count))

        operands = np.full((count, MAX_OPERANDS), -1)
        operands[:, 0] = first + (rng.random(count) * sizes).astype(np.int64)

        # One-sided ranges select like the two-sided ones: their bound lies near the end of the domain.
        width = np.maximum(1, rng.exponential(self.range_width, count) * self.cardinality).astype(np.int64)
        width = np.minimum(width, self.cardinality - 1)
        low = (rng.random(count) * (self.cardinality - width)).astype(np.int64)
        between = operator == Operator.BETWEEN
        operands[between, 0], operands[between, 1] = low[between], (low + width)[between]
        less, greater = operator == Operator.LESS, operator == Operator.GREATER_OR_EQUAL
        operands[less, 0] = width[less]
        operands[greater, 0] = self.cardinality - width[greater]

        in_set = np.flatnonzero(operator == Operator.IN)
        # Neighbouring literals, cyclically: distinct without a second draw.
        steps = np.arange(MAX_OPERANDS) * np.maximum(1, sizes[in_set, None] // MAX_OPERANDS)
        members = (operands[in_set, :1] - first[in_set, None] + steps) % sizes[in_set, None]
        unused = np.arange(MAX_OPERANDS) >= rng.integers(2, MAX_OPERANDS, size=in_set.size)[:, None]
        operands[in_set] = np.where(unused, -1, members + first[in_set, None])
        return Predicates(attribute, operator, operands)

    def _expressions(self, block: int) -> pa.Array:
        rng = stream(self.seed, self.name, "subscriptions", block)
        sizes = rng.integers(_SMALLEST, _LARGEST + 1, size=BLOCK)
        used = np.arange(_LARGEST) < sizes[:, None]
        attribute = distinct_rows(rng, Zipf(len(NUMBERS) + len(WORDS), alpha=0), BLOCK, _LARGEST)[used]
        text = self._draw_predicates(rng, attribute).text(_attribute_names(), self._literals)

        disjunctive = rng.random(BLOCK) < self.disjunctive_share
        group_sizes, groups = _split(rng, sizes, smallest=np.where(disjunctive, 2, 1))
        inside = _choose(np.repeat(disjunctive, groups), " AND ", " OR ")
        grouped = join_groups(text, group_sizes, inside)
        # AND binds tighter than OR, so only alternatives need parentheses, and only where there are several.
        bracketed = pa.array((group_sizes > 1) & ~np.repeat(disjunctive & (groups > 1), groups))
        grouped = pc.if_else(bracketed, concat("(", grouped, ")"), grouped)
        return join_groups(grouped, groups, _choose(disjunctive, " OR ", " AND "))

    def _events(self, block: int) -> list[EventDict]:
        rng = stream(self.seed, self.name, "events", block)
        columns: dict[str, list[int] | list[str]] = {}
        for number in NUMBERS:
            columns[number] = rng.integers(self.cardinality, size=EVENT_BLOCK).tolist()
        for word, domain in WORDS.items():
            columns[word] = [domain[i] for i in rng.integers(len(domain), size=EVENT_BLOCK)]
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _attribute_names() -> pa.Array:
    return texts([*NUMBERS, *WORDS])


def _choose(condition: np.ndarray[tuple[int], np.dtype[np.bool_]], yes: str, no: str) -> pa.Array:
    choices = texts([no, yes])
    return choices.take(pa.array(condition.astype(np.int8)))


def _split(rng: np.random.Generator, sizes: Ints, smallest: Ints) -> tuple[Ints, Ints]:
    """Split rows of `sizes[i]` items into groups of `smallest[i]` or one more.

    A rest too small for a group of its own goes to the group before it. Returns the sizes of all
    groups, and the number of groups per row.
    """
    drawn = smallest[:, None] + rng.integers(2, size=(len(sizes), _LARGEST))
    ends = np.minimum(np.cumsum(drawn, axis=1), sizes[:, None])
    ends = np.where(sizes[:, None] - ends < smallest[:, None], sizes[:, None], ends)
    starts = np.concatenate([np.zeros((len(sizes), 1), dtype=ends.dtype), ends[:, :-1]], axis=1)
    group_sizes = ends - starts
    return group_sizes[group_sizes > 0], (group_sizes > 0).sum(axis=1)
