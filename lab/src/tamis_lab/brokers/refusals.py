"""Which of a client's publications were refused, so that a repeated one is refused again.

A client that lost its connection repeats what was not answered. The broker takes a number that is not above
the last accepted one for a repetition, and must not say of a refused one that it was published. A number
above that is judged again. So a refusal has to be durable only once a later publication is.
"""

MOST = 1_000
MOST_CHARACTERS = 500


class Refusals:
    """The last refusals of one client, and which of them are durable.

    >>> refusals = Refusals()
    >>> refusals.add(1, "no JSON")
    >>> refusals.changes_with(2)
    {1: 'no JSON'}
    >>> refusals.changes_with(3)
    {}
    >>> refusals.error_of(1)
    'no JSON'
    """

    def __init__(self) -> None:
        """Nothing was refused yet."""
        self._errors: dict[int, str] = {}
        self._durable: set[int] = set()
        self._is_changed = False

    def add(self, number: int, error: str) -> None:
        """A publication was refused; the oldest refusal is forgotten if there are too many."""
        self._errors[number] = error[:MOST_CHARACTERS]
        if len(self._errors) > MOST:
            del self._errors[min(self._errors)]
        self._is_changed = True

    def error_of(self, number: int) -> str | None:
        """Why a publication was refused; None if it was not."""
        return self._errors.get(number)

    def changes_with(self, number: int) -> dict[int, str | None]:
        """A publication is accepted: what is to become durable with it; None for what is to be removed."""
        if self._errors.pop(number, None) is None and not self._is_changed:
            return {}
        changes: dict[int, str | None] = dict.fromkeys(self._durable - self._errors.keys())
        for refused in self._errors.keys() - self._durable:
            changes[refused] = self._errors[refused]
        self._durable = set(self._errors)
        self._is_changed = False
        return changes

    def restore(self, number: int, error: str) -> None:
        """Take back what was durable."""
        self._errors[number] = error
        self._durable.add(number)
