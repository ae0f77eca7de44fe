"""Owners: stored with a subscription wherever it goes, and at most one match of each is looked for."""

import pickle

import pyarrow as pa
import pytest

from tamis import Index, Query

OWNERS = ["ann", "bob", None, "eve", "ann", "zoë"]


def owned(algorithm: str, rows: int, *, one_by_one: bool) -> Index:
    index = Index(algorithm=algorithm)
    ids = list(range(rows))
    expressions = [f"x > {id % 7} AND y != {id % 3}" for id in ids]
    owners = [OWNERS[id % len(OWNERS)] for id in ids]
    if one_by_one:
        for row in zip(ids, expressions, owners, strict=True):
            index.add(row[0], row[1], owner=row[2], tags=["even"] if row[0] % 2 == 0 else [])
    else:
        index.add_many(ids, expressions, owners=owners, tags=[["even"] if id % 2 == 0 else [] for id in ids])
    return index


def expected(index: Index, event: dict[str, int], **selected: object) -> list[str]:
    return sorted({index[id].owner for id in index.match(event, **selected)} - {None})


EVENTS = [{"x": x, "y": y} for x in (0, 1, 2, 4, 9) for y in (0, 1, 2, 7)]


@pytest.mark.parametrize(
    ("algorithm", "rows", "one_by_one"),
    [
        ("auto", 12, True),
        ("auto", 900, True),
        ("auto", 900, False),
        ("scan", 40, True),
        ("a-tree", 40, False),
    ],
)
def test_owners_are_those_of_the_matches(algorithm, rows, one_by_one):
    index = owned(algorithm, rows, one_by_one=one_by_one)
    assert [index[id].owner for id in range(12)] == OWNERS * 2
    for selected in ({}, {"tags": ["even"]}, {"tags_none": ["even"]}):
        for event in EVENTS:
            assert index.owners(event, **selected) == expected(index, event, **selected)
    for id in [id for id in range(rows) if OWNERS[id % len(OWNERS)] == "ann"]:
        index.remove(id)
    index.upsert(1, "x > 0", owner="new")
    for event in EVENTS:
        found = index.owners(event)
        assert found == expected(index, event)
        assert "ann" not in found
    index.optimize()
    assert [index.owners(event) for event in EVENTS] == [expected(index, event) for event in EVENTS]
    found = index.ask_batch(Query("owners"), pa.Table.from_pylist(EVENTS))
    assert list(zip(found["event"].to_pylist(), found["owner"].to_pylist(), strict=True)) == [
        (at, owner) for at, event in enumerate(EVENTS) for owner in expected(index, event)
    ]


def test_intervals_find_owners_too():
    from tamis import Event, Interval

    index = owned("auto", 900, one_by_one=False)
    event = Event({"x": Interval(0, 3), "y": Interval(0, 1)})
    assert index.owners(event) == expected(index, event)


def test_owners_survive_snapshots_merges_and_pickle(tmp_path):
    index = owned("auto", 900, one_by_one=True)
    index.add_many(range(2000, 4000), ["x > 3"] * 2000, owners=[f"owner {id % 5}" for id in range(2000)])
    index.optimize()
    index.save(tmp_path / "owned.tamis")
    for again in (Index.open(tmp_path / "owned.tamis"), pickle.loads(pickle.dumps(index))):
        assert [again[id].owner for id in again] == [index[id].owner for id in index]
        assert [again.owners(event) for event in EVENTS] == [index.owners(event) for event in EVENTS]
    scan = owned("scan", 12, one_by_one=True)
    assert [pickle.loads(pickle.dumps(scan))[id].owner for id in scan] == OWNERS * 2


def test_an_index_without_owners_finds_none():
    index = Index()
    index.add("a", "x > 1")
    assert index.owners({"x": 5}) == []
    assert index["a"].owner is None
    assert "owner_of_row" not in str(index.stats())


def test_the_search_stops_when_all_owners_have_a_match():
    index = Index()
    index.add_many(
        range(20_000), [f"x > 1 AND z{id % 50} > 0" for id in range(20_000)], owners=["one"] * 20_000
    )
    event = {"x": 20_000, **{f"z{at}": 1 for at in range(50)}}
    index.count(event)
    all_of_them = index.stats()["observed"]["evaluations_per_event"]
    index.reset_stats()
    assert index.owners(event) == ["one"]
    assert index.stats()["observed"]["evaluations_per_event"] < all_of_them / 10 + 10


def test_an_owner_is_text():
    with pytest.raises(TypeError, match="the owner is a string, not int"):
        Index().add("a", "x > 1", owner=4)
    with pytest.raises(TypeError, match="owner"):
        Index().add_many(["a"], ["x > 1"], owners=[{}])
