"""Intervals around points that crowd in a few regions (Machanavajjhala et al. 2008, section 5 and table 1).

The domain of each attribute is [0, 1), cut into `points` equal parts. Points are drawn from `regions` boxes
of the same volume: first a region (`skew_across`), then a part of it, parts near its middle being more likely
(`skew_within`), then any place in that part. An event is such a point. A subscription is a box around such a
point, `x0 BETWEEN mid - length AND mid + length`, whose lengths follow a Zipf distribution too
(`skew_length`): the smaller that exponent, the more the intervals overlap.

The weight of an interval is 1 - length, so that narrow ones score high; the priority is the sum over the
attributes, the score of a subscription all of whose intervals are hit.

Left open there and chosen here: a length is one of `points` ranks, rank r being r / points to (r + 1) /
points; the sides of a region are drawn at random so that its volume comes out; how far from the middle a
point lies is drawn for each attribute on its own.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis_lab.workloads.base import BLOCK, EVENT_BLOCK, SUBSCRIPTION_SCHEMA, EventDict, Workload
from tamis_lab.workloads.sampling import Floats, Ints, Zipf, stream
from tamis_lab.workloads.text import concat, join_groups, numbered
from tamis_lab.workloads.weights import WEIGHTS_FIELD, weight_maps

_DIGITS = 6


@dataclass(frozen=True)
class ZipfRegions(Workload):
    """Boxes and points with skewed places and sizes; the defaults are those of the paper's table 1.

    `region_volume` is the share of the domain that a region covers.

    >>> row = ZipfRegions(count=1).subscriptions_table().to_pylist()[0]
    >>> row["expression"].startswith("x0 BETWEEN "), row["weights"] == [("x0", row["priority"])]
    (True, True)
    """

    name: ClassVar[str] = "zipf-regions"

    count: int = 1_000_000
    seed: int = 1
    dimensions: int = 1
    regions: int = 10
    points: int = 100
    region_volume: float = 1 / 20
    skew_across: float = 0.0
    skew_within: float = 1.0
    skew_length: float = 0.75

    def __post_init__(self) -> None:
        """Refuse parameters that cannot be met."""
        if min(self.dimensions, self.regions, self.points) < 1:
            raise ValueError("need at least one dimension, region and point")
        if not 0 < self.region_volume <= 1:
            raise ValueError(f"need a region_volume between 0 and 1, not {self.region_volume}")

    @cached_property
    def _names(self) -> pa.Array:
        return numbered("x", self.dimensions)

    @property
    def event_schema(self) -> pa.Schema:
        """A number between 0 and 1 in every attribute."""
        return pa.schema([(name, pa.float64()) for name in self._names.to_pylist()])

    @property
    def subscription_schema(self) -> pa.Schema:
        """The columns of every workload, and the score of each interval."""
        return SUBSCRIPTION_SCHEMA.append(WEIGHTS_FIELD)

    @cached_property
    def _boxes(self) -> tuple[Ints, Ints]:
        """The first part of each region in each attribute, and how many parts it has there."""
        rng = stream(self.seed, self.name, "regions")
        # The logarithms of the sides add up to that of the volume: a random share of it for each attribute.
        shares = rng.dirichlet(np.ones(self.dimensions), size=self.regions)
        sides = np.rint(self.points * self.region_volume**shares).astype(np.int64).clip(1, self.points)
        first = (rng.random(sides.shape) * (self.points - sides + 1)).astype(np.int64)
        return first, sides

    def _draw_points(self, rng: np.random.Generator, count: int) -> Floats:
        """Rows of coordinates."""
        first, sides = self._boxes
        region = Zipf(self.regions, self.skew_across).draw(rng, count)
        parts = np.empty((count, self.dimensions), dtype=np.int64)
        for side in np.unique(sides):
            places = sides[region] == side
            distance = Zipf(int(side), self.skew_within).draw(rng, int(places.sum()))
            # 0, 1, 2, 3 ... steps from the middle: right, left, right, left, ...
            steps = np.where(distance % 2 == 1, (distance + 1) // 2, -(distance // 2))
            parts[places] = (int(side) - 1) // 2 + steps
        return (first[region] + parts + rng.random(parts.shape)) / self.points

    def _lengths(self, block: int) -> Floats:
        rng = stream(self.seed, self.name, "lengths", block)
        ranks = Zipf(self.points, self.skew_length).draw(rng, (BLOCK, self.dimensions))
        lengths: Floats = ((ranks + rng.random(ranks.shape)) / self.points).round(_DIGITS)
        return lengths

    def _ends(self, block: int) -> tuple[Floats, Floats]:
        """The low and the high ends of a block, a row for each subscription."""
        middle = self._draw_points(stream(self.seed, self.name, "subscriptions", block), BLOCK)
        lengths = self._lengths(block)
        return (middle - lengths).round(_DIGITS), (middle + lengths).round(_DIGITS)

    def boxes(self) -> tuple[Floats, Floats, Floats]:
        """All subscriptions as numbers: low ends, high ends and weights, a column for each attribute.

        >>> low, high, weights = ZipfRegions(count=3, dimensions=2).boxes()
        >>> low.shape, bool((low <= high).all()), bool((weights <= 1).all())
        ((3, 2), True, True)
        """
        numbers = range(-(-self.count // BLOCK))
        ends = [(*self._ends(block), 1 - self._lengths(block)) for block in numbers]
        low, high, weights = (np.concatenate(columns)[: self.count] for columns in zip(*ends, strict=True))
        return low, high, weights

    def _expressions(self, block: int) -> pa.Array:
        low, high = (_decimal(ends.ravel()) for ends in self._ends(block))
        names = self._names.take(pa.array(np.tile(np.arange(self.dimensions), BLOCK)))
        text = concat(names, " BETWEEN ", low, " AND ", high)
        return join_groups(text, np.full(BLOCK, self.dimensions), " AND ")

    def _priorities(self, block: int) -> Floats:
        priorities: Floats = (1 - self._lengths(block)).sum(axis=1).round(_DIGITS)
        return priorities

    def _further_columns(self, block: int) -> list[pa.Array]:
        names = self._names.take(pa.array(np.tile(np.arange(self.dimensions), BLOCK)))
        weights = (1 - self._lengths(block)).ravel()
        return [weight_maps(names, weights, np.full(BLOCK, self.dimensions))]

    def _event_table(self, block: int) -> pa.Table:
        drawn = self._draw_points(stream(self.seed, self.name, "events", block), EVENT_BLOCK)
        return pa.table([pa.array(column) for column in drawn.T], schema=self.event_schema)

    def _events(self, block: int) -> list[EventDict]:
        rows: list[EventDict] = self._event_table(block).to_pylist()
        return rows


def _decimal(values: Floats) -> pa.Array:
    """Numbers as text, with a fixed number of digits behind the point."""
    return pc.cast(pc.cast(pa.array(values), pa.decimal128(12, _DIGITS)), pa.large_string())
