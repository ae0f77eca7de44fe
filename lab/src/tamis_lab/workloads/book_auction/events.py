"""Auctions as events: ten attributes each, drawn as Bittner 2008, section 3.2.2 says.

Category, format, special and condition come together from one table of 528 cells. Whether there is a fixed
price, the number of bids and the price depend on the category; the time to the end (minutes, up to ten days)
depends on nothing; title and author are those of a book of the category. Inside a bin of prices or bids all
values are equally likely. Every event has all ten attributes.
"""

import numpy as np
import pyarrow as pa

from tamis_lab.workloads.book_auction.pool import BookPool, author_texts, title_texts
from tamis_lab.workloads.book_auction.tables import CONDITIONS, FORMATS, SPECIALS, load_tables
from tamis_lab.workloads.sampling import Floats, Ints

LONGEST_MINUTES = 10 * 24 * 60

EVENT_SCHEMA = pa.schema(
    [
        ("category", pa.string()),
        ("format", pa.string()),
        ("special", pa.string()),
        ("condition", pa.string()),
        ("buy_it_now", pa.bool_()),
        ("price", pa.float64()),
        ("ending_within", pa.int64()),
        ("bids", pa.int64()),
        ("title", pa.string()),
        ("author", pa.string()),
    ]
)


def draw_events(rng: np.random.Generator, count: int, pool: BookPool, swapped_captions: bool) -> pa.Table:
    """Draw events.

    >>> from tamis_lab.workloads.book_auction.pool import CHAPTER_5, make_pool
    >>> pool = make_pool(1, load_tables().items, **CHAPTER_5)
    >>> draw_events(np.random.default_rng(1), 3, pool, swapped_captions=True).shape
    (3, 10)
    """
    tables = load_tables()
    joint = tables.joint_probabilities(swapped_captions)
    cells = rng.choice(joint.size, size=count, p=joint.ravel())
    category, form, special, condition = np.unravel_index(cells, joint.shape)
    price_in_cents = _within_bins(rng, tables.price[category], tables.price_bins)
    book = pool.draw(rng, category)
    columns = [
        _named(category, tables.categories),
        _named(form, FORMATS),
        _named(special, SPECIALS),
        _named(condition, CONDITIONS),
        rng.random(count) < tables.buy_it_now[category],
        price_in_cents / 100,
        rng.integers(LONGEST_MINUTES + 1, size=count),
        _within_bins(rng, tables.bids[category], tables.bids_bins),
        title_texts(pool.title[book]).cast(pa.string()),
        author_texts(pool.author[book]).cast(pa.string()),
    ]
    return pa.table([pa.array(column) for column in columns], schema=EVENT_SCHEMA)


def _named(numbers: Ints, names: tuple[str, ...]) -> pa.Array:
    return pa.array(names, pa.string()).take(pa.array(numbers))


def _within_bins(rng: np.random.Generator, probabilities: Floats, bins: Ints) -> Ints:
    """A number for each row of probabilities: first a bin, then any number between its bounds."""
    cumulative = np.cumsum(probabilities, axis=1)
    # The printed rows sum to one within a few millionths: what they sum to counts as one.
    drawn = rng.random((len(probabilities), 1)) * cumulative[:, -1:]
    low, high = bins[(drawn >= cumulative).sum(axis=1)].T
    numbers: Ints = low + (rng.random(low.size) * (high - low + 1)).astype(np.int64)
    return numbers
