"""Which events of another site's partition have come, in all lives of that site's log.

A site numbers its events for each target. If its log is rolled back, it uses these numbers again; so the
numbers of each *life* of the log are told apart. But an event that the older copy has, and that is routed
again, would then come twice, with a number of each life. What stays the same is its *place*: its number in
the log of its origin, and the time when it was stored there.

Within a life, numbers and places grow together. So runs of numbers without holes, with the places of the
first and the last event of each, tell of every place whether an event there can still come:

    number here        7    8    9         11   12
    place             20   35   36         50   51
    runs             (7-9 at 20-36)       (11-12 at 50-51)       may come still: 37 to 49, and from 52 on

After a rollback, places are used again, too, but what is stored then is later than everything before. Where
nobody on the way has noticed the rollback, numbers are used again under the name of the same life. Then the
first event of the new life that comes may look like the one that follows the old life, although others that
it has overtaken have numbers of old events. So a life also remembers its longest *pauses*: each says that up
to a number everything was stored by some time, and what comes with such a number and a later time is new.
"""

from bisect import bisect_right
from collections.abc import Sequence
from operator import lt
from typing import Any

from tamis.pubsub.records import Fields, Place, is_number, write

MOST_LIVES = 16
"""Of a log that is rolled back more often, the first lives are forgotten."""
MOST_RUNS = 1_000
"""A neighbour can make as many holes as it likes. Beyond so many runs, the earliest hole is closed."""

MOST_PAUSES, LAST_PAUSES = 8, 4
"""So many are kept: the last ones, and otherwise the longest. A log that is restored has a long one."""

_Run = list[int]
"""First and last number, first and last place."""
_Pause = list[int]
"""The last number before a pause, its place and time, and how long nothing was stored then."""


class Life:
    """What has come of one life of a log."""

    __slots__ = ("name", "pauses", "runs", "until")

    def __init__(
        self,
        name: str,
        until: int = 0,
        runs: list[_Run] | None = None,
        pauses: list[_Pause] | None = None,
    ) -> None:
        """`until` is the time of the latest event."""
        self.name = name
        self.until = until
        self.runs = runs or []
        self.pauses = pauses or []

    def has(self, number: int) -> bool:
        """Whether the event with a number has come."""
        place = bisect_right(self.runs, number, key=_first_number) - 1
        return place >= 0 and number <= self.runs[place][1]

    def covers(self, place: Place) -> bool:
        """Whether nothing that lies there can come any more."""
        number, time = place
        if time > self.until or any(lies >= number and before < time for _, lies, before, _ in self.pauses):
            return False
        at = bisect_right(self.runs, number, key=_first_place) - 1
        return at >= 0 and number <= self.runs[at][3]

    def ends_before(self, number: int, time: int) -> bool:
        """Whether the event of this life with a number was certainly stored before a time."""
        return time > self.until or any(
            last >= number and before < time for last, _, before, _ in self.pauses
        )

    def is_closed_to(self, number: int, place: Place) -> bool:
        """Whether an event is of a later life of the same name.

        It has a number in a hole, and is later than all that has come: whoever sent it did not notice that
        the log was rolled back, and numbers are used again.
        """
        return bool(self.runs) and number < self.runs[-1][1] and place[1] > self.until

    def add(self, number: int, place: Place) -> None:
        """An event has come. One that is out of order tells nothing of those around it, and is left out."""
        lies, time = place
        runs = self.runs
        if time > self.until:
            if runs and number > runs[-1][1]:
                self._pause(time)
            self.until = time
        if runs and runs[-1][1] + 1 == number and lies > runs[-1][3]:  # nearly always
            runs[-1][1::2] = number, lies
            return
        at = bisect_right(runs, number, key=_first_number)
        before, after = runs[:at][-1:], runs[at : at + 1]
        if any(number <= run[1] or lies <= run[3] for run in before) or any(lies >= run[2] for run in after):
            return
        joined = [run for run in before if run[1] + 1 == number]
        joined += [[number, number, lies, lies]]
        joined += [run for run in after if run[0] == number + 1]
        start = at - (joined[0] in before)
        runs[start : start + len(joined) - 1] = [[joined[0][0], joined[-1][1], joined[0][2], joined[-1][3]]]

    def follows(self, number: int, places: Sequence[Place]) -> bool:
        """Whether events with consecutive numbers, from this one on, continue the last run in order."""
        if not self.runs or self.runs[-1][1] + 1 != number or self.runs[-1][3] >= places[0][0]:
            return False
        lies = [place for place, _ in places]
        return all(map(lt, lies, lies[1:]))

    def extend(self, number: int, places: Sequence[Place]) -> None:
        """As `add`, of each of the events that `follows` was asked about."""
        run, until = self.runs[-1], self.until
        last, lies = run[1], run[3]
        pauses: list[_Pause] = []
        for last, (place, time) in enumerate(places, number):
            if time > until:
                pauses.append([last - 1, lies, until, time - until])
                until = time
            lies = place
        run[1::2] = last, lies
        self.until = until
        self._keep(pauses)

    def _pause(self, time: int) -> None:
        """The next event was stored at a later time than all that have come."""
        _, number, _, lies = self.runs[-1]
        self._keep([[number, lies, self.until, time - self.until]])

    def _keep(self, more: list[_Pause]) -> None:
        """Remember more pauses, in their order, and forget the shortest: of equal ones, the first."""
        pauses = [*self.pauses, *more]
        before = max(0, len(pauses) - LAST_PAUSES)
        longest = sorted(range(before), key=lambda place: (pauses[place][3], place))
        kept = sorted(longest[-(MOST_PAUSES - LAST_PAUSES) :])
        self.pauses = [pauses[place] for place in kept] + pauses[before:]


