"""Reads the subscriptions of an index back as rows of a table."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import pyarrow as pa

from tamis.index import Index
from tamis.store.changes import change_schema
from tamis.store.versions import IdKind

ROWS_AT_ONCE = 10_000


def subscription_schema(ids: IdKind) -> pa.Schema:
    """The columns of a subscription.

    >>> subscription_schema("int").names[:2]
    ['id', 'expression']
    """
    return pa.schema([field for field in change_schema(ids) if field.name not in ("op", "sequence")])


def subscription_rows(index: Index) -> Iterator[dict[str, Any]]:
    """The subscriptions of an index, sorted by id.

    >>> index = Index()
    >>> index.add("a", "x > 1", tags=["q4"])
    >>> [(row["id"], row["expression"], row["tags"]) for row in subscription_rows(index)]
    [('a', 'x > 1', ['q4'])]
    """
    for id, held in index.items():
        yield {
            "id": id,
            "expression": str(held.expression),
            "priority": held.priority,
            "weights": list(held.weights.items()),
            "tags": list(held.tags),
            "owner": held.owner,
            "payload": held.payload,
            "expires": held.expires,
            "starts": held.starts,
        }


def subscription_batches(indexes: Iterable[Index], ids: IdKind) -> Iterator[pa.RecordBatch]:
    """The subscriptions of some indexes, some thousand rows at a time."""
    for index in indexes:
        rows = subscription_rows(index)
        while some := list(islice(rows, ROWS_AT_ONCE)):
            yield pa.RecordBatch.from_pylist(some, subscription_schema(ids))
