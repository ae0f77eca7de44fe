"""Who may connect, what they may do, and how much of it: credentials, permissions, limits per client.

The credentials file is JSON. Tokens are stored as SHA-256 digests:

    {"clients": {"ann": {"token": "sha256:9f86...", "attributes": ["price", "title"], "ids": "ann-*",
                         "publish": false, "limits": {"subscriptions": 10}}},
     "neighbours": {"b2": {"token": "sha256:..."}}}
"""

import hashlib
import hmac
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import tamis
from tamis.errors import TamisError
from tamis.pubsub.broker.messages import ProtocolError


class AccessError(TamisError):
    """A client or neighbour may not do what it asks for.

    >>> issubclass(AccessError, TamisError)
    True
    """


@dataclass(frozen=True)
class ClientLimits:
    """How much one client may have and do."""

    subscriptions: int = 10_000
    expression_bytes: int = 64 * 1024
    event_bytes: int = 256 * 1024
    requests_per_second: float = 10_000.0

    def __post_init__(self) -> None:
        """Refuse what cannot be counted up to, and a pace at which nothing would ever be answered."""
        for limit in fields(self):
            value = getattr(self, limit.name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number or not 0 <= value < math.inf:
                raise AccessError(f"the limit {limit.name} is a finite number from 0 on, not {value!r}")
        if not self.requests_per_second:
            raise AccessError("with requests_per_second 0, no request would be answered; write 1 or more")


@dataclass(frozen=True)
class Permissions:
    """What one client may do; None allows all attributes.

    >>> ann = Permissions(attributes=frozenset({"price"}), ids="ann-*", publish=False)
    >>> ann.check({"do": "subscribe", "id": "ann-1", "expression": "price < 5"})
    >>> ann.check({"do": "subscribe", "id": "ann-1", "expression": "salary > 5"})
    Traceback (most recent call last):
    ...
    tamis.pubsub.net.access.AccessError: the attribute 'salary' is not allowed; allowed are price
    """

    attributes: frozenset[str] | None = None
    ids: str = "*"
    publish: bool = True
    subscribe: bool = True
    advertise: bool = True
    limits: ClientLimits = field(default_factory=ClientLimits)

    def check(self, request: Mapping[str, Any]) -> None:
        """Raise `AccessError` if a request is not allowed or too large."""
        do = request["do"]
        kind = {"unsubscribe": "subscribe", "withdraw": "advertise"}.get(do, do)
        if not getattr(self, kind):
            raise AccessError(f"this client may not {kind}")
        if do == "publish":
            self._check_event(request["event"])
            return
        if not fnmatchcase(request["id"], self.ids):
            raise AccessError(f"the id {request['id']!r} is not allowed; allowed are {self.ids}")
        if "expression" in request:
            size = len(request["expression"].encode())
            if size > self.limits.expression_bytes:
                raise AccessError(
                    f"the expression has {size:,} bytes; at most {self.limits.expression_bytes:,} are allowed"
                )
            self._check_attributes(tamis.parse(request["expression"]).attributes)

    def _check_event(self, event: str) -> None:
        size = len(event.encode())
        if size > self.limits.event_bytes:
            raise AccessError(
                f"the event has {size:,} bytes; at most {self.limits.event_bytes:,} are allowed"
            )
        try:
            values = json.loads(event)
        except (ValueError, RecursionError) as error:
            raise ProtocolError(f"an event is a JSON object: {error}") from None
        if not isinstance(values, dict):
            raise ProtocolError(f"an event is a JSON object, not {type(values).__name__}")
        self._check_attributes(list(values))

    def _check_attributes(self, attributes: list[str]) -> None:
        if self.attributes is None:
            return
        for attribute in attributes:
            if attribute not in self.attributes:
                allowed = ", ".join(sorted(self.attributes))
                raise AccessError(f"the attribute {attribute!r} is not allowed; allowed are {allowed}")


class RateLimit:
    """So many requests a second, with a burst of one second's worth.

    >>> limit = RateLimit(2.0, now=0.0)
    >>> [limit.allows(0.0), limit.allows(0.0), limit.allows(0.0), limit.allows(0.5)]
    [True, True, False, True]
    """

    def __init__(self, per_second: float, now: float) -> None:
        """Start with a full burst."""
        self._per_second = per_second
        self._left = max(1.0, per_second)
        self._at = now

    def allows(self, now: float) -> bool:
        """Whether one more request is allowed now; if so, it is counted."""
        self._left = min(max(1.0, self._per_second), self._left + (now - self._at) * self._per_second)
        self._at = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


class Access:
    """All credentials; without a file, everybody may do everything within the limits.

    >>> open_to_all = Access()
    >>> open_to_all.client("ann", None).publish
    True
    """

    def __init__(self, credentials: Mapping[str, Any] | None = None) -> None:
        """Take the content of a credentials file."""
        self._credentials = credentials

    @property
    def is_open(self) -> bool:
        """Whether anyone may connect, as a client of any name or as a neighbour."""
        return self._credentials is None

    @classmethod
    def from_file(cls, path: Path) -> "Access":
        """Read a credentials file."""
        try:
            return cls(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise AccessError(f"cannot read the credentials in {path}: {error}") from None

    def client(self, name: str, token: str | None) -> Permissions:
        """The permissions of a client; `AccessError` if its token is not right."""
        known = self._known("clients", name, token)
        if known is None:
            return Permissions()
        attributes = known.get("attributes")
        return Permissions(
            None if attributes is None else frozenset(attributes),
            known.get("ids", "*"),
            known.get("publish", True),
            known.get("subscribe", True),
            known.get("advertise", True),
            ClientLimits(**known.get("limits", {})),
        )

    def neighbour(self, name: str, token: str | None) -> None:
        """Let a neighbour in; `AccessError` if its token is not right."""
        self._known("neighbours", name, token)

    def _known(self, kind: str, name: str, token: str | None) -> dict[str, Any] | None:
        if self._credentials is None:
            return None
        known: dict[str, Any] = self._credentials.get(kind, {}).get(name, {})
        # Unknown names are compared too, so that the time taken does not tell which names exist.
        if not hmac.compare_digest(digest(token or ""), known.get("token", "")) or not known:
            raise AccessError(f"no {kind[:-1]} {name!r} with that token")
        return known


def digest(token: str) -> str:
    """A token as it is written in the credentials file.

    >>> digest("secret")[:14]
    'sha256:2bb80d5'
    """
    return "sha256:" + hashlib.sha256(token.encode()).hexdigest()
