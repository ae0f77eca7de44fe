"""Every score, on every path, agrees with the oracle to the last bit."""

import pickle
import random
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

import strategies
import tamis
from events import FORMS, to_dict, to_table
from oracle import Node, Weights, evaluate, relaxed, relevance
from tamis_lab.benchmark.topk import boosted
from tamis_lab.workloads import AbeGen, Dense
from writer import to_builder, to_text

# Formulas here name every attribute there is, also where no subscription happens to have it.
pytestmark = pytest.mark.filterwarnings("ignore::tamis.UnknownAttributeWarning")

ATTRIBUTES = list(strategies.ATTRIBUTES)
DEPTHS = {5: 20, 3: 30, 1: 30, 0: 20}
EVENTS = 10
KS = (1, 5, 20, 10_000)
POOL = [0.0, 0.1, 0.2, 0.3, 1.0, 2.5]


def draw_weights(seed: int, chance: float = 0.4) -> dict[str, float]:
    dice = random.Random(seed)
    return {name: dice.choice(POOL) for name in ATTRIBUTES if dice.random() < chance}


def priority_of(at: int) -> float:
    return float(at * 7 % 11)


@pytest.fixture(scope="module")
def nodes() -> list[Node]:
    """Random weighted expressions; every tenth is there twice."""
    found = [
        node
        for depth, count in DEPTHS.items()
        for node in strategies.collect(strategies.expressions(depth=depth, weighted=True), count)
    ]
    return [*found, *found[::10]]


def weights_of(at: int) -> dict[str, float]:
    """A third of the subscriptions have no weights."""
    return {} if at % 3 == 0 else draw_weights(at)


Ranked = list[tuple[int, float]]


def rank(scores: Iterable[tuple[int, float | None]], k: int, min_score: float | None = None) -> Ranked:
    kept = [(at, score) for at, score in scores if score is not None]
    if min_score is not None:
        kept = [(at, score) for at, score in kept if score >= min_score]
    return sorted(kept, key=lambda pair: (-pair[1], pair[0]))[:k]


def judge(mode: str, node: Node, event: Mapping[str, Any], weights: Weights, priority: float) -> float | None:
    match mode:
        case "priority":
            return priority if evaluate(node, event).can_be_true else None
        case "relevance":
            return relevance(node, event, weights)
        case "relaxed":
            return relaxed(node, event, weights)
    return judge_function(node, event, weights)


FUNCTION = "min(i, s) + 0.5 * max(f, person.age, `naïve key`) + i * b"


def judge_function(node: Node, event: Mapping[str, Any], weights: Weights) -> float | None:
    def part(name: str) -> float:
        counted = weights.dimensions is None or name in weights.dimensions
        only = frozenset([name]) if counted else frozenset[str]()
        return relevance(node, event, weights._replace(dimensions=only)) or 0.0

    if not evaluate(node, event).can_be_true:
        return None
    highest = max(part("f"), part("person.age"), part("naïve key"))
    return min(part("i"), part("s")) + 0.5 * highest + part("i") * part("b")


MODES = ("priority", "relevance", "relaxed", FUNCTION)


def expected(
    nodes: list[Node],
    mode: str,
    event: Mapping[str, Any],
    event_weights: Mapping[str, float],
    k: int,
    *,
    dimensions: list[str] | None = None,
    min_score: float | None = None,
) -> Ranked:
    counted = None if dimensions is None else frozenset(dimensions)
    question = (mode, repr(event), repr(event_weights), repr(dimensions))
    if question not in JUDGED:
        JUDGED[question] = [
            (at, judge(mode, node, event, Weights(weights_of(at), event_weights, counted), priority_of(at)))
            for at, node in enumerate(nodes)
        ]
    return rank(JUDGED[question], k, min_score)


# What the oracle said about all expressions: the same is asked of every way to build an index.
JUDGED: dict[tuple[str, str, str, str], list[tuple[int, float | None]]] = {}