class Taken:
    """What has come of one partition.

    >>> taken = Taken()
    >>> taken.add("first life", 1, (20, 500)), taken.add("first life", 2, (35, 600))
    (True, True)
    >>> taken.add("second life", 2, (20, 500)), taken.add("second life", 3, (35, 900))
    (False, True)
    """

    __slots__ = ("lives",)

    def __init__(self, lives: list[Life] | None = None) -> None:
        """`lives` are in the order in which they began."""
        self.lives = lives or []

    def add(self, life: str, number: int, place: Place) -> bool:
        """An event comes, with a number that is new in its life; returns whether it is new."""
        mine = self._latest(life)
        if mine is not None and mine.is_closed_to(number, place):
            mine = None
        if self._is_old(mine, place):
            return False
        self._add(mine or self._begun(life), number, place)
        return True

    def extend(self, life: str, number: int, places: Sequence[Place]) -> bool:
        """Events come, with consecutive numbers that are new in their life.

        Returns whether they continue what has come last of it, as nearly always, so that all are new. If not,
        nothing is remembered of them: ask about each.
        """
        mine = self._latest(life)
        if mine is None or not mine.follows(number, places):
            return False
        earliest = min([time for _, time in places])
        if any(one is not mine and one.until >= earliest for one in self.lives):
            return False
        mine.extend(number, places)
        return True

    def begins_again(self, life: str, number: int, place: Place) -> bool:
        """Whether an event whose number has come in its life is another one, later than all that came then.

        Then the log was rolled back, and whoever sent it has not noticed.
        """
        before = [one for one in self.lives if one.name == life and one.has(number)]
        is_later = all(one.ends_before(number, place[1]) for one in before)
        if not (before and is_later) or self._is_old(None, place):
            return False
        mine = self._latest(life)
        self._add(self._begun(life) if mine is None or mine in before else mine, number, place)
        return True

    def _latest(self, life: str) -> Life | None:
        return next((one for one in reversed(self.lives) if one.name == life), None)

    def _is_old(self, mine: Life | None, place: Place) -> bool:
        return any(one is not mine and one.covers(place) for one in self.lives)

    def _begun(self, life: str) -> Life:
        self.lives = [*self.lives, Life(life)][-MOST_LIVES:]
        return self.lives[-1]

    def _add(self, mine: Life, number: int, place: Place) -> None:
        runs = len(mine.runs)
        mine.add(number, place)
        if len(mine.runs) > runs and sum(len(one.runs) for one in self.lives) > MOST_RUNS:
            first = next(one for one in self.lives if len(one.runs) > 1)
            before, after = first.runs[:2]
            first.runs[:2] = [[before[0], after[1], before[2], after[3]]]

    def body(self) -> bytes:
        """The record."""
        return write({"lives": [[one.name, one.until, one.runs, one.pauses] for one in self.lives]})

    @classmethod
    def read(cls, body: bytes) -> "Taken":
        """Read a record.

        >>> Taken.read(Taken([Life("x", 600, [[1, 2, 20, 35]])]).body()).lives[0].runs
        [[1, 2, 20, 35]]

        Before there were pauses, it said nothing of them.
        """
        fields = Fields(body, "list of events that have come")
        return cls([Life(*one) for one in fields.take("lives", _are_lives)])


def _first_number(run: _Run) -> int:
    return run[0]


def _first_place(run: _Run) -> int:
    return run[2]


def _are_lives(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, list)
        and len(one) in (3, 4)
        and isinstance(one[0], str)
        and is_number(one[1])
        and all(map(_are_fours, one[2:]))
        for one in value
    )


def _are_fours(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(four, list) and len(four) == 4 and all(map(is_number, four)) for four in value
    )
