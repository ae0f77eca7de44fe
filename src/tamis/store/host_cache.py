"""Index files on an executor host: fetched once, mapped, and shared by all its Python workers.

A file in a mounted directory is mapped in place. Any other is fetched into a folder of the host
(`TAMIS_CACHE`, or one in the temporary folder), under a lock, so that ten workers fetch it once, and compared
with the checksum in the version. A copy that was deleted or damaged is fetched again.
"""

import fcntl
import hashlib
import os
import tempfile
import time
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tamis.errors import SnapshotError
from tamis.index import Index
from tamis.store.directory import Directory
from tamis.store.versions import IndexFile

UNUSED_FOR = 7 * 24 * 3600.0
"""Seconds after which a fetched copy that nobody opened is removed."""

SUPERSEDED_FOR = 3600.0
"""Seconds after which a copy goes that nobody opened and the version at hand does not name any more."""


def open_file(directory: Directory, file: IndexFile, kept: Collection[str] = ()) -> Index:
    """Map an index file and check it; a damaged copy is fetched again, a damaged original is an error.

    `kept` are the checksums of the files that the version at hand names: copies of other files of the same
    directory need not stay for long.
    """
    path = directory.local_path(file.name)
    if path is not None:
        return _checked(path, file)
    with suppress(SnapshotError, FileNotFoundError):
        return _checked(_fetched(directory, file, kept), file)
    _copy_of(directory, file).unlink(missing_ok=True)
    return _checked(_fetched(directory, file, kept), file)


def local_copy(directory: Directory, name: str) -> Path:
    """A copy on this host of a file that never changes and that checks itself, as Arrow files do."""
    copy = _folder_of(directory) / name.replace("/", "-")
    copy.parent.mkdir(parents=True, exist_ok=True)
    with _locked(copy.with_suffix(".lock")):
        if not copy.exists():
            draft = copy.with_name(f".{copy.name}.{uuid.uuid4().hex}")
            try:
                directory.download(name, draft)
                os.replace(draft, copy)
            finally:
                draft.unlink(missing_ok=True)
    os.utime(copy)
    return copy


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


def _folder_of(directory: Directory) -> Path:
    """The copies of one directory lie together."""
    return cache_folder() / hashlib.sha256(directory.url.encode()).hexdigest()[:16]


def _copy_of(directory: Directory, file: IndexFile) -> Path:
    return _folder_of(directory) / f"{file.sha256}.tamis"


def _fetched(directory: Directory, file: IndexFile, kept: Collection[str]) -> Path:
    copy = _copy_of(directory, file)
    copy.parent.mkdir(parents=True, exist_ok=True)
    with _locked(copy.with_suffix(".lock")):
        if not copy.exists():
            _remove_unused(copy.parent, {file.sha256, *kept})
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


def _remove_unused(folder: Path, kept: Collection[str]) -> None:
    """Remove copies that nobody opened for long; those that a later version superseded sooner."""
    for path in folder.parent.glob("*/*"):
        superseded = path.parent == folder and path.suffix != ".lock" and path.stem not in kept
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > (SUPERSEDED_FOR if superseded else UNUSED_FOR):
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
