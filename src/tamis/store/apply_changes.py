"""One batch of changes becomes the next version of a store. Runs in one task.

The order makes it safe to stop anywhere: files come first, the version that names them last. The version is
created only if no other writer created one meanwhile; otherwise everything starts again from that one. The
cost depends only on the new changes: `change_log` keeps the number of files low, and the writer's shards stay
open.
"""

import hashlib
import json
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from tamis.errors import SnapshotError
from tamis.index import Index
from tamis.store.bound_rules import is_bound
from tamis.store.change_log import append, known_sequences, put_sequences, sequence_tables
from tamis.store.changes import (
    PROBLEM,
    REMOVE,
    UPSERT,
    apply_changes,
    from_bytes,
    latest,
    stored_schema,
    to_bytes,
)
from tamis.store.directory import Directory
from tamis.store.folding import attributes_of, can_wait, fold_changes, fold_is_due
from tamis.store.garbage import collect_now_and_then
from tamis.store.open_shards import OpenShard, put_back, take
from tamis.store.placement import shards_of_changes
from tamis.store.versions import IdKind, Version, create_version, latest_number, read_version

_UPSERTS = ("add", "replace", "upsert")


class KnownColumns(Protocol):
    """The columns of the events that rules are for."""

    def problem(self, expression: str) -> str | None:
        """What is wrong with a rule that asks for other columns; None where all are there."""


class Applied(NamedTuple):
    """The outcome of a batch of changes: `version` is the latest one afterwards."""

    version: int
    applied: int
    stale: int
    quarantined: int


def apply_to_store(
    directory: Directory,
    given: pa.Table,
    schema: pa.Schema,
    columns: KnownColumns | None = None,
    *,
    folds: bool = True,
) -> Applied:
    """Apply changes to the latest version of a store and publish the next, unless nothing changed.

    With `columns`, those of the events, rules that ask for others are refused. Without `folds`, the caller
    folds shards in parallel where that is due and possible.
    """
    while True:
        before = _latest(directory, schema)
        changes, refused = _checked(given, schema, before.notes.get("schema"), columns)
        known = known_sequences(directory, before, changes.column("id"))
        fresh = [
            change for change in latest(changes) if change["sequence"] > known.get(change["id"], _NO_SEQUENCE)
        ]
        after = _published(directory, before, fresh, schema, folds) if fresh else before
        if after is None:
            continue
        if refused:
            _quarantine(directory, refused, after.number)
        collect_now_and_then(directory)
        return Applied(after.number, len(fresh), changes.num_rows - len(fresh), len(refused))


def _published(
    directory: Directory, before: Version, fresh: list[dict[str, Any]], schema: pa.Schema, folds: bool
) -> Version | None:
    """The version with these changes, or None if another writer created the next one."""
    number = before.number + 1
    shards = [take(directory, before, shard) for shard in range(len(before.shards))]
    homes = shards_of_changes(directory, before, fresh, [sum(map(len, held.indexes)) for held in shards])
    rows = [{**row, "version": number, "shard": home} for row, home in zip(fresh, homes, strict=True)]
    changes = pa.Table.from_pylist(rows, stored_schema(schema))
    after = _next_version(directory, before, changes, shards, folds)
    if not create_version(directory, after):
        return None
    if after.base == before.base:
        for shard, held in enumerate(shards):
            put_back(directory, after, shard, held)
    return after


_NO_SEQUENCE = -(1 << 63)


def _latest(directory: Directory, schema: pa.Schema) -> Version:
    ids: IdKind = "int" if pa.types.is_integer(schema.field("id").type) else "string"
    number = latest_number(directory)
    if number is None:
        return Version(
            number=0, plan="replicated", ids=ids, shards=[[]], notes={"reason": "a store of changes"}
        )
    version = read_version(directory, number)
    ever_held = version.subscriptions or version.changes or version.sequences
    if version.ids != ids and ever_held:
        raise SnapshotError(
            f"the subscriptions of {directory.url} have ids of type {version.ids}, not {ids}; a store keeps "
            "the type of its ids, also when it is empty"
        )
    return replace(version, ids=ids)


