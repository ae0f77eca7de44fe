"""Every path from subscriptions to matches agrees with the oracle.

A few hundred random expressions and events are judged once by the oracle; then every way to build an index is
asked in every way. Random histories of changes, which Hypothesis can shrink, come after that.
"""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import strategies
import tamis
from events import FORMS, SCHEMA, to_dict, to_json, to_table
from oracle import Node, evaluate
from writer import to_builder, to_text

DEPTHS = {6: 60, 3: 60, 1: 60, 0: 60}  # depth -> how many expressions
EVENTS = 40
TAGS = ["red", "green", "blue"]

Judged = list[tuple[dict[str, Any], list[int]]]


@pytest.fixture(scope="module")
def nodes() -> list[Node]:
    """Random expressions; every tenth is there twice, to share a node."""
    found = [
        node
        for depth, count in DEPTHS.items()
        for node in strategies.collect(strategies.expressions(depth=depth), count)
    ]
    return [*found, *found[::10]]


def judge(nodes: list[Node], events: list[dict[str, Any]]) -> Judged:
    return [
        (event, [at for at, node in enumerate(nodes) if evaluate(node, event).can_be_true])
        for event in events
    ]


@pytest.fixture(scope="module")
def judged(nodes: list[Node]) -> Judged:
    return judge(nodes, strategies.collect(strategies.events(), EVENTS))


@pytest.fixture(scope="module")
def judged_typed(nodes: list[Node]) -> Judged:
    return judge(nodes, strategies.collect(strategies.events(typed=True), EVENTS))


@pytest.fixture(scope="module")
def judged_intervals(nodes: list[Node]) -> Judged:
    return judge(nodes, strategies.collect(strategies.events(intervals=True), EVENTS))


# --- ways to build an index -----------------------------------------------------------------------


def name_of(at: int) -> str:
    return f"s{at:04}"


def tags_of(at: int) -> list[str]:
    return [tag for bit, tag in enumerate(TAGS) if at >> bit & 1]


def priority_of(at: int) -> float:
    return float(at * 7 % 11)


def built_at_once(nodes: list[Node], **options: Any) -> tamis.Index:
    index = tamis.Index(**options)
    rows = range(len(nodes))
    index.add_many(
        [name_of(at) for at in rows],
        [to_text(node) for node in nodes],
        tags=[tags_of(at) for at in rows],
        priorities=[priority_of(at) for at in rows],
    )
    return index


def built_one_by_one(nodes: list[Node], **options: Any) -> tamis.Index:
    index = tamis.Index(**options)
    for at, node in enumerate(nodes):
        index.add(name_of(at), to_builder(node), tags=tags_of(at), priority=priority_of(at))
    return index


def built_with_detours(nodes: list[Node], **options: Any) -> tamis.Index:
    """Every subscription has been something else, or has been removed, before it is what it should be."""
    index = built_at_once([*nodes[1:], nodes[0]], **options)
    for at, node in enumerate(nodes):
        details: dict[str, Any] = {"tags": tags_of(at), "priority": priority_of(at)}
        if at % 3 == 0:
            index.remove(name_of(at))
            index.add(name_of(at), to_text(node), **details)
        elif at % 3 == 1:
            index.replace(name_of(at), to_text(node), **details)
        else:
            index.upsert(name_of(at), to_builder(node), **details)
        index.add(f"passing {at}", "TRUE", tags=TAGS)
        if at % 60 == 30:
            index.optimize()
    for at in range(len(nodes)):
        index.remove(f"passing {at}")
    return index


def saved_and_opened(index: tamis.Index, folder: Path) -> tamis.Index:
    index.save(folder / "rules.tamis")
    return tamis.Index.open(folder / "rules.tamis")


def optimized(index: tamis.Index) -> tamis.Index:
    """As one segment, also of what was changed last."""
    index.optimize()
    return index


BUILDS: dict[str, Callable[[list[Node], Path], tamis.Index]] = {
    "at once": lambda nodes, _: built_at_once(nodes),
    "optimized after detours": lambda nodes, _: optimized(built_with_detours(nodes)),
    "one by one": lambda nodes, _: built_one_by_one(nodes),
    "with detours": lambda nodes, _: built_with_detours(nodes),
    "saved and opened": lambda nodes, folder: saved_and_opened(built_at_once(nodes), folder),
    "saved after detours": lambda nodes, folder: saved_and_opened(built_with_detours(nodes), folder),
    "pickled": lambda nodes, _: pickle.loads(pickle.dumps(built_one_by_one(nodes))),
    "copied": lambda nodes, _: copy.copy(built_at_once(nodes)),
    "scan": lambda nodes, _: built_at_once(nodes, algorithm="scan"),
    "scan with detours": lambda nodes, _: built_with_detours(nodes, algorithm="scan"),
}


