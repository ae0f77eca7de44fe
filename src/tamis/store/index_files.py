"""Writes an index to a directory, as a file with a unique name that a version can refer to."""

import uuid
from pathlib import Path

from tamis.errors import SnapshotError
from tamis.index import Index
from tamis.store.directory import Directory
from tamis.store.host_cache import sha256_of
from tamis.store.versions import IndexFile


def put_index(directory: Directory, index: Index) -> IndexFile:
    """Save an index into the directory under a name of its own.

    >>> import tempfile
    >>> from tamis.store.directory import open_directory
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     put_index(open_directory(folder), Index()).subscriptions
    0
    """
    name = f"snapshots/{uuid.uuid4().hex}.tamis"
    with directory.scratch() as draft:
        try:
            index.save(draft)
            file = _described(name, draft, len(index))
            directory.upload(name, draft)
        except OSError as error:
            raise SnapshotError(
                f"cannot write a snapshot to {directory.url}: {error.strerror or error}. The version before "
                "this one stays in use; make room, or name another directory."
            ) from error
    return file


def _described(name: str, path: Path, subscriptions: int) -> IndexFile:
    return IndexFile(name, bytes=path.stat().st_size, sha256=sha256_of(path), subscriptions=subscriptions)
