"""Refuses to overwrite a file that another process has saved since, unless told otherwise.

If two processes open a file, add to their index and save, each drops the additions of the other. So an index
remembers which file it was opened from; the check and the replacement happen under a lock on the folder of
the file.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple


class FileState(NamedTuple):
    """What tells a version of a file from the next one. `save` replaces the file, so the inode changes."""

    path: str
    device: int
    inode: int
    modified: int
    size: int


def state_of(path: str | os.PathLike[str]) -> FileState | None:
    """The state of a file, or None if there is none.

    >>> state_of("/no/such/file") is None
    True
    """
    real = os.path.realpath(path)
    try:
        found = os.stat(real)
    except OSError:
        return None
    return FileState(real, found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)


@contextmanager
def only_writer(path: str | os.PathLike[str]) -> Iterator[None]:
    """Wait until nobody else saves there, in this process or another, and keep others out meanwhile.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, only_writer(f"{folder}/rules.tamis"):
    ...     pass
    """
    try:
        import fcntl  # noqa: PLC0415 - not on Windows
    except ImportError:
        yield
        return
    folder = os.path.dirname(os.path.realpath(path))
    try:
        held = os.open(folder, os.O_RDONLY)
    except OSError:  # there is no such folder: saving says so
        yield
        return
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)
