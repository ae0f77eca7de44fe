"""How a command ends while Arrow reads ahead of it.

Arrow reads CSV in a thread of its own, through our Python file. A command that stops early, because a row is
bad or because somebody interrupts it, leaves that thread behind. While the interpreter shuts down the thread
asks for it once more, is unwound inside Arrow's C++, and the process aborts with a core dump in place of its
exit code. So such a command ends without shutting the interpreter down.
"""

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

_Item = TypeVar("_Item")
_unfinished: list[object] = []


def read_ahead(items: Iterable[_Item]) -> Iterator[_Item]:
    """Yield what a thread reads ahead, and remember that it runs until the last item was taken.

    >>> list(read_ahead([1, 2]))
    [1, 2]
    """
    _unfinished.append(items)
    yield from items
    _unfinished.pop()


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
