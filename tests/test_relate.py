"""What expressions say about one another agrees with the oracle on random expressions and events."""

import itertools
import pickle
import random
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
import tamis
from events import to_dict
from oracle import Node, evaluate
from strategies import deck
from tamis import col, parse, relate
from writer import to_builder

MEASURES = ["accuracy", "efficiency", "memory", "accuracy-occurrence", "accuracy-distance"]

expressions = strategies.expressions(depth=3)


@cache
def points() -> list[dict[str, Any]]:
    return strategies.collect(strategies.events(), 25)


def intervals() -> list[dict[str, Any]]:
    return deck()[:25]


@pytest.fixture(scope="module", autouse=True)
def drawn() -> None:
    """Draw these events before a test draws."""
    points(), intervals()


def is_match(node: Node, event: dict[str, Any]) -> bool:
    return evaluate(node, event).can_be_true


# --- relations -----------------------------------------------------------------------------------


@given(expressions, expressions)
def test_no_event_contradicts_a_relation(a: Node, b: Node) -> None:
    left, right = to_builder(a), to_builder(b)
    wanted = [event for event in points() if is_match(b, event)]
    both = [event for event in wanted if is_match(a, event)]
    only_b = [event for event in wanted if not is_match(a, event)]
    assert left.overlaps(right) or not both
    assert left.overlaps(right, method="pairs") or not both
    assert not (left.covers(right) and only_b)
    assert relate.decide_overlaps(left, right) is not False or not both
    assert relate.decide_covers(left, right) is not True or not only_b
    assert left.is_disjoint(right) is not left.overlaps(right)


@given(expressions, expressions)
def test_an_example_is_one(a: Node, b: Node) -> None:
    left, right = to_builder(a), to_builder(b)
    example = relate.example_of_overlap(left, right)
    assert (example is not None) == (relate.decide_overlaps(left, right) is True)
    if example is not None:
        assert left.evaluate(example) is True
        assert right.evaluate(example) is True


@given(expressions, expressions)
def test_structure_holds_for_intervals(a: Node, b: Node) -> None:
    if to_builder(a).covers(to_builder(b), intervals=True):
        assert not [event for event in intervals() if is_match(b, event) and not is_match(a, event)]


def test_a_relation_knows_of_absent_attributes() -> None:
    anything = parse("x > 1 OR x <= 1")
    assert not anything.covers(parse("TRUE"))
    assert not anything.covers(parse("x IS NOT NULL"))
    assert anything.covers(parse("x = 5"))
    assert parse("NOT x").is_disjoint(parse("x IS NULL"))


@pytest.mark.parametrize(
    ("one", "other", "event"),
    [
        ("i > 1", "xpath(k, '//b') IS NOT UNKNOWN", {"i": 2, "k": "<b/>"}),
        (
            "contains(s, 'ab') IS NOT FALSE AND contains(s, 'abc')",
            "s RLIKE '[0-9]{30}'",
            {"s": "abc" + "7" * 30},
        ),
    ],
)
def test_tested_patterns_are_not_taken_for_false(one: str, other: str, event: dict[str, Any]) -> None:
    """Nothing is proven of a pattern for which no example is at hand."""
    a, b = parse(one), parse(other)
    assert a.evaluate(event) is b.evaluate(event) is True
    assert a.overlaps(b)
    assert relate.decide_overlaps(a, b) is not False
    assert not (~a).covers(b)


def test_what_is_no_document_is_covered_by_no_path() -> None:
    either, text = parse("xpath(k, '//b') OR NOT xpath(k, '//b')"), parse("k RLIKE '^[0-9]+[a-z]$'")
    assert text.evaluate({"k": "7b"}) is True
    assert either.evaluate({"k": "7b"}) is None
    assert not either.covers(text)
    assert relate.decide_covers(either, text) is not True


def test_columns_are_expressions() -> None:
    assert parse("a OR b").covers(col("a"))
    assert relate.decide_overlaps(col("a"), parse("NOT a")) is False


def test_a_small_budget_is_on_the_safe_side() -> None:
    a, b = parse("x IN (1, 2, 3) AND y > 2"), parse("x IN (4, 5) AND y < 9 AND (x > 4 OR x < 3)")
    assert relate.decide_overlaps(a, b) is False
    assert relate.decide_overlaps(a, b, budget=1) is None
    assert relate.decide_covers(b, a, budget=1) is None
    assert not b.covers(a, budget=1)


