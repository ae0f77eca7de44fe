"""Events as a client may see them: some attributes, nothing else, each as it was written."""

import hashlib
import json
import re
from collections.abc import Iterable

from tamis.pubsub.records import EventHeader, event_body, split_event

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s"{}\[\],:]+')
Kept = dict[str, "bytes | Kept"]


def projection_id(attributes: Iterable[str]) -> str:
    """The same for the same attributes.

    >>> projection_id(["a", "b"]) == projection_id(["b", "a"])
    True
    """
    text = json.dumps(sorted(set(attributes)))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def project(body: bytes, attributes: Iterable[str]) -> bytes:
    """An event's record with these attributes only; `a.b` is the part `b` of the record `a`.

    Values are copied as bytes: whatever their depth and digits, they stay what they were. Of the header stays
    who has published the event and where, or that it is a gap; not where else it goes.

    >>> project(b'{"v":1,"p":"bob"}\\n{"a":{"b":1.50,"c":2},"d":3}', ["a.b"])
    b'{"v":1,"p":"bob"}\\n{"a":{"b":1.50}}'
    """
    header, event = split_event(body)
    known = EventHeader.read(header)
    if known.origin is not None:
        shown = EventHeader(known.publisher, known.origin, missing=known.missing, reason=known.reason)
        header = shown.body()
    whole = _members(event)
    kept: Kept = {}
    for attribute in attributes:
        _keep(whole, kept, attribute)
    return event_body(header, _written(kept))


def _keep(whole: dict[str, bytes], kept: Kept, attribute: str) -> None:
    if attribute in whole:
        kept[attribute] = whole[attribute]
        return
    first, dot, rest = attribute.partition(".")
    inner = whole.get(first, b"")
    if dot and inner.startswith(b"{"):
        below = kept.setdefault(first, {})
        if isinstance(below, dict):
            _keep(_members(inner), below, rest)


def _members(text: bytes) -> dict[str, bytes]:
    """The members of a JSON object, which is known to be one, each as its bytes.

    >>> _members(b' {"a": [1, {"b": 2}] , "c\\\\n": "}"}')
    {'a': b'[1, {"b": 2}]', 'c\\n': b'"}"'}
    """
    found: dict[str, bytes] = {}
    depth, start, name = 0, -1, ""
    for piece in _TOKEN.finditer(text):
        first = text[piece.start()]
        if depth == 1 and start < 0:
            if first == 0x22:
                name = json.loads(piece[0])
            elif first == 0x3A:
                start = piece.end()
        if first in b"{[":
            depth += 1
        elif first in b"}]":
            depth -= 1
        if start >= 0 and (depth == 0 or (depth == 1 and first == 0x2C)):
            found[name] = text[start : piece.start()].strip()
            start = -1
    return found


def _written(kept: Kept) -> bytes:
    members = (
        json.dumps(name).encode() + b":" + (_written(value) if isinstance(value, dict) else value)
        for name, value in kept.items()
    )
    return b"{" + b",".join(members) + b"}"
