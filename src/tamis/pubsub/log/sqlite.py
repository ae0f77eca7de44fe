"""A log in one SQLite file, for the processes of one machine.

Each stream is a table whose row numbers are never used again. The write-ahead log is synced with every
commit, so that what was acknowledged survives a power cut; readers never wait for writers. A separate thread
does the work, so that no event loop waits for the disk.

If the file is replaced under a running process (a restored copy, another disk), this is noticed before the
next operation: the file is opened again and `generation` grows.
"""

import asyncio
import contextlib
import json
import os
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from tamis.pubsub.log.contract import (
    EVENTS,
    MOST_ENTRIES,
    MOST_READ_BYTES,
    STATE,
    STREAMS,
    Entry,
    FencedError,
    Key,
    LogError,
    LogFullError,
    LogUnavailableError,
    Record,
    check_name,
)

FORMAT = 1
BUSY_SECONDS = 30.0
LARGEST = 500_000_000
"""SQLite takes twice that."""
SHORTEST_POLL, LONGEST_POLL = 0.002, 0.05
FREE_PAGES_PER_TRIM = 2_000
MOST_WAL_BYTES = 16 << 20
_LIMIT = "most_bytes"
_Answer = TypeVar("_Answer")


class SqliteLog:
    """A `Log` in a file.

    >>> import tempfile
    >>> async def example(path):
    ...     log = await SqliteLog.open(path)
    ...     first = await log.append("events", [Entry("p0", "s1", b"a"), Entry("p0", "s1", b"b")])
    ...     found = await log.read("events", topic="p0")
    ...     await log.close()
    ...     return first, [record.body for record in found]
    >>> asyncio.run(example(Path(tempfile.mkdtemp()) / "site.db"))
    (2, [b'a', b'b'])
    """

    def __init__(self, path: Path, most_bytes: int | None) -> None:
        """Use `open` instead."""
        self._path = path
        self._most_bytes = most_bytes
        """A limit to write down; what is written down counts for everybody who uses the file."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tamis-log")
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] = (0, 0)
        self.identity = ""
        self.largest = LARGEST
        self.generation = 0
        self._fenced_generation = 1

    @classmethod
    async def open(cls, path: Path, *, most_bytes: int | None = None) -> "SqliteLog":
        """Open a file, or make it."""
        log = cls(path, most_bytes)
        try:
            await log._run(lambda _: None)
        except LogError:
            log._thread.shutdown(wait=False)
            raise
        return log

    async def append(
        self, stream: str, entries: Sequence[Entry], fences: Mapping[Key, int] | None = None
    ) -> int:
        """Write all entries or none; returns the number of the last."""
        if not 0 < len(entries) <= MOST_ENTRIES:
            raise LogError(f"1 to {MOST_ENTRIES} entries are appended at once, not {len(entries)}")

        def appending(database: sqlite3.Connection) -> int:
            if fences and self.generation != self._fenced_generation:
                self._fenced_generation = self.generation
                raise FencedError(f"{self._path} was replaced: what was expected of it holds no longer")
            return _append(database, stream, entries, fences or {})

        return await self._run(appending)

    async def read(
        self,
        stream: str,
        *,
        topic: str | None = None,
        name: str = "",
        after: int = 0,
        most: int = 1_000,
        to_end: bool = False,
    ) -> list[Record]:
        """Records behind a number, in order: of one topic, or of all; or those of a name in it.

        A file has no replicas: every answer goes `to_end`.
        """
        check_name(topic, name)

        def reading(database: sqlite3.Connection) -> list[Record]:
            where, values = ("topic = ? AND seq > ?", [topic, after]) if topic else ("seq > ?", [after])
            if name:  # the index of keys alone says which: the planner would rather read the whole topic
                where = (
                    f"seq IN (SELECT seq FROM {stream} INDEXED BY {stream}_key WHERE topic = ? AND seq > ? "
                    "AND detail >= ? AND detail < ? ORDER BY seq LIMIT ?)"
                )
                values += [f"{name}.", f"{name}/", most]  # a slash comes just behind the dot
            found: list[Record] = []
            record, size = Record._make, 0
            query = f"SELECT seq, topic, detail, time, body FROM {stream} WHERE {where} ORDER BY seq LIMIT ?"
            for row in database.execute(query, (*values, most)):
                found.append(record(row))
                size += len(row[4])
                if size > MOST_READ_BYTES:
                    break
            return found

        return await self._run(reading)

    async def fetch(self, stream: str, numbers: Iterable[int]) -> dict[int, Record]:
        """Records by number; those that are gone are left out."""
        wanted = sorted(set(numbers))

        def fetching(database: sqlite3.Connection) -> dict[int, Record]:
            # CROSS JOIN looks for one number after the other; IN would sort them into a table first.
            query = (
                f"SELECT seq, topic, detail, time, body FROM json_each(?) AS asked CROSS JOIN {stream} "
                "WHERE seq = asked.value"
            )
            return {row[0]: Record._make(row) for row in database.execute(query, (json.dumps(wanted),))}

        return await self._run(fetching)

    async def last(self, stream: str, keys: Iterable[Key]) -> dict[Key, Record]:
        """The last record of each key; keys without one are left out."""
        wanted = list(keys)

        def looking(database: sqlite3.Connection) -> dict[Key, Record]:
            # CROSS JOIN keeps the order: for each key that is asked for, one search in the index of keys.
            query = (
                f"SELECT seq, topic, detail, time, body FROM json_each(?) AS asked CROSS JOIN {stream} "
                f"WHERE seq = (SELECT max(seq) FROM {stream} WHERE topic = json_extract(asked.value, '$[0]') "
                "AND detail = json_extract(asked.value, '$[1]'))"
            )
            return {
                (row[1], row[2]): Record._make(row) for row in database.execute(query, (json.dumps(wanted),))
            }

        return await self._run(looking)

    async def end(self, stream: str) -> int:
        """The highest number that was ever given in a stream."""
        return await self._run(lambda database: _end(database, stream))

    async def trim(self, stream: str, before: int, topic: str, detail: str | None = None) -> None:
        """Remove the records of a key, or of a topic, with numbers below `before`; frees their pages."""

        def trimming(database: sqlite3.Connection) -> None:
            only, values = ("AND detail = ?", (detail,)) if detail is not None else ("", ())
            database.execute("BEGIN IMMEDIATE")
            try:
                database.execute(
                    f"DELETE FROM {stream} WHERE topic = ? AND seq < ? {only}", (topic, before, *values)
                )
                database.execute("COMMIT")
            except BaseException:
                _undo(database)
                raise
            database.execute(f"PRAGMA incremental_vacuum({FREE_PAGES_PER_TRIM})").fetchall()
            if _bytes(Path(f"{self._path}-wal")) > MOST_WAL_BYTES:
                # As long as somebody reads, SQLite never starts the file over: wait for these readers.
                database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

        await self._run(trimming)

    async def wait(self, stream: str, after: int, seconds: float) -> None:
        """Return when a stream may have records behind a number, at the latest after so many seconds."""
        deadline = time.monotonic() + seconds
        pause = SHORTEST_POLL
        version: int | None = None
        while True:
            now = await self._run(_version)
            if now != version and await self.end(stream) > after:
                return
            version = now
            left = deadline - time.monotonic()
            if left <= 0:
                return
            await asyncio.sleep(min(pause, left))
            pause = min(LONGEST_POLL, pause * 1.5)

    async def size(self) -> int:
        """The bytes of the file, free pages left out."""
        return await self._run(_size)

    async def close(self) -> None:
        """Close the file."""

        def closing() -> None:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

        await asyncio.get_running_loop().run_in_executor(self._thread, closing)
        self._thread.shutdown(wait=False)

    async def _run(self, work: Callable[[sqlite3.Connection], _Answer]) -> _Answer:
        def running() -> _Answer:
            try:
                return work(self._current())
            except sqlite3.Error as error:
                raise _explained(error, self._path) from None
            except OSError as error:
                raise LogUnavailableError(f"cannot use {self._path}: {error.strerror}") from None

        return await asyncio.get_running_loop().run_in_executor(self._thread, running)

    def _current(self) -> sqlite3.Connection:
        """The connection to the file that is there now."""
        if self._connection is not None:
            if _file(self._path) == self._file:
                return self._connection
            self._connection.close()
            self._connection = None
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # Events are not for every user of the machine; what SQLite puts beside a file is as private as it is.
        with contextlib.suppress(OSError):  # it is there, or SQLite will say why not
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o660))
        connection = sqlite3.connect(
            self._path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            self.identity = _when_free(lambda: _prepare(connection, self._path, self._most_bytes))
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        self._file = _file(self._path)
        self.generation += 1
        return connection


def _file(path: Path) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return (0, 0)
    return found.st_dev, found.st_ino


def _bytes(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def _when_free(work: Callable[[], _Answer]) -> _Answer:
    """Wait for a file that is busy: SQLite's own patience does not cover recovery after a kill."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            return work()
        except sqlite3.OperationalError as error:
            name = getattr(error, "sqlite_errorname", "") or ""
            if not name.startswith("SQLITE_BUSY") or time.monotonic() > deadline:
                raise
            time.sleep(LONGEST_POLL)


