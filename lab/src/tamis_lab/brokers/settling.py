"""Finds out when something has reached every broker that must know it.

Each neighbour is asked (`Barrier`) whether what we told it has spread behind it; it answers (`Settled`) once
its own other neighbours have. The question always travels away from its origin, and the overlay has no
cycles, so it ends. It is asked only if somebody waits for the answer.

What a neighbour was told is numbered, and numbers only grow. So those who wait for a neighbour form a queue,
and an answer visits only those that it completes: a hundred thousand subscriptions may wait at once.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tamis_lab.brokers.messages import Barrier, Message


@dataclass
class _Wait:
    needs: dict[str, int]
    """The neighbours that have not yet answered, and up to which number they must."""
    asker: str | None
    then: Callable[[], None]


class Settling:
    """How much each neighbour was told, how much of it has spread, and who waits for that.

    >>> said = []
    >>> settling = Settling(["b2"], lambda neighbour, message: said.append((neighbour, message)))
    >>> settling.told("b2")
    >>> settling.when_settled(None, lambda: print("spread"))
    >>> said
    [('b2', Barrier(number=1))]
    >>> settling.heard("b2", 1)
    spread
    """

    def __init__(self, neighbours: Iterable[str], say: Callable[[str, Message], None]) -> None:
        """Start with nothing told."""
        self._say = say
        self._told = dict.fromkeys(neighbours, 0)
        self._settled = dict.fromkeys(self._told, 0)
        self._asked = dict.fromkeys(self._told, 0)
        self._lines: dict[str, deque[_Wait]] = {neighbour: deque() for neighbour in self._told}
        """Who waits for each neighbour, by growing numbers."""
        self._waiting = 0

    @property
    def idle(self) -> bool:
        """Whether nobody waits."""
        return not self._waiting

    def told(self, neighbour: str) -> None:
        """Something was told, or is to be told, to a neighbour."""
        self._told[neighbour] += 1

    def when_settled(self, asker: str | None, then: Callable[[], None]) -> None:
        """Call `then` once all that was told so far, except to the asking neighbour, has spread."""
        needs = {
            neighbour: told
            for neighbour, told in self._told.items()
            if neighbour != asker and told > self._settled[neighbour]
        }
        if not needs:
            then()
            return
        wait = _Wait(needs, asker, then)
        self._waiting += 1
        for neighbour in list(needs):
            self._lines[neighbour].append(wait)
            self._ask(neighbour)

    def heard(self, neighbour: str, number: int) -> None:
        """A neighbour says that what it was told up to that number has spread."""
        self._settled[neighbour] = max(self._settled[neighbour], number)
        line = self._lines[neighbour]
        ready: list[_Wait] = []
        while line and line[0].needs[neighbour] <= self._settled[neighbour]:
            wait = line.popleft()
            del wait.needs[neighbour]
            if not wait.needs:
                ready.append(wait)
        self._waiting -= len(ready)
        for wait in ready:
            wait.then()

    def restarted(self, neighbour: str) -> None:
        """A new conversation with a neighbour: its questions are void, ours are asked again."""
        void = {id(wait) for line in self._lines.values() for wait in line if wait.asker == neighbour}
        if void:
            self._waiting -= len(void)
            for name, line in self._lines.items():
                self._lines[name] = deque(wait for wait in line if wait.asker != neighbour)
        self._asked[neighbour] = 0
        if self._lines[neighbour]:
            self._ask(neighbour)

    def _ask(self, neighbour: str) -> None:
        if self._asked[neighbour] < self._told[neighbour]:
            self._asked[neighbour] = self._told[neighbour]
            self._say(neighbour, Barrier(self._told[neighbour]))
