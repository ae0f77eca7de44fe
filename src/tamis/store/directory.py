"""A directory that the driver's tasks and all executors reach: a local path, NFS, HDFS, or object storage.

Files in it are written once and never modified; readers see a file completely or not at all. The versions of
an index need only this, and creating a file only if it does not exist (`create`). Local paths are used
directly; everything with a protocol (`s3://`, `hdfs://`, `gs://`, ...) goes through fsspec.
"""

import ctypes
import errno
import inspect
import os
import posixpath
import re
import shutil
import tempfile
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from tamis._extras import missing_extra
from tamis.errors import ArgumentError

SINGLE_WRITER = "single-writer+"
"""Before a path or URL: one process at a time writes there, and the file system need not part writers."""


class Directory(ABC):
    """Named files under one root; names are relative and use `/`."""

    creates_once = True
    """Whether `create` is atomic among all hosts; if not, somebody else must coordinate them."""

    def __init__(self, url: str) -> None:
        """Remember where it is; nothing is created."""
        self.url = url

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel to executors as the URL."""
        return open_directory, (self.url,)

    @abstractmethod
    def read(self, name: str) -> bytes:
        """The bytes of a file; `FileNotFoundError` when there is none."""

    @abstractmethod
    def create(self, name: str, data: bytes) -> bool:
        """Write a file unless there is one with this name; whether it was written. Atomic among all hosts."""

    @abstractmethod
    def upload(self, name: str, source: Path) -> None:
        """Put a local file here under a new name, whole or not at all. The local file may be moved."""

    @abstractmethod
    def download(self, name: str, target: Path) -> None:
        """Copy a file to a local path."""

    @abstractmethod
    def drafts(self, folder: str) -> list[str]:
        """The names of what writers that were killed left unfinished in a folder."""

    @abstractmethod
    def list(self, folder: str) -> list[str]:
        """The names of the files in a folder, sorted; empty when there is no such folder."""

    @abstractmethod
    def age(self, name: str) -> float | None:
        """Seconds since a file was written, or None when it is gone."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Remove a file; no error when there is none."""

    @abstractmethod
    def remove_if_empty(self, folder: str) -> None:
        """Remove a folder without files, where folders exist without them."""

    def local_path(self, name: str) -> Path | None:
        """Where the file can be mapped without fetching it, if it can."""
        return None

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A local path to prepare a file at before `upload`."""
        with tempfile.TemporaryDirectory(prefix="tamis-") as folder:
            yield Path(folder) / "file"


def open_directory(url: str | os.PathLike[str]) -> Directory:
    """The directory at a path or URL.

    >>> open_directory("/data/rules").url
    '/data/rules'
    >>> open_directory("file:///data/my%20rules").url
    '/data/my rules'
    >>> open_directory("single-writer+/Volumes/main/default/rules").url
    'single-writer+/Volumes/main/default/rules'
    """
    text = os.fspath(url)
    if text.startswith(SINGLE_WRITER):
        from tamis.store.single_writer import SingleWriterDirectory  # noqa: PLC0415 - a kind of directory

        return SingleWriterDirectory(open_directory(text.removeprefix(SINGLE_WRITER)))
    parsed = urlparse(text)
    if parsed.scheme == "file":
        return LocalDirectory(unquote(parsed.path))
    if "://" in text:
        return _remote(text)
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", text):
        scheme, _, rest = text.partition(":")
        raise ArgumentError(f"{text} is neither a path nor a URL; write {scheme}://{rest}")
    return LocalDirectory(text)


_others: list[Callable[[str], Directory | None]] = []


def open_others_with(opener: Callable[[str], Directory | None]) -> None:
    """Ask `opener` for directories that fsspec cannot open here; it gives None for what it does not know.

    >>> class Elsewhere(RemoteDirectory):
    ...     def __init__(self, url):
    ...         Directory.__init__(self, url)
    >>> open_others_with(lambda url: Elsewhere(url) if url.startswith("elsewhere:") else None)
    >>> open_directory("elsewhere://at/all").url
    'elsewhere://at/all'
    """
    if opener not in _others:
        _others.append(opener)


def _remote(url: str) -> Directory:
    try:
        return RemoteDirectory(url)
    except ArgumentError:
        for opener in _others:
            if (found := opener(url)) is not None:
                return found
        raise


_DRAFT = re.compile(r"\.(.+\.|probe-)[0-9a-f]{32}")


def is_draft(name: str) -> bool:
    """Whether a file is one that a writer had begun; other hidden files are not ours.

    >>> is_draft(f".7.json.{'0f' * 16}"), is_draft(".gitignore")
    (True, False)
    """
    return _DRAFT.fullmatch(name) is not None


class LocalDirectory(Directory):
    """A folder of this host, or one that all hosts mount at the same path."""

    def __init__(self, path: str) -> None:
        """Take a path; it must be absolute, because tasks run in folders of their own."""
        if not os.path.isabs(path):
            path = os.path.abspath(path)
        super().__init__(path)
        self._root = Path(path)

    def read(self, name: str) -> bytes:
        """See `Directory.read`."""
        return (self._root / name).read_bytes()

    def create(self, name: str, data: bytes) -> bool:
        """See `Directory.create`: a hard link is created once, with its content."""
        target = self._root / name
        if target.exists():
            return False
        draft = self._draft(target)
        try:
            _write_durably(draft, data)
            _link_once(draft, target)
        except FileExistsError:
            return False
        finally:
            draft.unlink(missing_ok=True)
        return True

    def upload(self, name: str, source: Path) -> None:
        """See `Directory.upload`: the file is renamed, so it is copied first if it lies elsewhere."""
        target = self._root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.stat().st_dev == target.parent.stat().st_dev:
            os.replace(source, target)
            return
        draft = self._draft(target)
        try:
            shutil.copyfile(source, draft)
            with draft.open("rb") as copied:
                os.fsync(copied.fileno())
            os.replace(draft, target)
        finally:
            draft.unlink(missing_ok=True)

    def download(self, name: str, target: Path) -> None:
        """See `Directory.download`."""
        shutil.copyfile(self._root / name, target)

    def drafts(self, folder: str) -> list[str]:
        """See `Directory.drafts`."""
        try:
            return sorted(filter(is_draft, os.listdir(self._root / folder)))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def list(self, folder: str) -> list[str]:
        """See `Directory.list`."""
        try:
            found = os.listdir(self._root / folder)
        except FileNotFoundError:
            return []
        return sorted(name for name in found if not name.startswith("."))

    def age(self, name: str) -> float | None:
        """See `Directory.age`."""
        try:
            return time.time() - (self._root / name).stat().st_mtime
        except FileNotFoundError:
            return None

    def delete(self, name: str) -> None:
        """See `Directory.delete`."""
        (self._root / name).unlink(missing_ok=True)

    def remove_if_empty(self, folder: str) -> None:
        """See `Directory.remove_if_empty`."""
        with suppress(OSError):
            (self._root / folder).rmdir()

    def local_path(self, name: str) -> Path | None:
        """See `Directory.local_path`."""
        return self._root / name

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A hidden path inside, so that `upload` is a rename and a full disk is noticed before it."""
        draft = self._draft(self._root / "snapshots" / "file")
        try:
            yield draft
        finally:
            draft.unlink(missing_ok=True)

    @staticmethod
    def _draft(target: Path) -> Path:
        target.parent.mkdir(parents=True, exist_ok=True)
        return target.parent / f".{target.name}.{uuid.uuid4().hex}"


