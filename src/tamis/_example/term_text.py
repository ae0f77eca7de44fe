"""Parses the text of a computed term, as the kernel prints it, into a tree."""

import re
from dataclasses import dataclass
from typing import Any

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<string>'(?:\\.|[^'\\])*')"
    r"|(?P<name>(?:`(?:``|[^`])*`|[A-Za-z_]\w*)(?:\.(?:`(?:``|[^`])*`|\w+))*)"
    r"|(?P<mark><=>|<=|>=|!=|->|[-+*/%(),<>=]))"
)
_LEVELS = (("=", "!=", "<", "<=", ">", ">=", "<=>"), ("+", "-"), ("*", "/", "%"))


@dataclass(frozen=True)
class Attribute:
    """An attribute, by its dotted path."""

    path: str


@dataclass(frozen=True)
class Constant:
    """A value that stands in the text."""

    value: Any


@dataclass(frozen=True)
class Call:
    """A function or an operator, and what it is given."""

    name: str
    given: tuple[Any, ...]


Tree = Attribute | Constant | Call


class UnreadableTermError(ValueError):
    """A term that is written in a way this reader does not know."""


def read_term(text: str) -> Tree:
    """The tree of a term.

    >>> read_term("price * abs(x)")
    Call(name='*', given=(Attribute(path='price'), Call(name='abs', given=(Attribute(path='x'),))))
    """
    tokens: list[tuple[str, str]] = []
    at = 0
    while at < len(text.rstrip()):
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            raise UnreadableTermError(text)
        tokens.append((found.lastgroup, found[found.lastgroup]))
        at = found.end()
    tree, rest = _binary(tokens, 0)
    if rest:
        raise UnreadableTermError(text)
    return tree


_Tokens = list[tuple[str, str]]


def _binary(tokens: _Tokens, level: int) -> tuple[Tree, _Tokens]:
    if level == len(_LEVELS):
        return _single(tokens)
    left, tokens = _binary(tokens, level + 1)
    while tokens and tokens[0][0] == "mark" and tokens[0][1] in _LEVELS[level]:
        operator = tokens[0][1]
        right, tokens = _binary(tokens[1:], level + 1)
        left = Call(operator, (left, right))
    return left, tokens


def _single(tokens: _Tokens) -> tuple[Tree, _Tokens]:
    if not tokens:
        raise UnreadableTermError("the term ends")
    (kind, text), rest = tokens[0], tokens[1:]
    following = rest[0][1] if rest else ""
    if kind == "number":
        return Constant(float(text) if re.search(r"[.eE]", text) else int(text)), rest
    if kind == "string":
        return Constant(_unquoted(text)), rest
    if text == "(":
        tree, rest = _binary(rest, 0)
        return tree, _after(")", rest)
    if text == "-":
        tree, rest = _single(rest)
        return Call("-", (Constant(0), tree)), rest
    if kind != "name":
        raise UnreadableTermError(text)
    if text == "CAST" and following == "(":
        tree, rest = _binary(rest[1:], 0)
        kinds = rest[1][1] if len(rest) > 1 else ""
        return Call("CAST", (tree, Constant(kinds))), _after(")", rest[2:])
    if text == "INTERVAL" and len(rest) > 1:
        return Call("INTERVAL", (Constant(_unquoted(rest[0][1])), Constant(rest[1][1]))), rest[2:]
    if text in ("TIMESTAMP", "DATE", "DOUBLE") and rest and rest[0][0] == "string":
        return Call(text, (Constant(_unquoted(rest[0][1])),)), rest[1:]
    if text in ("TRUE", "FALSE") and following != "(":
        return Constant(text == "TRUE"), rest
    if following == "(":
        return _call(text, rest[1:])
    return Attribute(".".join(_names(text))), rest


def _call(name: str, tokens: _Tokens) -> tuple[Tree, _Tokens]:
    given: list[Tree] = []
    while tokens and tokens[0][1] != ")":
        tree, tokens = _binary(tokens, 0)
        given.append(tree)
        if tokens and tokens[0][1] == ",":
            tokens = tokens[1:]
    return Call(name, tuple(given)), _after(")", tokens)


def _after(mark: str, tokens: _Tokens) -> _Tokens:
    if not tokens or tokens[0][1] != mark:
        raise UnreadableTermError(f"{mark} is missing")
    return tokens[1:]


def _names(text: str) -> list[str]:
    parts = re.findall(r"`((?:``|[^`])*)`|([^.`]+)", text)
    return [quoted.replace("``", "`") or plain for quoted, plain in parts]


def _unquoted(text: str) -> str:
    if not text.startswith("'"):
        return text
    return re.sub(r"\\(.)", lambda found: {"n": "\n", "t": "\t"}.get(found[1], found[1]), text[1:-1])
