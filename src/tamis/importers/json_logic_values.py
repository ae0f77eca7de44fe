"""JsonLogic on values alone: what an operation gives when nothing in it depends on the data.

The conversions are JavaScript's, as far as JSON has values for them.
"""

import math
from collections.abc import Callable
from typing import Any

from tamis.importers.report import NotCarriedOverError


def is_truthy(value: Any) -> bool:
    """JsonLogic's truth, in which an empty array is false.

    >>> [is_truthy(value) for value in (0, "", [], None, "0", [0], {})]
    [False, False, False, False, True, True, True]
    """
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

    >>> number(" 12 "), number(None), number(True), number("x")
    (12, 0, 1, nan)
    """
    if value is None:
        return 0
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int | float):
        return value
    if isinstance(value, list):
        return number(text(value))
    if isinstance(value, str):
        stripped = value.strip()
        if not stripped:
            return 0
        try:
            parsed = float(stripped) if "_" not in stripped else math.nan
        except ValueError:
            return math.nan
        return int(parsed) if parsed.is_integer() else parsed
    return math.nan


def text(value: Any) -> str:
    """JavaScript's `String(value)`, with nothing for null, as in a joined array.

    >>> text(None), text(True), text([1, 2]), text(1.0)
    ('', 'true', '1,2', '1')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(text(part) for part in value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "[object Object]" if isinstance(value, dict) else str(value)


def loosely_equal(left: Any, right: Any) -> bool:
    """JavaScript's `==`.

    >>> loosely_equal(1, "1"), loosely_equal(None, 0), loosely_equal(True, 1), loosely_equal([1], "1")
    (True, False, True, True)
    """
    if left is None or right is None:
        return left is right
    if isinstance(left, list | dict) and isinstance(right, list | dict):
        return left is right
    if isinstance(left, list):
        left = text(left)
    if isinstance(right, list):
        right = text(right)
    if isinstance(left, str) and isinstance(right, str):
        return left == right
    return number(left) == number(right)


def strictly_equal(left: Any, right: Any) -> bool:
    """JavaScript's `===`.

    >>> strictly_equal(1, 1.0), strictly_equal(1, "1"), strictly_equal(True, 1)
    (True, False, False)
    """
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    is_number = isinstance(left, int | float) and isinstance(right, int | float)
    same = is_number or (left is None and right is None) or (isinstance(left, str) and isinstance(right, str))
    return bool(same and left == right)


def _less(left: Any, right: Any) -> bool:
    if isinstance(left, str) and isinstance(right, str):
        return left.encode("utf-16-be") < right.encode("utf-16-be")
    return number(left) < number(right)


def _less_or_equal(left: Any, right: Any) -> bool:
    if isinstance(left, str) and isinstance(right, str):
        return left.encode("utf-16-be") <= right.encode("utf-16-be")
    return number(left) <= number(right)


def _chain(compare: Callable[[Any, Any], bool]) -> Callable[..., bool]:
    def of(*operands: Any) -> bool:
        three = [*operands, None][:3] if len(operands) < 3 else operands[:3]
        if len(operands) < 3:
            return compare(*[*operands, None, None][:2])
        return compare(three[0], three[1]) and compare(three[1], three[2])

    return of


def _all(*operands: Any) -> Any:
    for operand in operands:
        if not is_truthy(operand):
            return operand
    return operands[-1] if operands else None


def _any(*operands: Any) -> Any:
    for operand in operands:
        if is_truthy(operand):
            return operand
    return operands[-1] if operands else None


def _if(*operands: Any) -> Any:
    for at in range(0, len(operands) - 1, 2):
        if is_truthy(operands[at]):
            return operands[at + 1]
    return operands[-1] if len(operands) % 2 else None


def _in(needle: Any = None, haystack: Any = None) -> bool:
    if isinstance(haystack, str):
        return haystack != "" and text(needle) in haystack
    return isinstance(haystack, list) and any(strictly_equal(needle, member) for member in haystack)


def _merge(*operands: Any) -> list[Any]:
    return [part for operand in operands for part in (operand if isinstance(operand, list) else [operand])]


def _float(value: Any) -> float | int:
    """JavaScript's `parseFloat`, of what a rule holds."""
    return number(value) if isinstance(value, int | float | str) and value != "" else math.nan


def _sum(*operands: Any) -> float | int:
    return sum(_float(operand) for operand in operands)


def _product(*operands: Any) -> float | int:
    return math.prod(_float(operand) for operand in operands)


def _difference(left: Any = math.nan, right: Any = ()) -> float | int:
    return -number(left) if right == () else number(left) - number(right)


def _quotient(left: Any = None, right: Any = None) -> float:
    divisor = number(right)
    return number(left) / divisor if divisor else math.nan


def _remainder(left: Any = None, right: Any = None) -> float | int:
    a, b = number(left), number(right)
    if not b or is_nan(a) or is_nan(b):
        return math.nan
    return int(math.fmod(a, b)) if isinstance(a, int) and isinstance(b, int) else math.fmod(a, b)


def _substr(source: Any = None, start: Any = 0, length: Any = None) -> str:
    whole = "null" if source is None else text(source)
    first = max(len(whole) + start, 0) if start < 0 else start
    part = whole[first:]
    if length is None:
        return part
    return part[:length] if length >= 0 else part[: max(len(part) + length, 0)]


def _least(*operands: Any) -> float | int:
    return min((number(operand) for operand in operands), default=math.inf)


def _greatest(*operands: Any) -> float | int:
    return max((number(operand) for operand in operands), default=-math.inf)


OPERATORS: dict[str, Callable[..., Any]] = {
    "==": lambda left=None, right=None: loosely_equal(left, right),
    "===": lambda left=None, right=None: strictly_equal(left, right),
    "!=": lambda left=None, right=None: not loosely_equal(left, right),
    "!==": lambda left=None, right=None: not strictly_equal(left, right),
    "<": _chain(_less),
    "<=": _chain(_less_or_equal),
    ">": lambda left=None, right=None: _less(right, left),
    ">=": lambda left=None, right=None: _less_or_equal(right, left),
    "!": lambda operand=None: not is_truthy(operand),
    "!!": lambda operand=None: is_truthy(operand),
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
    "log": lambda operand=None: operand,
}
"""What each operator does with values."""


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
    arguments = operands if isinstance(operands, list) else [operands]
    try:
        return OPERATORS[operator](*(compute(argument) for argument in arguments))
    except TypeError as error:
        raise NotCarriedOverError(operator, f"its operands are not what it takes: {error}") from None