_CREATES_ONCE = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl"}
"""Protocols whose stores can be asked to create an object only if there is none."""

_RENAME_REPLACES_NOTHING = {"hdfs", "arrow_hdfs", "webhdfs"}
"""Protocols whose rename is atomic and fails when the target exists, but that create by overwriting."""

_ONE_WRITER = f"If only one process at a time writes there, promise so: put {SINGLE_WRITER} before its path."
"""The way out on a file system that cannot tell writers apart."""

_checked_roots: set[str] = set()


def _protocol(files: Any) -> str:
    named = files.protocol
    return str(named if isinstance(named, str) else named[0]).lower()


def _draft_of(path: str) -> str:
    return posixpath.join(posixpath.dirname(path), f".{posixpath.basename(path)}.{uuid.uuid4().hex}")


class RemoteDirectory(Directory):
    """A folder of a file system that fsspec knows."""

    def __init__(self, url: str) -> None:
        """Find the file system of the URL."""
        super().__init__(url.rstrip("/"))
        try:
            import fsspec  # noqa: PLC0415 - only URLs need it
        except ImportError as missing:
            instead = "; a path of a file system that all executors mount needs none"
            raise ArgumentError(missing_extra(url, "store") + instead) from missing
        try:
            self._files, self._root = fsspec.core.url_to_fs(url)
        except (ImportError, ValueError, OSError) as unknown:
            raise ArgumentError(
                f"{url}: {unknown}. Each protocol has a package for fsspec: s3fs for s3:// and s3a://, gcsfs "
                "for gs://, adlfs for abfs:// and abfss://; install it here and on every executor."
            ) from unknown

    def _path(self, name: str) -> str:
        return posixpath.join(self._root, name)

    def read(self, name: str) -> bytes:
        """See `Directory.read`."""
        data: bytes = self._files.cat_file(self._path(name))
        return data

    def create(self, name: str, data: bytes) -> bool:
        """See `Directory.create`: exclusive creation, or a rename where that replaces nothing."""
        path = self._path(name)
        self._make_folder(path)
        if _protocol(self._files) in _RENAME_REPLACES_NOTHING:
            return self._created_by_rename(path, data)
        self._check_exclusive_creation()
        return self._created(path, data)

    def _created(self, path: str, data: bytes) -> bool:
        try:
            self._files.pipe_file(path, data, mode="create")
        except FileExistsError:
            return False
        return True

    def _created_by_rename(self, path: str, data: bytes) -> bool:
        draft = _draft_of(path)
        self._files.pipe_file(draft, data)
        try:
            self._files.mv(draft, path)
        except OSError:
            if not self._files.exists(path):
                raise
        # Some say that they did not rename by an error, some by a result that fsspec drops.
        if not self._files.exists(draft):
            return True
        self._files.rm_file(draft)
        if not self._files.exists(path):
            raise OSError(
                f"{path} could not be written: the file system did not rename it, and reported no error"
            )
        return False

    def _check_exclusive_creation(self) -> None:
        """Raise unless a file is created only if there is none: two writers must never both win."""
        if self.url in _checked_roots:
            return
        protocol = _protocol(self._files)
        own = getattr(type(self._files), "_pipe_file", None) or type(self._files).pipe_file
        if protocol not in _CREATES_ONCE or "mode" not in inspect.signature(own).parameters:
            raise ArgumentError(
                f"{self.url}: the file system {protocol!r}, as fsspec reaches it here, cannot create a file "
                "only if there is none, and two writers would overwrite each other's versions. Use a path "
                f"that all hosts mount, hdfs://, or an object store (s3://, gs://, abfs://). {_ONE_WRITER}"
            )
        probe = self._path(f".probe-{uuid.uuid4().hex}")
        try:
            if not self._created(probe, b"first") or self._created(probe, b"second"):
                raise ArgumentError(
                    f"{self.url}: the object store overwrites files that it was asked to create only if "
                    "there are none (conditional writes); two writers would lose each other's versions. "
                    f"{_ONE_WRITER}"
                )
        finally:
            self.delete(posixpath.basename(probe))
        _checked_roots.add(self.url)

    def upload(self, name: str, source: Path) -> None:
        """See `Directory.upload`: an object appears whole; elsewhere, a draft is renamed."""
        path = self._path(name)
        self._make_folder(path)
        if _protocol(self._files) in _CREATES_ONCE:
            self._files.put_file(str(source), path)
            return
        draft = _draft_of(path)
        self._files.put_file(str(source), draft)
        self._files.mv(draft, path)

    def _make_folder(self, path: str) -> None:
        """Make the folder of a file, where there are folders: asking an object store costs a request."""
        if _protocol(self._files) not in _CREATES_ONCE:
            self._files.makedirs(posixpath.dirname(path), exist_ok=True)

    def download(self, name: str, target: Path) -> None:
        """See `Directory.download`."""
        self._files.get_file(self._path(name), str(target))

    def drafts(self, folder: str) -> list[str]:
        """See `Directory.drafts`."""
        return sorted(filter(is_draft, self._names(folder)))

    def _names(self, folder: str) -> list[str]:
        self._files.invalidate_cache()
        try:
            found = self._files.ls(self._path(folder), detail=False)
        except FileNotFoundError:
            return []
        return [name for entry in found if (name := posixpath.basename(entry.rstrip("/")))]

    def list(self, folder: str) -> list[str]:
        """See `Directory.list`."""
        return sorted(name for name in self._names(folder) if not name.startswith("."))

    def age(self, name: str) -> float | None:
        """See `Directory.age`."""
        try:
            modified = self._files.modified(self._path(name))
        except FileNotFoundError:
            return None
        except NotImplementedError:  # nobody can tell, so it is as good as new
            return 0.0 if self._files.exists(self._path(name)) else None
        return float((datetime.now(UTC) - modified.astimezone(UTC)).total_seconds())

    def remove_if_empty(self, folder: str) -> None:
        """See `Directory.remove_if_empty`: an object store has no folders."""
        if _protocol(self._files) not in _CREATES_ONCE:
            with suppress(OSError):
                self._files.rmdir(self._path(folder))

    def delete(self, name: str) -> None:
        """See `Directory.delete`."""
        try:
            self._files.rm_file(self._path(name))
        except FileNotFoundError:
            return


_NO_HARD_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
_AT_FDCWD = -100
_RENAME_NOREPLACE = 1


def _link_once(draft: Path, target: Path) -> None:
    """Give a draft its name unless that is taken (`FileExistsError`): by a hard link, or by a rename."""
    try:
        os.link(draft, target)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        _rename_once(draft, target, error)


def _rename_once(draft: Path, target: Path, refused: OSError) -> None:
    """Rename without replacing, which only the system call itself offers."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is not None:
        names = (os.fsencode(draft), os.fsencode(target))
        if rename(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_NOREPLACE) == 0:
            return
        if ctypes.get_errno() == errno.EEXIST:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    raise ArgumentError(
        f"{target.parent}: its file system has no hard links ({refused.strerror}) and cannot rename without "
        "replacing, so two writers would overwrite each other's versions. Keep the index on another one. "
        f"{_ONE_WRITER}"
    ) from refused


def _write_durably(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
