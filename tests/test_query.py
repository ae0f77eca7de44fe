"""A query is one value from Python to the kernel, and selects by tags alike wherever a subscription lies."""

import copy
import json
import pickle
from datetime import UTC, datetime
from itertools import product

import pyarrow as pa
import pytest

import tamis
from tamis import ArgumentError, Index, Query

TAGS = ("a", "b", "c")
EVENTS = [{"x": 5}, {"x": 0}, {"x": 9}]


def tagged(algorithm: str, copies: int) -> Index:
    """One subscription for each set of tags, several times over; odd ids need a larger x."""
    index = Index(algorithm=algorithm)
    ids, expressions, tags = [], [], []
    for id, chosen in enumerate(list(product((False, True), repeat=3)) * copies):
        ids.append(id)
        expressions.append("x > 4" if id % 2 else "x > 1")
        tags.append([tag for tag, has in zip(TAGS, chosen, strict=True) if has])
    if algorithm == "auto" and copies == 1:
        for row in zip(ids, expressions, tags, strict=True):
            index.add(row[0], row[1], tags=row[2], priority=float(row[0] % 5))
    else:
        index.add_many(ids, expressions, tags=tags, priorities=[float(id % 5) for id in ids])
    return index


@pytest.mark.parametrize(("algorithm", "copies"), [("auto", 1), ("auto", 40), ("scan", 1), ("a-tree", 2)])
@pytest.mark.parametrize("any_of", [None, [], ["a"], ["a", "b"], ["nobody"]])
@pytest.mark.parametrize("all_of", [None, [], ["b"], ["a", "c"], ["nobody"]])
@pytest.mark.parametrize("none_of", [None, [], ["c"], ["a", "b"], ["nobody"]])
def test_tags_select_alike_everywhere(algorithm, copies, any_of, all_of, none_of):
    index = tagged(algorithm, copies)
    selected = {"tags": any_of, "tags_all": all_of, "tags_none": none_of}

    def wanted(id):
        tags = set(index[id].tags)
        return (
            (any_of is None or bool(tags & set(any_of)))
            and tags >= set(all_of or ())
            and not tags & set(none_of or ())
        )

    expected = {}
    for number, event in enumerate(EVENTS):
        expected[number] = [id for id in index if event["x"] > (4 if id % 2 else 1) and wanted(id)]
        assert index.match(event, **selected) == expected[number]
        assert index.count(event, **selected) == len(expected[number])
        assert index.exists(event, **selected) == bool(expected[number])
        best = sorted(expected[number], key=lambda id: (-(id % 5), id))[:3]
        assert [match.id for match in index.top_k(event, 3, **selected)] == best
    table = pa.Table.from_pylist(EVENTS)
    pairs = [(event, id) for event, ids in expected.items() for id in ids]
    found = index.match_batch(table, **selected)
    assert list(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True)) == pairs
    assert index.count_batch(table, **selected).to_pylist() == [len(ids) for ids in expected.values()]
    exists = index.ask_batch(Query("exists", **selected), table).to_pylist()
    assert exists == [bool(ids) for ids in expected.values()]


QUERIES = [
    Query(),
    Query("count", tags=["a"], now=datetime(2026, 1, 31, tzinfo=UTC)),
    Query("exists", tags_all=["a", "b"], tags_none=["c"]),
    Query("best"),
    Query(k=0),
    Query(k=3, score="min(x, `y z`) + 0.5 * w", min_score=-1.5, dimensions=["x", "y z"]),
    Query(tags=[]),
]


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_a_query_survives_json_and_pickle(query):
    for again in (Query.from_json(query.to_json()), pickle.loads(pickle.dumps(query)), copy.deepcopy(query)):
        assert again == query
        assert hash(again) == hash(query)
        assert repr(again) == repr(query)
    assert eval(repr(query), {"Query": Query}) == query


def test_queries_differ():
    assert len({*QUERIES, *QUERIES}) == len(QUERIES)
    assert Query() != "all"
    assert json.loads(Query().to_json()) == {"ask": "all"}


def test_what_is_left_out_is_the_default():
    query = Query(k=3)
    best = (query.ask, query.k, query.score, query.min_score, query.dimensions)
    assert best == ("best", 3, "priority", None, None)
    assert (query.tags, query.tags_all, query.tags_none, query.now) == (None, (), (), None)
    plain = Query("count")
    assert (plain.k, plain.score) == (None, None)


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"ask": "some"}, ArgumentError, '"count"'),
        ({"ask": "count", "k": 3}, ArgumentError, "about the best matches"),
        ({"k": -1}, ArgumentError, "k must not be negative, not -1"),
        ({"min_score": float("nan")}, ArgumentError, "not NaN"),
        ({"k": 1.5}, TypeError, "k is an integer such as 10, not 1.5"),
        ({"k": "3"}, TypeError, "k is an integer such as 10, not '3'"),
        ({"k": True}, TypeError, "k is an integer such as 10, not True"),
        ({"score": "prio"}, ArgumentError, "there is no score"),
        ({"score": "prority"}, ArgumentError, 'did you mean "priority"'),
        ({"score": len}, TypeError, "Index.top_k"),
        ({"dimensions": "age"}, TypeError, r"dimensions=\['age'\]"),
        ({"tags": "q4"}, TypeError, r"tags=\['q4'\]"),
        ({"tags_all": 4}, TypeError, "list of strings"),
        ({"now": "today"}, TypeError, "datetime"),
    ],
)
def test_a_wrong_query_says_what_would_be_right(arguments, kind, message):
    with pytest.raises(kind, match=message):
        Query(**arguments)


def test_a_query_at_a_moment():
    index = Index()
    index.add("a", "x > 1", expires=datetime(2026, 1, 1, tzinfo=UTC))
    query = Query("count")
    assert index.ask(query.at(datetime(2025, 12, 31, tzinfo=UTC)), {"x": 2}) == 1
    assert index.ask(query.at(datetime(2026, 1, 1, tzinfo=UTC)), {"x": 2}) == 0


def test_asking_for_the_best_warns_of_unknown_names():
    index = Index()
    index.add("a", "price > 1")
    with pytest.warns(tamis.UnknownAttributeWarning, match="did you mean `price`"):
        index.ask(Query(score="2 * prise"), {"price": 2})
