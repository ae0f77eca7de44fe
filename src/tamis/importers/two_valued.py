"""Negation that is never undefined: true exactly if the expression is not true.

The formats that are imported know true and false only; a test on an absent attribute is false, and its
negation is true. In Tamis both would be undefined, and the negation would lose a match. So importers write
every negation with `not_true`, and nothing else in this package negates.
"""

from typing import Any

Form = dict[str, Any] | bool | None
"""The JSON form of an expression, as Python values."""


def not_true(form: Form) -> Form:
    """The expression that is true where `form` is false or undefined, and false where it is true.

    >>> not_true({"attribute": "x", "operator": "truth"})
    {'is_not_true': {'attribute': 'x', 'operator': 'truth'}}
    >>> not_true(not_true({"attribute": "x", "operator": "truth"}))
    {'attribute': 'x', 'operator': 'truth'}
    """
    if form is None or isinstance(form, bool):
        return form is not True
    inner: Form = form.get("is_not_true", {"is_not_true": form})
    return inner