def _prepare(database: sqlite3.Connection, path: Path, most_bytes: int | None) -> str:
    database.execute("PRAGMA auto_vacuum = INCREMENTAL")
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("PRAGMA mmap_size = 268435456")
    database.execute("BEGIN IMMEDIATE")
    try:
        database.execute("CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value)")
        for stream in STREAMS:
            database.execute(
                f"CREATE TABLE IF NOT EXISTS {stream} (seq INTEGER PRIMARY KEY AUTOINCREMENT, "
                "topic TEXT NOT NULL, detail TEXT NOT NULL, time INTEGER NOT NULL, body BLOB NOT NULL)"
            )
            database.execute(f"CREATE INDEX IF NOT EXISTS {stream}_topic ON {stream} (topic, seq)")
            database.execute(f"CREATE INDEX IF NOT EXISTS {stream}_key ON {stream} (topic, detail, seq)")
        about = [("format", FORMAT), ("identity", uuid.uuid4().hex), ("time", 0)]
        database.executemany("INSERT OR IGNORE INTO about VALUES (?, ?)", about)
        known = dict(database.execute("SELECT name, value FROM about"))
        database.execute("COMMIT")
    except BaseException:
        _undo(database)
        raise
    if known["format"] != FORMAT:
        raise LogError(
            f"{path} has the format {known['format']}, this version of Tamis knows {FORMAT}: "
            "open it with the version that wrote it"
        )
    if most_bytes is not None and known.get(_LIMIT) != most_bytes:
        database.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (_LIMIT, most_bytes))
    return str(known["identity"])


