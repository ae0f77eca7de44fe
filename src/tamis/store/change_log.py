"""The change files of a store: few, however many changes there were, and read once.

Every change set is a small file. Four files of similar size are merged into one, and four of those again, as
in log-structured stores: a store with n changes on top of its snapshots has about three files for each power
of four in n, and each change is rewritten that many times. A row says which version it belongs to, so a
reader that has applied the changes up to some version takes only later ones from a merged file.

```text
sizes of files   64 | 16 16 | 4 | 1 1 1   + 1   ->   64 | 16 16 | 4 4   and with three more such steps   64 64
```
"""

import bisect
import uuid
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.store.changes import from_bytes, to_bytes
from tamis.store.directory import Directory
from tamis.store.host_cache import local_copy
from tamis.store.versions import ChangeFile, Version

FILES_MERGED = 4

MOST_BYTES_MERGED = 64 << 20
"""Files of this size are not merged any more: rewriting the snapshots comes next."""

BYTES_HELD = 64 << 20
FILES_HELD = 64
"""Change files that a process has read and keeps."""

_SORTED = {b"tamis.sorted": b"id"}

_held: OrderedDict[tuple[str, str], tuple[pa.Table, int]] = OrderedDict()


def append(
    directory: Directory, files: Sequence[ChangeFile], changes: pa.Table, version: int
) -> list[ChangeFile]:
    """The files with a new one for these changes, which make `version`; merged where there are many."""
    kept, table = list(files), changes
    first = first_to_merge([*(file.changes for file in kept), changes.num_rows])
    if sum(file.bytes for file in kept[first:]) < MOST_BYTES_MERGED:
        older = [read_changes(directory, file.name) for file in kept[first:]]
        table = merge_changes([*older, changes])
        kept = kept[:first]
    name = f"changes/{uuid.uuid4().hex}.arrow"
    data = to_bytes(table)
    directory.create(name, data)
    _hold(directory, name, table, len(data))
    return [*kept, ChangeFile(name, version, table.num_rows, len(data))]


def first_to_merge(sizes: Sequence[int]) -> int:
    """Which file is the first of those at the end that are merged; the last one when none are.

    >>> first_to_merge([16, 4, 1, 1, 1, 1]), first_to_merge([4, 4, 4, 1, 1, 1, 1]), first_to_merge([1, 1])
    (2, 0, 1)
    """
    first = last = len(sizes) - 1
    size = sizes[last]
    while True:
        level, run = _level(size), first
        while run > 0 and _level(sizes[run - 1]) <= level:
            run -= 1
        if first - run < FILES_MERGED - 1:
            return first
        first, size = run, sum(sizes[run:])


def _level(size: int) -> int:
    return (max(1, size).bit_length() - 1) // 2


def merge_changes(tables: Sequence[pa.Table]) -> pa.Table:
    """The last change of each id; later tables have later changes, and a table has one of each id.

    >>> older, newer = pa.table({"id": [1, 2], "op": ["a", "b"]}), pa.table({"id": [1], "op": ["c"]})
    >>> merge_changes([older, newer]).to_pydict()
    {'id': [2, 1], 'op': ['b', 'c']}
    """
    if len(tables) == 1:
        return tables[0]
    together = pa.concat_tables(tables, promote_options="default")
    numbered = pa.table({"id": together.column("id"), "row": np.arange(together.num_rows)})
    last = numbered.group_by("id").aggregate([("row", "max")]).column("row_max")
    return together.take(pa.array(np.sort(last.to_numpy())))


def read_changes(directory: Directory, name: str) -> pa.Table:
    """The changes in a file of a directory, which never change."""
    held = _held.pop((directory.url, name), None)
    if held is not None:
        table, size = held
    else:
        path = directory.local_path(name)
        data = directory.read(name) if path is None else path.read_bytes()
        table, size = from_bytes(data), len(data)
    _hold(directory, name, table, size)
    return table


def _hold(directory: Directory, name: str, table: pa.Table, size: int) -> None:
    """Keep what was read last, up to a number of bytes and of files."""
    _held[directory.url, name] = table, size
    while len(_held) > FILES_HELD or (
        len(_held) > 1 and sum(size for _, size in _held.values()) > BYTES_HELD
    ):
        _held.popitem(last=False)


def changes_after(directory: Directory, version: Version, after: int) -> Iterator[pa.Table]:
    """The changes of a version that are later than another one; -1 for all of them. Oldest first."""
    for file in version.changes:
        if file.last <= after:
            continue
        table = read_changes(directory, file.name)
        if after >= 0 and "version" in table.column_names:
            table = table.filter(pc.greater(table.column("version"), after))
        yield table


def known_sequences(directory: Directory, version: Version, ids: pa.ChunkedArray) -> dict[Any, int]:
    """The last sequence numbers of some subscriptions, for those of them that ever changed.

    A store may have seen millions of ids: only those that are asked for become Python objects.
    """
    wanted = pc.unique(ids)
    known: dict[Any, int] = {}
    for table in sequence_tables(directory, version):
        known.update(_looked_up(table, wanted))
    return known


def _looked_up(table: pa.Table, wanted: pa.Array) -> Iterator[tuple[Any, int]]:
    ids, sequences = table.column("id"), table.column("sequence")
    is_sorted = (table.schema.metadata or {}).items() >= _SORTED.items()
    if is_sorted and len(wanted) * 32 < table.num_rows and ids.num_chunks == 1:
        held = _Values(ids.chunk(0))
        for id in wanted.to_pylist():
            at = bisect.bisect_left(held, id)
            if at < len(held) and held[at] == id:
                yield id, sequences[at].as_py()
        return
    chosen = pc.is_in(ids, value_set=wanted)
    yield from zip(ids.filter(chosen).to_pylist(), sequences.filter(chosen).to_pylist(), strict=True)


class _Values(Sequence[Any]):
    """An Arrow column whose values become Python objects one at a time."""

    def __init__(self, column: pa.Array) -> None:
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    def __getitem__(self, at: Any) -> Any:
        return self._column[at].as_py()


def sequence_tables(directory: Directory, version: Version) -> Iterator[pa.Table]:
    """Ids and sequence numbers of all changes, file by file; a later file has the higher numbers."""
    if version.sequences is not None:
        path = directory.local_path(version.sequences) or local_copy(directory, version.sequences)
        yield pa.ipc.open_file(pa.memory_map(str(path))).read_all().select(["id", "sequence"])
    for file in version.changes:
        yield read_changes(directory, file.name).select(["id", "sequence"])


def put_sequences(directory: Directory, known: list[pa.Table]) -> str:
    """Put the last sequence number of each id into one file, sorted by id."""
    name = f"changes/{uuid.uuid4().hex}.arrow"
    last = pa.concat_tables(known).group_by("id").aggregate([("sequence", "max")])
    last = last.select(["id", "sequence_max"]).rename_columns(["id", "sequence"]).sort_by("id")
    directory.create(name, to_bytes(last.combine_chunks().replace_schema_metadata(_SORTED)))
    return name
