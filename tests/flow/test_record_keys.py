"""Records as keys: by their content in PARTITION BY and BY; in ON they equal nothing, which is counted."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis

ANN = {"customer": {"name": "ann", "id": 1}, "tags": [1, 2]}
SAME = {"tags": [1, 2.0], "customer": {"id": 1.0, "name": "ann"}}
OTHERS: list[Any] = [
    {"customer": {"name": "bob", "id": 1}, "tags": [1, 2]},
    {"customer": {"name": "ann", "id": 1}, "tags": [1, 3]},
    {"customer": {"name": "ann", "id": 1}},
    {"customer": {"name": "ann"}, "id": 1, "tags": [1, 2]},
    {},
    None,
    "ann",
]


def opened_again(flow: tamis.Flow, folder: Path) -> tamis.Flow:
    flow.save(folder / "flow")
    return tamis.Flow.open(folder / "flow")


def test_a_partition_by_a_record_is_one_for_each_content(tmp_path: Path) -> None:
    flow = tamis.Flow()
    flow.stream("s", time="ts")
    flow.add("q", "count(* BY order LAST 1h) >= 1")
    orders = [ANN, *OTHERS, SAME]
    counts = []
    for ts, order in enumerate(orders):
        [out] = flow.push("s", {"ts": ts, "order": order})
        counts += out.row.values()
        flow = opened_again(flow, tmp_path)
    assert counts == [1] * (len(orders) - 1) + [2]
    assert flow.explain("q", key={"order": SAME})["windows"][0]["value"] == 2


def test_a_sequence_by_a_record_follows_its_content(tmp_path: Path) -> None:
    flow = tamis.Flow()
    flow.stream("s", time="ts")
    flow.add("q", "SEQUENCE (a = 1) THEN (a = 2) WITHIN 1h BY order")
    flow.push("s", {"ts": 1, "a": 1, "order": ANN})
    flow = opened_again(flow, tmp_path)
    for order in OTHERS:
        assert flow.push("s", {"ts": 2, "a": 2, "order": order}) == []
    assert len(flow.push("s", {"ts": 3, "a": 2, "order": SAME})) == 1


def test_a_record_of_arrow_is_the_key_that_a_dict_is() -> None:
    flow = tamis.Flow()
    flow.stream("s", time="ts")
    flow.add("q", "count(* BY order LAST 1h) >= 2")
    flow.push("s", {"ts": 1, "order": {"id": 1, "by": {"name": "ann"}}})
    table = pa.table(
        {"ts": [2, 3], "order": [{"id": 1, "by": {"name": "ann"}}, {"id": 2, "by": {"name": "ann"}}]}
    )
    assert [out.events[0]["ts"] for out in flow.push_batch("s", table)] == [2]


def test_records_and_arrays_join_nothing_and_are_counted(tmp_path: Path) -> None:
    flow = tamis.Flow()
    flow.stream("s", time="ts")
    flow.add("q", "SELECT x.ts FROM s RANGE 1 HOUR AS x JOIN s RANGE 1 HOUR AS y ON x.k = y.k")
    flow.add(
        "two", "SELECT x.ts FROM s RANGE 1 HOUR AS x JOIN s RANGE 1 HOUR AS y ON x.id = y.id AND x.k = y.k"
    )
    for ts, key in enumerate([ANN, ANN, [1], [1], [{"a": 1}], [{"a": 1}]]):
        assert flow.push("s", {"ts": ts, "id": 1, "k": key}) == []
    assert opened_again(flow, tmp_path).stats()["unequal_keys"] == flow.stats()["unequal_keys"] == 6
    assert len(flow.push("s", {"ts": 9, "id": 1, "k": 1})) == 2


def test_a_record_is_told_with_its_fields() -> None:
    flow = tamis.Flow()
    flow.stream("s", time="ts")
    flow.add("q", "SELECT order, ts FROM s ROWS 1")
    flow.add("w", "first(order LAST 1h) IS NOT NULL")
    told = flow.push("s", {"ts": 1, "order": ANN})
    assert [next(iter(out.row.values())) for out in told] == [ANN, ANN]


def test_two_columns_of_one_name_are_refused() -> None:
    flow = tamis.Flow()
    flow.stream("s", time="ts")
    with pytest.raises(tamis.ExpressionError, match="two columns have the name v") as refused:
        flow.add("q", "SELECT x.v AS v, y.v AS v FROM s ROWS 1 AS x JOIN s ROWS 2 AS y")
    assert refused.value.column == 18
    flow.add("q", "SELECT x.v, y.v FROM s ROWS 1 AS x JOIN s ROWS 2 AS y")
