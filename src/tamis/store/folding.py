"""Changes become part of the snapshots once there are many: a new version with the same subscriptions.

Files that no change concerned stay as they are. Where the shards of a store have become uneven, or lie in an
order that the router does not know, subscriptions are spread over them again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tamis.index import Index
from tamis.store.change_log import put_sequences, sequence_tables
from tamis.store.directory import Directory
from tamis.store.index_files import put_index
from tamis.store.open_shards import OpenShard
from tamis.store.placement import are_uneven, cut_shards_again, with_new_routes
from tamis.store.versions import IndexFile, Router, Version

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


def fold_changes(directory: Directory, version: Version, shards: Sequence[OpenShard]) -> Version:
    """The version with its changes inside the snapshots; `shards` are open as of it."""
    indexes = [held.indexes for held in shards]
    sequences = put_sequences(directory, list(sequence_tables(directory, version)))
    after = replace(version, base=version.number, changes=[], sequences=sequences)
    if version.plan == "sharded" and (version.changed or are_uneven(indexes)):
        indexes, cuts = cut_shards_again(indexes, version.ids)
        files = [[put_index(directory, index) for index in shard if len(index)] for shard in indexes]
        after = replace(after, changed=False, router=replace(version.router or Router(), cuts=cuts))
    else:
        files = [_files(directory, held) for held in shards]
    return with_new_routes(directory, replace(after, shards=files), version, indexes)


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