def _append(
    database: sqlite3.Connection, stream: str, entries: Sequence[Entry], fences: Mapping[Key, int]
) -> int:
    database.execute("BEGIN IMMEDIATE")
    try:
        for key, expected in fences.items():
            found = database.execute(
                f"SELECT max(seq) FROM {stream} WHERE topic = ? AND detail = ?", key
            ).fetchone()[0]
            if (found or 0) != expected:
                raise FencedError(
                    f"the last record of {'.'.join(key)} in {stream} is {found or 0}, not {expected}"
                )
        # A clock that is set back must not make later records look earlier.
        about = dict(database.execute("SELECT name, value FROM about WHERE name IN ('time', 'most_bytes')"))
        if (limit := about.get(_LIMIT)) is not None:
            _check_room(database, stream, sum(len(entry.body) for entry in entries), limit)
        before = about["time"]
        now = max(before, time.time_ns() // 1_000)
        if stream == STATE:
            database.executemany(
                f"DELETE FROM {stream} WHERE topic = ? AND detail = ?", [entry.key for entry in entries]
            )
        database.executemany(
            f"INSERT INTO {stream} (topic, detail, time, body) VALUES (?, ?, ?, ?)",
            [(entry.topic, entry.detail, now, entry.body) for entry in entries],
        )
        last = _end(database, stream)
        if stream == STATE:
            kept = {entry.key: number for number, entry in enumerate(entries, last - len(entries) + 1)}
            if len(kept) < len(entries):  # only the last of a key stays, also of one append
                every = range(last - len(entries) + 1, last + 1)
                gone = [(number,) for number in set(every).difference(kept.values())]
                database.executemany(f"DELETE FROM {stream} WHERE seq = ?", gone)
        if now != before:
            database.execute("UPDATE about SET value = ? WHERE name = 'time'", (now,))
        database.execute("COMMIT")
    except BaseException:
        _undo(database)
        raise
    return last


def _undo(database: sqlite3.Connection) -> None:
    if database.in_transaction:  # a full disk may have ended it
        database.execute("ROLLBACK")


def _check_room(database: sqlite3.Connection, stream: str, size: int, limit: int) -> None:
    """Refuse what is beyond the limit. Positions and what was dropped have a quarter more room than events:

    without them nothing would ever be freed again.
    """
    most = limit if stream == EVENTS else limit + limit // 4
    if _size(database) + size > most:
        raise LogFullError(f"the log has reached its limit of {limit:,} bytes: make room, or raise the limit")


def _size(database: sqlite3.Connection) -> int:
    pages, free, size = (
        int(database.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size


def _end(database: sqlite3.Connection, stream: str) -> int:
    found = database.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (stream,)).fetchone()
    return int(found[0]) if found else 0


def _version(database: sqlite3.Connection) -> int:
    """Changes when another process has written; ours are in `total_changes`."""
    return int(database.execute("PRAGMA data_version").fetchone()[0]) * 1_000_003 + database.total_changes


def _explained(error: sqlite3.Error, path: Path) -> LogError:
    name = getattr(error, "sqlite_errorname", "") or ""
    if name == "SQLITE_FULL":
        return LogFullError(f"there is no room left for {path}: make room, or raise its limit")
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_IOERR", "SQLITE_CANTOPEN")):
        return LogUnavailableError(f"cannot use {path} now: {error}")
    if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
        return LogError(f"{path} is no log, or is damaged ({error}): restore a copy")
    return LogError(f"cannot use {path}: {error}")
