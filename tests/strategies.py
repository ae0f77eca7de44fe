"""Random expressions and events for the tests, made to collide.

Values come from small pools, so that equal values, equal predicates and values at the very edge of a range
are the rule and not the exception. Expressions are trees of `oracle` nodes; `writer` turns them into text or
builder calls. A predicate looks at an attribute, at a computed term, or at something Boolean: a comparison of
two terms, a quantifier, a place. What is `typed` other engines can be asked, so it leaves out what they lack.
"""

import math
import os
import random
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from oracle import (
    ALL_STRINGS,
    AtLeast,
    Connective,
    Constant,
    Interval,
    IsTruth,
    Node,
    Not,
    Predicate,
    Quantified,
    Term,
    Within,
)
from oracle_terms import NOW, Call, literal_of

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
    "items": "records",
}

# The names that can be seen at some place, with their types.
Scope = tuple[tuple[str, str], ...]
SCOPE: Scope = tuple(ATTRIBUTES.items())

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
TEXTS = [
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
    " 7 ",
    "10.1.2.3",
    "10.9.9.9",
    "::ffff:10.1.2.3",
    "2001:db8::1",
    "<a><b x='1'>7</b></a>",
    "<a/>",
]
strings = mostly(
    TEXTS,
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=4),
)
# Parts of the texts that are met most often, so that patterns match.
fragments = st.sampled_from(TEXTS).flatmap(
    lambda text: st.tuples(st.integers(0, len(text)), st.integers(0, len(text))).map(
        lambda ends: text[min(ends) : max(ends)]
    )
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


# The fields of a record in `items`; `n` is an array itself, and all may be absent.
FIELDS = {"p": "integer", "s": "string", "n": "integers", "of.x": "float"}


@st.composite
def records(draw: Callable[..., Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, values in {"p": integers, "s": strings, "n": arrays(integers)}.items():
        if (chance := draw(st.integers(0, 5))) > 0:
            made[name] = None if chance == 1 else draw(values)
    if draw(st.booleans()):
        made["of"] = {"x": draw(floats)}
    return made


VALUES = SCALARS | {
    "integers": arrays(integers),
    "strings": arrays(strings),
    "records": st.lists(records() | st.none(), max_size=3),
}
ELEMENTS = {"integers": "integer", "strings": "string"}

like_patterns = st.lists(
    st.sampled_from([*LETTERS, "%", "%", "_", "\\%", "\\_", "\\\\", "'"]), max_size=5
).map("".join) | st.builds(
    lambda start, part, end: start + re.sub(r"([%_\\])", r"\\\1", part) + end,
    st.sampled_from(["", "%", "_"]),
    fragments,
    st.sampled_from(["", "%", "_"]),
)
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
def predicates(
    draw: Callable[..., Any],
    *,
    typed: bool = False,
    weighted: bool = False,
    scope: Scope = SCOPE,
    quantified: int = 2,
) -> Predicate:
    """One test of one term. Unless `typed`, operands may be of another type than the term.

    `scope` has the names that can be seen, with their types; quantifiers nest so deep.
    """
    term, declared = draw(terms_of(scope, typed=typed, quantified=quantified))
    if isinstance(term, str) and not typed and draw(st.integers(0, 9)) == 0:
        declared = draw(st.sampled_from(list(VALUES)))
    name = draw(st.sampled_from(operators(declared, typed=typed)))
    scalar = SCALARS.get(ELEMENTS.get(declared, declared), st.nothing())
    if name not in ("array_contains", "truth", "IS NULL") and draw(st.integers(0, 19)) == 0:
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
        case "startswith" | "endswith" | "contains":
            operands = (draw(scalar | fragments),)
        case "ip_in":
            operands = (draw(st.sampled_from(NETWORKS)),)
        case "xpath":
            operands = (draw(st.sampled_from(PATHS)),)
        case _:
            operands = (draw(scalar),)
    # A BETWEEN with a null end is two predicates, and only one can have a weight.
    boosted = weighted and None not in operands and draw(st.booleans())
    boost = draw(weights) if boosted else None
    return Predicate(term, name, operands, negated=draw(st.booleans()), boost=boost)


ORDERED = ("=", "<=>", "<", "<=", ">", ">=", "IN", "BETWEEN", "IS NULL")
TEXT = ("LIKE", "ILIKE", "RLIKE", "startswith", "endswith", "contains")
OPERATORS = {
    "integer": ORDERED,
    "float": ORDERED,
    "string": (*ORDERED, *TEXT, *TEXT, "ip_in", "ip_in", "xpath", "xpath"),
    "boolean": ("truth", "truth", "=", "<=>", "IN", "IS NULL"),
    "truth": ("truth",),
    "timestamp": ORDERED,
    "integers": ("array_contains", "arrays_overlap", "IS NULL"),
    "strings": ("array_contains", "arrays_overlap", "IS NULL"),
    "records": ("IS NULL",),
}
NETWORKS = ["10.0.0.0/8", "10.1.2.0/24", "10.1.2.3/32", "0.0.0.0/0", "2001:db8::/32", "::/0"]
PATHS = ["/a", "/a/b", "//b[@x = '1']", "/a[b > 5]", "/a[b = 7]/b", "//c", "/a[not(b)]"]


def operators(declared: str, *, typed: bool) -> list[str]:
    """What can be asked of a type. Other engines know no networks and no paths of our dialect."""
    return [name for name in OPERATORS[declared] if not (typed and name in ("ip_in", "xpath"))]


# --- terms ----------------------------------------------------------------------------------------

SMALL = st.integers(-3, 3)
UNITS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
PARTS = ("year", "quarter", "month", "day", "dayofweek", "dayofyear", "hour", "minute", "second")
TRUNCATED = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
ZONES = ("UTC", "Asia/Tokyo", "Etc/GMT+5")


@st.composite
def terms_of(draw: Callable[..., Any], scope: Scope, *, typed: bool, quantified: int) -> tuple[Term, str]:
    """A term and its type: more than half of them attributes, strings twice, as most operators are theirs."""
    chance = draw(st.integers(0, 19))
    if chance <= 11:
        return draw(st.sampled_from((*scope, *(pair for pair in scope if pair[1] == "string"))))
    if chance <= 14:
        declared = draw(st.sampled_from(["integer", "float", "string", "string", "timestamp", "boolean"]))
        return draw(computed(declared, scope, typed=typed)), declared
    if chance <= 16:
        return draw(comparisons(scope, typed=typed)), "truth"
    if chance == 17 and not typed:
        return draw(places(scope)), "truth"
    arrays_here = [name for name, declared in scope if declared in ("integers", "strings", "records")]
    if quantified == 0 or not arrays_here:
        return draw(comparisons(scope, typed=typed)), "truth"
    return draw(quantifiers(scope, arrays_here, typed=typed, quantified=quantified)), "truth"


@cache
def computed(declared: str, scope: Scope, *, typed: bool, levels: int = 2) -> st.SearchStrategy[Any]:
    """A function of terms, with a value of that type."""

    def of(inner: str) -> st.SearchStrategy[Any]:
        names = [name for name, known in scope if known == inner]
        is_deep = levels > 1 and inner in SCALARS
        deeper = computed(inner, scope, typed=typed, levels=levels - 1) if is_deep else st.nothing()
        return st.sampled_from(names) | deeper if names else deeper

    def a(name: str, *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.tuples(*arguments).map(lambda given: Call(name, given))

    def constant(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return values.map(literal_of)

    def one_of(names: Iterable[str], *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.one_of([a(name, *arguments) for name in names])

    number, text, time = of("integer"), of("string"), of("timestamp")
    match declared:
        case "integer":
            return st.one_of(
                one_of("+-*%", number, number | constant(SMALL)),
                one_of("+-", constant(SMALL), number),
                a("abs", number),
                a("round", number, constant(st.integers(-2, 1))) if not typed else st.nothing(),
                a("length", text),
                a("size", of("integers") | of("strings") | of("records")),
                a("element_at", of("integers"), constant(SMALL.filter(bool))),
                one_of(PARTS, time),
                a("cast as int", text | number | time | of("boolean") | of("float")),
                a("floor", of("float")),
                a("ceil", of("float")),
                a("coalesce", number, number | constant(SMALL)),
                a(
                    "timestampdiff",
                    constant(st.sampled_from(["DAY", "HOUR", "MINUTE", "SECOND", "MICROSECOND"])),
                    time,
                    time | constant(timestamps),
                ),
            )
        case "float":
            real = of("float")
            return st.one_of(
                one_of("+-*/", real, real | constant(st.sampled_from([0.5, 2.0, -1.0]))),
                one_of("+-*/", real, number) if not typed else st.nothing(),
                a("/", number, number | constant(SMALL)),
                a("%", real, real | constant(st.sampled_from([0.5, 2.0]))) if not typed else st.nothing(),
                a("abs", real),
                a("round", real, constant(st.integers(-1, 2))) if not typed else st.nothing(),
                a("cast as float", number | of("boolean") | (st.nothing() if typed else text | time)),
                a("coalesce", real, real),
            )
        case "string":
            return st.one_of(
                one_of(["lower", "trim"] if typed else ["lower", "upper", "trim"], text),
                a("concat", text, text | constant(st.sampled_from(["a", "é", ""]))),
                a("substring", text, constant(SMALL)),
                a(
                    "substring",
                    text,
                    constant(SMALL.filter(bool) if typed else SMALL),
                    constant(st.integers(0, 3) if typed else SMALL),
                ),
                a("coalesce", text, text | constant(strings)),
                a("element_at", of("strings"), constant(SMALL.filter(bool))),
                a("cast as string", number | of("boolean") | text | time),
            )
        case "timestamp":
            moved = a("+ interval", time, constant(st.integers(-9, 9)), constant(st.sampled_from(UNITS)))
            return st.one_of(
                moved,
                a("date_trunc", constant(st.sampled_from(TRUNCATED)), time),
                a("from_utc_timestamp", time, constant(st.sampled_from(ZONES))),
                a("coalesce", time, constant(timestamps)),
                a("cast as timestamp", a("%", number, constant(st.just(1000)))),
            )
    return st.one_of(
        a("cast as bool", of("boolean") | number | (st.nothing() if typed else text | of("float"))),
        a("coalesce", of("boolean"), of("boolean") | constant(booleans)),
        comparisons(scope, typed=typed, levels=levels - 1),
    )


@cache
def comparisons(scope: Scope, *, typed: bool, levels: int = 2) -> st.SearchStrategy[Any]:
    """A comparison of two terms; of the clock, too, which is nowhere near the timestamps of events."""

    def side(declared: str) -> st.SearchStrategy[Any]:
        names = [name for name, known in scope if known == declared]
        named = st.sampled_from(names) if names else st.nothing()
        return named | computed(declared, scope, typed=typed, levels=levels) if levels > 0 else named

    def pair(declared: str) -> st.SearchStrategy[Any]:
        other = declared
        return st.builds(
            lambda symbol, left, right: Call(symbol, (left, right)),
            st.sampled_from(["=", "<", "<=", ">", ">=", "<=>"]),
            side(declared),
            side(other),
        )

    pairs = [pair(declared) for declared in ("integer", "float", "string", "timestamp", "boolean")]
    clocks = st.integers(-40, 40).map(
        lambda days: Call("+ interval", (NOW, literal_of(days), literal_of("DAY")))
    )
    clock = st.builds(
        lambda symbol, time, moment: Call(symbol, (time, moment)),
        st.sampled_from(["<", ">="]),
        side("timestamp"),
        st.just(NOW) | clocks,
    )
    mixed = st.builds(
        lambda symbol, left, right: Call(symbol, (left, right)),
        st.sampled_from(["=", "<", "<=>"]),
        st.sampled_from([name for name, _ in scope]),
        st.sampled_from([name for name, _ in scope]),
    )
    return st.one_of([*pairs, clock, *([] if typed else [mixed])])


@cache
def places(scope: Scope) -> st.SearchStrategy[Any]:
    """A place near the small numbers of the pools. No point of them lies near the rim of a circle."""
    numbers = [name for name, declared in scope if declared in ("integer", "float")]
    coordinate = st.sampled_from(numbers) | computed("float", scope, typed=False, levels=1)
    circles = st.tuples(
        st.sampled_from([0.0, 1.0, 3.5, 89.0]),
        st.sampled_from([0.0, 0.5, 179.9]),
        st.sampled_from([1000.0, 130_000.0, 3_000_000.0]),
    )
    corners = [-1.0, 0.0, 0.5, 2.0, 7.0]
    rectangles = st.tuples(
        *[st.lists(st.sampled_from(corners), min_size=2, max_size=2, unique=True)] * 2
    ).map(
        lambda ends: tuple(
            (x, y)
            for x, y in zip(
                [ends[0][0], ends[0][1], ends[0][1], ends[0][0]],
                [ends[1][0], ends[1][0], ends[1][1], ends[1][1]],
                strict=True,
            )
        )
    )
    return st.builds(Within, coordinate, coordinate, circles | rectangles)


@st.composite
def quantifiers(
    draw: Callable[..., Any],
    scope: Scope,
    arrays_here: list[str],
    *,
    typed: bool,
    quantified: int,
) -> Quantified:
    """Over scalars, records, arrays inside records; over all strings; the variable may hide an attribute."""
    array = draw(st.sampled_from(arrays_here))
    declared = dict(scope)[array]
    quantifier = draw(st.sampled_from(["exists", "forall", "any"]))
    if not typed:
        chance = draw(st.integers(0, 5))
        if chance == 0:
            array, declared = ALL_STRINGS, "strings"
        elif chance == 1 and quantifier == "any":
            array, known = draw(st.sampled_from(scope))
            declared = {"string": "strings", "strings": "strings", "records": "records"}.get(
                known, "integers"
            )
    variable = draw(st.sampled_from(["x", "element", "i", "s", "person"]))
    seen = [(name, known) for name, known in scope if not (name + ".").startswith(variable + ".")]
    fields = (
        [(f"{variable}.{name}", known) for name, known in FIELDS.items()]
        if declared == "records"
        else [(variable, ELEMENTS[declared])]
    )
    # The element is looked at more often than the rest of the event.
    inner = (*seen, *fields * (24 // len(fields)))
    drawn = predicates(typed=typed, scope=inner, quantified=quantified - 1)
    leaves: st.SearchStrategy[Node] = st.sampled_from(draw(st.lists(drawn, min_size=1, max_size=2)))
    levels = draw(st.integers(0, 1))
    body = draw(_inner(leaves, levels, tested=True) if levels else leaves)
    return Quantified(quantifier, array, variable, body)


# --- expressions --------------------------------------------------------------------------------


@st.composite
def expressions(
    draw: Callable[..., Any], *, typed: bool = False, weighted: bool = False, depth: int = 6
) -> Node:
    """A tree over a few predicates, so that they repeat."""
    drawn = predicates(typed=typed, weighted=weighted)
    pool: list[Node] = draw(st.lists(tested_at_times(drawn) if weighted else drawn, min_size=1, max_size=6))
    leaves = st.sampled_from(pool)
    if draw(st.integers(0, 4)) == 0:
        leaves |= st.sampled_from([Constant(True), Constant(False), Constant(None)])
    levels = draw(st.integers(0, depth))
    # The judge of scores knows truth tests of predicates only.
    return draw(_inner(leaves, levels, tested=not weighted) if levels else leaves)


def tested_at_times(drawn: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Node]:
    """A quarter of the predicates with a truth test around them, except those that are never undefined."""
    truths = st.builds(
        IsTruth,
        drawn.filter(lambda node: node.operator not in ("IS NULL", "<=>") and None not in node.operands),
        st.sampled_from(("TRUE", "FALSE", "UNKNOWN")),
        st.booleans(),
    )
    return st.integers(0, 3).flatmap(lambda chance: truths if chance == 3 else drawn)


def _inner(leaves: st.SearchStrategy[Node], depth: int, *, tested: bool) -> st.SearchStrategy[Node]:
    """A node that is no leaf, with at most `depth` levels under it."""
    below = leaves | _inner(leaves, depth - 1, tested=tested) if depth > 1 else leaves
    branches = st.lists(below, min_size=2, max_size=3).map(tuple)
    joined = st.builds(Connective, st.sampled_from(CONNECTIVES), branches)
    counted = st.lists(below, min_size=1, max_size=4).flatmap(
        lambda children: st.builds(AtLeast, st.integers(1, len(children)), st.just(tuple(children)))
    )
    exact = counted.map(
        lambda node: (
            Connective("AND", (node, Not(AtLeast(node.least + 1, node.children))))
            if node.least < len(node.children)
            else node
        )
    )
    truths = st.builds(IsTruth, below, st.sampled_from(("TRUE", "FALSE", "UNKNOWN")), st.booleans())
    unary = st.builds(Not, below) | truths if tested else st.builds(Not, below)
    return joined | joined | unary | counted | exact


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
    """Distinct examples of a strategy, for judges that are asked many questions at once.

    They are the same on every run, unless `TAMIS_TEST_SEED` asks for others.
    """
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

    other = os.environ.get("TAMIS_TEST_SEED")
    keep = keep if other is None else seed(f"{other} {count}")(keep)
    keep()
    # Neighbours resemble each other, so choose from all over.
    return random.Random(count).sample(list(examples.values()), count)


@cache
def deck() -> list[dict[str, Any]]:
    """Events of every kind. An expression is judged on all of them, not on one lucky draw.

    Call it once before a test that draws: Hypothesis cannot draw within drawing.
    """
    return collect(events(intervals=True), 60)
