"""JsonLogic on values alone: the result of an operation that does not depend on the data.

The conversions are JavaScript's, as far as JSON has values for them. A missing operand is `UNDEFINED`, which
differs from `null`: as a number it is neither equal to itself nor before or after anything.
"""

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from tamis.importers.report import NotCarriedOverError

UNDEFINED: Final = object()
"""An operand that is not given."""

OPERANDS = {
    **dict.fromkeys(("!", "!!", "log"), 1),
    **dict.fromkeys(("==", "===", "!=", "!==", ">", ">=", "in", "-", "/", "%", "var", "missing_some"), 2),
    **dict.fromkeys(("map", "filter", "all", "some", "none"), 2),
    **dict.fromkeys(("<", "<=", "substr", "reduce"), 3),
}
"""How many operands an operator takes, where it takes a number of them: it ignores those beyond."""

_DECIMAL = r"[+-]?(?:Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
_IS_DECIMAL = re.compile(_DECIMAL)
_EXACT = 2**53
_BASES = {"0x": 16, "0o": 8, "0b": 2}


def is_truthy(value: Any) -> bool:
    """JsonLogic's truth, in which an empty array is false.

    >>> [is_truthy(value) for value in (0, "", [], None, "0", [0], {}, UNDEFINED)]
    [False, False, False, False, True, True, True, False]
    """
    if value is UNDEFINED:
        return False
    if isinstance(value, dict):
        return True
    return bool(value) and not is_nan(value)


def is_nan(value: Any) -> bool:
    """Whether it is the number that nothing equals.

    >>> is_nan(math.nan), is_nan("NaN")
    (True, False)
    """
    return isinstance(value, float) and math.isnan(value)


def number(value: Any) -> float | int:
    """JavaScript's `Number(value)`.

    >>> number(" 12 "), number(None), number(True), number("x"), number("0x1f"), number("1_0")
    (12, 0, 1, nan, 31, nan)
    """
    if value is None:
        return 0
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int | float):
        return _whole(value)
    if isinstance(value, list):
        return number(text(value))
    if isinstance(value, str):
        return _of_text(value.strip())
    return math.nan


def _of_text(stripped: str) -> float | int:
    if not stripped:
        return 0
    if base := _BASES.get(stripped[:2].lower()):
        digits = stripped[2:]
        try:
            return _whole(int(digits, base)) if digits.isascii() and digits.isalnum() else math.nan
        except ValueError:
            return math.nan
    return _whole(float(stripped)) if _IS_DECIMAL.fullmatch(stripped) else math.nan


def _whole(value: float) -> float | int:
    """A number as JavaScript has it, a double; an integer where that is the same."""
    value = float(value)
    return int(value) if value.is_integer() and abs(value) <= _EXACT else value


def text(value: Any) -> str:
    """JavaScript's `String(value)`, with nothing for null, as in a joined array.

    >>> text(None), text(True), text([1, 2]), text(1.0), text(1e21), text(1e-7)
    ('', 'true', '1,2', '1', '1e+21', '1e-7')
    """
    if value is None or value is UNDEFINED:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(text(part) for part in value)
    if isinstance(value, int | float):
        return _number_text(float(value))
    return "[object Object]" if isinstance(value, dict) else str(value)


def _number_text(value: float) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    digits = repr(value).removesuffix(".0")  # the fewest that make the number, as in JavaScript
    mantissa, _, exponent = digits.partition("e")
    if exponent and not -7 < int(exponent) < 21:
        return f"{mantissa}e{int(exponent):+d}"
    return f"{Decimal(digits):f}" if value else "0"


def _primitive(value: Any) -> Any:
    """A record or an array becomes its text before it is compared."""
    return text(value) if isinstance(value, list | dict) else value


