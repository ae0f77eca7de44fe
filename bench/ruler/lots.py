"""Events in the layout of event-ruler's benchmark: lots of a city, with their street and their outline.

Names and nesting are those of event-ruler's own benchmark events; values are drawn from small and large sets,
so that its rules find something. An event of nine points has about 870 bytes.
"""

import json
import random
from collections.abc import Iterator

STREETS = [
    "FULTON",
    "MASON",
    "JEFFERSON",
    "BEACH",
    "HYDE",
    "CHESTNUT",
    "ACACIA",
    "BLYTHDALE",
    "DRUMM",
    "RHODE-ISLAND",
    "UNION",
    "LAKE",
    "STERLING",
    "SANTIAGO",
    "HARRISON",
    "WASHINGTON",
    "DIVISADERO",
    "GEARY",
    "NORIEGA",
    "TARAVAL",
]
BLOCK_LOTS = ["1430022", "2607117", "2607218", "3745012", "VACSTWIL"]


def lots(count: int, points: int = 9, seed: int = 1) -> Iterator[str]:
    """This many events as JSON text, with about this many points in each outline.

    >>> event = json.loads(next(lots(1)))
    >>> sorted(event), sorted(event["geometry"])
    (['geometry', 'properties', 'type'], ['coordinates', 'firstCoordinates', 'type'])
    """
    choose = random.Random(seed)
    for _ in range(count):
        east, north = choose.uniform(-122.51, -122.36), choose.uniform(37.70, 37.83)
        outline = [
            {
                "x": round(east + choose.uniform(0, 1e-3), 14),
                "y": round(north + choose.uniform(0, 1e-3), 14),
                "z": 0.0,
            }
            for _ in range(max(1, choose.randint(points - points // 4, points + points // 4)))
        ]
        common = choose.random() < 0.01
        lot = choose.choice(BLOCK_LOTS) if common else f"{choose.randrange(10_000_000):07d}"
        first_number = choose.randrange(1, 3000)
        event = {
            "type": "Feature",
            "properties": {
                "MAPBLKLOT": lot,
                "BLKLOT": f"{choose.randrange(10_000_000):07d}",
                "BLOCK_NUM": lot[:4],
                "LOT_NUM": lot[4:],
                "FROM_ST": str(first_number),
                "TO_ST": str(first_number + choose.randrange(20)),
                "STREET": choose.choice(STREETS),
                "ST_TYPE": choose.choice(["ST", "ST", "AVE", "BLVD"]),
                "ODD_EVEN": choose.choice("EO"),
            },
            "geometry": {
                "type": "Polygon" if choose.random() < 0.999 else "MultiPolygon",
                "firstCoordinates": outline[0],
                "coordinates": outline,
            },
        }
        yield json.dumps(event)
