"""Random expressions and events for the tests, made to collide.

Values come from small pools, so that equal values, equal predicates and values at the very edge of a range
are the rule and not the exception. Expressions are trees of `oracle` nodes; `writer` turns them into text or
builder calls.
"""

import math
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from oracle import AtLeast, Connective, Constant, Interval, IsTruth, Node, Not, Predicate

# Attribute -> the type of its values. `person` is a nested record; one name needs backquotes.
ATTRIBUTES = {
    "i": "integer",
    "f": "float",
    "s": "string",
    "b": "boolean",
    "t": "timestamp",
    "ints": "integers",
    "words": "strings",
    "person.age": "integer",
    "person.name": "string",
    "naïve key": "string",
}

CONNECTIVES = ("AND", "OR", "XOR", "XNOR")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LETTERS = ["a", "b", "A", "é", "É", "ß", "日", "🦀"]


def mostly(pool: list[Any], rest: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Four times out of five a value of the pool, so that values meet."""
    return st.integers(0, 4).flatmap(lambda chance: rest if chance == 4 else st.sampled_from(pool))


integers = mostly(
    [0, 1, -1, 2, 3, 7, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)],
    st.integers(-(2**63), 2**63 - 1),
)
floats = mostly(
    [0.0, -0.0, 0.5, 1.0, 2.0, 3.5, 2.0**53, 2.0**63, 1e-300, math.inf, -math.inf, math.nan],
    st.floats(allow_nan=False),
)
strings = mostly(
    [
        "",
        "a",
        "A",
        "b",
        "ab",
        "aB",
        "abc",
        "bab",
        "é",
        "É",
        "ß",
        "日本",
        "🦀",
        "a%b",
        "a_b",
        "a\\b",
        "it's",
        "`",
    ],
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=4),
)
booleans = st.booleans()
timestamps = mostly(
    [
        EPOCH,
        EPOCH + timedelta(microseconds=1),
        EPOCH - timedelta(microseconds=1),
        datetime(2026, 1, 31, 12, tzinfo=UTC),
    ],
    st.datetimes(datetime(1600, 1, 1), datetime(9000, 1, 1), timezones=st.just(UTC)),
)

SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "integer": integers,
    "float": floats,
    "string": strings,
    "boolean": booleans,
    "timestamp": timestamps,
}


def arrays(items: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(items | st.none(), max_size=4)


VALUES = SCALARS | {"integers": arrays(integers), "strings": arrays(strings)}
ELEMENTS = {"integers": "integer", "strings": "string"}

like_patterns = st.lists(
    st.sampled_from([*LETTERS, "%", "%", "_", "\\%", "\\_", "\\\\", "'"]), max_size=5
).map("".join)
# What all regular-expression dialects at hand agree on.
regexes = st.lists(
    st.sampled_from([*LETTERS, "[ab]", "[^a]", "a*", "b+", "(a|b)", "(ab)?", "a{1,2}", r"\.", r"\\"]),
    min_size=1,
    max_size=4,
).flatmap(lambda parts: st.sampled_from(["", "^"]).map(lambda start: start + "".join(parts)))


# --- predicates ---------------------------------------------------------------------------------


# Weights whose sums depend on the order in which they are added.
weights = st.sampled_from([0.0, 0.1, 0.2, 0.3, 1.0, 2.5, 1e16])


@st.composite
def predicates(draw: Callable[..., Any], *, typed: bool = False, weighted: bool = False) -> Predicate:
    """One test of one attribute. Unless `typed`, operands may be of another type than the attribute."""
    attribute = draw(st.sampled_from(list(ATTRIBUTES)))
    declared = ATTRIBUTES[attribute]
    if not typed and draw(st.integers(0, 9)) == 0:
        declared = draw(st.sampled_from(list(VALUES)))
    name = draw(st.sampled_from(OPERATORS[declared]))
    scalar = SCALARS[ELEMENTS.get(declared, declared)]
    if name != "array_contains" and draw(st.integers(0, 19)) == 0:
        scalar |= st.none()
    operands: tuple[Any, ...]
    match name:
        case "IS NULL" | "truth":
            operands = ()
        case "BETWEEN":
            operands = (draw(scalar), draw(scalar))
        case "IN" | "arrays_overlap":
            operands = tuple(draw(st.lists(scalar, max_size=5)))
        case "LIKE" | "ILIKE":
            operands = (draw(like_patterns),)
        case "RLIKE":
            operands = (draw(regexes),)
        case _:
            operands = (draw(scalar),)
    # A BETWEEN with a null end is two predicates, and only one can have a weight.
    boosted = weighted and None not in operands and draw(st.booleans())
    boost = draw(weights) if boosted else None
    return Predicate(attribute, name, operands, negated=draw(st.booleans()), boost=boost)


ORDERED = ("=", "<=>", "<", "<=", ">", ">=", "IN", "BETWEEN", "IS NULL")
TEXT = ("LIKE", "ILIKE", "RLIKE", "startswith", "endswith", "contains")
OPERATORS = {
    "integer": ORDERED,
    "float": ORDERED,
    "string": (*ORDERED, *TEXT),
    "boolean": ("truth", "truth", "=", "<=>", "IN", "IS NULL"),
    "timestamp": ORDERED,
    "integers": ("array_contains", "arrays_overlap", "IS NULL"),
    "strings": ("array_contains", "arrays_overlap", "IS NULL"),
}


# --- expressions --------------------------------------------------------------------------------


@st.composite
def expressions(
    draw: Callable[..., Any], *, typed: bool = False, weighted: bool = False, depth: int = 6
) -> Node:
    """A tree over a few predicates, so that they repeat."""
    drawn = predicates(typed=typed, weighted=weighted)
    pool: list[Node] = draw(st.lists(drawn, min_size=1, max_size=6))
    leaves = st.sampled_from(pool)
    if draw(st.integers(0, 4)) == 0:
        leaves |= st.sampled_from([Constant(True), Constant(False), Constant(None)])
    levels = draw(st.integers(0, depth))
    # The judge of scores knows no truth tests.
    return draw(_inner(leaves, levels, tested=not weighted) if levels else leaves)


def _inner(leaves: st.SearchStrategy[Node], depth: int, *, tested: bool) -> st.SearchStrategy[Node]:
    """A node that is no leaf, with at most `depth` levels under it."""
    below = leaves | _inner(leaves, depth - 1, tested=tested) if depth > 1 else leaves
    branches = st.lists(below, min_size=2, max_size=3).map(tuple)
    joined = st.builds(Connective, st.sampled_from(CONNECTIVES), branches)
    counted = st.lists(below, min_size=1, max_size=4).flatmap(
        lambda children: st.builds(AtLeast, st.integers(1, len(children)), st.just(tuple(children)))
    )
    truths = st.builds(IsTruth, below, st.sampled_from(("TRUE", "FALSE", "UNKNOWN")), st.booleans())
    unary = st.builds(Not, below) | truths if tested else st.builds(Not, below)
    return joined | joined | unary | counted


# --- events -------------------------------------------------------------------------------------


@st.composite
def events(draw: Callable[..., Any], *, typed: bool = False, intervals: bool = False) -> dict[str, Any]:
    """A dict of attribute -> value, with absent attributes and nulls.

    Without `typed`, a value may be of another type than its attribute usually has, and `person` may be
    written as flat names or as something that is not a record at all.
    """
    event: dict[str, Any] = {}
    for attribute, declared in ATTRIBUTES.items():
        chance = draw(st.integers(0, 9))
        if chance == 0:
            continue
        if chance == 1:
            event[attribute] = None
        elif chance == 2 and not typed:
            event[attribute] = draw(st.one_of(*VALUES.values()))
        elif chance <= 4 and intervals and declared in SCALARS:
            ends = sorted(draw(st.lists(_ends(declared), min_size=2, max_size=2)))
            event[attribute] = Interval(*ends)
        else:
            event[attribute] = draw(VALUES[declared])
    if typed or draw(st.booleans()):
        event["person"] = {
            name: event.pop(f"person.{name}") for name in ["age", "name"] if f"person.{name}" in event
        }
    return event


def _ends(declared: str) -> st.SearchStrategy[Any]:
    return SCALARS[declared].filter(lambda end: not (isinstance(end, float) and math.isnan(end)))


def collect(strategy: st.SearchStrategy[Any], count: int) -> list[Any]:
    """Distinct examples of a strategy, for judges that are asked many questions at once."""
    examples: dict[str, Any] = {}

    @settings(
        max_examples=3 * count,
        database=None,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def keep(example: Any) -> None:
        examples.setdefault(repr(example), example)

    keep()
    # Neighbours resemble each other, so choose from all over.
    return random.Random(count).sample(list(examples.values()), count)


# Events of every kind. An expression is judged on all of them, not on one lucky draw.
DECK = collect(events(intervals=True), 60)