# --- pruning -------------------------------------------------------------------------------------


@given(
    st.lists(strategies.expressions(depth=4), min_size=1, max_size=4),
    st.sampled_from(MEASURES),
    st.integers(0, 12),
    st.booleans(),
)
def test_a_pruned_expression_matches_whenever_its_original_does(
    nodes: list[Node], measure: Any, steps: int, to_true: bool
) -> None:
    originals = [to_builder(node) for node in nodes]
    pruned = relate.prune_many(originals, steps=steps, measure=measure, to_true=to_true)
    assert len(pruned) == len(originals)
    for node, original, general in zip(nodes, originals, pruned, strict=True):
        assert general.covers(original, intervals=True)
        for event in intervals():
            if is_match(node, event):
                assert general.evaluate(to_dict(event)) in (True, "either")


@pytest.mark.thorough
@given(st.lists(expressions, min_size=1, max_size=4))
def test_no_match_without_an_access_predicate(nodes: list[Node]) -> None:
    originals = [to_builder(node) for node in nodes]
    for node, texts in zip(nodes, relate.access_predicates(originals), strict=True):
        try:
            keys = [parse(text) for text in texts]
        except tamis.ExpressionError:
            continue  # an empty set has no text
        for event in intervals():
            if is_match(node, event):
                assert any(key.evaluate(to_dict(event)) in (True, "either") for key in keys)


def test_pruning_stops_where_it_is_told() -> None:
    expression = parse("a = 1 AND b = 2 AND (c = 3 OR d = 4 AND e = 5)")
    assert expression.prune(steps=0) == expression
    assert expression.prune(predicates=2).predicates <= 2
    assert expression.prune(bytes=0).predicates == 1
    assert expression.prune(bytes=0, to_true=True) == parse("TRUE")
    with pytest.raises(tamis.ArgumentError, match="one of steps, predicates and bytes"):
        expression.prune()
    with pytest.raises(tamis.ArgumentError, match='unknown measure "speed": use one of "accuracy"'):
        expression.prune(steps=1, measure="speed")


def test_what_is_wrong_with_a_batch_names_the_row() -> None:
    with pytest.raises(tamis.ExpressionError, match="expression 1: "):
        relate.prune_many(["a = 1", "a ="], steps=1)
    with pytest.raises(tamis.ExpressionError, match="not one predicate"):
        relate.Selectivities({"a = 1 AND b": 0.5})
    with pytest.raises(tamis.ArgumentError, match="not between 0 and 1"):
        relate.Selectivities({"a = 1": 2})


def test_expressions_come_as_columns() -> None:
    column = pa.chunked_array([["a = 1 AND b > 2"], ["c = 1 AND d > 3", "x OR y"]])
    known = {"b > 2": 0.9, "d > 3": 0.8}
    pruned = relate.prune_many(column, predicates=4, selectivities=known)
    assert [str(expression) for expression in pruned] == ["a = 1", "c = 1", "x OR y"]
    assert relate.access_predicates(column, known) == [["a = 1"], ["c = 1"], ["x", "y"]]


def test_selectivities_are_counted() -> None:
    table = pa.table({"age": [17, 70, None, 30], "city": ["Geneva", None, "Bern", "Geneva"]})
    expressions = [
        "age >= 18 AND city = 'Geneva'",
        "NOT (age > 65) XOR city IS NULL",
        "age BETWEEN 20 AND 40",
    ]
    known = relate.Selectivities.from_events(expressions, table)
    assert known["age >= 18"] == known["city = 'Geneva'"] == 0.5
    assert known["age BETWEEN 20 AND 40"] == 0.25
    assert known["NOT (age > 65) XOR city IS NULL"] == 0.75
    assert dict(pickle.loads(pickle.dumps(known))) == dict(known)
    records = [{k: v for k, v in row.items() if v is not None} for row in table.to_pylist()]
    assert dict(relate.Selectivities.from_events(expressions, records)) == dict(known)
    assert len(relate.Selectivities.from_events(expressions, table.slice(0, 0))) == 0


