"""A local folder that counts what an object store would charge for, and what travels."""

from collections import Counter
from pathlib import Path

from tamis.store.directory import LocalDirectory


class CountedDirectory(LocalDirectory):
    """Counts requests, names that were listed, and bytes; files of changes are read as from afar.

    >>> import tempfile
    >>> folder = CountedDirectory(tempfile.mkdtemp())
    >>> folder.create("changes/a", b"1234"), folder.list("changes"), folder.read("changes/a")
    (True, ['a'], b'1234')
    >>> dict(folder.counted)
    {'requests': 3, 'bytes': 8, 'names': 1}
    """

    def __init__(self, path: str) -> None:
        """Count from zero."""
        super().__init__(path)
        self.counted: Counter[str] = Counter()

    def read(self, name: str) -> bytes:
        """Read a file."""
        data = super().read(name)
        self.counted.update(requests=1, bytes=len(data))
        return data

    def create(self, name: str, data: bytes) -> bool:
        """Write a file unless there is one."""
        self.counted.update(requests=1, bytes=len(data))
        return super().create(name, data)

    def list(self, folder: str) -> list[str]:
        """List a folder."""
        found = super().list(folder)
        self.counted.update(requests=1, names=len(found))
        return found

    def age(self, name: str) -> float | None:
        """Ask how old a file is."""
        self.counted.update(requests=1)
        return super().age(name)

    def local_path(self, name: str) -> Path | None:
        """Where a file can be mapped: nowhere, if it is one of changes."""
        return None if name.startswith("changes/") else super().local_path(name)
