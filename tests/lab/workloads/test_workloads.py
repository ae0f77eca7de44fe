"""What every generator promises: determinism, shapes, and the text of a language that others can read."""

import json
from itertools import islice, pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tamis
from lab.workloads.judge import match_shares
from tamis_lab.workloads import WORKLOADS, AbeGen, Conjunctive, Dense, Equality, Workload
from tamis_lab.workloads.base import BLOCK, SUBSCRIPTION_SCHEMA

EVERY = pytest.mark.parametrize("kind", WORKLOADS.values(), ids=list(WORKLOADS))


@EVERY
@pytest.mark.thorough
def test_same_seed_same_rows(kind: type[Workload]) -> None:
    first, again, other = (kind(count=2_000, seed=seed) for seed in (5, 5, 6))
    assert first.subscriptions_table().equals(again.subscriptions_table())
    assert first.events_dicts(50) == again.events_dicts(50)
    assert not first.subscriptions_table().equals(other.subscriptions_table())
    assert first.events_dicts(50) != other.events_dicts(50)


@EVERY
def test_blocks_have_the_schema_and_consecutive_ids(kind: type[Workload]) -> None:
    workload = kind(count=BLOCK + 100)
    tables = list(workload.subscriptions())
    assert [table.num_rows for table in tables] == [BLOCK, 100]
    assert all(table.schema == workload.subscription_schema for table in tables)
    assert workload.subscription_schema.names[:3] == SUBSCRIPTION_SCHEMA.names
    whole = pa.concat_tables(tables)
    assert whole["id"].to_pylist() == list(range(BLOCK + 100))
    assert whole["expression"].null_count == 0
    assert tables[0]["expression"][:100] != tables[1]["expression"]


@pytest.mark.parametrize("kind", [Equality, Conjunctive, Dense])
def test_a_smaller_workload_is_the_beginning_of_a_larger_one(kind: type[Workload]) -> None:
    small, large = kind(count=100).subscriptions_table(), kind(count=3_000).subscriptions_table()
    assert small.equals(large[:100].combine_chunks())


@EVERY
@pytest.mark.thorough
def test_parts_make_the_whole(kind: type[Workload]) -> None:
    workload = kind(count=BLOCK + 100)
    cuts = [0, 50, BLOCK + 1, BLOCK + 100]
    parts = [part for start, stop in pairwise(cuts) for part in workload.subscriptions(start, stop)]
    assert pa.concat_tables(parts).combine_chunks().equals(workload.subscriptions_table().combine_chunks())
    events = [*workload.event_tables(0, 1_000, key="n"), *workload.event_tables(1_000, 1_100, key="n")]
    whole = pa.concat_tables(workload.event_tables(0, 1_100, key="n"))
    assert pa.concat_tables(events).combine_chunks().equals(whole.combine_chunks())
    assert whole["n"].to_pylist() == list(range(1_100))


@EVERY
@pytest.mark.thorough
def test_the_kernel_accepts_every_expression(kind: type[Workload]) -> None:
    table = kind(count=2_000).subscriptions_table()
    index = tamis.Index()
    index.add_many(table["id"], table["expression"])
    assert len(index) == 2_000
    assert index.match_batch(kind(count=2_000).events_table(10)).num_columns == 2


@EVERY
def test_events_are_numbered(kind: type[Workload]) -> None:
    workload = kind(count=100)
    many = workload.events_dicts(1_500)
    assert len(many) == 1_500
    assert list(islice(workload.events(3), 3)) == many[:3]


@EVERY
@pytest.mark.thorough
def test_events_are_the_same_in_every_form(kind: type[Workload]) -> None:
    workload = kind(count=100)
    dicts = workload.events_dicts(20)
    assert [json.loads(line) for line in workload.events_json(20)] == dicts
    rows = workload.events_table(20).to_pylist()
    assert [{name: value for name, value in row.items() if value is not None} for row in rows] == [
        {name: event[name] for name in row if name in event} for row, event in zip(rows, dicts, strict=True)
    ]


@EVERY
@pytest.mark.thorough
def test_parquet_holds_what_the_stream_yields(kind: type[Workload], tmp_path) -> None:
    workload = kind(count=500)
    seen: list[int] = []
    workload.write_parquet(tmp_path / "rules.parquet", progress=seen.append)
    assert pq.read_table(tmp_path / "rules.parquet").equals(workload.subscriptions_table())
    assert seen == [500]
    workload.write_events_parquet(tmp_path / "events.parquet", 7)
    assert pq.read_table(tmp_path / "events.parquet").equals(workload.events_table(7))
    workload.write_events(tmp_path / "events.jsonl", 7)
    lines = (tmp_path / "events.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == workload.events_dicts(7)


def test_equality_has_the_asked_number_of_predicates() -> None:
    workload = Equality(count=2_000, min_predicates=3, max_predicates=4)
    texts = workload.subscriptions_table()["expression"].to_pylist()
    assert {text.count(" = ") for text in texts} == {3, 4}
    assert all(len({part.split()[0] for part in text.split(" AND ")}) == text.count(" = ") for text in texts)


def test_skewed_equality_prefers_low_attributes_and_values() -> None:
    text = " ".join(
        Equality(count=2_000, attribute_alpha=1.0, value_alpha=1.0)
        .subscriptions_table()["expression"]
        .to_pylist()
    )
    assert text.count("a0 = ") > 5 * text.count("a40 = ")
    assert text.count(" = 0 ") > 5 * text.count(" = 60 ")


def test_an_event_has_the_asked_number_of_attributes() -> None:
    assert {len(event) for event in Conjunctive(count=1).events(100)} == {15}
    assert {len(event) for event in AbeGen(count=1).events(100)} == {20}
    assert {len(event) for event in Dense(count=1).events(100)} == {20}
    assert {len(event) for event in Equality(count=1, event_size=7).events(100)} == {7}


@pytest.mark.thorough
def test_dense_matches_between_a_tenth_of_a_percent_and_one_percent() -> None:
    workload = Dense(count=1_000)
    texts = workload.subscriptions_table()["expression"].to_pylist()
    shares = match_shares(texts, workload.events_table(500))
    assert 0.001 < shares.mean() < 0.01


def test_conjunctive_subscriptions_can_match() -> None:
    workload = Conjunctive(count=1_000, predicates=3)
    texts = workload.subscriptions_table()["expression"].to_pylist()
    assert match_shares(texts, workload.events_table(500)).mean() > 0


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        (Equality, {"min_predicates": 5, "max_predicates": 4}),
        (Conjunctive, {"predicates": 19}),
        (AbeGen, {"depth": 0}),
        (AbeGen, {"attributes": 3}),
    ],
)
def test_impossible_parameters_are_refused(kind: type[Workload], parameters: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"need|cannot"):
        kind(**parameters)