@pytest.fixture(scope="module", params=BUILDS)
def index(
    request: pytest.FixtureRequest, nodes: list[Node], tmp_path_factory: pytest.TempPathFactory
) -> tamis.Index:
    return BUILDS[request.param](nodes, tmp_path_factory.mktemp("index"))


# --- ways to ask ----------------------------------------------------------------------------------


def names(rows: list[int]) -> list[str]:
    return [name_of(at) for at in rows]


def best(rows: list[int], k: int) -> list[tuple[str, float, int]]:
    ranked = sorted(rows, key=lambda at: (-priority_of(at), at))[:k]
    return [(name_of(at), priority_of(at), rank) for rank, at in enumerate(ranked, 1)]


def pairs(judged: Judged) -> list[tuple[int, str]]:
    return [(event, name_of(at)) for event, (_, rows) in enumerate(judged) for at in rows]


def shown(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(table.column(name).to_pylist() for name in table.column_names), strict=True))


@pytest.mark.parametrize("form", FORMS)
def test_single_events(index: tamis.Index, judged: Judged, form: str) -> None:
    for event, rows in judged:
        given = FORMS[form](event)
        assert index.match(given) == names(rows), event
        assert index.count(given) == len(rows)
        assert index.exists(given) is bool(rows)


def test_interval_events(index: tamis.Index, judged_intervals: Judged) -> None:
    for event, rows in judged_intervals:
        assert index.match(to_dict(event)) == names(rows), event
        assert index.count(to_json(event)) == len(rows)
        assert index.exists(to_dict(event)) is bool(rows)
        assert index.top_k(to_dict(event), 3) == best(rows, 3)


def test_restricted_by_tags(index: tamis.Index, judged: Judged) -> None:
    for turn, (event, rows) in enumerate(judged):
        wanted = [["red"], ["green", "blue"], ["none such"], []][turn % 4]
        kept = [at for at in rows if set(tags_of(at)) & set(wanted)]
        assert index.match(event, tags=wanted) == names(kept)
        assert index.count(event, tags=wanted) == len(kept)
        assert index.exists(event, tags=wanted) is bool(kept)
        assert index.top_k(event, 5, tags=wanted) == best(kept, 5)


def test_top_k(index: tamis.Index, judged: Judged) -> None:
    for turn, (event, rows) in enumerate(judged):
        for k in (turn % 5, 10, len(rows), 1000):
            assert index.top_k(event, k) == best(rows, k)


@pytest.mark.parametrize("threads", [1, 2])
def test_batches_of_records(index: tamis.Index, judged: Judged, threads: int) -> None:
    dicts = [event for event, _ in judged]
    lines = "\n".join(to_json(event) for event in dicts)
    for events in (dicts, lines, lines.encode()):
        assert shown(index.match_batch(events, threads=threads)) == pairs(judged)
    assert index.count_batch(dicts, threads=threads).to_pylist() == [len(rows) for _, rows in judged]


def test_batches_of_interval_events(index: tamis.Index, judged_intervals: Judged) -> None:
    assert shown(index.match_batch([to_dict(event) for event, _ in judged_intervals])) == pairs(
        judged_intervals
    )


@pytest.mark.parametrize("threads", [1, 2])
def test_tables(index: tamis.Index, judged_typed: Judged, threads: int) -> None:
    table = to_table([event for event, _ in judged_typed])
    assert shown(index.match_batch(table, threads=threads)) == pairs(judged_typed)
    assert index.count_batch(table, threads=threads).to_pylist() == [len(rows) for _, rows in judged_typed]
    expected = [(event, *match) for event, (_, rows) in enumerate(judged_typed) for match in best(rows, 4)]
    assert shown(index.top_k_batch(table, 4, threads=threads)) == expected
    kept = [(event, name) for event, name in pairs(judged_typed) if "red" in tags_of(int(name[1:]))]
    assert shown(index.match_batch(table, tags=["red"], threads=threads)) == kept


