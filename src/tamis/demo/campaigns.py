"""Advertising campaigns that a person can read, and page views for them.

A campaign is a conjunction of some of ten kinds of conditions: where the visitor is, how old, on what device,
at what hour, with which interests. A page view is a nested record.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tamis.workloads.base import BLOCK, EVENT_BLOCK, EventDict, Workload
from tamis.workloads.sampling import Zipf, stream
from tamis.workloads.text import concat, join_groups, texts, words

COUNTRIES = words("US IN BR GB DE FR JP CA IT ES MX KR AU NL CH SE PL AT BE PT NO DK FI IE NZ")
CATEGORIES = words(
    "news sport music travel food fashion science gaming finance garden cars homes health films books art "
    "family pets weather jobs"
)
INTERESTS = words(
    "cycling hiking running sailing skiing climbing football tennis chess photography cooking baking wine "
    "coffee jazz opera cinema theatre painting pottery gardening astronomy history poetry travel fashion "
    "rowing fencing judo yoga dance golf rugby cricket surfing fishing birds horses dogs cats trains maps "
    "cheese tea bread folk blues piano guitar choir ballet comics puzzles robots rockets fossils"
)
DEVICES = words("phone desktop tablet television")
DAYS = words("Mon Tue Wed Thu Fri Sat Sun")
SITES = words("search social mail partner direct")
BRANDS = words("Alder Birch Cedar Damson Elm Fig Gorse Hazel Iris Juniper Larch Maple Nettle Oak Pine Rowan")

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Campaigns(Workload):
    """Readable subscriptions and events.

    >>> Campaigns(count=1).subscriptions_table()["expression"][0].as_py().count(" AND ") >= 3
    True
    """

    name: ClassVar[str] = "campaigns"

    count: int = 200_000
    seed: int = 1

    @property
    def event_schema(self) -> pa.Schema:
        """A page view's attributes."""
        page = pa.struct([("category", pa.string()), ("price", pa.float64())])
        return pa.schema(
            [
                ("country", pa.string()),
                ("age", pa.int64()),
                ("device", pa.string()),
                ("hour", pa.int64()),
                ("day", pa.string()),
                ("interests", pa.list_(pa.string())),
                ("member", pa.bool_()),
                ("visits", pa.int64()),
                ("referrer", pa.string()),
                ("page", page),
            ]
        )

    def brand(self, id_: int) -> str:
        """A name for a campaign.

        >>> Campaigns().brand(17)
        'Birch-17'
        """
        return f"{BRANDS[id_ % len(BRANDS)]}-{id_}"

    def _expressions(self, block: int) -> pa.Array:
        rng = stream(self.seed, self.name, "subscriptions", block)
        conditions = [
            (0.9, _countries(rng)),
            (0.8, _ages(rng)),
            (0.8, _interests(rng)),
            (0.7, concat("page.category = ", _quoted(rng, CATEGORIES, 0.5))),
            (0.4, concat("device = ", _quoted(rng, DEVICES, 0.8))),
            (0.25, _hours(rng)),
            (0.25, concat("visits >= ", _numbers(rng, 2, 40))),
            (0.2, concat("NOT member", texts([""] * BLOCK))),
            (
                0.15,
                concat(
                    "(referrer = ", _quoted(rng, SITES, 0), " OR page.price > ", _numbers(rng, 20, 300), ")"
                ),
            ),
            (0.1, concat("day IN ('Sat', 'Sun')", texts([""] * BLOCK))),
        ]
        chosen: Mask = np.column_stack([rng.random(BLOCK) < share for share, _ in conditions])
        # A campaign has at least four conditions: the first ones fill up.
        missing = np.maximum(0, 4 - chosen.sum(axis=1))
        rank_of_unchosen = np.cumsum(~chosen, axis=1)
        chosen |= ~chosen & (rank_of_unchosen <= missing[:, None])

        by_condition = pa.concat_arrays([text for _, text in conditions])
        rows, columns = np.nonzero(chosen)
        flat = by_condition.take(pa.array(columns * BLOCK + rows))
        return join_groups(flat, chosen.sum(axis=1), " AND ")

    def _events(self, block: int) -> list[EventDict]:
        rng = stream(self.seed, self.name, "events", block)
        country = Zipf(len(COUNTRIES), 0.8).draw(rng, EVENT_BLOCK).tolist()
        category = Zipf(len(CATEGORIES), 0.5).draw(rng, EVENT_BLOCK).tolist()
        device = Zipf(len(DEVICES), 0.8).draw(rng, EVENT_BLOCK).tolist()
        interests = Zipf(len(INTERESTS), 0.4).draw(rng, (EVENT_BLOCK, 3)).tolist()
        ages = np.clip(rng.normal(38, 14, EVENT_BLOCK), 16, 90).astype(int).tolist()
        prices = np.round(rng.gamma(2, 40, EVENT_BLOCK), 2).tolist()
        return [
            {
                "country": COUNTRIES[country[row]],
                "age": ages[row],
                "device": DEVICES[device[row]],
                "hour": int(rng.integers(24)),
                "day": DAYS[int(rng.integers(7))],
                "interests": sorted({INTERESTS[number] for number in interests[row]}),
                "member": bool(rng.random() < 0.3),
                "visits": int(rng.integers(1, 60)),
                "referrer": SITES[int(rng.integers(len(SITES)))],
                "page": {"category": CATEGORIES[category[row]], "price": prices[row]},
            }
            for row in range(EVENT_BLOCK)
        ]


