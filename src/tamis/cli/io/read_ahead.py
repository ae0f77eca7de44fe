"""Ends a command while Arrow still reads ahead.

Arrow reads CSV in its own thread, through our Python file. A command that stops early, because a row is bad
or the reader of its output has seen enough, leaves that thread behind, perhaps waiting for a pipe. While the
interpreter shuts down, the thread tries to enter it once more and is unwound inside Arrow's C++: the process
aborts with a core dump instead of its exit code. So such a command ends without shutting the interpreter
down.

Arrow parses a block when it has the next one, and reports an error only after reading ahead has ended. So a
pipe is read as its bytes arrive, not in blocks of a megabyte (`AsItComes`), and can be closed for the thread
that waits for more (`Stoppable`).
"""

import contextlib
import io
import os
import select
import sys
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

_Item = TypeVar("_Item")
_unfinished: set[object] = set()
"""What threads still read ahead of, one mark for each."""


def read_ahead(items: Iterable[_Item]) -> Iterator[_Item]:
    """Yield what a thread reads ahead, and remember that it runs until the last item was taken.

    >>> list(read_ahead([1, 2]))
    [1, 2]
    """
    mark = object()
    _unfinished.add(mark)
    yield from items
    _unfinished.discard(mark)


def leave_if_read_ahead(ending: SystemExit) -> None:
    """End the process with the code of `ending` if a thread still reads ahead; else return.

    >>> leave_if_read_ahead(SystemExit(0))
    """
    if not _unfinished:
        return
    code = ending.code if isinstance(ending.code, int) else 0 if ending.code is None else 1
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # closed, detached, or its disk is full: said before
            stream.flush()
    os._exit(code)


class Stoppable(io.RawIOBase):
    """A pipe that can be ended while another thread waits for more of it.

    >>> reading, writing = os.pipe()
    >>> pipe = Stoppable(os.fdopen(reading, "rb", buffering=0))
    >>> _ = os.write(writing, b"text")
    >>> pipe.read(10)
    b'text'
    >>> pipe.stop()
    >>> pipe.read(10)
    b''
    """

    def __init__(self, pipe: Any) -> None:
        """Take a reader of a file that the system knows, of which nothing was read."""
        self._pipe = pipe.detach() if isinstance(pipe, io.BufferedReader) else pipe
        can_wait = os.name == "posix" and isinstance(self._pipe, io.FileIO)
        ends: tuple[int | None, int | None] = os.pipe() if can_wait else (None, None)
        self._woken, self._wake = ends

    def readable(self) -> bool:
        """It is."""
        return True

    def fileno(self) -> int:
        """The number under which the system knows the pipe."""
        return int(self._pipe.fileno())

    def readinto(self, buffer: Any) -> Any:
        """Wait for bytes or for the end, whichever way it comes."""
        if self._woken is not None and self._woken in select.select([self._pipe, self._woken], [], [])[0]:
            return 0
        return self._pipe.readinto(buffer)

    def stop(self) -> None:
        """End it, for whoever reads now and later."""
        if self._wake is not None:
            os.write(self._wake, b".")


class AsItComes(io.RawIOBase):
    """A reader that waits for some bytes, not for as many as were asked for.

    >>> AsItComes(io.BufferedReader(io.BytesIO(b"text"))).read(10)
    b'text'
    """

    def __init__(self, reader: Any) -> None:
        """Take a buffered reader."""
        self._reader = reader

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """What is there."""
        block = self._reader.read1(len(buffer))
        buffer[: len(block)] = block
        return len(block)
