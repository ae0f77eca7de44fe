"""A larger stack for deeply nested rules: readers are recursive, and Python allows a thousand frames.

Expressions have at most 256 levels. A reader of SQL takes some thirty frames per level, so it would refuse
rules that an expression can represent. Such a rule is read again on a thread with a larger stack.
"""

import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

_FRAMES = 20_000
_STACK_BYTES = 512 << 20  # reserved, and used only as far as a rule needs it
_ONE_AT_A_TIME = threading.Lock()


def with_deep_stack(read: Callable[[], T]) -> T:
    """What `read` returns; where it runs out of frames, it is called again with more of them.

    >>> def depth(levels: int) -> int:
    ...     return 0 if levels == 0 else 1 + depth(levels - 1)
    >>> with_deep_stack(lambda: depth(5_000))
    5000
    """
    try:
        return read()
    except RecursionError:
        pass
    answer: list[Any] = []
    failure: list[BaseException] = []

    def read_again() -> None:
        try:
            answer.append(read())
        except BaseException as error:
            failure.append(error)

    with _ONE_AT_A_TIME:
        frames, size = sys.getrecursionlimit(), threading.stack_size()
        try:
            threading.stack_size(_STACK_BYTES)
            sys.setrecursionlimit(max(frames, _FRAMES))
            thread = threading.Thread(target=read_again, name="tamis reads a deep rule")
            thread.start()
            threading.stack_size(size)
            thread.join()
        finally:
            threading.stack_size(size)
            sys.setrecursionlimit(frames)
    if failure:
        raise failure[0]
    return answer[0]  # type: ignore[no-any-return]
