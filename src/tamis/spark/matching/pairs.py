"""Which event matches which subscription, some events at a time.

However many matches events have, a task holds at most `MOST_PAIRS` of them at once, or those of a single
event. The kernel stops before the event that would exceed this; its progress determines how many events to
match next. Here the id of a subscription is a dictionary code; it becomes text in a row of the answer.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis._kernel import Query
from tamis._matching import ask_up_to
from tamis.index import Index

MOST_PAIRS = 1_000_000
"""Matches that are held in memory at once, unless a single event has more."""

FIRST_EVENTS = 1_024
MOST_EVENTS = 65_536

Numbers = np.ndarray[Any, np.dtype[np.int64]]

Find = Callable[[Index, pa.RecordBatch, int], tuple[pa.Table, int]]
"""Finds the matches of the first events, a number or those of one event; also says how many events."""


class Pairs:
    """Asks indexes about batches of events; subscriptions of different indexes have different ids.

    >>> index = Index()
    >>> errors = index.add_many([1, 2], ["x > 1", "x > 2"])
    >>> found = Pairs(all_matches, [index]).of(pa.record_batch({"x": [2, 3]}))
    >>> [table.to_pydict() for table in found]
    [{'event': [0, 1, 1], 'subscription': [1, 1, 2]}]
    """

    def __init__(self, find: Find, indexes: Sequence[Index], k: int | None = None) -> None:
        """With `k`, matches have a score, and the best k of each event are kept."""
        self._find = find
        self._indexes = indexes
        self._k = k
        self._events_at_once = FIRST_EVENTS

    def of(self, events: pa.RecordBatch) -> Iterator[pa.Table]:
        """Tables of `event` (row number), `subscription` and, for top-k, `score` and `rank`.

        Those of one index are sorted by event. The best k of an event are in one table.
        """
        done = 0
        while done < events.num_rows and self._indexes:
            part = events.slice(done, self._events_at_once)
            tables, answered = self._some(part)
            pairs = sum(table.num_rows for table in tables)
            if answered < part.num_rows:
                self._events_at_once = answered
            elif pairs < MOST_PAIRS // 4:
                self._events_at_once = min(MOST_EVENTS, self._events_at_once * 2)
            if self._k is not None and len(tables) > 1:
                tables = [best_of_several(tables, self._k)]
            tables.reverse()
            while tables:  # what was handed out is not held while the next events are asked about
                yield _shifted(tables.pop(), done)
            done += answered

    def _some(self, events: pa.RecordBatch) -> tuple[list[pa.Table], int]:
        """The matches of the first events in each index, and how many events those are."""
        tables = []
        most = max(1, MOST_PAIRS // len(self._indexes))
        for index in self._indexes:
            found, answered = self._find(index, events, most)
            events = events.slice(0, answered)
            tables.append(found)
        return [_of_first(table, events.num_rows) for table in tables], events.num_rows


def all_matches(index: Index, events: pa.RecordBatch, most: int) -> tuple[pa.Table, int]:
    """Find every match, on one thread: Spark gives a task one core.

    >>> all_matches(Index(), pa.record_batch({"x": [1, 2]}), most=10)[1]
    2
    """
    return ask_up_to(index, Query("all"), events, most, threads=1)


def _shifted(pairs: pa.Table, events: int) -> pa.Table:
    return pairs.set_column(0, "event", pc.add(pairs.column("event"), events))


def _of_first(pairs: pa.Table, events: int) -> pa.Table:
    """The pairs of the first events."""
    return pairs.slice(0, int(np.searchsorted(pairs.column("event").to_numpy(), events)))


def matched_prefixes(
    index: Index, events: pa.RecordBatch
) -> Iterator[tuple[Numbers, "np.ndarray[Any, Any]"]]:
    """Events, and what comes before the last colon in the ids of the subscriptions that they match.

    >>> index = Index()
    >>> index.add("shop:7", "x > 1")
    >>> found = matched_prefixes(index, pa.record_batch({"x": [0, 2]}))
    >>> [(event.tolist(), prefix.tolist()) for event, prefix in found]
    [([1], ['shop'])]
    """
    for table in Pairs(all_matches, [index]).of(events):
        for found in table.to_batches():
            ids = found.column("subscription")
            names = [str(id).rsplit(":", 1)[0] for id in ids.dictionary.to_pylist()]
            yield found.column("event").to_numpy(), np.array(names or [""], object)[ids.indices.to_numpy()]


def best_of_several(found: Sequence[pa.Table], k: int) -> pa.Table:
    """The best k of each event among the matches in several indexes.

    >>> scored = {"event": [0], "score": [1.0], "rank": [1]}
    >>> tables = [pa.table(scored | {"subscription": pa.array([id]).dictionary_encode()}) for id in "ba"]
    >>> best_of_several(tables, 1).to_pydict()
    {'event': [0], 'subscription': ['a'], 'score': [1.0], 'rank': [1]}
    """
    batches = [batch for table in found for batch in table.to_batches() if batch.num_rows]
    if not batches:
        return found[0]
    events, scores = (
        pa.chunked_array([batch.column(name) for batch in batches]) for name in ("event", "score")
    )
    ids, names = _as_numbers([batch.column("subscription") for batch in batches])
    order = ids if names is None else _places(names)[ids]
    rows, ranks = best_rows(pa.table({"event": events, "score": scores, "id": order}), k)
    chosen = pa.array(ids[rows])
    return pa.table(
        {
            "event": events.take(pa.array(rows)),
            "subscription": chosen if names is None else pa.DictionaryArray.from_arrays(chosen, names),
            "score": scores.take(pa.array(rows)),
            "rank": pa.array(ranks),
        }
    )


def _as_numbers(ids: Sequence[pa.Array]) -> tuple[Numbers, pa.Array | None]:
    """Ids as integers: as they are, or as places in one dictionary, which may be larger than 2 GiB."""
    if not pa.types.is_dictionary(ids[0].type):
        return np.concatenate([part.to_numpy() for part in ids]), None
    dictionaries = [part.dictionary.cast(pa.large_string()) for part in ids]
    starts = np.cumsum([0, *map(len, dictionaries)])
    codes = [part.indices.to_numpy() + start for part, start in zip(ids, starts, strict=False)]
    return np.concatenate(codes).astype(np.int64), pa.concat_arrays(dictionaries)


def _places(names: pa.Array) -> Numbers:
    """The place of each name in their order."""
    places = np.empty(len(names), np.int64)
    places[pc.sort_indices(names).to_numpy()] = np.arange(len(names))
    return places


def best_rows(scored: pa.Table, k: int) -> tuple[Numbers, Numbers]:
    """The rows with the k highest scores of each event, and their ranks from 1; ties go to the smaller id.

    The columns are `event`, `score` and `id`.

    >>> scored = pa.table({"event": [0, 1, 0], "score": [1.0, 2.0, 1.0], "id": ["b", "c", "a"]})
    >>> [numbers.tolist() for numbers in best_rows(scored, 1)]
    [[2, 1], [1, 1]]
    """
    keys = [("event", "ascending"), ("score", "descending"), ("id", "ascending")]
    order: Numbers = pc.sort_indices(scored, sort_keys=keys).to_numpy().astype(np.int64)
    ranks = ranks_of(scored.column("event").to_numpy()[order])
    kept = ranks <= k
    return order[kept], ranks[kept]


def ranks_of(events: Numbers) -> Numbers:
    """Which of its event's rows each row is, counted from 1; the rows of an event lie together.

    >>> ranks_of(np.array([7, 7, 9])).tolist()
    [1, 2, 1]
    """
    rows = np.arange(len(events))
    is_first = np.ones(len(events), bool)
    is_first[1:] = events[1:] != events[:-1]
    return rows - np.maximum.accumulate(np.where(is_first, rows, 0)) + 1


def plain_ids(ids: pa.Array) -> pa.Array:
    """Ids without a dictionary: Spark takes plain columns.

    >>> plain_ids(pa.array(["a", "b", "a"]).dictionary_encode()).type
    DataType(string)
    """
    if not pa.types.is_dictionary(ids.type):
        return ids
    return ids.dictionary.take(ids.indices).cast(pa.string())
