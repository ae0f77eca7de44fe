"""Everything that Tamis raises, under one base class.

Each error says what is wrong, where, and, when it can, what would be right:

>>> import tamis
>>> try:
...     tamis.parse("age > 30 AND contry = 'CA' AND")
... except tamis.ExpressionError as error:
...     print(error.line, error.column)
1 31
"""

import sys
import warnings


class TamisError(Exception):
    """The base class of all errors that Tamis raises.

    >>> issubclass(SnapshotError, TamisError)
    True
    """


class UnknownAttributeWarning(UserWarning):
    """A score or a dimension names an attribute that no subscription uses, so it always counts 0.

    >>> issubclass(UnknownAttributeWarning, TamisError)
    False
    """


class UnknownColumnWarning(UserWarning):
    """A table of subscriptions has an ignored column whose name looks misspelt.

    >>> issubclass(UnknownColumnWarning, UserWarning)
    True
    """


class ValueWarning(UserWarning):
    """A value of an event that makes predicates undefined, probably by mistake.

    Its kind is one that no predicate on its attribute expects, or the language cannot represent it. An index
    warns once per attribute; `stats()["observed"]["type_mismatches"]` counts all such values.

    >>> import tamis, warnings
    >>> index = tamis.Index()
    >>> index.add("a", "age > 21")
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     index.match({"age": "27"}), index.match({"age": "28"})
    ([], [])
    >>> len(caught), caught[0].category.__name__
    (1, 'ValueWarning')
    """


class UnreadableValueWarning(ValueWarning):
    """The language cannot represent a value of an event, so its attribute is absent.

    Examples are integers of more than 64 bits, lists of mixed kinds, and NaT. `tamis.Index(strict=True)`
    raises an error instead.

    >>> issubclass(UnreadableValueWarning, ValueWarning)
    True
    """


def warn_of_value(message: str, unreadable: bool = False) -> None:
    """Warn about a value, at the caller outside this package.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_of_value("`age` is a string")
    >>> str(caught[0].message)
    '`age` is a string'
    """
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "tamis":
        frame, level = frame.f_back, level + 1
    category = UnreadableValueWarning if unreadable else ValueWarning
    warnings.warn(message, category, stacklevel=level)


class ExpressionError(TamisError, ValueError):
    """An expression that cannot be parsed, built or accepted.

    `line` and `column` count from 1 and are `None` when the expression did not come from text; `hint` says
    what would be right, if known. The message shows the line with a caret under the error.

    >>> error = ExpressionError("unknown operator", line=1, column=5, hint="write =", snippet="x ~ 1")
    >>> error.line, error.column, error.hint
    (1, 5, 'write =')
    >>> print(error)
    unknown operator (line 1, column 5)
    x ~ 1
    hint: write =
    """

    def __init__(
        self,
        message: str,
        *,
        line: int | None = None,
        column: int | None = None,
        hint: str | None = None,
        snippet: str | None = None,
    ) -> None:
        """Keep the parts and compose the message from them."""
        self.reason = message
        self.line = line
        self.column = column
        self.hint = hint
        self.snippet = snippet
        place = "" if line is None else f" (line {line}, column {column})"
        lines = [message + place]
        if snippet is not None:
            lines.append(snippet)
        if hint is not None:
            lines.append(f"hint: {hint}")
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by parts, so that errors keep their position when they leave a worker process."""
        parts = {"line": self.line, "column": self.column, "hint": self.hint, "snippet": self.snippet}
        return (_rebuild, (type(self), self.reason, parts))


class UnsupportedExpressionError(TamisError, ValueError):
    """An expression that the chosen algorithm does not support, such as an OR in a conjunction-only tree.

    >>> issubclass(UnsupportedExpressionError, TamisError)
    True
    """


class EventError(TamisError, ValueError):
    """An event that cannot be read.

    >>> import tamis
    >>> try:
    ...     tamis.parse("age > 30").evaluate({"age": object()})
    ... except tamis.EventError as error:
    ...     "age" in str(error)
    True
    """


class XmlError(EventError):
    """A document that is not well-formed XML or exceeds a limit; `line` and `column` count from 1.

    >>> import tamis
    >>> try:
    ...     tamis.Xml("<a>\\n <b></a>", strict=True)
    ... except tamis.XmlError as error:
    ...     error.line, error.column
    (2, 5)
    """

    def __init__(self, message: str, line: int, column: int) -> None:
        """Keep where the fault is."""
        super().__init__(f"line {line}, column {column}: {message}")
        self.message, self.line, self.column = message, line, column

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by parts."""
        return (type(self), (self.message, self.line, self.column))


class IdError(TamisError, ValueError):
    """An id whose type differs from that of the index: an index has integers or strings, never both.

    >>> issubclass(DuplicateIdError, IdError), issubclass(UnknownIdError, IdError)
    (True, True)
    """


class DuplicateIdError(IdError):
    """An added id that already exists; use `replace` or `upsert` to change it.

    >>> issubclass(DuplicateIdError, ValueError)
    True
    """


class UnknownIdError(IdError, KeyError):
    """An unknown id. Also a `KeyError`, as for a dict.

    >>> issubclass(UnknownIdError, KeyError)
    True
    >>> str(UnknownIdError("no subscription 'ad-7'"))
    "no subscription 'ad-7'"
    """

    __str__ = Exception.__str__


class ArgumentError(TamisError, ValueError):
    """An argument out of range, such as a negative weight.

    >>> issubclass(ArgumentError, ValueError)
    True
    """


class SnapshotError(TamisError):
    """A snapshot file that is truncated, corrupted, foreign or from a later version.

    >>> issubclass(SnapshotError, TamisError)
    True
    """


class StaleSnapshotError(SnapshotError):
    """A file that somebody else has saved since the index was opened: saving would drop their changes.

    >>> issubclass(StaleSnapshotError, SnapshotError)
    True
    """


def _rebuild(kind: type[ExpressionError], message: str, parts: dict[str, object]) -> ExpressionError:
    return kind(message, **parts)  # type: ignore[arg-type]
