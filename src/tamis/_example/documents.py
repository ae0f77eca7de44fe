"""An XML document in which an XPath finds something."""

import re
from xml.etree import ElementTree

from tamis._example.values import values_for

_TOKEN = re.compile(
    r"""\s*(?P<token>//|<=|>=|!=|[/\[\]()@*=<>,]|"[^"]*"|'[^']*'|\d+(?:\.\d+)?|\.\d+"""
    r"""|text\(\)|Q\{[^}]*\}(?:[\w.-]+|\*)|\.\.?|[^\W\d][\w.-]*)"""
)
_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


class _UnknownError(Exception):
    """Part of a path that no document is written for here."""


def document_for(path: str, before: str | None = None) -> str | None:
    """A document for a path; `before` is one to which it is added.

    >>> document_for("/news/item[price > 5 and @lang = 'en']/title")
    '<news><item lang="en"><price>6</price><title /></item></news>'
    >>> document_for("//item", "<news />")
    '<news><item /></news>'
    """
    try:
        root = None if before is None else ElementTree.fromstring(before)
    except ElementTree.ParseError:
        return None
    writer = _Writer(_tokens(path))
    around = ElementTree.Element("around")
    if root is not None:
        around.append(root)
    try:
        writer.path(around, None)
    except (_UnknownError, IndexError, RecursionError):
        return None
    return ElementTree.tostring(around[0], encoding="unicode") if len(around) == 1 else None


def _tokens(path: str) -> list[str]:
    tokens, at = [], 0
    while found := _TOKEN.match(path, at):
        tokens.append(found["token"])
        at = found.end()
    return tokens


class _Writer:
    """Reads a path from left to right and writes what it asks for."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = [*tokens, ""]
        self._at = 0

    @property
    def _next(self) -> str:
        return self._tokens[self._at]

    def _take(self, *expected: str) -> str:
        token = self._next
        if expected and token not in expected:
            raise _UnknownError
        self._at += 1
        return token

    def path(self, element: ElementTree.Element, text: str | None) -> None:
        """Write the elements of a path below one, with a text in the last."""
        self._steps(element, text, is_whole=element.tag == "around")

    def _steps(self, element: ElementTree.Element, text: str | None, *, is_whole: bool) -> None:
        while True:
            anywhere = False
            if self._next in ("/", "//"):
                anywhere = self._take() == "//"
            token = self._take()
            if is_whole and token in ("@", "text()"):
                element = element[0] if len(element) else ElementTree.SubElement(element, "any")
            if token == "@":
                element.set(self._tag(self._take()), "a" if text is None else text)
                return
            if token == "text()":
                element.text = "a" if text is None else text
                return
            if token != ".":
                element = self._child(element, self._tag(token), anywhere=anywhere, is_whole=is_whole)
            is_whole = False
            while self._next == "[":
                self._take()
                self._condition(element)
                self._take("]")
            if self._next not in ("/", "//"):
                if text is not None:
                    element.text = text
                return

    @staticmethod
    def _tag(token: str) -> str:
        name = token.removeprefix("Q")
        if token == "*" or name.endswith("*"):
            return name.removesuffix("*") + "any"
        if not re.match(r"\{|[^\W\d]", name):
            raise _UnknownError
        return name

    def _child(
        self, element: ElementTree.Element, tag: str, *, anywhere: bool, is_whole: bool
    ) -> ElementTree.Element:
        """An element below; a document has one root, which may be there already."""
        if is_whole and len(element):
            root = element[0]
            if root.tag == tag and not anywhere:
                return root
            if not anywhere:
                raise _UnknownError
            element = root
        return ElementTree.SubElement(element, tag)

    def _condition(self, element: ElementTree.Element) -> None:
        """What a predicate asks for: of an `or` the first part, of a `not` nothing."""
        self._conjunction(element)
        while self._next == "or":
            self._take()
            self._conjunction(ElementTree.Element("elsewhere"))

    def _conjunction(self, element: ElementTree.Element) -> None:
        self._test(element)
        while self._next == "and":
            self._take()
            self._test(element)

    def _test(self, element: ElementTree.Element) -> None:
        if self._next == "(":
            self._take()
            self._condition(element)
            self._take(")")
        elif self._next in ("not", "contains", "starts-with") and self._tokens[self._at + 1] == "(":
            function = self._take()
            self._take("(")
            if function == "not":
                self._condition(ElementTree.Element("elsewhere"))
            else:
                start = self._at
                self.path(ElementTree.Element("elsewhere"), None)
                self._take(",")
                self._again(start, element, self._take()[1:-1])
            self._take(")")
        else:
            start = self._at
            self.path(ElementTree.Element("elsewhere"), None)
            value = None
            if self._next in _COMPARISONS:
                value = _text_for(self._take(), self._take())
            self._again(start, element, value)

    def _again(self, start: int, element: ElementTree.Element, text: str | None) -> None:
        """Write a path whose value stands behind it."""
        behind, self._at = self._at, start
        self.path(element, text)
        self._at = behind


def _text_for(operator: str, value: str) -> str:
    if value[:1] in "\"'":
        text = value[1:-1]
        return text if operator == "=" else text + "a"
    number = float(value)
    plain = int(number) if number.is_integer() else number
    if operator == "!=":
        return str(plain + 1)
    return str(values_for(operator, [plain], wanted=True)[0])