def test_a_queue_follows_its_subscriptions() -> None:
    queue = relate.PruningQueue(measure="memory", execution="restricted")
    for at in range(10):
        queue.add(at, f"a = {at} AND b > {at} AND c < {at}")
    assert (len(queue), queue.predicates, queue.bytes) == (10, 30, 170)
    assert queue.prune(predicates=20) == 10
    queue.remove(3)
    assert 3 not in queue
    with pytest.raises(tamis.UnknownIdError, match="no expression 3"):
        queue.remove(3)
    with pytest.raises(tamis.DuplicateIdError, match="4 is already"):
        queue.add(4, "x")
    queue.prune(bytes=0)
    assert queue.predicates == 9
    assert all(parse(f"a = {at} AND b > {at} AND c < {at}").predicates > queue[at].predicates for at in queue)


# --- merging -------------------------------------------------------------------------------------


@given(expressions, expressions, st.integers(0, 3))
def test_a_merger_matches_whatever_one_of_the_two_does(a: Node, b: Node, prunings: int) -> None:
    merged = to_builder(a).merge(to_builder(b), prunings=prunings)
    for event in points():
        expected = is_match(a, event) or is_match(b, event)
        found = merged.evaluate(to_dict(event)) is True
        assert found == expected if prunings == 0 else found or not expected


@pytest.mark.parametrize(
    ("a", "expected"),
    [
        ("t <> TIMESTAMP '0001-01-01'", datetime(1, 1, 1, 0, 0, 0, 1, tzinfo=UTC)),
        (
            "t <> TIMESTAMP '9999-12-31 23:59:59.999999'",
            datetime(9999, 12, 31, 23, 59, 59, 999998, tzinfo=UTC),
        ),
        ("t <= TIMESTAMP '0001-01-01'", datetime(1, 1, 1, tzinfo=UTC)),
    ],
)
def test_examples_at_the_ends_of_time(a: str, expected: datetime) -> None:
    """Beside the first and the last timestamp that can be written there are others, but not in Python."""
    example = tamis.relate.example_of_overlap(tamis.parse(a), tamis.parse("t IS NOT NULL"))
    assert example == {"t": expected}


def test_no_example_where_no_datetime_would_do() -> None:
    before = tamis.parse("t < TIMESTAMP '0001-01-01'")
    assert tamis.relate.decide_overlaps(before, before) is True
    assert tamis.relate.example_of_overlap(before, before) is None


# --- small pairs, judged by every event of a small domain ------------------------------------------

DOMAIN: dict[str, list[Any]] = {
    "i": [None, 0, 1, 2, 1.5, "a", True],
    "j": [None, 1, 2],
    "s": [None, "a", "A", "ab", "", 3],
    "b": [None, True, False, 1],
    "t": [None, [], [1], [None], [1, None], [1, 2], ["a"], "a", 1],
}
# Networks, places, records in arrays and time, each with values on both sides of every edge.
OTHER_DOMAIN: dict[str, list[Any]] = {
    "ip": [None, "10.0.0.1", "10.0.0.129", "10.1.0.0", "::ffff:10.0.0.1", "fe80::1", "x", 7],
    "lat": [None, 52.5, 52.52, -90],
    "lon": [None, 13.4, 180.0, "13.4"],
    "ts": [None, datetime(2026, 1, 31, 23, 59, 59, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC), "2026"],
    "r": [
        None,
        [],
        [{}],
        [{"p": 1}],
        [{"p": 2, "q": "a"}],
        [{"p": 1, "q": "a"}, {"p": 3}],
        [{"p": "a"}, None],
        {"p": 1},
    ],
}
MOMENTS = [datetime(2026, 1, 31, 23, 59, 59, tzinfo=UTC), datetime(2026, 2, 2, tzinfo=UTC)]


