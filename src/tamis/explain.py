"""Why a subscription matches an event or does not, as objects, as text and on a console."""

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:  # a program that shows no explanation on a console has no need of these
    from rich.console import RenderableType
    from rich.text import Text
    from rich.tree import Tree

Truth = Literal["true", "false", "undefined", "either"]

MARKS: dict[Truth, tuple[str, str]] = {
    "true": ("✓", "green"),
    "false": ("✗", "red"),
    "undefined": ("?", "yellow"),
    "either": ("±", "cyan"),
}

ANSWERS = {
    "matches": "it matches",
    "impossible": "no change of its predicates would make it match",
    "unknown": "no answer was found within the budget",
}


@dataclass(frozen=True)
class Explanation:
    """A node of an expression as it was written, with its truth for an event.

    A predicate has an `attribute` and the `value` that the event has there (None when absent); `seen` says
    the same in words, and whether the value is of a type that the predicate can use. A connective has
    `children`. Printing one shows the whole tree; so does `rich.print`, in colour.

    >>> import tamis
    >>> index = tamis.Index()
    >>> index.add("a", "age >= 22 AND country = 'CA'")
    >>> explanation = index.explain("a", {"age": 20, "country": "CA"})
    >>> explanation.truth, [(node.text, node.truth, node.value) for node in explanation.children]
    ('false', [('age >= 22', 'false', 20), ("country = 'CA'", 'true', 'CA')])
    """

    text: str
    truth: Truth
    attribute: str | None = None
    value: Any = None
    seen: str | None = None
    children: tuple["Explanation", ...] = ()

    @classmethod
    def from_json(cls, text: str) -> "Explanation":
        """The explanation that `to_json` wrote.

        >>> Explanation.from_json('{"text": "TRUE", "outcome": "true"}').truth
        'true'
        """
        return cls._from_tree(json.loads(text))

    @classmethod
    def _from_tree(cls, node: dict[str, Any]) -> "Explanation":
        return cls(
            node["text"],
            node["outcome"],
            node.get("attribute"),
            node.get("value"),
            node.get("seen"),
            tuple(cls._from_tree(child) for child in node.get("children", ())),
        )

    def to_json(self) -> str:
        """The tree as JSON.

        >>> Explanation("TRUE", "true").to_json()
        '{"text": "TRUE", "outcome": "true"}'
        """
        return json.dumps(self._tree())

    def _tree(self) -> dict[str, Any]:
        node: dict[str, Any] = {"text": self.text, "outcome": self.truth}
        if self.attribute is not None:
            node |= {"attribute": self.attribute, "value": self.value, "seen": self.seen}
        if self.children:
            node["children"] = [child._tree() for child in self.children]
        return node

    def __str__(self) -> str:
        """The tree as indented lines: a mark, the text, and what a predicate saw."""
        below = [f"  {line}" for child in self.children for line in str(child).splitlines()]
        return "\n".join([f"{MARKS[self.truth][0]} {self.text}{self._remark()}", *below])

    def __rich__(self) -> "RenderableType":
        """The tree in colour."""
        from rich.tree import Tree  # noqa: PLC0415

        tree = Tree(self._label())
        self._grow(tree)
        return tree

    def _grow(self, tree: "Tree") -> None:
        for child in self.children:
            child._grow(tree.add(child._label()))

    def _label(self) -> "Text":
        from rich.text import Text  # noqa: PLC0415

        mark, colour = MARKS[self.truth]
        return Text.assemble((f"{mark} {self.text}", colour), (self._remark(), "dim"))

    def _remark(self) -> str:
        return "" if self.attribute is None else f" ({self.attribute} {self.seen})"


@dataclass(frozen=True)
class Change:
    """A predicate that would have to change: what the event has there now, and what it has to become.

    >>> import tamis
    >>> index = tamis.Index()
    >>> index.add("a", "age >= 22")
    >>> [change] = index.why_not("a", {"age": 20}).changes
    >>> change.predicate, change.attribute, change.value, change.becomes
    ('age >= 22', 'age', 20, True)
    """

    predicate: str
    attribute: str
    value: Any
    becomes: bool
    text: str

    def __str__(self) -> str:
        """One line: what is, and what would be needed."""
        return self.text


@dataclass(frozen=True)
class WhyNot:
    """What stands between an event and a subscription.

    `answer` is "matches", "changes", "impossible" (no change of its predicates would help) or "unknown" (the
    search for an answer was cut short). `changes` are the fewest that would do, if `is_smallest`.

    >>> import tamis
    >>> index = tamis.Index()
    >>> index.add("a", "age >= 22 AND country = 'CA'")
    >>> index.why_not("a", {"age": 27, "country": "CA"}).answer
    'matches'
    >>> print(index.why_not("a", {"country": "US"}))
    age is absent; needs to be >= 22
    country is 'US'; needs to be = 'CA'
    """

    answer: Literal["matches", "changes", "impossible", "unknown"]
    changes: tuple[Change, ...] = ()
    is_smallest: bool = True

    @classmethod
    def from_json(cls, text: str) -> "WhyNot":
        """The answer that `to_json` wrote.

        >>> WhyNot.from_json('{"answer": "matches"}').answer
        'matches'
        """
        data = json.loads(text)
        changes = tuple(
            Change(item["predicate"], item["attribute"], item["value"], item["becomes"], item["text"])
            for item in data.get("changes", ())
        )
        return cls(data["answer"], changes, data.get("is_smallest", True))

    def to_json(self) -> str:
        """The answer as JSON.

        >>> WhyNot("impossible").to_json()
        '{"answer": "impossible"}'
        """
        data: dict[str, Any] = {"answer": self.answer}
        if self.answer == "changes":
            data |= {"changes": [asdict(change) for change in self.changes], "is_smallest": self.is_smallest}
        return json.dumps(data)

    def __str__(self) -> str:
        """One line for each change, or one line that says why there is none."""
        if self.answer != "changes":
            return ANSWERS[self.answer]
        doubt = [] if self.is_smallest else ["(a smaller set may exist)"]
        return "\n".join([*map(str, self.changes), *doubt])

    def __rich__(self) -> "RenderableType":
        """The lines in colour."""
        from rich.text import Text  # noqa: PLC0415

        return Text(str(self), style="green" if self.answer == "matches" else "red")
