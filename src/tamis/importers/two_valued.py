"""Negation that is never undefined: true exactly where the expression is not true.

The formats that are imported know true and false only; a test on an absent attribute is false, and its
negation is true. In Tamis both would be undefined, and the negation would lose a match. So importers
write every negation with `forms.not_true`, nothing else in this package negates, and here it is turned
into what the language has: `not true` is pushed down to the predicates, and each says when it is
undefined.

A predicate is undefined where its attribute is absent or of another kind than its operand. The second is
also seen as an absence: `concat(x)` is absent where x is no string, and `x + 0` where x is no number.
"""

from collections.abc import Iterable
from typing import Any

from tamis.importers import forms
from tamis.importers.forms import Form

_OF_STRINGS = frozenset({"LIKE", "ILIKE", "RLIKE", "startswith", "endswith", "contains"})
_OF_ARRAYS = frozenset({"array_contains", "arrays_overlap"})


def written(form: Form) -> Form:
    """The form without `not true`: what remains is the JSON form of an expression.

    >>> x_is_5 = forms.test(forms.attribute("x"), "=", 5)
    >>> print(forms.expression(forms.not_true(x_is_5)))
    x + 0 IS NULL OR x != 5
    """
    return _pushed(form, negated=False)


def _pushed(form: Form, *, negated: bool) -> Form:
    if form is None or isinstance(form, bool):
        return form is not True if negated else form
    if "not true" in form:
        return _pushed(form["not true"], negated=not negated)
    for connective, dual in (("and", "or"), ("or", "and")):
        if connective in form:
            join = forms.all_of if (dual if negated else connective) == "and" else forms.any_of
            return join(_pushed(part, negated=negated) for part in form[connective])
    if not negated:
        return form
    flipped = {**form, "negated": not form.get("negated", False)}
    if form["operator"] == "IS NULL":
        return flipped
    return forms.any_of([*_undefined(form), flipped])


def _undefined(leaf: dict[str, Any]) -> Iterable[Form]:
    """Expressions of which one is true where a predicate is undefined."""
    term = forms.text_of(leaf)
    operands = leaf.get("operands", ())
    if "term" in leaf and leaf["operator"] == "truth":
        return [forms.is_null(forms.Term(term))]
    if leaf["operator"] in _OF_ARRAYS:
        return [forms.is_null(forms.Term(f"size({term})"))]
    if leaf["operator"] in _OF_STRINGS or any(isinstance(operand, str) for operand in operands):
        return [forms.is_null(forms.Term(f"concat({term})"))]
    if operands and not any(isinstance(operand, bool) for operand in operands):
        return [forms.is_null(forms.Term(f"{term} + 0"))]
    # A boolean: of another kind than those whose text is one of two words, which strings may have too.
    as_text = forms.Term(f"CAST({term} AS string)")
    other_text = {**forms.test(as_text, "IN", "false", "true"), "negated": True}
    return [forms.is_null(as_text), other_text, forms.is_not_null(forms.Term(f"concat({term})"))]
