"""The messages between a client and its broker, after the hello.

client -> broker                                            broker -> client
{"do": "subscribe", "request": 1, "id": "s1",               {"reply": 1} or {"reply": 1, "error": "..."}
 "expression": "price < 15", "type": null, "priority": 0}
{"do": "unsubscribe", "request": 2, "id": "s1"}             {"event": "{...}", "number": 7, "type": null,
{"do": "advertise", "request": 3, "id": "a1",                "subscriptions": ["s1"], "origin": "b1/ann/4"}
 "expression": "price > 3", "type": null}
{"do": "withdraw", "request": 4, "id": "a1"}                {"gap": [8, 12], "reason": "buffer full"}
{"do": "publish", "request": 5, "number": 1,                {"reply": 0, "value": 4}: after the hello, the
 "event": "{...}", "type": null}                             number of the client's last publication
{"do": "acknowledge", "number": 7}
"""

import math
import reprlib
from collections.abc import Callable
from typing import Any, NamedTuple

from tamis.pubsub.broker import inputs as i
from tamis.pubsub.broker.effects import Deliver, DeliverGap, Reply
from tamis.pubsub.broker.messages import MOST_NUMBER, ProtocolError, is_count


class _Field(NamedTuple):
    """A field of a message: its type, what is wanted, and how it is read; `ValueError` refuses it."""

    type: str
    wanted: str
    read: Callable[[Any], Any]
    is_optional: bool = False


def _number_from(least: int) -> _Field:
    def read(value: Any) -> int:
        if not is_count(value, least):
            raise ValueError
        return value

    return _Field("int", f"a whole number from {least} to {MOST_NUMBER}", read)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def _text_or_null(value: Any) -> str | None:
    return None if value is None else _text(value)


def _finite(value: Any) -> float:
    """A number that others can be compared with: readers of JSON let NaN, Infinity and 1e999 through."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError
    try:
        number = float(value)
    except OverflowError:  # an integer of hundreds of digits
        raise ValueError from None
    if not math.isfinite(number):
        raise ValueError
    return number


_REQUEST, _NUMBER, _ACKNOWLEDGED = _number_from(1), _number_from(1), _number_from(0)
_TEXT = _Field("str", "a text", _text)
_TYPE = _Field("str", "a text or null", _text_or_null, is_optional=True)
_PRIORITY = _Field("float", "a finite number", _finite, is_optional=True)

_KINDS: dict[str, tuple[type[Any], dict[str, _Field]]] = {
    "subscribe": (
        i.Subscribe,
        {"request": _REQUEST, "id": _TEXT, "expression": _TEXT, "type": _TYPE, "priority": _PRIORITY},
    ),
    "unsubscribe": (i.Unsubscribe, {"request": _REQUEST, "id": _TEXT}),
    "advertise": (i.AdvertiseEvents, {"request": _REQUEST, "id": _TEXT, "expression": _TEXT, "type": _TYPE}),
    "withdraw": (i.WithdrawAdvertisement, {"request": _REQUEST, "id": _TEXT}),
    "publish": (i.Publish, {"request": _REQUEST, "number": _NUMBER, "event": _TEXT, "type": _TYPE}),
    "acknowledge": (i.Acknowledge, {"number": _ACKNOWLEDGED}),
}


def to_input(client: str, message: dict[str, Any]) -> Any:
    """Read a client's message as an input of the broker; `ProtocolError` says what is wrong with it.

    >>> to_input("ann", {"do": "unsubscribe", "request": 2, "id": "s1"})
    Unsubscribe(client='ann', request=2, id='s1')
    >>> to_input("ann", {"do": "unsubscribe", "request": 2})
    Traceback (most recent call last):
    ...
    tamis.pubsub.broker.messages.ProtocolError: unsubscribe needs 'id' (str): a text
    >>> subscription = {"id": "s1", "expression": "price < 15", "priority": float("nan")}
    >>> to_input("ann", {"do": "subscribe", "request": 3, **subscription})
    Traceback (most recent call last):
    ...
    tamis.pubsub.broker.messages.ProtocolError: subscribe needs 'priority' (float): a finite number, not nan
    """
    do = message.get("do")
    if not isinstance(do, str) or do not in _KINDS:
        raise ProtocolError(f'a request says what to "do": {", ".join(_KINDS)}; not {reprlib.repr(do)}')
    kind, fields = _KINDS[do]
    values: dict[str, Any] = {}
    for name, field in fields.items():
        if name not in message and field.is_optional:
            continue
        try:
            values[name] = field.read(message.get(name))
        except ValueError:
            given = f", not {reprlib.repr(message[name])}" if name in message else ""
            raise ProtocolError(f"{do} needs {name!r} ({field.type}): {field.wanted}{given}") from None
    return kind(client=client, **values)


def request_number(message: dict[str, Any]) -> int | None:
    """The number under which a request can be answered, also one that is wrong otherwise.

    >>> request_number({"do": "subscribe", "request": 3, "priority": "high"}), request_number({"request": -1})
    (3, None)
    """
    number = message.get("request")
    return number if is_count(number, least=1) else None


def to_message(effect: Reply | Deliver | DeliverGap) -> dict[str, Any]:
    """Write what a broker tells a client.

    >>> to_message(Reply("ann", 1))
    {'reply': 1}
    """
    match effect:
        case Reply(_, request, error, value):
            reply: dict[str, Any] = {"reply": request}
            if error is not None:
                reply["error"] = error
            if value is not None:
                reply["value"] = value
            return reply
        case DeliverGap(_, first, last, reason):
            return {"gap": [first, last], "reason": reason}
        case Deliver(_, number, event, type, subscriptions, origin):
            return {
                "event": event,
                "number": number,
                "type": type,
                "subscriptions": list(subscriptions),
                "origin": origin,
            }
