"""Problems in a file of rules, found without building an index."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tamis.cli.io.progress import Progress
from tamis.cli.io.rules import CHUNK, Rules

if TYPE_CHECKING:
    import tamis


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a rule. `column` counts within the expression, from 1.

    >>> print(Problem("rules.csv", 3, "line", "7", "expected a value", 7, None, "age > AND").to_text())
    rules.csv:3:7: expected a value
      age > AND
            ^
    """

    file: str
    place: int
    unit: str
    id: Any
    message: str
    column: int | None = None
    hint: str | None = None
    text: str | None = None
    """The line of the expression that the column points into."""
    field: str | None = None
    """The column of the table, where it is not the expression."""

    def to_dict(self) -> dict[str, Any]:
        """The problem as a JSON object, without what is unknown."""
        fields = asdict(self)
        fields[fields.pop("unit")] = fields.pop("place")
        fields["expression"] = fields.pop("text")
        return {name: value for name, value in fields.items() if value is not None}

    def to_text(self) -> str:
        """The problem as a compiler would print it: place, message, the text with a caret, a hint."""
        place = (
            f"{self.file}:{self.place}" if self.unit == "line" else f"{self.file}:{self.unit} {self.place}"
        )
        place += f":{self.column}" if self.column else ""
        lines = [f"{place}: {self.field}: {self.message}" if self.field else f"{place}: {self.message}"]
        if self.text is not None and self.column:
            lines += _underlined(self.text, self.column)
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


def find_problems(rules: Rules, schema: Mapping[str, str] | None = None) -> Iterator[Problem]:
    """Yield what is wrong, in the order of the file; several problems if a rule has them."""
    seen: dict[Any, int] = {}
    with Progress("checking", total=len(rules), unit="rules") as progress:
        for first in range(0, len(rules), CHUNK):
            rows = range(first, min(first + CHUNK, len(rules)))
            refused = _refused(rules, rows, schema)
            for row in rows:
                yield from _of_id(rules, row, seen)
                yield from _of_values(rules, row)
                if row in refused:
                    yield _of_expression(rules, row, refused[row])
            progress.advance(len(rows))


def find_slips(rules: Rules) -> Iterator[Problem]:
    """Yield what is probably a slip in rules that are well formed, and columns that nobody reads."""
    from tamis.lint import lint

    for name in rules.unread:
        if rules.places:
            yield Problem(rules.name, 1, rules.unit, None, f"warning: the column `{name}` is not read")
    for finding in lint(rules.expressions):
        other = "" if finding.other is None else f" ({rules.where(finding.other)})"
        message = f"warning: {finding.lint}: {finding.message}{other}"
        yield _problem(rules, finding.row, message)


def find_examples(rules: Rules) -> Iterator[Problem]:
    """Yield an event that matches, for each rule."""
    import json

    import tamis
    from tamis.lint import example

    for row, text in enumerate(rules.expressions):
        if text is None:
            continue
        try:
            event = example(tamis.parse(text))
        except tamis.ExpressionError:
            continue
        shown = "none was found" if event is None else json.dumps(event, ensure_ascii=False, default=_as_json)
        yield _problem(rules, row, f"example: {shown}")


def _as_json(value: Any) -> Any:
    """A timestamp as events in JSON have it."""
    return {"$timestamp": value.isoformat()} if isinstance(value, datetime) else str(value)


def _problem(rules: Rules, row: int, message: str, **details: Any) -> Problem:
    return Problem(rules.name, rules.places[row], rules.unit, rules.ids[row], message, **details)


def _of_id(rules: Rules, row: int, seen: dict[Any, int]) -> Iterator[Problem]:
    id_ = rules.ids[row]
    if not isinstance(id_, type(rules.ids[0])) or not isinstance(id_, int | str):
        yield _problem(rules, row, "ids must be all integers or all strings in one file")
    elif (first := seen.setdefault(id_, row)) != row:
        yield _problem(rules, row, rules.repeated_id(first, row))


def _of_values(rules: Rules, row: int) -> Iterator[Problem]:
    for bad in rules.bad.get(row, ()):
        yield _problem(rules, row, bad.message, field=bad.column)


def _refused(
    rules: Rules, rows: Iterable[int], schema: Mapping[str, str] | None
) -> "dict[int, tamis.ExpressionError]":
    """The errors of expressions that cannot be read, or do not fit the schema."""
    import tamis

    index = tamis.Index(schema or None)
    given = [row for row in rows if rules.expressions[row] is not None]
    refused = index.add_many(given, [rules.expressions[row] for row in given], on_error="collect")
    return {given[one.row]: one.error for one in refused if isinstance(one.error, tamis.ExpressionError)}


def _of_expression(rules: Rules, row: int, error: "tamis.ExpressionError") -> Problem:
    lines = rules.expressions[row].splitlines() or [""]
    line = lines[error.line - 1] if error.line and error.line <= len(lines) else lines[0]
    return _problem(rules, row, error.reason, column=error.column, hint=error.hint, text=line)


def _underlined(line: str, column: int, width: int = 96) -> list[str]:
    """The line, cut to the surroundings of a long one's column, and a caret under it."""
    start = max(0, column - 1 - width // 2) if len(line) > width else 0
    shown = line[start : start + width]
    return [f"  {shown}", "  " + " " * (column - 1 - start) + "^"]