def every_event(domain: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """All events over a domain."""
    return [
        {name: value for name, value in zip(domain, values, strict=True) if value is not None}
        for values in itertools.product(*domain.values())
    ]


def other_predicate(draw: random.Random, inner: str | None) -> str:
    """The same for the other domain."""
    pick = draw.choice
    symbol, negated = pick(["=", "!=", "<", "<=", ">", ">=", "<=>"]), pick(["", "NOT "])
    moment = pick(["TIMESTAMP '2026-01-31 23:59:59'", "TIMESTAMP '2026-02-01'", "current_timestamp()"])
    block = pick(["10.0.0.0/8", "10.0.0.0/25", "10.0.0.1/32", "fe80::/10", "::/0", "0.0.0.0/0"])
    part = pick(["hour", "minute", "day", "month", "year", "dayofweek"])
    forms = [
        f"ip_in(ip, '{block}')",
        f"ip = '{pick(['10.0.0.1', 'x', 'fe80::1'])}'",
        f"within_distance(lat, lon, 52.52, 13.4, {pick(['0', '1', '3000', '30000000'])})",
        f"within_polygon(lat, lon, 'POLYGON ((13 52, 14 52, 14 {pick(['52.51', '53'])}, 13 53, 13 52))')",
        f"lat {symbol} {pick(['52.5', '52.52', '-90'])}",
        f"lon {negated}BETWEEN 13 AND {pick(['13.4', '180'])}",
        f"ts {symbol} {moment}",
        f"ts + INTERVAL '{pick(['1', '-1'])}' {pick(['SECOND', 'DAY'])} {symbol} {moment}",
        f"{part}(ts) {symbol} {pick(['0', '1', '2', '23', '31', '59', '2026'])}",
        f"date_trunc('{pick(['month', 'day', 'hour'])}', ts) {symbol} {moment}",
        f"size(r) {symbol} {pick(['0', '1', '2'])}",
        f"element_at(r, {pick(['1', '-1'])}) IS {negated}NULL",
        f"length(ip) {symbol} {pick(['1', '8'])}",
        f"round(lat) {symbol} {pick(['52', '53'])}",
        f"{pick(['ip', 'lat', 'ts', 'r'])} IS {negated}NULL",
        f"CAST(ip AS int) {symbol} {pick(['7', '0'])}",
        pick(["TRUE", "FALSE", "NULL"]),
    ]
    if inner is not None and draw.random() < 0.8:
        forms = [
            f"{inner}.p {symbol} {pick(['1', '2', '3'])}",
            f"{inner}.q {negated}IN ('a', 'b')",
            f"{inner}.{pick(['p', 'q'])} IS {negated}NULL",
            f"{inner} IS {negated}NULL",
            f"{inner}.p * 2 {symbol} {pick(['2', '4', '6'])}",
        ]
    elif inner is None and draw.random() < 0.25:
        body = small_expression(draw, draw.randint(0, 1), "x", other_predicate)
        return f"{pick(['exists', 'forall', 'any'])}(r, x -> {body})"
    return pick(forms)


def small_predicate(draw: random.Random, inner: str | None) -> str:
    """A predicate with operands at the edges of the domain; `inner` is the variable of a quantifier."""
    pick = draw.choice
    number = inner if inner and draw.random() < 0.7 else pick(["i", "j"])
    text = inner if inner and draw.random() < 0.4 else "s"

    def values(pool: list[str]) -> str:
        return ", ".join(pick(pool) for _ in range(draw.randint(1, 3)))

    numbers, texts = ["0", "1", "2", "1.5", "3"], ["'a'", "'A'", "'ab'", "''"]
    symbol, negated = pick(["=", "!=", "<", "<=", ">", ">=", "<=>"]), pick(["", "NOT "])
    forms = [
        f"{number} {symbol} {pick(numbers)}",
        f"{number} {negated}IN ({values([*numbers, 'NULL'])})",
        f"{number} {negated}BETWEEN {pick(numbers)} AND {pick(numbers)}",
        f"{pick([number, text, 'b', 't'])} IS {negated}NULL",
        f"{text} {symbol} {pick(texts)}",
        f"{text} {negated}IN ({values(texts)})",
        f"{text} {negated}{pick(['LIKE', 'ILIKE'])} '{pick(['%', '_', 'a%', '%b', 'a_', 'A', ''])}'",
        f"{text} {negated}RLIKE '{pick(['^a', 'b$', '^$', '[aA]'])}'",
        f"{pick(['startswith', 'endswith', 'contains'])}({text}, {pick(texts)})",
        "b",
        f"array_contains(t, {pick(numbers + texts)})",
        f"arrays_overlap(t, ARRAY({values(numbers)}))",
        f"i {symbol} j",
        f"{number} + 1 {symbol} {pick(numbers)}",
        f"lower({text}) {symbol} {pick(texts)}",
        f"coalesce(i, {pick(numbers)}) {symbol} {pick(numbers)}",
        pick(["TRUE", "FALSE", "NULL"]),
    ]
    if inner is None and draw.random() < 0.1:
        body = small_expression(draw, draw.randint(0, 1), "x")
        return f"{pick(['exists', 'forall', 'any'])}(t, x -> {body})"
    return pick(forms)


def small_expression(
    draw: random.Random,
    depth: int,
    inner: str | None = None,
    predicate_of: Callable[[random.Random, str | None], str] = small_predicate,
) -> str:
    chance = draw.random()
    test = f"IS {draw.choice(['', 'NOT '])}{draw.choice(['TRUE', 'FALSE', 'UNKNOWN'])}"
    if depth == 0:
        predicate = predicate_of(draw, inner)
        return (
            predicate if chance < 0.6 else f"NOT ({predicate})" if chance < 0.8 else f"({predicate}) {test}"
        )
    children = [small_expression(draw, depth - 1, inner, predicate_of) for _ in range(draw.randint(2, 3))]
    if chance < 0.7:
        connective = draw.choice(["AND", "OR", "XOR", "XNOR"])
        return "(" + f" {connective} ".join(f"({child})" for child in children) + ")"
    if chance < 0.85:
        kind = draw.choice(["AT LEAST", "AT MOST", "EXACTLY"])
        return f"({kind} {draw.randint(0, len(children))} OF ({', '.join(children)}))"
    return f"(NOT ({children[0]}))" if chance < 0.93 else f"(({children[0]}) {test})"


def judge_small_pairs(
    seed: int,
    count: int,
    domain: dict[str, list[Any]] = DOMAIN,
    predicate_of: Callable[[random.Random, str | None], str] = small_predicate,
) -> int:
    """Asks about all pairs of some random expressions; gives how many relations were proven."""
    draw = random.Random(seed)
    texts = [
        small_expression(draw, draw.choice([0, 0, 1, 1, 2]), predicate_of=predicate_of) for _ in range(count)
    ]
    parsed = [parse(text) for text in texts]
    index = tamis.Index()
    index.add_many(range(count), parsed)
    events = every_event(domain)
    matched: list[set[tuple[datetime, int]]] = [set() for _ in texts]
    for now in MOMENTS:
        table = index.match_batch(events, now=now)
        for event, rule in zip(table["event"].to_pylist(), table["subscription"].to_pylist(), strict=True):
            matched[rule].add((now, event))

    def shown(wrong: set[tuple[datetime, int]]) -> str:
        now, event = min(wrong)
        return f"{events[event]} at {now}"

    proofs = 0
    for (a, left), (b, right) in itertools.permutations(zip(matched, parsed, strict=True), 2):
        if relate.decide_covers(left, right) is True:
            proofs += 1
            assert b <= a, f"{left} does not cover {right}: {shown(b - a)}"
        if relate.decide_overlaps(left, right) is False:
            proofs += 1
            assert not a & b, f"{left} overlaps {right}: {shown(a & b)}"
        assert not left.covers(right) or b <= a, f"{left} does not cover {right}: {shown(b - a)}"
        assert left.overlaps(right, method="pairs") or not a & b, f"{left}, {right}: {shown(a & b)}"
    return proofs


@pytest.mark.filterwarnings("ignore::tamis.ValueWarning")
def test_small_pairs() -> None:
    """A covering or a disjointness that is proven falsely would lose events on their way."""
    assert judge_small_pairs(seed=1, count=24) > 20
    assert judge_small_pairs(1, 16, OTHER_DOMAIN, other_predicate) > 5


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::tamis.ValueWarning")
@pytest.mark.parametrize("seed", range(2, 42))
def test_many_small_pairs(seed: int) -> None:
    assert judge_small_pairs(seed, count=40) > 20
    assert judge_small_pairs(seed, 40, OTHER_DOMAIN, other_predicate) > 5
