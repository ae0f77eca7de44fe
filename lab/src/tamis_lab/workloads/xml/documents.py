"""Random documents of a DTD."""

import random
from bisect import bisect
from collections.abc import Iterator
from functools import cache
from itertools import accumulate
from xml.sax.saxutils import escape

from tamis_lab.workloads.xml.dtd import Dtd, Model, dtd

# Numbers are drawn evenly from here.
NUMBERS = 1000
_WORDS_OF_TEXT = (4, 12)
_VOCABULARY = 2000


class Values:
    """Values of elements and attributes: each name has a vocabulary of its own, drawn with a Zipf skew.

    >>> Values(10, 1.0).text(random.Random(1), "city").startswith("city")
    True
    """

    def __init__(self, count: int, skew: float) -> None:
        """Say how many values a name has and how unevenly they come."""
        self.count = count
        self._cumulated = _zipf(count, skew)

    def text(self, source: random.Random, name: str) -> str:
        """A text value of a name."""
        return f"{name}{bisect(self._cumulated, source.random() * self._cumulated[-1])}"

    @staticmethod
    def number(source: random.Random) -> str:
        """A number."""
        return str(source.randrange(NUMBERS))


@cache
def _zipf(count: int, skew: float) -> list[float]:
    return list(accumulate(1 / (rank + 1) ** skew for rank in range(count)))


def documents(
    count: int,
    *,
    kind: str = "news",
    size: int = 10_000,
    depth: int = 8,
    values: int = 1000,
    skew: float = 1.0,
    seed: int = 1,
) -> Iterator[str]:
    """Documents of about `size` bytes, at most `depth` levels deep.

    >>> [document] = documents(1, kind="auction", size=2000)
    >>> document.startswith("<site>"), 1500 < len(document) < 3500
    (True, True)
    """
    for number in range(count):
        yield _Writer(
            dtd(kind), depth, Values(values, skew), random.Random(f"{seed} {kind} {number}")
        ).document(size)


class _Writer:
    def __init__(self, kind: Dtd, depth: int, values: Values, source: random.Random) -> None:
        self.dtd, self.depth, self.values, self.source = kind, depth, values, source
        self.least = _least_depths(kind)

    def document(self, size: int) -> str:
        """The root once, what may repeat in it often enough."""
        root = self.dtd.elements[self.dtd.root]
        parts = [self.inside(part, self.depth - 1) for part in root.model.parts]
        # What may be repeated, in the root or in its last child.
        while sum(map(len, parts)) < size:
            repeated = [at for at, part in enumerate(root.model.parts) if part.times in ("+", "*")]
            if repeated:
                at = self.source.choice(repeated)
                parts[at] += self.element(root.model.parts[at].name, self.depth - 1)
            else:
                at = self.source.randrange(len(parts))
                child = self.dtd.elements[root.model.parts[at].name]
                end = parts[at].rindex("</")
                more = self.element(child.children[0], self.depth - 2)
                parts[at] = parts[at][:end] + more + parts[at][end:]
        return self.start(root.name) + "".join(parts) + f"</{root.name}>"

    def start(self, name: str) -> str:
        """A start tag with random attributes."""
        attributes = ""
        for attribute in self.dtd.elements[name].attributes:
            if attribute.is_required or self.source.random() < 0.6:
                own = (
                    Values.number(self.source)
                    if attribute.is_number
                    else self.values.text(self.source, attribute.name)
                )
                attributes += f' {attribute.name}="{escape(own)}"'
        return f"<{name}{attributes}>"

    def element(self, name: str, depth: int) -> str:
        """An element of this many levels at most."""
        return f"{self.start(name)}{self.inside(self.dtd.elements[name].model, depth - 1, name)}</{name}>"

    def inside(self, model: Model, depth: int, owner: str = "") -> str:
        """What a content model stands for, as little as possible where the depth is spent."""
        times = self.times(model.times)
        if model.times in ("?", "*") and depth < self.needed(model):
            times = 0
        written = ""
        for _ in range(times):
            if model.name:
                written += self.one(model.name, depth, owner)
            elif model.joined == "|":
                fitting = [part for part in model.parts if depth >= self.needed(part)] or [
                    min(model.parts, key=self.needed)
                ]
                written += self.inside(self.source.choice(fitting), depth, owner)
            else:
                written += "".join(self.inside(part, depth, owner) for part in model.parts)
        return written

    def one(self, name: str, depth: int, owner: str) -> str:
        if name == "#NUMBER":
            return Values.number(self.source)
        if name == "#PCDATA":
            mixed = len(self.dtd.elements[owner].children) > 0
            return self.words() if mixed else escape(self.values.text(self.source, owner))
        return self.element(name, depth)

    def times(self, times: str) -> int:
        match times:
            case "?":
                return self.source.randrange(2)
            case "*":
                return self.source.choice((0, 1, 1, 2, 3))
            case "+":
                return self.source.choice((1, 1, 2, 3))
        return 1

    def words(self) -> str:
        count = self.source.randint(*_WORDS_OF_TEXT)
        return " ".join(f"w{int(_VOCABULARY ** self.source.random())}" for _ in range(count)) + " "

    def needed(self, model: Model) -> int:
        """The levels that a model needs at least."""
        if model.name:
            return self.least.get(model.name, 0)
        levels = [self.needed(part) if part.times not in ("?", "*") else 0 for part in model.parts]
        return min(map(self.needed, model.parts)) if model.joined == "|" else max(levels, default=0)


def _least_depths(kind: Dtd) -> dict[str, int]:
    """How many levels each element has at least."""
    least = dict.fromkeys(kind.elements, 10**6)

    def of(model: Model) -> int:
        if model.times in ("?", "*"):
            return 0
        if model.name:
            return 0 if model.name.startswith("#") else least[model.name]
        return (min if model.joined == "|" else max)(of(part) for part in model.parts)

    changed = True
    while changed:
        changed = False
        for name, element in kind.elements.items():
            if (depth := of(element.model) + 1) < least[name]:
                least[name], changed = depth, True
    return least
