"""The result for each rule: its expression, or the reason why there is none.

An importer never drops part of a rule silently. A rule is carried over as a whole or refused as a whole, and
a refusal names the feature, its position in the rule, and the reason. A rule whose meaning differs in special
cases has a note.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tamis._kernel import Expression
from tamis.errors import ExpressionError, TamisError
from tamis.importers.deep_stack import with_deep_stack

if TYPE_CHECKING:
    from tamis.index import Index


class NotCarriedOverError(TamisError, ValueError):
    """Part of a rule that cannot be carried over: which feature, where, and why.

    >>> error = NotCarriedOverError("map", "it makes arrays", where="some[0]")
    >>> print(error)
    some[0]: map is not carried over: it makes arrays
    """

    def __init__(self, feature: str, reason: str, where: str = "") -> None:
        """Keep the parts and compose the message from them."""
        self.feature = feature
        self.reason = reason
        self.where = where
        super().__init__(feature, reason, where)

    def __str__(self) -> str:
        """Where, what and why, without what others append to the arguments of the exception."""
        return f"{self.where + ': ' if self.where else ''}{self.feature} is not carried over: {self.reason}"


@dataclass(frozen=True)
class ImportedRule:
    """One rule after the import: `expression`, or `refused` with the reason.

    >>> from tamis.importers import json_logic
    >>> rule = json_logic.convert("r1", {"==": [{"var": "country"}, "CA"]})
    >>> rule.id, str(rule.expression), rule.refused
    ('r1', "country = 'CA'", None)
    """

    id: str
    expression: Expression | None
    refused: NotCarriedOverError | None = None
    notes: tuple[str, ...] = ()
    """Corners in which the expression means something else than the rule."""
    tags: tuple[str, ...] = ()
    priority: float = 0.0
    payload: bytes | None = None

    def to_dict(self) -> dict[str, Any]:
        """The rule as a record, as `tamis import` writes it.

        >>> ImportedRule("r1", Expression.parse("x > 1"), tags=("q4",)).to_dict()
        {'id': 'r1', 'expression': 'x > 1', 'tags': ['q4']}
        """
        record: dict[str, Any] = {"id": self.id}
        if self.expression is not None:
            record["expression"] = str(self.expression)
        if self.priority:
            record["priority"] = self.priority
        if self.tags:
            record["tags"] = list(self.tags)
        if self.payload is not None:
            record["payload"] = self.payload.decode("utf-8", "replace")
        return record

    def to_report(self) -> dict[str, Any]:
        """What was carried over and what was not, as a record.

        >>> refused = NotCarriedOverError("map", "it makes arrays", "some[0]")
        >>> ImportedRule("r1", None, refused).to_report()["feature"]
        'map'
        """
        report: dict[str, Any] = {"id": self.id, "imported": self.expression is not None}
        if self.refused is not None:
            report |= {
                "feature": self.refused.feature,
                "where": self.refused.where,
                "reason": self.refused.reason,
            }
        if self.notes:
            report["notes"] = list(self.notes)
        return report


@dataclass(frozen=True)
class Report:
    """The rules of an import, in their order.

    >>> from tamis.importers import json_logic
    >>> report = json_logic.read([("a", {">": [{"var": "age"}, 21]}), ("b", {"map": [[1], {"var": ""}]})])
    >>> len(report), len(report.imported), [rule.id for rule in report.refused]
    (2, 1, ['b'])
    >>> print(report)
    1 of 2 rules imported
    1 refused because of map: it makes arrays or records, which terms do not
    refused: b
    """

    rules: tuple[ImportedRule, ...] = field(default=())

    def __len__(self) -> int:
        """How many rules were read."""
        return len(self.rules)

    def __iter__(self) -> Iterator[ImportedRule]:
        """Go through all rules, imported or refused."""
        return iter(self.rules)

    @property
    def imported(self) -> list[ImportedRule]:
        """The imported rules.

        >>> Report().imported
        []
        """
        return [rule for rule in self.rules if rule.expression is not None]

    @property
    def refused(self) -> list[ImportedRule]:
        """The rules that could not be carried over.

        >>> Report().refused
        []
        """
        return [rule for rule in self.rules if rule.expression is None]

    @property
    def reasons(self) -> Counter[tuple[str, str]]:
        """The number of rules refused for each feature, with the reason.

        >>> Report().reasons
        Counter()
        """
        return Counter(
            (rule.refused.feature, rule.refused.reason) for rule in self.rules if rule.refused is not None
        )

    def to_index(self) -> "Index":
        """An index of the rules that were imported.

        >>> from tamis.importers import json_logic
        >>> index = json_logic.read([("a", {">": [{"var": "age"}, 21]})]).to_index()
        >>> index.match({"age": 30})
        ['a']
        """
        from tamis.index import Index  # noqa: PLC0415 - needs NumPy and pyarrow

        rules = self.imported
        index = Index()
        index.add_many(
            [rule.id for rule in rules],
            [rule.expression for rule in rules if rule.expression is not None],
            priorities=[rule.priority for rule in rules],
            tags=[list(rule.tags) for rule in rules],
            payloads=[rule.payload for rule in rules],
        )
        return index

    @property
    def notes(self) -> list[tuple[str, str]]:
        """All differences in meaning of imported rules: (id, note).

        >>> Report((ImportedRule("a", Expression.parse("x > 1"), notes=("x: one value",)),)).notes
        [('a', 'x: one value')]
        """
        return [(rule.id, note) for rule in self.imported for note in rule.notes]

    def __str__(self) -> str:
        """How many were imported, why the others were not, and which need attention."""
        lines = [f"{len(self.imported):,} of {len(self):,} rules imported"]
        lines += [
            f"{count:,} refused because of {feature}: {reason}"
            for (feature, reason), count in self.reasons.most_common()
        ]
        if refused := self.refused:
            named = ", ".join(rule.id for rule in refused[:3])
            lines.append(f"refused: {named}{', ...' if len(refused) > 3 else ''}")
        if notes := self.notes:
            rules = len({id for id, _ in notes})
            lines.append(f"{rules:,} imported with notes on where they differ; the first is:")
            lines.append(f"  {notes[0][0]}: {notes[0][1]}")
        return "\n".join(lines)


OF_ANY_FORMAT = {
    "deep nesting": "an expression has at most 256 levels",
    "a large rule": "it has more than a million values",
    "a repeated id": "a rule with that id was imported already",
    "a number": "NaN and infinite numbers are not written in rules",
}
"""What is refused in rules of every format, with the reason."""

_PLACE_IN_FORM = re.compile(r"^[a-z_]+(\[\d+\])?(\.[a-z_]+(\[\d+\])?)*: ")


def attempt(id: str, feature: str, reason: str, convert: Callable[[], ImportedRule]) -> ImportedRule:
    """A rule, or why there is none; `feature` and `reason` are for what is not written as it should be.

    >>> print(attempt("a", "an invalid rule", "it is not a record", lambda: {}["x"]).refused)
    an invalid rule is not carried over: it is not a record
    """
    try:
        return with_deep_stack(convert)
    except NotCarriedOverError as error:
        refused = error
    except RecursionError:
        refused = NotCarriedOverError("deep nesting", OF_ANY_FORMAT["deep nesting"])
    except json.JSONDecodeError as error:
        refused = NotCarriedOverError(feature, f"it is not valid JSON: {error}")
    except ExpressionError as error:
        refused = of_expression(feature, error)
    except TamisError as error:
        refused = NotCarriedOverError(feature, str(error).splitlines()[0])
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError):
        refused = NotCarriedOverError(feature, reason)
    return ImportedRule(id, None, refused)


def of_expression(feature: str, error: ExpressionError) -> NotCarriedOverError:
    """Refuse what an expression cannot represent.

    >>> print(of_expression("the rule", ExpressionError("the expression is nested deeper than 256 levels")))
    deep nesting is not carried over: an expression has at most 256 levels
    """
    if "nested deeper" in error.reason:
        return NotCarriedOverError("deep nesting", OF_ANY_FORMAT["deep nesting"])
    # Its place is one in the form that was made of the rule, not in the rule.
    return NotCarriedOverError(feature, _PLACE_IN_FORM.sub("", error.reason))


def gather(rules: Iterable[ImportedRule]) -> Report:
    """The report of some rules; a rule whose id another one has is refused.

    >>> len(gather([ImportedRule("a", Expression.parse("x > 1"))]))
    1
    >>> print(gather([ImportedRule("a", Expression.parse("x > 1"))] * 2).refused[0].refused)
    a repeated id is not carried over: a rule with that id was imported already
    """
    gathered: list[ImportedRule] = []
    ids: set[str] = set()
    for rule in rules:
        if rule.expression is not None and rule.id in ids:
            repeated = NotCarriedOverError("a repeated id", OF_ANY_FORMAT["a repeated id"])
            gathered.append(ImportedRule(rule.id, None, repeated))
            continue
        if rule.expression is not None:
            ids.add(rule.id)
        gathered.append(rule)
    return Report(tuple(gathered))
