"""When has something spread to every broker that must know it?

Each neighbour is asked (`Barrier`) whether what we told it has spread behind it; it answers (`Settled`)
once its own other neighbours have. The question always travels away from where it started, and the overlay
has no cycles, so it ends. What nobody waits for is never asked.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tamis.pubsub.messages import Barrier, Message


@dataclass
class _Wait:
    needs: dict[str, int]
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
        self._waits: list[_Wait] = []

    @property
    def idle(self) -> bool:
        """Whether nobody waits."""
        return not self._waits

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
        self._waits.append(_Wait(needs, asker, then))
        for neighbour in needs:
            self._ask(neighbour)

    def heard(self, neighbour: str, number: int) -> None:
        """A neighbour says that what it was told up to that number has spread."""
        self._settled[neighbour] = max(self._settled[neighbour], number)
        ready: list[_Wait] = []
        waiting: list[_Wait] = []
        for wait in self._waits:
            done = all(self._settled[name] >= number for name, number in wait.needs.items())
            (ready if done else waiting).append(wait)
        self._waits = waiting
        for wait in ready:
            wait.then()

    def restarted(self, neighbour: str) -> None:
        """A new conversation with a neighbour: its questions are void, ours are asked again."""
        self._waits = [wait for wait in self._waits if wait.asker != neighbour]
        self._asked[neighbour] = 0
        if any(wait.needs.get(neighbour, 0) > self._settled[neighbour] for wait in self._waits):
            self._ask(neighbour)

    def _ask(self, neighbour: str) -> None:
        if self._asked[neighbour] < self._told[neighbour]:
            self._asked[neighbour] = self._told[neighbour]
            self._say(neighbour, Barrier(self._told[neighbour]))
