"""Scored paths by their definition: random paths with weights, and what they count in a document.

A path is made as a tree, so that nothing here reads text: the text is what Tamis reads, and the tree is
evaluated on a document that lxml has read. All embeddings are tried; nothing is shared or remembered.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from lxml import etree

Element = etree._Element
Document = etree._ElementTree
WEIGHTS = (0.0, 0.1, 0.25, 0.7, 1.0, 2.0, 3.5)


@dataclass(frozen=True)
class Attribute:
    """An attribute of an element."""

    owner: Element
    value: str


Node = Element | Attribute | Document


def value_of(node: Node) -> str:
    """What XPath calls the string value."""
    return node.value if isinstance(node, Attribute) else "".join(node.itertext())


def weighted(text: str, weight: float | None) -> str:
    """The text with the weight behind it."""
    return text if weight is None else f"{text}^{weight!r}"


@dataclass
class Step:
    """`//name^weight[condition]^weight`."""

    descends: bool
    name: str
    weight: float | None
    conditions: list["Condition"] = field(default_factory=list)

    def __str__(self) -> str:
        """Without the slashes before it."""
        brackets = [weighted(f"[{condition.inside()}]", condition.weight) for condition in self.conditions]
        return weighted(self.name, self.weight) + "".join(brackets)

    def nodes_from(self, node: Node) -> list[Node]:
        """The nodes that it leads to from a node, if it had no conditions."""
        if isinstance(node, Attribute):
            return []
        if self.name.startswith("@"):
            pairs = [(owner, *pair) for owner in self.owners(node) for pair in owner.attrib.items()]
            return [Attribute(owner, v) for owner, k, v in pairs if self.name in ("@*", f"@{k}")]
        if isinstance(node, Document):
            found = list(node.getroot().iter()) if self.descends else [node.getroot()]
        else:
            found = list(node.iterdescendants()) if self.descends else list(node)
        return [one for one in found if self.name in ("*", one.tag)]

    def owners(self, node: Element | Document) -> list[Element]:
        """The elements whose attributes it may lead to."""
        if self.descends:
            return list(node.iter())
        return [] if isinstance(node, Document) else [node]

    def score(self, node: Node) -> float | None:
        """What it counts at a node that has its name; `None` if a condition fails there."""
        total = self.weight or 0.0
        for condition in self.conditions:
            part = condition.score(node)
            if part is None:
                return None
            total += part
        return total


def embeddings(steps: list[Step], node: Node, total: float = 0.0) -> Iterator[tuple[Node, float]]:
    """Where every embedding ends, and what it counts."""
    if not steps:
        yield node, total
        return
    for found in steps[0].nodes_from(node):
        part = steps[0].score(found)
        if part is not None:
            yield from embeddings(steps[1:], found, total + part)


@dataclass
class Condition:
    """A condition of a predicate, maybe with a weight."""

    kind: str
    weight: float | None = None
    parts: list["Condition"] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    value: str = ""

    def inside(self) -> str:
        """The text without the weight."""
        path = relative(self.steps)
        match self.kind:
            case "and" | "or":
                return f" {self.kind} ".join(str(part) for part in self.parts)
            case "not":
                return f"not({self.parts[0]})"
            case "exists":
                return path
            case "contains" | "starts-with":
                return f"{self.kind}({path}, '{self.value}')"
            case comparison:
                return f"{path} {comparison} '{self.value}'"

    def __str__(self) -> str:
        """The text, in parentheses where needed."""
        if self.weight is not None:
            return weighted(f"({self.inside()})", self.weight)
        return f"({self.inside()})" if self.kind in ("and", "or") else self.inside()

    def score(self, node: Node) -> float | None:
        """What it counts at a node; `None` if it is not true."""
        own = self.unweighted(node)
        return None if own is None else own + (self.weight or 0.0)

    def unweighted(self, node: Node) -> float | None:
        """The same without its own weight."""
        scores = [part.score(node) for part in self.parts]
        true = [score for score in scores if score is not None]
        if self.kind == "not":
            return None if true else 0.0
        if self.kind in ("and", "or"):
            enough = len(true) == len(scores) if self.kind == "and" else bool(true)
            return left_sum(true) if enough else None
        ends = list(embeddings(self.steps, node))
        if self.kind in ("contains", "starts-with"):
            return self.of_first(ends)
        tests = {"=": lambda value: value == self.value, "!=": lambda value: value != self.value}
        test = tests.get(self.kind, lambda value: True)
        return max((score for end, score in ends if test(value_of(end))), default=None)

    def of_first(self, ends: list[tuple[Node, float]]) -> float | None:
        """Of a text search: what counts at the first node of all."""

        def place(end: Element | Attribute) -> tuple[int, int]:
            owner = end.owner if isinstance(end, Attribute) else end
            order = list(owner.getroottree().iter())
            attributes = list(owner.attrib.values())
            return order.index(owner), attributes.index(end.value) if isinstance(end, Attribute) else -1

        first = min((place(end) for end, _ in ends), default=None)
        text = next((value_of(end) for end, _ in ends if place(end) == first), "")
        if not (self.value in text if self.kind == "contains" else text.startswith(self.value)):
            return None
        return max((score for end, score in ends if place(end) == first), default=0.0)


def left_sum(numbers: list[float]) -> float:
    """From left to right; `sum` is more exact."""
    total = 0.0
    for number in numbers:
        total += number
    return total


def relative(steps: list[Step]) -> str:
    """A path in a predicate."""
    text = "".join(("//" if step.descends else "/") + str(step) for step in steps)
    return f".{text}" if steps else "."


@dataclass
class ScoredPath:
    """An absolute path."""

    steps: list[Step]

    def __str__(self) -> str:
        """As Tamis reads it."""
        return relative(self.steps)[1:]

    def is_scored(self) -> bool:
        """Whether it has a weight."""
        return "^" in str(self)

    def score(self, document: Document) -> float | None:
        """What its best embedding counts, 1 without weights; `None` if there is no embedding."""
        best = max((score for _, score in embeddings(self.steps, document)), default=None)
        return best if best is None or self.is_scored() else 1.0


def random_scored_path(source: random.Random) -> ScoredPath:
    """A path over the alphabet of `random_scored_document`."""
    return ScoredPath(_steps(source, 2, source.choice((1, 2, 2, 3)), True))


def _weight(source: random.Random, may: bool) -> float | None:
    return source.choice(WEIGHTS) if may and source.random() < 0.45 else None


def _steps(source: random.Random, nesting: int, count: int, may: bool) -> list[Step]:
    steps = []
    for at in range(count):
        is_leaf = at > 0 and at + 1 == count and source.random() < 0.15
        name = source.choice(("@x", "@*")) if is_leaf else source.choice(("a", "a", "b", "*"))
        conditions = source.choices((0, 1, 2), (5, 3, 1))[0] if nesting > 0 else 0
        made = [_condition(source, nesting - 1, may) for _ in range(conditions)]
        steps.append(Step(source.random() < 0.4, name, _weight(source, may), made))
    return steps


def _condition(source: random.Random, nesting: int, may: bool) -> Condition:
    weight, chance = _weight(source, may), source.random()
    if chance < 0.35 and nesting >= 0:
        parts = [_condition(source, nesting - 1, may) for _ in range(source.choice((2, 3)))]
        return Condition("or" if source.random() < 0.7 else "and", weight, parts)
    if chance < 0.45:
        return Condition("not", weight, [_condition(source, nesting - 1, False)])
    steps = _steps(source, nesting, source.choice((0, 1, 1, 2)), may)
    if chance < 0.7:
        return Condition("exists", weight, [], steps)
    kind = source.choice(("=", "=", "!=", "contains", "starts-with"))
    return Condition(kind, weight, [], steps, source.choice(("", "1", "2", "12")))


def random_scored_document(source: random.Random) -> str:
    """A small document, so that all embeddings can be tried."""

    def element(depth: int) -> str:
        name = source.choice(("a", "a", "b"))
        attributes = f" x='{source.choice(('1', '2'))}'" if source.random() < 0.3 else ""
        attributes += f" y='{source.choice(('3', '12'))}'" if source.random() < 0.15 else ""
        inside = "".join(
            element(depth + 1) if source.random() < 0.7 else source.choice(("1", "2"))
            for _ in range(source.choice((0, 1, 2, 3)) if depth < 4 else 0)
        )
        return f"<{name}{attributes}>{inside}</{name}>"

    return element(0)
