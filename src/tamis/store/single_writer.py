"""A directory on a file system that cannot create a file only if there is none, for one writer at a time.

Databricks Volumes, SFTP and SMB are such file systems. If files can only be read and written, no protocol
lets several processes agree on one value, so they must be coordinated. For versions, the user does so: the
prefix `single-writer+` promises that one process at a time writes the store. For the versions of
micro-batches it is the driver of the query: see `tamis.spark.store.pins`. Attempts of one task may overlap
nevertheless. They derive the same version from the same changes, so it does not matter whose file remains.

Files are prepared elsewhere and fetched before they are mapped, because such file systems may only be able to
write from beginning to end.
"""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from tamis.store.directory import SINGLE_WRITER, Directory


class SingleWriterDirectory(Directory):
    """Another directory, in which a file is created by looking first.

    >>> import tempfile
    >>> from tamis.store.directory import open_directory
    >>> directory = open_directory(f"single-writer+{tempfile.mkdtemp()}")
    >>> directory.create("versions/1", b"first"), directory.create("versions/1", b"second")
    (True, False)
    >>> directory.read("versions/1"), directory.creates_once
    (b'first', False)
    """

    creates_once = False

    def __init__(self, directory: Directory) -> None:
        """Wrap a directory of any file system."""
        super().__init__(SINGLE_WRITER + directory.url)
        self._directory = directory

    def create(self, name: str, data: bytes) -> bool:
        """See `Directory.create`, but atomic only among those who do not create this file at once."""
        if self._directory.age(name) is not None:
            return False
        with TemporaryDirectory(prefix="tamis-") as folder:
            draft = Path(folder) / "file"
            with draft.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            self._directory.upload(name, draft)
        # Notices most of those who break the promise: whoever wrote last has created the file.
        return self._directory.read(name) == data

    def read(self, name: str) -> bytes:
        """See `Directory.read`."""
        return self._directory.read(name)

    def upload(self, name: str, source: Path) -> None:
        """See `Directory.upload`."""
        self._directory.upload(name, source)

    def download(self, name: str, target: Path) -> None:
        """See `Directory.download`."""
        self._directory.download(name, target)

    def drafts(self, folder: str) -> list[str]:
        """See `Directory.drafts`."""
        return self._directory.drafts(folder)

    def list(self, folder: str) -> list[str]:
        """See `Directory.list`."""
        return self._directory.list(folder)

    def age(self, name: str) -> float | None:
        """See `Directory.age`."""
        return self._directory.age(name)

    def delete(self, name: str) -> None:
        """See `Directory.delete`."""
        self._directory.delete(name)

    def remove_if_empty(self, folder: str) -> None:
        """See `Directory.remove_if_empty`."""
        self._directory.remove_if_empty(folder)
