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


APPROXIMATE = 'the index compares the intervals around values (overlap="approximate")'


@dataclass(frozen=True)
class Exclusion:
    """A reason other than its expression why a subscription does not match: its time or its tags.

    `kind` names the argument of `match` that is not met; `text` describes the state, `needs` what would
    change it.

    >>> import tamis
    >>> index = tamis.Index()
    >>> index.add("a", "age >= 22", tags=["q4"])
    >>> [exclusion] = index.explain("a", {"age": 27}, tags=["q5"]).exclusions
    >>> exclusion.kind, exclusion.text, exclusion.needs
    ('tags', 'its tags are `q4`', 'the tag `q5`')
    """

    kind: Literal["starts", "expired", "tags", "tags_all", "tags_none"]
    text: str
    needs: str

    def __str__(self) -> str:
        """One line: what is, and what would be needed."""
        return f"{self.text}; needs {self.needs}"


def _exclusions(data: dict[str, Any]) -> tuple[Exclusion, ...]:
    return tuple(Exclusion(**item) for item in data.get("exclusions", ()))


@dataclass(frozen=True)
class Explanation:
    """A node of an expression as it was written, with its truth for an event.

    A predicate has an `attribute` and the `value` that the event has there (None when absent); `seen` says
    the same in words, and whether the predicate can use the type of the value. A connective has `children`.
    Printing one shows the whole tree; so does `rich.print`, in colour.

    The root also knows whether the subscription `matches`: if the expression is true but the subscription has
    expired or lacks the required tags, `exclusions` says so. It is `approximate` if the algorithm reports a
    match although the expression is not true (`overlap="approximate"` of BE*-Tree).

    >>> import tamis
    >>> index = tamis.Index()
    >>> index.add("a", "age >= 22 AND country = 'CA'")
    >>> explanation = index.explain("a", {"age": 20, "country": "CA"})
    >>> explanation.truth, [(node.text, node.truth, node.value) for node in explanation.children]
    ('false', [('age >= 22', 'false', 20), ("country = 'CA'", 'true', 'CA')])
    >>> explanation.matches, explanation.verdict
    (False, 'no match')
    """

    text: str
    truth: Truth
    attribute: str | None = None
    value: Any = None
    seen: str | None = None
    children: tuple["Explanation", ...] = ()
    exclusions: tuple[Exclusion, ...] = ()
    approximate: bool = False

    @property
    def matches(self) -> bool:
        """Whether `Index.match` with the same arguments reports it.

        >>> Explanation("x > 1", "true").matches, Explanation("x > 1", "undefined").matches
        (True, False)
        """
        return self.approximate or (self.truth in ("true", "either") and not self.exclusions)

    @property
    def verdict(self) -> Literal["match", "no match"]:
        """`matches` in words.

        >>> untagged = Exclusion("tags", "it has no tags", "the tag `q4`")
        >>> Explanation("x > 1", "true", exclusions=(untagged,)).verdict
        'no match'
        """
        return "match" if self.matches else "no match"

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
            _exclusions(node),
            node.get("approximate", False),
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
        if self.exclusions:
            node["exclusions"] = [asdict(exclusion) for exclusion in self.exclusions]
        if self.approximate:
            node["approximate"] = True
        return node

    def __str__(self) -> str:
        """What excludes it, then the tree as indented lines: a mark, the text, and what a predicate saw."""
        below = [f"  {line}" for child in self.children for line in str(child).splitlines()]
        return "\n".join([*self._notes(), f"{MARKS[self.truth][0]} {self.text}{self._remark()}", *below])

    def _notes(self) -> list[str]:
        """The other conditions of a match, apart from the expression."""
        notes = [f"{self.verdict}: {exclusion}" for exclusion in self.exclusions]
        return [f"{self.verdict}: {APPROXIMATE}"] if self.approximate else notes

    def __rich__(self) -> "RenderableType":
        """The tree in colour."""
        from rich.console import Group  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415
        from rich.tree import Tree  # noqa: PLC0415

        tree = Tree(self._label())
        self._grow(tree)
        colour = "green" if self.matches else "red"
        return Group(*(Text(note, style=colour) for note in self._notes()), tree)

    def _grow(self, tree: "Tree") -> None:
        for child in self.children:
            child._grow(tree.add(child._label()))

    def _label(self) -> "Text":
        from rich.text import Text  # noqa: PLC0415

        mark, colour = MARKS[self.truth]
        return Text.assemble((f"{mark} {self.text}", colour), (self._remark(), "dim"))

    def _repr_html_(self) -> str:
        """The verdict and the tree, drawn, for a notebook."""
        from tamis import notebook  # noqa: PLC0415

        return notebook.of_explanation(self)

    def _remark(self) -> str:
        return "" if self.attribute is None else f" ({self.attribute} {self.seen})"


@dataclass(frozen=True)
class Change:
    """A predicate that would have to change: the current value of the event, and the required one.

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
    """The reasons why an event does not match a subscription.

    `answer` is "matches", "excluded" (its expression is true, but the subscription has expired or lacks the
    required tags), "changes", "impossible" (no change of its predicates would help) or "unknown" (the search
    for an answer was cut short). `changes` are a smallest sufficient set if `is_smallest`; `exclusions` must
    change in any case.

    >>> import tamis
    >>> index = tamis.Index()
    >>> index.add("a", "age >= 22 AND country = 'CA'")
    >>> index.why_not("a", {"age": 27, "country": "CA"}).answer
    'matches'
    >>> print(index.why_not("a", {"country": "US"}))
    age is absent; needs to be >= 22
    country is 'US'; needs to be = 'CA'
    >>> print(index.why_not("a", {"age": 27, "country": "CA"}, tags=["q4"]))
    it has no tags; needs the tag `q4`
    """

    answer: Literal["matches", "excluded", "changes", "impossible", "unknown"]
    changes: tuple[Change, ...] = ()
    is_smallest: bool = True
    exclusions: tuple[Exclusion, ...] = ()

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
        return cls(data["answer"], changes, data.get("is_smallest", True), _exclusions(data))

    def to_json(self) -> str:
        """The answer as JSON.

        >>> WhyNot("impossible").to_json()
        '{"answer": "impossible"}'
        """
        data: dict[str, Any] = {"answer": self.answer}
        if self.answer == "changes":
            data |= {"changes": [asdict(change) for change in self.changes], "is_smallest": self.is_smallest}
        if self.exclusions:
            data["exclusions"] = [asdict(exclusion) for exclusion in self.exclusions]
        return json.dumps(data)

    def __str__(self) -> str:
        """One line for each exclusion and each change, or one line that says why there is none."""
        lines = [*map(str, self.exclusions), *map(str, self.changes)]
        if self.answer not in ("changes", "excluded"):
            lines.append(ANSWERS[self.answer])
        doubt = [] if self.is_smallest else ["(a smaller set may exist)"]
        return "\n".join([*lines, *doubt])

    def __rich__(self) -> "RenderableType":
        """The lines in colour."""
        from rich.text import Text  # noqa: PLC0415

        return Text(str(self), style="green" if self.answer == "matches" else "red")

    def _repr_html_(self) -> str:
        """The lines as a list, for a notebook."""
        from tamis import notebook  # noqa: PLC0415

        return notebook.of_why_not(self)
