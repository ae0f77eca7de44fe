"""Random texts of expressions, each with what it means in plain Python.

Computed terms, quantifiers over arrays of scalars and of records, time that moves, networks, places. A form
is a text and a function from an event to True, False or None; thresholds, truth tests and connectives join
them by Kleene's logic. Nothing is shared with the kernel, and no tree is between text and meaning: what
`strategies` and `writer` draw as trees, this module writes as a person would, in forms that engines of SQL
understand too.
"""

import ipaddress
import math
import random
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

Truth = bool | None
Event = Mapping[str, Any]
Meaning = Callable[[Event], Any]

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


class Form(NamedTuple):
    """A text, and the value it has for an event; None when it is undefined."""

    text: str
    of: Meaning


# --- logic ------------------------------------------------------------------------------------------


def negate(truth: Truth) -> Truth:
    return None if truth is None else not truth


def at_least(least: int, truths: list[Truth]) -> Truth:
    if sum(truth is True for truth in truths) >= least:
        return True
    return False if sum(truth is False for truth in truths) > len(truths) - least else None


def exclusive(truths: list[Truth]) -> Truth:
    return None if None in truths else sum(map(bool, truths)) % 2 == 1


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def compared(left: Form, symbol: str, right: Form) -> Form:
    def of(event: Event) -> Truth:
        a, b = left.of(event), right.of(event)
        return None if a is None or b is None else COMPARISONS[symbol](a, b)

    return Form(f"{left.text} {symbol} {right.text}", of)


def lifted(text: str, function: Callable[..., Any], *arguments: Form) -> Form:
    """A function that is undefined where an argument is, or where it gives None."""

    def of(event: Event) -> Any:
        values = [argument.of(event) for argument in arguments]
        return None if None in values else function(*values)

    return Form(text, of)


def constant(value: Any) -> Form:
    text = f"'{value}'" if isinstance(value, str) else str(value)
    if isinstance(value, datetime):
        text = f"TIMESTAMP '{value:%Y-%m-%d %H:%M:%S}'"
    return Form(text, lambda _: value)


def attribute(name: str) -> Form:
    return Form(name, lambda event: event.get(name))


# --- terms ------------------------------------------------------------------------------------------


def numbers(generator: random.Random, names: tuple[str, ...], depth: int) -> Form:
    """A term of small integers."""
    if depth == 0 or generator.random() < 0.3:
        return attribute(generator.choice(names))
    inner = numbers(generator, names, depth - 1)
    other = (
        numbers(generator, names, depth - 1)
        if generator.random() < 0.5
        else constant(generator.randint(1, 5))
    )
    match generator.randrange(7):
        case 0:
            return lifted(f"({inner.text} + {other.text})", lambda a, b: a + b, inner, other)
        case 1:
            return lifted(f"({inner.text} - {other.text})", lambda a, b: a - b, inner, other)
        case 2:
            return lifted(f"({inner.text} * {other.text})", lambda a, b: a * b, inner, other)
        case 3:
            return lifted(
                f"({inner.text} % {other.text})",
                lambda a, b: int(math.fmod(a, b)) if b else None,
                inner,
                other,
            )
        case 4:
            return lifted(f"abs({inner.text})", abs, inner)
        case 5:
            return Form(
                f"coalesce({inner.text}, {other.text})",
                lambda event: other.of(event) if inner.of(event) is None else inner.of(event),
            )
        case _:
            text = attribute("s")
            return lifted(f"length({text.text})", len, text)


def numeric(generator: random.Random, names: tuple[str, ...] = ("i", "j")) -> Form:
    left = numbers(generator, names, 2)
    right = numbers(generator, names, 1) if generator.random() < 0.3 else constant(generator.randint(-4, 9))
    return compared(left, generator.choice(list(COMPARISONS)), right)


def textual(generator: random.Random, name: str = "s") -> Form:
    text = attribute(name)
    computed = generator.choice(
        [
            lifted(f"lower({name})", str.lower, text),
            lifted(f"upper({name})", str.upper, text),
            lifted(f"trim({name})", lambda value: value.strip(" "), text),
            lifted(f"substring({name}, 2)", lambda value: value[1:], text),
            lifted(f"concat({name}, 'b')", lambda value: value + "b", text),
        ]
    )
    return compared(
        computed,
        generator.choice(["=", "!=", "<", ">="]),
        constant(generator.choice(["a", "ab", "A", "b", "AB", ""])),
    )


