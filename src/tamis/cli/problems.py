"""Problems in a file of rules, found without building an index."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from tamis.cli.progress import Progress
from tamis.cli.rules import CHUNK, Rules


@dataclass(frozen=True)
class Problem:
    """One bad rule. `column` counts within the expression, from 1.

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
        head = f"{place}:{self.column}: {self.message}" if self.column else f"{place}: {self.message}"
        lines = [head]
        if self.text is not None and self.column:
            lines += _underlined(self.text, self.column)
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


def find_problems(rules: Rules) -> Iterator[Problem]:
    """Yield what is wrong, in the order of the file: bad expressions, repeated ids, mixed types of ids."""
    import tamis

    seen: dict[Any, int] = {}
    with Progress("checking", total=len(rules), unit="rules") as progress:
        for row, (id_, text) in enumerate(zip(rules.ids, rules.expressions, strict=True)):
            place = rules.places[row]
            if row % CHUNK == CHUNK - 1:
                progress.advance(CHUNK)
            first = seen.setdefault(id_, row)
            if first != row:
                yield Problem(
                    rules.name, place, rules.unit, id_, f"the id {id_} is that of {rules.where(first)}"
                )
                continue
            if not isinstance(id_, type(rules.ids[0])) or not isinstance(id_, int | str):
                yield Problem(
                    rules.name, place, rules.unit, id_, "ids must be all integers or all strings in one file"
                )
                continue
            try:
                tamis.parse(text)
            except tamis.ExpressionError as error:
                lines = text.splitlines() or [""]
                line = lines[error.line - 1] if error.line and error.line <= len(lines) else lines[0]
                yield Problem(
                    rules.name, place, rules.unit, id_, error.reason, error.column, error.hint, line
                )


def _underlined(line: str, column: int, width: int = 96) -> list[str]:
    """The line, cut to the surroundings of a long one's column, and a caret under it."""
    start = max(0, column - 1 - width // 2) if len(line) > width else 0
    shown = line[start : start + width]
    return [f"  {shown}", "  " + " " * (column - 1 - start) + "^"]