def loosely_equal(left: Any, right: Any) -> bool:
    """JavaScript's `==`.

    >>> loosely_equal(1, "1"), loosely_equal(None, 0), loosely_equal(True, 1), loosely_equal([1], "1")
    (True, False, True, True)
    """
    nothing = (None, UNDEFINED)
    if any(left is one for one in nothing) or any(right is one for one in nothing):
        return any(left is one for one in nothing) and any(right is one for one in nothing)
    if isinstance(left, list | dict) and isinstance(right, list | dict):
        return False  # two of them are never the same one
    left, right = _primitive(left), _primitive(right)
    if isinstance(left, str) and isinstance(right, str):
        return left == right
    return number(left) == number(right)


def strictly_equal(left: Any, right: Any) -> bool:
    """JavaScript's `===`.

    >>> strictly_equal(1, 1.0), strictly_equal(1, "1"), strictly_equal(None, UNDEFINED)
    (True, False, False)
    """
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if left is UNDEFINED or right is UNDEFINED:
        return left is right
    if isinstance(left, int | float) and isinstance(right, int | float):
        return number(left) == number(right)
    same = (left is None and right is None) or (isinstance(left, str) and isinstance(right, str))
    return bool(same and left == right)


def _less(left: Any, right: Any) -> bool:
    left, right = _primitive(left), _primitive(right)
    if isinstance(left, str) and isinstance(right, str):
        return left.encode("utf-16-be") < right.encode("utf-16-be")
    return number(left) < number(right)


def _less_or_equal(left: Any, right: Any) -> bool:
    left, right = _primitive(left), _primitive(right)
    if isinstance(left, str) and isinstance(right, str):
        return left.encode("utf-16-be") <= right.encode("utf-16-be")
    return number(left) <= number(right)


def _chain(compare: Callable[[Any, Any], bool]) -> Callable[..., bool]:
    def of(first: Any = UNDEFINED, second: Any = UNDEFINED, third: Any = UNDEFINED) -> bool:
        return compare(first, second) and (third is UNDEFINED or compare(second, third))

    return of


def _all(*operands: Any) -> Any:
    for operand in operands:
        if not is_truthy(operand):
            return operand
    return operands[-1] if operands else UNDEFINED


def _any(*operands: Any) -> Any:
    for operand in operands:
        if is_truthy(operand):
            return operand
    return operands[-1] if operands else UNDEFINED


def _if(*operands: Any) -> Any:
    for at in range(0, len(operands) - 1, 2):
        if is_truthy(operands[at]):
            return operands[at + 1]
    return operands[-1] if len(operands) % 2 else None


def _in(needle: Any = UNDEFINED, haystack: Any = UNDEFINED) -> bool:
    if isinstance(haystack, str):
        return haystack != "" and _shown(needle) in haystack
    return isinstance(haystack, list) and any(strictly_equal(needle, member) for member in haystack)


def _shown(value: Any) -> str:
    """JavaScript's `String(value)`, in which null has a name."""
    return "undefined" if value is UNDEFINED else "null" if value is None else text(value)


def _merge(*operands: Any) -> list[Any]:
    return [part for operand in operands for part in (operand if isinstance(operand, list) else [operand])]


def _float(value: Any) -> float | int:
    """JavaScript's `parseFloat`: what a text begins with."""
    found = re.match(_DECIMAL, _shown(value).lstrip())
    return _whole(float(found[0])) if found else math.nan


def _sum(*operands: Any) -> float | int:
    return _whole(sum(float(_float(operand)) for operand in operands))


def _product(first: Any, *others: Any) -> Any:
    return _whole(math.prod(float(_float(operand)) for operand in (first, *others))) if others else first


def _difference(left: Any = UNDEFINED, right: Any = UNDEFINED) -> float | int:
    return _whole(-number(left) if right is UNDEFINED else float(number(left)) - number(right))


def _quotient(left: Any = UNDEFINED, right: Any = UNDEFINED) -> float:
    dividend, divisor = float(number(left)), float(number(right))
    if divisor or math.isnan(divisor):
        return dividend / divisor
    if not dividend or math.isnan(dividend):
        return math.nan
    return math.copysign(math.inf, dividend) * math.copysign(1, divisor)


