"""How many bytes rows take, and where to cut them: against Arrow's own measure, for every type."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.spark.matching import bounded_batches
from tamis.spark.matching.bounded_batches import batch_bytes, cuts, gather_rows, row_bytes

texts = st.text(max_size=6)
scalars: list[tuple[pa.DataType, Any]] = [
    (pa.null(), st.none()),
    (pa.bool_(), st.booleans()),
    (pa.int8(), st.integers(-128, 127)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.float32(), st.floats(width=32)),
    (pa.decimal128(10, 2), st.decimals(-1000, 1000, places=2)),
    (pa.date32(), st.dates()),
    (pa.timestamp("us", tz="UTC"), st.integers(0, 2**50)),
    (pa.duration("us"), st.integers(0, 2**50)),
    (pa.month_day_nano_interval(), st.just((1, 2, 3))),
    (pa.binary(3), st.binary(min_size=3, max_size=3)),
    (pa.string(), texts),
    (pa.large_string(), texts),
    (pa.binary(), st.binary(max_size=6)),
    (pa.large_binary(), st.binary(max_size=6)),
    (pa.dictionary(pa.int8(), pa.string()), texts),
]


def nested(inner: Any) -> Any:
    """A type around another, and its values."""

    def around(pair: tuple[pa.DataType, Any]) -> Any:
        kind, values = pair
        values = values | st.none()
        return st.sampled_from(
            [
                (pa.list_(kind), st.lists(values, max_size=4)),
                (pa.large_list(kind), st.lists(values, max_size=4)),
                (pa.list_(kind, 2), st.lists(values, min_size=2, max_size=2)),
                (pa.struct([("a", kind), ("b", pa.int32())]), st.fixed_dictionaries({"a": values})),
                (pa.map_(pa.string(), kind), st.lists(st.tuples(texts, values), max_size=3)),
            ]
        )

    return inner.flatmap(around)


kinds = st.recursive(st.sampled_from(scalars), nested, max_leaves=3)


@st.composite
def columns(draw: Any) -> pa.Array:
    """A column of any type, which is part of a longer one."""
    kind, values = draw(kinds)
    whole = draw(st.lists(values | st.none(), max_size=12))
    return pa.array(whole, kind).slice(draw(st.integers(0, 3)), draw(st.integers(0, 12)))


def slots(kind: pa.DataType) -> int:
    """How many arrays a column of that type consists of."""
    return 1 + sum(slots(kind.field(at).type) for at in range(kind.num_fields))


@given(columns())
def test_a_column_takes_what_its_rows_take(column: pa.Array) -> None:
    sizes = row_bytes(column)
    assert sizes.dtype == np.int64
    assert len(sizes) == len(column)
    # Arrow adds a bit for each value, and one offset more than there are lists.
    taken = column.take(pa.array(range(len(column)), pa.int64()))
    assert taken.nbytes <= sizes.sum() * 1.25 + slots(column.type) * 16
    assert sizes.tolist() == [int(row_bytes(column.slice(row, 1))[0]) for row in range(len(column))]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array(["", "x" * 1000, None]), [4, 1004, 4]),
        (pa.array([True, None]), [1, 1]),
        (pa.nulls(2), [0, 0]),
        (pa.array([[None] * 1000, []], pa.list_(pa.null())), [1004, 4]),
        (pa.array([{}, {}], pa.struct([])), [0, 0]),
        (pa.array([[{}] * 7], pa.list_(pa.struct([]))), [11]),
        (pa.array([[["ab"], []]]), [4 + 4 + 6 + 4]),
        (pa.array([[("k", [1, 2])]], pa.map_(pa.string(), pa.list_(pa.int64()))), [4 + 5 + 20]),
        (pa.array(["abc", None, "abc"]).dictionary_encode(), [11, 4, 11]),
        (pa.array([], pa.list_(pa.string())), []),
    ],
)
def test_widths_are_exact(column: pa.Array, expected: list[int]) -> None:
    assert row_bytes(column).tolist() == expected


@given(st.lists(st.integers(0, 40), max_size=60), st.integers(1, 60), st.integers(1, 10))
def test_cuts_are_as_large_as_they_may_be(sizes: list[int], most_bytes: int, most_rows: int) -> None:
    parts = list(cuts(np.array(sizes, np.int64), most_bytes, most_rows))
    assert [row for first, end in parts for row in range(first, end)] == list(range(len(sizes)))
    for first, end in parts:
        assert end - first <= most_rows
        assert sum(sizes[first:end]) <= most_bytes or end == first + 1
        if end < len(sizes) and end - first < most_rows:
            assert sum(sizes[first : end + 1]) > most_bytes


@given(st.data())
def test_rows_of_many_batches_come_in_the_order_that_is_asked_for(data: Any) -> None:
    kind, values = data.draw(kinds)
    batches = []
    for _ in range(data.draw(st.integers(1, 4))):
        held = data.draw(st.lists(values | st.none(), max_size=5))
        batches.append(pa.record_batch({"number": pa.array(range(len(held))), "held": pa.array(held, kind)}))
    total = sum(batch.num_rows for batch in batches)
    rows = data.draw(st.lists(st.integers(0, total - 1), max_size=20)) if total else []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounded_batches, "MOST_BYTES", data.draw(st.sampled_from([1, 30, 200])))
        parts = list(gather_rows(batches, np.array(rows, np.int64)))
        assert [row for first, end, _ in parts for row in range(first, end)] == list(range(len(rows)))
        for first, end, part in parts:
            assert part.num_rows == end - first
            total_bytes = batch_bytes(part.columns, part.num_rows).sum()
            assert total_bytes <= bounded_batches.MOST_BYTES or part.num_rows == 1
    everything = [row for batch in batches for row in zip(*batch.to_pydict().values(), strict=True)]
    found = [row for _, _, part in parts for row in zip(*part.to_pydict().values(), strict=True)]
    assert repr(found) == repr([everything[row] for row in rows])  # where NaN is NaN
