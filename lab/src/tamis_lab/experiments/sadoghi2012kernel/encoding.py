"""XPath expressions as Boolean expressions, and XML documents as attribute-value pairs.

The paper says of GPX-Matcher that it encodes so, and no more. This encoding is ours. It is exact for what it
takes: paths of child steps from the root, with wildcards and equalities of attributes, and at most one `//`,
after which there are names only.

    /news/*[@lang = 'en']//item/title    p1 = 'news' AND `p2@lang` = 'en' AND `item/title` >= 3

Each way from the root of a document to a leaf is one event: the name at each level, the attributes there, and
for each sequence of names on the way the deepest level at which it begins.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree

Event = dict[str, str | int]


@dataclass(frozen=True)
class Step:
    """A child step: its name, or `*`, and an attribute that it must have with a value."""

    name: str
    attribute: tuple[str, str] | None = None


@dataclass(frozen=True)
class TreePath:
    """Child steps from the root, then maybe `//` and names that follow one another.

    >>> path = TreePath((Step("news"), Step("*", ("lang", "en"))), ("item", "title"))
    >>> path.xpath()
    "/news/*[@lang = 'en']//item/title"
    >>> path.expression()
    "p1 = 'news' AND `p2@lang` = 'en' AND `item/title` >= 3"
    """

    steps: tuple[Step, ...]
    below: tuple[str, ...] = ()

    def xpath(self) -> str:
        """As XPath."""
        written = ""
        for step in self.steps:
            test = "" if step.attribute is None else "[@{} = '{}']".format(*step.attribute)
            written += f"/{step.name}{test}"
        return written + (f"//{'/'.join(self.below)}" if self.below else "")

    def expression(self) -> str:
        """As a Boolean expression."""
        parts = []
        for level, step in enumerate(self.steps, 1):
            if step.name != "*":
                parts.append(f"p{level} = '{step.name}'")
            if step.attribute is not None:
                parts.append("`p{}@{}` = '{}'".format(level, *step.attribute))
        if self.below:
            parts.append(f"`{'/'.join(self.below)}` >= {len(self.steps) + 1}")
        elif self.steps[-1].name == "*" and self.steps[-1].attribute is None:
            parts.append(f"depth >= {len(self.steps)}")
        return " AND ".join(parts)


def events_of(document: str) -> list[Event]:
    """The ways of a document from its root to its leaves, each once.

    >>> events_of("<a x='1'><b/><b/></a>")
    [{'depth': 2, 'p1': 'a', 'p1@x': '1', 'a': 1, 'a/b': 1, 'p2': 'b', 'b': 2}]
    """
    seen: dict[tuple[tuple[str, object], ...], Event] = {}
    for way in ways(ElementTree.fromstring(document)):
        event: Event = {"depth": len(way)}
        for level, element in enumerate(way, 1):
            event[f"p{level}"] = element.tag
            event |= {f"p{level}@{name}": value for name, value in element.attrib.items()}
            names = ""
            for below in way[level - 1 :]:
                names += ("/" if names else "") + below.tag
                event[names] = level
        seen.setdefault(tuple(event.items()), event)
    return list(seen.values())


def ways(root: ElementTree.Element) -> Iterator[list[ElementTree.Element]]:
    """The elements from the root to each leaf.

    >>> [[e.tag for e in way] for way in ways(ElementTree.fromstring("<a><b><c/></b><d/></a>"))]
    [['a', 'b', 'c'], ['a', 'd']]
    """
    children = list(root)
    for child in children:
        for way in ways(child):
            yield [root, *way]
    if not children:
        yield [root]


def random_paths(count: int, documents: list[str], source: random.Random) -> list[TreePath]:
    """Distinct paths that follow ways of some documents, with values that are there or nearly so.

    >>> len(random_paths(5, ["<a x='1'><b y='2'/></a>"], random.Random(1)))
    5
    """
    all_ways = [way for document in documents for way in ways(ElementTree.fromstring(document))]
    found: dict[TreePath, None] = {}
    while len(found) < count:
        way = source.choice(all_ways)
        way = way[: source.randint(1, len(way))]
        anchored = source.randint(1, len(way))
        steps = tuple(_step(element, source) for element in way[:anchored])
        below = way[anchored + 1 :] if source.random() < 0.5 else way[anchored:]
        found[TreePath(steps, tuple(element.tag for element in below))] = None
    return list(found)


def _step(element: ElementTree.Element, source: random.Random) -> Step:
    name = "*" if source.random() < 0.1 else element.tag
    if not element.attrib or source.random() < 0.3:
        return Step(name)
    attribute = source.choice(sorted(element.attrib))
    value = element.attrib[attribute]
    if source.random() < 0.5:
        value += str(source.randrange(10_000))
    return Step(name, (attribute, value))
