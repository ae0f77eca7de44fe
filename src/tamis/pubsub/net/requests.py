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

from typing import Any

from tamis.pubsub import inputs as i
from tamis.pubsub.effects import Deliver, DeliverGap, Reply
from tamis.pubsub.messages import ProtocolError

_KINDS: dict[str, tuple[type[Any], dict[str, tuple[type, ...]]]] = {
    "subscribe": (i.Subscribe, {"request": (int,), "id": (str,), "expression": (str,)}),
    "unsubscribe": (i.Unsubscribe, {"request": (int,), "id": (str,)}),
    "advertise": (i.AdvertiseEvents, {"request": (int,), "id": (str,), "expression": (str,)}),
    "withdraw": (i.WithdrawAdvertisement, {"request": (int,), "id": (str,)}),
    "publish": (i.Publish, {"request": (int,), "number": (int,), "event": (str,)}),
    "acknowledge": (i.Acknowledge, {"number": (int,)}),
}
_OPTIONAL: dict[str, tuple[type, ...]] = {"type": (str, type(None)), "priority": (int, float)}


def to_input(client: str, message: dict[str, Any]) -> Any:
    """Read a client's message as an input of the broker; `ProtocolError` says what is wrong with it.

    >>> to_input("ann", {"do": "unsubscribe", "request": 2, "id": "s1"})
    Unsubscribe(client='ann', request=2, id='s1')
    >>> to_input("ann", {"do": "unsubscribe", "request": 2})
    Traceback (most recent call last):
    ...
    tamis.pubsub.messages.ProtocolError: unsubscribe needs 'id' (str)
    """
    do = message.get("do")
    if not isinstance(do, str) or do not in _KINDS:
        raise ProtocolError(f'a request says what to "do": {", ".join(_KINDS)}; not {do!r}')
    kind, needed = _KINDS[do]
    fields: dict[str, Any] = {}
    for name, types in needed.items():
        value = message.get(name)
        if not isinstance(value, types) or isinstance(value, bool):
            raise ProtocolError(f"{do} needs {name!r} ({types[0].__name__})")
        fields[name] = value
    for name, types in _OPTIONAL.items():
        if name in message and name in kind.__annotations__:
            if not isinstance(message[name], types):
                raise ProtocolError(f"{name!r} of {do} cannot be {message[name]!r}")
            fields[name] = message[name]
    return kind(client=client, **fields)


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
