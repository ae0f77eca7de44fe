"""Which version a micro-batch uses: its first task decides, and a replay uses the same version.

The first task creates the file `pins/<query>/<batch>`; every other task of the micro-batch reads it, even
after a crash. Pins also tell the garbage collector which versions are in use.

If the file system cannot create a file only if there is none, tasks cannot agree. Then the driver decides, in
`foreachBatch`: one task proposes a pin, and another writes the one that the driver received. Attempts of that
task that overlap write the same.
"""

import json
import time
from typing import NamedTuple

from pyspark import TaskContext

from tamis.errors import ArgumentError, TamisError
from tamis.store.directory import Directory, open_directory
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
    if not directory.creates_once:
        raise ArgumentError(_cannot_agree(directory.url))
    try:
        return _read_pin(directory, query, batch)
    except FileNotFoundError:
        return write_pin(directory, query, batch, _pin_now(directory, version))


def propose_pin(directory: Directory, query: str, batch: int) -> Pin:
    """The pin that a micro-batch has, or the one that it should get; writes nothing."""
    try:
        return _read_pin(directory, query, batch)
    except FileNotFoundError:
        return _pin_now(directory)


def write_pin(directory: Directory, query: str, batch: int, proposed: Pin) -> Pin:
    """Pin a micro-batch as proposed, unless it is pinned already; the pin that it has then."""
    if not directory.create(_pin_file(query, batch), json.dumps(proposed._asdict()).encode()):
        return _read_pin(directory, query, batch)
    if batch >= PINS_KEPT:  # the collector would find it, but a store may have a thousand a minute
        directory.delete(_pin_file(query, batch - PINS_KEPT))
    return proposed


def refuse_stream(url: str) -> None:
    """Raise if the tasks of a stream could not agree on the version of a micro-batch.

    >>> refuse_stream("/data/rules")
    >>> refuse_stream("single-writer+/Volumes/main/default/rules")
    Traceback (most recent call last):
    ...
    tamis.errors.ArgumentError: single-writer+/Volumes/main/default/rules: the tasks of a stream cannot ...
    """
    if not open_directory(url).creates_once:
        raise ArgumentError(_cannot_agree(url))


def _cannot_agree(url: str) -> str:
    return (
        f"{url}: the tasks of a stream cannot agree on the version of a micro-batch, because the file system "
        "cannot create a file only if there is none. Match in foreachBatch, where the driver decides: "
        "events.writeStream.foreachBatch(f), with match(batch, store) in f. Rules with memory over a stream "
        "need a store on another file system."
    )


def _pin_now(directory: Directory, version: int | None = None) -> Pin:
    number = read_version(directory).number if version is None else version
    return Pin(number, int(time.time() * _MICROSECONDS))


def _read_pin(directory: Directory, query: str, batch: int) -> Pin:
    return Pin(**json.loads(directory.read(_pin_file(query, batch))))


def _pin_file(query: str, batch: int) -> str:
    return f"pins/{query}/{batch:012d}.json"