def _quoted(rng: np.random.Generator, choices: tuple[str, ...], alpha: float) -> pa.Array:
    literals = texts([f"'{word}'" for word in choices])
    return literals.take(pa.array(Zipf(len(choices), alpha).draw(rng, BLOCK)))


def _numbers(rng: np.random.Generator, low: int, high: int) -> pa.Array:
    return pa.array(rng.integers(low, high, BLOCK)).cast(pa.large_string())


def _countries(rng: np.random.Generator) -> pa.Array:
    one = concat("country = ", _quoted(rng, COUNTRIES, 0.8))
    half = len(COUNTRIES) // 2  # From two halves, so that both differ.
    two = concat(
        "country IN (", _quoted(rng, COUNTRIES[:half], 0.6), ", ", _quoted(rng, COUNTRIES[half:], 0.6), ")"
    )
    return _mixed(rng, one, two)


def _ages(rng: np.random.Generator) -> pa.Array:
    low = rng.integers(18, 60, BLOCK)
    high = low + rng.integers(4, 20, BLOCK)
    between = concat(
        "age BETWEEN ", pa.array(low).cast(pa.large_string()), " AND ", pa.array(high).cast(pa.large_string())
    )
    return _mixed(rng, between, concat("age >= ", pa.array(low).cast(pa.large_string())))


def _interests(rng: np.random.Generator) -> pa.Array:
    one = concat("array_contains(interests, ", _quoted(rng, INTERESTS, 0.4), ")")
    half = len(INTERESTS) // 2
    either = concat(
        "arrays_overlap(interests, ARRAY(",
        _quoted(rng, INTERESTS[:half], 0.4),
        ", ",
        _quoted(rng, INTERESTS[half:], 0.4),
        "))",
    )
    return _mixed(rng, one, either)


def _hours(rng: np.random.Generator) -> pa.Array:
    first = rng.integers(5, 20, BLOCK)
    last = np.minimum(23, first + rng.integers(2, 6, BLOCK))
    return concat(
        "hour BETWEEN ",
        pa.array(first).cast(pa.large_string()),
        " AND ",
        pa.array(last).cast(pa.large_string()),
    )


def _mixed(rng: np.random.Generator, usual: pa.Array, other: pa.Array) -> pa.Array:
    """Two thirds of one, one third of the other."""
    return pc.if_else(pa.array(rng.random(BLOCK) < 2 / 3), usual, other)
