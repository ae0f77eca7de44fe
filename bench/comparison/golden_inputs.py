"""A small fixed set of subscriptions and events that uses every operator, drawn with values that collide.

Only `random.Random.random` is used, whose sequence Python guarantees, so that the set is the same on every
machine and version. It does not depend on the project: a change of a workload generator changes no golden
answer.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

SUBSCRIPTIONS = 600
EVENTS = 600
"""More than one block of a batch, and a rest."""
SEED = 15

NOW = datetime(2026, 6, 1, tzinfo=UTC)
"""The moment for which expiry is asked."""

NUMBERS = ("age", "price", "score", "depth")
WORDS = ("country", "name")
COUNTRIES = ("AT", "CA", "DE", "FR", "US")
NAMES = ("", "a", "Ada", "ada lovelace", "bob", "Éva", "50%", "日本")
PATTERNS = ("a%", "%a", "%o%", "_da", "%", "A%e")
DOMAIN = 40
"""Numbers are below this."""
TAGS = ("q1", "q2", "q3", "q4")
BOOSTS = ("0.1", "0.2", "0.3", "1.5", "2.5", "0")


@dataclass(frozen=True)
class Row:
    """One subscription, in the words of `Index.add`."""

    id: int
    expression: str
    priority: float
    weights: dict[str, float] | None
    tags: list[str] | None
    expires: datetime | None


class Dice:
    """Random choices that are the same on every version of Python."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def below(self, count: int) -> int:
        return int(self._random() * count)

    def chance(self, share: float) -> bool:
        return self._random() < share

    def pick(self, pool: Sequence[Any]) -> Any:
        return pool[self.below(len(pool))]

    def some(self, pool: Sequence[Any], share: float) -> list[Any]:
        return [item for item in pool if self.chance(share)]


# --- subscriptions ---------------------------------------------------------------------------------------


def subscriptions(count: int = SUBSCRIPTIONS, *, first: int = 0, seed: int = SEED) -> list[Row]:
    """Conjunctions, disjunctions and nested expressions, one third each.

    >>> subscriptions(1)[0].expression
    'arrays_overlap(ints, ARRAY(0, 2))^0'
    """
    dice = Dice(seed)
    return [_row(dice, first + number) for number in range(count)]


def conjunctions(count: int, *, seed: int = SEED) -> list[tuple[int, str]]:
    """Conjunctions of comparisons with numbers, which every published algorithm holds."""
    dice = Dice(seed)
    return [
        (number, " AND ".join(f"{name} {_interval(dice)}" for name in dice.some(NUMBERS, 0.5)) or "age = 1")
        for number in range(count)
    ]


def _row(dice: Dice, id: int) -> Row:
    expression = (_conjunction, _disjunction, _nested)[dice.below(3)](dice)
    return Row(
        id=id,
        expression=expression,
        priority=dice.below(40) / 8,
        weights={name: 0.1 * (1 + dice.below(5)) for name in dice.some(NUMBERS, 0.4)} or None,
        tags=(dice.some(TAGS, 0.3) + ["rare"] * dice.chance(0.01)) or None,
        expires=NOW + timedelta(days=dice.below(41) - 20) if dice.chance(0.3) else None,
    )


def _conjunction(dice: Dice) -> str:
    return " AND ".join(_predicate(dice) for _ in range(1 + dice.below(4)))


def _disjunction(dice: Dice) -> str:
    return " OR ".join(f"({_conjunction(dice)})" for _ in range(2 + dice.below(3)))


def _nested(dice: Dice, depth: int = 3) -> str:
    if depth == 0 or dice.chance(0.2):
        return _predicate(dice)
    joint = dice.pick((" AND ", " AND ", " OR ", " OR ", " XOR ", " XNOR "))
    text = joint.join(f"({_nested(dice, depth - 1)})" for _ in range(2 + dice.below(2)))
    return f"NOT ({text})" if dice.chance(0.2) else text


def _predicate(dice: Dice) -> str:
    text = str(dice.pick(_KINDS)(dice))
    # Some negations are a NOT around a predicate, which cannot have a weight.
    boosted = dice.chance(0.25) and "NOT " not in text
    return f"{text}^{dice.pick(BOOSTS)}" if boosted else text


def _interval(dice: Dice) -> str:
    low = dice.below(DOMAIN)
    forms = (f"= {low}", f"< {low}", f">= {low}", f"BETWEEN {low} AND {low + dice.below(6)}")
    return str(dice.pick(forms))


def _number(dice: Dice) -> str:
    name, value = dice.pick(NUMBERS), dice.below(DOMAIN)
    operator = dice.pick(("=", "=", "!=", "<", "<=", ">", ">=", "<=>"))
    return f"{name} {operator} {value if dice.chance(0.8) else value + 0.5}"


def _range(dice: Dice) -> str:
    low = dice.below(DOMAIN)
    negation = "NOT " if dice.chance(0.2) else ""
    return f"{dice.pick(NUMBERS)} {negation}BETWEEN {low} AND {low + dice.below(5)}"


