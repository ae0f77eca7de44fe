"""All forms of the language in one index: shards, thousands of quantifiers, a moment that the query gives.

`test_index_oracle` asks the same random expressions in every other way. Faults looked for here: a shard that
answers otherwise than the whole; a finder of Boolean terms that loses a member among thousands; false taken
for undefined; a clock that is read where the query has said what time it is; an explanation that does not
agree with the index around it.
"""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import oracle_terms
import strategies
from events import to_dict, to_json, to_table
from oracle import AtLeast, Connective, IsTruth, Node, Not, Predicate, Quantified, evaluate
from oracle_terms import NOW, Call, literal_of
from tamis import Index
from writer import to_text

pytestmark = pytest.mark.filterwarnings("ignore::tamis.ValueWarning")

Event = dict[str, Any]


@pytest.fixture(scope="module")
def nodes() -> list[Node]:
    return strategies.collect(strategies.expressions(depth=2), 120)


@pytest.fixture(scope="module")
def events() -> list[Event]:
    return strategies.collect(strategies.events(), 30)


def holding(nodes: list[Node]) -> Index:
    index = Index()
    index.add_many(range(len(nodes)), [to_text(node) for node in nodes])
    return index


def matching(nodes: list[Node], event: Event) -> list[int]:
    return [at for at, node in enumerate(nodes) if evaluate(node, event).can_be_true]


def pairs(table: pa.Table, events: int) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(events)]
    for event, rule in zip(table["event"].to_pylist(), table["subscription"].to_pylist(), strict=True):
        found[event].append(rule)
    return found


@pytest.mark.thorough
def test_shards_agree(nodes: list[Node], events: list[Event]) -> None:
    shards = [Index() for _ in range(3)]
    for at, node in enumerate(nodes):
        shards[at % 3].add(at, to_text(node))
    for event in events:
        found = sorted(at for shard in shards for at in shard.match(to_dict(event)))
        assert found == matching(nodes, event)


@pytest.mark.thorough
def test_explanations_agree_with_the_index_around_them(nodes: list[Node], events: list[Event]) -> None:
    index = holding(nodes)
    for event in events[:8]:
        expected = set(matching(nodes, event))
        for at in range(0, len(nodes), 3):
            assert index.explain(at, to_dict(event)).matches is (at in expected), to_text(nodes[at])


# --- a moment that the query gives ----------------------------------------------------------------

MOMENT = datetime(2026, 2, 10, tzinfo=UTC)


@pytest.mark.thorough
def test_the_moment_of_a_query(
    nodes: list[Node], events: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not that of the clock, on any path, also inside quantifiers."""
    monkeypatch.setattr(oracle_terms, "moment", lambda: MOMENT)

    def moved(days: int) -> Call:
        return Call("+ interval", (NOW, literal_of(days), literal_of("DAY")))

    recent: list[Node] = [
        Predicate(Call(symbol, ("t", moved(days))), "truth", (), negated)
        for symbol in ("<", ">=")
        for days in (-40, -10, 0, 40)
        for negated in (False, True)
    ]
    inside: list[Node] = [
        Predicate(
            Quantified("exists", "ints", "x", Connective("AND", (node, Predicate("x", ">", (0,))))), "truth"
        )
        for node in recent
    ]
    rules = [*recent, *inside, *nodes[:40]]
    index = holding(rules)
    times = [datetime(2026, 1, 31, 12, tzinfo=UTC), MOMENT, MOMENT + timedelta(microseconds=1)]
    asked = [event | {"t": time} for time in times for event in events[:10]]
    expected = [matching(rules, event) for event in asked]
    assert [index.match(to_dict(event), now=MOMENT) for event in asked] == expected
    lines = "\n".join(map(to_json, asked))
    assert pairs(index.match_batch(lines, now=MOMENT), len(asked)) == expected
    assert pairs(index.match_batch(list(map(to_dict, asked)), now=MOMENT), len(asked)) == expected


# --- thousands of quantifiers ---------------------------------------------------------------------


def small_quantifier(draw: random.Random) -> Node:
    """Over numbers or records, with few operands, so that many share their bodies."""
    symbol, limit = draw.choice(["=", "<", "<=", ">", ">="]), draw.choice([0, 1, 2, 3, 7])
    array = draw.choice(["ints", "items", "items"])
    name = "x" if array == "ints" else "x.p"
    body: Node = Predicate(name, symbol, (limit,))
    if draw.random() < 0.3:
        body = Predicate(Call(symbol, (name, draw.choice(["i", "person.age"]))), "truth")
    if array == "items" and draw.random() < 0.6:
        deeper = Quantified(draw.choice(["exists", "forall"]), "x.n", "y", Predicate("y", symbol, (limit,)))
        other = draw.choice([Predicate("x.s", "=", (draw.choice("ab"),)), Predicate(deeper, "truth")])
        body = Connective(draw.choice(["AND", "OR", "XOR"]), (body, other))
    node: Node = Predicate(Quantified(draw.choice(["exists", "forall", "any"]), array, "x", body), "truth")
    match draw.randrange(5):
        case 0:
            return Not(node)
        case 1:
            return IsTruth(node, draw.choice(["TRUE", "FALSE", "UNKNOWN"]), draw.random() < 0.5)
        case 2:
            return AtLeast(2, (node, Predicate("i", ">", (0,)), Predicate("b", "truth")))
    return node


@pytest.mark.thorough
def test_thousands_of_quantifiers_in_one_index() -> None:
    draw = random.Random(20)
    rules = [small_quantifier(draw) for _ in range(2_000)]
    index = holding(rules)
    typed = strategies.collect(strategies.events(typed=True), 12)
    expected = [matching(rules, event) for event in typed]
    assert [index.match(event) for event in typed] == expected
    assert pairs(index.match_batch(to_table(typed)), len(typed)) == expected
    for at in range(0, len(rules), 2):
        index.remove(at)
    kept = [[at for at in found if at % 2] for found in expected]
    assert [index.match(event) for event in typed] == kept
    index.optimize()
    assert pairs(index.match_batch(pa.concat_tables([to_table(typed)] * 30)), 360) == kept * 30


def test_long_arrays() -> None:
    """More elements than are looked up together, of several kinds; the last ones decide."""
    body = Connective("AND", (Predicate("x.p", "=", (7,)), Predicate("x.s", "=", ("a",))))
    some = Predicate(Quantified("exists", "items", "x", body), "truth")
    every = Predicate(Quantified("forall", "items", "x", Predicate("x.p", "<=", (7,))), "truth")
    rules: list[Node] = [some, every, Not(some), Not(every), IsTruth(some, "UNKNOWN")]
    index = holding(rules)
    plain = [{"p": at % 7, "s": "a"} for at in range(300)]
    for last in (
        [],
        [{"p": 7, "s": "a"}],
        [{"p": 8}],
        [None],
        [{"p": "7", "s": "a"}],
        [{"p": 7.0, "s": "a"}],
    ):
        event: Event = {"items": [*plain, *last]}
        assert index.match(event) == matching(rules, event), last