def shown(found: list[tamis.Match]) -> Ranked:
    assert [match.rank for match in found] == list(range(1, len(found) + 1))
    return [(match.id, match.score) for match in found]  # type: ignore[misc]


# --- ways to build an index -----------------------------------------------------------------------


def built_at_once(nodes: list[Node], **options: Any) -> tamis.Index:
    index = tamis.Index(**options)
    rows = range(len(nodes))
    index.add_many(
        list(rows),
        [to_text(node) for node in nodes],
        priorities=[priority_of(at) for at in rows],
        weights=[weights_of(at) for at in rows],
    )
    return index


def built_one_by_one(nodes: list[Node]) -> tamis.Index:
    index = tamis.Index()
    for at, node in enumerate(nodes):
        index.add(at, to_builder(node), priority=priority_of(at), weights=weights_of(at))
    return index


def built_with_other_scores(nodes: list[Node]) -> tamis.Index:
    """Built with the scores of others, most of them in segments, then set right."""
    index = tamis.Index()
    rows = range(len(nodes))
    index.add_many(
        list(rows),
        [to_text(node) for node in nodes],
        priorities=[priority_of(at + 1) for at in rows],
        weights=[weights_of(at + 1) for at in rows],
    )
    for at in rows:
        index.set_priority(at, priority_of(at))
        index.set_weights(at, weights_of(at))
    return index


def built_with_few_other_scores(nodes: list[Node]) -> tamis.Index:
    index = built_at_once(nodes)
    for at in range(0, len(nodes), 23):
        index.set_priority(at, 100.0)
        index.set_weights(at, {"i": 1e9})
        index.set_priority(at, priority_of(at))
        index.set_weights(at, weights_of(at))
    return index


def built_with_removals(nodes: list[Node]) -> tamis.Index:
    index = built_at_once([*nodes, *nodes[:40]])
    for at in range(len(nodes), len(nodes) + 40):
        index.remove(at)
    return index


def saved_and_opened(nodes: list[Node], folder: Path) -> tamis.Index:
    built_with_few_other_scores(nodes).save(folder / "rules.tamis")
    return tamis.Index.open(folder / "rules.tamis")


def built_and_optimized(nodes: list[Node]) -> tamis.Index:
    """One segment, also of what was changed last."""
    index = built_with_few_other_scores(nodes)
    index.optimize()
    return index


BUILDERS: dict[str, Callable[[list[Node]], tamis.Index]] = {
    "at once": built_at_once,
    "optimized": built_and_optimized,
    "one by one": built_one_by_one,
    "other scores": built_with_other_scores,
    "few other scores": built_with_few_other_scores,
    "removals": built_with_removals,
    "scan": lambda nodes: built_at_once(nodes, algorithm="scan"),
}


@pytest.fixture(scope="module", params=[*BUILDERS, "opened"])
def index(
    request: pytest.FixtureRequest, nodes: list[Node], tmp_path_factory: pytest.TempPathFactory
) -> tamis.Index:
    if request.param == "opened":
        return saved_and_opened(nodes, tmp_path_factory.mktemp("snapshots"))
    return BUILDERS[request.param](nodes)


@pytest.fixture(scope="module")
def events() -> list[dict[str, Any]]:
    return strategies.collect(strategies.events(), EVENTS)


@pytest.fixture(scope="module")
def typed_events() -> list[dict[str, Any]]:
    return strategies.collect(strategies.events(typed=True), 8)


@pytest.fixture(scope="module")
def interval_events() -> list[dict[str, Any]]:
    return strategies.collect(strategies.events(intervals=True), 6)


# --- one event ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_one_event(index: tamis.Index, nodes: list[Node], events: list[dict[str, Any]], mode: str) -> None:
    for turn, event in enumerate(events):
        everything = expected(nodes, mode, event, {}, 10_000)
        for k in KS:
            assert shown(index.top_k(to_dict(event), k, mode)) == everything[:k]
        form = list(FORMS.values())[turn % len(FORMS)]
        assert shown(index.top_k(form(event), 5, mode)) == everything[:5]


