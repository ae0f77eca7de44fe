"""SQLite logs that work in the thread of whoever asks, instead of one of their own.

A log has a thread so that a slow disk holds nobody up. A history of steps has tens of thousands of requests,
one after the other, and to hand each to another thread takes longer than the request.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any
from unittest import mock

from tamis.pubsub.log import sqlite


class Here(Executor):
    """Does work at once."""

    def __init__(self, *_: object, **__: object) -> None:
        """As many threads as one likes: there is none."""

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **more: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(work(*arguments, **more))
        except BaseException as error:
            done.set_exception(error)
        return done


@contextmanager
def one_thread() -> Iterator[None]:
    """Logs that are opened meanwhile have no thread of their own."""
    with mock.patch.object(sqlite, "ThreadPoolExecutor", Here):
        yield


def in_this_thread(log: Any) -> None:
    """Let a log that is open do without its thread from now on."""
    log._thread.shutdown(wait=False)
    log._thread = Here()
