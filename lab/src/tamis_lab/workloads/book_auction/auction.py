"""The workload itself: streams of subscriptions, advertisements, events and status events."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
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
    blocks,
    write_tables,
)
from tamis_lab.workloads.book_auction.classes import ADVERTISEMENTS, SUBSCRIPTIONS, USED_BELOW_NEW
from tamis_lab.workloads.book_auction.events import EVENT_SCHEMA, draw_events
from tamis_lab.workloads.book_auction.operands import OperandDistribution
from tamis_lab.workloads.book_auction.pool import BookPool, author_texts, make_pool, title_texts
from tamis_lab.workloads.book_auction.tables import load_tables
from tamis_lab.workloads.book_auction.template import Dollars, Hole, Name, Template
from tamis_lab.workloads.sampling import Ints, stream
from tamis_lab.workloads.text import concat, texts

CLASS_FIELD = pa.field("class", pa.int8())
ADVERTISEMENT_SCHEMA = pa.schema([("id", pa.int64()), ("expression", pa.string()), CLASS_FIELD])

MINUTES_BETWEEN_STATUS_EVENTS = 60


@dataclass(frozen=True)
class BookAuction(Workload):
    """Online book auctions (Bittner 2008, chapter 3); the defaults are those of its chapter 5.

    `classes` and `advertisement_classes` take turns, so that each has an equal share: all three and all eight
    are the combined setting. `distribution` says which operands are popular. The last five parameters are
    those of `make_pool`, and whether the captions of signed copies and first editions are read as swapped
    (see `tables`).

    >>> workload = BookAuction(count=3)
    >>> for row in workload.subscriptions_table().to_pylist():
    ...     print(row["class"], row["expression"][:60])
    1 title = 'The Golden Ocean' AND ((condition = 'new' AND price
    2 title = 'The Wandering Promise' AND ((format = 'hardcover' A
    3 (category = 'Pulps' OR author = 'Grace Dalton') AND ((ending
    >>> len(workload.events_dicts(1)[0])
    10
    """

    name: ClassVar[str] = "book-auction"

    count: int = 1_000_000
    seed: int = 1
    classes: tuple[int, ...] = (1, 2, 3)
    advertisement_classes: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8)
    distribution: OperandDistribution = OperandDistribution.UNIFORM
    auctions_per_book: float = 100
    books_per_author: float = 5
    further_category: float = 0.1
    repeated_title: float = 0.01
    swapped_captions: bool = True

    def __post_init__(self) -> None:
        """Refuse parameters that cannot be met."""
        for chosen, known in ((self.classes, SUBSCRIPTIONS), (self.advertisement_classes, ADVERTISEMENTS)):
            if not chosen or not set(chosen) <= set(known):
                raise ValueError(f"need classes out of {sorted(known)}, not {list(chosen)}")
        if not (self.auctions_per_book > 0 and self.books_per_author > 0):
            raise ValueError("need auctions_per_book and books_per_author above 0")
        if not (0 <= self.further_category <= 1 and 0 <= self.repeated_title <= 1):
            raise ValueError("need probabilities further_category and repeated_title between 0 and 1")

    @cached_property
    def pool(self) -> BookPool:
        """The books that are auctioned."""
        return make_pool(
            self.seed,
            load_tables().items,
            auctions_per_book=self.auctions_per_book,
            books_per_author=self.books_per_author,
            further_category=self.further_category,
            repeated_title=self.repeated_title,
        )

    # --- subscriptions and advertisements ------------------------------------------------------------------

    @property
    def subscription_schema(self) -> pa.Schema:
        """The columns of every workload, and the class."""
        return SUBSCRIPTION_SCHEMA.append(CLASS_FIELD)

    def _expressions(self, block: int) -> pa.Array:
        rng = stream(self.seed, self.name, "subscriptions", block)
        return self._fill(rng, SUBSCRIPTIONS, _take_turns(self.classes, block), ordered={})

    def _further_columns(self, block: int) -> list[pa.Array]:
        return [pa.array(_take_turns(self.classes, block))]

    def advertisements(self, start: int, stop: int) -> Iterator[pa.Table]:
        """Yield tables of (id, expression, class): advertisements `start` to `stop`.

        >>> [table.num_rows for table in BookAuction().advertisements(0, 20_000)]
        [16384, 3616]
        >>> next(BookAuction().advertisements(5, 6))["expression"][0].as_py()
        "(condition = 'used' AND price > 12.44) OR (price > 10.72 AND condition = 'new')"
        """
        for block, rows in blocks(start, stop, BLOCK):
            rng = stream(self.seed, self.name, "advertisements", block)
            classes = _take_turns(self.advertisement_classes, block)
            expressions = self._fill(rng, ADVERTISEMENTS, classes, ordered=USED_BELOW_NEW)
            ids = np.arange(BLOCK) + block * BLOCK
            columns = [pa.array(ids), expressions.cast(pa.string()), pa.array(classes).cast(pa.int8())]
            yield pa.table([column[rows] for column in columns], schema=ADVERTISEMENT_SCHEMA)

    def write_advertisements(
        self, path: str | Path, count: int, progress: Callable[[int], None] | None = None
    ) -> None:
        """Write the first `count` advertisements to a Parquet file.

        >>> import tempfile
        >>> import pyarrow.parquet as pq
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     BookAuction().write_advertisements(f"{folder}/offers.parquet", 8)
        ...     pq.read_table(f"{folder}/offers.parquet")["class"].to_pylist()
        [1, 2, 3, 4, 5, 6, 7, 8]
        """
        write_tables(path, ADVERTISEMENT_SCHEMA, self.advertisements(0, count), progress)

    def _fill(
        self,
        rng: np.random.Generator,
        templates: dict[int, Template],
        classes: Ints,
        ordered: dict[int, tuple[tuple[int, int], ...]],
    ) -> pa.Array:
        """The text of one expression per row of `classes`."""
        parts: list[pa.Array] = []
        rows_of_part: list[Ints] = []
        for number in sorted(set(classes.tolist())):
            rows = np.flatnonzero(classes == number)
            holes = templates[number].holes
            operands = [self._draw(rng, hole, rows.size) for hole in holes]
            for lower, higher in ordered.get(number, ()):
                self._put_in_order(rng, holes, operands, lower, higher)
            literals = [self._literals(hole, drawn) for hole, drawn in zip(holes, operands, strict=True)]
            parts.append(templates[number].text(literals))
            rows_of_part.append(rows)
        return pa.concat_arrays(parts).take(pa.array(np.argsort(np.concatenate(rows_of_part))))

    def _put_in_order(
        self, rng: np.random.Generator, holes: tuple[Hole, ...], operands: list[Ints], lower: int, higher: int
    ) -> None:
        """Draw two prices again wherever the lower one is not lower."""
        wrong = np.flatnonzero(operands[lower] >= operands[higher])
        while wrong.size:
            for place in (lower, higher):
                operands[place][wrong] = self._draw(rng, holes[place], wrong.size)
            wrong = wrong[operands[lower][wrong] >= operands[higher][wrong]]

    def _draw(self, rng: np.random.Generator, hole: Hole, count: int) -> Ints:
        """Operands as numbers: cents of a price, the number of a name."""
        if isinstance(hole, Dollars):
            return self.distribution.draw(rng, count, hole.size) + 100 * hole.low
        return self.distribution.draw(rng, count, self._names(hole))

    def _names(self, hole: Name) -> int:
        sizes = {
            "category": len(load_tables().categories),
            "title": self.pool.titles,
            "author": self.pool.authors,
        }
        return sizes[hole.attribute]

    def _literals(self, hole: Hole, operands: Ints) -> pa.Array:
        if isinstance(hole, Dollars):
            digits = pc.cast(pa.array(operands), pa.large_string())
            # All prices are at least a dollar, so there are digits on both sides of the point.
            return concat(pc.utf8_slice_codeunits(digits, 0, -2), ".", pc.utf8_slice_codeunits(digits, -2))
        if hole.attribute == "title":
            return concat("'", title_texts(operands), "'")
        if hole.attribute == "author":
            return concat("'", author_texts(operands), "'")
        return concat("'", texts(load_tables().categories).take(pa.array(operands)), "'")

    # --- events --------------------------------------------------------------------------------------------

    @property
    def event_schema(self) -> pa.Schema:
        """The ten attributes of an auction: prices in dollars, times in minutes."""
        return EVENT_SCHEMA

    def _event_table(self, block: int) -> pa.Table:
        rng = stream(self.seed, self.name, "events", block)
        return draw_events(rng, EVENT_BLOCK, self.pool, self.swapped_captions)

    def _events(self, block: int) -> list[EventDict]:
        rows: list[EventDict] = self._event_table(block).to_pylist()
        return rows

    def status_event_tables(
        self, hour: int, start: int, stop: int, key: str | None = None
    ) -> Iterator[pa.Table]:
        """Yield what those of auctions `start` to `stop` that still run report after this many hours.

        "One hour before the end" can only be matched if auctions report as time passes. Each reports every
        hour; at hour 0 these are the events themselves.

        >>> workload = BookAuction(count=1)
        >>> sum(table.num_rows for table in workload.status_event_tables(0, 0, 2_000))
        2000
        >>> sum(table.num_rows for table in workload.status_event_tables(120, 0, 2_000))
        982
        """
        if hour < 0:
            raise ValueError(f"hours count from 0, not {hour}")
        place = EVENT_SCHEMA.get_field_index("ending_within") + (key is not None)
        for table in self.event_tables(start, stop, key):
            left = pc.subtract(table["ending_within"], hour * MINUTES_BETWEEN_STATUS_EVENTS)
            yield table.set_column(place, "ending_within", left).filter(pc.greater_equal(left, 0))


def _take_turns(classes: tuple[int, ...], block: int) -> Ints:
    return np.array(classes)[(np.arange(BLOCK) + block * BLOCK) % len(classes)]
