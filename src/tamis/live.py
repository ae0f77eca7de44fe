"""An index that follows its file, or a store: it opens, verifies and swaps in each new version.

One snapshot answers each query completely. The next one is verified and warmed up before it takes over, so
that no query sees an incomplete or cold file. A file that cannot be read changes nothing.
"""

import logging
import os
import threading
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from tamis._matching import EventLike
from tamis._saving import FileState, state_of
from tamis.errors import SnapshotError
from tamis.index import Index

_LOG = logging.getLogger("tamis.live")


def is_store(path: str | os.PathLike[str]) -> bool:
    """Whether a path is that of a store: a URL or a folder; a snapshot is a file.

    >>> is_store("s3://bucket/rules"), is_store("rules.tamis")
    (True, False)
    """
    return "://" in os.fspath(path) or os.path.isdir(path)


_CHANGES = frozenset(
    (
        *("add", "add_many", "add_table", "clear", "remove", "remove_many", "replace", "save"),
        *(
            "set_expires",
            "set_priority",
            "set_starts",
            "set_tags",
            "set_weights",
            "update",
            "upsert",
            "upsert_many",
        ),
    )
)


class _Source(Protocol):
    """Where snapshots come from."""

    def state(self) -> FileState | int | None:
        """A value that identifies the latest snapshot; None if there is none."""

    def open(self) -> tuple[Index, FileState | int]:
        """The latest snapshot, with every byte checked, and its state."""


class _File:
    """A file that is replaced."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    def state(self) -> FileState | None:
        return state_of(self._path)

    def open(self) -> tuple[Index, FileState]:
        while True:
            before = self.state()
            opened = Index.open(self._path)
            opened.verify()
            if before is not None and before == self.state():
                return opened, before

    def __str__(self) -> str:
        return str(self._path)


class _Store:
    """A store of versions."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        from tamis.store import RuleStore  # noqa: PLC0415 - a file needs none of it

        self._store = RuleStore(path)

    def state(self) -> int | None:
        return self._store.latest

    def open(self) -> tuple[Index, int]:
        number, opened = self._store.open_latest()
        return opened, number

    def __str__(self) -> str:
        return self._store.url


class LiveIndex:
    """An index that is read from a file or a store and follows it. Made by `tamis.open(path, watch=True)`.

    It has the queries of a `tamis.Index` and cannot be changed. To change it, save another snapshot over the
    file, or apply changes to the `tamis.store.RuleStore`.

    >>> import tempfile
    >>> import tamis
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/rules.tamis"
    ...     rules = tamis.Index()
    ...     rules.add("a", "x > 1")
    ...     rules.save(path)
    ...     with tamis.open(path, watch=True) as live:
    ...         before = live.match({"x": 3}), live.generation
    ...         rules.add("b", "x > 2")
    ...         rules.save(path)
    ...         _ = live.refresh()
    ...         before, (live.match({"x": 3}), live.generation)
    ((['a'], 1), (['a', 'b'], 2))
    """

    def __init__(
        self, path: str | os.PathLike[str], *, interval: float = 1.0, warm_up: Iterable[EventLike] = ()
    ) -> None:
        """Open the file, and check it every `interval` seconds; a new snapshot first matches `warm_up`."""
        self._source: _Source = _Store(path) if is_store(path) else _File(path)
        self._warm_up = list(warm_up)
        self._opening = threading.Lock()
        self._stopped = threading.Event()
        self._current, self._state = self._opened()
        self._generation = 1
        self._error: Exception | None = None
        self._refused: FileState | int | None = None
        self._thread = threading.Thread(
            target=self._watch, args=(interval,), name=f"tamis watches {self._source}", daemon=True
        )
        self._thread.start()

    @property
    def generation(self) -> int:
        """How many snapshots were swapped in, including the first."""
        return self._generation

    @property
    def version(self) -> int | None:
        """The current version of the store; None for a file."""
        return self._state if isinstance(self._state, int) else None

    @property
    def index(self) -> Index:
        """The index of the current snapshot; keep it to run several queries on one snapshot."""
        return self._current

    @property
    def error(self) -> Exception | None:
        """Why the latest file was not swapped in; None if it was."""
        return self._error

    def refresh(self) -> bool:
        """Check the file now; returns whether a new snapshot was swapped in."""
        with self._opening:
            state: FileState | int | None = None
            try:
                state = self._source.state()
                if state is None or state in (self._state, self._refused):
                    return False
                opened, state = self._opened()
            except Exception as error:  # file systems have errors of their own, and watching goes on
                self._refused = state if isinstance(error, SnapshotError) else None
                return self._stays(error)
            self._current, self._state = opened, state
            self._generation += 1
            self._error = self._refused = None
            return True

    def _stays(self, error: Exception) -> bool:
        """Remember why nothing was swapped in, and say so once."""
        if str(error) != str(self._error):
            _LOG.warning("%s stays at generation %d: %s", self._source, self._generation, error)
        self._error = error
        return False

    def close(self) -> None:
        """Stop watching; the last snapshot stays usable."""
        self._stopped.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _opened(self) -> tuple[Index, FileState | int]:
        """The current snapshot, with every byte checked, and its pages in memory."""
        opened, state = self._source.open()
        opened.count({})
        for event in self._warm_up:
            opened.count(event)
        return opened, state

    def _watch(self, interval: float) -> None:
        while not self._stopped.wait(interval):
            self.refresh()

    def __getattr__(self, name: str) -> Any:
        """Methods of an index, on the current snapshot."""
        if name.startswith("_"):
            raise AttributeError(name)
        if name in _CHANGES:
            raise AttributeError(
                f"a watched index follows its file and has no {name!r}: change a tamis.Index and save it to "
                f"{self._source}"
                if isinstance(self._source, _File)
                else f"a watched index follows its store and has no {name!r}: apply changes to "
                f"tamis.store.RuleStore({str(self._source)!r})"
            )
        return getattr(self._current, name)

    def __len__(self) -> int:
        """How many subscriptions the current snapshot holds."""
        return len(self._current)

    def __contains__(self, id: object) -> bool:
        """Whether the current snapshot has a subscription with this id."""
        return id in self._current

    def __getitem__(self, id: Any) -> Any:
        """The subscription with this id."""
        return self._current[id]

    def __iter__(self) -> Any:
        """The ids of the current snapshot, sorted."""
        return iter(self._current)

    def __repr__(self) -> str:
        """Which file, and which generation of it."""
        return f"<tamis.live.LiveIndex of {self._source} at generation {self._generation}>"

    def __enter__(self) -> "LiveIndex":
        """Use it in a `with` block, which stops watching at its end."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Stop watching."""
        self.close()
