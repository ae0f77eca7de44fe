"""The rule sets of event-ruler's benchmark, each rule as its pattern and as an expression of Tamis.

The sets are those of event-ruler's `Benchmarks` class, five rules each, except for the set that looks into an
array of objects ("complex arrays").
"""

import json
import random
from collections.abc import Callable
from typing import Any

Rule = tuple[dict[str, Any], str]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "\\'") + "'"


def _on(field: str, test: Any, expression: str) -> Rule:
    pattern: dict[str, Any] = {field.rsplit(".", 1)[1]: [test]}
    for record in reversed(field.split(".")[:-1]):
        pattern = {record: pattern}
    return pattern, expression.replace("@", f"`{field}`".replace(".", "`.`"))


LOT, STREET, KIND = "properties.MAPBLKLOT", "properties.STREET", "properties.ST_TYPE"
FIRST_X = "geometry.firstCoordinates.x"


def _exact(value: str, field: str = LOT) -> Rule:
    return _on(field, value, f"@ = {_quoted(value)}")


def _wildcard(wild: str) -> Rule:
    return _on(LOT, {"wildcard": wild}, f"@ LIKE {_quoted(wild.replace('*', '%'))}")


def _prefix(start: str) -> Rule:
    return _on(STREET, {"prefix": start}, f"@ LIKE {_quoted(start + '%')}")


def _suffix(end: str) -> Rule:
    return _on(STREET, {"suffix": end}, f"@ LIKE {_quoted('%' + end)}")


def _ignoring_case(value: str, field: str = STREET) -> Rule:
    return _on(field, {"equals-ignore-case": value}, f"@ ILIKE {_quoted(value)}")


def _anything_but(value: str, field: str = STREET) -> Rule:
    return _on(field, {"anything-but": [value]}, f"@ != {_quoted(value)}")


def _anything_but_like(how: str, value: str, like: str, operator: str = "LIKE") -> Rule:
    return _on(STREET, {"anything-but": {how: value}}, f"@ NOT {operator} {_quoted(like)}")


def _numeric(*bounds: Any, kind: str | None = None, field: str = FIRST_X) -> Rule:
    pairs = list(zip(bounds[::2], bounds[1::2], strict=True))
    text = " AND ".join(f"@ {operator} {number!r}" for operator, number in pairs)
    pattern, expression = _on(field, {"numeric": list(bounds)}, text)
    if kind is None:
        return pattern, expression
    return {
        "geometry": {"type": [kind], **pattern["geometry"]}
    }, f"geometry.type = {_quoted(kind)} AND {expression}"


def _sets() -> dict[str, list[Rule]]:
    exact = [_exact(lot) for lot in ("1430022", "2607117", "2607218", "3745012", "VACSTWIL")]
    wildcard = [_wildcard(wild) for wild in ("143*", "2*0*1*7", "*218", "3*5*2", "VA*IL")]
    prefix = [_prefix(start) for start in ("AC", "BL", "DR", "FU", "RH")]
    suffix = [_suffix(end) for end in ("ON", "KE", "MM", "ING", "GO")]
    ignoring_case = [
        *(_ignoring_case(value) for value in ("jefferson", "bEaCh", "HyDe", "CHESTNUT")),
        _ignoring_case("st", KIND),
    ]
    numeric = [
        _numeric("=", -122.42916360922355, kind="Polygon"),
        _numeric("=", 0, kind="MultiPolygon", field="geometry.firstCoordinates.z"),
        _numeric("<", -122.41600944012424),
        _numeric(">", -122.41600944012424),
        _numeric(">", -122.46471267081272, "<", -122.4063085128395),
    ]
    anything_but = [
        _anything_but("FULTON"),
        _anything_but("MASON"),
        _anything_but("ST", KIND),
        _anything_but("Polygon", "geometry.type"),
        _anything_but("441", "properties.FROM_ST"),
    ]
    streets = ("FULTON", "MASON", "HYDE", "BEACH", "CHESTNUT")
    but_case = [
        _anything_but_like("equals-ignore-case", street.title(), street, "ILIKE") for street in streets
    ]
    but_prefix = [
        _anything_but_like("prefix", start, start + "%") for start in ("FULTO", "MASO", "HY", "B", "CH")
    ]
    but_suffix = [_anything_but_like("suffix", end, "%" + end) for end in ("ULTON", "ASON", "YDE", "H", "UT")]
    but_wildcard = [
        _anything_but_like("wildcard", wild, wild.replace("*", "%"))
        for wild in ("F*ON", "M*N", "*YDE", "B*A*H", "CH*")
    ]
    return {
        "exact": exact,
        "wildcard": wildcard,
        "prefix": prefix,
        "suffix": suffix,
        "equals-ignore-case": ignoring_case,
        "numeric": numeric,
        "anything-but": anything_but,
        "anything-but-ignore-case": but_case,
        "anything-but-prefix": but_prefix,
        "anything-but-suffix": but_suffix,
        "anything-but-wildcard": but_wildcard,
        "combination": exact + wildcard + prefix + suffix + ignoring_case + numeric + anything_but,
    }


SETS: dict[str, list[Rule]] = _sets()
"""By name."""


def many(count: int, seed: int = 1) -> list[Rule]:
    """This many rules for single lots and streets, few of which match an event.

    >>> len({expression for _, expression in many(100)})
    100
    """
    choose = random.Random(seed)
    make: list[Callable[[], Rule]] = [
        lambda: _exact(f"{choose.randrange(10_000_000):07d}"),
        lambda: _exact(f"{choose.randrange(10_000_000):07d}", "properties.BLKLOT"),
    ]
    rules: dict[str, Rule] = {}
    while len(rules) < count:
        rule = choose.choice(make)()
        rules[rule[1]] = rule
    return list(rules.values())


def patterns(rules: list[Rule]) -> list[str]:
    """The rules as event-ruler reads them.

    >>> patterns(SETS["exact"])[0]
    '{"properties": {"MAPBLKLOT": ["1430022"]}}'
    """
    return [json.dumps(pattern) for pattern, _ in rules]
