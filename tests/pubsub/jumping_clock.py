"""A clock that is set, forwards and back, while a log uses it."""

import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from tamis.pubsub.log import sqlite

HOUR = 3_600_000_000_000


class JumpingClock:
    """What the machine's clock shows; `jump` sets it, by up to a day."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._ahead = self._least = 0

    def jump(self) -> None:
        self._ahead = self._chance.choice([0, 1, -1, 24, -24]) * HOUR

    def pass_time_of(self, path: Path) -> None:
        """From now on the clock is not behind that of a log that is about to be lost, as the docs ask."""
        with closing(sqlite3.connect(path)) as database:
            [latest] = database.execute("SELECT value FROM about WHERE name = 'time'").fetchone()
        self._least = max(self._least, latest * 1_000 + 1_000 - time.time_ns())

    def time_ns(self) -> int:
        return time.time_ns() + max(self._ahead, self._least)

    @contextmanager
    def used(self) -> Iterator[None]:
        """While SQLite logs look at it."""
        clock = SimpleNamespace(time_ns=self.time_ns, monotonic=time.monotonic, sleep=time.sleep)
        with mock.patch.object(sqlite, "time", clock):
            yield
