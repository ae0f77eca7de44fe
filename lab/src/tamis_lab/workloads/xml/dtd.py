"""What documents of a kind look like, read from a DTD.

Content models are sequences, choices and repetitions of elements, and character data. Beside `#PCDATA` and
`CDATA` there are `#NUMBER` and `NUMBER`, which no DTD has: values that generators draw from a range.
"""

import re
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

_ELEMENT = re.compile(r"<!ELEMENT\s+([\w-]+)\s+(\(.*?\)[*+?]?)\s*>", re.DOTALL)
_ATTRIBUTES = re.compile(r"<!ATTLIST\s+([\w-]+)\s+(.*?)>", re.DOTALL)
_ATTRIBUTE = re.compile(r"([\w-]+)\s+(CDATA|NUMBER)\s+#(REQUIRED|IMPLIED)")
_TOKEN = re.compile(r"[\w#-]+|[()|,*+?]")

KINDS = ("news", "auction")


@dataclass(frozen=True)
class Model:
    """What an element contains: a name or other models, and how often (`""`, `?`, `*` or `+`)."""

    name: str = ""
    joined: str = ","
    parts: tuple["Model", ...] = ()
    times: str = ""


@dataclass(frozen=True)
class Attribute:
    """An attribute of an element."""

    name: str
    is_number: bool
    is_required: bool


@dataclass
class Element:
    """A kind of element."""

    name: str
    model: Model
    attributes: list[Attribute] = field(default_factory=list)
    children: list[str] = field(default_factory=list)
    has_text: bool = False
    is_number: bool = False


@dataclass(frozen=True)
class Dtd:
    """The elements of a kind of document, and the one that documents begin with."""

    root: str
    elements: dict[str, Element]


@cache
def dtd(kind: str) -> Dtd:
    """The DTD of that name.

    >>> dtd("news").elements["item"].children
    ['head', 'body', 'related']
    """
    return parse(files(__package__).joinpath(f"{kind}.dtd").read_text())


def parse(text: str) -> Dtd:
    """Read a DTD; its first element is the root.

    >>> parse("<!ELEMENT a (b*)><!ELEMENT b (#PCDATA)><!ATTLIST b x CDATA #REQUIRED>").elements["b"].has_text
    True
    """
    elements: dict[str, Element] = {}
    for name, content in _ELEMENT.findall(text):
        model, rest = _model(_TOKEN.findall(content))
        if rest:
            raise ValueError(f"the content of {name} goes on after its end: {rest}")
        names = list(dict.fromkeys(_names(model)))
        elements[name] = Element(
            name,
            model,
            children=[child for child in names if not child.startswith("#")],
            has_text="#PCDATA" in names or "#NUMBER" in names,
            is_number="#NUMBER" in names,
        )
    for name, declared in _ATTRIBUTES.findall(text):
        elements[name].attributes += [
            Attribute(attribute, kind == "NUMBER", need == "REQUIRED")
            for attribute, kind, need in _ATTRIBUTE.findall(declared)
        ]
    for element in elements.values():
        for child in element.children:
            if child not in elements:
                raise ValueError(f"{element.name} contains {child}, which is not declared")
    return Dtd(next(iter(elements)), elements)


def _model(tokens: list[str]) -> tuple[Model, list[str]]:
    """One model at the beginning of the tokens, and what follows."""
    first, rest = tokens[0], tokens[1:]
    parts: list[Model] = []
    joined = ","
    if first == "(":
        while rest[0] != ")":
            if rest[0] in ",|":
                joined = rest[0]
                rest = rest[1:]
            part, rest = _model(rest)
            parts.append(part)
        rest = rest[1:]
    times = rest[0] if rest and rest[0] in "*+?" else ""
    name = "" if first == "(" else first
    return Model(name, joined, tuple(parts), times), rest[len(times) :]


def _names(model: Model) -> list[str]:
    return [model.name] if model.name else [name for part in model.parts for name in _names(part)]
