"""The law of every stage.

At every moment, also between two changes of one answer, what a stage shows is true for every event that makes
any entry it was given true. So additions come before the removals they make possible, and a neighbour
that applies the changes one by one never misses an event.

To show an id again replaces it.
"""

from dataclasses import dataclass
from typing import Protocol

from tamis.pubsub.entry import Entry


@dataclass(frozen=True, slots=True)
class Show:
    """An entry is new, or replaces the one with its id."""

    entry: Entry


@dataclass(frozen=True, slots=True)
class Hide:
    """The entry of that id is gone."""

    id: str


Change = Show | Hide


class Stage(Protocol):
    """Takes one change, answers with the changes it makes of it."""

    def show(self, entry: Entry) -> list[Change]:
        """An entry comes, or replaces the one with its id."""
        ...

    def hide(self, id: str) -> list[Change]:
        """An entry goes."""
        ...