@pytest.mark.parametrize("mode", MODES)
def test_weights_dimensions_and_cut_offs(
    index: tamis.Index, nodes: list[Node], events: list[dict[str, Any]], mode: str
) -> None:
    for turn, event in enumerate(events):
        event_weights = draw_weights(-turn)
        given = tamis.Event(to_dict(event), weights=event_weights)
        dimensions = None if turn % 3 == 0 else ATTRIBUTES[turn % 2 :: 2]
        min_score = [None, 0.0, 0.3, 1.0][turn % 4]
        wanted = expected(
            nodes, mode, event, event_weights, 10_000, dimensions=dimensions, min_score=min_score
        )
        for k in KS:
            found = index.top_k(given, k, mode, dimensions=dimensions, min_score=min_score)
            assert shown(found) == wanted[:k]


@pytest.mark.parametrize("mode", MODES)
def test_interval_events(
    index: tamis.Index, nodes: list[Node], interval_events: list[dict[str, Any]], mode: str
) -> None:
    for turn, event in enumerate(interval_events):
        event_weights = draw_weights(turn)
        given = tamis.Event(to_dict(event), weights=event_weights)
        wanted = expected(nodes, mode, event, event_weights, 7)
        assert shown(index.top_k(given, 7, mode)) == wanted


def test_tags_select_before_ranking(nodes: list[Node], events: list[dict[str, Any]]) -> None:
    index = tamis.Index()
    for at, node in enumerate(nodes):
        index.add(at, to_text(node), tags=["red"] if at % 2 else [], weights=weights_of(at))
    for event in events:
        for mode in ("relevance", "relaxed"):
            wanted = [pair for pair in expected(nodes, mode, event, {}, 10_000) if pair[0] % 2][:5]
            assert shown(index.top_k(event, 5, mode, tags=["red"])) == wanted


# --- many events ----------------------------------------------------------------------------------


def rows_of(table: pa.Table) -> list[tuple[int, int, float, int]]:
    return list(zip(*(table.column(at).to_pylist() for at in range(4)), strict=True))


def numbered(ranked: list[Ranked]) -> list[tuple[int, int, float, int]]:
    return [
        (event, at, score, place)
        for event, found in enumerate(ranked)
        for place, (at, score) in enumerate(found, 1)
    ]


@pytest.mark.parametrize("mode", MODES)
def test_tables(index: tamis.Index, nodes: list[Node], typed_events: list[dict[str, Any]], mode: str) -> None:
    typed = typed_events
    table = to_table(typed)
    same = {"i": 0.5, "s": 2.0, "unknown": 3.0}
    wanted = [expected(nodes, mode, event, same, 4) for event in typed]
    assert rows_of(index.top_k_batch(table, 4, mode, weights=same)) == numbered(wanted)
    columns = {"w_i": [0.3, None] * 4, "w_person.age": [float(at) for at in range(8)], "w_unknown": [1] * 8}
    for name, values in columns.items():
        table = table.append_column(name, pa.array(values))
    each = [{"person.age": float(at)} | ({"i": 0.3} if at % 2 == 0 else {}) for at in range(8)]
    wanted = [expected(nodes, mode, event, own, 4) for event, own in zip(typed, each, strict=True)]
    assert rows_of(index.top_k_batch(table, 4, mode, weights="w_")) == numbered(wanted)
    stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=3))
    assert rows_of(index.top_k_batch(stream, 4, mode, weights="w_").read_all()) == numbered(wanted)


def test_lists_of_events(index: tamis.Index, nodes: list[Node], events: list[dict[str, Any]]) -> None:
    given = [tamis.Event(to_dict(event), weights=draw_weights(at)) for at, event in enumerate(events)]
    wanted = [expected(nodes, "relevance", event, draw_weights(at), 3) for at, event in enumerate(events)]
    assert rows_of(index.top_k_batch(given, 3, "relevance", threads=1)) == numbered(wanted)
    lines = "\n".join(event.to_json() for event in given)
    assert rows_of(index.top_k_batch(lines, 3, "relevance", threads=2)) == numbered(wanted)


