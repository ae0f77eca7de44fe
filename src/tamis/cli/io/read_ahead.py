"""How a command ends while Arrow reads ahead of it.

Arrow reads CSV in a separate thread, through our Python file. A command that stops early, because of a bad
row or because its output is closed, leaves that thread behind, perhaps waiting for a pipe. When the
interpreter shuts down, the thread tries to use it once more and is unwound inside Arrow's C++ code, and the
process aborts with a core dump instead of its exit code. So such a command exits without shutting the
interpreter down.
"""

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

_Item = TypeVar("_Item")
_unfinished: set[object] = set()


def read_ahead(items: Iterable[_Item]) -> Iterator[_Item]:
    """Yield what a thread reads ahead, and remember that it runs until the last item was taken.

    >>> list(read_ahead([1, 2]))
    [1, 2]
    """
    reading = object()
    _unfinished.add(reading)
    yield from items
    _unfinished.discard(reading)


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
