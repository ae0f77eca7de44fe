"""Where an imported rule and its own engine answer differently: every known case, with the engine's answer.

The sentences stand in docs/importers.md, under "What differs".
"""

from typing import Any, NamedTuple


class Difference(NamedTuple):
    says: str
    rule: Any
    event: dict[str, Any]
    theirs: bool


_X = {"var": "x"}

EVENT_PATTERNS = [
    Difference(
        "The fields of records in an array are not reached unless `arrays` names it",
        {"d": {"s": ["a"]}},
        {"d": [{"s": "a"}]},
        True,
    ),
    Difference(
        "Tests other than equality look into an array only if `arrays` names it",
        {"n": [{"numeric": [">", 3]}]},
        {"n": [5]},
        True,
    ),
    Difference(
        "Tests other than equality look into an array only if `arrays` names it",
        {"s": [{"anything-but": "a"}]},
        {"s": ["a"]},
        False,
    ),
    Difference("Tests do not look into arrays inside arrays", {"n": [1]}, {"n": [[1], [2]]}, True),
    Difference("null and absent are the same", {"s": [{"exists": True}]}, {"s": None}, True),
    Difference("null and absent are the same", {"s": [{"anything-but": "a"}]}, {"s": None}, True),
    Difference(
        "An IPv4 address in IPv6 notation is in IPv4 blocks here",
        {"s": [{"cidr": "10.0.0.0/8"}]},
        {"s": "::ffff:10.0.0.1"},
        False,
    ),
    Difference(
        "An address with leading zeros is valid there",
        {"s": [{"cidr": "10.0.0.0/8"}]},
        {"s": "10.0.0.01"},
        True,
    ),
    Difference(
        "The block of all IPv6 addresses contains IPv4 there",
        {"s": [{"cidr": "::/0"}]},
        {"s": "1.1.1.1"},
        True,
    ),
    Difference("Event Ruler rounds numbers to six digits", {"n": [1.0000001]}, {"n": 1.00000012}, True),
    Difference(
        "Case is ignored with `lower`, which differs outside ASCII",
        {"s": [{"equals-ignore-case": "ß"}]},
        {"s": "ẞ"},
        False,
    ),
    Difference(
        "Event Ruler matches too much where one field has `wildcard` and `equals-ignore-case`",
        {"t": [{"wildcard": "*b"}, {"equals-ignore-case": "a"}]},
        {"t": "ac"},
        True,
    ),
]

JSON_LOGIC = [
    Difference("Values are not converted", {"==": [_X, 1]}, {"x": "1"}, True),
    Difference("Values are not converted", {"==": [_X, 0]}, {"x": ""}, True),
    Difference("Values are not converted", {">": [_X, 9]}, {"x": "10"}, True),
    Difference("Values are not converted", {"==": [{"+": [_X, 1]}, 3]}, {"x": "2"}, True),
    Difference(
        "A number with a fraction is not converted to text",
        {"==": [{"cat": ["a", _X]}, "a1.5"]},
        {"x": 1.5},
        True,
    ),
    Difference("A division by zero is infinite there", {">": [{"/": [1, _X]}, 5]}, {"x": 0}, True),
    Difference("A string has a `length` there", {"==": [{"var": "s.length"}, 1]}, {"s": "a"}, True),
    Difference("A record on its own is true there", _X, {"x": {}}, True),
    Difference("The default is not used for null there", {"==": [{"var": ["x", 5]}, 5]}, {"x": None}, False),
]

SQL = [
    Difference("A literal takes the type of its column there", "x = '5'", {"x": 5}, True),
    Difference("Names are case-insensitive there", "X = 5", {"x": 5}, True),
    Difference("A division by zero is infinite or an error there", "x / 0 > 5", {"x": 1}, True),
    Difference("CAST to an integer rounds in most dialects", "CAST(x AS BIGINT) = 3", {"x": 2.7}, True),
    Difference("CAST of a number with a fraction to text", "CAST(x AS VARCHAR) = '2.5'", {"x": 2.5}, True),
]