# --- Python functions -----------------------------------------------------------------------------


def test_python_functions_get_whole_blocks(
    index: tamis.Index, nodes: list[Node], events: list[dict[str, Any]]
) -> None:
    sizes = []

    def score(block: tamis.Candidates) -> Any:
        sizes.append(len(block))
        highest = np.maximum.reduce([block["f"], block["person.age"], block["naïve key"]])
        return np.minimum(block["i"], block["s"]) + 0.5 * highest + block["i"] * block["b"]

    for event in events:
        wanted = expected(nodes, FUNCTION, event, {}, 10_000)
        assert shown(index.top_k(event, 10_000, score)) == wanted
        by_relevance = index.top_k(event, 5, lambda block: block.relevance, min_score=0.2)
        assert shown(by_relevance) == expected(nodes, "relevance", event, {}, 5, min_score=0.2)
        by_priority = index.top_k(event, 5, lambda block: block.priority)
        assert shown(by_priority) == expected(nodes, "priority", event, {}, 5)
    matches = [index.count(event) for event in events]
    assert sizes == [count for count in matches if count]
    wanted = [expected(nodes, FUNCTION, event, {}, 2) for event in events]
    assert rows_of(index.top_k_batch(events, 2, score)) == numbered(wanted)


def test_python_functions_return_one_number_per_candidate() -> None:
    index = tamis.Index()
    index.add("a", "x > 1")
    with pytest.raises(tamis.ArgumentError, match="one number per candidate"):
        index.top_k({"x": 2}, score=lambda block: 1.0)
    with pytest.raises(tamis.ArgumentError, match="NaN"):
        index.top_k({"x": 2}, score=lambda block: [float("nan")])


# --- edges ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_an_empty_index_and_no_places(mode: str) -> None:
    index = tamis.Index()
    assert index.top_k({"i": 1}, 3, mode) == []
    index.add("a", "i = 1")
    assert index.top_k({"i": 1}, 0, mode) == []
    assert index.top_k({}, 3, mode) == []


def test_bad_scores_are_refused() -> None:
    index = tamis.Index()
    index.add("a", "x > 1")
    for score, part in [("relevence", "there is no score"), ("x - y", "monotone"), ("x +", "found the end")]:
        with pytest.raises(tamis.ArgumentError, match=part):
            index.top_k({"x": 2}, score=score)
    with pytest.raises(tamis.ArgumentError, match="k must not be negative"):
        index.top_k({"x": 2}, -1)
    with pytest.raises(tamis.ArgumentError, match="not NaN"):
        index.top_k({"x": 2}, min_score=float("nan"))
    for weight in (-1.0, float("nan"), float("inf")):
        with pytest.raises(tamis.ArgumentError, match="finite and not negative"):
            index.set_weights("a", {"x": weight})
        with pytest.raises(tamis.ArgumentError, match="finite and not negative"):
            index.top_k_batch([{"x": 2}], score="relevance", weights={"x": weight})
    with pytest.raises(tamis.ArgumentError, match="finite"):
        index.set_priority("a", float("nan"))
    with pytest.raises(tamis.UnknownIdError):
        index.set_priority("b", 1.0)
    with pytest.raises(tamis.UnknownIdError):
        index.set_weights("b", {})
    assert index["a"].weights == {}


def test_new_scores_are_seen_everywhere(tmp_path: Path) -> None:
    index = tamis.Index()
    index.add_many(range(100), ["x > 1"] * 100, priorities=range(100))
    for at in range(90):
        index.set_priority(at, 1000.0 - at)
        index.set_weights(at, {"x": 5.0})
    for _ in range(2):
        assert index[7].priority == 993.0
        assert index[7].weights == {"x": 5.0}
        assert [match.id for match in index.top_k({"x": 2}, 3)] == [0, 1, 2]
        assert index.top_k({"x": 2}, 1, "relevance") == [tamis.Match(0, 5.0, 1)]
        index.optimize()
    index.save(tmp_path / "rules.tamis")
    assert tamis.Index.open(tmp_path / "rules.tamis")[7].priority == 993.0