def temporal(generator: random.Random) -> Form:
    at = attribute("t")
    match generator.randrange(4):
        case 0:
            hours = generator.randint(0, 23)
            hour = lifted("hour(t)", lambda value: value.hour, at)
            return compared(hour, generator.choice(list(COMPARISONS)), constant(hours))
        case 1:
            days = generator.randint(-3, 3)
            sign = "+" if days >= 0 else "-"
            moment = Form(
                f"current_timestamp() {sign} INTERVAL {abs(days)} DAYS", lambda _: NOW + timedelta(days)
            )
            return compared(at, generator.choice(list(COMPARISONS)), moment)
        case 2:
            shifted = lifted("t + INTERVAL 90 MINUTES", lambda value: value + timedelta(minutes=90), at)
            return compared(shifted, "<", constant(NOW.replace(tzinfo=UTC)))
        case _:
            weekday = lifted("dayofweek(t)", lambda value: value.isoweekday() % 7 + 1, at)
            return compared(weekday, "=", constant(generator.randint(1, 7)))


def network(generator: random.Random) -> Form:
    cidr = generator.choice(
        ["10.0.0.0/8", "10.1.0.0/16", "192.168.0.0/24", "2001:db8::/32", "10.1.2.3/32", "0.0.0.0/0"]
    )
    block = ipaddress.ip_network(cidr)

    def inside(text: str) -> bool | None:
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return None
        return address.version == block.version and address in block

    return lifted(f"ip_in(addr, '{cidr}')", inside, attribute("addr"))


EARTH = 6_371_008.8


def place(generator: random.Random) -> Form:
    latitude, longitude = attribute("lat"), attribute("lon")
    if generator.random() < 0.5:
        at, metres = (
            (generator.choice([0.0, 10.0, 52.5]), generator.choice([0.0, 13.4, 179.9])),
            generator.choice([1000, 200_000, 3_000_000]),
        )

        def near(lat: float, lon: float) -> bool | None:
            if not -90 <= lat <= 90:
                return None
            a, b, c, d = map(math.radians, (lat, lon, *at))
            half = math.sin((c - a) / 2) ** 2 + math.cos(a) * math.cos(c) * math.sin((d - b) / 2) ** 2
            return 2 * EARTH * math.asin(min(1.0, math.sqrt(half))) <= metres

        return lifted(f"within_distance(lat, lon, {at[0]}, {at[1]}, {metres})", near, latitude, longitude)
    low, high = sorted(generator.sample([0, 5, 20, 45], 2))
    polygon = f"POLYGON(({low} {low}, {high} {low}, {high} {high}, {low} {high}, {low} {low}))"

    def inside(lat: float, lon: float) -> bool:
        return low <= lat <= high and low <= lon <= high  # the border belongs to it

    return lifted(f"within_polygon(lat, lon, '{polygon}')", inside, latitude, longitude)


# --- quantifiers ------------------------------------------------------------------------------------


def quantified(generator: random.Random) -> Form:
    """Over numbers, over records, over records inside records."""
    match generator.randrange(4):
        case 0:
            return over_scalars(generator)
        case 1:
            symbol, limit = generator.choice(list(COMPARISONS)), generator.randint(0, 5)

            def some(event: Event) -> Truth:
                given = event.get("ints")
                if given is None:
                    return None
                return at_least(1, [None if x is None else COMPARISONS[symbol](x, limit) for x in given])

            return Form(f"ANY(ints) {symbol} {limit}", some)
        case 2:
            return over_records(generator, "items", generator.choice(["i", "item"]), nested=False)
        case _:
            return over_records(generator, "items", generator.choice(["i", "item"]), nested=True)


def any_or_all(name: str, truths: list[Truth]) -> Truth:
    return at_least(1, truths) if name == "exists" else at_least(len(truths), truths) if truths else True


def over_scalars(generator: random.Random) -> Form:
    name, symbol = generator.choice(["exists", "forall"]), generator.choice(list(COMPARISONS))
    limit = constant(generator.randint(0, 5)) if generator.random() < 0.7 else attribute("i")

    def of(event: Event) -> Truth:
        given = event.get("ints")
        if given is None:
            return None
        bound = limit.of(event)
        truths = [None if x is None or bound is None else COMPARISONS[symbol](x, bound) for x in given]
        return any_or_all(name, truths)

    return Form(f"{name}(ints, x -> x {symbol} {limit.text})", of)


