"""What the oracle compares: kinds of values and the order in which they lie."""

import math
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any


@dataclass(frozen=True)
class Interval:
    low: Any
    high: Any


def kind(value: Any) -> str:
    kinds = {bool: "boolean", str: "string", datetime: "timestamp", Interval: "interval"}
    kinds |= dict.fromkeys((int, float, Decimal), "number")
    return "null" if value is None else kinds.get(type(value), "record" if type(value) is dict else "array")


def order(value: Any) -> Any:
    """A key that sorts as the language does: numbers by the value they stand for, NaN above all, strings by
    code point. A float stands for itself if it is a whole number up to 2^63, else for its shortest text."""
    if kind(value) != "number":
        return value
    if math.isnan(value):
        return (1, 0)
    if isinstance(value, float) and math.isinf(value):
        return (0, value)
    is_whole = value == math.floor(value) and abs(value) <= 2**63
    return (0, Fraction(value) if is_whole or not isinstance(value, float) else Fraction(repr(value)))


SCALARS = ("boolean", "number", "string", "timestamp")


def are_comparable(a: Any, b: Any) -> bool:
    return kind(a) == kind(b) and kind(a) in SCALARS
