"""Random XML documents and XPath expressions over a small alphabet, and lxml's answers: the judge of `xpath`.

The alphabet is small so that names recur at every depth (`//a//a//b`), and comparisons meet few values.
"""

import random
from collections.abc import Sequence
from contextlib import suppress

from lxml import etree

NAMESPACES = {"p": "u"}
DECLARATION = 'declare namespace p = "u"; '
_LITERALS = ("1", "2", "1.5", "'1'", "'x'", "''", "'12'", "-1", ".5", '"2"')
_LEAVES = ("@x", "@y", "@*", "text()", ".//text()", ".//@x", "@p:x", "a/@x", ".//b/text()")
_TEXTS = ("1", "2", "x", " 1 ", "<!-- -->", "&#49;", "<![CDATA[2]]>", "-1", "1e1", ".5", "&amp;", "<?i?>")


def random_path(source: random.Random) -> str:
    """An absolute path."""
    path = "".join(_step(source, 2) for _ in range(source.choice((1, 2, 2, 3, 3, 4))))
    endings = ("/@x", "//@*", "/text()", "//text()", "/@x[. = '1' or . > 1]", "/text()[contains(., '1')]")
    chance = source.random()
    if chance < 0.2:
        return path + source.choice(endings)
    return source.choice(("//@y", "/text()", "//text()")) if chance < 0.22 else path


def _step(source: random.Random, nesting: int) -> str:
    name = source.choices(("a", "b", "c", "*", "p:a", "p:*"), (5, 3, 1, 1, 1, 1))[0]
    count = source.choices((0, 1, 2), (4, 3, 1))[0] if nesting > 0 else 0
    conditions = "".join(f"[{_condition(source, nesting - 1)}]" for _ in range(count))
    return source.choice(("/", "/", "//")) + name + conditions


def _relative(source: random.Random, nesting: int) -> str:
    chance = source.random()
    if chance < 0.15:
        return "."
    if chance < 0.4:
        return source.choice(_LEAVES)
    steps = "".join(_step(source, nesting) for _ in range(source.choice((1, 1, 2, 3))))
    if source.random() < 0.15:
        steps += "/@x"
    return steps[1:] if not steps.startswith("//") and source.random() < 0.7 else f".{steps}"


def _condition(source: random.Random, nesting: int) -> str:
    chance = source.random()
    if chance < 0.12 and nesting >= 0:
        parts = [_condition(source, nesting - 1) for _ in range(source.choice((2, 3)))]
        return f"({source.choice((' and ', ' or ')).join(parts)})"
    if chance < 0.2:
        return f"not({_condition(source, nesting - 1)})"
    path = _relative(source, nesting)
    if chance < 0.45:
        return path
    if chance < 0.85:
        literal = source.choice(_LITERALS)
        operator = source.choice(("=", "=", "!=", "<", "<=", ">", ">="))
        return f"{path} {operator} {literal}" if source.random() < 0.8 else f"{literal} {operator} {path}"
    function = source.choice(("contains", "starts-with"))
    return f"{function}({path}, '{source.choice(('', '1', 'x', '2', '12'))}')"


def random_document(source: random.Random) -> str:
    """A well-formed document."""
    inside = "".join(_element(source, 1) for _ in range(source.choice((0, 1, 2, 3))))
    return f"<a xmlns:p='u'>{inside}</a>" if source.random() < 0.95 else "<b/>"


def _element(source: random.Random, depth: int) -> str:
    tag = source.choices(("a", "b", "c", "p:a", "p:b"), (5, 3, 1, 1, 1))[0]
    attributes = ""
    if source.random() < 0.3:
        attributes += f" x='{source.choice(('1', '2', 'x', ''))}'"
    if source.random() < 0.2:
        attributes += f" y='{source.choice(('2', '12'))}'"
    if source.random() < 0.1:
        attributes += " p:x='1'"
    if source.random() < 0.03:
        attributes += " xmlns='u'"
    inside = ""
    for _ in range(source.choices((0, 1, 2, 3), (2, 4, 3, 2))[0] if depth < 7 else 0):
        inside += _element(source, depth + 1) if source.random() < 0.7 else source.choice(_TEXTS)
    return f"<{tag}{attributes}>{inside}</{tag}>"


class Judge:
    """What lxml says of some paths."""

    def __init__(self, paths: Sequence[str]) -> None:
        """Compile each path as a truth."""
        self.compiled = [etree.XPath(f"boolean({path})", namespaces=NAMESPACES) for path in paths]

    def true_for(self, document: str) -> list[int]:
        """The numbers of the paths that select something."""
        tree = etree.ElementTree(etree.fromstring(document))
        return [number for number, path in enumerate(self.compiled) if path(tree)]


def is_well_formed(document: str) -> bool:
    """Whether lxml finds nothing wrong, but for what it thinks of the names of namespaces."""
    harmless = (etree.ErrorTypes.WAR_NS_URI, etree.ErrorTypes.WAR_NS_URI_RELATIVE)
    parser = etree.XMLParser()
    with suppress(etree.XMLSyntaxError):  # an undeclared prefix does not always raise one
        etree.fromstring(document.encode(), parser)
    return all(entry.type in harmless for entry in parser.error_log)
