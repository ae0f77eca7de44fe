"""The shards that a worker process has open: mapped once, and updated from version to version.

A worker updates an open shard to the next version by applying the changes in between. An older version, which
a replayed micro-batch may need, is opened from its files.
"""

from collections import OrderedDict

from tamis.index import Index
from tamis.store.change_log import changes_after
from tamis.store.changes import apply_changes
from tamis.store.directory import Directory
from tamis.store.host_cache import open_file
from tamis.store.versions import Version

SHARDS_HELD = 256
"""Shards that one worker process keeps open."""

LARGE_FILE = 500_000
"""Subscriptions in a file from which on additions go to a file of their own."""

_Key = tuple[str, int, tuple[str, ...]]

_opened: OrderedDict[_Key, "OpenShard"] = OrderedDict()


class OpenShard:
    """The indexes of one shard as of a version."""

    def __init__(self, directory: Directory, version: Version, shard: int) -> None:
        """Map every file of the shard; the changes of the version are not applied yet."""
        self.files = list(version.shards[shard])
        kept = {file.sha256 for files in version.shards for file in files}
        self.indexes = [open_file(directory, file, kept) for file in self.files]
        if not self.files or self.files[-1].subscriptions > LARGE_FILE:
            self.indexes.append(Index())
        self.generations = [index.generation for index in self.indexes]
        self.version = -1

    def changed(self, number: int) -> bool:
        """Whether an index is not what its file holds."""
        return number >= len(self.files) or self.indexes[number].generation != self.generations[number]


def _key(directory: Directory, version: Version, shard: int) -> _Key:
    return f"{directory.url}#{shard}", version.base, tuple(file.name for file in version.shards[shard])


def take(directory: Directory, version: Version, shard: int) -> OpenShard:
    """A shard as of a version, for whoever changes it; it is held again once that version is published."""
    key = _key(directory, version, shard)
    for other in [held for held in _opened if held[0] == key[0] and held != key]:
        del _opened[other]  # an older generation would keep its files' disk space
    held = _opened.pop(key, None)
    if held is None or held.version > version.number:
        held = OpenShard(directory, version, shard)
    for changes in changes_after(directory, version, held.version):
        apply_changes(held.indexes, changes, shard)
    held.version = version.number
    return held


def put_back(directory: Directory, version: Version, shard: int, held: OpenShard) -> None:
    """Hold a shard that is as of a published version."""
    held.version = version.number
    _opened[_key(directory, version, shard)] = held
    while len(_opened) > SHARDS_HELD:
        _opened.popitem(last=False)


def open_shard(directory: Directory, version: Version, shard: int) -> list[Index]:
    """The indexes of a shard as of a version."""
    held = take(directory, version, shard)
    put_back(directory, version, shard, held)
    return held.indexes


def open_all(directory: Directory, version: Version) -> list[Index]:
    """The indexes of all shards as of a version."""
    shards = range(len(version.shards))
    return [index for shard in shards for index in open_shard(directory, version, shard)]
