"""Folds many changes into the snapshots: a new version with the same subscriptions.

Files without changes stay as they are. If the shards of a store have become uneven, or are in an order that
the router does not know, one process distributes the subscriptions again. Otherwise each shard is folded
separately (`fold_shard`), on all hosts.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from tamis.index import Index
from tamis.store.change_log import put_sequences, sequence_tables
from tamis.store.directory import Directory
from tamis.store.index_files import put_index
from tamis.store.open_shards import OpenShard, take
from tamis.store.placement import are_uneven, cut_shards_again, put_shard_routes, with_new_routes
from tamis.store.versions import IndexFile, Router, Version, create_version

CHANGES_BEFORE_FOLD = 20_000
"""Changes that may lie on top of snapshots, unless a tenth of the subscriptions is more."""

BYTES_BEFORE_FOLD = 64 << 20
"""The same in bytes of change files, unless a tenth of the snapshots is more."""


def fold_is_due(version: Version) -> bool:
    """Whether so much changed that every worker which opens the store would apply it for too long.

    >>> fold_is_due(Version(number=1, plan="replicated", ids="int", shards=[[]]))
    False
    """
    size = sum(file.bytes for file in version.changes)
    return version.waiting > max(CHANGES_BEFORE_FOLD, version.subscriptions // 10) or size > max(
        BYTES_BEFORE_FOLD, version.size // 10
    )


def can_wait(version: Version, shards: Sequence[OpenShard]) -> bool:
    """Whether folding may be left to several processes: shards lie well, and there is not far too much."""
    far_too_much = version.waiting > 2 * max(CHANGES_BEFORE_FOLD, version.subscriptions // 10)
    return len(shards) > 1 and not far_too_much and not _must_cut(version, shards)


def _must_cut(version: Version, shards: Sequence[OpenShard]) -> bool:
    return version.plan == "sharded" and (version.changed or are_uneven([held.indexes for held in shards]))


def fold_changes(directory: Directory, version: Version, shards: Sequence[OpenShard]) -> Version:
    """The version with its changes inside the snapshots; `shards` are open as of it."""
    if not _must_cut(version, shards):
        folded = [_folded(directory, version, held) for held in shards]
        return _joined(directory, version, version.number, folded)
    indexes, cuts = cut_shards_again([held.indexes for held in shards], version.ids)
    files = [[put_index(directory, index) for index in shard if len(index)] for shard in indexes]
    router = replace(version.router or Router(), cuts=cuts)
    after = replace(_without_changes(directory, version), changed=False, router=router, shards=files)
    routes = [put_shard_routes(directory, after, shard) for shard in indexes]
    return with_new_routes(directory, after, version, routes)


class FoldedShard(NamedTuple):
    """The files of a shard with its changes inside, and the one of its routes, if it has routes."""

    files: list[IndexFile]
    routes: str | None


def fold_shard(directory: Directory, version: Version, shard: int) -> FoldedShard:
    """Write the files of one shard as of a version, with its changes inside."""
    return _folded(directory, version, take(directory, version, shard))


def publish_folded(directory: Directory, version: Version, folded: Sequence[FoldedShard]) -> Version | None:
    """Publish the version after one whose shards were folded; None if another came first: nothing is lost."""
    after = _joined(directory, version, version.number + 1, folded)
    return after if create_version(directory, after) else None


def _folded(directory: Directory, version: Version, held: OpenShard) -> FoldedShard:
    return FoldedShard(_files(directory, held), put_shard_routes(directory, version, held.indexes))


def _joined(directory: Directory, version: Version, number: int, folded: Sequence[FoldedShard]) -> Version:
    after = replace(
        _without_changes(directory, version),
        number=number,
        base=number,
        shards=[shard.files for shard in folded],
    )
    return with_new_routes(directory, after, version, [shard.routes for shard in folded])


def _without_changes(directory: Directory, version: Version) -> Version:
    sequences = put_sequences(directory, list(sequence_tables(directory, version)))
    return replace(version, base=version.number, changes=[], sequences=sequences)


def _files(directory: Directory, held: OpenShard) -> list[IndexFile]:
    """The files of a shard: those that hold what they held, and new ones for the others."""
    return [
        put_index(directory, index) if held.changed(number) else held.files[number]
        for number, index in enumerate(held.indexes)
        if len(index)
    ]


def attributes_of(indexes: Iterable[Index]) -> dict[str, list[str]]:
    """The attributes that subscriptions ask for, with the kinds of values that any of them expects.

    >>> index = Index()
    >>> index.add("a", "x > 1")
    >>> attributes_of([index])
    {'x': ['number']}
    """
    kinds: dict[str, set[str]] = {}
    for index in indexes:
        for name, expected in index.attributes.items():
            kinds.setdefault(name, set()).update(expected)
    return {name: sorted(kinds[name]) for name in sorted(kinds)}
