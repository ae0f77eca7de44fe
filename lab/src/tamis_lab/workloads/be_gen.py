"""BEGen: conjunctions of small ranges over large domains (Sadoghi and Jacobsen 2012, table III).

A subscription has about 8 predicates `a17 BETWEEN 120394711 AND 120394713` over 400 attributes with 250
million values each; an event has about 15 attributes and satisfies a tenth of a percent of the subscriptions.

- *Attributes* are uniform or follow a Zipf distribution (`attribute_alpha`).
- *Values* lie in clusters: each attribute has `clusters` of them, whose values are at most `cluster_size`
  away from the centre; with `clusters=None` they are anywhere in the domain.
- *Match probability* cannot be met by chance over such domains. Here there are 1 / `match_probability`
  *profiles*: sets of attributes with a value each. A subscription tests attributes of one profile with ranges
  around its values, an event carries all of one profile: it satisfies the subscriptions of its profile, and
  hardly others.
- *Weights*, a separate column, for scores: rare attributes have large weights. With inv(a) the inverse
  of the frequency of attribute a (1 for the rarest), the weight of a predicate on a is min(inv(a), N(0.8
  inv(a), 0.05 inv(a))). (The formula is printed with a maximum; that would make the least weight the most
  common one.)

The paper varies one parameter at a time: `count` 100K to 1M, `attributes` 50 to 1,400, `cardinality` 2,500 to
250M, `clusters` 2 to 26 or none, `cluster_size` 25 to 800, `subscription_size` 5 to 66 with `event_size` 13
to 81, `match_probability` 0.0001 to 0.09.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis_lab.workloads.base import (
    BLOCK,
    EVENT_BLOCK,
    SUBSCRIPTION_SCHEMA,
    EventDict,
    Workload,
    number_events,
)
from tamis_lab.workloads.sampling import Floats, Ints, Zipf, distinct_subsets, stream
from tamis_lab.workloads.text import concat, join_groups, numbered
from tamis_lab.workloads.weights import WEIGHTS_FIELD, weight_maps


@dataclass(frozen=True)
class _Profiles:
    """Rows of attributes with their values; the first `sizes[i]` of row i count."""

    attribute: Ints
    value: Ints
    sizes: Ints


@dataclass(frozen=True)
class BeGen(Workload):
    """Conjunctions of small ranges with weights; the defaults are those of most of the paper's experiments.

    >>> row = BeGen(count=1).subscriptions_table().to_pylist()[0]
    >>> row["expression"].count(" BETWEEN ") == len(row["weights"])
    True
    """

    name: ClassVar[str] = "begen"

    count: int = 1_000_000
    seed: int = 1
    attributes: int = 400
    attribute_alpha: float = 0.0
    cardinality: int = 250_000_000
    clusters: int | None = 4
    cluster_size: int = 100
    subscription_size: int = 8
    event_size: int = 15
    match_probability: float = 0.001
    range_size: int = 5

    def __post_init__(self) -> None:
        """Refuse parameters that cannot be met."""
        if not 1 <= self.subscription_size <= self.event_size < self.attributes * 4 // 5:
            raise ValueError("need 1 <= subscription_size <= event_size, well below the number of attributes")
        if not 0 < self.match_probability <= 1:
            raise ValueError(f"need a match_probability between 0 and 1, not {self.match_probability}")
        if self.range_size < 1 or self.cardinality < 2:
            raise ValueError("need a range_size of at least 1 and a cardinality of at least 2")

    @cached_property
    def _names(self) -> pa.Array:
        return numbered("a", self.attributes)

    @property
    def event_schema(self) -> pa.Schema:
        """Integers in every attribute."""
        return pa.schema([(name, pa.int64()) for name in self._names.to_pylist()])

    @property
    def subscription_schema(self) -> pa.Schema:
        """The columns of every workload, and the weight of each attribute."""
        return SUBSCRIPTION_SCHEMA.append(WEIGHTS_FIELD)

    @cached_property
    def _profiles(self) -> _Profiles:
        rng = stream(self.seed, self.name, "profiles")
        count = max(1, round(1 / self.match_probability))
        sizes = _around(rng, self.event_size, count)
        popularity = Zipf(self.attributes, self.attribute_alpha)
        attribute = rng.permuted(distinct_subsets(rng, popularity, count, int(sizes.max())), axis=1)
        if self.clusters is None:
            return _Profiles(attribute, rng.integers(self.cardinality, size=attribute.shape), sizes)
        centres = rng.integers(self.cardinality, size=(self.attributes, self.clusters))
        centre = centres[attribute, rng.integers(self.clusters, size=attribute.shape)]
        value = centre + rng.integers(-self.cluster_size, self.cluster_size + 1, size=attribute.shape)
        return _Profiles(attribute, value.clip(0, self.cardinality - 1), sizes)

    @cached_property
    def inverse_frequency(self) -> Floats:
        """inv of each attribute: 1 for the rarest that is used at all."""
        used = self._profiles.attribute[_mask(self._profiles.sizes, self._profiles.attribute.shape[1])]
        frequency = np.bincount(used, minlength=self.attributes)
        inverse: Floats = frequency[frequency > 0].min() / np.maximum(frequency, 1)
        return inverse

    def _draw(self, rng: np.random.Generator) -> tuple[Ints, Ints, Ints]:
        """A block of subscriptions: their sizes, and the attribute and value of each of their predicates."""
        profiles = self._profiles
        chosen = rng.integers(len(profiles.sizes), size=BLOCK)
        available = _mask(profiles.sizes, profiles.attribute.shape[1])[chosen]
        order = np.argsort(np.where(available, rng.random(available.shape), 2.0), axis=1)
        sizes = np.minimum(_around(rng, self.subscription_size, BLOCK), profiles.sizes[chosen])
        taken = order[:, : sizes.max()]
        used = _mask(sizes, taken.shape[1])
        attribute = np.take_along_axis(profiles.attribute[chosen], taken, axis=1)[used]
        value = np.take_along_axis(profiles.value[chosen], taken, axis=1)[used]
        return sizes, attribute, value

    def _expressions(self, block: int) -> pa.Array:
        sizes, attribute, value = self._draw(stream(self.seed, self.name, "subscriptions", block))
        rng = stream(self.seed, self.name, "ranges", block)
        extent = rng.integers(1, self.range_size + 1, size=value.size)
        low = value - rng.integers(extent)
        literals = [pc.cast(pa.array(bound), pa.large_string()) for bound in (low, low + extent - 1)]
        text = concat(self._names.take(pa.array(attribute)), " BETWEEN ", literals[0], " AND ", literals[1])
        return join_groups(text, sizes, " AND ")

    def _further_columns(self, block: int) -> list[pa.Array]:
        sizes, attribute, _ = self._draw(stream(self.seed, self.name, "subscriptions", block))
        inverse = self.inverse_frequency[attribute]
        rng = stream(self.seed, self.name, "weights", block)
        # Five hundredths around eight tenths: below zero only sixteen sigmas away.
        drawn = np.minimum(inverse, rng.normal(0.8 * inverse, 0.05 * inverse))
        return [weight_maps(self._names.take(pa.array(attribute)), drawn, sizes)]

    def _events(self, block: int) -> list[EventDict]:
        rng = stream(self.seed, self.name, "events", block)
        profiles = self._profiles
        chosen = rng.integers(len(profiles.sizes), size=EVENT_BLOCK)
        used = _mask(profiles.sizes[chosen], profiles.attribute.shape[1])
        ends = np.cumsum(profiles.sizes[chosen])[:-1]
        columns = (profiles.attribute[chosen], profiles.value[chosen])
        return number_events(
            self._names, *([row.tolist() for row in np.split(column[used], ends)] for column in columns)
        )


def _around(rng: np.random.Generator, mean: int, count: int) -> Ints:
    """Sizes within a quarter of their mean."""
    return rng.integers(mean - mean // 4, mean + mean // 4 + 1, size=count)


def _mask(sizes: Ints, width: int) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    mask: np.ndarray[tuple[int, int], np.dtype[np.bool_]] = np.arange(width) < sizes[:, None]
    return mask
