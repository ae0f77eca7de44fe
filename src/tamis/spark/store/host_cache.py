"""Index files on an executor host: fetched once, mapped, and shared by all its Python workers.

A file in a directory that the host mounts is mapped where it lies. Any other is fetched into a folder of the
host (`TAMIS_CACHE`, or one in the temporary folder), under a lock, so that ten workers fetch it once, and
checked against the version's checksum; a copy that was deleted or damaged is fetched again. Every worker
process keeps what it opened for its next task.
"""

import fcntl
import hashlib
import os
import tempfile
import time
import uuid
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tamis.errors import SnapshotError
from tamis.index import Index
from tamis.spark.store.changes import apply_changes, read_changes
from tamis.spark.store.directory import Directory
from tamis.spark.store.versions import IndexFile, Version

OPEN_SHARDS = 64
"""Shards that one worker process keeps open."""

UNUSED_FOR = 7 * 24 * 3600.0
"""Seconds after which a fetched copy that nobody opened is removed."""

_opened: OrderedDict[tuple[str, tuple[str, ...]], "OpenShard"] = OrderedDict()


class OpenShard:
    """The indexes of one shard, and how many files of changes were applied to them."""

    def __init__(self, directory: Directory, files: list[IndexFile]) -> None:
        """Map every file of the shard."""
        self.indexes = [open_file(directory, file) for file in files] or [Index()]
        self.applied: list[str] = []


def open_shard(directory: Directory, version: Version, shard: int) -> list[Index]:
    """The indexes of a shard as of a version; the ones of this process's last call where possible."""
    files = version.shards[shard]
    key = (f"{directory.url}#{shard}", tuple(file.sha256 for file in files))
    for other in [held for held in _opened if held[0] == key[0] and held != key]:
        del _opened[other]  # an older generation would keep its files' disk space
    held = _opened.pop(key, None)
    if held is None or held.applied != version.changes[: len(held.applied)]:
        held = OpenShard(directory, files)
    for name in version.changes[len(held.applied) :]:
        apply_changes(held.indexes, read_changes(directory, name), adds=shard == 0)
        held.applied.append(name)
    _opened[key] = held
    while len(_opened) > OPEN_SHARDS:
        _opened.popitem(last=False)
    return held.indexes


def open_file(directory: Directory, file: IndexFile) -> Index:
    """Map an index file and check it; a damaged copy is fetched again, a damaged original is an error."""
    path = directory.local_path(file.name)
    if path is not None:
        return _checked(path, file)
    with suppress(SnapshotError, FileNotFoundError):
        return _checked(_fetched(directory, file), file)
    _copy_of(file).unlink(missing_ok=True)
    return _checked(_fetched(directory, file), file)


def _checked(path: Path, file: IndexFile) -> Index:
    size = path.stat().st_size
    if size != file.bytes:
        raise SnapshotError(f"{path} has {size} bytes, not {file.bytes}: it was damaged after it was written")
    index = Index.open(path)
    index.exists({})  # verifies what matching will read
    return index


def cache_folder() -> Path:
    """The folder of this host for fetched copies.

    >>> cache_folder().is_absolute()
    True
    """
    configured = os.environ.get("TAMIS_CACHE")
    return Path(configured or Path(tempfile.gettempdir()) / f"tamis-cache-{os.getuid()}").absolute()


def _copy_of(file: IndexFile) -> Path:
    return cache_folder() / f"{file.sha256}.tamis"


def _fetched(directory: Directory, file: IndexFile) -> Path:
    copy = _copy_of(file)
    copy.parent.mkdir(parents=True, exist_ok=True)
    with _locked(copy.with_suffix(".lock")):
        if not copy.exists():
            _remove_unused(copy.parent)
            _fetch(directory, file, copy)
    os.utime(copy)
    return copy


def _fetch(directory: Directory, file: IndexFile, copy: Path) -> None:
    draft = copy.with_name(f".{copy.name}.{uuid.uuid4().hex}")
    try:
        directory.download(file.name, draft)
        if sha256_of(draft) != file.sha256:
            raise SnapshotError(
                f"{directory.url}/{file.name} does not have the content that its version names: it was "
                "damaged after it was written, or changed. Build the index again."
            )
        os.replace(draft, copy)
    finally:
        draft.unlink(missing_ok=True)


def _remove_unused(folder: Path) -> None:
    for path in folder.glob("*.tamis"):
        with suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > UNUSED_FOR:
                path.unlink()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def sha256_of(path: Path) -> str:
    """The checksum of a file.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     sha256_of(Path(file.name))[:8]
    'e3b0c442'
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