def test_tables_in_pieces(index: tamis.Index, judged_typed: Judged) -> None:
    table = to_table([event for event, _ in judged_typed])
    batches = table.to_batches(max_chunksize=7)
    assert shown(index.match_batch(pa.Table.from_batches(batches))) == pairs(judged_typed)
    stream = index.match_batch(pa.RecordBatchReader.from_batches(SCHEMA, batches))
    assert isinstance(stream, pa.RecordBatchReader)
    assert shown(stream.read_all()) == pairs(judged_typed)


def test_large_batches(nodes: list[Node], judged_typed: Judged) -> None:
    """Enough events at once for those paths that look at hundreds of them together."""
    index, copies = built_at_once(nodes), 20
    table = pa.concat_tables([to_table([event for event, _ in judged_typed])] * copies)
    for changes in range(3):
        repeated = judged_typed * copies
        assert shown(index.match_batch(table)) == pairs(repeated)
        assert index.count_batch(table).to_pylist() == [len(rows) for _, rows in repeated]
        gone = [at for at in range(len(nodes)) if at % 5 == changes]
        for at in gone:
            index.remove(name_of(at))
        judged_typed = [(event, [at for at in rows if at not in gone]) for event, rows in judged_typed]


def test_frames_of_other_libraries(nodes: list[Node], judged_typed: Judged) -> None:
    index = built_at_once(nodes)
    table = to_table([event for event, _ in judged_typed])
    assert shown(index.match_batch(pl.from_arrow(table))) == pairs(judged_typed)


# --- random histories -----------------------------------------------------------------------------

IDS = st.integers(0, 9)
PRIORITIES = st.sampled_from([-1.0, 0.0, 0.5, 2.0])


class Histories(RuleBasedStateMachine):
    """Any history of changes leaves the index that a dict of expressions describes."""

    @initialize(algorithm=st.sampled_from(["auto", "auto", "scan"]))
    def start(self, algorithm: str) -> None:
        self.index = tamis.Index(algorithm=algorithm)
        self.model: dict[int, tuple[Node, float, list[str]]] = {}

    @rule(id=IDS, node=strategies.expressions(depth=3), priority=PRIORITIES, tag=st.sampled_from(TAGS))
    def put(self, id: int, node: Node, priority: float, tag: str) -> None:
        change = self.index.replace if id in self.model else self.index.add
        change(id, to_text(node), priority=priority, tags=[tag])
        self.model[id] = (node, priority, [tag])

    @rule(id=IDS, node=strategies.expressions(depth=3))
    def put_wrongly(self, id: int, node: Node) -> None:
        change = self.index.add if id in self.model else self.index.replace
        with pytest.raises(tamis.IdError):
            change(id, to_text(node))

    @rule(ids=st.sets(IDS, max_size=6), node=strategies.expressions(depth=3), priority=PRIORITIES)
    def add_many(self, ids: set[int], node: Node, priority: float) -> None:
        ids = ids - self.model.keys()
        self.index.add_many(list(ids), [to_text(node)] * len(ids), priorities=[priority] * len(ids))
        self.model |= {id: (node, priority, []) for id in ids}

    @rule(id=IDS)
    def remove(self, id: int) -> None:
        if self.model.pop(id, None) is None:
            with pytest.raises(tamis.UnknownIdError):
                self.index.remove(id)
        else:
            self.index.remove(id)

    @rule()
    def optimize(self) -> None:
        self.index.optimize()

    @rule()
    def pickle(self) -> None:
        self.index = pickle.loads(pickle.dumps(self.index))

    @rule(event=strategies.events(intervals=True))
    def ask(self, event: dict[str, Any]) -> None:
        found = sorted(id for id, (node, *_) in self.model.items() if evaluate(node, event).can_be_true)
        given = to_dict(event)
        assert self.index.match(given) == found
        assert self.index.count(given) == len(found)
        assert self.index.exists(given) is bool(found)
        assert self.index.match(given, tags=["red"]) == [id for id in found if "red" in self.model[id][2]]
        ranked = sorted(found, key=lambda id: (-self.model[id][1], id))[:3]
        assert [match.id for match in self.index.top_k(given, 3)] == ranked
        assert self.index.match_batch([given]).column("subscription").to_pylist() == found

    @invariant()
    def holds_what_the_model_holds(self) -> None:
        assert list(self.index) == sorted(self.model)
        assert len(self.index) == len(self.model)


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=40, stateful_step_count=20)
