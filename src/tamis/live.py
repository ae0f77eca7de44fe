"""An index that follows its file: when a new snapshot is saved there, it is opened, checked and swapped in.

Every query is answered by one snapshot, from its first byte to its last. The next one is verified and
warmed up before it takes over, so that no query meets half a file or a cold one; a file that cannot be
read changes nothing.
"""

import logging
import os
import threading
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from tamis._matching import EventLike
from tamis._saving import FileState, state_of
from tamis.errors import TamisError
from tamis.index import Index

_LOG = logging.getLogger("tamis.live")

_CHANGES = frozenset(
    (
        *("add", "add_many", "add_table", "clear", "remove", "remove_many", "replace", "save"),
        *("set_expires", "set_priority", "set_tags", "set_weights", "update", "upsert", "upsert_many"),
    )
)


class LiveIndex:
    """An index that is read from a file and follows it. Made by `tamis.open(path, watch=True)`.

    It answers whatever a `tamis.Index` answers and cannot be changed: to change it, save another
    snapshot in the place of the file.

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
        """Open the file, and look at it every `interval` seconds; events of `warm_up` are matched first."""
        self._path = Path(path)
        self._warm_up = list(warm_up)
        self._opening = threading.Lock()
        self._stopped = threading.Event()
        self._current, self._state = self._opened()
        self._generation = 1
        self._error: Exception | None = None
        self._refused: FileState | None = None
        self._thread = threading.Thread(
            target=self._watch, args=(interval,), name=f"tamis watches {self._path.name}", daemon=True
        )
        self._thread.start()

    @property
    def generation(self) -> int:
        """How many snapshots were swapped in, the first included."""
        return self._generation

    @property
    def index(self) -> Index:
        """The index of the current snapshot: keep it to ask several queries of one snapshot."""
        return self._current

    @property
    def error(self) -> Exception | None:
        """Why the latest file was not swapped in; None if it was."""
        return self._error

    def refresh(self) -> bool:
        """Look at the file now; returns whether a new snapshot was swapped in."""
        with self._opening:
            state = state_of(self._path)
            if state is None or state in (self._state, self._refused):
                return False
            try:
                opened, state = self._opened()
            except (TamisError, OSError) as error:
                self._error, self._refused = error, state
                _LOG.warning("%s stays at generation %d: %s", self._path, self._generation, error)
                return False
            self._current, self._state = opened, state
            self._generation += 1
            self._error = self._refused = None
            return True

    def close(self) -> None:
        """Stop watching; the last snapshot still answers."""
        self._stopped.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _opened(self) -> tuple[Index, FileState]:
        """The file as it is now, with every byte checked, and its pages in memory."""
        while True:
            before = state_of(self._path)
            opened = Index.open(self._path)
            opened.verify()
            opened.count({})
            for event in self._warm_up:
                opened.count(event)
            if before is not None and before == state_of(self._path):
                return opened, before

    def _watch(self, interval: float) -> None:
        while not self._stopped.wait(interval):
            self.refresh()

    def __getattr__(self, name: str) -> Any:
        """Whatever an index answers, from the current snapshot."""
        if name.startswith("_"):
            raise AttributeError(name)
        if name in _CHANGES:
            raise AttributeError(
                f"a watched index follows its file and has no {name!r}: change a tamis.Index and save it to "
                f"{self._path}"
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
        return f"<tamis.live.LiveIndex of {self._path} at generation {self._generation}>"

    def __enter__(self) -> "LiveIndex":
        """Use it in a `with` block, which stops watching at its end."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Stop watching."""
        self.close()
