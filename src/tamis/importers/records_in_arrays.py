"""Fields of the records in an array: other engines reach them by their path, expressions by a quantifier.

`{"detail": {"items": [{"price": 5}]}}` has a field `detail.items.price` in Event Ruler and in
Elasticsearch; here it is `exists(detail.items, i -> i.price = 5)`, which importers do not write yet. A rule
does not say which of its fields lie in arrays. So every rule that
looks inside records has a note, unless the importer is told which attributes hold arrays: then rules that
look inside one of them are refused, and the others need no note.
"""

from collections.abc import Collection

from tamis._kernel import Expression
from tamis.importers.report import NotCarriedOverError

FEATURE = "a field of the records in an array"
REASON = "it needs a quantifier, such as exists(items, i -> i.price > 5), which importers do not write yet"


def notes_on(expression: Expression, arrays_of_records: Collection[str] | None) -> list[str]:
    """What to say of the fields that a rule looks at inside records; raises if they lie in an array.

    >>> rule = Expression.parse("detail.items.price > 5 AND region = 'x'")
    >>> notes_on(rule, None)
    ['detail.items.price: not reached where an event has an array of records at detail or detail.items']
    >>> notes_on(rule, ["orders"])
    []
    >>> notes_on(rule, ["detail.items"])
    Traceback (most recent call last):
    ...
    tamis.importers.report.NotCarriedOverError: detail.items.price: a field of the records in an array ...
    """
    notes = []
    for name in expression.attributes:
        outer = _outer(name)
        if arrays_of_records is not None:
            if set(outer) & set(arrays_of_records):
                raise NotCarriedOverError(FEATURE, REASON, name)
        elif outer:
            notes.append(f"{name}: not reached where an event has an array of records at {_either(outer)}")
    return notes


def _outer(name: str) -> list[str]:
    """The records that a field lies in, from the outside.

    >>> _outer("a.b.c")
    ['a', 'a.b']
    """
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


def _either(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
