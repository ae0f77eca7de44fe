"""The messages between brokers on a link, and their JSON form.

A message is one of the small classes below. `Register` and `Deregister` carry subscriptions, `Advertise`
and `Withdraw` advertisements, `Forward` an event. `Barrier` asks the neighbour to answer `Settled` once
everything said before it has spread to all brokers behind the neighbour. `Synced` ends the retelling that
follows a restart: what was not told again is gone.

Expressions and events travel as text, so that a message is plain data and means the same on every machine.
"""

from dataclasses import astuple, dataclass
from typing import Any, TypeGuard

from tamis.errors import TamisError

MOST_NUMBER = 2**63 - 1
"""The greatest number that a peer may send: what every store and every language can hold."""


class ProtocolError(TamisError):
    """A neighbour or client said something that has no meaning here.

    >>> issubclass(ProtocolError, TamisError)
    True
    """


@dataclass(frozen=True, slots=True)
class Register:
    """A subscription behind the sender; `hops` brokers away. An id that is known is replaced."""

    id: str
    expression: str
    type: str | None
    hops: int


@dataclass(frozen=True, slots=True)
class Deregister:
    """There is no such subscription behind the sender any more."""

    id: str


@dataclass(frozen=True, slots=True)
class Advertise:
    """Publishers behind the sender may publish what satisfies this expression."""

    id: str
    expression: str
    type: str | None


@dataclass(frozen=True, slots=True)
class Withdraw:
    """The advertisement of that id holds no longer."""

    id: str


@dataclass(frozen=True, slots=True)
class Forward:
    """An event. `number` counts the events of this link for ever, across restarts.

    With `everywhere` it goes to all brokers, whatever the routing tables say.
    """

    number: int
    event: str
    type: str | None
    everywhere: bool
    origin: str


@dataclass(frozen=True, slots=True)
class Barrier:
    """Answer `Settled(number)` once all that was said before has spread."""

    number: int


@dataclass(frozen=True, slots=True)
class Settled:
    """All that was said before `Barrier(number)` has spread."""

    number: int


@dataclass(frozen=True, slots=True)
class Synced:
    """All subscriptions, or all advertisements, have been told since the sender or the receiver restarted."""

    what: str


Message = Register | Deregister | Advertise | Withdraw | Forward | Barrier | Settled | Synced

_KINDS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (Register, Deregister, Advertise, Withdraw, Forward, Barrier, Settled, Synced)
}


@dataclass(frozen=True, slots=True)
class Frame:
    """A message on a link, numbered; without a body, a greeting or an acknowledgement.

    Epochs count the starts of a broker. A frame belongs to the conversation between two of them.
    """

    sender_epoch: int
    receiver_epoch: int
    number: int
    acknowledged: int
    body: Message | None

    def to_json(self) -> list[Any]:
        """Write as a list that `json` can write.

        >>> Frame(1, 2, 3, 0, Deregister("a")).to_json()
        [1, 2, 3, 0, 'Deregister', 'a']
        """
        head: list[Any] = [self.sender_epoch, self.receiver_epoch, self.number, self.acknowledged]
        return head if self.body is None else [*head, type(self.body).__name__, *astuple(self.body)]

    @staticmethod
    def from_json(parts: Any) -> "Frame":
        """Read what `to_json` wrote; `ProtocolError` for anything else.

        >>> Frame.from_json([1, 2, 3, 0, "Deregister", "a"]).body
        Deregister(id='a')
        >>> Frame.from_json([1, 2, 3, 0, "Shout", "a"])
        Traceback (most recent call last):
        ...
        tamis_lab.brokers.messages.ProtocolError: a frame says 'Shout'; known are Register, ...
        """
        if not isinstance(parts, list) or len(parts) < 4 or not all(is_count(part) for part in parts[:4]):
            raise ProtocolError(
                "a frame starts with four numbers: two epochs, its number, the acknowledged one"
            )
        if len(parts) == 4:
            return Frame(parts[0], parts[1], parts[2], parts[3], None)
        name, *fields = parts[4:]
        kind = _KINDS.get(name) if isinstance(name, str) else None
        if kind is None:
            raise ProtocolError(f"a frame says {name!r}; known are {', '.join(_KINDS)}")
        wanted = kind.__annotations__
        if len(fields) != len(wanted) or not all(
            _fits(value, hint) for value, hint in zip(fields, wanted.values(), strict=True)
        ):
            raise ProtocolError(f"{name} needs {', '.join(wanted)}; got {len(fields)} values")
        return Frame(parts[0], parts[1], parts[2], parts[3], kind(*fields))


def is_count(value: Any, least: int = 0) -> TypeGuard[int]:
    """Whether a value that came from outside is a whole number in the range that is allowed.

    >>> [is_count(value) for value in (3, 2**63, -1, True, 3.0, "3")]
    [True, False, False, False, False, False]
    """
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= MOST_NUMBER


def _fits(value: Any, hint: Any) -> bool:
    if hint is bool:
        return isinstance(value, bool)
    if hint is int:
        return is_count(value)
    if hint is str:
        return isinstance(value, str)
    return value is None or isinstance(value, str)
