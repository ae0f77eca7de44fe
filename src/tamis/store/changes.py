"""Changes to subscriptions: add, replace, remove, each with a sequence number.

A change file is an Arrow table with the columns of a subscription plus `op` ("upsert" or "remove"),
`sequence`, the `version` that the change created and the `shard` that holds the subscription from then on.
Rows are validated before they are written, so that applying a file cannot fail half-way.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tamis.index import Index

UPSERT, REMOVE = "upsert", "remove"

PROBLEM = "__tamis_problem"
"""The column that says which detail of a row could not be read; null where all could."""


def change_schema(ids: str) -> pa.Schema:
    """The columns of a change file for ids of a kind.

    >>> change_schema("int").field("id").type
    DataType(int64)
    """
    return pa.schema(
        {
            "op": pa.string(),
            "sequence": pa.int64(),
            "id": pa.int64() if ids == "int" else pa.string(),
            "expression": pa.string(),
            "priority": pa.float64(),
            "weights": pa.map_(pa.string(), pa.float64()),
            "tags": pa.list_(pa.string()),
            "owner": pa.string(),
            "payload": pa.binary(),
            "expires": pa.timestamp("us", tz="UTC"),
            "starts": pa.timestamp("us", tz="UTC"),
        }
    )


def stored_schema(changes: pa.Schema) -> pa.Schema:
    """The columns of a change file: those of the changes, and where and when they were applied.

    >>> stored_schema(change_schema("int")).names[-2:]
    ['version', 'shard']
    """
    return changes.append(pa.field("version", pa.int64())).append(pa.field("shard", pa.int32()))


def to_bytes(table: pa.Table) -> bytes:
    """A table as the content of a file.

    >>> table = pa.table({"id": [1]})
    >>> from_bytes(to_bytes(table)).equals(table)
    True
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def from_bytes(data: bytes) -> pa.Table:
    """The table in the content of a file."""
    return pa.ipc.open_file(data).read_all()


def apply_changes(indexes: Sequence[Index], changes: pa.Table, shard: int = 0) -> None:
    """Apply changes to the indexes that together hold the subscriptions of a shard.

    An id that is added again moves to the last index, or leaves, if another shard holds it from now on.

    >>> index = Index()
    >>> index.add("a", "x > 1")
    >>> rows = [{"op": "upsert", "sequence": 1, "id": "b", "expression": "x > 2"},
    ...         {"op": "remove", "sequence": 2, "id": "a"}]
    >>> apply_changes([index], pa.Table.from_pylist(rows, stored_schema(change_schema("string"))))
    >>> index.match({"x": 3})
    ['b']
    """
    last = latest(changes)
    for change in last:
        for index in indexes:
            if change["id"] in index:
                index.remove(change["id"])
    upserts = [change for change in last if change["op"] == UPSERT and (change.get("shard") or 0) == shard]
    if upserts:
        indexes[-1].add_table(pa.Table.from_pylist(upserts, changes.schema))


def latest(changes: pa.Table) -> list[dict[str, Any]]:
    """The last change of every id, by sequence number, in the order of the ids' first appearance.

    >>> rows = [{"id": 1, "sequence": 2, "op": "upsert"}, {"id": 1, "sequence": 1, "op": "remove"}]
    >>> [change["op"] for change in latest(pa.Table.from_pylist(rows))]
    ['upsert']
    """
    last: dict[Any, dict[str, Any]] = {}
    for change in changes.to_pylist():
        known = last.get(change["id"])
        if known is None or change["sequence"] >= known["sequence"]:
            last[change["id"]] = change
    return list(last.values())