def _number_set(dice: Dice) -> str:
    members = ", ".join(str(dice.below(DOMAIN)) for _ in range(1 + dice.below(4)))
    return f"{dice.pick(NUMBERS)} {'NOT ' if dice.chance(0.2) else ''}IN ({members})"


def _country(dice: Dice) -> str:
    members = dice.some(COUNTRIES, 0.4) or ["CA"]
    if len(members) == 1:
        return f"country {dice.pick(('=', '!=', '<=>', '<'))} '{members[0]}'"
    return f"country {'NOT ' if dice.chance(0.2) else ''}IN ({', '.join(map(repr, members))})"


def _name(dice: Dice) -> str:
    negation = "NOT " if dice.chance(0.2) else ""
    forms = (
        f"name {negation}LIKE '{dice.pick(PATTERNS)}'",
        f"name {negation}ILIKE '{dice.pick(PATTERNS)}'",
        f"name RLIKE '{dice.pick(('^a', 'a$', 'o+', '[A-Z]'))}'",
        f"startswith(name, '{dice.pick(('a', 'A', 'bo'))}')",
        f"endswith(name, '{dice.pick(('a', 'b', 'ace'))}')",
        f"contains(name, '{dice.pick(('d', 'o', ' '))}')",
        f"name = '{dice.pick(NAMES)}'",
        "name BETWEEN 'A' AND 'b'",
    )
    return str(dice.pick(forms))


def _array(dice: Dice) -> str:
    member = dice.below(6)
    return str(
        dice.pick((f"array_contains(ints, {member})", f"arrays_overlap(ints, ARRAY({member}, {member + 2}))"))
    )


def _presence(dice: Dice) -> str:
    name = dice.pick((*NUMBERS, *WORDS, "vip", "ints", "seen"))
    return f"{name} IS {'NOT ' if dice.chance(0.6) else ''}NULL"


def _moment(dice: Dice) -> str:
    return f"seen {dice.pick(('<', '>=', '='))} TIMESTAMP '2026-01-{1 + dice.below(9):02} 12:00:00'"


def _flag(dice: Dice) -> str:
    return str(dice.pick(("vip", "NOT vip", "vip IS NOT TRUE", "home.city = 'Wien'")))


_KINDS: tuple[Callable[[Dice], str], ...] = (
    *(_number, _number, _number, _range, _range, _number_set, _country, _country),
    *(_name, _name, _array, _presence, _moment, _flag),
)


# --- events ----------------------------------------------------------------------------------------------


def events(count: int = EVENTS, *, seed: int = SEED) -> list[dict[str, Any]]:
    """Records in which any attribute may be absent; numbers are integers, floats or, seldom, strings."""
    dice = Dice(seed + 1)
    return [_event(dice) for _ in range(count)]


def typed_events(count: int = EVENTS, *, seed: int = SEED) -> list[dict[str, Any]]:
    """The same kind with one type for each attribute, as the columns of a table need it."""
    dice = Dice(seed + 2)
    return [_event(dice, typed=True) for _ in range(count)]


def _event(dice: Dice, *, typed: bool = False) -> dict[str, Any]:
    event: dict[str, Any] = {}
    for name in NUMBERS:
        value: Any = dice.below(DOMAIN)
        if not typed:
            form = dice.below(20)
            value = (
                value + 0.5
                if form == 0
                else float(value)
                if form == 1
                else str(value)
                if form == 2
                else value
            )
        if dice.chance(0.8):
            event[name] = value
    if dice.chance(0.8):
        event["country"] = dice.pick(COUNTRIES)
    if dice.chance(0.8):
        event["name"] = dice.pick(NAMES)
    if dice.chance(0.6):
        event["vip"] = dice.chance(0.5)
    if dice.chance(0.5):
        event["ints"] = [dice.below(8) if dice.chance(0.9) else None for _ in range(dice.below(4))]
    if dice.chance(0.5):
        event["seen"] = datetime(2026, 1, 1 + dice.below(9), 12, tzinfo=UTC)
    if dice.chance(0.3):
        event["home"] = {"city": dice.pick(("Wien", "Graz"))}
    return event


def interval_bounds(count: int, *, seed: int = SEED) -> list[dict[str, tuple[int, int]]]:
    """For some attributes of each event, the ends of a closed interval in place of the value."""
    dice = Dice(seed + 3)
    bounds = []
    for _ in range(count):
        starts = {name: dice.below(DOMAIN) for name in dice.some(NUMBERS, 0.5)}
        bounds.append({name: (low, low + dice.below(5)) for name, low in starts.items()})
    return bounds


def event_weights(count: int, *, seed: int = SEED) -> list[dict[str, float]]:
    """The weights of each event for some of its attributes."""
    dice = Dice(seed + 4)
    return [{name: 0.1 * dice.below(30) for name in dice.some(NUMBERS, 0.6)} for _ in range(count)]
