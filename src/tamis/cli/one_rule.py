"""Finds one rule and shows the answer for one event: shared by `explain` and `why-not`."""

import sys
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from tamis._suggest import suggestion
from tamis.cli.failure import UserError
from tamis.cli.io import rule_columns
from tamis.cli.wording import counted

if TYPE_CHECKING:
    from tamis import Index
    from tamis.explain import Explanation, WhyNot

COMPARED = 10_000
"""Compare an unknown id with at most this many ids, for a hint."""

SHOWN = 5
"""How many ids a hint names."""


def find_id(index: "Index", text: str) -> Any:
    """The id in the index that `text` stands for: as it is, or as an integer."""
    for candidate in _readings(text):
        try:
            if candidate in index:
                return candidate
        except (TypeError, ValueError):
            continue
    hint = suggestion(text, [str(id_) for id_ in islice(index, COMPARED)])
    raise UserError(f"there is no rule with the id {text}", hint=hint or _contents(index))


def _contents(index: "Index") -> str:
    """The number of rules, and the ids of a few.

    >>> from tamis import Index
    >>> index = Index()
    >>> index.add("a", "x > 1")
    >>> _contents(index)
    'the index holds 1 rule: a'
    """
    shown = [str(id_) for id_ in islice(index, SHOWN)]
    if not shown:
        return "the index holds no rules"
    more = ", ..." if len(index) > SHOWN else ""
    return f"the index holds {counted(len(index), 'rule')}: {', '.join(shown)}{more}"


def moment(text: str | None) -> datetime | None:
    """The time that `--now` gives; UTC unless it says otherwise.

    >>> moment("2026-12-31 12:00").isoformat()
    '2026-12-31T12:00:00+00:00'
    """
    if text is None:
        return None
    try:
        return rule_columns.moment(text)
    except ValueError as error:
        raise UserError(f"--now: {error}") from None


def show(answer: "Explanation | WhyNot", as_json: bool) -> None:
    """Print an answer: as JSON, in colour on a terminal, or as text."""
    if as_json:
        print(answer.to_json())
    elif sys.stdout.isatty():
        from rich.console import Console

        Console().print(answer)
    else:
        print(answer)


def _readings(text: str) -> list[Any]:
    try:
        return [int(text), text]
    except ValueError:
        return [text]
