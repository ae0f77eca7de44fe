"""One batch of changes becomes the next version of a store. Runs in one task.

The order makes it safe to stop anywhere: files first, the version that names them last, and that one created
only if nobody else made a version meanwhile; then everything starts again from theirs.
"""

import hashlib
import json
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import SnapshotError
from tamis.index import Index
from tamis.spark.building.on_executors import put_index
from tamis.spark.building.subscriptions import PROBLEM, is_bound
from tamis.spark.store.changes import REMOVE, UPSERT, latest, read_changes, to_bytes
from tamis.spark.store.directory import Directory
from tamis.spark.store.garbage import collect
from tamis.spark.store.host_cache import open_shard
from tamis.spark.store.versions import IdKind, Version, latest_number, read_version, version_file

CHANGES_BEFORE_REWRITE = 20_000
"""Changes that may lie on top of snapshots, unless a tenth of the subscriptions is more."""

VERSIONS_BETWEEN_COLLECTIONS = 16

_UPSERTS = ("add", "replace", "upsert")


class Applied(NamedTuple):
    """What became of a batch of changes: `version` is the latest one afterwards."""

    version: int
    applied: int
    stale: int
    quarantined: int


def apply_to_store(directory: Directory, given: pa.Table, schema: pa.Schema) -> Applied:
    """Apply changes to the latest version of a store and publish the next, unless nothing changed."""
    while True:
        before = _latest(directory, schema)
        changes, refused = _checked(given, schema, before.notes.get("schema"))
        known = _known_sequences(directory, before, changes.column("id"))
        fresh = [
            change for change in latest(changes) if change["sequence"] > known.get(change["id"], _NO_SEQUENCE)
        ]
        if fresh:
            after = _next_version(directory, before, pa.Table.from_pylist(fresh, schema))
            bound = any(is_bound(change["expression"]) for change in fresh if change["op"] != REMOVE)
            after = replace(after, bound=before.bound or bound)
            if not directory.create(version_file(after.number), after.to_json()):
                continue
        else:
            after = before
        if refused:
            _quarantine(directory, refused, after.number)
        if fresh and after.number % VERSIONS_BETWEEN_COLLECTIONS == 0:
            collect(directory)
        return Applied(after.number, len(fresh), changes.num_rows - len(fresh), len(refused))


_NO_SEQUENCE = -(1 << 63)


def _latest(directory: Directory, schema: pa.Schema) -> Version:
    ids: IdKind = "int" if pa.types.is_integer(schema.field("id").type) else "string"
    if latest_number(directory) is None:
        return Version(
            number=0, plan="replicated", ids=ids, shards=[[]], notes={"reason": "a store of changes"}
        )
    version = read_version(directory)
    ever_held = version.subscriptions or version.changes or version.notes.get("sequences")
    if version.ids != ids and ever_held:
        raise SnapshotError(
            f"the subscriptions of {directory.url} have ids of type {version.ids}, not {ids}; a store keeps "
            "the type of its ids, also when it is empty"
        )
    return replace(version, ids=ids)


def _checked(
    given: pa.Table, schema: pa.Schema, types: dict[str, Any] | None
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


def _known_sequences(directory: Directory, version: Version, ids: pa.ChunkedArray) -> dict[Any, int]:
    """The last sequence numbers of some subscriptions, for those of them that ever changed.

    A store may have seen millions of ids: only those that are asked for become Python objects.
    """
    wanted = pc.unique(ids)
    found = [
        table.filter(pc.is_in(table.column("id"), value_set=wanted))
        for table in _sequence_tables(directory, version)
    ]
    known: dict[Any, int] = {}
    for table in found:
        known.update(zip(table.column("id").to_pylist(), table.column("sequence").to_pylist(), strict=True))
    return known


def _sequence_tables(directory: Directory, version: Version) -> Iterator[pa.Table]:
    """Ids and sequence numbers of all changes, file by file; a later file has the higher numbers."""
    folded = version.notes.get("sequences")
    for name in ([folded] if folded else []) + version.changes:
        yield read_changes(directory, name).select(["id", "sequence"])


def with_sequences(directory: Directory, version: Version) -> Version:
    """The version with the sequence numbers that the latest one knows: a late change stays late."""
    if latest_number(directory) is None:
        return version
    latest = read_version(directory)
    known = list(_sequence_tables(directory, latest))
    if not known or latest.ids != version.ids:
        return version
    return replace(version, notes={**version.notes, "sequences": _put_sequences(directory, known)})


def _put_sequences(directory: Directory, known: list[pa.Table]) -> str:
    """Put the last sequence number of each id into one file."""
    name = f"changes/{uuid.uuid4().hex}.arrow"
    last = pa.concat_tables(known).group_by("id").aggregate([("sequence", "max")])
    directory.create(name, to_bytes(last.select(["id", "sequence_max"]).rename_columns(["id", "sequence"])))
    return name


def _next_version(directory: Directory, before: Version, fresh: pa.Table) -> Version:
    name = f"changes/{uuid.uuid4().hex}.arrow"
    directory.create(name, to_bytes(fresh))
    number = before.number + 1
    waiting = before.notes.get("waiting", 0) + fresh.num_rows
    after = replace(
        before,
        number=number,
        changes=[*before.changes, name],
        changed=True,
        notes={**before.notes, "waiting": waiting},
        payloads=before.payloads or fresh.column("payload").null_count < fresh.num_rows,
    )
    shards = [open_shard(directory, after, shard) for shard in range(len(after.shards))]
    after = replace(
        after,
        subscriptions=sum(len(index) for indexes in shards for index in indexes),
        attributes=_attributes([index for indexes in shards for index in indexes]),
    )
    if waiting <= max(CHANGES_BEFORE_REWRITE, after.subscriptions // 10):
        return after
    known = [*_sequence_tables(directory, before), fresh.select(["id", "sequence"])]
    folded = _put_sequences(directory, known)
    files = [[put_index(directory, index) for index in indexes if len(index)] for indexes in shards]
    notes = {**before.notes, "waiting": 0, "sequences": folded}
    return replace(after, shards=files, changes=[], notes=notes)


def _attributes(indexes: list[Index]) -> dict[str, list[str]]:
    kinds: dict[str, set[str]] = {}
    for index in indexes:
        for name, expected in index.attributes.items():
            kinds.setdefault(name, set()).update(expected)
    return {name: sorted(kinds[name]) for name in sorted(kinds)}


def _quarantine(directory: Directory, refused: list[dict[str, Any]], version: int) -> None:
    schema = pa.schema(
        {
            "id": pa.string(),
            "op": pa.string(),
            "sequence": pa.int64(),
            "expression": pa.string(),
            "error": pa.string(),
            "version": pa.int64(),
        }
    )
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
    directory.create(f"quarantine/{name}.arrow", to_bytes(pa.Table.from_pylist(rows, schema)))