def over_records(generator: random.Random, array: str, variable: str, *, nested: bool) -> Form:
    name = generator.choice(["exists", "forall"])
    sku = generator.choice("ABC")
    symbol, price = generator.choice(list(COMPARISONS)), generator.randint(0, 5)
    join = generator.choice(["AND", "OR"])
    inner = over_records(generator, f"{variable}.parts", "p", nested=False) if nested else None

    def of(event: Event) -> Truth:
        given: Any = event
        for step in array.split("."):
            given = given.get(step) if isinstance(given, Mapping) else None
        if given is None:
            return None
        truths: list[Truth] = []
        for element in given:
            record = element or {}
            cost = record.get("price")
            parts: list[Truth] = [
                None if record.get("sku") is None else record["sku"] == sku,
                None if cost is None else COMPARISONS[symbol](cost, price),
            ]
            if inner is not None:
                parts.append(inner.of({variable: record}))
            truths.append(at_least(len(parts) if join == "AND" else 1, parts))
        return any_or_all(name, truths)

    parts = [f"{variable}.sku = '{sku}'", f"{variable}.price {symbol} {price}"]
    if inner is not None:
        parts.append(inner.text)
    return Form(f"{name}({array}, {variable} -> {f' {join} '.join(parts)})", of)


LEAVES = (numeric, textual, temporal, network, place, quantified)


def expression(generator: random.Random, depth: int = 2) -> Form:
    """Terms and quantifiers under connectives, thresholds and truth tests."""
    if depth == 0 or generator.random() < 0.25:
        return generator.choice(LEAVES)(generator)
    children = [expression(generator, depth - 1) for _ in range(generator.randint(1, 3))]
    texts = [f"({child.text})" for child in children]

    def truths(event: Event) -> list[Truth]:
        return [child.of(event) for child in children]

    least = generator.randint(1, len(children))
    test = generator.choice(["TRUE", "FALSE", "UNKNOWN"])
    wanted: Truth = {"TRUE": True, "FALSE": False, "UNKNOWN": None}[test]
    first = children[0]
    forms = [
        Form(" AND ".join(texts), lambda event: at_least(len(children), truths(event))),
        Form(" OR ".join(texts), lambda event: at_least(1, truths(event))),
        Form(" XOR ".join(texts), lambda event: exclusive(truths(event))),
        Form(f"NOT {texts[0]}", lambda event: negate(first.of(event))),
        Form(f"AT LEAST {least} OF ({', '.join(texts)})", lambda event: at_least(least, truths(event))),
        Form(
            f"AT MOST {least} OF ({', '.join(texts)})",
            lambda event: negate(at_least(least + 1, truths(event))),
        ),
        Form(
            f"EXACTLY {least} OF ({', '.join(texts)})",
            lambda event: at_least(
                2, [at_least(least, truths(event)), negate(at_least(least + 1, truths(event)))]
            ),
        ),
        Form(f"{texts[0]} IS {test}", lambda event: first.of(event) is wanted),
        Form(f"{texts[0]} IS NOT {test}", lambda event: first.of(event) is not wanted),
    ]
    return generator.choice(forms)


# --- events -----------------------------------------------------------------------------------------


def record(generator: random.Random, *, parts: bool) -> dict[str, Any] | None:
    if generator.random() < 0.1:
        return None
    made: dict[str, Any] = {
        "sku": generator.choice(["A", "B", "C", None]),
        "price": generator.choice([0, 1, 3, 5, None]),
    }
    if parts:
        made["parts"] = (
            None
            if generator.random() < 0.2
            else [record(generator, parts=False) for _ in range(generator.randint(0, 2))]
        )
    return made


def event(generator: random.Random) -> dict[str, Any]:
    """Values that meet the operands of the expressions; some are absent."""
    pools: dict[str, list[Any]] = {
        "i": [0, 1, 2, 3, 5, 9, -4],
        "j": [0, 1, 2, 4],
        "s": ["", "a", "A", "ab", " a ", "b", "É"],
        "t": [
            NOW,
            NOW - timedelta(days=1),
            NOW + timedelta(days=3),
            datetime(2026, 5, 31, 23, 30, tzinfo=UTC),
        ],
        "addr": ["10.1.2.3", "10.9.9.9", "192.168.0.7", "2001:db8::1", "nowhere", "8.8.8.8"],
        "lat": [0.0, 0.5, 10.0, 21.5, 52.5, 89.0],
        "lon": [0.0, 0.5, 13.4, 21.5, -179.9, 179.9],
        "ints": [[], [1], [1, None], [0, 5, 3], [None], [2, 2, 4]],
    }
    made = {name: generator.choice(pool) for name, pool in pools.items() if generator.random() < 0.85}
    if generator.random() < 0.9:
        made["items"] = [record(generator, parts=True) for _ in range(generator.randint(0, 3))]
    return made