def _remainder(left: Any = UNDEFINED, right: Any = UNDEFINED) -> float | int:
    a, b = number(left), number(right)
    if not b or is_nan(a) or is_nan(b) or math.isinf(a):
        return math.nan
    return int(math.fmod(a, b)) if isinstance(a, int) and isinstance(b, int) else math.fmod(a, b)


def _substr(source: Any = UNDEFINED, start: Any = UNDEFINED, length: Any = UNDEFINED) -> str:
    whole, first = _shown(source), _place(start)
    if length is not UNDEFINED and _place(length) < 0:
        part = whole[max(len(whole) + first, 0) if first < 0 else first :]
        return part[: max(len(part) + _place(length), 0)]
    part = whole[max(len(whole) + first, 0) if first < 0 else first :]
    return part if length is UNDEFINED else part[: _place(length)]


def _place(value: Any) -> int:
    converted = number(value)
    if not math.isfinite(converted):
        if math.isnan(converted):
            return 0
        raise TypeError("a place is a number")
    return int(converted)


def _least(*operands: Any) -> float | int:
    numbers = [number(operand) for operand in operands]
    return math.nan if any(map(is_nan, numbers)) else min(numbers, default=math.inf)


def _greatest(*operands: Any) -> float | int:
    numbers = [number(operand) for operand in operands]
    return math.nan if any(map(is_nan, numbers)) else max(numbers, default=-math.inf)


OPERATORS: dict[str, Callable[..., Any]] = {
    "==": lambda left=UNDEFINED, right=UNDEFINED: loosely_equal(left, right),
    "===": lambda left=UNDEFINED, right=UNDEFINED: strictly_equal(left, right),
    "!=": lambda left=UNDEFINED, right=UNDEFINED: not loosely_equal(left, right),
    "!==": lambda left=UNDEFINED, right=UNDEFINED: not strictly_equal(left, right),
    "<": _chain(_less),
    "<=": _chain(_less_or_equal),
    ">": lambda left=UNDEFINED, right=UNDEFINED: _less(right, left),
    ">=": lambda left=UNDEFINED, right=UNDEFINED: _less_or_equal(right, left),
    "!": lambda operand=UNDEFINED: not is_truthy(operand),
    "!!": lambda operand=UNDEFINED: is_truthy(operand),
    "and": _all,
    "or": _any,
    "if": _if,
    "?:": _if,
    "in": _in,
    "cat": lambda *operands: "".join(text(operand) for operand in operands),
    "substr": _substr,
    "merge": _merge,
    "+": _sum,
    "*": _product,
    "-": _difference,
    "/": _quotient,
    "%": _remainder,
    "min": _least,
    "max": _greatest,
    "log": lambda operand=UNDEFINED: operand,
}
"""What each operator does with values."""


def operands_of(operator: str, operands: Any) -> list[Any]:
    """The operands that an operator looks at; a single one stands for an array of one.

    >>> operands_of(">", [3, 2, 1]), operands_of("!", True), operands_of("and", [1, 2, 3])
    ([3, 2], [True], [1, 2, 3])
    """
    listed = operands if isinstance(operands, list) else [operands]
    return listed[: OPERANDS.get(operator)]


def compute(rule: Any) -> Any:
    """The result of a rule in which nothing depends on the data.

    >>> compute({"if": [{">": [2, 1]}, {"cat": ["a", 1]}, "no"]})
    'a1'
    """
    if isinstance(rule, list):
        return [compute(part) for part in rule]
    if not isinstance(rule, dict) or len(rule) != 1:
        return rule
    [(operator, operands)] = rule.items()
    try:
        return OPERATORS[operator](*(compute(operand) for operand in operands_of(operator, operands)))
    except TypeError:
        raise NotCarriedOverError("an invalid rule", f"{operator} does not take these operands") from None
