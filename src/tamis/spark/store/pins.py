"""Which version a micro-batch uses: its first task decides, and a replay uses the same version.

The first task creates the file `pins/<query>/<batch>`; every other task of the micro-batch reads it, even
after a crash. Pins also tell the garbage collector which versions are in use.
"""

import json
import time
from typing import NamedTuple

from pyspark import TaskContext

from tamis.errors import TamisError
from tamis.store.directory import Directory
from tamis.store.garbage import PINS_KEPT
from tamis.store.versions import read_version

_MICROSECONDS = 1_000_000


class Pin(NamedTuple):
    """The version of a micro-batch, and the moment (UTC microseconds) that decides what has expired."""

    version: int
    now: int


def micro_batch() -> tuple[str, int] | None:
    """The streaming query and the micro-batch that this task works for, also in `foreachBatch`; or None."""
    context = TaskContext.get()
    batch = None if context is None else context.getLocalProperty("streaming.sql.batchId")
    query = None if context is None else context.getLocalProperty("sql.streaming.queryId")
    return None if batch is None or query is None else (query, int(batch))


def pinned(directory: Directory, version: int | None = None) -> Pin:
    """The pin of the micro-batch that this task belongs to; to the latest version unless one is named."""
    own = micro_batch()
    if own is None:
        raise TamisError("only a task of a streaming query has a micro-batch whose version can be pinned")
    return pin(directory, *own, version)


def pin(directory: Directory, query: str, batch: int, version: int | None = None) -> Pin:
    """Pin a micro-batch to a version, the latest unless one is named, unless it is pinned already.

    >>> import tempfile
    >>> from tamis.store.directory import open_directory
    >>> from tamis.store.versions import Version, publish
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     directory = open_directory(folder)
    ...     empty = Version(number=1, plan="replicated", ids="string", shards=[[]])
    ...     _ = publish(directory, empty)
    ...     first = pin(directory, "query", 0)
    ...     _ = publish(directory, empty)
    ...     pin(directory, "query", 0) == first, pin(directory, "query", 1).version
    (True, 2)
    """
    name = _pin_file(query, batch)
    try:
        return Pin(**json.loads(directory.read(name)))
    except FileNotFoundError:
        number = read_version(directory).number if version is None else version
        latest = Pin(number, int(time.time() * _MICROSECONDS))
        if not directory.create(name, json.dumps(latest._asdict()).encode()):
            return Pin(**json.loads(directory.read(name)))
        if batch >= PINS_KEPT:  # the collector would find it, but a store may have a thousand a minute
            directory.delete(_pin_file(query, batch - PINS_KEPT))
        return latest


def _pin_file(query: str, batch: int) -> str:
    return f"pins/{query}/{batch:012d}.json"
