"""Extracts the body of a quantifier as a separate expression, for lints and examples."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tamis._kernel import Expression
from tamis.errors import ExpressionError

_WRITTEN = re.compile(r"(exists|forall|any)\((.+?), ([A-Za-z_]\w*) -> (.*)\)", re.DOTALL)
_PARTS = re.compile(r"'(?:\\.|[^'\\])*'|`(?:``|[^`])*`|[\w.]+|.", re.DOTALL)
_ELEMENT = "element"


@dataclass(frozen=True)
class Quantifier:
    """`exists(items, i -> i.price > 5)`: its name, the array, and the body, where the variable is `element`.

    >>> quantifier = Quantifier.of("exists(items, i -> i.price > 5)")
    >>> quantifier.name, quantifier.array, str(quantifier.body)
    ('exists', 'items', 'element.price > 5')
    """

    name: str
    array: str
    body: Expression

    @classmethod
    def of(cls, term: str) -> "Quantifier | None":
        """The quantifier that a term is, if it is one and can be taken apart.

        >>> Quantifier.of("lower(x)")
        """
        written = _WRITTEN.fullmatch(term)
        if written is None:
            return None
        name, array, variable, body = written.groups()
        if variable != _ELEMENT and _names(body, _ELEMENT):
            return None  # the event has an attribute of that name, or another quantifier a variable
        try:
            return cls(name, array, Expression.parse(_renamed(body, variable)))
        except ExpressionError:
            return None

    def __str__(self) -> str:
        """As it is written with the variable `element`."""
        return f"{self.name}({self.array}, {_ELEMENT} -> {self.body})"


def quantifiers(form: Any) -> Iterator[tuple[str, Quantifier]]:
    """The quantifiers in the JSON form of an expression, each with its term.

    >>> import json
    >>> form = json.loads(Expression.parse("x = 1 AND exists(tags, t -> t = 'a')").to_json())
    >>> [term for term, _ in quantifiers(form)]
    ["exists(tags, t -> t = 'a')"]
    """
    if isinstance(form, dict):
        if isinstance(term := form.get("term"), str):
            quantifier = Quantifier.of(term)
            if quantifier is not None:
                yield term, quantifier
        for inner in form.values():
            yield from quantifiers(inner)
    elif isinstance(form, list):
        for inner in form:
            yield from quantifiers(inner)


def replaced(form: Any, instead: Mapping[str, Any]) -> Any:
    """The form with another one in the place of each predicate on some terms.

    >>> replaced({"or": [{"term": "exists(x, e -> e)", "operator": "truth"}]}, {"exists(x, e -> e)": True})
    {'or': [True]}
    """
    if isinstance(form, list):
        return [replaced(inner, instead) for inner in form]
    if not isinstance(form, dict):
        return form
    if form.get("term") in instead and form.get("operator") == "truth":
        other = instead[form["term"]]
        return {"not": other} if form.get("negated") else other
    return {key: replaced(inner, instead) for key, inner in form.items()}


def _names(text: str, name: str) -> bool:
    return any(part.split(".")[0] == name for part in _PARTS.findall(text))


def _renamed(text: str, variable: str) -> str:
    return "".join(
        _ELEMENT + part[len(variable) :] if part.split(".")[0] == variable else part
        for part in _PARTS.findall(text)
    )
