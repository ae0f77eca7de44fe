"""Events as a client may see them: some attributes, nothing else."""

import hashlib
import json
from collections.abc import Iterable

from tamis.pubsub.records import event_body, split_event


def projection_id(attributes: Iterable[str]) -> str:
    """The same for the same attributes.

    >>> projection_id(["a", "b"]) == projection_id(["b", "a"])
    True
    """
    text = json.dumps(sorted(set(attributes)))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def project(body: bytes, attributes: Iterable[str]) -> bytes:
    """An event's record with these attributes only; `a.b` is the part `b` of the record `a`.

    >>> project(b'{}\\n{"a":{"b":1,"c":2},"d":3}', ["a.b"])
    b'{}\\n{"a":{"b":1}}'
    """
    header, event = split_event(body)
    whole = json.loads(event)
    kept: dict[str, object] = {}
    for attribute in attributes:
        _keep(whole, kept, attribute)
    return event_body(header, json.dumps(kept, separators=(",", ":")).encode())


def _keep(whole: dict[str, object], kept: dict[str, object], attribute: str) -> None:
    if attribute in whole:
        kept[attribute] = whole[attribute]
        return
    first, dot, rest = attribute.partition(".")
    inner = whole.get(first)
    if dot and isinstance(inner, dict):
        below = kept.setdefault(first, {})
        if isinstance(below, dict):
            _keep(inner, below, rest)
