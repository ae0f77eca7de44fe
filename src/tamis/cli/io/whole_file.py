"""A file that is written atomically: under a temporary name next to its place, and renamed at the end.

The name says whether it is compressed (`.gz`, `.zst`). A command that fails or is interrupted leaves the old
file unchanged.
"""

import gzip
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tamis.cli.failure import UserError


class WholeFile:
    """Write with `text` or `bytes`; then `finish` or `abandon`.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = WholeFile(Path(folder) / "x.txt")
    ...     _ = file.text().write("all of it")
    ...     before = os.path.exists(f"{folder}/x.txt")
    ...     file.finish()
    ...     before, Path(folder, "x.txt").read_text()
    (False, 'all of it')
    """

    def __init__(self, path: Path) -> None:
        """Open a file next to `path`; a pipe or device (`/dev/null`) is written directly."""
        self._path = path
        self._beside: Path | None = None
        try:
            if path.exists() and not path.is_file():
                self._raw: Any = path.open("wb")
            else:
                mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
                number, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.resolve().parent)
                os.chmod(number, mode)
                self._raw, self._beside = os.fdopen(number, "wb"), Path(name)
        except OSError as error:
            raise UserError(f"cannot write {path}: {error.strerror}") from None
        self._layers: list[Any] = [self._raw]

    def bytes(self) -> Any:
        """The stream to write bytes to."""
        suffix = self._path.suffix.lower()
        if suffix == ".gz":
            self._layers.append(gzip.GzipFile(fileobj=self._raw, mode="wb", mtime=0))
        elif suffix == ".zst":
            import pyarrow as pa

            self._layers.append(pa.CompressedOutputStream(pa.PythonFile(self._raw), "zstd"))
        return self._layers[-1]

    def text(self) -> Any:
        """The stream to write text to."""
        self._layers.append(_Text(self.bytes()))
        return self._layers[-1]

    def finish(self) -> None:
        """Put the file into its place."""
        for layer in reversed(self._layers):
            layer.close()
        if self._beside is not None:
            self._beside.replace(self._path.resolve())
            self._beside = None

    def abandon(self) -> None:
        """Remove what was written."""
        for layer in reversed(self._layers):
            with suppress(OSError, ValueError):
                layer.close()
        if self._beside is not None:
            self._beside.unlink(missing_ok=True)


class _Text:
    """Text as UTF-8 into a stream that only takes bytes."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        self._stream.write(text.encode())

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Nobody reads the file before it is finished."""

    def close(self) -> None:
        """What is below is closed by the file."""


@contextmanager
def whole_file(path: Path) -> Iterator[Any]:
    """A text stream to a file that is there after the block, or not at all.

    >>> with tempfile.TemporaryDirectory() as folder, suppress(RuntimeError):
    ...     with whole_file(Path(folder) / "x.txt") as stream:
    ...         stream.write("half")
    ...         raise RuntimeError
    """
    file = WholeFile(path)
    try:
        yield file.text()
    except BaseException:
        file.abandon()
        raise
    file.finish()


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