@pytest.mark.parametrize("reweighted", [0, 30])
@pytest.mark.parametrize("name", ["arbitrary", "dense"])
@pytest.mark.thorough
def test_the_best_of_many_candidates_are_those_of_the_definition(name: str, reweighted: int) -> None:
    """Enough candidates that they are decided by what they promise; few can be left out wrongly unseen."""
    workload = {"arbitrary": AbeGen(count=1_500, seed=5), "dense": Dense(count=12_000, seed=5)}[name]
    table = workload.subscriptions_table().combine_chunks()
    ids, texts = table["id"].to_pylist(), boosted(table["expression"].to_pylist(), seed=5)
    events = workload.events_dicts(6)
    names = sorted(events[0])[:3]
    weights = [dict.fromkeys(names[: at % 4], (at % 7) / 2) for at in range(len(ids))]
    indexes = [tamis.Index(), tamis.Index(algorithm="scan")]
    for index in indexes:
        index.add_many(ids, texts, weights=weights)
    indexes[0].optimize()
    for index in indexes:
        for at in range(0, reweighted * 40, 40):
            # Less at most, and more for the events in which only the first of them is true.
            index.set_weights(ids[at], {names[0]: 3.0, names[1]: 0.0, names[2]: 0.0})
    scores = ["relevance", "relaxed", f"2 * {names[0]} + max({names[1]}, {names[2]})"]
    asked = [
        *events[:3],
        *(tamis.Event(event, weights={names[0]: 0.3, names[1]: 2.0}) for event in events[3:]),
    ]
    for event in asked:
        for score in scores:
            for k in (1, 5, 20):
                found, expected = (index.top_k(event, k, score) for index in indexes)
                assert found == expected, (event, score, k)
        assert indexes[0].top_k(event, 50, "relevance", min_score=3.5) == indexes[1].top_k(
            event, 50, "relevance", min_score=3.5
        )


def test_the_smallest_weight_beside_a_large_one_counts() -> None:
    index = tamis.Index()
    index.add_many(range(3_000), [f"(x = 1)^0 OR (y = {at})^1000" for at in range(3_000)])
    index.add(3_000, "(x = 1)^5e-324 OR (z = 2)^256")
    index.optimize()
    assert index.top_k({"x": 1}, 1, "relevance") == [tamis.Match(3_000, 5e-324, 1)]


def test_units_that_wait_for_one_another_in_a_long_chain_are_decided() -> None:
    """Each level is known to be a candidate only when the one before it holds."""
    chain = ["z = 1^5 AND y0 = 1^5"]
    for level in range(1, 45):
        chain.append(f"(({chain[-1]}) OR (w{level} = 3)^5) AND (y{level} = 1)^5")
    texts = [*(f"(a = 1)^0.01 OR (b = {at})^0.01" for at in range(3_000)), *chain]
    indexes = [tamis.Index(), tamis.Index(algorithm="scan")]
    for index in indexes:
        index.add_many(range(len(texts)), texts)
    common = {f"y{level}": 1 for level in range(45)}
    indexes[0].count_batch([{**common, "a": 1}] * 50)
    indexes[0].optimize()
    event = {**common, "a": 1, "z": 1}
    for k in (1, 2, 60):
        found, expected = (index.top_k(event, k, "relevance") for index in indexes)
        assert found == expected, k


