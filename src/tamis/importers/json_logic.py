"""JsonLogic rules (jsonlogic.com): `{"==": [{"var": "country"}, "CA"]}`.

A rule matches if JsonLogic's result is truthy. Operations on values alone are computed
(`json_logic_values`); those that depend on the data become terms or expressions. The meaning of an absent
variable is JsonLogic's: it is `null`, equals `null`, and counts as 0 in `<`, `<=`, `>`, `>=`, `-`, `/`
and `%`. `some`, `all`, `none`, and the truth of `filter`, are quantifiers over the array of a variable.

Differences, all because JsonLogic converts types in comparisons and Tamis does not: `"1" == 1`, `true == 1`,
`"10" > 9` are true there and not here; a record on its own is truthy there and not here. A division by zero
is infinite there and undefined here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from tamis.importers import forms
from tamis.importers import json_logic_values as values
from tamis.importers.forms import Term
from tamis.importers.report import OF_ANY_FORMAT, ImportedRule, NotCarriedOverError, Report, attempt, gather
from tamis.importers.shape import check_shape
from tamis.importers.two_valued import Form, not_true

_ARRAYS = "it makes arrays or records, which terms do not"
_SOURCE = "the array is neither a variable, nor a filter of one, nor a map with a variable"

NOT_CARRIED_OVER = {
    **OF_ANY_FORMAT,
    "an invalid rule": "its operands are not what its operators take",
    "map": _ARRAYS,
    "filter": _ARRAYS,
    "reduce": _ARRAYS,
    "merge": "it builds an array from the data",
    "all": _SOURCE,
    "some": _SOURCE,
    "none": _SOURCE,
    "min": "there is no term for the least of several values",
    "max": "there is no term for the greatest of several values",
    "method": "it calls JavaScript",
    **dict.fromkeys(("and", "or", "if", "?:"), "its result is compared and is not a truth value"),
    **dict.fromkeys(("missing", "missing_some"), "its result is compared and is an array"),
    "var": "the whole data, a computed name, or an element of an array by its number",
    "in": "both sides depend on the data, the array is not a variable, or the text "
    "to look in is longer than 40 characters",
    "substr": "a length that is negative or computed",
    "==": "a comparison with an array, a record or NaN, or of a condition with a value other than a truth",
    "unknown operator": "JsonLogic has no operator of that name",
}
"""Every feature that is refused, with the reason."""

_LONGEST_SEARCHED = 40

_ORDER = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def convert(id: str, rule: Any) -> ImportedRule:
    """One rule, as parsed JSON.

    >>> str(convert("a", {"!": {"==": [{"var": "plan"}, "free"]}}).expression)
    "(plan = 'free') IS NOT TRUE"
    >>> print(convert("b", {">": [{"max": [{"var": "x"}, 1]}, 3]}).refused)
    max is not carried over: there is no term for the greatest of several values
    """

    def converted() -> ImportedRule:
        return ImportedRule(id, forms.expression(_Reader().truth(check_shape(rule))))

    return attempt(id, "an invalid rule", NOT_CARRIED_OVER["an invalid rule"], converted)


def read(rules: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> Report:
    """Many rules by their ids.

    >>> report = read({"adult": {">=": [{"var": "age"}, 18]}, "any": True})
    >>> [str(rule.expression) for rule in report]
    ['age >= 18', 'TRUE']
    """
    pairs = rules.items() if isinstance(rules, Mapping) else rules
    return gather(convert(id, rule) for id, rule in pairs)


@dataclass(frozen=True)
class _Constant:
    value: Any


@dataclass(frozen=True)
class _Truth:
    """A value that is true or false."""

    form: Form


_Value = _Constant | Term | _Truth


def _refuse(feature: str) -> NotCarriedOverError:
    return NotCarriedOverError(feature, NOT_CARRIED_OVER[feature])


def _operation(rule: Any) -> tuple[str, list[Any]] | None:
    """The operator and its operands, if the rule is an operation; a record with other keys is data."""
    if isinstance(rule, Mapping) and len(rule) == 1:
        [(operator, operands)] = rule.items()
        return operator, values.operands_of(operator, operands)
    return None


def _is_constant(rule: Any) -> bool:
    if isinstance(rule, list):
        return all(_is_constant(part) for part in rule)
    operation = _operation(rule)
    if operation is None:
        return True
    operator, operands = operation
    depends = operator in ("var", "missing", "missing_some") or operator not in values.OPERATORS
    return not depends and all(_is_constant(operand) for operand in operands)


@dataclass(frozen=True)
class _Elements:
    """Elements of an array: each is what stands at `path`, as far as `kept` is true of it."""

    array: Term
    variable: str
    path: str
    depth: int
    kept: Form = True

    def reader(self) -> "_Reader":
        """Reads conditions on an element."""
        return _Reader(self.path, self.depth)

    def exists(self, condition: Form) -> Form:
        return forms.quantified("exists", self.array, self.variable, forms.all_of([self.kept, condition]))

    def is_some(self) -> Form:
        """Whether there are any."""
        if self.kept is True:
            return forms.test(Term(f"size({self.array.text})"), ">", 0)
        return self.exists(True)


class _Reader:
    """Reads rules about the event or, inside `some` and its like, about an element of an array."""

    def __init__(self, element: str = "", depth: int = 0) -> None:
        """Take the name of the element that stands for the data, or nothing for the event."""
        self._element = element
        self._depth = depth

    def truth(self, rule: Any) -> Form:
        if _is_constant(rule):
            return values.is_truthy(values.compute(rule))
        if isinstance(rule, list):
            return True  # an array that holds something
        operation = _operation(rule)
        assert operation is not None, "what is no operation is a constant"
        operator, operands = operation
        match operator:
            case "and":
                return forms.all_of(self.truth(operand) for operand in operands)
            case "or":
                return forms.any_of(self.truth(operand) for operand in operands)
            case "!":
                return not_true(self.truth(operands[0] if operands else None))
            case "!!":
                return self.truth(operands[0] if operands else None)
            case "log":
                return self.truth(operands[0] if operands else None)
            case "if" | "?:":
                return self._choice(operands)
            case "===" | "!==" if len(operands) < 2:
                return operator == "!=="  # what is not given is no null
            case "==" | "===":
                return self._equal(*_two(operands))
            case "!=" | "!==":
                return not_true(self._equal(*_two(operands)))
            case "<" | "<=" | ">" | ">=":
                return self._ordered(operator, operands)
            case "in":
                return self._contained(*_two(operands))
            case "missing":
                return forms.any_of(self._is_missing(name) for name in _names(operands))
            case "missing_some":
                return self._missing_some(*_two(operands))
            case "some":
                return self._some(operator, *_two(operands))
            case "none":
                return not_true(self._some(operator, *_two(operands)))
            case "all":
                return self._all(*_two(operands))
            case "filter":
                return self._elements(operator, rule).is_some()
            case "map":
                return self._elements(operator, _two(operands)[0]).is_some()
        return _truthy(self._value(rule))

    def _choice(self, operands: list[Any]) -> Form:
        if not operands:
            return False
        if len(operands) == 1:
            return self.truth(operands[0])
        condition, then, *rest = operands
        decided = self.truth(condition)
        return forms.any_of(
            [
                forms.all_of([decided, self.truth(then)]),
                forms.all_of([not_true(decided), self._choice(rest)]),
            ]
        )

    def _equal(self, left: Any, right: Any) -> Form:
        one, other = self._value(left), self._value(right)
        if isinstance(one, _Constant):
            one, other = other, one
        if isinstance(one, _Truth):
            if isinstance(other, _Truth):
                both = forms.all_of([one.form, other.form])
                neither = forms.all_of([not_true(one.form), not_true(other.form)])
                return forms.any_of([both, neither])
            if isinstance(other, _Constant) and isinstance(other.value, bool):
                return one.form if other.value else not_true(one.form)
            raise _refuse("==")
        assert isinstance(one, Term), "two constants are computed"
        if isinstance(other, _Truth):
            is_true, is_false = forms.test(one, "=", True), forms.test(one, "=", False)
            return forms.any_of(
                [forms.all_of([is_true, other.form]), forms.all_of([is_false, not_true(other.form)])]
            )
        if isinstance(other, Term):
            # Two absent variables are equal; what is computed from an absent one is NaN.
            both_names = one.name is not None and other.name is not None
            return forms.holds(Term(f"{one.text} {'<=>' if both_names else '='} {other.text}"))
        if values.is_nan(other.value):
            return False
        if other.value is None:
            return forms.is_null(one)
        if isinstance(other.value, list | dict):
            raise _refuse("==")
        return forms.test(one, "=", other.value)

    def _ordered(self, operator: str, operands: list[Any]) -> Form:
        """Also of three: `{"<": [1, x, 10]}`. Nothing is before or after what is not given."""
        if len(operands) < 2:
            return False
        return forms.all_of(
            _in_order(operator, self._value(left), self._value(right)) for left, right in pairwise(operands)
        )

    def _contained(self, needle: Any, haystack: Any) -> Form:
        operation = _operation(haystack)
        if operation is not None and operation[0] in ("map", "filter") and _is_constant(needle):
            elements = self._elements("in", haystack)
            return elements.exists(elements.reader().truth({"===": [{"var": ""}, needle]}))
        sought, searched = self._value(needle), self._value(haystack)
        if isinstance(sought, _Truth) or isinstance(searched, _Truth):
            raise _refuse("in")
        if isinstance(searched, Term):
            if not isinstance(sought, _Constant) or isinstance(sought.value, list | dict):
                raise _refuse("in")
            if sought.value is None:
                return False
            inside = forms.test(searched, "array_contains", sought.value)
            if not isinstance(sought.value, str):
                return inside
            # In an empty text JsonLogic finds nothing, not even the empty text.
            found = forms.test(searched, "contains" if sought.value else "!=", sought.value)
            return forms.any_of([found, inside])
        assert isinstance(sought, Term), "two constants are computed"
        if isinstance(searched.value, str):
            text = searched.value
            if len(text) > _LONGEST_SEARCHED:
                raise _refuse("in")
            parts = {text[low:high] for low in range(len(text)) for high in range(low, len(text) + 1)} | {""}
            return forms.one_of(sought, sorted(parts))
        if not isinstance(searched.value, list):
            return False
        scalars = [value for value in searched.value if isinstance(value, str | int | float)]
        return forms.any_of(
            [forms.one_of(sought, scalars), forms.is_null(sought) if None in searched.value else False]
        )

    def _is_missing(self, name: Any) -> Form:
        term = self.variable(name)
        return forms.any_of([forms.is_null(term), forms.test(term, "=", "")])

    def _missing_some(self, needed: Any, names: Any) -> Form:
        """Some are missing, and too few are there; JsonLogic says no where all are there, however few."""
        if not isinstance(needed, int) or isinstance(needed, bool) or not isinstance(names, list):
            raise _refuse("an invalid rule")
        missing = [self._is_missing(name) for name in names]
        enough = forms.at_least(needed, [not_true(one) for one in missing])
        return forms.all_of([not_true(enough), forms.any_of(missing)])

    def _some(self, operator: str, array: Any, condition: Any) -> Form:
        elements = self._elements(operator, array)
        return elements.exists(elements.reader().truth(condition))

    def _all(self, array: Any, condition: Any) -> Form:
        """Of no element at all, JsonLogic says no."""
        elements = self._elements("all", array)
        another = elements.exists(not_true(elements.reader().truth(condition)))
        return forms.all_of([elements.is_some(), not_true(another)])

    def _elements(self, operator: str, array: Any) -> "_Elements":
        """The elements of an array, which is a variable, or what `filter` and `map` make of one."""
        operation = _operation(array)
        if operation is None:
            raise _refuse(operator)
        name, (first, second, *_) = operation[0], (*operation[1], None, None)
        if name == "var" and second is None:
            element = "element" if not self._depth else f"element{self._depth + 1}"
            return _Elements(self.variable(first), element, element, self._depth + 1)
        if name == "filter":
            elements = self._elements(operator, first)
            kept = elements.reader().truth(second)
            return replace(elements, kept=forms.all_of([elements.kept, kept]))
        if name == "map":
            elements = self._elements(operator, first)
            made = _operation(second)
            if made is not None and made[0] == "var" and len(made[1]) == 1:
                return replace(elements, path=elements.reader().path(made[1][0]))
        raise _refuse(operator)

    def _value(self, rule: Any) -> _Value:
        if _is_constant(rule):
            return _Constant(values.compute(rule))
        operation = _operation(rule)
        if operation is None:
            raise _refuse("merge")
        operator, operands = operation
        match operator:
            case "var":
                name, default = _two(operands)
                term = self.variable(name)
                if default is None:
                    return term
                return Term(f"coalesce({term.text}, {self._text(default)})")
            case "and" | "or" | "if" | "?:":
                if all(isinstance(self._value(operand), _Truth) for operand in operands):
                    return _Truth(self.truth(rule))
                raise _refuse(operator)
            case "+" | "*":
                # An absent variable makes the result NaN, and every comparison with it false.
                if len(operands) == 1 and operator == "*":
                    return self._value(operands[0])  # as it is
                if len(operands) == 1:
                    return Term(f"CAST({self._text(operands[0])} AS float)")
                return Term("(" + f" {operator} ".join(self._text(operand) for operand in operands) + ")")
            case "-" | "/" | "%":
                parts = [self._number(operand) for operand in operands]
                if not parts or (len(parts) == 1 and operator != "-"):
                    raise _refuse("an invalid rule")
                return Term(f"(0 - {parts[0]})" if len(parts) == 1 else f"({parts[0]} {operator} {parts[1]})")
            case "cat":
                return Term("concat(" + ", ".join(self._written(operand) for operand in operands) + ")")
            case "substr":
                return self._substring(operands)
        if operator in _OF_TRUTHS:
            return _Truth(self.truth(rule))
        if operator in NOT_CARRIED_OVER:
            raise _refuse(operator)
        raise NotCarriedOverError(operator, NOT_CARRIED_OVER["unknown operator"])

    def variable(self, name: Any) -> Term:
        """What a variable stands for."""
        return forms.attribute(self.path(name))

    def path(self, name: Any) -> str:
        """The path that a variable names."""
        if isinstance(name, list) and len(name) == 1:
            name = name[0]
        if self._element and name in ("", None):
            return self._element
        if not isinstance(name, str) or not name or any(part.isdigit() for part in name.split(".")):
            raise _refuse("var")
        return f"{self._element}.{name}" if self._element else name

    def _text(self, rule: Any) -> str:
        """A value as part of a term."""
        value = self._value(rule)
        if isinstance(value, _Truth):
            raise _refuse("==")
        if isinstance(value, Term):
            return value.text
        if isinstance(value.value, list | dict) or values.is_nan(value.value):
            raise _refuse("==")
        return forms.literal(value.value)

    def _number(self, rule: Any) -> str:
        value = self._value(rule)
        if isinstance(value, Term):
            return _or_zero(value)
        if not isinstance(value, _Constant):
            return self._text(rule)
        if values.is_nan(converted := values.number(value.value)):
            raise _refuse("==")
        return forms.literal(converted)

    def _written(self, rule: Any) -> str:
        """A value as text: null is empty."""
        value = self._value(rule)
        if isinstance(value, _Constant):
            return forms.literal(values.text(value.value))
        return f"coalesce(CAST({self._text(rule)} AS string), '')"

    def _substring(self, operands: list[Any]) -> Term:
        source, start, length = [*operands, None, None][:3]
        if not isinstance(start, int) or not (length is None or (isinstance(length, int) and length >= 0)):
            raise _refuse("substr")
        text = self._value(source)
        # JavaScript makes 'null' of what is absent.
        looked_at = (
            f"coalesce({self._text(source)}, 'null')" if isinstance(text, Term) else self._text(source)
        )
        first = start + 1 if start >= 0 else start
        until = "" if length is None else f", {length}"
        return Term(f"substring({looked_at}, {first}{until})")


_OF_TRUTHS = frozenset(
    ("==", "===", "!=", "!==", "<", "<=", ">", ">=", "!", "!!", "in", "some", "none", "all")
)


def _two(operands: list[Any]) -> tuple[Any, Any]:
    first, second = [*operands, None, None][:2]
    return first, second


def _truthy(value: _Value) -> Form:
    if isinstance(value, _Truth):
        return value.form
    if isinstance(value, _Constant):
        return values.is_truthy(value.value)
    present = [forms.test(value, "=", True)] if value.name else []
    not_zero = {**forms.test(value, "=", 0), "negated": True}
    not_empty = {**forms.test(value, "=", ""), "negated": True}
    filled = [forms.test(Term(f"size({value.text})"), ">", 0)] if value.name else []
    return forms.any_of([*present, not_zero, not_empty, *filled])


def _in_order(operator: str, left: _Value, right: _Value) -> Form:
    if isinstance(left, _Truth) or isinstance(right, _Truth):
        raise _refuse("==")
    if isinstance(left, _Constant) and isinstance(right, _Constant):
        return bool(values.OPERATORS[operator](left.value, right.value))
    if isinstance(left, _Constant):
        left, right, operator = right, left, _ORDER[operator]
    assert isinstance(left, Term), "one side depends on the data"
    if isinstance(right, Term):
        return forms.holds(Term(f"{_or_zero(left)} {operator} {_or_zero(right)}"))
    limit = right.value
    if values.is_nan(limit):
        return False
    if isinstance(limit, list | dict):
        raise _refuse("==")
    if isinstance(limit, bool) or limit is None:
        limit = int(bool(limit))
    when_absent = left.name is not None and values.OPERATORS[operator](None, limit)
    return forms.any_of([forms.test(left, operator, limit), forms.is_null(left) if when_absent else False])


def _or_zero(term: Term) -> str:
    return f"coalesce({term.text}, 0)" if term.name else term.text


def _names(operands: list[Any]) -> list[Any]:
    """The names that `missing` looks for; also as one array, or as an array that is computed."""
    if len(operands) == 1 and _operation(operands[0]) is not None:
        if not _is_constant(operands[0]):
            raise _refuse("merge")
        operands = [values.compute(operands[0])]
    if len(operands) == 1 and isinstance(operands[0], list):
        return list(operands[0])
    return operands
