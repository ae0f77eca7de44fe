"""Random XPath expressions over a DTD."""

import random
from collections.abc import Iterator

from tamis_lab.workloads.xml.documents import NUMBERS, Values
from tamis_lab.workloads.xml.dtd import Dtd, Element, dtd


def paths(
    count: int,
    *,
    kind: str = "news",
    depth: int = 6,
    wildcard: float = 0.1,
    descendant: float = 0.1,
    predicates: float = 1.5,
    ranges: float = 0.1,
    values: int = 1000,
    skew: float = 1.0,
    seed: int = 1,
) -> Iterator[str]:
    """Distinct paths of two to `depth` steps.

    A step is `*` with the probability `wildcard`, and follows `//` with the probability `descendant`. There
    are `predicates` predicates per path on average, each at a random step: of those on numbers `ranges` are
    comparisons of order, the others equalities. Values are drawn as in documents.

    >>> for path in paths(3, predicates=0.5, seed=7):
    ...     assert path.startswith("/news") or path.startswith("//") or path.startswith("/*"), path
    """
    writer = _Writer(dtd(kind), Values(values, skew), random.Random(f"{seed} {kind}"))
    seen: set[str] = set()
    tries = 0
    while len(seen) < count:
        path = writer.path(depth, wildcard, descendant, predicates, ranges)
        tries += 1
        if tries > 50 * count + 1000:
            raise ValueError(
                f"there are hardly more than {len(seen)} such paths; ask for more values or predicates"
            )
        if path not in seen:
            seen.add(path)
            yield path


class _Writer:
    def __init__(self, kind: Dtd, values: Values, source: random.Random) -> None:
        self.dtd, self.values, self.source = kind, values, source

    def path(self, depth: int, wildcard: float, descendant: float, predicates: float, ranges: float) -> str:
        """One path."""
        source = self.source
        names = [self.dtd.root]
        length = source.randint(2, depth)
        while len(names) < length and (children := self.dtd.elements[names[-1]].children):
            names.append(source.choice(children))
        wanted = int(predicates) + (source.random() < predicates % 1)
        places = sorted(source.choices(range(len(names)), k=wanted))
        steps = []
        skipped = False
        for at, name in enumerate(names):
            last = at == len(names) - 1
            if not last and at not in places and source.random() < descendant:
                skipped = True
                continue
            step = "*" if source.random() < wildcard else name
            conditions = "".join(
                f"[{self.condition(self.dtd.elements[name], ranges)}]" for _ in range(places.count(at))
            )
            steps.append(("//" if skipped else "/") + step + conditions)
            skipped = False
        return "".join(steps)

    def condition(self, element: Element, ranges: float) -> str:
        """A predicate about an element: an attribute, its text, that of a child, or the existence of one."""
        source = self.source
        subjects: list[tuple[str, str, bool]] = [
            (f"@{attribute.name}", attribute.name, attribute.is_number) for attribute in element.attributes
        ]
        if element.has_text and not element.children:
            subjects.append((source.choice((".", "text()")), element.name, element.is_number))
        for name in element.children:
            child = self.dtd.elements[name]
            if child.has_text and not child.children:
                subjects.append((name, name, child.is_number))
            for attribute in child.attributes:
                subjects.append((f"{name}/@{attribute.name}", attribute.name, attribute.is_number))
        if not subjects:
            deeper = [
                f"{name}/{below}" for name in element.children for below in self.dtd.elements[name].children
            ]
            return source.choice(deeper or element.children or ["*"])
        subject, name, is_number = source.choice(subjects)
        if not is_number:
            return f"{subject} = '{self.values.text(source, name)}'"
        operator = source.choice(("<", "<=", ">", ">=")) if source.random() < ranges else "="
        return f"{subject} {operator} {source.randrange(NUMBERS)}"
