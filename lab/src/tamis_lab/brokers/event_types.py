"""Event types: which attributes an event of a type has, all of them and no others.

Types are optional. Without a declaration, a type is only a name that events and subscriptions share; an event
without a type is only seen by subscriptions without one.
"""

import json
from collections.abc import Mapping
from typing import Any

from tamis._kernel import Expression

KINDS: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
    "string": (str,),
    "any": (object,),
}


class EventTypes:
    """Declared types and what they refuse.

    >>> types = EventTypes({"book": {"title": "string", "price": "float"}})
    >>> types.fault_of_event("book", {"title": "Emma", "price": 9})
    >>> types.fault_of_event("book", {"title": "Emma"})
    "an event of type 'book' needs the attribute 'price'"
    """

    def __init__(self, declared: Mapping[str, Mapping[str, str]] | None = None) -> None:
        """Take the kind of each attribute by type; kinds are bool, int, float, string and any."""
        self.declared = {name: dict(attributes) for name, attributes in (declared or {}).items()}
        for name, attributes in self.declared.items():
            for attribute, kind in attributes.items():
                if kind not in KINDS:
                    raise ValueError(
                        f"type {name!r}, attribute {attribute!r}: there is no kind {kind!r}; "
                        f"known are {', '.join(KINDS)}"
                    )

    def fault_of_event(self, type: str | None, event: Mapping[str, Any]) -> str | None:
        """Why an event is not of its type, or None."""
        if not self.declared or type is None:
            return None
        attributes = self.declared.get(type)
        if attributes is None:
            return self._unknown(type)
        for attribute, kind in attributes.items():
            value = event.get(attribute)
            if value is None:
                return f"an event of type {type!r} needs the attribute {attribute!r}"
            if not isinstance(value, KINDS[kind]) or (isinstance(value, bool) and kind in ("int", "float")):
                return f"attribute {attribute!r} of type {type!r} is {kind}, not {json.dumps(value)}"
        for attribute in event:
            if attribute not in attributes:
                return f"type {type!r} has no attribute {attribute!r}; it has {', '.join(attributes)}"
        return None

    def fault_of_expression(self, type: str | None, expression: Expression) -> str | None:
        """Why an expression cannot be about a type, or None.

        >>> import tamis
        >>> types = EventTypes({"book": {"title": "string"}})
        >>> types.fault_of_expression("book", tamis.parse("titel = 'Emma'"))
        "type 'book' has no attribute 'titel'; it has title"
        """
        if not self.declared or type is None:
            return None
        attributes = self.declared.get(type)
        if attributes is None:
            return self._unknown(type)
        for attribute in expression.attributes:
            if attribute not in attributes:
                return f"type {type!r} has no attribute {attribute!r}; it has {', '.join(attributes)}"
        return None

    def _unknown(self, type: str) -> str:
        return f"there is no event type {type!r}; declared are {', '.join(self.declared)}"
