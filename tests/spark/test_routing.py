"""Answers of several shards come together: the same in any order, and without holding a whole partition."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from tamis import Query
from tamis.spark.matching.answer import TableQuery
from tamis.spark.plans import routing
from tamis.spark.plans.routing import EVENT, merge_task

EVENTS = 1000
SHARDS = 3


def answers(order: list[int]) -> Iterator[pa.RecordBatch]:
    """Counts from three shards for each event, in batches of 64 rows; shard s has s matches for odd ones."""
    rows = [(event, shard * (event % 2)) for event in order for shard in range(SHARDS)]
    for first in range(0, len(rows), 64):
        part = rows[first : first + 64]
        yield pa.record_batch(
            {
                "event_id": [event for event, _ in part],
                EVENT: [event for event, _ in part],
                "matches": pa.array([count for _, count in part], pa.int64()),
                "version": [1] * len(part),
            }
        )


def rows(batches: Any) -> list[dict[str, Any]]:
    found = [row for batch in batches for row in batch.to_pylist()]
    return sorted(found, key=lambda row: row["event_id"])


EXPECTED = {
    "count": [{"event_id": e, "matches": 3 * (e % 2), "version": 1} for e in range(EVENTS)],
    "exists": [{"event_id": e, "matched": e % 2 == 1, "version": 1} for e in range(EVENTS)],
    "unmatched": [{"event_id": e, "version": 1} for e in range(0, EVENTS, 2)],
}


@pytest.mark.parametrize("mode", ["count", "exists", "unmatched"])
def test_counts_add_up_in_any_order(mode: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing, "ROWS_BEFORE_MERGE", 100)
    query = TableQuery(mode)
    in_order = list(range(EVENTS))
    mixed = [event * 7 % EVENTS for event in in_order]
    assert rows(merge_task(query, ["event_id"], ordered=True)(answers(in_order))) == EXPECTED[mode]
    assert rows(merge_task(query, ["event_id"], ordered=False)(answers(mixed))) == EXPECTED[mode]


def test_ordered_answers_are_passed_on_at_once() -> None:
    """When the first event comes out, only the batch that it came with has been taken."""
    taken = 0

    def watched() -> Iterator[pa.RecordBatch]:
        nonlocal taken
        for batch in answers(list(range(EVENTS))):
            taken += 1
            yield batch

    first = next(iter(merge_task(TableQuery("count"), ["event_id"], ordered=True)(watched())))
    assert first.num_rows == 64 // SHARDS
    assert taken == 1


def test_the_best_of_an_event_may_lie_in_two_batches() -> None:
    scored = [(0, "c", 3.0), (0, "a", 1.0), (0, "b", 1.0), (1, "a", 1.0)]  # as `merge_order` says
    batches = [
        pa.record_batch(
            {EVENT: [event], "subscription": [id], "score": [score], "rank": pa.array([1], pa.int32())}
        )
        for event, id, score in scored
    ]
    found = [
        row
        for batch in merge_task(TableQuery("top_k", Query(k=2)), [], ordered=True)(iter(batches))
        for row in batch.to_pylist()
    ]
    assert [(row["subscription"], row["rank"]) for row in found] == [("c", 1), ("a", 2), ("a", 1)]
