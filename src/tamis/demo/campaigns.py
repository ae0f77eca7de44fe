"""Advertising campaigns that a person can read, and page views for them.

A campaign is a conjunction of some of ten kinds of conditions: where the visitor is, how old, on what device,
at what hour, with which interests. Its priority is its bid. A page view is a nested record. Rows are drawn
in blocks, each from its own random stream, so that row 17 is the same however many rows there are.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
import pyarrow as pa

BLOCK = 2_048

CAMPAIGN_SCHEMA = pa.schema([("id", pa.string()), ("expression", pa.string()), ("priority", pa.float64())])
PAGE_VIEW_SCHEMA = pa.schema(
    [
        ("event_id", pa.int64()),
        ("country", pa.string()),
        ("age", pa.int64()),
        ("device", pa.string()),
        ("hour", pa.int64()),
        ("day", pa.string()),
        ("interests", pa.list_(pa.string())),
        ("member", pa.bool_()),
        ("visits", pa.int64()),
        ("referrer", pa.string()),
        ("page", pa.struct([("category", pa.string()), ("price", pa.float64())])),
    ]
)
BRANDS = ("Alder", "Birch", "Cedar", "Damson", "Elm", "Fig", "Gorse", "Hazel", "Iris", "Juniper")


class Words:
    """Words of which the first ones are drawn most often: word r in proportion to 1 / (r + 1) ** skew.

    >>> Words("a b c", skew=9).draw(np.random.default_rng(1), 2)
    ['a', 'a']
    """

    def __init__(self, words: str, skew: float = 0.0) -> None:
        """Take the words, separated by blanks."""
        self._words = words.split()
        weights = np.arange(1.0, len(self._words) + 1) ** -skew
        self._shares = weights / weights.sum()

    def draw(self, rng: np.random.Generator, count: int) -> list[str]:
        """`count` of the words."""
        drawn = rng.choice(len(self._words), count, p=self._shares).tolist()
        return [self._words[number] for number in drawn]

    def sets(self, rng: np.random.Generator, count: int, most: int) -> list[list[str]]:
        """`count` sets of one to `most` different words, each sorted."""
        sizes = rng.integers(1, most + 1, count).tolist()
        columns = (self.draw(rng, count) for _ in range(most))
        return [sorted(set(row[:size])) for size, *row in zip(sizes, *columns, strict=True)]


COUNTRIES = Words("US IN BR GB DE FR JP CA IT ES MX KR AU NL CH SE PL AT BE PT NO DK FI IE NZ", skew=0.8)
CATEGORIES = Words(
    "news sport music travel food fashion science gaming finance garden cars homes health films books art "
    "family pets weather jobs",
    skew=0.5,
)
INTERESTS = Words(
    "cycling hiking running sailing skiing climbing football tennis chess photography cooking baking wine "
    "coffee jazz opera cinema theatre painting pottery gardening astronomy history poetry travel fashion "
    "rowing fencing judo yoga dance golf rugby cricket surfing fishing birds horses dogs cats trains maps "
    "cheese tea bread folk blues piano guitar choir ballet comics puzzles robots rockets fossils",
    skew=0.4,
)
DEVICES = Words("phone desktop tablet television", skew=0.8)
DAYS = Words("Mon Tue Wed Thu Fri Sat Sun")
SITES = Words("search social mail partner direct")


def _quoted(words: list[str]) -> str:
    return ", ".join(f"'{word}'" for word in words)


def _ages(rng: np.random.Generator) -> list[str]:
    lows, widths = rng.integers(18, 60, BLOCK).tolist(), rng.integers(0, 25, BLOCK).tolist()
    return [
        f"age BETWEEN {low} AND {low + width}" if width > 3 else f"age >= {low}"
        for low, width in zip(lows, widths, strict=True)
    ]


def _hours(rng: np.random.Generator) -> list[str]:
    firsts, lengths = rng.integers(5, 19, BLOCK).tolist(), rng.integers(2, 6, BLOCK).tolist()
    return [f"hour BETWEEN {f} AND {f + length}" for f, length in zip(firsts, lengths, strict=True)]


def _referrers(rng: np.random.Generator) -> list[str]:
    sites, prices = SITES.draw(rng, BLOCK), rng.integers(20, 300, BLOCK).tolist()
    return [f"(referrer = '{s}' OR page.price > {p})" for s, p in zip(sites, prices, strict=True)]


CONDITIONS: tuple[tuple[float, Callable[[np.random.Generator], list[str]]], ...] = (
    (0.95, lambda rng: [f"country IN ({_quoted(some)})" for some in COUNTRIES.sets(rng, BLOCK, most=2)]),
    (0.9, _ages),
    (
        0.9,
        lambda rng: [
            f"arrays_overlap(interests, ARRAY({_quoted(some)}))"
            for some in INTERESTS.sets(rng, BLOCK, most=2)
        ],
    ),
    (0.9, lambda rng: [f"page.category = '{category}'" for category in CATEGORIES.draw(rng, BLOCK)]),
    (0.5, lambda rng: [f"device = '{device}'" for device in DEVICES.draw(rng, BLOCK)]),
    (0.4, _hours),
    (0.4, lambda rng: [f"visits >= {visits}" for visits in rng.integers(2, 50, BLOCK).tolist()]),
    (0.2, lambda rng: ["NOT member"] * BLOCK),
    (0.2, _referrers),
    (0.1, lambda rng: ["day IN ('Sat', 'Sun')"] * BLOCK),
)
"""How many of the campaigns have a condition, and what it says in each campaign of a block."""
FEWEST = 4


@dataclass(frozen=True)
class Campaigns:
    """Readable subscriptions and events, the same for the same seed.

    >>> Campaigns(seed=1).rules(0, 1)["id"].to_pylist()
    ['Alder-0']
    >>> sorted(Campaigns(seed=1).page_views(0, 1)[0])[:3]
    ['age', 'country', 'day']
    """

    seed: int = 1

    def rules(self, start: int, stop: int) -> pa.Table:
        """Campaigns `start` to `stop`: id, expression, priority."""
        rows = [row for number, cut in _blocks(start, stop) for row in self._campaigns(number)[cut]]
        return pa.Table.from_pylist(rows, schema=CAMPAIGN_SCHEMA)

    def page_views(self, start: int, stop: int) -> list[dict[str, Any]]:
        """Page views `start` to `stop`, one dict each."""
        return [row for number, cut in _blocks(start, stop) for row in self._page_views(number)[cut]]

    def page_view_table(self, start: int, stop: int) -> pa.Table:
        """The same as a table, with their numbers in the column `event_id`."""
        views = enumerate(self.page_views(start, stop), start)
        rows = [{"event_id": number, **view} for number, view in views]
        return pa.Table.from_pylist(rows, schema=PAGE_VIEW_SCHEMA)

    def _campaigns(self, block: int) -> list[dict[str, Any]]:
        rng = np.random.default_rng((self.seed, 0, block))
        chosen = rng.random((BLOCK, len(CONDITIONS))) < [share for share, _ in CONDITIONS]
        missing = FEWEST - chosen.sum(axis=1)  # the first conditions that it lacks fill up
        chosen |= ~chosen & (np.cumsum(~chosen, axis=1) <= missing[:, None])
        conditions = zip(*(write(rng) for _, write in CONDITIONS), strict=True)
        bids = rng.lognormal(0.0, 0.7, BLOCK).round(2).tolist()
        return [
            {
                "id": f"{BRANDS[number % len(BRANDS)]}-{number}",
                "expression": " AND ".join(compress(texts, wanted)),
                "priority": bid,
            }
            for number, texts, wanted, bid in zip(
                range(block * BLOCK, (block + 1) * BLOCK), conditions, chosen.tolist(), bids, strict=True
            )
        ]

    def _page_views(self, block: int) -> list[dict[str, Any]]:
        rng = np.random.default_rng((self.seed, 1, block))
        columns = {
            "country": COUNTRIES.draw(rng, BLOCK),
            "age": rng.normal(38, 14, BLOCK).clip(16, 90).astype(int).tolist(),
            "device": DEVICES.draw(rng, BLOCK),
            "hour": rng.integers(24, size=BLOCK).tolist(),
            "day": DAYS.draw(rng, BLOCK),
            "interests": INTERESTS.sets(rng, BLOCK, most=3),
            "member": (rng.random(BLOCK) < 0.3).tolist(),
            "visits": rng.integers(1, 60, BLOCK).tolist(),
            "referrer": SITES.draw(rng, BLOCK),
            "page": [
                {"category": category, "price": price}
                for category, price in zip(
                    CATEGORIES.draw(rng, BLOCK), rng.gamma(2, 40, BLOCK).round(2).tolist(), strict=True
                )
            ],
        }
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _blocks(start: int, stop: int) -> Iterator[tuple[int, slice]]:
    """The blocks that rows `start` to `stop` lie in, each with the rows wanted of it."""
    for block in range(start // BLOCK, -(-stop // BLOCK)):
        first = block * BLOCK
        yield block, slice(max(start - first, 0), stop - first)