def _checked(
    given: pa.Table, schema: pa.Schema, types: dict[str, Any] | None, columns: KnownColumns | None
) -> tuple[pa.Table, list[dict[str, Any]]]:
    """The changes that can be applied, and those that cannot, with what is wrong."""
    good: list[dict[str, Any]] = []
    refused: list[dict[str, Any]] = []
    for change in given.to_pylist():
        problem = _problem(change)
        if problem is None:
            good.append(change)
        else:
            refused.append({**change, "error": problem})
    upserts = [change for change in good if change["op"] != REMOVE]
    # Row numbers stand in for ids: two changes of one subscription are no error here.
    numbered = [{**change, "id": row} for row, change in enumerate(upserts)]
    fields = [field.with_type(pa.int64()) if field.name == "id" else field for field in schema]
    trial = Index(types).add_table(pa.Table.from_pylist(numbered, pa.schema(fields)), on_error="collect")
    bad = {row.row: str(row.error) for row in trial}
    if columns is not None:
        texts = {row: change["expression"] for row, change in enumerate(upserts) if row not in bad}
        bad |= {row: said for row, text in texts.items() if (said := columns.problem(text)) is not None}
    refused += [{**upserts[row], "error": message} for row, message in bad.items()]
    kept = [{**change, "op": UPSERT} for row, change in enumerate(upserts) if row not in bad]
    kept += [change for change in good if change["op"] == REMOVE]
    return pa.Table.from_pylist(kept, schema), refused


def _problem(change: dict[str, Any]) -> str | None:
    if change.get(PROBLEM) is not None:
        return str(change[PROBLEM])
    if change["id"] is None:
        return "the change has no id"
    if change["sequence"] is None:
        return "the change has no sequence number"
    if change["op"] not in (*_UPSERTS, REMOVE):
        return f'the operation is "add", "replace" or "remove", not {change["op"]!r}'
    if change["op"] != REMOVE and change["expression"] is None:
        return f"the operation {change['op']!r} needs an expression"
    return None


def with_sequences(directory: Directory, version: Version) -> Version:
    """The version with the sequence numbers that the latest one knows: a late change stays late."""
    if latest_number(directory) is None:
        return version
    latest = read_version(directory)
    known = list(sequence_tables(directory, latest))
    if not known or latest.ids != version.ids:
        return version
    return replace(version, sequences=put_sequences(directory, known))


def _next_version(
    directory: Directory, before: Version, changes: pa.Table, shards: list[OpenShard], folds: bool
) -> Version:
    """The version after these changes; they are applied to the open shards."""
    number = before.number + 1
    for shard, held in enumerate(shards):
        apply_changes(held.indexes, changes, shard)
    indexes = [index for held in shards for index in held.indexes]
    written = zip(changes.column("op").to_pylist(), changes.column("expression").to_pylist(), strict=True)
    after = replace(
        before,
        number=number,
        base=before.base or number,
        changes=append(directory, before.changes, changes, number),
        payloads=before.payloads or changes.column("payload").null_count < changes.num_rows,
        bound=before.bound or any(op == UPSERT and is_bound(text) for op, text in written),
        subscriptions=sum(map(len, indexes)),
        attributes=attributes_of(indexes),
    )
    if not fold_is_due(after) or (not folds and can_wait(after, shards)):
        return after
    return fold_changes(directory, after, shards)


_QUARANTINED = pa.schema(
    {
        "id": pa.string(),
        "op": pa.string(),
        "sequence": pa.int64(),
        "expression": pa.string(),
        "error": pa.string(),
        "version": pa.int64(),
    }
)


def quarantined_changes(directory: Directory) -> pa.Table:
    """The changes of a store that could not be applied, with what is wrong with each."""
    names = directory.list("quarantine")
    tables = [from_bytes(directory.read(f"quarantine/{name}")) for name in names]
    return pa.concat_tables([_QUARANTINED.empty_table(), *tables])


def _quarantine(directory: Directory, refused: list[dict[str, Any]], version: int) -> None:
    rows = [
        {
            **{name: row[name] for name in ("op", "sequence", "expression", "error")},
            "id": None if row["id"] is None else str(row["id"]),
            "version": version,
        }
        for row in refused
    ]
    # Named by content: a batch that is applied again after a crash adds nothing.
    what = json.dumps([{**row, "version": None} for row in rows], sort_keys=True)
    name = hashlib.sha256(what.encode()).hexdigest()[:32]
    directory.create(f"quarantine/{name}.arrow", to_bytes(pa.Table.from_pylist(rows, _QUARANTINED)))
