"""The durable map of a broker: a file to which changes are appended, each synced to disk before it counts.

One change set is one line: a checksum, a space, a JSON object, a newline. A torn last line, from a crash in
the middle of a write, is cut off on opening; it was never acknowledged. Damage anywhere else is an error.
When most lines are outdated, the file is written anew and replaced atomically.
"""

import asyncio
import contextlib
import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tamis.pubsub.net.connection import StoreError
from tamis.pubsub.net.replay import Replay


class FileStore:
    """A `Store` in a file.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "b1.log"
    >>> with FileStore(path) as store:
    ...     store.append({"epoch": 1, "gone": 2})
    ...     store.append({"gone": None})
    >>> with FileStore(path) as store:
    ...     store.values
    {'epoch': 1}
    """

    def __init__(self, path: Path | str) -> None:
        """Open a file, or make it; another process that has it open is an error."""
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._replay = Replay()
        self._file = self._open()

    @property
    def values(self) -> Mapping[str, Any]:
        """The map as it is now."""
        return self._replay.values

    def __enter__(self) -> "FileStore":
        """Use as a context manager."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    async def save(self, changes: Mapping[str, Any]) -> None:
        """Append without keeping others waiting."""
        await asyncio.to_thread(self.append, changes)

    def append(self, changes: Mapping[str, Any]) -> None:
        """Make changes durable; a value of None removes its key. On return they are on disk.

        Raises `StoreError` if they cannot be written; the store must not be used after that.
        """
        try:
            self._file.write(_line(changes))
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise StoreError(f"cannot write {self.path}: {error.strerror}") from error
        self._replay.apply(changes)
        if self._replay.is_mostly_outdated:
            self.compact()

    def compact(self) -> None:
        """Write the file anew without what is outdated."""
        fresh = self.path.with_suffix(".new")
        try:
            records = [_line(chunk) for chunk in self._replay.chunks()]
            with fresh.open("wb") as file:
                file.writelines(records)
                file.flush()
                os.fsync(file.fileno())
            _lock(fresh_file := fresh.open("ab"), self.path)
            fresh.replace(self.path)
            _sync_folder(self.path.parent)
        except OSError as error:
            raise StoreError(f"cannot write {fresh}: {error.strerror}") from error
        self._file.close()
        self._file = fresh_file
        self._replay.records = len(records)

    def close(self) -> None:
        """Close the file."""
        with contextlib.suppress(OSError):  # whatever could not be written was reported by `append`
            self._file.close()

    def _open(self) -> Any:
        try:
            file = self.path.open("ab+")
        except OSError as error:
            raise StoreError(f"cannot open {self.path}: {error.strerror}") from error
        _lock(file, self.path)
        file.seek(0)
        end = 0
        for line in file:
            changes = _changes(line)
            if changes is None:
                if file.read(1):
                    raise StoreError(
                        f"{self.path} is damaged at byte {end}, before its end; restore it from a copy"
                    )
                break
            self._replay.apply(changes)
            end += len(line)
        file.truncate(end)
        _sync_folder(self.path.parent)
        return file


def _line(changes: Mapping[str, Any]) -> bytes:
    text = json.dumps(changes, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _changes(line: bytes) -> dict[str, Any] | None:
    checksum, _, text = line.rstrip(b"\n").partition(b" ")
    if not line.endswith(b"\n") or checksum != b"%08x" % zlib.crc32(text):
        return None
    changes: dict[str, Any] = json.loads(text)
    return changes


def _lock(file: Any, path: Path) -> None:
    import fcntl  # noqa: PLC0415 - POSIX only, like the rest of the server

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise StoreError(f"{path} is in use by another broker") from None


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