def test_the_best_by_priority_of_very_many_wide_intervals() -> None:
    dice = random.Random(3)
    indexes = [tamis.Index(), tamis.Index(algorithm="scan")]
    rows = range(9_000)
    lows = [(dice.randrange(50_000), dice.randrange(50_000)) for _ in rows]
    texts = [
        f"x BETWEEN {a} AND {a + 60_000}" + (f" AND y BETWEEN {b} AND {b + 60_000}" if b % 3 else "")
        for a, b in lows
    ]
    priorities = [dice.randrange(200) / 4 for _ in rows]
    tags = [["odd"] if at % 2 else [] for at in rows]
    for index in indexes:
        index.add_many(rows, texts, priorities=priorities, tags=tags)
    indexes[0].optimize()

    def events() -> Iterable[dict[str, Any]]:
        for _ in range(8):
            yield {"x": dice.randrange(40_000, 70_000), "y": dice.randrange(40_000, 70_000)}
        yield {"x": 55_000}
        yield {"x": 200_000, "y": 55_000}
        yield {"y": 55_000, "x": None}

    def agree() -> None:
        for event in events():
            for k in (1, 5, 20):
                found, expected = (index.top_k(event, k) for index in indexes)
                assert found == expected, (event, k)
            found, expected = (index.top_k(event, 3, tags=["odd"]) for index in indexes)
            assert found == expected, event

    agree()
    for at in range(0, 60, 3):
        for index in indexes:
            index.set_priority(at, 60.0 + at if at % 2 else -1.0)
            index.remove(at + 1)
    agree()


# --- random histories -----------------------------------------------------------------------------

IDS = st.integers(0, 9)
SOME_WEIGHTS = st.dictionaries(st.sampled_from(ATTRIBUTES), st.sampled_from(POOL), max_size=4)
PRIORITIES = st.sampled_from([-1.0, 0.0, 0.5, 2.0])


class Histories(RuleBasedStateMachine):
    """Any history of changes leaves the scores that a dict of subscriptions describes."""

    @initialize(algorithm=st.sampled_from(["auto", "auto", "auto", "scan"]))
    def start(self, algorithm: str) -> None:
        self.index = tamis.Index(algorithm=algorithm)
        self.model: dict[int, tuple[Node, float, dict[str, float]]] = {}

    @rule(
        ids=st.sets(IDS, max_size=6),
        node=strategies.expressions(depth=3, weighted=True),
        priority=PRIORITIES,
        weights=SOME_WEIGHTS,
    )
    def add_many(self, ids: set[int], node: Node, priority: float, weights: dict[str, float]) -> None:
        new = sorted(ids - self.model.keys())
        texts = [to_text(node)] * len(new)
        self.index.add_many(new, texts, priorities=[priority] * len(new), weights=[weights] * len(new))
        self.model |= dict.fromkeys(new, (node, priority, weights))

    @rule(
        id=IDS,
        node=strategies.expressions(depth=3, weighted=True),
        priority=PRIORITIES,
        weights=SOME_WEIGHTS,
    )
    def put(self, id: int, node: Node, priority: float, weights: dict[str, float]) -> None:
        self.index.upsert(id, to_text(node), priority=priority, weights=weights)
        self.model[id] = (node, priority, weights)

    @rule(id=IDS)
    def remove(self, id: int) -> None:
        if self.model.pop(id, None) is not None:
            self.index.remove(id)

    @rule(id=IDS, priority=PRIORITIES)
    def set_priority(self, id: int, priority: float) -> None:
        if id in self.model:
            self.index.set_priority(id, priority)
            node, _, weights = self.model[id]
            self.model[id] = (node, priority, weights)

    @rule(id=IDS, weights=SOME_WEIGHTS)
    def set_weights(self, id: int, weights: dict[str, float]) -> None:
        if id in self.model:
            self.index.set_weights(id, weights)
            node, priority, _ = self.model[id]
            self.model[id] = (node, priority, weights)

    @rule()
    def optimize(self) -> None:
        self.index.optimize()

    @rule()
    def pickle(self) -> None:
        self.index = pickle.loads(pickle.dumps(self.index))

    @rule(
        event=strategies.events(intervals=True),
        event_weights=SOME_WEIGHTS,
        k=st.sampled_from([1, 3, 100]),
        mode=st.sampled_from(MODES),
    )
    def ask(self, event: dict[str, Any], event_weights: dict[str, float], k: int, mode: str) -> None:
        given = tamis.Event(to_dict(event), weights=event_weights)
        wanted = rank(
            (
                (id, judge(mode, node, event, Weights(weights, event_weights), priority))
                for id, (node, priority, weights) in self.model.items()
            ),
            k,
        )
        assert shown(self.index.top_k(given, k, mode)) == wanted


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=25, stateful_step_count=20)


def test_a_name_that_no_subscription_has_is_warned_of_once() -> None:
    index = tamis.Index()
    index.top_k({"price": 1}, score="1 * prize")  # an empty index knows no names
    index.add("s", "price > 0 AND `a b` > 0")
    event = {"price": 1, "a b": 1, "prize": 7}
    with pytest.warns(tamis.UnknownAttributeWarning, match="`prize`.*did you mean `price`"):
        index.top_k(event, score="1 * prize + `a b`")
    with pytest.warns(tamis.UnknownAttributeWarning, match="`prise`.*did you mean `price`") as caught:
        index.top_k(event, score=lambda block: block["prise"] + block["a b"])
    assert caught[0].filename == __file__
    with pytest.warns(tamis.UnknownAttributeWarning, match="`colour`, so it counts 0$"):
        index.top_k_batch([event], score="relevance", dimensions=["price", "colour"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        index.top_k(event, score="1 * prize + `a b`")
        index.top_k(event, score="max(price, 2 * `a b`)", dimensions=["a b"])
        index.top_k(event, score=lambda block: block.priority + block["prise"])
        index.top_k({}, score=lambda block: block["price"])
        index.add("t", "prize > 1")
        index.top_k(event, score="sqrt(prize)")


@pytest.mark.thorough
def test_what_prunes_finds_the_same_as_what_looks_at_everything() -> None:
    """Enough large ORs that the bounds of blocks give way to those of single rows."""
    workload = AbeGen(count=4_000, seed=7)
    texts = boosted(workload.subscriptions_table()["expression"].to_pylist(), seed=7)
    index, plain = tamis.Index(), tamis.Index(algorithm="scan")
    for each in (index, plain):
        each.add_many(range(len(texts)), texts)
    index.optimize()
    for id in range(0, len(texts), 50):
        for each in (index, plain):
            each.set_weights(id, {"a1": 3.0})
    events = workload.events_dicts(12)
    names = [*events[0]][:3]
    scores = ["relevance", "relaxed", f"max({names[0]}, 2 * {names[1]}) + 0.5 * {names[2]}"]
    narrowed: list[dict[str, Any]] = [{}, {"dimensions": names[:2]}, {"min_score": 1.5}]
    for event in events:
        weighted = tamis.Event(event, weights={name: at / 3 for at, name in enumerate(event)})
        for score in scores:
            for options in narrowed:
                best = plain.top_k(weighted, k=len(texts), score=score, **options)
                for k in (1, 5, 20, len(texts)):
                    assert index.top_k(weighted, k=k, score=score, **options) == best[:k]
            best = plain.top_k(event, k=20, score=score)
            assert index.top_k(event, k=5, score=score) == best[:5]


def test_formulas_over_what_no_subscription_weighs() -> None:
    index = tamis.Index()
    for number in range(400):
        index.add(number, "age > 5 AND age > 6" if number % 2 else "age > 5")
    index.optimize()
    with pytest.warns(tamis.UnknownAttributeWarning, match="zzz"):
        best = index.top_k({"age": 10}, 3, score="age + zzz")
    assert [match.id for match in best] == [1, 3, 5]
    assert [match.id for match in index.top_k({"age": 10}, 3, score="1 * age")] == [1, 3, 5]


@pytest.mark.parametrize("of", [{"score": "2 * a"}, {"score": "relevance", "dimensions": ["a"]}])
def test_what_is_unknown_for_want_of_a_value_counts(of: dict[str, Any]) -> None:
    index = tamis.Index()
    for id in range(40):
        index.add(id, f"(a > {id}) IS UNKNOWN OR b = {id}", weights={"a": 1 + id / 64})
    index.optimize()
    assert [match.id for match in index.top_k({"c": 1}, 3, **of)] == [39, 38, 37]
